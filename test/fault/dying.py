#!/usr/bin/env python3
# The traced program goes while it is traced: END fires, the results are printed, the exit code is 0.
# serial
from live import *

PROGRAM = ("pid$target::work_step:entry { @ = count(); } syscall::getpid:entry /pid == $target/ { @g = count(); } "
           "pid$target::work_step:entry /++n == 25/ { printf(\"enough\\n\"); } END { printf(\"the end\\n\"); }")


def read_until(s, words, seconds=30):
    """What descry and its command have written when it holds all these words, or is too late."""
    text, end = b"", time.monotonic() + seconds
    os.set_blocking(s[1].stdout.fileno(), False)
    while not all(w in text for w in words) and s[1].poll() is None and time.monotonic() < end:
        text += s[1].stdout.read1() or b""
        time.sleep(0.01)
    os.set_blocking(s[1].stdout.fileno(), True)
    return text.decode(errors="replace")


def dies(how, *args, c=None):
    tracee = None
    if not c:
        tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE)
        tracee.stdout.readline()
        args += ("-p", str(tracee.pid))
    s = start("-n", PROGRAM, *args, c=c)
    said = read_until(s, (b"enough",) if tracee else (b"enough", b"pid "))
    check("enough" in said, "it is traced", said)
    os.kill(tracee.pid if tracee else int(re.search(r"pid (\d+)", said)[1]), how)
    if tracee:
        tracee.communicate()
    r = finish(s)
    check(r.rc == 0, how, args, r)
    check("the end" in r.out, "END fires", how, args, r)
    counts = [v for _, v in r.table()]
    check(any(v >= 25 for v in counts), "what was counted is printed", how, args, r)


for how in signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV:
    dies(how)
    dies(how, c=LIVE + " wait")

# gone before it is looked at, and while it is being attached to
tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE)
tracee.kill()
tracee.communicate()
r = descry("-p", str(tracee.pid), "-n", PROGRAM, rc=1)
check(len(r.err.strip().splitlines()) == 1 and str(tracee.pid) in r.err, "one clear line", r)
for ms in range(1, 40, 4):
    tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE)
    tracee.stdout.readline()
    s = start("-q", "-p", str(tracee.pid), "-n", PROGRAM)
    time.sleep(ms / 1000)
    tracee.kill()
    tracee.communicate()
    r = finish(s)
    check(r.rc in (0, 1), "killed while attaching, after %d ms" % ms, r)
    check(r.rc == 0 or 1 <= len(r.err.strip().splitlines()) <= 8, "says why, after %d ms" % ms, r)

# one of two goes: the other is traced on
a, b = (subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE) for _ in range(2))
a.stdout.readline(), b.stdout.readline()
s = start("-q", "-p", str(a.pid), "-p", str(b.pid), "-n", "syscall::clock_nanosleep:entry /pid == %d || pid == %d/ "
          "{ @[pid == %d] = count(); n[pid]++; } tick-50ms { printf(\"a%%d b%%d.\\n\", n[%d], n[%d]); }" % (a.pid, b.pid, b.pid, a.pid, b.pid))


def counted(fn):
    """Reads until the last line that it prints fulfils fn(calls of a, calls of b)."""
    end, n = time.monotonic() + 30, (0, 0)
    while not fn(*n) and s[1].poll() is None and time.monotonic() < end:
        m = re.match(r"a(\d+) b(\d+)\.", s[1].stdout.readline().decode())
        n = (int(m[1]), int(m[2])) if m else n
    return n


both = counted(lambda of_a, of_b: of_a > 5 and of_b > 5)
a.kill()
a.communicate()
later = counted(lambda of_a, of_b: of_b > 2 * both[1] + 50)
check(s[1].poll() is None, "one of two targets is left")
b.kill()
b.communicate()
r = finish(s)
counts = dict((int(k), int(v)) for k, v in re.findall(r"^ +(\d) +(\d+)$", r.out, re.M))
check(counts.get(0, 0) >= both[0] > 5 and counts.get(1, 0) >= later[1] > both[1] + 50, "both were counted, one for longer", counts, both, later)
done()
