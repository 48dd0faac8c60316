/* Programs of odd kinds, one for each word; `kinds WORD ROUNDS [MORE]` prints "WORD CHECKSUM" at
 * its end. A round takes some ms, so that a tracer can attach in the middle. Tests trace work() and
 * text(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PART __attribute__((noinline, noclone))

extern char **environ;
static volatile uint64_t zero;

PART uint64_t work(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n % 5 + 1; i++)
		x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull + n;
	return x;
}

PART uint64_t text(const char *s, uint64_t n)
{
	return work((uint64_t)s[n % 7], n) + zero;
}

static uint64_t round_of(uint64_t sum, int n)
{
	for (int i = 0; i < n; i++)
		sum += work(sum, (uint64_t)i) + text("some text to read", (uint64_t)i);
	return sum;
}

static void nap(void)
{
	usleep(2000);
}

static uint64_t run_plain(int rounds, char **more)
{
	uint64_t sum = 1;

	for (int r = 0; r < rounds; r++, nap())
		sum = round_of(sum, 100);
	return sum;
}

/* --- small stacks --- */

static uint64_t *handled;
static void on_signal(int sig)
{
	*handled = round_of(*handled, 3);
}

static void *small(void *arg)
{
	static _Thread_local uint64_t sum;
	uint64_t *out = arg;

	sum = round_of((uintptr_t)out % 2 + 1, 200);
	*out = sum;
	return NULL;
}

static uint64_t run_stacks(int rounds, char **more)
{
	static uint64_t sums[16], mine = 1;
	long least = sysconf(_SC_MINSIGSTKSZ);
	size_t size = ((size_t)(least > 0 ? least : 4096) + 4095) & ~4095ul;
	stack_t alt = { .ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			.ss_size = size };
	pthread_attr_t a;

	handled = &mine;
	sigaltstack(&alt, NULL);
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_ONSTACK },
		  NULL);
	pthread_attr_init(&a);
	if (pthread_attr_setstacksize(&a, 16384))
		return 0;
	for (int r = 0; r < rounds; r++, nap()) {
		pthread_t t[16];

		for (int i = 0; i < 16; i++)
			if (pthread_create(&t[i], &a, small, &sums[i]))
				return 0;
		for (int i = 0; i < 16; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < 10; i++)
			raise(SIGUSR1);
	}
	for (int i = 0; i < 16; i++)
		mine += sums[i];
	return mine;
}

static ucontext_t main_context, coroutine[8];
static uint64_t co_sum[8];
static void co(int n)
{
	for (;;) {
		co_sum[n] = round_of(co_sum[n], 5);
		swapcontext(&coroutine[n], n % 2 ? &main_context : &coroutine[n + 1]);
		co_sum[n] += (uint64_t)n;
	}
}

static uint64_t run_coroutines(int rounds, char **more)
{
	uint64_t sum = 0;

	for (int n = 0; n < 8; n++) {
		getcontext(&coroutine[n]);
		coroutine[n].uc_stack.ss_sp = mmap(NULL, 16384, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		coroutine[n].uc_stack.ss_size = 16384;
		makecontext(&coroutine[n], (void (*)(void))co, 1, n);
	}
	for (int r = 0; r < rounds; r++, nap())
		for (int n = 0; n < 8; n += 2)
			swapcontext(&main_context, &coroutine[n]);
	for (int n = 0; n < 8; n++)
		sum = sum * 31 + co_sum[n];
	return sum;
}

/* --- limits and filters --- */

/* MORE: the number of a system call, and with a third word the protection (mmap's third argument)
 * that is refused. */
static uint64_t run_filter(int rounds, char **more)
{
	uint32_t nr = (uint32_t)atoi(more[0]), prot = more[1] ? (uint32_t)atoi(more[1]) : 0;
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, prot ? 2u : 1u),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, prot, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(*f), f };

	f[1].jf = 3;
	f[1].jt = prot ? 0 : 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 0;
	return run_plain(rounds, more);
}

/* MORE: megabytes of addresses that it may have beyond its present ones. */
static uint64_t run_limit(int rounds, char **more)
{
	struct rlimit r;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu", &pages) != 1)
		return 0;
	fclose(f);
	r.rlim_cur = r.rlim_max = pages * 4096 + ((rlim_t)atoi(more[0]) << 20);
	setrlimit(RLIMIT_AS, &r);
	return run_plain(rounds, more);
}

/* --- threads --- */

static pthread_barrier_t together;
static int thread_rounds;
static void *one_of_many(void *arg)
{
	uint64_t *out = arg;

	*out = 1;
	for (int r = 0; r < thread_rounds; r++) {
		pthread_barrier_wait(&together);
		*out = round_of(*out, 20);
	}
	return NULL;
}

static uint64_t run_many(int rounds, char **more)
{
	int n = atoi(more[0]);
	pthread_t *t = calloc((size_t)n, sizeof(*t));
	uint64_t *out = calloc((size_t)n, sizeof(*out)), sum = 0;
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	pthread_barrier_init(&together, NULL, (unsigned)n);
	thread_rounds = rounds;
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &a, one_of_many, &out[i]))
			return 0;
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		sum += out[i];
	}
	free(t);
	free(out);
	return sum;
}

static void *short_lived(void *arg)
{
	*(uint64_t *)arg = round_of(3, 5);
	return NULL;
}
static uint64_t run_churn(int rounds, char **more)
{
	uint64_t sum = 0, out[20];

	for (int r = 0; r < rounds; r++) {
		pthread_t t[20];

		for (int i = 0; i < 20; i++)
			if (pthread_create(&t[i], NULL, short_lived, &out[i]))
				return 0;
		for (int i = 0; i < 20; i++) {
			pthread_join(t[i], NULL);
			sum += out[i];
		}
	}
	return sum;
}

/* --- processes --- */

PART static pid_t start_by_vfork(char **argv)
{
	pid_t pid = vfork();

	if (!pid) {
		work(1, 1);
		execv(argv[0], argv);
		_exit(1);
	}
	return pid;
}

static uint64_t run_spawn(int rounds, char **more)
{
	char *argv[] = { "/bin/true", NULL };
	uint64_t sum = 1;

	for (int r = 0; r < rounds; r++) {
		pid_t pid;
		int status;

		sum = round_of(sum, 20);
		if (r % 2) {
			pid = start_by_vfork(argv);
		} else if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ)) {
			return 0;
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 0;
	}
	return sum;
}

static void *forever(void *arg)
{
	for (uint64_t x = 1;;)
		x = round_of(x, 10);
	return arg;
}
/* Executes itself, threads running, so many times. */
static uint64_t run_exec(int rounds, char **more)
{
	char left[16], *argv[] = { "kinds", "exec", left, NULL };
	pthread_t t;

	if (rounds > 1) {
		for (int i = 0; i < 4; i++)
			pthread_create(&t, NULL, forever, NULL);
		run_plain(10, NULL);
		snprintf(left, sizeof(left), "%d", rounds - 1);
		execv("/proc/self/exe", argv);
		return 0;
	}
	return run_plain(10, NULL);
}

/* MORE: a library with uint64_t reload(uint64_t). Another mapping takes its place now and then. */
static uint64_t run_reload(int rounds, char **more)
{
	uint64_t sum = 1;

	for (int r = 0; r < rounds; r++, nap()) {
		void *h = dlopen(more[0], RTLD_NOW | RTLD_LOCAL);
		uint64_t (*fn)(uint64_t) = h ? (uint64_t(*)(uint64_t))dlsym(h, "reload") : NULL;

		if (!fn)
			return 0;
		for (int i = 0; i < 50; i++)
			sum = fn(sum) + work(sum, 1);
		dlclose(h);
		if (r % 3 == 0)
			mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return sum;
}

static uint64_t calls_of(uint64_t (*fn)(uint64_t), int n)
{
	uint64_t sum = 1;

	for (int i = 0; i < n; i++)
		sum = fn(sum);
	return sum;
}

/* MORE: as for reload. A child goes on with the library where it was; its parent has dropped it
 * meanwhile, and loaded it again elsewhere. Every other child has called it before. */
static uint64_t run_heirs(int rounds, char **more)
{
	uint64_t sum = 1;

	for (int r = 0; r < rounds; r++, nap()) {
		void *h = dlopen(more[0], RTLD_NOW | RTLD_LOCAL), *taken;
		uint64_t (*fn)(uint64_t) = h ? (uint64_t(*)(uint64_t))dlsym(h, "reload") : NULL;
		int go[2], status = -1;
		pid_t pid;
		char byte;

		if (!fn || pipe(go))
			return 0;
		pid = fork();
		if (!pid) {
			close(go[1]);
			if (r & 1)
				sum = calls_of(fn, 3);
			if (read(go[0], &byte, 1) != 1)
				_exit(1);
			_exit(calls_of(fn, 50) != calls_of(fn, 50));
		}
		taken = (void *)((uintptr_t)fn & ~4095ul);
		dlclose(h);
		taken = mmap(taken, 4096, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		h = dlopen(more[0], RTLD_NOW | RTLD_LOCAL);
		fn = h ? (uint64_t(*)(uint64_t))dlsym(h, "reload") : NULL;
		if (!fn || taken == MAP_FAILED)
			return 0;
		sum += calls_of(fn, 50);
		if (write(go[1], "x", 1) != 1 || waitpid(pid, &status, 0) != pid || status) {
			printf("the child: %x\n", (unsigned)status);
			return 0;
		}
		dlclose(h);
		munmap(taken, 4096);
		close(go[0]);
		close(go[1]);
	}
	return sum;
}

/* Code written at run time, again and again, that calls work(). */
static uint64_t run_jit(int rounds, char **more)
{
	static const uint8_t code[] = {
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0
	}; /* mov $imm64, %rax; jmp *%rax */
	uint64_t sum = 1, at = (uintptr_t)work;

	for (int r = 0; r < rounds; r++, nap()) {
		uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		memcpy(p, code, sizeof(code));
		memcpy(p + 2, &at, 8);
		mprotect(p, 4096, PROT_READ | PROT_EXEC);
		for (int i = 0; i < 50; i++)
			sum += ((uint64_t(*)(uint64_t, uint64_t))(uintptr_t)p)(sum, (uint64_t)i);
		munmap(p, 4096);
	}
	return sum;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t (*run)(int rounds, char **more);
	} kinds[] = {
		{ "plain", run_plain },
		{ "stacks", run_stacks },
		{ "coroutines", run_coroutines },
		{ "filter", run_filter },
		{ "limit", run_limit },
		{ "many", run_many },
		{ "churn", run_churn },
		{ "spawn", run_spawn },
		{ "exec", run_exec },
		{ "reload", run_reload },
		{ "heirs", run_heirs },
		{ "jit", run_jit },
	};

	for (size_t i = 0; argc > 2 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name)) {
			uint64_t sum = kinds[i].run(atoi(argv[2]), argv + 3);

			printf("%s %016llx\n", argv[1], (unsigned long long)sum);
			return sum == 0;
		}
	return 2;
}
