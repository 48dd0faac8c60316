#!/usr/bin/env python3
# Objects named by absolute path: as the process sees it, through links, by pattern, in a mount namespace of its own, deleted; and patterns
# for libraries that are loaded later.
# serial
from live import *

with open(TMP + "/lib.c", "w") as f:
    f.write("int work_here(int n) { static volatile int sum; sum += n; return sum; }\n")
with open(TMP + "/main.c", "w") as f:
    f.write(r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int wait = atoi(argv[1]), n = 0;
	int (*work[8])(int);

	for (int late = 0; late < 2; late++) {
		for (int i = 2; i < argc; i++) {
			void *lib = dlopen(argv[i], RTLD_NOW);
			if (!lib || !(work[i] = dlsym(lib, "work_here")))
				return puts(dlerror()), 1;
		}
		if (late || !wait)
			break;
		puts("loaded");
		fflush(stdout);
		getchar();
	}
	for (int k = 0; k < 5; k++)
		for (int i = 2; i < argc; i++)
			n += work[i](k) != 0;
	printf("worked\n");
	return 0;
}
""")
for cmd in "cc -O1 -shared -fPIC -o libpath_one.so lib.c", "cc -O1 -shared -fPIC -o libpath_two.so lib.c", "cc -O1 -o main main.c -ldl", \
        "ln -s libpath_one.so link.so", "mkdir ns", "cp main main+1":
    subprocess.run(cmd, shell=True, cwd=TMP, check=True)
one, two = TMP + "/libpath_one.so", TMP + "/libpath_two.so"


def counted(r):
    return sum(int(n) for n in re.findall(r"(?m)^.*\s(\d+)$", r.out))


# a command; the library is loaded later (kernel engine), named in every way
for name, want in ((one, 5), (TMP + "/link.so", 5), (TMP + "/libpath_*.so", 10), (TMP + "/libpath_tw?.so", 5), ("libpath_*", 10), ("libpath_t*", 5), ("libpath_one", 5)):
    r = descry("-x", "engine=kernel", "-n", "pid$target:%s:work_here:entry { @ = count(); }" % name, c="%s/main 0 %s %s" % (TMP, one, two),
               env={"LD_LIBRARY_PATH": TMP})
    check(counted(r) == want and "is not loaded: its probes fire when" in r.err, name, r)
r = descry("-qn", "pid$target:%s/nosuch*.so::entry { @ = count(); }" % TMP, c=TMP + "/main 0 " + one, rc=1)
check("does not match" in r.err, "no such library", r)
# the program itself, with characters a shell needs too
r = descry("-qn", "pid$target:%s/main+1:main:entry { @ = count(); } pid$target:%s/ma*:main:return { @ = count(); }" % (TMP, TMP), c="'%s/main+1' 0 %s" % (TMP, one))
check(counted(r) == 2, "the program by path", r)
# a path is a module only where a module stands
r = descry("-qn", "BEGIN /1/ { trace(6/2); } tick-1ms /i++ > 1/ { exit(0); }")
check(r.out.strip() == "3", "division and predicates", r)


def trace(proc, desc, engine, want, what):
    s = start("-x", "engine=" + engine, "-n", "pid$target:%s:work_here:entry { @ = count(); }" % desc, "-p", str(proc.pid))
    ready(s, "matched")
    time.sleep(0.5)
    proc.stdin.write(b"\n")
    proc.stdin.flush()
    r = finish(s)
    check(counted(r) == want, "%s, engine %s: %s" % (what, engine, desc), r)
    proc.wait()


def run(cmd):
    p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if p.stdout.readline() != b"loaded\n":
        return None
    return p


for engine in "kernel", "inproc":
    for desc in one, TMP + "/link.so", TMP + "/lib*_one.so":
        trace(run([TMP + "/main", "1", one]), desc, engine, 5, "loaded")
    p = run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none %s/ns && cp %s %s/ns/inside.so && exec %s/main 1 %s/ns/inside.so" % (TMP, one, TMP, TMP, TMP)])
    if not p:
        print("mount namespaces are not permitted: not tested", file=sys.stderr)
        break
    check(not os.path.exists(TMP + "/ns/inside.so"), "the library is in the namespace only")
    trace(p, TMP + "/ns/inside.so", engine, 5, "mount namespace")
    p = run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none %s/ns && cp %s %s/ns/inside.so && exec %s/main 1 %s/ns/inside.so" % (TMP, one, TMP, TMP, TMP)])
    trace(p, TMP + "/ns/in*", engine, 5, "mount namespace, pattern")
    # another file of that name outside is not meant
    shutil.copy(two, TMP + "/ns/inside.so")
    p = run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none %s/ns && cp %s %s/ns/inside.so && exec %s/main 1 %s/ns/inside.so" % (TMP, one, TMP, TMP, TMP)])
    trace(p, TMP + "/ns/inside.so", engine, 5, "mount namespace, hidden file of that name")
    os.unlink(TMP + "/ns/inside.so")
    # a deleted file is reached through map_files
    shutil.copy(one, TMP + "/gone.so")
    p = run([TMP + "/main", "1", TMP + "/gone.so"])
    shutil.copy(one, TMP + "/gone2.so")
    os.rename(TMP + "/gone2.so", TMP + "/gone.so")
    trace(p, TMP + "/gone.so", engine, 5, "replaced")
done()
