#!/usr/bin/env python3
# profile-N from inside: threads fire by the CPU time they get, where they are, with their stacks; those that sleep do not; the
# program is as it was, also when the tracer is killed.
# serial
import random

from live import *

TORTURE = os.path.join(BUILD, "test", "tracee_torture")
C = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long step(unsigned long x, long n) { for (long i = 0; i < n; i++) x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ul + i; return x; }
__attribute__((noinline)) unsigned long warm(unsigned long x) { x = step(x, 100000); return x + 1; }
__attribute__((noinline)) unsigned long hot(unsigned long x) { x = step(x, 300000); return x + 2; }
static void *sleeper(void *arg) { for (;;) pause(); return arg; }
static unsigned long rounds, sums[2];
static void *worker(void *arg) { unsigned long *x = arg; for (unsigned long i = 0; i < rounds; i++) { *x = hot(*x); *x = warm(*x); } return 0; }
int main(int argc, char **argv)
{
	pthread_t s, t;
	rounds = strtoul(argv[1], 0, 10);
	pthread_create(&s, 0, sleeper, 0);
	pthread_create(&t, 0, worker, &sums[0]);
	worker(&sums[1]);
	pthread_join(t, 0);
	printf("%lx\\n", sums[0] ^ sums[1]);
	return 0;
}
"""
r = descry("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")
if r.rc:
    skip("no in-process engine: " + r.err.strip())
if not shutil.which("cc"):
    skip("no C compiler")
os.chdir(TMP)
exe = TMP + "/busy"
subprocess.run(["cc", "-g", "-O1", "-fomit-frame-pointer", "-fno-ipa-cp", "-fno-optimize-sibling-calls", "-pthread", "-x", "c", "-o", exe, "-"], input=C.replace("\\\\n", "\\n").encode(), check=True)
command = exe + " 1500"
want = sh(command).stdout


def inside(d, *more, **kw):
    return descry("-x", "engine=inproc", *more, "-n", d, **kw)


r = inside("profile-499 { @where[ufunc(arg1)] = count(); @who[pid == $target ? \"own\" : \"else\", arg0 ? \"kernel\" : \"user\", tid == pid ? \"main\" : \"other\"] = count(); "
           "@stack[ustack()] = count(); @n = count(); }", "-q", c=command)
check(want and want in r.out, "its output", r)
where = {k[0]: n for k, n in r.table() if len(k) == 1}
total = sum(n for k, n in where.items() if "`" in k)
check(where.get("busy`step", 0) > 0.9 * total and total > 100, "where it is", where, r)
who = {k: n for k, n in r.table() if len(k) == 3}
check(set(k[:2] for k in who) == {("own", "user")}, "its own threads, in their own code", who)
near(who.get(("own", "user", "main"), 0), total / 2, 0.5, "both threads that compute")
stacks = {"hot": 0, "warm": 0}
for caller, n in re.findall(r"busy`step\+0x\w+\n +busy`(hot|warm)\+0x\w+\n +busy`worker\+0x\w+\n(?: +\S+\n)+ +(\d+)\n", r.out):
    stacks[caller] += int(n)
check(sum(stacks.values()) > 0.9 * total, "stacks to the end", stacks, total, r)
near(stacks["hot"], 0.75 * sum(stacks.values()), 0.2, "three quarters in hot()")

r = inside("profile-997 { @ = count(); } profile-101 { @slow = count(); } pid$target:a.out:hot:entry { @calls = count(); }", "-x", "report", c=command)
n = [int(x) for x in re.findall(r"^ +(\d+)$", r.out, re.M)]
check(len(n) == 3 and sorted(n)[2] == 3000 and n[0] > n[1] > 10, "beside other probes", n, r)
check("sampled" in r.out + r.err, "how is said", r)
r = descry("-x", "engine=inproc", "-n", "cpc:::cpu_cycles-all-100000 { @ = count(); }", c="true", rc=1)
check("in-process" in r.err or "no" in r.err, "counters of the processor are not", r)

# sampled at the highest rate by tracers, some of which are killed
t = subprocess.Popen([TORTURE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
t.stdout.readline()
samples = 0
for i in range(12):
    s = start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", "profile-4999 { @ = count(); @u[ustack(5)] = count(); } tick-150ms { exit(0); }")
    if i % 2:
        time.sleep(random.random() * 0.3)
        s[1].kill()
        s[1].communicate()
        continue
    r = finish(s, 30)
    check(r.rc == 0, "attached", r)
    samples += sum(int(x) for x in re.findall(r"^ +(\d+)$", r.out, re.M))
check(samples > 50, "samples", samples)
limit = time.monotonic() + 30
left = lambda: [line for line in open("/proc/%d/maps" % t.pid) if "/memfd:descry" in line]
while left() and time.monotonic() < limit:
    time.sleep(0.05)
check(not left(), "left in it", left())
t.send_signal(signal.SIGTERM)
out, err = t.communicate(timeout=30)
check(t.returncode == 0 and b" errors 0 " in out and not err, "the program was harmed", t.returncode, out, err)
# A thread that is stopped while a fault of its own instruction is on the way: the handler sees the fault at that instruction.
faults = os.path.join(BUILD, "test", "tracee_faults")
r = descry("-q", "-x", "engine=inproc", "-n", "profile-997 /pid == $target/ { @ = count(); }", c=faults + " 2000000")
check(r.rc == 0 and "2000000 faults" in r.out and int(r.out.split()[-1]) > 50, "faults", r)
done()
