#!/usr/bin/env python3
# A file whose code is mapped twice, by dlmopen(3) or by the program itself as V8 does: the in-process engine says that it sees the first copy only.
# serial
from live import *

lib, exe = TMP + "/libtwice.so", TMP + "/twice"
open(lib + ".c", "w").write("int counted(int n) { return n * 3; }\n")
open(exe + ".c", "w").write(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void finished(void) { __asm__ volatile(""); }
int main(int argc, char **argv)
{
	void *first = dlopen(argv[1], RTLD_NOW), *second = argc > 3 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;
	int (*a)(int) = dlsym(first, "counted"), (*b)(int) = second ? dlsym(second, "counted") : NULL;
	int n = 0;

	for (int i = 0; i < 10; i++)
		n += a(i);
	for (int i = 0; b && i < 100; i++)
		n += b(i);
	printf("%d\n", n);
	fflush(stdout);
	finished();
	while (access(argv[2], F_OK)) /* until descry has ended */
		usleep(10000);
	return 0;
}
""")
subprocess.run(["cc", "-shared", "-fPIC", "-o", lib, lib + ".c"], check=True)
subprocess.run(["cc", "-o", exe, exe + ".c"], check=True)
D = "pid$target:%s:counted:entry { @ = count(); } pid$target:a.out:finished:entry { exit(0); }" % lib
for engine in engines_here():
    for twice in (True, False):
        end = "%s/end-%s-%d" % (TMP, engine, twice)
        p = start("-q", "-x", "engine=" + engine, "-n", D, c="%s %s %s%s" % (exe, lib, end, " twice" if twice else ""))
        p[1].wait(120)
        open(end, "w").close()
        r = finish(p)
        seen = 110 if twice and engine == "kernel" else 10
        check(r.rc == 0 and re.search(r"^ +%d$" % seen, r.out, re.M), engine, "%d calls" % seen, r)
        said = "has mapped code of %s twice" % lib in r.err and "with 1 probed place," in r.err
        check(said == (twice and engine == "inproc"), engine, "the loss is said, and said only then", r)
done()
