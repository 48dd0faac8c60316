#!/usr/bin/env python3
# serial: programs that call clone(2) themselves: a process that shares its parent's memory, threads that share a C library's thread, or
# that have none. The in-process engine refuses what it could harm, and the programs do what they do alone.
from live import *

if not shutil.which("cc"):
    skip("needs cc")
SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n * 3 + 1; }
static volatile int stop;
static char tls[65536] __attribute__((aligned(64)));
static int shared[2];
static int work_until(void *arg)
{
	unsigned s = 0;
	while (!stop)
		s += work(s);
	syscall(SYS_exit, 5);
	return 0;
}
static void *borrow(void *arg)
{
	char byte;
	if (!vfork()) { /* runs in this process's memory until it has got a byte */
		(void)!write(1, "ready\n", 6);
		(void)!read(shared[0], &byte, 1);
		_exit(5);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	char line[10], *stack = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0, n = 0;
	pid_t child = 0;
	pthread_t t;
	enum { THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };
	*(void **)(tls + 32768) = tls + 32768;
	if (!strcmp(argv[1], "shares"))
		child = clone(work_until, stack + (1 << 20), CLONE_VM | CLONE_FS | CLONE_SETTLS | SIGCHLD, NULL, NULL, tls + 32768, NULL);
	if (!strcmp(argv[1], "same")) /* the word of the first thread */
		clone(work_until, stack + (1 << 20), THREAD, NULL, NULL, NULL, NULL);
	if (!strcmp(argv[1], "small")) { /* the word would lie behind the mapping */
		char *block = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 4096 - 64;
		munmap(block + 64, 4096);
		*(void **)block = block;
		clone(work_until, stack + (1 << 20), THREAD | CLONE_SETTLS, NULL, NULL, block, NULL);
	}
	if (!strcmp(argv[1], "vfork") && (pipe(shared) || pthread_create(&t, NULL, borrow, NULL)))
		return 1;
	if (strcmp(argv[1], "vfork"))
		(void)!write(1, "ready\n", 6);
	(void)!read(0, line, 1);
	for (int i = 0; i < 20; i++)
		n += work(i);
	(void)!read(0, line, 1);
	stop = 1;
	if (!strcmp(argv[1], "vfork"))
		(void)!write(shared[1], "x", 1), pthread_join(t, NULL), child = -1;
	if (child && (waitpid(child, &status, __WALL) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 5))
		return 2;
	return n == 590 ? 7 : 3;
}
"""
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-pthread", "-o", PROGRAM, "-"], input=SOURCE.encode(), check=True)
if finish(start("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")).rc:
    skip("no in-process engine")


def traced(way, engine):
    """Returns the program's status, and what descry printed and said."""
    t = subprocess.Popen([PROGRAM, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(t.stdout.readline() == b"ready\n", way, "begins")
    status, out, said = traced_to_exit(t, "-q", "-x", "engine=" + engine, "-p", str(t.pid), "-n",
                                       'BEGIN { printf("begun\\n"); } pid$target:program:work:entry /tid == $target/ { @ = count(); } '
                                       'pid$target:program:work:entry /tid == $target && arg0 == 19/ { exit(0); }')
    return status, out.split(), said


for i in range(3):
    status, out, said = traced("shares", "inproc")
    check(status == 7 and not out and "runs in its memory" in said, "a process in the same memory", status, out, said)
for way, why in ("same", "cannot be distinguished"), ("small", "has no C library's memory"):
    status, out, said = traced(way, "inproc")
    check(status == 7 and not out and why in said, "threads made by clone(2)", way, status, out, said)
status, out, said = traced("vfork", "inproc")
check(status == 7 and out == ["begun", "20"], "a child of vfork(2)", status, out, said)
if not finish(start("-q", "-x", "engine=kernel", "-n", "BEGIN { exit(0); }")).rc:
    status, out, said = traced("shares", "auto")
    check(status == 7 and out == ["begun", "20"], "by the kernel engine", status, out, said)
done()
