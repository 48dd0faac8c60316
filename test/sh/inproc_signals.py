#!/usr/bin/env python3
# raise() and stop() from inside the process: the signal comes when the firing has ended, as in the kernel. So a handler that
# never returns loses no value of the firing, and the next firings run. copyout(), which kernels may refuse, falls back to the
# in-process engine by itself.
# serial
# covers: raise copyout copyoutstr
from live import *

LEAVES = os.path.join(BUILD, "test", "tracee_leaves")
DO = "{ @a = count(); raise(SIGUSR1); self->n++; @b = count(); @m = max(self->n); } "
THEN = "END { printa(\"%@d %@d %@d\\n\", @a, @b, @m); }"
N = 300

for probe in "pid$target:libc.so*:getppid:entry", "pid$target:libc.so*:getppid:return", "syscall::getppid:entry", "syscall::getppid:return":
    for how, want in ("stay", f"handled {N} calls {N} left 0"), ("jump", f"handled {N} calls {N} left {N}"), ("exit", ""):
        n = N if want else 1
        for engine in "kernel", "inproc":
            r = descry("-wq", "-x", "engine=" + engine, "-n", probe + (" /pid == $target/ " if "syscall" in probe else " ") + DO + THEN,
                       c=f"{LEAVES} {how} {N}")
            check(r.rc == 0 and want in r.out and f"{n} {n} {n}\n" in r.out and not r.err, probe, how, engine, r)

# several signals of a firing: the handler that jumps does not lose the other
r = descry("-wqx", "engine=inproc", "-n", "syscall::getppid:entry { raise(SIGUSR1); raise(SIGCHLD); n++; } END { printf(\"%d\\n\", n); }",
           c=f"{LEAVES} jump {N}")
check(f"left {N}" in r.out and f"\n{N}\n" in r.out, "two signals", r)

# stop() inside: the process stops behind the firing, and goes on when it may
p = subprocess.Popen([DESCRY, "-wqx", "engine=inproc", "-c", LEAVES + " stay 20", "-n", "BEGIN { printf(\"%d\\n\", $target); } "
                      "pid$target:libc.so*:getppid:entry /!n++/ { stop(); } pid$target:libc.so*:getppid:return { m++; } "
                      "END { printf(\"%d %d\\n\", n, m); }"], stdout=subprocess.PIPE, text=True)
pid = int(p.stdout.readline())
while not re.search(r"^State:\sT \(stopped", open("/proc/%d/status" % pid).read(), re.M):
    time.sleep(0.01)
os.kill(pid, signal.SIGCONT)
out = p.communicate()[0]
check("calls 20" in out and "\n20 20\n" in out and not p.returncode, "a stopped process goes on", out)

# copyoutstr() of a system call's text: the kernel's engine where the kernel permits it, else the in-process engine
CALLS = "import os; b = b'lower case'; os.write(os.open('/dev/null', os.O_WRONLY), b); print(b.decode(), flush=True)"
COPY = os.path.join(TMP, "copy.py")
with open(COPY, "w") as f:
    f.write(CALLS)
D = "syscall::write:entry /pid == $target && arg2 == 10 && copyinstr(arg1, 11) == \"lower case\"/ { copyout(\"UPPER\", arg1, 5); n++; } END { printf(\"%d\\n\", n); }"
r = descry("-wqn", D, c="python3 " + COPY)
check("UPPER case" in r.out and "\n1\n" in r.out and r.rc == 0, "copyout() with the engine that may", r)
k = finish(start("-wqx", "engine=kernel", "-n", D, c="python3 " + COPY))
if k.rc:
    check("write user memory" in k.err and "-x engine=inproc can" in k.err, "the kernel's engine says what can", k)
    check("write user memory" in r.err and "tracing without the kernel's engine" in r.err and "error" not in r.err, "the change is reported", r)
    # no process to trace from inside: the error has a place and says what to do
    r = descry("-wqn", "syscall::write:entry /pid == 0/ { copyout(\"UPPER\", arg1, 5); }", rc=1)
    check(r.rc == 1 and "-p or -c" in r.err and "^" in r.err, "no process is named", r)
done()
