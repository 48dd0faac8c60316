#!/usr/bin/env python3
# The traced program goes while it is traced: END fires, the results are printed, the exit code is 0.
# serial
import struct

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

# Threads of a process that are killed in their probes: what they have counted is in every aggregation, though the process stays a
# zombie until the test waits for it. SIGKILL from outside comes amid a firing with certainty when all firings are long, and most often
# else; raise() sends its signal behind a firing.
CROWD = 6
LONG = "chill(500000000); " * 60


def crowd(clause, how=None):
    path = os.path.join(TMP, "crowd")
    tracee = subprocess.Popen([LIVE, "crowd", path, str(CROWD)], stdout=subprocess.PIPE)
    tracee.stdout.readline()
    s = start("-q", "-w", "-p", str(tracee.pid), "-x", "engine=inproc", "-n", 'BEGIN { printf("on\\n"); } '
              "pid$target::crowd_step:entry { @a = count(); @b[arg0] = count(); @c = count(); %s } " % clause +
              'END { printa("a %@d\\n", @a); printa("b%d %@d\\n", @b); printa("c %@d\\n", @c); }')
    read_until(s, (b"on",))
    with open(path, "r+b") as f:
        f.seek(CROWD * 16)
        f.write(b"\1")
    return tracee, s, path


def numbers_of(path):
    words = struct.unpack("%dQ" % (2 * CROWD), open(path, "rb").read(CROWD * 16))
    return words[::2], words[1::2]


def wait_for_firing(s, path):
    """Returns when each thread is in a firing. Only for clauses whose firings take long."""
    before = None
    while s[1].poll() is None:
        begun, ended = now = numbers_of(path)
        if now == before and all(b > e for b, e in zip(begun, ended)):
            return
        before = now
        time.sleep(0.05)


def killed(clause, outside):
    tracee, s, path = crowd(clause)
    if outside:
        if "chill" in clause:
            wait_for_firing(s, path)
        while "chill" not in clause and sum(numbers_of(path)[1]) < 1000 and s[1].poll() is None:
            time.sleep(0.001)
        tracee.kill()
    r = finish(s)
    begun, ended = numbers_of(path)
    got = {k: int(v) for k, v in re.findall(r"^(a|c|b\d+) (\d+)$", r.out, re.M)}
    tracee.communicate()
    check(r.rc == 0 and tracee.returncode == -signal.SIGKILL and "aggregations" not in r.err, "it is killed, and nothing is missing", clause, r)
    for i in range(CROWD):
        check(begun[i] >= got.get("b%d" % i, 0) >= ended[i], "thread %d: begun, counted, ended" % i, clause, begun, ended, got)
    sums = [got.get("a", 0), sum(v for k, v in got.items() if k[0] == "b"), got.get("c", 0)]
    check(max(sums) - min(sums) <= CROWD, "the aggregations have the same, but for clauses that were not finished", clause, sums)


for _ in range(5):
    for n in 1, 300:
        killed("self->n++; } pid$target::crowd_step:entry /arg0 == %d && self->n == %d/ { raise(9);" % (n % CROWD, n), False)
    killed("@d[strjoin(probefunc, probename), arg0] = quantize(timestamp); @e[ustack(9)] = count();", True)
killed(LONG, True)

# a thread that stays in a probe is named
tracee, s, path = crowd(LONG)
wait_for_firing(s, path)
s[1].send_signal(signal.SIGINT)
r = finish(s)
check(re.search("has not left its probe|have not left their probes|thread [0-9]+ is still in a probe", r.err), "a note names who stays in a probe", r)
tracee.kill()
tracee.communicate()

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
