#!/usr/bin/env python3
# serial: programs that get system calls of their own by Syscall User Dispatch, as Wine does for Windows programs. No call of the agent's
# comes to their handler, whether they switch it on before or behind the attach.
from live import *

if not shutil.which("cc"):
    skip("needs cc")
SOURCE = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { DISPATCH = 59, ON = 1, CALLS = 2000 };
static volatile char selector;
static volatile int strays;
static volatile long last;
static unsigned long lo, hi;
static void stray(int sig, siginfo_t *info, void *context) { selector = 0; strays++; last = info->si_syscall; }
__attribute__((noinline)) int work(const char *text) { __asm__ volatile(""); return *text; }
static long raw_getppid(void)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(SYS_getppid) : "rcx", "r11", "memory");
	return r;
}
/* `own`: system calls of the C library's code pass */
static int switch_on(const char *how)
{
	return !strcmp(how, "own") ? prctl(DISPATCH, ON, lo, hi - lo, &selector) : prctl(DISPATCH, ON, 0, 0, &selector);
}
int main(int argc, char **argv)
{
	struct sigaction a = { .sa_sigaction = stray, .sa_flags = SA_SIGINFO };
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "libc.so") && strstr(line, "r-xp"))
			sscanf(line, "%lx-%lx", &lo, &hi);
	fclose(f);
	sigaction(SIGSYS, &a, NULL);
	if (!strcmp(argv[1], "before") && switch_on(argv[2]))
		return 1;
	selector = !strcmp(argv[2], "own");
	(void)!write(1, "ready\n", 6);
	selector = 0;
	(void)!read(0, line, 1);
	if (!strcmp(argv[1], "behind") && switch_on(argv[2]))
		return 1;
	for (int i = 0; i < CALLS; i++) {
		selector = 1;
		work("some text");
		selector = 0;
		if (!strcmp(argv[2], "own")) /* it is never off, but for this code */
			selector = 1;
		if (i % 100 == 99)
			usleep(1000);
	}
	selector = 0;
	int counted = strays;
	selector = 1;
	raw_getppid(); /* not the C library's code, whose calls may pass */
	selector = 0;
	printf("%d strays, %s\n", counted, strays == counted + 1 && last == SYS_getppid ? "still on" : "off");
	fflush(stdout);
	(void)!read(0, line, 1);
	return 7;
}
"""
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-o", PROGRAM, "-"], input=SOURCE.encode(), check=True)
if finish(start("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")).rc:
    skip("no in-process engine")


def untraced(way, how):
    r = subprocess.run([PROGRAM, way, how], input=b"xx", stdout=subprocess.PIPE)
    return r.returncode, r.stdout


if untraced("before", "all") != (7, b"ready\n0 strays, still on\n"):
    skip("this kernel has no Syscall User Dispatch")
for how in "all", "own":
    for way in "before", "behind":
        t = subprocess.Popen([PROGRAM, way, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(t.stdout.readline() == b"ready\n", way, how, "begins")
        d = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-p", str(t.pid), "-n",
                              'BEGIN { printf("begun\\n"); } pid$target:a.out:work:entry { @n[execname, copyinstr(arg0)] = count(); @t = max(timestamp); '
                              '@u[ustack(3)] = count(); this->n++; } pid$target:a.out:work:entry /++n == 2000/ { exit(0); }'],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun = d.stdout.readline()
        check(begun == "begun\n", way, how, "descry begins", begun)
        t.stdin.write(b"x")
        t.stdin.flush()
        out, said = d.communicate()
        check(d.returncode == 0 and re.search(r"\n  program +some text +2000\n", out), way, how, "calls", d.returncode, out, said)
        check(t.stdout.readline() == b"0 strays, still on\n", way, how, "strays")
        left = [line for line in open("/proc/%d/maps" % t.pid) if "/memfd:descry" in line]
        check(not left, way, how, "mappings stay", left)
        t.stdin.close()
        check(t.wait() == 7, way, how, "ends as alone", t.returncode)
done()
