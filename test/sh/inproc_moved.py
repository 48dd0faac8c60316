#!/usr/bin/env python3
# A program that moves its text to memory without a file, as those do that want huge pages for it: the in-process engine probes it
# there, the kernel engine says that it cannot. When the program moves the text from its file while it is traced, the loss is said.
# serial
from live import *

exe = TMP + "/moving"
open(exe + ".c", "w").write(r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char __executable_start[], __start_work_text[], __stop_work_text[];
/* a section of its own, so that main() is not moved */
#define WORK __attribute__((noinline, section("work_text"), aligned(64)))
WORK int counted(int n) { __asm__ volatile("nop; nop; nop; nop"); return n * 3; }
WORK int also(int n) { __asm__ volatile("nop; nop; nop; nop"); return counted(n) + 1; }
__attribute__((section("work_text"), aligned(4096))) int first(void) { return 1; }
static int move(int from_file)
{
	char *at = (char *)((unsigned long)__start_work_text & ~4095ul);
	size_t n = (__stop_work_text - at + 4095) & ~4095ul;
	char *to = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (from_file) {
		int fd = open("/proc/self/exe", O_RDONLY);

		if (pread(fd, to, n, at - __executable_start) != (ssize_t)n)
			return 1;
		close(fd);
	} else {
		memcpy(to, at, n);
	}
	return mprotect(to, n, PROT_READ | PROT_EXEC) || mremap(to, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED;
}
__attribute__((noinline, aligned(64))) void finished(void) { __asm__ volatile("nop; nop; nop; nop; nop"); }
int main(void)
{
	char line[64];
	int sum = 0;

	while (fgets(line, sizeof(line), stdin)) {
		if (*line == 'm' || *line == 'f')
			printf("%d\n", move(*line == 'f'));
		if (*line == 'e')
			finished(), puts("0");
		for (int i = 0; *line == 'w' && i < 100; i++)
			sum += also(i);
		if (*line == 'w')
			printf("%d\n", sum);
		fflush(stdout);
	}
	return 0;
}
""")
subprocess.run(["cc", "-O1", "-o", exe, exe + ".c"], check=True)
SUM = 100 + 3 * 99 * 100 // 2


class Program:
    def __init__(self):
        self.p = subprocess.Popen([exe], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.sum = 0

    def do(self, what):
        self.p.stdin.write(what + "\n")
        self.p.stdin.flush()
        got = int(self.p.stdout.readline())
        if what == "w":
            self.sum += SUM
        check(got == (self.sum if what == "w" else 0), what, got)

    def end(self):
        self.p.stdin.close()
        check(self.p.wait(60) == 0, "the program's exit", self.p.returncode)


D = ("-q", "-n", "pid$target:a.out:counted:entry, pid$target:a.out:also:entry { @[probefunc, ustack(1)] = count(); } pid$target:a.out:finished:entry { exit(0); }")


def trace(engine, before, during):
    t = Program()
    for what in before:
        t.do(what)
    d = tracing("-x", "engine=" + engine, *D, "-p", str(t.p.pid))
    for what in during:
        t.do(what)
    t.do("e")
    r = finish(d)
    t.do("w")
    t.end()
    return r


def counts(r):
    return sorted(re.findall(r"moving`(\w+)(?:\+0x[0-9a-f]+)?\n +(\d+)$", r.out, re.M))


for engine in engines_here():
    r = trace(engine, "m", "w")
    check(r.rc == 0, engine, r)
    if engine == "inproc":
        check(counts(r) == [("also", "100"), ("counted", "100")], "in moved text, with names", r)
    else:
        check(counts(r) == [] and "has moved code of %s to other memory" % exe in r.err and "2 place" in r.err, "the kernel cannot, and it is said", r)
    r = trace(engine, "", "w")
    check(counts(r) == [("also", "100"), ("counted", "100")] and "moved" not in r.err, engine, "not moved", r)
# descry's patches move with the text
r = trace("inproc", "", "wmw")
check(r.rc == 0 and counts(r) == [("also", "200"), ("counted", "200")] and "restored" not in r.err, "moved while it is traced", r)
# they do not when the text comes from the file
r = trace("inproc", "", "wfw")
check(r.rc == 0 and counts(r) == [("also", "100"), ("counted", "100")], "moved from the file while it is traced", r)
check(re.search(r"has restored its code in 2 probed places of .*moving \(\w+:\w+, for instance\): they do not fire any more", r.err), "the loss is said", r)
done()
