/* descry check --loop: the loops and the work that trials and costs trace. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "check.h"
#include "tool.h"

enum { BATCHES = 21 };

static volatile unsigned seed = 1;

/* A pointer, so that the compiler neither inlines nor removes the calls. */
static int (*volatile call_rand_r)(unsigned *) = rand_r;

static void do_syscall(unsigned n)
{
	while (n--)
		syscall(SYS_getppid);
}

static void do_function(unsigned n)
{
	unsigned s = seed;

	while (n--)
		call_rand_r(&s);
}

static void do_clock(unsigned n)
{
	struct timespec ts;

	while (n--)
		clock_gettime(CLOCK_MONOTONIC, &ts);
}

static void do_fault(unsigned n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = n * page;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	madvise(p, size, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < n; i++)
		((volatile char *)p)[i * page] = 1;
	munmap(p, size);
}

static void *echo(void *arg)
{
	int *fds = arg;
	char c;

	while (read(fds[0], &c, 1) == 1)
		if (write(fds[1], &c, 1) != 1)
			break;
	return NULL;
}

static int ping[2], pong[2];

/* Switches the CPU between two threads twice: there and back. */
static void do_switch(unsigned n)
{
	char c = 0;

	while (n--)
		if (write(ping[1], &c, 1) != 1 || read(pong[0], &c, 1) != 1)
			return;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return COMPARE(x, y);
}

/* Returns the median of batches of about 2 ms each. CPU time leaves out the time of waiting for the
 * CPU; the other clock is real time. */
static double measure(void (*fn)(unsigned n), clockid_t clock)
{
	double ns[BATCHES];
	unsigned n = 16;
	uint64_t t;

	do {
		n *= 2;
		t = clock_ns(clock);
		fn(n);
		t = clock_ns(clock) - t;
	} while (t < 2000000 && n < 1u << 24);
	for (int i = 0; i < BATCHES; i++) {
		t = clock_ns(clock);
		fn(n);
		ns[i] = (double)(clock_ns(clock) - t) / n;
	}
	qsort(ns, BATCHES, sizeof(*ns), by_size);
	return ns[BATCHES / 2];
}

static int measure_switch(void)
{
	int fds[2];
	cpu_set_t one;
	pthread_t t;

	if (pipe2(ping, O_CLOEXEC) < 0 || pipe2(pong, O_CLOEXEC) < 0)
		return tool_wrong("cannot make a pipe");
	/* Keeps both threads on one CPU, because else the time of waking another CPU would be
	 * measured. */
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	fds[0] = ping[0];
	fds[1] = pong[1];
	if (pthread_create(&t, NULL, echo, fds))
		return tool_wrong("cannot start a thread");
	printf("%.2f\n", measure(do_switch, CLOCK_MONOTONIC) / 2);
	close(ping[1]);
	pthread_join(t, NULL);
	return 0;
}

/* --- a little of everything --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *contend(void *arg)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		usleep(200);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* Connects to this process over the loopback interface, by TCP or UDP. */
static void talk(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(a);
	cleanup_close int server = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	cleanup_close int client = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	cleanup_close int taken = -1;
	char text[64] = "descry check";

	if (bind(server, (struct sockaddr *)&a, size) < 0 ||
	    getsockname(server, (struct sockaddr *)&a, &size) < 0)
		return;
	if (type == SOCK_STREAM && listen(server, 1) < 0)
		return;
	if (connect(client, (struct sockaddr *)&a, size) < 0)
		return;
	taken = type == SOCK_STREAM ? accept4(server, NULL, NULL, SOCK_CLOEXEC) : dup(server);
	if (write(client, text, sizeof(text)) > 0 && read(taken, text, sizeof(text)) > 0)
		return;
}

/* Writes a file to the disk and removes it. */
static void use_disk(void)
{
	const char block[4096] = "descry check";
	cleanup_close int fd = outfile_unnamed("/var/tmp");

	if (fd < 0)
		return;
	for (int i = 0; i < 8; i++)
		if (write(fd, block, sizeof(block)) < 0)
			return;
	fsync(fd);
}

static void use_processes(void)
{
	char *const argv[] = { "true", NULL };
	pid_t pid = fork();

	if (!pid) {
		child_exec(&(struct child){ .file = "/bin/true", .argv = argv });
		_exit(127);
	}
	if (pid > 0)
		child_wait(pid);
}

static int work(void)
{
	uint64_t end;
	pthread_t t;

	use_processes();
	use_disk();
	talk(SOCK_STREAM);
	talk(SOCK_DGRAM);
	if (!pthread_create(&t, NULL, contend, NULL)) {
		contend(NULL);
		pthread_join(t, NULL);
	}
	do_fault(64);
	DTRACE_PROBE1(descry, check, getpid());
	/* Runs long enough for samples. The time starts here, because the work above is slow on a
	 * busy machine. */
	end = now_ns() + 60000000;
	do
		do_function(10000);
	while (now_ns() < end);
	return 0;
}

/* Waits until the parent process ends this one, at most a minute. */
static int idle(void)
{
	uint64_t end = now_ns() + UINT64_C(60000000000);

	while (now_ns() < end)
		usleep(1000);
	return 0;
}

int check_loop(const char *name)
{
	static const struct {
		const char *name;
		void (*fn)(unsigned n);
	} loops[] = { { "syscall", do_syscall },
		      { "function", do_function },
		      { "clock", do_clock },
		      { "fault", do_fault } };

	if (!strcmp(name, "work"))
		return work();
	if (!strcmp(name, "idle"))
		return idle();
	if (!strcmp(name, "switch"))
		return measure_switch();
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		if (!strcmp(name, loops[i].name)) {
			printf("%.2f\n", measure(loops[i].fn, CLOCK_THREAD_CPUTIME_ID));
			return 0;
		}
	return tool_wrong(
		"--loop wants syscall, function, clock, fault, switch, work or idle, not %s", name);
}
