#!/usr/bin/env python3
# More files than descry's limit: they have names and tables all the same, and programs started by descry have that
# limit.
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

# Programs that end at once, each a file of its own: they have names, and not a descriptor each.
PROGRAMS = 400
MOST = 300 # 128 files; the engine's maps and links; libraries
ENDS = "#include <unistd.h>\n__attribute__((noinline)) void finish(void) { _exit(0); }\nint main(void) { finish(); return 1; }\n"
subprocess.run(["cc", *flags, "-o", TMP + "/ends", "-"], input=ENDS.encode(), check=True)


def wait_for(out, word, n):
    while out.count(word) < n and t[1].poll() is None:
        out += os.read(t[1].stdout.fileno(), 65536)
    return out


t = start("-q", "-n", 'BEGIN { printf("begun\\n"); } syscall::exit_group:entry /execname == "ends"/ { printf("gone\\n"); @[pid, ustack()] = count(); }')
out = wait_for(b"", b"begun", 1)
for i in range(PROGRAMS):
    os.mkdir(TMP + "/%d" % i)
    shutil.copy(TMP + "/ends", TMP + "/%d/ends" % i)
    subprocess.run([TMP + "/%d/ends" % i], check=True)
    out = wait_for(out, b"gone", i + 1) if i % 50 == 49 else out
most = len(os.listdir("/proc/%d/fd" % t[1].pid))
t[1].send_signal(signal.SIGINT)
r = finish(t)
check(most < MOST, "descriptors", most)
# Programs that ended before they were examined have none. All files are there.
check(r.out.count("ends`") > 0 and "name drop" not in r.err, "none had to go without its name", r)
done()
