/* Allocations that are hard to record: tracee_recorded KIND [N]. Its output takes no allocation.
 *
 *	passed N   4 threads: each allocates N blocks, and frees its neighbour's at once
 *	churn N    N threads, one after the other: 10 malloc(100), freed
 *	crowd N    N threads at one time: 10 malloc(100), freed
 *	forks      100 malloc(10); a child that makes 1,000; 100 more
 *	signals    100 malloc(10), each with a signal whose handler, on another stack, makes a
 *	           malloc(20)
 *	jumps      100 malloc(10), each in a signal handler that leaves by siglongjmp(3)
 *	strict N   N malloc(10), freed, under seccomp(2)'s strict mode
 *	filter N   N malloc(10), freed, under a filter of all but write(2) and exit_group(2)
 *	busy N     N malloc(10..500), freed in another order; then "end"
 *	grows N    N malloc(16..1199), written and freed in another order, of which up to 40,000 live;
 *	           prints how many kB more of anonymous memory it has then
 *	waits      "ready", waits for a byte; 10 malloc(10)
 *	maps       maps memory by mmap(2), munmap(2), mremap(2), sbrk(2) and brk(2); malloc(1 MB)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SLOTS = 8 };

static void *volatile kept[1000];
static void *_Atomic slots[THREADS][SLOTS];
static long count;
static pthread_barrier_t all;
static sigjmp_buf back;

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(1);
}

static void *pass(void *arg)
{
	const long me = (long)arg, other = (me + 1) % THREADS;
	long made = 0, freed = 0;

	while (made < count || freed < count) {
		if (made < count && !slots[me][made % SLOTS]) {
			slots[me][made % SLOTS] = malloc(16 + (size_t)(made % 7) * 16);
			made++;
		}
		if (freed < count && slots[other][freed % SLOTS]) {
			free(slots[other][freed % SLOTS]);
			slots[other][freed % SLOTS] = NULL;
			freed++;
		}
	}
	return NULL;
}

static void passed(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, pass, (void *)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void *ten(void *arg)
{
	void *volatile p[10];

	for (int i = 0; i < 10; i++)
		p[i] = malloc(100);
	if (arg)
		pthread_barrier_wait(&all);
	for (int i = 0; i < 10; i++)
		free(p[i]);
	return NULL;
}

static void churn(void)
{
	pthread_t t;

	for (long i = 0; i < count; i++) {
		pthread_create(&t, NULL, ten, NULL);
		pthread_join(t, NULL);
	}
}

static void crowd(void)
{
	static pthread_t t[2000];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&all, NULL, (unsigned)count);
	for (long i = 0; i < count; i++)
		if (pthread_create(&t[i], &small, ten, &all))
			exit(1);
	for (long i = 0; i < count; i++)
		pthread_join(t[i], NULL);
}

static void some(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		kept[i % 1000] = malloc(size);
}

static void forks(void)
{
	int status;
	pid_t pid;

	some(100, 10);
	pid = fork();
	if (!pid) {
		some(1000, 10);
		_exit(3);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
		exit(1);
	some(100, 10);
}

static void handler(int sig)
{
	some(1, 20);
	if (sig == SIGUSR2)
		siglongjmp(back, 1);
}

static void on_signal(int sig, int flags)
{
	static char stack[65536];
	const stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	sigaltstack(&ss, NULL);
	sigaction(sig, &sa, NULL);
}

static void signals(void)
{
	on_signal(SIGUSR1, SA_ONSTACK);
	for (int i = 0; i < 100; i++) {
		some(1, 10);
		raise(SIGUSR1);
	}
}

static void jumps(void)
{
	on_signal(SIGUSR2, SA_NODEFER);
	for (volatile int i = 0; i < 100; i++)
		if (!sigsetjmp(back, 1))
			raise(SIGUSR2);
}

static void strict(void)
{
	kept[0] = malloc(10); /* the heap is there */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		exit(77);
	for (long i = 0; i < count; i++) {
		void *volatile p = malloc(10);

		free(p);
	}
	say("end\n");
	syscall(SYS_exit, 0);
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	kept[0] = malloc(10); /* the heap is there */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		exit(77);
	for (long i = 0; i < count; i++) {
		void *volatile p = malloc(10);

		free(p);
	}
	say("end\n");
	_exit(0);
}

static void busy(void)
{
	unsigned x = 1;

	for (long i = 0; i < count; i++) {
		x = x * 1664525 + 1013904223;
		free(kept[x % 64]);
		errno = 0;
		kept[x % 64] = malloc(10 + (x >> 10) % 490);
		if (errno || !kept[x % 64])
			exit(9);
	}
	say("end\n");
}

/* In kB. */
static long anonymous(void)
{
	char text[200] = "";
	long size, resident, shared;
	int fd = open("/proc/self/statm", O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) < 0 ||
	    sscanf(text, "%ld %ld %ld", &size, &resident, &shared) != 3)
		exit(1);
	close(fd);
	return (resident - shared) * 4;
}

static void grows(void)
{
	enum { BLOCKS = 40000 };
	static char *volatile blocks[BLOCKS];
	char text[32];
	unsigned x = 1;
	long before;

	memset((void *)blocks, 0, sizeof(blocks));
	before = anonymous();
	for (long i = 0; i < count; i++) {
		unsigned k, size;

		x = x * 1664525 + 1013904223;
		k = (x >> 8) % BLOCKS;
		free(blocks[k]);
		x = x * 1664525 + 1013904223;
		size = 16 + (x >> 8) % 1184;
		blocks[k] = malloc(size);
		memset(blocks[k], 1, size);
	}
	snprintf(text, sizeof(text), "%ld\n", anonymous() - before);
	say(text);
}

static void waits(void)
{
	char byte;

	say("ready\n");
	if (read(0, &byte, 1) < 0)
		exit(1);
	some(10, 10);
}

static char *map(char *at, size_t size, int prot, int flags, int fd)
{
	return mmap(at, size, prot, MAP_PRIVATE | flags, fd, 0);
}

static void maps(void)
{
	enum { K = 1024, M = 1024 * K, READ_WRITE = PROT_READ | PROT_WRITE };
	char *a = map(NULL, M, READ_WRITE, MAP_ANONYMOUS, -1);
	char *b = map(NULL, M, READ_WRITE, MAP_ANONYMOUS, -1), *r;
	int fd = open("/proc/self/exe", O_RDONLY);

	munmap(a + 256 * K, 512 * K);
	b = mremap(b, M, 2 * M, MREMAP_MAYMOVE);
	r = map(NULL, 16 * M, PROT_NONE, MAP_ANONYMOUS, -1);
	r = map(r + 4 * M, M, READ_WRITE, MAP_ANONYMOUS | MAP_FIXED, -1);
	a = map(NULL, 2 * 4096, PROT_READ, 0, fd);
	if (b == MAP_FAILED || r == MAP_FAILED || munmap(a, 4097))
		exit(1);
	/* these fail */
	if (map(NULL, 0, READ_WRITE, MAP_ANONYMOUS, -1) != MAP_FAILED || !munmap(r + 1, 10) ||
	    mremap(r, M, M / 2 * 3, MREMAP_FIXED) != MAP_FAILED)
		exit(1);
	if (sbrk(2 * 4096) == (void *)-1 || brk((char *)sbrk(0) - 4096))
		exit(1);
	kept[0] = malloc(M);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "passed", passed }, { "churn", churn },   { "crowd", crowd },
		      { "forks", forks },   { "jumps", jumps },   { "signals", signals },
		      { "strict", strict }, { "filter", filter }, { "busy", busy },
		      { "waits", waits },   { "maps", maps },     { "grows", grows } };

	count = argc > 2 ? atol(argv[2]) : 0;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds) && argc > 1; k++)
		if (!strcmp(argv[1], kinds[k].name))
			kinds[k].run();
	return 0;
}
