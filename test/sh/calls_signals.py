#!/usr/bin/env python3
# timeout: 300
# descry calls shows signals as ltrace does, not with -b: handled, ignored, of a child, fatal; in single-threaded programs, threads and children. With -S
# and -f, library calls of executed programs and system calls are one output, in their order, without the system calls that descry itself makes there.
# ltrace 0.7.3 writes the same lines: --- SIGUSR1 (User defined signal 1) ---
from live import *

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int seen;
static void count(int sig) { seen++; }
static void *thread(void *arg) { raise(SIGUSR2); return NULL; }
int main(int argc, char **argv)
{
	pthread_t t;

	if (!strcmp(argv[1], "calls")) {
		for (int i = 0; i < atoi(argv[2]); i++)
			if (write(3, "x", 1) != 1)
				getppid();
		return 5;
	}
	signal(SIGUSR1, count);
	signal(SIGUSR2, count);
	signal(SIGHUP, SIG_IGN);
	for (int i = 0; i < 7; i++)
		raise(SIGUSR1);
	kill(getpid(), SIGHUP);
	kill(getpid(), SIGWINCH);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	if (!fork()) {
		kill(getpid(), SIGUSR1);
		kill(getpid(), SIGALRM);
	}
	wait(NULL);
	printf("saw %d\n", seen);
	fflush(stdout);
	if (!strcmp(argv[1], "killed"))
		kill(getpid(), SIGTERM);
	if (!strcmp(argv[1], "crash"))
		*(volatile int *)8 = 1;
	if (!strcmp(argv[1], "abort"))
		raise(SIGKILL);
	return 3;
}
"""
NAME = re.compile(r"^(?:\[pid (\d+)\] )?--- (SIG\w+) \((.*)\) ---$", re.M)

if not shutil.which("cc"):
    skip("no C compiler here")
if not {"inproc", "kernel"} <= set(engines_here()):
    skip("signals are the kernel's, and it may not be asked here")
os.chdir(TMP)
with open("t.c", "w") as f:
    f.write(PROGRAM)
check(sh("cc -O1 -pthread -o t t.c").returncode == 0, "built")


def signals(*args, rc):
    r = descry("calls", *args, rc=rc)
    check("saw 8" in r.out, args, r)
    return NAME.findall(r.err), r


OWN = ["SIGUSR1"] * 7 + ["SIGHUP", "SIGWINCH", "SIGUSR2", "SIGCHLD"]
for flags in ["-L"], ["-e", "signal"], ["-X", "engine=kernel", "-L"]:
    got, r = signals(*flags, "./t", "plain", rc=3)
    check([name for tid, name, text in got] == OWN, flags, got, r)
    check(got[0] == ("", "SIGUSR1", "User defined signal 1") and got[-1] == ("", "SIGCHLD", "Child exited"), flags, r)
    check(got[9][0], "a thread's signal has its number", flags, r)

# children, too: what they take, and what ends them
got, r = signals("-f", "-e", "fork", "./t", "plain", rc=3)
names = [name for tid, name, text in got]
check(sorted(names) == sorted(OWN + ["SIGUSR1", "SIGALRM"]), got, r)
child = {tid for tid, name, text in got if name == "SIGALRM"}
check(len(child) == 1 and [name for tid, name, text in got if tid in child] == ["SIGUSR1", "SIGALRM"], got, r)

# -L: the kernel sees all programs, so no message; with -x, library calls stay inside
r = descry("calls", "-L", "-f", "sh", "-c", "./t plain; exit 2", rc=2)
check(len(NAME.findall(r.err)) >= len(OWN) and "does not trace" not in r.err, r)
got, r = signals("-L", "-x", "main", "./t", "plain", rc=3)
check([name for tid, name, text in got] == OWN and "main(0x2" in r.err, got, r)

# the signal that ends the command; SIGKILL has only that line, as in ltrace
for how, number, want in ("killed", 15, ["SIGTERM"]), ("crash", 11, ["SIGSEGV"]), ("abort", 9, []):
    got, r = signals("-L", "./t", how, rc=128 + number)
    check([name for tid, name, text in got] == OWN + want, how, got, r)
    check(r.err.rstrip().endswith("+++ killed by SIG%s +++" % signal.Signals(number).name[3:]), how, r)

# not with -b, and not where lines are held or counted
for flags in ["-b", "-L"], ["-b", "-f"], ["-c"], ["--json"], ["--min-time", "1000000"]:
    got, r = signals(*flags, "./t", "plain", rc=3)
    check(not got, flags, r)
r = descry("calls", "-b", "--show-d", "./t", "plain", rc=0)
check("proc:::signal" not in r.out, r)
r = descry("calls", "--show-d", "./t", "plain", rc=0)
check("proc:::signal-handle" in r.out, r)

# -S: library calls from inside, each with its system call in it; of an executed program, too, and none of descry's own
for flags in [], ["-f"]:
    r = descry("calls", "-S", *flags, "-o", "out", "sh", "-c", "exec ./t calls 2000 3>/dev/null", rc=5)
    with open("out") as f:
        lines = [re.sub(r"^\d+ ", "", line) for line in f.read().splitlines()]
    inner = [line.split("(")[0] for line in lines if "write" in line and "rt_sig" not in line]
    inner = [re.sub(r" +", " ", line) for line in inner]
    check(inner == ["write", "SYS_write", "<... write resumed> ) = 1"] * 2000, flags, inner[:9], len(inner), r)
    own = [line for line in lines if re.search("SYS_(futex|gettid|process_vm|ptrace|recvmsg|memfd)", line)]
    check(not own, "descry's own", flags, own[:5])
    check(sum("SYS_execve(" in line for line in lines) == 1, flags, [line for line in lines if "exec" in line])
got = {}
r = descry("calls", "-c", "-S", "-f", "--json", "sh", "-c", "./t calls 300 3>/dev/null; exit 4", rc=4)
for line in r.err.splitlines():
    if line.startswith("{"):
        got[json.loads(line)["function"]] = json.loads(line)["calls"]
check(got.get("write") == 300 and got.get("SYS_write") == 300 and got.get("atoi", got.get("strtol", 0)) >= 1, got, r)

done()
