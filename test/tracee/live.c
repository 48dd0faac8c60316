/* A program that counts its own work, so that a tracer's answer can be compared: `live MODE [N]`.
 * Each mode prints its counts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;

static long long clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* --- malloc N: sizes below the mmap threshold, and every tenth above it --- */

static int do_malloc(int n)
{
	int small = 0, large = 0;

	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	for (int i = 0; i < n; i++) {
		size_t size = i % 10 == 9 ? 256 << 10 : 16 << i % 8;
		char *p = malloc(size);

		p[0] = 1;
		sink = (long)p; /* or the compiler leaves malloc() out */
		if (i % 10 == 9)
			large++;
		else
			small++;
		free(p);
	}
	/* not dprintf(), which calls malloc() */
	char text[64];

	return write(1, text,
		     (size_t)snprintf(text, sizeof(text), "small %d large %d\n", small, large)) < 0;
}

/* --- spin MS: on-CPU time between two functions --- */

__attribute__((noinline)) void spin_begin(void)
{
	__asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void spin_end(long long cpu)
{
	sink = cpu;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) int do_spin(int ms)
{
	long long wall, start, cpu;

	clock_ns(CLOCK_THREAD_CPUTIME_ID);
	spin_begin();
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	do
		for (int i = 0; i < 20000; i++)
			sink += i;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < ms * 1000000ll);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	spin_end(cpu);
	dprintf(1, "cpu %lld wall %lld\n", cpu, wall);
	return 0;
}

/* --- cold FILE: paths that lie in pages which are not resident --- */

static int do_cold(const char *path, int n)
{
	int cold = 0;

	for (int i = 0; i < n; i++) {
		char text[64], *p;
		unsigned char in_core = 1;
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600),
		    len = snprintf(text, sizeof(text), "/nonexistent/cold-%d", i);

		if (fd < 0 || pwrite(fd, text, (size_t)len + 1, 0) < 0 || fsync(fd))
			return 1;
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			return 1;
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		madvise(p, 4096, MADV_DONTNEED);
		mincore(p, 4096, &in_core);
		cold += !(in_core & 1);
		syscall(SYS_openat, AT_FDCWD, p, O_RDONLY);
		munmap(p, 4096);
		close(fd);
		unlink(path);
	}
	dprintf(1, "cold %d of %d\n", cold, n);
	return 0;
}

/* --- calls N: a call tree --- */

__attribute__((noinline)) int lookup_key(int depth)
{
	int r = depth > 0 ? lookup_key(depth - 1) : 7;

	sink += r;
	return r + 1;
}

__attribute__((noinline)) int parse_request(const char *text)
{
	return (int)strlen(text) + lookup_key(2);
}

__attribute__((noinline)) int handle_request(const char *text, int number)
{
	int r = parse_request(text);

	sink += number;
	return r;
}

static int do_calls(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += handle_request("GET /index.html", i);
	dprintf(1, "requests %d lookups %d sum %ld\n", n, n * 3, sum);
	return 0;
}

/* --- syscalls N: counted ones, good and failing --- */

static int do_syscalls(int n)
{
	char buf[512];
	int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	long got = 0;

	for (int i = 0; i < n; i++) {
		syscall(SYS_getppid);
		if (i % 2)
			syscall(SYS_getuid);
		if (i % 5 == 0)
			syscall(SYS_open, "/nonexistent/file", O_RDONLY);
		if (i % 10 == 0)
			syscall(SYS_close, 9999);
		got += read(zero, buf, (size_t)(1 << i % 10));
		if (write(null, buf, 100) < 0)
			return 1;
	}
	dprintf(1, "getppid %d getuid %d enoent %d ebadf %d read %ld\n", n, n / 2, (n + 4) / 5,
		(n + 9) / 10, got);
	return 0;
}

/* --- open N: libc's open() failing and getenv() --- */

static int do_open(int n)
{
	int failed = 0, set = 0;

	setenv("LIVE_A", "1", 1);
	for (int i = 0; i < n; i++) {
		failed += open("/nonexistent/file", O_RDONLY) < 0;
		set += getenv("LIVE_A") != NULL;
		set += getenv("LIVE_UNSET") != NULL;
	}
	dprintf(1, "failed %d set %d\n", failed, set);
	return 0;
}

/* --- wait: until SIGTERM, one step each 5 ms --- */

static volatile sig_atomic_t stop;
static void on_term(int sig)
{
	stop = 1;
}

__attribute__((noinline)) int work_step(int i)
{
	sink += i;
	return i;
}

static int do_wait(void)
{
	int i = 0;

	signal(SIGTERM, on_term);
	dprintf(1, "pid %d\n", getpid());
	while (!stop) {
		work_step(i++);
		usleep(5000);
	}
	dprintf(1, "steps %d\n", i);
	return 0;
}

/* --- threads N: events on every CPU at once, the threads dealt out to them --- */

static int rounds;

static void *hammer(void *arg)
{
	cpu_set_t allowed, one;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (long cpu = 0, left = (long)arg % CPU_COUNT(&allowed); cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || left--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		break;
	}
	for (int i = 0; i < rounds; i++)
		syscall(SYS_getppid);
	return NULL;
}

static int do_threads(int n)
{
	pthread_t t[4];

	rounds = n;
	for (long i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, hammer, (void *)i))
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	dprintf(1, "getppid %d\n", 4 * n);
	return 0;
}

/* --- faults N: pages touched --- */

static int do_faults(int n)
{
	struct rusage a, b;
	char *p = mmap(NULL, (size_t)n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return 1;
	madvise(p, (size_t)n * 4096, MADV_NOHUGEPAGE);
	getrusage(RUSAGE_SELF, &a);
	for (int i = 0; i < n; i++)
		p[(size_t)i * 4096] = 1;
	getrusage(RUSAGE_SELF, &b);
	dprintf(1, "faults %ld\n", b.ru_minflt - a.ru_minflt);
	return 0;
}

/* --- crowd FILE N: N threads that call a function until they are killed. The file has two numbers
 * for each: calls begun, calls ended; behind them a number that is 0 until they may begin --- */

static volatile unsigned long (*crowd)[2];
static int crowd_size;

__attribute__((noinline)) void crowd_step(long me)
{
	sink = me;
	__asm__ volatile("" ::: "memory");
}

static void *crowd_member(void *me)
{
	while (!crowd[crowd_size][0])
		usleep(1000);
	for (;;) {
		crowd[(long)me][0]++;
		crowd_step((long)me);
		crowd[(long)me][1]++;
	}
	return NULL;
}

static int do_crowd(const char *path, int n)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	pthread_t t;

	if (fd < 0 || n < 1 || ftruncate(fd, (n + 1) * 16))
		return 1;
	crowd_size = n;
	crowd = mmap(NULL, (size_t)(n + 1) * 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (crowd == MAP_FAILED)
		return 1;
	for (long i = 1; i < n; i++)
		if (pthread_create(&t, NULL, crowd_member, (void *)i))
			return 1;
	dprintf(1, "ready\n");
	crowd_member(NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[argc - 1]) : 10;

	if (!strcmp(mode, "malloc"))
		return do_malloc(n);
	if (!strcmp(mode, "spin"))
		return do_spin(n);
	if (!strcmp(mode, "cold") && argc > 3)
		return do_cold(argv[2], n);
	if (!strcmp(mode, "crowd") && argc > 3)
		return do_crowd(argv[2], n);
	if (!strcmp(mode, "calls"))
		return do_calls(n);
	if (!strcmp(mode, "syscalls"))
		return do_syscalls(n);
	if (!strcmp(mode, "open"))
		return do_open(n);
	if (!strcmp(mode, "wait"))
		return do_wait();
	if (!strcmp(mode, "threads"))
		return do_threads(n);
	if (!strcmp(mode, "faults"))
		return do_faults(n);
	fprintf(stderr,
		"usage: live malloc|spin|cold FILE|crowd FILE|calls|syscalls|open|wait|threads|faults [N]\n");
	return 2;
}
