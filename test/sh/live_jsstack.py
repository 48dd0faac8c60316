#!/usr/bin/env python3
# ustack() and descry profile have the functions and lines of JavaScript in Node.js, walked in the kernel and in the process. A program says
# where it is, and a probe fires there: both stacks are equal, frame by frame, while its functions are interpreted, get baseline code, and are optimized and
# inlined, in a worker thread, and while the collector moves objects. Of thousands of samples at any instruction, each caller's line must
# call the function in front of it. NODES: programs to compare instead of the installed one; SAMPLES: of each kind; ROUNDS: stacks that a
# thread says.
# serial
# timeout: 1500
import itertools

from live import *
from node_code import *

SAMPLES = int(os.environ.get("SAMPLES", "600"))
ROUNDS = int(os.environ.get("ROUNDS", "75"))
# kill() without a signal is the place at which the probe fires. Names are read while the program runs. So each thread stays, says ROUNDS
# stacks twice, and waits each time until they are printed: before the second time, the names of the functions have been requested.
TRUTH = program("const { parentPort } = require('worker_threads'), fs = require('fs'), said = [];",
                "const s = o.stack; process.kill(process.pid, 0); said.push(s)", """
function rounds() {
    for (let i = 0; i < %d; i++)
        maps();
}
function turn(gate, then) {
    rounds();
    fs.writeFileSync(process.argv[isMainThread ? 2 : 3], JSON.stringify(said));
    process.kill(process.pid, 'SIGWINCH');
    const timer = setInterval(() => fs.existsSync(process.argv[4] + gate) && (clearInterval(timer), then()), 5);
}
function stays() {
    setInterval(() => {}, 1000);
    parentPort.postMessage(0);
}
if (isMainThread)
    new Worker(__filename, { argv: process.argv.slice(2) }).on('message', () => turn(2, () => turn(3, process.exit)));
else
    setTimeout(() => turn(0, () => turn(1, stays)), 1000);""" % ROUNDS)
TURNS = 4
PARK = ("park", "truth.js", 7)
CLAUSES = """syscall::kill:entry /pid == $target && !arg1/ { printf("main %d\\n", tid == pid); ustack(200); }
syscall::kill:entry /pid == $target && arg1 == 28/ { printf("end\\n"); }"""
# Flags of V8 for each kind of code and for collectors that move much; a version has some of them.
MODES = ([], ["--jitless"], ["--always-sparkplug"], ["--always-opt"], ["--always-turbofan"], ["--maglev"],
         ["--compact-on-every-full-gc", "--gc-interval=3000"], ["--stress-compaction"])
BUSY_MODES = ([], ["--jitless"], ["--always-sparkplug", "--no-opt", "--no-maglev"], ["--always-sparkplug", "--no-opt"], ["--maglev"], ["--no-enable-lazy-source-positions"])
IN_SOURCE = "Object.defineProperty.value"  # of both functions of called()
OPTIONS = ("-q", "-x", "aggsize=16m")
ENGINES = os.environ.get("ENGINES", "kernel inproc").split()


def said(path):
    with open(path, encoding="utf-8") as f:
        return [[shown(f) for f in stack] for stack in json.load(f)]


def named(block):
    """The frames of JavaScript; one without a name, because its function moved before it was read, is None."""
    return [f for line in block.splitlines() for f in ([None] if line.strip() == "[javascript]" else frames_of(line + "\n"))]


def as_inlined(theirs, ours):
    """Ours, with their name where ours is the one in the source: of a function that is inlined while its object is in a register."""
    if len(theirs) != len(ours):
        return ours
    return [a if b and b[0] == IN_SOURCE and b[1:] == a[1:] else b for a, b in zip(theirs, ours)]


def can_be(theirs, ours):
    """Are these frames those, in true order, as far as names and lines are known?"""
    rest = iter(theirs)
    return all(any(b == a or b == (*a[:2], 0) or (b[0] == IN_SOURCE and b[1:] == a[1:]) for a in rest) for b in ours if b)


def open_gates(proc, printed, gate, secs=240):
    """Lets the program go on, each time that the stacks of a turn are printed."""
    deadline, n = time.monotonic() + secs, 0
    while proc.poll() is None and time.monotonic() < deadline and n < TURNS:
        time.sleep(0.05)
        if not os.path.exists(printed):
            continue
        with open(printed, encoding="utf-8") as f:
            done = f.read().count("\nend\n")
        while n < done:
            with open(gate + str(n), "w"):
                n += 1


def compare_said(node, engine, flags):
    name = "%s %s, %s" % (node, " ".join(flags), engine)
    files = [TMP + "/" + f for f in ("main-said", "worker-said", "gate", "out")]
    # Node.js makes the pipes that it shares with descry non-blocking
    started = start(*OPTIONS, "-x", "engine=" + engine, "-o", files[3], "-n", CLAUSES, c="%s %s %s/truth.js %s" % (node, " ".join(flags), TMP, " ".join(files[:3])))
    open_gates(started[1], files[3], files[2])
    r = finish(started)
    check(r.rc == 0, name, "exit", r)
    with open(files[3], encoding="utf-8") as f:
        text = f.read()
    os.unlink(files[3])
    for i in range(TURNS):
        os.unlink(files[2] + str(i))
    ours = {}
    for thread, block in re.findall(r"^main (\d+)\n((?:^ +\S.*\n|\n)*)", text, re.M):
        frames = named(block)
        # above park() are kill()'s own
        first = next((i for i, f in enumerate(frames) if f and f[1] == "truth.js"), len(frames))
        while first and frames[first - 1] is None and frames[first:first + 1] != [PARK]:
            first -= 1
        ours.setdefault(int(thread), []).append(frames[first:])
    theirs = [said(f) for f in files[:2]]
    possible, equal, settled, total, unlike = 0, 0, 0, 0, []
    for a, b in zip(theirs, [ours.get(1, []), ours.get(0, [])]):
        b = [as_inlined(x, y) for x, y in zip(a, b)] if len(a) == len(b) else b
        check(len(a) == len(b) >= ROUNDS, name, "stacks", len(a), len(b), r)
        total += len(a)
        possible += sum(can_be(x, y) for x, y in zip(a, b))
        equal += sum(x == y for x, y in zip(a, b))
        settled += sum(x == y for x, y in list(zip(a, b))[len(a) // 2:])
        unlike += sorted(((can_be(x, y), x, y) for x, y in zip(a, b) if x != y), key=lambda u: u[0])
    text = ["%s\n theirs %s\n ours   %s" % (u, [f for f in x if f not in y] or x, [f for f in y if f not in x] or y) for u, x, y in unlike[:3]]
    print("%s: %d of %d stacks are equal, %d of the second half, %d are or lack names" % (name, equal, total, settled, possible), *text, sep="\n ")
    check(possible == total, name, possible, "of", total, "are true")
    # With these flags, functions move again and again before a busy machine reads their names. With any, V8 may drop code that it has just made.
    moves = "--stress-compaction" in flags or "--compact-on-every-full-gc" in flags
    check(settled >= (1 if moves else total / 2 * 0.9), name, settled, "of", total // 2, "are equal")


def stacks(text):
    """Stacks of printed aggregations: ([frames], count)."""
    for m in re.finditer(r"((?:^ +\S.*\n)+?)^ +(\d+)$", text, re.M):
        yield m.group(1), int(m.group(2))


def judge(name, text, r):
    seen, unknown, lines, wrong, inside = 0, 0, 0, [], set()
    for block, n in stacks(text):
        frames = frames_of(block)
        unknown += n if "[javascript]" in block or "[jit]" in block else 0
        if not any(f[1] == "busy.js" for f in frames):
            continue
        seen += n
        lines += n if frames[0][2] else 0
        inside.update(f[0] for f in frames)
        why = fault(block)
        wrong += ["%s\n%s" % (why, block)] * n if why else []
    print("%s: %d samples, %d wrong, %d without a name, %d with the innermost line" % (name, seen, len(wrong), unknown, lines))
    check(seen > SAMPLES / 2, name, "has samples", seen, r)
    check(len(wrong) <= seen * 0.005, name, "stacks that cannot be", "\n".join(wrong[:3]))
    check(unknown <= seen * 0.02, name, "names", unknown, "of", seen)
    return inside


# until there are enough, on a machine as busy as it may be
ENOUGH = ("profile-997 /pid == $target/ { @[jstack(100)] = count(); n++; } profile-997 /n >= %d/ { exit(0); } tick-60s { exit(0); }" % SAMPLES)


def compare_busy(node, engine, flags):
    p = subprocess.Popen([node, *flags, TMP + "/busy.js"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    check(p.stdout.readline() == b"ready\n", "is ready")
    r = descry(*OPTIONS, "-x", "engine=" + engine, "-p", str(p.pid), "-n", ENOUGH)
    inside = judge("%s %s, %s, busy" % (node, " ".join(flags), engine), r.out, r)
    p.kill()
    p.wait()
    check({"run", "busyText", "fib", "replace"} <= inside, flags, "functions", inside)


with open(TMP + "/truth.js", "w", encoding="utf-8", newline="") as f:
    f.write(TRUTH)
with open(TMP + "/busy.js", "w", encoding="utf-8") as f:
    f.write(BUSY[1:])
for node in nodes():
    for engine, flags in itertools.product(ENGINES, MODES):
        if accepts(node, flags):
            compare_said(node, engine, flags)
    for engine, flags in itertools.product(ENGINES, BUSY_MODES):
        if accepts(node, flags):
            compare_busy(node, engine, flags)
    compare_folded([node, TMP + "/busy.js"], "busyText", "run")
done()
