#!/usr/bin/env python3
# Providers beside pid from inside a process: usdt with its semaphores, plt, vtimestamp. Missing ones are reported.
# serial
import signal
import struct
import time
from live import *

USDT = os.path.join(BUILD, "test", "tracee_usdt")
INSIDE = os.path.join(BUILD, "test", "tracee_inside")
CALLS = os.path.join(BUILD, "test", "tracee_syscalls")
START = "pid$target:a.out:main:entry { on = 1; } "

def both(d, command):
    out = {}
    want = sh(command).stdout.strip()
    for engine in "kernel", "inproc":
        for _ in range(9):
            r = descry("-q", "-x", "engine=" + engine, "-n", d, c=command)
            if "too new for its unwind tables" not in r.out: # they come a moment after the process does
                break
        out[engine] = sorted(r.out.splitlines()), re.sub(r"0x[0-9a-f]+", "X", r.err)
    check(out["kernel"] == out["inproc"], "engines differ:", d, "\nkernel: %s\ninproc: %s" % (out["kernel"], out["inproc"]))
    return want, r

# --- usdt: every form of operand; `guarded` fires only when its semaphore is raised ---
if "built without" in sh(USDT).stdout:
    print("no <sys/sdt.h>: usdt is not tried")
else:
    both("tracee$target:::plain { @[probefunc, probename] = count(); } tracee$target:::values { printf(\"%d %d %d\\n\", arg0, arg2, arg3); }"
         "tracee$target:::request-start { printf(\"start %d\\n\", arg1); } tracee$target:::guarded { printf(\"guarded %d\\n\", arg0); }", USDT + " 5")
    want, r = both("tracee$target:::guarded { @ = count(); }", USDT + " 7")
    check("7" in r.out.split(), "the guarded probe fired each time", r)

# --- semaphores are lowered again: at the end, and when the tracer is killed ---
src = os.path.join(TMP, "sem.c")
with open(src, "w") as f:
    f.write('''#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <stdio.h>
#include <unistd.h>
__extension__ unsigned short sem_tick_semaphore __attribute__((section(".probes")));
int main(void)
{
	printf("%p\\n", (void *)&sem_tick_semaphore);
	fflush(stdout);
	for (;;) {
		if (sem_tick_semaphore) {
			DTRACE_PROBE(sem, tick);
			__asm__ volatile("nopl 0(%rax,%rax,1)"); /* room */
		}
		usleep(1000);
	}
}
''')
prog = os.path.join(TMP, "sem")
if sh("cc -O1 -o %s %s" % (prog, src)).returncode:
    print("no <sys/sdt.h>: semaphores are not tried")
else:
    p = subprocess.Popen([prog], stdout=subprocess.PIPE, text=True)
    at = int(p.stdout.readline(), 16)

    def semaphore():
        with open("/proc/%d/mem" % p.pid, "rb") as mem:
            mem.seek(at)
            return struct.unpack("<H", mem.read(2))[0]

    def lowered():
        end = time.time() + 10
        while semaphore() and time.time() < end:
            time.sleep(0.05)
        return semaphore() == 0

    check(semaphore() == 0, "a semaphore that nobody raised")
    d = "sem$target:::tick { @ = count(); n++; } tick-10ms /n > 20/ { exit(0); }"
    r = descry("-q", "-x", "engine=inproc", "-p", str(p.pid), "-n", d)
    check(int(r.out.split()[0]) > 20, "fires in a running process", r)
    check(lowered(), "lowered when tracing ends")
    t = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-p", str(p.pid), "-n", "sem$target:::tick { @ = count(); }"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.time() + 20
    while not semaphore() and time.time() < end:
        time.sleep(0.01)
    check(semaphore() == 1, "raised while tracing")
    t.send_signal(signal.SIGKILL)
    t.wait()
    check(lowered(), "lowered when the tracer is killed")
    check(p.poll() is None, "the process lives")
    p.kill()
    p.wait()

# --- plt: callers ---
both(START + "plt$target:a.out::entry /on/ { @[probemod, probefunc, probename] = count(); }", CALLS + " ids 30")
both(START + "plt$target:a.out:open*:entry /on/ { printf(\"%s %x\\n\", copyinstr(arg0), arg1); }", CALLS + " files 9")
both("plt$target:a.out:mmap*:entry { printf(\"%d %d %d %x %d %d\\n\", arg0, arg1, arg2, arg3, (int)arg4, arg5); }", CALLS + " six 5")
want, r = both("plt$target:a.out:getppid:entry { @a[probemod] = count(); }", CALLS + " ids 5")
check("6" in r.out.split(), "calls of the main program", r)
r = descry("-q", "-x", "engine=kernel", "-n", "plt$target:a.out:getppid:return { @[arg1 == ppid] = count(); }", c=CALLS + " ids 5")
check(re.search(r"^ +1 +6$", r.out, re.M), "returns, in the kernel engine", r)
r = descry("-x", "engine=inproc", "-n", "plt$target:a.out:getppid:return { @ = count(); }", c=CALLS + " ids 5", rc=1)
check("cannot be enabled in-process: the PLT slot jumps" in r.err, "returns are refused in-process", r)
got = os.path.join(TMP, "got")
with open(got + ".c", "w") as f:
    f.write("#include <unistd.h>\nint main(void) { return getppid() == 0; }\n")
if not sh("cc -O1 -fno-plt -o %s %s.c" % (got, got)).returncode:
    r = descry("-l", "-v", "-n", "plt$target:a.out:getppid:entry", c=got)
    check("-fno-plt" in r.out + r.err, "a caller that goes by the GOT", r)

# --- vtimestamp: the thread's CPU time ---
r = descry("-q", "-x", "engine=inproc", "-n", "pid$target:a.out:do_work:entry { self->v = vtimestamp; self->t = timestamp; } pid$target:a.out:do_work:return /self->v/ "
           "{ printf(\"%d %d\\n\", vtimestamp - self->v, timestamp - self->t); }", c=INSIDE + " work 3000000")
m = re.search(r"^(\d+) (\d+)$", r.out, re.M)
check(m and 0 < int(m.group(1)) <= int(m.group(2)) + 1000000, "busy", r)
r = descry("-q", "-x", "engine=inproc", "-n", "pid$target:libc.so.6:usleep:entry { self->v = vtimestamp; self->t = timestamp; } pid$target:libc.so.6:usleep:return /self->v/ "
           "{ printf(\"%d %d\\n\", vtimestamp - self->v, timestamp - self->t); }", c=INSIDE + " late 10")
m = re.search(r"^(\d+) (\d+)$", r.out, re.M)
check(m and int(m.group(1)) < int(m.group(2)) / 4, "asleep", r)

# --- missing providers ---
for d in "proc:::signal-handle { @ = count(); }", "sched:::on-cpu { @ = count(); }":
    r = descry("-q", "-x", "engine=inproc", "-n", d, c=INSIDE + " work 1", rc=1)
    check("in-process" in r.err and "engine=kernel" in r.err, "says so", d, r)
done()
