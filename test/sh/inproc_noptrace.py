#!/usr/bin/env python3
# Where ptrace(2) is forbidden, as in some containers, commands are still traced from inside, with the same results.
# The program does not notice. Whatever is impossible is reported.
# serial
import random
from live import *

NOPTRACE = os.path.join(BUILD, "test", "tracee_noptrace")
EVENTS = os.path.join(BUILD, "test", "tracee_events")
EXECS = os.path.join(BUILD, "test", "tracee_execs")
if subprocess.run([NOPTRACE, "true"]).returncode == 77:
    skip("seccomp filters cannot be installed here")


def without(*argv, env=None):
    r = subprocess.run([NOPTRACE, DESCRY, *argv], capture_output=True, text=True, env=env, timeout=60)
    return Run(["noptrace", *argv], r.returncode, r.stdout, r.stderr, 0)


# the same as with ptrace(2)
for d, c in (
    ("pid$target:libc.so.6:write:entry { @[execname, copyinstr(arg1, 2), arg2] = count(); }", "sh -c 'echo a; echo bb; true'"),
    ("pid$target:tracee_events:main:entry { self->on = 1; } pid$target:libc.so.6:calloc:entry /self->on/ { self->n = arg0; } pid$target:libc.so.6:calloc:return /self->on/ { @[self->n != 0, arg1 != 0] = count(); }",
     EVENTS + " threads 5"),
    ("pid$target:libc.so.6:write:entry { @[umod(ucaller), ustackdepth > 1] = count(); }", "sh -c 'echo a; true'"),
    ("syscall::write:entry,syscall::exit_group:entry /pid == $target/ { @[probefunc] = count(); }", "sh -c 'echo a; true'"),
    ("proc:::create,proc:::lwp-exit,proc:::exit /pid == $target/ { @[probename] = count(); }", EVENTS + " threads 5"),
    ("pid$target:libc.so.6:write:entry { printf(\"%d %s\\n\", arg0, copyinstr(arg1, 3)); }", "sh -c 'echo one; echo two; true'"),
):
    with_it = descry("-q", "-x", "engine=inproc", "-n", d, c=c)
    r = without("-q", "-x", "engine=inproc", "-n", d, "-c", c)
    check(r.rc == 0 and sorted(r.lines()) == sorted(with_it.lines()) and r.lines(), "differs", d, r, with_it)

# the program's own world is as it was
for env in dict(os.environ), dict(os.environ, LD_PRELOAD="/lib/x86_64-linux-gnu/libm.so.6"):
    show = "sh -c 'env | sort; ls /proc/self/fd | wc -l; true'"
    want = subprocess.run(shlex.split(show), capture_output=True, text=True, env=env).stdout
    r = without("-q", "-x", "engine=inproc", "-n", "pid$target:libc.so.6:exit:entry { }", "-c", show, env=env)
    ours = [line for line in r.lines() if not line.startswith("_=")]
    check(ours == [line for line in want.splitlines() if not line.startswith("_=")] and r.rc == 0, "environment, descriptors", r, want)

# scripts; another C library
script = os.path.join(TMP, "script")
with open(script, "w") as f:
    f.write("#! /bin/sh\necho scripted\ntrue\n")
os.chmod(script, 0o755)
r = without("-q", "-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); }", "-c", script)
check("scripted" in r.out and not "executed" in r.err and re.search(r"^ +1$", r.out, re.M), "a script", r)
prog = os.path.join(TMP, "execs-musl")
if shutil.which("musl-gcc") and not sh("musl-gcc -O1 -pthread -o %s test/tracee/execs.c" % prog).returncode:
    r = without("-q", "-x", "engine=inproc", "-n", "pid$target::execs_mark:entry { @ = count(); }", "-c", prog + " end")
    check(re.search(r"^ +1$", r.out, re.M) and r.rc == 0, "musl", r)

# libraries that start threads and programs before the program begins
with open(os.path.join(TMP, "early.c"), "w") as f:
    f.write(r"""
#include <pthread.h>
#include <stdlib.h>
__asm__(".text\n.globl hot\n.type hot,@function\nhot:\n nop\n pause\n pause\n pause\n mov %rdi,%rax\n ret\n.size hot,.-hot\n");
long hot(long);
static void *run(void *arg) { for (;;) hot(1); return arg; }
__attribute__((constructor)) static void begin(void)
{
	pthread_t t;

	if (getenv("EARLY"))
		return;
	setenv("EARLY", "1", 1);
	if (system("env | grep PRELOAD; ls /proc/self/fd | wc -l"))
		abort();
	for (int i = 0; i < 16; i++)
		pthread_create(&t, NULL, run, NULL);
}
""")
with open(os.path.join(TMP, "early_main.c"), "w") as f:
    f.write("#include <stdio.h>\n#include <unistd.h>\nlong hot(long);\nint main(void) { usleep(50000); printf(\"main %ld\\n\", hot(7)); return 0; }\n")
early = os.path.join(TMP, "early")
if check(sh("cd %s && cc -O1 -shared -fPIC -pthread -o libearly.so early.c && cc -O1 -o early early_main.c -L. -learly -Wl,-rpath,%s" % (TMP, TMP)).returncode == 0, "early"):
    want = sh(early).stdout
    for _ in range(5):
        r = without("-q", "-x", "engine=inproc", "-n", "pid$target:libearly.so:hot:entry { @ = count(); }", "-c", early)
        check(r.rc == 0 and r.out.startswith(want) and re.search(r"^ +[1-9]\d{2,}$", r.out, re.M), "threads of constructors", r, want)

# children that are followed
r = without("-q", "-x", "engine=inproc", "-x", "follow", "-n", "proc:::start,proc:::exit /pid != $target/ { @[probename] = count(); }", "-c", EVENTS + " children 3")
check(r.rc == 0 and re.search(r"^ +start +3$", r.out, re.M), "children", r)

# impossible cases are reported
r = without("-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); }", "-c", "sh -c 'echo a; true'")
check(r.rc == 0 and "executed" not in r.err, "no other program", r)
r = without("-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); }", "-c", "/nowhere/at/all")
check(r.rc == 1 and "/nowhere/at/all: No such file" in r.err, "no program", r)
prog = os.path.join(TMP, "execs-static")
if not sh("cc -static -O1 -pthread -o %s test/tracee/execs.c" % prog).returncode:
    r = without("-x", "engine=inproc", "-n", "pid$target::execs_mark:entry { @ = count(); }", "-c", prog + " end")
    check(r.rc == 1 and "no dynamic linker" in r.err and r.err.count("\n") == 1, "a static program", r)
suid = os.path.join(TMP, "suid")
shutil.copy(EXECS, suid)
os.chmod(suid, 0o4755)
r = without("-x", "engine=inproc", "-n", "pid$target::execs_mark:entry { @ = count(); }", "-c", suid + " end")
check(r.rc == 1 and "setuid" in r.err, "setuid", r)
p = subprocess.Popen(["sleep", "60"])
r = without("-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); }", "-p", str(p.pid))
check(r.rc == 1 and "Operation not permitted" in r.err, "a running process", r)
p.kill()
r = without("-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); }", "-c", "sh -c 'echo a; sleep 0.1; exec sh -c \"echo b; sleep 0.5\"'")
check(r.rc == 0 and re.search(r"^ +1$", r.out, re.M) and "executed another program, which is not traced" in r.err, "another program", r)
r = without("-x", "engine=inproc", "-n", "profile-97 { @ = count(); } tick-300ms { exit(0); }", "-c", "sleep 5")
check(r.rc == 0 and "is not sampled" in r.err, "samples", r)

# an end before the program's: it is ended, or continues
r = without("-q", "-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry { @ = count(); } tick-300ms { exit(0); }", "-c", "sh -c 'while :; do echo x; done'")
check(r.rc == 0 and r.secs < 10, "exit()", r.rc, r.err)
random.seed(5)
for i in range(20):
    out = os.path.join(TMP, "out%d" % i)
    t = subprocess.Popen([NOPTRACE, DESCRY, "-q", "-x", "engine=inproc", "-n", "pid$target:libc.so.6:write:entry,pid$target:libc.so.6:write:return { @[probename] = count(); }",
                          "-c", "sh -c 'exec >%s; for i in $(seq 300); do echo $i; done; sleep 0.05; echo end'" % out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.random() * 0.1)
    t.kill()
    t.wait()
    begun = time.monotonic()
    while os.path.exists(out) and not open(out).read().endswith("end\n") and time.monotonic() < begun + 10:
        time.sleep(0.02)
    # not begun, or to its end
    check(not os.path.exists(out) or open(out).read() == "".join("%d\n" % n for n in range(1, 301)) + "end\n", "a killed tracer", open(out).read()[-100:] if os.path.exists(out) else "")

# the kernel's engine holds commands that way, too
r = without("-q", "-x", "engine=kernel", "-n", "pid$target:libc.so.6:write:entry { @[arg2] = count(); }", "-c", "sh -c 'echo a; true'")
check(r.rc == 0 and re.search(r"^ +2 +1$", r.out, re.M), "the kernel's engine", r)
done()
