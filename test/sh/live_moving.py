#!/usr/bin/env python3
# An address gets its name from the file that was mapped there when it was recorded: libraries that come and go at one address, files replaced or
# deleted while they are mapped, processes that are gone, and files only another mount namespace has.
# serial
from live import *

HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv)
{
	double each = atof(argv[1]);
	for (int i = 2; i < argc; i++) {
		int drop = argv[i][0] == '-';
		void *h = dlopen(argv[i] + drop, RTLD_NOW);
		int (*work)(int) = h ? dlsym(h, "work") : 0;
		if (!work) { fprintf(stderr, "%s\n", dlerror()); return 1; }
		printf("%p\n", (void *)work);
		if (drop) unlink(argv[i] + 1);
		for (double end = now() + each; now() < end;) work(20000);
		dlclose(h);
	}
	fflush(stdout);
	return 0;
}
"""
LIB = "static volatile int s; __attribute__((noinline)) int NAME_spin(int n) { for (int i = 0; i < n; i++) s += i; return s; }\n" \
      "int work(int n) { s++; NAME_spin(n); s++; return s; }\n"


def library(path, name):
    subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-x", "c", "-o", path, "-"],
                   input=LIB.replace("NAME", name).encode(), check=True)
    return path


exe = TMP + "/host"
subprocess.run(["cc", "-O2", "-x", "c", "-o", exe, "-", "-ldl"], input=HOST.encode(), check=True)
a, b, c = (library("%s/lib%s.so" % (TMP, n), n) for n in ("red", "green", "blue"))


def names(out, of=("red", "green", "blue")):
    return {n for n in of if "lib%s.so`%s_spin" % (n, n) in out}


# Three libraries, one after the other at one address. In actions, each record has its time.
EVENTS = "profile-199 /pid == $target/ { ustack(); }"
r = descry("-q", "-n", EVENTS, c=" ".join([exe, "0.5", a, b, c]))
at = set(re.findall(r"^0x\w+$", r.out, re.M))
if len(at) != 1:
    print("libraries lie at different addresses here:", at)
check(names(r.out) == {"red", "green", "blue"}, "events of libraries at one address", names(r.out), r.out[:900])
order = [m for m in re.findall(r"lib(\w+)\.so`\w+_spin", r.out)]
check(order == sorted(order, key=["red", "green", "blue"].index), "each when it was there", order)
wrong = re.findall(r"lib(\w+)\.so`(?!\1_|work)\w+", r.out)
check(not wrong, "no name of another library", wrong[:5])

# As keys: equal addresses are one key, with the name of the last mapping there.
r = descry("-q", "-n", "profile-199 /pid == $target/ { @[ustack()] = count(); }", c=" ".join([exe, "0.5", a, b, c]))
check(len(names(r.out)) >= 1, "keys name one of those that were there", r.out[:900])

# Printed by printa() after an exec(): its record is younger than the keys.
EXECS = "#include <time.h>\n#include <unistd.h>\nstatic volatile int s;\n" \
        "__attribute__((noinline)) int before_exec(int n) { for (int i = 0; i < n; i++) s += i; return s; }\n" \
        "int main(int argc, char **argv) { for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) { before_exec(20000); s++; }\n" \
        "return execv(argv[1], argv + 1); }\n"
subprocess.run(["cc", "-O2", "-x", "c", "-o", TMP + "/execs", "-"], input=EXECS.encode(), check=True)
for what, last in (("printa()", "printa(@); exit(0);"), ("at the end", "exit(0);")):
    r = descry("-q", "-n", "profile-199 /pid == $target/ { @[ustack()] = count(); } tick-900ms { %s }" % last,
               c="%s/execs %s 0.9 %s" % (TMP, exe, a))
    check("execs`before_exec" in r.out, what, "before an exec()", r.out[:900])

# Deleted when mapped, and the process gone when its stacks are printed.
gone = library(TMP + "/libgone.so", "gone")
r = descry("-q", "-n", "profile-199 /pid == $target/ { @[ustack()] = count(); }", c=" ".join([exe, "0.7", "-" + gone]))
check("libgone.so`gone_spin" in r.out and "libgone.so`work" in r.out and "host`main" in r.out, "a deleted library", r.out[:900])

# A library that another mount namespace has in place of this one.
os.mkdir(TMP + "/mnt")
os.mkdir(TMP + "/inner")
library(TMP + "/mnt/libns.so", "outside")
library(TMP + "/inner/libns.so", "inside")
cmd = "exec unshare -m sh -c 'mount --bind %s/inner %s/mnt && exec %s 9 %s/mnt/libns.so'" % (TMP, TMP, exe, TMP)
p = subprocess.Popen(cmd, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
while p.poll() is None and open("/proc/%d/comm" % p.pid).read() != "host\n":
    time.sleep(0.01)
r = descry("-q", "-n", 'profile-199 /execname == "host"/ { @[ustack()] = count(); n++; } tick-100ms /n > 50/ { exit(0); }')
if p.poll() is not None:
    print("no mount namespace here:", p.stderr.read())
else:
    p.kill()
    check("libns.so`inside_spin" in r.out and "outside" not in r.out, "another mount namespace", r.out[:900])

done()
