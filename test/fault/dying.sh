# The traced program goes while it is traced: END fires, the results are printed, the exit code is 0.
# serial
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
from live import *

PROGRAM = ("pid$target::work_step:entry { @ = count(); } syscall::getpid:entry /pid == $target/ { @g = count(); } "
           "END { printf(\"the end\\n\"); }")


def dies(how, *args, c=None):
    tracee = None
    if not c:
        tracee = subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE)
        tracee.stdout.readline()
        args += ("-p", str(tracee.pid))
    s = start("-n", PROGRAM, *args, c=c)
    time.sleep(0.5)
    pid = tracee.pid if tracee else int(re.search(r"pid (\d+)", s[1].stdout.read1(100).decode()).group(1))
    begun = time.monotonic()
    os.kill(pid, how)
    if tracee:
        tracee.communicate()
    r = finish(s, 10)
    took = time.monotonic() - begun
    check(r.rc == 0, how, args, r)
    check("the end" in r.out, "END fires", how, args, r)
    counts = [v for _, v in r.table()]
    check(any(20 < v < 200 for v in counts), "what was counted is printed", how, args, r)
    check(took < 2, "ends at once", took)


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
    r = finish(s, 10)
    check(r.rc in (0, 1), "killed while attaching, after %d ms" % ms, r)
    check(r.rc == 0 or 1 <= len(r.err.strip().splitlines()) <= 4, "says why, after %d ms" % ms, r)

# one of two goes: the other is traced on
a, b = (subprocess.Popen([LIVE, "wait"], stdout=subprocess.PIPE) for _ in range(2))
a.stdout.readline(), b.stdout.readline()
s = start("-q", "-p", str(a.pid), "-p", str(b.pid), "-n", "syscall::clock_nanosleep:entry /pid == %d || pid == %d/ "
          "{ @[pid == %d] = count(); }" % (a.pid, b.pid, b.pid))
time.sleep(0.4)
a.kill()
a.communicate()
time.sleep(0.6)
check(s[1].poll() is None, "one of two targets is left")
b.kill()
b.communicate()
counts = dict((int(k), int(v)) for k, v in re.findall(r"^ +(\d) +(\d+)$", finish(s, 10).out, re.M))
check(counts.get(1, 0) > 1.5 * counts.get(0, 0) > 0, "both were counted, one for longer", counts)
done()
END
