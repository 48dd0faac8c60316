#!/usr/bin/env python3
# serial: traced programs that make, by clone(2) themselves, a process in their memory or a thread without a thread pointer of its own, or that
# lock all their memory: descry detaches before the call, and the programs do what they do alone. Those that it only finds later too.
from live import *

if not shutil.which("cc"):
    skip("needs cc")
SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
enum { THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, PROCESS = CLONE_VM | CLONE_FS | SIGCHLD };
extern char **environ;
static volatile int stop;
static volatile unsigned long turns;
static char tls[65536] __attribute__((aligned(64)));
static char text[] = "some text";
__attribute__((noinline)) int work(int n, char *s) { __asm__ volatile("" : : "r"(s)); return n * 3 + 1; }
static int until(void *arg)
{
	unsigned s = 0;
	while (!stop) {
		s += work(s, text);
		turns++;
	}
	syscall(SYS_exit, 5);
	return 0;
}
static void *thread(void *arg) { work(1, text); return NULL; }
/* The system call instruction stands in the program, and the new task begins behind it. */
static long raw(long flags, char *stack, char *own)
{
	register long r10 __asm__("r10") = 0;
	register char *r8 __asm__("r8") = own;
	long r;
	*(void **)(stack -= 16) = (void *)until;
	__asm__ volatile("syscall; test %%eax, %%eax; jne 1f; pop %%rax; xor %%edi, %%edi; and $-16, %%rsp; call *%%rax; hlt; 1:"
			 : "=a"(r) : "a"(SYS_clone), "D"(flags), "S"(stack), "d"(0), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
	return r;
}
static int is(const char *a, const char *b) { return !strcmp(a, b); }
static long locked(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %ld", &kb);
	fclose(f);
	return kb;
}
int main(int argc, char **argv)
{
	char line[10], *way = argv[1], *top = (char *)mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + (1 << 20);
	int status = 0, n = 0, waits = 0, usual;
	unsigned long before;
	pid_t child = 0;
	pthread_t t;
	*(void **)(tls + 32768) = tls + 32768;
	(void)!write(1, "ready\n", 6);
	(void)!read(0, line, 1);
	for (int i = 0; i < 5; i++)
		n += work(i, text);
	usual = is(way, "usual");
	errno = 0;
	if (is(way, "process"))
		child = clone(until, top, PROCESS | CLONE_SETTLS, NULL, NULL, tls + 32768, NULL);
	else if (is(way, "handlers")) /* copies of the handlers */
		child = clone(until, top, PROCESS, NULL, NULL, NULL, NULL);
	else if (is(way, "raw") || is(way, "raw handlers"))
		child = raw(PROCESS | CLONE_SETTLS | (is(way, "raw") ? CLONE_SIGHAND : 0), top, tls + 32768);
	else if (is(way, "thread"))
		child = clone(until, top, THREAD, NULL, NULL, NULL, NULL);
	else if (is(way, "copied")) { /* the word of the first thread */
		char *self;
		__asm__("mov %%fs:0, %0" : "=r"(self));
		memcpy(tls + 32768, self, 2304);
		*(void **)(tls + 32768) = tls + 32768;
		child = clone(until, top, THREAD | CLONE_SETTLS, NULL, NULL, tls + 32768, NULL);
	} else if (is(way, "locks") && mlockall(MCL_CURRENT | MCL_FUTURE))
		return 10;
	else if (is(way, "syscall") && syscall(SYS_mlockall, MCL_FUTURE, 1, 2, 3, 4, 5))
		return 11;
	else if (usual) { /* fork(2), vfork(2), posix_spawn(3), threads, calls that fail */
		char *args[] = { "true", NULL };
		pid_t others[3];
		if (!(others[0] = fork()))
			_exit(5);
		if (!(others[1] = vfork()))
			_exit(5);
		if (posix_spawn(&others[2], "/bin/sh", NULL, NULL, (char *[]){ "sh", "-c", "exit 5", NULL }, environ))
			return 12;
		for (int i = 0; i < 3; i++)
			if (waitpid(others[i], &status, 0) < 0 || WEXITSTATUS(status) != 5)
				return 13 + i;
		for (int i = 0; i < 3; i++)
			if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
				return 16;
		if (!syscall(SYS_clone3, 16, 64) || errno != EFAULT || !syscall(SYS_mlockall, 77) || errno != EINVAL)
			return 17;
	}
	if (child < 0)
		return 18;
	waits = child && !is(way, "thread") && !is(way, "copied");
	for (before = turns; child && turns - before < 100000;)
		sched_yield();
	(void)!write(1, "made\n", 5);
	(void)!read(0, line, 1);
	for (int i = 5; i < 20; i++)
		n += work(i, text);
	for (before = turns; child && turns - before < 100000;)
		sched_yield();
	stop = 1;
	if (waits && (waitpid(child, &status, __WALL) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 5))
		return 19;
	if (locked() > 100000)
		return 20;
	return n == 590 ? 7 : 21;
}
"""
PROGRAM = os.path.join(TMP, "program")
subprocess.run(["cc", "-x", "c", "-w", "-O1", "-pthread", "-o", PROGRAM, "-"], input=SOURCE.encode(), check=True)
STATIC = os.path.join(TMP, "static")
static = subprocess.run(["cc", "-x", "c", "-w", "-O1", "-pthread", "-static", "-o", STATIC, "-"], input=SOURCE.encode(), stderr=subprocess.DEVNULL).returncode == 0
if finish(start("-q", "-x", "engine=inproc", "-n", "BEGIN { exit(0); }")).rc:
    skip("no in-process engine")


def mapped(pid):
    return "/memfd:descry-" in open("/proc/%d/maps" % pid).read()


def naps(pid):
    """It waits for the detach: nanosleep(2) with an address in descry's code."""
    words = open("/proc/%d/syscall" % pid).read().split()
    return words[0] == "35" and int(words[1], 16) >> 40 >= 0x40


def traced(program, way, killed=False):
    """Returns the program's status, the number of calls seen, whether descry had left it at the time of the call, and what descry said.
    killed: the tracer is stopped before the call, and killed in it: its watchdog detaches."""
    t = subprocess.Popen([program, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(t.stdout.readline() == b"ready\n", way, "begins")
    d = subprocess.Popen([DESCRY, "-q", "-x", "engine=inproc", "-p", str(t.pid), "-n",
                          'BEGIN { printf("begun\\n"); } pid$target:a.out:work:entry /tid == $target && copyinstr(arg1) == "some text"/ { @ = count(); }'],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun = d.stdout.readline()
    if killed:
        d.send_signal(signal.SIGSTOP)
    t.stdin.write(b"x")
    t.stdin.flush()
    while killed and not naps(t.pid):
        time.sleep(0.001)
    if killed:
        d.kill()
    made = t.stdout.readline()
    there = mapped(t.pid)
    while way == "raw" and there and d.poll() is None:  # found later
        time.sleep(0.02)
        there = mapped(t.pid)
    if way == "raw handlers":  # that of SIGSEGV is descry's, and no system call can be made in its name: mappings stay, but no jump
        there = False
    try:
        t.stdin.write(b"x")
        t.stdin.close()
    except BrokenPipeError:
        pass
    status = t.wait()
    out, said = d.communicate()
    return status, (begun + out).split(), made == b"made\n" and there, said


WHY = {"process": "runs in its memory", "handlers": "runs in its memory", "raw": "runs in its memory", "raw handlers": "", "thread": "cannot be distinguished",
       "copied": "cannot be distinguished", "locks": "locks all its memory", "syscall": "locks all its memory"}
for program in [PROGRAM] + [STATIC] * static:
    for way, why in WHY.items():
        if why.startswith("locks") and os.geteuid() or (program == STATIC and way == "copied"):
            continue  # a static program's threads are distinguished by the thread pointer itself
        for _ in range(2):
            status, out, there, said = traced(program, way)
            check(status == 7, os.path.basename(program), way, "does what it does alone", status, said)
            check(not there and why in said, os.path.basename(program), way, "descry has left", there, said)
            check(out[:1] == ["begun"] and (out[1:] == ["5"] or way.startswith("raw")), os.path.basename(program), way, "seen before", out)
    for way in "process", "thread":
        status, out, there, said = traced(program, way, killed=True)
        check(status == 7 and not there, os.path.basename(program), way, "the tracer is killed", status, out, there, said)
    status, out, there, said = traced(program, "usual")
    check(status == 7 and there and "not traced any more" not in said and out == ["begun", "20"], os.path.basename(program), "usual calls", status,
          out, there, said)
done()
