/* A program that notices when it is harmed: threads that compute, wait, take signals, load
 * libraries, fork and unwind, each checking itself. `torture [SECONDS]` works until SIGTERM or for
 * so many seconds, then prints its counts and "checksum HEX errors N interrupted N"; exit code 0
 * when there were no errors. The functions work_0 ... work_7 begin with endbr64; push %rbp; mov
 * %rsp,%rbp; lea -32(%rsp),%rsp; displacing the last three is safe. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

enum { WORKERS = 8 };
static atomic_int stop, errors, interrupted;
static atomic_ulong handled[2], counts[16];
extern char **environ;

static void complain(const char *what, long value)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "ERROR %s (%ld, errno %d)\n", what, value, errno);

	atomic_fetch_add(&errors, 1);
	if (write(2, text, (size_t)n) < 0)
		abort();
}
#define check(good, what, value) \
	do { \
		if (!(good)) \
			complain(what, (long)(value)); \
	} while (0)

/* --- the functions that are patched --- */

#define WORK(num) \
	__asm__(".text\n.p2align 4\n.globl work_" #num "\n.type work_" #num \
		",@function\nwork_" #num ":\n" \
		".cfi_startproc\nendbr64\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6,-16\n" \
		"mov %rsp,%rbp\n.cfi_def_cfa_register 6\nlea -32(%rsp),%rsp\n" \
		"mov %rdi,-8(%rbp)\nmov $" #num ",%edx\ncall *%rsi\nadd -8(%rbp),%rax\nleave\n" \
		".cfi_def_cfa 7,8\nret\n.cfi_endproc\n.size work_" #num ",.-work_" #num "\n"); \
	uint64_t work_##num(uint64_t x, uint64_t (*fn)(uint64_t x, void *fn, int n));
WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
WORK(6)
WORK(7)
static uint64_t (*const work[WORKERS])(uint64_t, uint64_t (*)(uint64_t, void *, int)) = {
	work_0, work_1, work_2, work_3, work_4, work_5, work_6, work_7
};

static uint64_t mix(uint64_t x, void *fn, int n)
{
	return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull + (unsigned)n;
}
/* Computes the result of work_n(x, mix) in another way. */
static uint64_t expected(uint64_t x, int n)
{
	return mix(x, NULL, n) + x;
}
static uint64_t round_of(uint64_t x)
{
	for (int i = 0; i < WORKERS; i++)
		x = work[i](x, mix);
	return x;
}
static uint64_t expected_round(uint64_t x)
{
	for (int i = 0; i < WORKERS; i++)
		x = expected(x, i);
	return x;
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* --- threads --- */

static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
}

static atomic_ulong checksum;
static void *compute(void *arg)
{
	uint64_t x = (uintptr_t)arg + 1, y = x;

	while (!stop) {
		for (int i = 0; i < 2000; i++)
			x = round_of(x);
		for (int i = 0; i < 2000; i++)
			y = expected_round(y);
		check(x == y, "checksum", x);
		x = y;
		counts[0]++;
	}
	atomic_fetch_xor(&checksum, x ^ y);
	return NULL;
}

static void on_signal(int sig)
{
	int e = errno;

	check(round_of(sig) == expected_round(sig), "handler's checksum", sig);
	handled[sig == SIGUSR1]++;
	errno = e;
}

/* Signals with and without SA_RESTART: a read that is restarted, a pause that ends. */
static void *signals(void *arg)
{
	int *fds = arg;
	char byte;

	while (!stop) {
		struct itimerval t = { .it_value.tv_usec = 300 };
		ssize_t n;

		setitimer(ITIMER_REAL, &t, NULL); /* SIGALRM restarts */
		n = read(fds[0], &byte, 1);
		check(n == 1, "read with SA_RESTART", n);
		pthread_kill(pthread_self(), SIGUSR1);
		counts[1]++;
	}
	return NULL;
}
static void *feeder(void *arg)
{
	int *fds = arg;

	block_signals();
	while (!stop) {
		check(write(fds[1], "x", 1) == 1, "pipe", 0);
		usleep(700);
	}
	/* the reader may wait for one more */
	check(write(fds[1], "xx", 2) == 2, "pipe", 0);
	return NULL;
}

static void *loader(void *arg)
{
	while (!stop) {
		void *lib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
		unsigned long (*crc)(unsigned long, const unsigned char *, unsigned);

		if (!lib)
			return NULL;
		*(void **)&crc = dlsym(lib, "crc32");
		check(crc && crc(0, (const unsigned char *)"123456789", 9) == 0xcbf43926, "crc32",
		      0);
		dlclose(lib);
		counts[2]++;
		usleep(500);
	}
	return NULL;
}

static void *children(void *arg)
{
	char *argv[] = { "true", NULL };

	block_signals();
	for (int i = 0; !stop; i++) {
		int status = -1;
		pid_t pid;

		if (i % 3 == 0) {
			pid = fork();
			if (pid == 0)
				_exit(round_of(7) == expected_round(7) ? 42 : 43);
			check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
				      WEXITSTATUS(status) == 42,
			      "fork child", status);
		} else if (i % 3 == 1) {
			check(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0,
			      "posix_spawn", 0);
			check(waitpid(pid, &status, 0) == pid && status == 0, "spawned child",
			      status);
		} else {
			pid = vfork();
			if (pid == 0) {
				usleep(300);
				execv("/bin/true", argv);
				_exit(1);
			}
			check(waitpid(pid, &status, 0) == pid && status == 0, "vfork child",
			      status);
		}
		counts[3]++;
		usleep(2000);
	}
	return NULL;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
	++*(int *)arg;
	return _URC_NO_REASON;
}
static uint64_t unwinds(uint64_t x, void *fn, int n)
{
	int frames = 0;

	_Unwind_Backtrace(frame, &frames);
	return (uint64_t)frames;
}
static void cleaned(void *arg)
{
	++*(int *)arg;
}
static uint64_t leaves(uint64_t x, void *fn, int n)
{
	int *clean = (int *)(uintptr_t)x;

	pthread_cleanup_push(cleaned, clean);
	pthread_exit((void *)7); /* forced unwinding through work_3() */
	pthread_cleanup_pop(0);
	return 0;
}
static void *leaver(void *arg)
{
	int *clean = arg;

	block_signals();
	pthread_cleanup_push(cleaned, clean);
	work_3((uintptr_t)clean, leaves);
	pthread_cleanup_pop(0);
	return NULL;
}
static void *unwinder(void *arg)
{
	int frames = 0;

	block_signals();
	while (!stop) {
		int got = (int)work_2(0, unwinds), clean = 0;
		pthread_t t;
		void *ret = NULL;

		check(!frames || got == frames, "frames of a backtrace", got);
		frames = got;
		if (pthread_create(&t, NULL, leaver, &clean) == 0) {
			pthread_join(t, &ret);
			check(ret == (void *)7 && clean == 2,
			      "pthread_exit through a patched function", clean);
		}
		counts[4]++;
	}
	return NULL;
}

static jmp_buf back;
static uint64_t jumps(uint64_t x, void *fn, int n)
{
	longjmp(back, 3);
}
static void *jumper(void *arg)
{
	block_signals();
	while (!stop) {
		volatile int i = 0;

		if (setjmp(back) == 0) {
			i = 1;
			work_5(1, jumps);
			complain("longjmp came back", 0);
		}
		check(i == 1, "longjmp", i);
		if (++counts[5] % 64 == 0)
			usleep(50);
	}
	return NULL;
}

static long futex(int *word, int op, int value, const struct timespec *t)
{
	return syscall(SYS_futex, word, op, value, t, NULL, 0);
}
static int turn;
static void *pinger(void *arg)
{
	int me = (int)(intptr_t)arg;

	block_signals();
	while (!stop) {
		int t = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

		if ((t & 1) == me) {
			counts[6]++;
			__atomic_store_n(&turn, t + 1, __ATOMIC_RELEASE);
			futex(&turn, FUTEX_WAKE_PRIVATE, 1, NULL);
			usleep(100);
		} else if (futex(&turn, FUTEX_WAIT_PRIVATE, t, &(struct timespec){ .tv_sec = 1 }) <
			   0) {
			check(errno == EAGAIN || errno == ETIMEDOUT, "futex wait", errno);
		}
	}
	return NULL;
}

/* Nothing here may be interrupted: signals are blocked. */
static void *sleeper(void *arg)
{
	block_signals();
	while (!stop) {
		long long begun = now_ns(), took;
		int word = 0;
		long r = nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);

		took = now_ns() - begun;
		check(r == 0, "nanosleep", r);
		check(took >= 3000000 && took < 10000000000ll, "nanosleep's length", took);
		begun = now_ns();
		r = futex(&word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){ .tv_nsec = 2000000 });
		took = now_ns() - begun;
		check(r < 0 && errno == ETIMEDOUT && took >= 2000000, "futex timeout", took);
		r = poll(NULL, 0, 2);
		check(r == 0, "poll", r);
		r = select(0, NULL, NULL, NULL, &(struct timeval){ .tv_usec = 1000 });
		check(r == 0, "select", r);
		counts[7]++;
	}
	return NULL;
}

/* The calls that any stop of the process makes fail (signal(7)): counted, not an error. */
static int eintr(long r)
{
	if (r >= 0 || errno != EINTR)
		return 0;
	interrupted++;
	return 1;
}

static void *waiter(void *arg)
{
	int ep = epoll_create1(0), sem = semget(IPC_PRIVATE, 1, 0600);
	sigset_t set;

	block_signals();
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	while (!stop) {
		struct epoll_event ev;
		struct sembuf op = { .sem_op = -1 };
		struct timespec t = { .tv_nsec = 2000000 };
		long r = epoll_wait(ep, &ev, 1, 3);

		check(r == 0 || eintr(r), "epoll_wait", r);
		r = sigtimedwait(&set, NULL, &t);
		check(r < 0 && (errno == EAGAIN || eintr(r)), "sigtimedwait", r);
		if (sem >= 0) {
			r = semtimedop(sem, &op, 1, &t);
			check(r < 0 && (errno == EAGAIN || eintr(r)), "semtimedop", r);
		}
		counts[8]++;
	}
	if (sem >= 0)
		semctl(sem, 0, IPC_RMID);
	return NULL;
}

static void on_term(int sig)
{
	stop = 1;
}

int main(int argc, char **argv)
{
	static void *(*const threads[])(void *) = { compute, compute, loader, children, unwinder,
						    jumper,  pinger,  pinger, sleeper,  waiter };
	pthread_t t[sizeof(threads) / sizeof(*threads)], s, f;
	uint64_t sum = 1;
	sigset_t set;
	int fds[2];

	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESTART },
		  NULL);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_term }, NULL);
	if (pipe(fds) < 0)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		pthread_create(&t[i], NULL, threads[i], (void *)(uintptr_t)(i % 2));
	pthread_create(&f, NULL, feeder, fds);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGUSR1);
	sigdelset(&set, SIGTERM);
	pthread_create(&s, NULL, signals, fds);
	/* the process's timer signals go to the threads that take them: two that compute, and the
	 * one that reads */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	printf("ready %d", getpid());
	for (int i = 0; i < WORKERS; i++)
		printf(" %lx", (unsigned long)(uintptr_t)work[i]);
	printf("\n");
	fflush(stdout);
	if (argc > 1) {
		long long end = now_ns() + atoi(argv[1]) * 1000000000ll;

		while (now_ns() < end &&
		       sigtimedwait(&set, NULL, &(struct timespec){ .tv_nsec = 50000000 }) < 0)
			;
		stop = 1;
	} else {
		int sig;

		sigwait(&set, &sig);
		stop = 1;
	}
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		pthread_join(t[i], NULL);
	pthread_join(f, NULL);
	pthread_join(s, NULL);
	for (int i = 0; i < 100000; i++)
		sum = round_of(sum);
	printf("compute %lu signals %lu loads %lu children %lu unwinds %lu jumps %lu turns %lu sleeps %lu waits %lu "
	       "handled %lu %lu\n",
	       counts[0], counts[1], counts[2], counts[3], counts[4], counts[5], counts[6],
	       counts[7], counts[8], handled[0], handled[1]);
	printf("checksum %016lx errors %d interrupted %d\n", sum ^ checksum, errors, interrupted);
	return errors != 0;
}
