#!/usr/bin/env python3
# System calls from inside the process: the patched process prints the same as the kernel engine for the same program
# restricted to the process, to the byte. The program's own output is unchanged.
# serial
from live import *

CALLS = os.path.join(BUILD, "test", "tracee_syscalls")
# The kernel sees the dynamic linker too: both count from main() on.
START = "pid$target:a.out:main:entry { on = 1; } "
HERE = "/on && pid == $target/"
programs = [
    ("ids 500", "syscall::getppid:entry %s { @ = count(); }"),
    ("ids 500", "syscall::getppid:return %s { @[probefunc, errno, arg0 == ppid, arg1 == arg0] = count(); }"),
    ("ids 3", "syscall::getppid:entry %s { self->in = 1; } syscall::getppid:return /self->in/ { printf(\"%%s %%d %%d\\n\", probefunc, arg0 == ppid, errno); self->in = 0; }"),
    ("files 30", "syscall::openat:entry %s { printf(\"%%s %%x %%s %%s %%s %%s\\n\", copyinstr(arg1), arg2, probeprov, probemod, probefunc, probename); }"),
    ("files 30", "syscall:::return %s { @[probefunc, arg0 < 0 ? arg0 : 0, errno] = count(); }"),
    ("files 30", "syscall::openat:entry %s { self->path = copyinstr(arg1); } syscall::openat:return /self->path != NULL && errno/ { printf(\"%%s: %%d %%d\\n\", self->path, errno, (int)arg1); self->path = 0; }"),
    ("files 30", "syscall::write:entry %s { @[arg2] = count(); @s[copyinstr(arg1, arg2)] = count(); } ERROR { @e[arg4, arg5 == 16] = count(); }"),
    ("files 12", "syscall::lseek:entry,syscall::lseek:return %s { printf(\"%%s %%d %%d\\n\", probename, arg0, arg1); }"),
    ("six 9", "syscall::mmap:entry %s { printf(\"%%d %%d %%d %%x %%d %%d\\n\", arg0, arg1, arg2, arg3, (int)arg4, arg5); } syscall::mmap:return /on && pid == $target/ { printf(\"%%d\\n\", errno); }"),
    # (how often they wait for one another, and whose stack is freed, differs from run to run)
    ("threads 100", "syscall::gettid:,syscall::clone3:,syscall::rseq:,syscall::set_robust_list:,syscall::write:,syscall::exit: %s { @[probefunc, probename, errno != 0] = count(); }"),
    ("threads 50", "syscall::gettid:entry %s { self->n++; } syscall::gettid:return /self->n && arg0 == tid/ { @[self->n] = count(); }"),
    ("children 5", "syscall::getppid:,syscall::wait4:,syscall::clone:entry,syscall::vfork:entry,syscall::execve:,syscall::exit:,syscall::exit_group:,syscall::rt_sigaction:,syscall::setpgid: %s { @[probefunc, probename] = count(); }"),
    ("signals 10", "syscall::getuid:,syscall::getppid:,syscall::setitimer:,syscall::nanosleep:entry %s { @[probefunc, probename] = count(); }"),
    ("ids 20", "syscall::getppid:entry %s { @[ustack(3)] = count(); }"),
    ("ids 20", "syscall::getppid:entry,syscall::getppid:return %s { @[usym(ucaller)] = count(); @f[umod(uregs[R_RIP])] = count(); }"),
]
for args, d in programs:
    d = START + d % HERE
    want = sh("%s %s" % (CALLS, args)).stdout
    out = {}
    for engine in "kernel", "inproc":
        for _ in range(9):
            r = descry("-q", "-x", "engine=" + engine, "-n", d, c="%s %s" % (CALLS, args))
            # tables and names come a moment after the process does, which may have gone by then
            if "too new for its unwind tables" not in r.out and not re.search(r"^ +0x[0-9a-f]+ ", r.out, re.M):
                break
        check(want.strip() in r.out, "the program's own output", r)
        out[engine] = sorted(r.out.splitlines()), re.sub(r"0x[0-9a-f]+", "X", r.err)
    check(out["kernel"] == out["inproc"], "engines differ:", d, "\nkernel: %s\ninproc: %s" % (out["kernel"], out["inproc"]))

# What a thread that waits in the kernel can be asked: a signal handler walks the stack, a cancelled thread ends; the calls of a
# handler do not disturb the call that it interrupts.
every = "syscall:::entry { @[probefunc] = count(); } syscall:::return { @r[probefunc] = count(); }"
for args in "signals 20", "cancel 10", "children 10", "threads 200":
    want = sh("%s %s" % (CALLS, args)).stdout
    r = descry("-q", "-x", "engine=inproc", "-n", every, c="%s %s" % (CALLS, args))
    check(want.strip() in r.out, "the program's own output", args, r)
r = descry("-q", "-x", "engine=inproc", "-n", "syscall::nanosleep:return { @[errno] = count(); }", c=CALLS + " signals 20")
check(re.search(r"^ +4 +20$", r.out, re.M), "interrupted calls keep their number", r)

# A running process: what waits in a call when the probes come returns through them, and on when they are gone.
p = subprocess.Popen([CALLS, "signals", "3000"], stdout=subprocess.PIPE, text=True)
for _ in range(5):
    r = descry("-q", "-x", "engine=inproc", "-p", str(p.pid), "-n", "syscall:::entry { @[probefunc] = count(); } syscall::nanosleep:entry { slept = 1; } "
               "syscall::setitimer:entry { set = 1; } tick-50ms /slept && set/ { exit(0); }")
    check("nanosleep" in r.out and "setitimer" in r.out, "calls of a running process", r)
check(p.communicate()[0] == "3000 3000 3000\n" and not p.returncode, "its output")
done()
