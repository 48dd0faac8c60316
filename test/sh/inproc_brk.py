#!/usr/bin/env python3
# The memory behind a program's heap stays free for brk(2), also where an island with the stubs of many functions does not fit before a
# program that is linked to 0x400000 and whose heap begins right behind it.
from live import *

if not shutil.which("cc") or not shutil.which("setarch"):
    skip("needs cc and setarch")
FUNCTIONS, STEPS = 16000, 600
SOURCE = r"""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char line[10];
	int n = 0;
	(void)!write(1, "ready\n", 6);
	(void)!read(0, line, 1);
	f1(1);
	while (n < %d && sbrk(1 << 20) != (void *)-1)
		n++;
	printf("%%d\n", n);
	return 7;
}
""" % STEPS
functions = "".join('__attribute__((noinline)) int f%d(int n) { __asm__ volatile(""); return n * %d + 1; }\n' % (i, i) for i in range(1, FUNCTIONS + 1))
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-no-pie", "-o", PROGRAM, "-"], input=(functions + SOURCE).encode(), check=True)


def steps(traced):
    t = subprocess.Popen(["setarch", "-R", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(t.stdout.readline() == b"ready\n", "the program begins")
    d = None
    if traced:
        d = start("-q", "-x", "engine=inproc", "-p", str(t.pid), "-n", 'BEGIN { printf("begun\\n"); } pid$target:a.out:f[0-9]*:entry { @ = count(); }')
        begun = d[1].stdout.readline()
        if not begun:
            skip("no in-process engine: " + d[1].stderr.read())
    out = t.communicate(b"x")[0]
    r = d and finish(d)
    return t.returncode, out.strip(), r


if steps(False)[:2] != (7, b"%d" % STEPS):
    skip("brk(2) does not get as much memory here")
status, out, r = steps(True)
check((status, out) == (7, b"%d" % STEPS), status, out, r)
check(re.search(r"^ +1$", r.out, re.M), "the function's firing", r)
done()
