/* The agent's blob in a process that is laid out as a traced one: signals and traps. */
#define _GNU_SOURCE
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/ring.h"
#include "agent_handlers.h"

/* --- the program's own handlers --- */

/* Handlers that were there before, and ones put in later. */
TEST(test_chain_siginfo)
{
	struct sigaction sa = { .sa_sigaction = handler3, .sa_flags = SA_SIGINFO };
	uint8_t *p = pages(1);
	struct kernel_action a, old;

	sigaddset(&sa.sa_mask, SIGUSR2);
	sigaction(SIGSEGV, &sa, NULL);
	guarded();
	CHECK(world_thread(&w, 1));
	munmap(p, PAGE);
	for (int round = 0; round < 2; round++) {
		got_signal = 0;
		if (!sigsetjmp(back, 1))
			*(volatile uint8_t *)(p + 5) = 1;
		CHECK(got_signal == SIGSEGV && got.si_addr == p + 5 && got.si_code == SEGV_MAPERR);
		CHECK(got_context.uc_mcontext.gregs[REG_CR2] == (greg_t)(uintptr_t)(p + 5));
		CHECK(got_blocked & 1 << (SIGSEGV - 1));
		CHECK((got_blocked >> (SIGUSR2 - 1) & 1) == (round ? 0 : 1));
		CHECK(!(blocked() & 1 << (SIGSEGV - 1)));
		/* the agent's handler is still there */
		CHECK((int64_t)CALL(probe_read, w.room, 8, p) == -EFAULT);
		a = action(handler3, SA_SIGINFO | SA_RESTART, 0);
		CHECK(!program_action(SIGSEGV, &a, &old));
		CHECK(old.handler == (uintptr_t)handler3 &&
		      (old.flags & SA_RESTART) == (round ? SA_RESTART : 0));
	}
	CHECK(!program_action(SIGSEGV, NULL, &old) && old.handler == (uintptr_t)handler3 &&
	      old.flags == a.flags && old.restorer == a.restorer);
	/* other signals go to the kernel; wrong arguments fail as in the kernel */
	a = action(handler1, 0, ~0ull);
	CHECK(!program_action(SIGUSR1, &a, NULL) && !program_action(SIGUSR1, NULL, &old));
	CHECK(old.handler == (uintptr_t)handler1);
	CHECK(!program_action(SIGSEGV, &a, NULL) && !program_action(SIGSEGV, NULL, &old));
	CHECK(old.mask == (~0ull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1))));
	CHECK(program_action(SIGSEGV, (void *)8, NULL) == -EFAULT);
	CHECK(program_action(SIGSEGV, NULL, (void *)8) == -EFAULT);
	CHECK((int64_t)CALL(sigaction, SIGSEGV, &a, 0, 4) == -EINVAL);
	CHECK(program_action(SIGKILL, &a, NULL) == -EINVAL);
}

TEST(test_chain_altstack)
{
	stack_t st = { .ss_sp = pages(16), .ss_size = 16 * PAGE };
	struct kernel_action a = action(handler3, SA_SIGINFO | SA_ONSTACK | SA_NODEFER, 0);

	CHECK(!sigaltstack(&st, NULL));
	guarded();
	CHECK(!program_action(SIGBUS, &a, NULL));
	if (!sigsetjmp(back, 1))
		raise(SIGBUS);
	CHECK(got_signal == SIGBUS && got.si_code == SI_TKILL && got.si_pid == getpid());
	CHECK(got_stack - (uintptr_t)st.ss_sp < st.ss_size);
	CHECK(!(got_blocked & 1 << (SIGBUS - 1)));
}

TEST(test_chain_sent)
{
	struct kernel_action a = action(handler1, SA_RESETHAND, 0), old;

	guarded();
	CHECK(!program_action(SIGSEGV, &a, NULL));
	raise(SIGSEGV);
	CHECK(got_signal == SIGSEGV);
	CHECK(!program_action(SIGSEGV, NULL, &old) && old.handler == 0 && old.flags == a.flags);
	a = action((void *)1, 0, 0); /* ignored when sent */
	CHECK(!program_action(SIGSEGV, &a, NULL));
	raise(SIGSEGV);
	CHECK(world_thread(&w, 1));
	CHECK((int64_t)CALL(probe_read, w.room, 8, 8) == -EFAULT);
}

/* The end of a process is the same with and without us: signal and core bit. */
static void die_of_signal(void)
{
	raise(SIGSEGV);
}
static void die_of_bus(void)
{
	raise(SIGBUS);
}
static void die_of_trap(void)
{
	__asm__ volatile("int3");
}
static void die_of_overflow(void)
{
	volatile uint8_t *p = alloca(64 << 20);

	for (int64_t i = (64 << 20) - 1; i >= 0; i -= PAGE)
		p[i] = 1;
}
static void die_blocked(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	die_of_fault();
}
static void die_ignoring(void)
{
	struct kernel_action a = action((void *)1, 0, 0);

	if (w.private->signals)
		program_action(SIGSEGV, &a, NULL);
	else
		signal(SIGSEGV, SIG_IGN);
	die_of_fault();
}
static void die_resethand(void)
{
	struct kernel_action a = action(handler1, SA_RESETHAND, 0);
	struct sigaction sa = { .sa_handler = handler1, .sa_flags = (int)SA_RESETHAND };

	if (w.private->signals)
		program_action(SIGSEGV, &a, NULL);
	else
		sigaction(SIGSEGV, &sa, NULL);
	die_of_fault(); /* the handler returns, it faults again */
}
static void (*die)(void);
static bool with_guard;
static void dying(void)
{
	struct rlimit core;

	prctl(PR_SET_DUMPABLE, 1);
	core = (struct rlimit){ 65536,
				65536 }; /* where that is refused, neither of the two dumps */
	setrlimit(RLIMIT_CORE, &core);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGTRAP, SIG_DFL);
	if (with_guard)
		guarded();
	die();
}
/* Removes the folder and the files dumped there. */
static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "core", 4))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}
static void test_death(void **state)
{
	char dir[] = "/tmp/test_agent.XXXXXX", *here = getcwd(NULL, 0);
	static void (*const ways[])(void) = { die_of_fault, die_of_signal,   die_of_bus,
					      die_of_trap,  die_of_overflow, die_blocked,
					      die_ignoring, die_resethand };
	static const int signals[] = { SIGSEGV, SIGSEGV, SIGBUS,  SIGTRAP,
				       SIGSEGV, SIGSEGV, SIGSEGV, SIGSEGV };

	assert_non_null(here);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int without, with;

		die = ways[i];
		with_guard = false;
		in_child(dying, &without);
		assert_true(WIFSIGNALED(without));
		assert_int_equal(WTERMSIG(without), signals[i]);
		with_guard = true;
		in_child(dying, &with);
		assert_int_equal(with, without);
	}
	assert_int_equal(chdir(here), 0);
	remove_dir(dir);
	free(here);
}

TEST(test_guard_off)
{
	struct sigaction sa = { .sa_sigaction = handler3, .sa_flags = SA_SIGINFO }, now;
	struct kernel_action a = action(handler1, SA_RESTART, 0);

	sigaction(SIGSEGV, &sa, NULL);
	signal(SIGBUS, SIG_DFL);
	guarded();
	sigaction(SIGSEGV, NULL, &now);
	CHECK((uintptr_t)now.sa_sigaction == w.base + w.head->entry[WIRE_AGENT_segv]);
	CHECK(!program_action(SIGBUS, &a, NULL));
	CHECK(!CALL(guard, 0) && !w.private->signals);
	sigaction(SIGSEGV, NULL, &now);
	CHECK(now.sa_sigaction == handler3 && now.sa_flags & SA_SIGINFO);
	sigaction(SIGBUS, NULL, &now);
	CHECK(now.sa_handler == handler1 && now.sa_flags & SA_RESTART);
	sigaction(SIGTRAP, NULL, &now);
	CHECK(now.sa_handler == SIG_DFL);
}

/* Runs a system call through a site, a stub whose slot has sigaction_site. rax is the result. The
 * registers that a system call keeps are kept, and so is the red zone. */
static int64_t through_site(const uint8_t *site, uint64_t nr, uint64_t a, uint64_t b, uint64_t c,
			    uint64_t d, bool *ret_kept)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = 0x8888;
	register uint64_t r9 __asm__("r9") = 0x9999;
	register uint64_t r14 __asm__("r14"); /* the bytes of the red zone */
	register uint64_t r15 __asm__("r15");
	uint64_t di = a, si = b, dx = c, cx = (uintptr_t)site, rbx = 0xbbbb, r = nr;

	__asm__ volatile("lea -512(%%rsp), %%rsp\n\t"
			 "movq $0x11111111, -8(%%rsp)\n\t"
			 "movq $0x22222222, -128(%%rsp)\n\t"
			 "std\n\t"
			 "lea 1f(%%rip), %%r13\n\t"
			 "jmp *%%rcx\n"
			 "1:\tcld\n\t"
			 "mov -8(%%rsp), %%r14\n\t"
			 "mov -128(%%rsp), %%r15\n\t"
			 "lea 512(%%rsp), %%rsp"
			 : "+a"(r), "+D"(di), "+S"(si), "+d"(dx), "+c"(cx), "+b"(rbx), "+r"(r10),
			   "+r"(r8), "+r"(r9), "=r"(r14), "=r"(r15)
			 :
			 : "r11", "r13", "memory", "cc");
	*ret_kept = di == a && si == b && dx == c && rbx == 0xbbbb && r10 == d && r8 == 0x8888 &&
		    r9 == 0x9999 && r14 == 0x11111111 && r15 == 0x22222222;
	return (int64_t)r;
}
TEST(test_sigaction_site)
{
	/* lea -128(%rsp), %rsp; call *17(%rip); lea 128(%rsp), %rsp; syscall; jmp *%r13; int3;
	 * slot */
	static const uint8_t stub[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0xff, 0x15, 0x11, 0, 0,
					0,    0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0,    0, 0x0f,
					0x05, 0x41, 0xff, 0xe5, 0xcc, 0xcc, 0xcc, 0xcc };
	struct kernel_action a = action(handler1, SA_RESTART, 0), old;
	uint8_t *at = pages(1);
	uint64_t target = w.base + w.head->entry[WIRE_AGENT_sigaction_site];
	struct sigaction now;
	bool kept;

	memcpy(at, stub, sizeof(stub));
	memcpy(at + 28, &target, 8);
	CHECK(!mprotect(at, PAGE, PROT_READ | PROT_EXEC));
	guarded();
	CHECK(through_site(at, SYS_getpid, 1, 2, 3, 4, &kept) == getpid() && kept);
	CHECK(!through_site(at, SYS_rt_sigaction, SIGSEGV, (uintptr_t)&a, 0, 8, &kept) && kept);
	CHECK(!through_site(at, SYS_rt_sigaction, SIGSEGV, 0, (uintptr_t)&old, 8, &kept) && kept);
	CHECK(old.handler == a.handler && old.flags == a.flags);
	CHECK(through_site(at, SYS_rt_sigaction, SIGSEGV, 8, 0, 8, &kept) == -EFAULT && kept);
	sigaction(SIGSEGV, NULL, &now);
	CHECK((uintptr_t)now.sa_sigaction == w.base + w.head->entry[WIRE_AGENT_segv]);
}

/* --- traps --- */

extern void trap_and_back(void);
__asm__(".text\ntrap_and_back:\n\tint3\n\tret\n");
static volatile int in_stub;
static void stub(void)
{
	in_stub++;
}
static void on_trap(int sig, siginfo_t *info, void *uc)
{
	got_signal = sig;
}
TEST(test_int3)
{
	struct wire_trap *traps = (struct wire_trap *)(w.room + 4096);
	struct kernel_action a = action(on_trap, SA_SIGINFO, 0);
	uint8_t *at = pages(1);
	void (*fn)(void) = (void (*)(void))(uintptr_t)at;

	guarded();
	CHECK(!program_action(SIGTRAP, &a, NULL));
	traps[0] = (struct wire_trap){ 0x1000, 0 };
	traps[1] = (struct wire_trap){ (uintptr_t)trap_and_back, (uintptr_t)stub };
	traps[2] = (struct wire_trap){ ~0ull, 0 };
	w.kept->traps = (uintptr_t)traps;
	w.kept->ntraps = 3;
	trap_and_back();
	CHECK(in_stub == 1 && !got_signal);
	w.kept->ntraps = 1;
	trap_and_back(); /* the program's own */
	CHECK(in_stub == 1 && got_signal == SIGTRAP);
	got_signal = 0;
	memcpy(at, "\xcc\xc3", 2);
	mprotect(at, PAGE, PROT_READ | PROT_EXEC);
	fn();
	CHECK(got_signal == SIGTRAP);
}

/* --- firings and signals, all at once --- */

static struct {
	struct wire_thread *t;
	uint8_t *flaps; /* a page that comes and goes */
	uint64_t fired, skipped, records, dropped, faults, own_faults, last;
	volatile bool stop, sent; /* no more signals are wanted; have been sent */
	sigjmp_buf here;
} storm;

/* What a thunk and a program do. */
static void fire(void)
{
	struct wire_thread *t = storm.t;
	uint64_t *room, *key, r, n;

	if (world_entry(&w, t)->rsp != WIRE_IDLE &&
	    !CALL(nested, (uintptr_t)t, (uintptr_t)__builtin_frame_address(0))) {
		__atomic_fetch_add(&storm.skipped, 1, __ATOMIC_RELAXED);
		return;
	}
	world_entry(&w, t)->rsp = (uintptr_t)__builtin_frame_address(0);
	n = 8 + CALL(prandom) % 200;
	room = (uint64_t *)CALL(ring_reserve, world_map(&w, WORLD_RING), n, 0);
	key = (uint64_t *)(w.room + 1024);
	key[0] = CALL(prandom) % 100;
	key[1] = key[2] = 0;
	if (!CALL(map_lookup, world_map(&w, WORLD_AGG), key))
		CHECK(!CALL(map_update, world_map(&w, WORLD_AGG), key, w.room + 2048, BPF_ANY));
	(*(uint64_t *)CALL(map_lookup, world_map(&w, WORLD_AGG), key))++;
	CHECK(!CALL(map_update, world_map(&w, WORLD_HASH), key, w.room + 2048, BPF_ANY));
	r = CALL(probe_read, w.room, 64, storm.flaps + 100);
	CHECK(!r || (int64_t)r == -EFAULT);
	storm.faults += r != 0;
	CHECK(!CALL(map_delete, world_map(&w, WORLD_HASH), key));
	if (room) {
		room[0] = ++storm.records;
		((uint8_t *)room)[n - 1] = n > 8 ? (uint8_t)n : ((uint8_t *)room)[n - 1];
		CHECK(!CALL(ring_submit, room, 0));
	} else {
		storm.dropped++;
	}
	storm.fired++;
	world_entry(&w, t)->rsp = WIRE_IDLE;
}
static void storm_signal(int sig)
{
	fire();
}
static void storm_segv(int sig, siginfo_t *info, void *uc)
{
	fire();
	storm.own_faults++;
	siglongjmp(storm.here, 1);
}
static void *storm_sender(void *arg)
{
	pid_t tid = *(pid_t *)arg;

	for (int i = 0; !storm.stop; i++) {
		syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		mprotect(storm.flaps, PAGE, i % 2 ? PROT_READ : PROT_NONE);
		for (volatile int k = i % 997; k; k--)
			;
	}
	mprotect(storm.flaps, PAGE, PROT_READ);
	return NULL;
}
static void *storm_consumer(void *arg)
{
	struct wire_ring *r = (struct wire_ring *)((uint8_t *)storm.t + w.maps[WORLD_RING].base);
	uint64_t tail = 0;
	const void *data;
	uint32_t n;

	for (;;) {
		bool last = storm.sent;
		enum ring_next next = ring_next(r, 4096, &tail, false, &data, &n);

		CHECK(next != RING_BROKEN);
		if (next == RING_RECORD) {
			CHECK(n >= 8 && *(const uint64_t *)data == storm.last + 1);
			CHECK(n == 8 || ((const uint8_t *)data)[n - 1] == (uint8_t)n);
			storm.last++;
			ring_consume(r, &tail, n);
		} else if (last) {
			return NULL;
		}
	}
}
static uint64_t storm_counted(void)
{
	uint64_t sum = 0, *v;

	for (uint64_t key = 0; key < 100; key++) {
		*(uint64_t *)(w.room + 1024) = key;
		v = (uint64_t *)CALL(map_lookup, world_map(&w, WORLD_AGG), w.room + 1024);
		sum += v ? *v : 0;
	}
	return sum;
}
TEST(test_storm)
{
	struct kernel_action a = action(storm_segv, SA_SIGINFO | SA_NODEFER, 0);
	struct sigaction sa = { .sa_handler = storm_signal, .sa_flags = SA_RESTART };
	pthread_t sender, consumer;
	pid_t tid = gettid();
	struct timespec start, t;
	int64_t ms;

	storm.flaps = pages(1);
	guarded();
	CHECK(!program_action(SIGSEGV, &a, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	storm.t = world_thread(&w, 1);
	world_entry(&w, storm.t)->rsp = WIRE_IDLE;
	CHECK(!pthread_create(&consumer, NULL, storm_consumer, NULL));
	CHECK(!pthread_create(&sender, NULL, storm_sender, &tid));
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 100; i++)
			fire();
		if (!sigsetjmp(storm.here, 1)) /* a fault of the program's own */
			*(volatile uint8_t *)8 = 1;
		clock_gettime(CLOCK_MONOTONIC, &t);
		ms = (t.tv_sec - start.tv_sec) * 1000 + (t.tv_nsec - start.tv_nsec) / 1000000;
		/* on a busy machine the others get their turn later */
	} while (ms < 700 || (ms < 60000 && (!storm.faults || storm.fired <= 1000)));
	storm.stop = true;
	CHECK(!pthread_join(sender, NULL));
	storm.sent = true;
	CHECK(!pthread_join(consumer, NULL));
	CHECK(storm.last == storm.records && storm.records + storm.dropped == storm.fired);
	CHECK(storm.own_faults && storm.faults && storm.fired > 1000);
	CHECK(storm_counted() == storm.fired && *(uint64_t *)w.maps[WORLD_HASH].used == 0);
}

/* --- many threads --- */

enum { WORKERS = 4 };
static uint8_t *shaky;
static void *worker(void *arg)
{
	struct world own = w;
	uint8_t *dst = w.room + 8192 + (uintptr_t)arg * 256;
	uint64_t bad = 0;

	CHECK(world_thread(&own, (uint64_t)gettid()));
	for (int i = 0; i < 20000; i++) {
		int64_t r;

		world_entry(&own, own.t)->rsp = (uintptr_t)__builtin_frame_address(0);
		r = (int64_t)world_call(&own, WIRE_AGENT_probe_read, (uintptr_t)dst, 64,
					(uintptr_t)shaky + 32, 0);
		CHECK(r == 0 || r == -EFAULT);
		bad += r != 0;
		CHECK(dst[0] == (r ? 0 : 7) && dst[63] == (r ? 0 : 7));
	}
	return (void *)(uintptr_t)bad;
}
/* One mapping comes and goes while other threads read there and query their own signal actions. */
TEST(test_threads)
{
	pthread_t th[WORKERS];
	struct kernel_action a = action(handler3, SA_SIGINFO, 0), old;

	shaky = pages(1);
	memset(shaky, 7, PAGE);
	guarded();
	for (uintptr_t i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&th[i], NULL, worker, (void *)i));
	for (int i = 0; i < 300; i++) {
		mprotect(shaky, PAGE, i % 2 ? PROT_READ : PROT_NONE);
		CHECK(!program_action(SIGSEGV, &a, &old));
		CHECK(!i || old.handler == (uintptr_t)handler3);
		usleep(100);
	}
	mprotect(shaky, PAGE, PROT_READ);
	for (int i = 0; i < WORKERS; i++)
		CHECK(!pthread_join(th[i], NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain_siginfo), cmocka_unit_test(test_chain_altstack),
		cmocka_unit_test(test_chain_sent),    cmocka_unit_test(test_death),
		cmocka_unit_test(test_guard_off),     cmocka_unit_test(test_sigaction_site),
		cmocka_unit_test(test_int3),          cmocka_unit_test(test_storm),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
