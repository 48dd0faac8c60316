# More files than the limit that descry was given: they have names and tables all the same, and what it starts has that limit.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=test/sh exec python3 - <<'END'
from live import *
import resource
import shutil

LIBS = 70
LIMIT = 48
LIB = "__attribute__((noinline)) static void spin(volatile long *s) { for (int i = 0; i < 20000; i++) *s += i; } void work(volatile long *s) { spin(s); *s += 1; }"
MAIN = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void (*work[argc])(volatile long *);
	volatile long s = 0;
	for (int i = 1; i < argc; i++) {
		void *h = dlopen(argv[i], RTLD_NOW);
		if (!h || !(*(void **)&work[i] = dlsym(h, "work"))) return 1;
	}
	for (;;) for (int i = 1; i < argc; i++) work[i](&s);
}
"""
flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-x", "c"]
subprocess.run(["cc", *flags, "-shared", "-fPIC", "-o", TMP + "/lib.so", "-"], input=LIB.encode(), check=True)
subprocess.run(["cc", *flags, "-o", TMP + "/many", "-"], input=MAIN.encode(), check=True)
libs = []
for i in range(LIBS):
    libs.append(TMP + "/lib%02d.so" % i)
    shutil.copy(TMP + "/lib.so", libs[-1])

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if hard < 500:
    skip("the hard limit of open files is %d" % hard)
resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
r = descry("profile", "-F", "1999", "-t", "2", "--folded", "--marks", "-c", " ".join([TMP + "/many"] + libs))
rows = [l.rsplit(" ", 1) for l in r.out.splitlines()]
whole = sum(int(n) for k, n in rows if ";main;work;spin" in k)
known = sum(int(n) for k, n in rows if ";spin" in k or ";work" in k or "[" in k)
check(whole > 100 and whole > 0.95 * known, "whole, and with names", whole, known, r.out[:1500], r.err)

r = descry("-q", "-w", "-n", 'BEGIN { system("ulimit -Sn"); }', "-n", "tick-100ms { exit(0); }", c="sh -c 'ulimit -Sn'")
check(re.findall(r"^\d+$", r.out, re.M) == [str(LIMIT)] * 2, "what it starts", r.out, r.err)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
done()
END
