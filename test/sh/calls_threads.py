#!/usr/bin/env python3
# `descry calls` forgets threads that ended within calls: their number does not make it grow.
# serial
import atexit
import os
import re
import shutil
import subprocess
import tempfile

from checks import *

HALF, DEPTH, ROOM = 1800, 200, 100000  # KB
if not shutil.which("cc"):
    skip("no C compiler here")
TMP = tempfile.mkdtemp(prefix="descry-threads-")
atexit.register(shutil.rmtree, TMP, True)
SOURCE = """
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noipa)) int nested(int n) { if (!n) syscall(SYS_exit, 0); return nested(n - 1) + 1; }
static void *run(void *arg) { return (void *)(long)nested(%d); }
int main(void)
{
	for (int half = 0; half < 3; half++) {
		puts("ready");
		fflush(stdout);
		if (getchar() != 10)
			return 1;
		for (int i = 0; half < 2 && i < %d; i++) {
			pthread_t t;
			if (pthread_create(&t, NULL, run, NULL) || pthread_join(t, NULL))
				return 1;
			usleep(3000);
		}
	}
}
""" % (DEPTH, HALF)
source, program = os.path.join(TMP, "t.c"), os.path.join(TMP, "t")
with open(source, "w") as f:
    f.write(SOURCE)
check(subprocess.run(["cc", "-O1", "-fno-optimize-sibling-calls", "-pthread", "-o", program, source]).returncode == 0, "the program is not built")
p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
check(p.stdout.readline() == b"ready\n", "the program does not begin")
t = subprocess.Popen([os.environ["DESCRY"], "calls", "-L", "-x", "nested", "--json", "-w", "8", "-X", "bufsize=16m", "-p", str(p.pid), "-o", os.path.join(TMP, "out")],
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def most():
    with open("/proc/%d/status" % t.pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))


sizes = []
for half in range(2):
    p.stdin.write(b"\n")
    p.stdin.flush()
    check(p.stdout.readline() == b"ready\n", "the program ends early")
    sizes.append(most())
check(sizes[1] - sizes[0] < ROOM, "it grows with the number of threads, KB:", sizes)
p.stdin.write(b"\n")
p.stdin.close()
p.wait()
err = t.communicate()[1]
check(t.returncode == 0, "it ends with", t.returncode, err[:500])
done()
