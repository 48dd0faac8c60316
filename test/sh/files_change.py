#!/usr/bin/env python3
# Files that are cut short while descry reads them in a mapping: no SIGBUS, a message that names the file. A library preloaded into descry
# cuts the file named by $VICTIM right after it was mapped.
from live import *

SHIM = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *map(void *at, size_t n, int prot, int flags, int fd, long offset)
{
	void *p = (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
	const char *victim = getenv("VICTIM");
	struct stat a, b;
	if (victim && fd >= 0 && !fstat(fd, &a) && !stat(victim, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size &&
	    truncate(victim, 0)) abort();
	return p;
}
void *mmap(void *at, size_t n, int prot, int flags, int fd, long offset) { return map(at, n, prot, flags, fd, offset); }
void *mmap64(void *at, size_t n, int prot, int flags, int fd, long offset) { return map(at, n, prot, flags, fd, offset); }
"""
PROGRAM = r"""
#include <time.h>
__attribute__((noinline)) static void spin(volatile long *s) { for (int i = 0; i < 20000; i++) *s += i; }
int main(void) { volatile long s = 0; for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) { spin(&s); s++; } return 0; }
"""
subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", TMP + "/shim.so", "-"], input=SHIM.encode(), check=True)
NAMED = "changed while it was read"


def cut(victim, *args, **more):
    env = dict(os.environ, LD_PRELOAD=TMP + "/shim.so", VICTIM=victim, ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")
    r = descry(*args, env=env, **more)
    check(os.path.getsize(victim) == 0, "it was mapped, and cut", r)
    return r


# The input: no other error may be reported.
data = TMP + "/perf.data"
with open(data, "wb") as f:
    f.write(b"PERFILE2" + (104).to_bytes(8, "little") + bytes(100000))
r = cut(data, "flame", data, rc=1)
check(r.rc == 1 and data in r.err and NAMED in r.err and not r.out, "perf.data", r)
check(r.err.count(NAMED) == 1, "said once", r)

# A debug file: the run continues. Lines are missing, and this is counted.
subprocess.run(["cc", "-O1", "-g", "-fno-optimize-sibling-calls", "-x", "c", "-o", TMP + "/spins", "-"], input=PROGRAM.encode(), check=True)
subprocess.run("objcopy --only-keep-debug spins spins.debug && objcopy --strip-debug --add-gnu-debuglink=spins.debug spins", shell=True, cwd=TMP, check=True)
whole = descry("profile", "--lines", "--folded", "-F", "499", c=TMP + "/spins")
if not re.search(r"spin:-?[^;]*:2\b|spin:\S*:\d", whole.out):
    skip("no lines of a program with a debug file here: " + whole.err.strip().replace("\n", "; "))
debug = TMP + "/spins.debug"
r = cut(debug, "profile", "--lines", "--folded", "-F", "499", "-x", "droptags", c=TMP + "/spins")
check(r.rc == 0 and ";main;spin " in r.out, "a debug file: functions have names by the program's own symbols", r)
check(r.err.count("spins.debug: the file was " + NAMED) == 1, "it is named", r)
check(re.search(r"\[DTRACEDROP_CHANGED\] \d+ name drop", r.err), "and counted", r)
done()
