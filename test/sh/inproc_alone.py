#!/usr/bin/env python3
# One tracer in a process. A second tracer, which chose the same addresses before the first was there, leaves the
# first one's work alone. The tracer's data in a process may be gone, undone by another program or by exec, or be in
# use by a forked child.
# serial
# timeout: 600
import random

from live import *

KINDS = os.path.join(BUILD, "test", "tracee_kinds")
TORTURE = os.path.join(BUILD, "test", "tracee_torture")
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
CRC = "pid$target:libz::entry, pid$target:libz::return { @[probefunc, probename] = count(); }"


def areas(pid, word="/memfd:descry"):
    try:
        return [line for line in open("/proc/%d/maps" % pid) if word in line]
    except OSError:
        return []


def wait(what, secs=20):
    end = time.monotonic() + secs
    while not what() and time.monotonic() < end:
        time.sleep(0.002)
    return what()


def torture():
    t = subprocess.Popen([TORTURE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.stdout.readline()
    return t


def unharmed(t, *what):
    alive = t.poll() is None
    t.terminate()
    out, err = t.communicate(timeout=60)
    check(alive and t.returncode == 0 and b" errors 0 " in out and not err, "the program", what, t.returncode, out, err)
    return out


def inside(pid, program, *more):
    return start("-x", "engine=inproc", *more, "-p", str(pid), "-n", program)


def stop(s):
    s[1].send_signal(signal.SIGINT)
    return finish(s)


def counted(s, more):
    """True as soon as the tracer has printed a number that is so much larger than that of now."""
    first = None
    while line := s[1].stdout.readline():
        n = int(line.split()[-1]) if b"counted " in line else 0
        first = n if first is None else first
        if n >= first + more:
            return True
    return False


# The second tracer has its memory laid out, and is stopped. The first attaches at the same addresses.
for program, word in (CRC, "island"), ("profile-499 { @ = count(); }", "shared"):
    t = torture()
    second = inside(t.pid, CRC + " tick-1s { exit(0); }")
    while not areas(second[1].pid) and second[1].poll() is None:
        pass
    second[1].send_signal(signal.SIGSTOP)
    time.sleep(0.05)
    if areas(t.pid):
        print("the second was the first")
        finish(second)
        unharmed(t)
        continue
    first = inside(t.pid, program.replace("count();", "count(); @all = count();") + " tick-100ms { printa(\"counted %@d\\n\", @all); }")
    check(wait(lambda: areas(t.pid, word)), "the first is in")
    time.sleep(0.2)
    before = {line.split()[4] for line in areas(t.pid, "descry-code")}
    second[1].send_signal(signal.SIGCONT)
    r = finish(second)
    check(r.rc == 1 and "another descry traces it" in r.err, "the second is refused", r)
    check({line.split()[4] for line in areas(t.pid, "descry-code")} == before, "what the first has mapped stays", areas(t.pid))
    check(counted(first, 100 if word == "island" else 20), "the first counts on", first[1].poll())
    r = stop(first)
    n = [int(x) for x in re.findall(r"\d+$", r.out, re.M)]
    check(r.rc == 0 and n and min(n) > 0, "the first has counted on", r)
    check(not areas(t.pid), "nothing is left", areas(t.pid))
    unharmed(t, program)

# Another program undoes the patches: the tracer reports it, and patches nothing more.
for program in CRC, "profile-1999 { @ = count(); }", "pid$target:libc.so.6::entry { @ = count(); }":
    t = torture()
    s = inside(t.pid, program)
    check(wait(lambda: areas(t.pid)), "it is in")
    time.sleep(random.random() * 0.3)
    r = descry("heal", "--force", str(t.pid))
    check("sites restored" in r.out, "healed", r)
    time.sleep(0.5)
    check(not areas(t.pid), "it stays out", areas(t.pid))
    r = descry("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", "pid$target::work_?:entry { @ = count(); } tick-100ms { exit(0); }")
    check(r.out.strip().isdigit() and int(r.out) > 100, "another one has the process for itself", r)
    r = stop(s)
    check(r.rc == 0 and "not traced any more" in r.err + r.out and "another program" not in r.err, "the tracer noticed", r)
    unharmed(t, program)

# Another tracer holds the process when the tracer detaches: the watchdog restores it as soon as it is released.
HOLD = """import ctypes, os, sys
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
while ptrace(0x4206, int(sys.argv[1]), 0, 0):  # PTRACE_SEIZE; the tracer has it now and then
    pass
print("held", flush=True)
sys.stdin.read()
"""
t = torture()
s = inside(t.pid, CRC)
check(wait(lambda: areas(t.pid, "island")), "it is in")
time.sleep(0.3)
h = subprocess.Popen([sys.executable, "-c", HOLD, str(t.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
check(h.stdout.readline() == b"held\n" and areas(t.pid), "held")
r = stop(s)
check("traced by" in r.err and areas(t.pid), "it could not be restored", r)
h.communicate()
check(wait(lambda: not areas(t.pid)), "the watchdog has done it", areas(t.pid))
unharmed(t, "held")

# A program that executes others, while it is sampled: between the exec and the next sample, nothing of descry is in
# it.
want = sh(shlex.join([KINDS, "exec", "25"])).stdout
for program in "profile-1999 { @ = count(); }", "profile-1999, pid$target:a.out:work:entry { @ = count(); }":
    for i in range(3):
        r = descry("-q", "-x", "engine=inproc", "-n", program, c=shlex.join([KINDS, "exec", "25"]))
        check(want in r.out and "SIGSEGV" not in r.err, "sampled while it executes others", r)

# A forked child uses a library where it was, while its parent has it elsewhere.
if shutil.which("cc"):
    os.chdir(TMP)
    open("reload.c", "w").write("""
__attribute__((noinline)) unsigned long inner(unsigned long x) { return (x ^ x >> 7) * 31 + 5; }
unsigned long reload(unsigned long x) { return inner(x) + x; }
""")
    check(sh("cc -O1 -g -fPIC -shared -o libreload.so reload.c").returncode == 0, "the library")
    os.environ["LD_LIBRARY_PATH"] = TMP
    program = ", ".join("pid$target:libreload.so:%s" % x for x in ("reload:entry", "inner:entry", "inner:return"))
    program += " { @[probefunc, probename] = count(); }"
    heirs = [KINDS, "heirs", "20", TMP + "/libreload.so"]
    want = sh(shlex.join(heirs)).stdout
    for follow, n in ([], 1000), (["-x", "follow"], 1000 + 20 * 100 + 10 * 3):
        r = descry("-q", "-x", "engine=inproc", *follow, "-n", program, c=shlex.join(heirs))
        got = [int(x) for x in re.findall(r"\d+$", r.out, re.M)]
        check(want in r.out and got == [n] * 3, "a child's library", n, follow, r)
    # tracers that come and go, by themselves or not
    heirs[2] = "300"
    want = sh(shlex.join(heirs)).stdout
    t = subprocess.Popen(heirs, stdout=subprocess.PIPE)
    for i in range(20):
        if t.poll() is not None:
            break
        s = inside(t.pid, program + " tick-%dms { exit(0); }" % random.choice((30, 150)), *random.choice(([], ["-x", "follow"])))
        if i % 3 == 0:
            time.sleep(random.random() * 0.3)
            s[1].kill()
        finish(s)
    out = t.communicate(timeout=60)[0].decode()
    check(t.returncode == 0 and out == want, "heirs, and tracers that come and go", t.returncode, out, want)
done()
