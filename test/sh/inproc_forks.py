#!/usr/bin/env python3
# Children of fork(2) that are not followed: they have none of the memory that the tracer and their parent share, and run on unharmed,
# wherever they come from (tracee/forks.c), and whenever: during attach and detach, under a seccomp filter, in a signal handler.
# serial
from live import *

FORKS = os.path.join(BUILD, "test", "tracee_forks")
SECS = 30


def mapped(pid):
    try:
        return set(re.findall(r"/memfd:(descry-\w+)", open("/proc/%s/maps" % pid).read()))
    except OSError:
        return set()


def until(what, secs=SECS):
    end = time.monotonic() + secs
    while not what() and time.monotonic() < end:
        time.sleep(0.002)
    return what()


def line(proc, word):
    """Returns the next line of the process that begins with this word."""
    said = proc.stdout.readline().decode()
    check(said.startswith(word), "the process says %r" % word, said)
    return said


def ended(what, proc, n=None):
    """It and all its children came out right."""
    out = proc.communicate(timeout=SECS)[0].decode()
    check(proc.returncode == 0 and "\nbad 0\n" in "\n" + out and (not n or "children %d\n" % n in out), what, proc.returncode, out)
    return out


# --- wherever a child comes from ---
WORK = "pid$target:a.out:work:entry"
PROGRAMS = (
    ("a count", WORK + " { @ = count(); }"),
    ("variables", "uint64_t g; uint64_t a[uint64_t]; " + WORK + " { g++; a[arg1 & 63] = g; self->x = arg1; @[a[1]] = quantize(self->x); }"),
    ("a text that is read", WORK + " { @[copyinstr(arg0)] = count(); }"),
    ("stacks", WORK + " { @[ustack(8)] = count(); }"),
    ("records", WORK + ", pid$target:a.out:work:return /arg1 % 97 == 0/ { trace(arg1); }"),
    ("system calls", "syscall:::entry, syscall:::return { @[probefunc] = count(); } " + WORK + " { @w = count(); }"),
    ("samples", "profile-1997 { @ = count(); }"),
)
for what, d in PROGRAMS:
    # A sample's return address stands in memory that the parent's next sample overwrites. This test does not cover that.
    for mode, n in (("storm", 200), ("handler", 300))[:1 if what == "samples" else 2]:
        r = descry("-q", "-x", "engine=inproc", "-n", d, c="%s %s %d" % (FORKS, mode, n))
        check(r.rc == 0 and "children %d\nbad 0\n" % n in r.out, "%s, %s" % (mode, what), r.rc, r.out[:300], r.err[:500])

# --- and whenever ---
proc = subprocess.Popen([FORKS, "storm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
line(proc, "ready")
for i in range(20):
    d = PROGRAMS[i % len(PROGRAMS)][1] + " tick-10ms /n++ > %d/ { exit(0); }" % (i % 5)
    r = descry("-q", "-x", "engine=inproc", "-n", d, "-p", str(proc.pid))
    check(r.rc == 0, "attached", d, r)
    check(not mapped(proc.pid), "nothing is left in it", d)
proc.stdin.close()
proc.stdin = None
ended("attach and detach", proc)

# --- under a filter: the child cannot remove the probes, and cannot report to the tracer ---
for how in signal.SIGINT, signal.SIGKILL:
    proc = subprocess.Popen([FORKS, "filtered"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    line(proc, "ready")
    tracer = start("-q", "-x", "engine=inproc", "-n", WORK + " { @ = count(); n++; } tick-1ms /n/ { printf(\"fired\\n\"); n = 0; }", "-p", str(proc.pid))
    until(lambda: "descry-island" in mapped(proc.pid))
    proc.stdin.write(b"\n")
    proc.stdin.flush()
    child = line(proc, "child").split()[-1]
    has = mapped(child)
    check("descry-code" in has and "descry-shared" not in has, "a child without shared memory", has)
    tracer[1].send_signal(how)
    r = finish(tracer)
    check(r.rc == (0 if how == signal.SIGINT else -how), "the tracer ended", how, r)
    check(until(lambda: not mapped(child)), "%s: the child is restored" % how.name, mapped(child), r)
    check(until(lambda: not mapped(proc.pid)), "%s: so is its parent" % how.name, mapped(proc.pid), r)
    proc.stdin.close()
    proc.stdin = None
    ended("under a filter", proc, 1)

# --- a child in which no probe fired keeps its jumps, and can be healed ---
proc = subprocess.Popen([FORKS, "idle"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
line(proc, "ready")
tracer = start("-q", "-x", "engine=inproc", "-n", WORK + " { @ = count(); }", "-p", str(proc.pid))
until(lambda: "descry-island" in mapped(proc.pid))
proc.stdin.write(b"\n")
proc.stdin.flush()
child = line(proc, "child").split()[-1]
tracer[1].send_signal(signal.SIGINT)
check(finish(tracer).rc == 0 and not mapped(proc.pid) and "descry-code" in mapped(child), "it has its parent's text", mapped(child))
r = sh("%s heal %s" % (DESCRY, child))
left = [row for row in open("/proc/%s/maps" % child) if re.match("4[0-9a-f]{11}-", row)]
check(r.returncode == 0 and not left and not mapped(child), "nothing is left in it", r, left)
proc.stdin.close()
proc.stdin = None
ended("a child that was healed", proc, 1)
done()
