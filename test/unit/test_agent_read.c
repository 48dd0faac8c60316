/* The agent's blob in a process that is laid out as a traced one: reads of memory and stacks. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "agent_child.h"

static volatile sig_atomic_t caught;

/* --- reads --- */

/* The same in every mode: with faults survived, with system calls, and where those are refused. */
static void read_all(void)
{
	uint8_t *p = pages(3), *dst = w.room;
	const char *text = "a string of 25 characters";

	munmap(p + 2 * PAGE, PAGE);
	for (int i = 0; i < 2 * PAGE; i++)
		p[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t n = 0; n < 70; n++) {
		memset(dst, 0xcc, 80);
		CHECK(!CALL(probe_read, dst, n, p + 2 * PAGE - n)); /* up to the page's end */
		CHECK(!memcmp(dst, p + 2 * PAGE - n, n) && dst[n] == 0xcc);
		CHECK(!CALL(probe_read, dst, n, p + PAGE - n / 2));
		CHECK(!memcmp(dst, p + PAGE - n / 2, n) && dst[n] == 0xcc);
		memset(dst, 0xcc, 80);
		CHECK((int64_t)CALL(probe_read, dst, n + 1, p + 2 * PAGE - n) == -EFAULT);
		for (uint32_t i = 0; i <= n; i++)
			CHECK(!dst[i]);
		CHECK(dst[n + 1] == 0xcc);
	}
	CHECK((int64_t)CALL(probe_read, dst, 8, 0) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 1) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, -8) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 0x8000000000000000ull) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 0xffff888000000000ull) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, 0x7fffffffeffcull) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 16384, p) == -EFAULT);

	for (uint32_t at = 0; at < 40; at++) { /* strings, also those that end with the page */
		memset(dst, 0xcc, 80);
		memcpy(p + 2 * PAGE - 26 - at, text, 26);
		CHECK(CALL(probe_read_str, dst, 64, p + 2 * PAGE - 26 - at) == 26);
		CHECK(!memcmp(dst, text, 26));
		CHECK(CALL(probe_read_str, dst, 10, p + 2 * PAGE - 26 - at) == 10);
		CHECK(!memcmp(dst, text, 9) && !dst[9]);
		memcpy(p + PAGE - at, text, 26);
		CHECK(CALL(probe_read_str, dst, 64, p + PAGE - at) == 26 && !memcmp(dst, text, 26));
	}
	memset(p, 'x', 2 * PAGE); /* no NUL before the end of what is mapped */
	memset(dst, 0xcc, 80);
	CHECK((int64_t)CALL(probe_read_str, dst, 64, p + 2 * PAGE - 20) == -EFAULT);
	for (int i = 0; i < 64; i++)
		CHECK(!dst[i]);
	CHECK(dst[64] == 0xcc);
	CHECK(CALL(probe_read_str, dst, 20, p + 2 * PAGE - 20) == 20 && dst[18] == 'x' && !dst[19]);
	CHECK(CALL(probe_read_str, dst, 0, p) == 0);
	CHECK((int64_t)CALL(probe_read_str, dst, 64, 0) == -EFAULT);
	CHECK(CALL(probe_read_str, dst, 1, p) == 1 && !dst[0]);
	p[5] = 0;
	CHECK(CALL(probe_read_str, dst, 6, p) == 6 && CALL(probe_read_str, dst, 5, p) == 5);

	/* where a program must not write */
	w.t->violations = 0;
	CHECK((int64_t)CALL(probe_read, p, 8, p) == -EFAULT && w.t->violations == 1 && p[0] == 'x');
	CHECK((int64_t)CALL(probe_read_str, p, 8, p) == -EFAULT && w.t->violations == 2);
	CHECK((int64_t)CALL(probe_read, (uint8_t *)w.area + w.area->span - 4, 8, p) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, world_entry(&w, w.t)->rsp, 8, p) == -EFAULT);
	CHECK(!CALL(probe_read, (uintptr_t)world_own(&w, w.t) - 64, 8, p)); /* the probe stack */
	CHECK(!CALL(probe_write, p, dst, 4));
	CHECK((int64_t)CALL(probe_write, 8, dst, 4) == -EFAULT);
	munmap(p, 2 * PAGE);
}

TEST(test_read_exact)
{
	CHECK(world_thread(&w, 1));
	read_all();
	CHECK(!w.kept->no_vm_read);
}
TEST(test_read_asking) /* process_vm_readv(2) refused */
{
	CHECK(world_thread(&w, 1));
	w.kept->no_vm_read = 1;
	read_all();
}
TEST(test_read_guarded)
{
	guarded();
	CHECK(world_thread(&w, 1));
	read_all(); /* mapped since: not in the list of ranges */
	CHECK(w.said->ranges_wanted);
}

/* Known ranges that no longer exist: the agent's handler ends the read. */
TEST(test_read_stale)
{
	uint8_t *p = pages(2), *dst = w.room;
	FILE *f = tmpfile();
	uint8_t *m;

	CHECK(f && !ftruncate(fileno(f), 2 * PAGE));
	m = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fileno(f), 0);
	CHECK(m != MAP_FAILED);
	strcpy((char *)p + PAGE - 4, "long enough");
	guarded();
	CHECK(world_thread(&w, 1));
	CHECK(!CALL(probe_read, dst, 8, p) && !CALL(probe_read, dst, 8, m));
	CHECK(!w.said->ranges_wanted && world_own(&w, w.t)->range_hi);
	munmap(p + PAGE, PAGE);
	CHECK((int64_t)CALL(probe_read, dst, 8, p + PAGE) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 16, p + PAGE - 8) == -EFAULT && !dst[0]);
	CHECK((int64_t)CALL(probe_read_str, dst, 16, p + PAGE - 4) == -EFAULT && !dst[0]);
	CHECK(w.said->ranges_wanted);
	CHECK(!ftruncate(fileno(f), PAGE)); /* SIGBUS */
	CHECK((int64_t)CALL(probe_read, dst, 8, m + PAGE) == -EFAULT);
	CHECK(!CALL(probe_read, dst, 8, m));
	mprotect(p, PAGE, PROT_NONE);
	for (int i = 0; i < 300; i++)
		CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
}

/* With the signal blocked, or with a handler of the program, a fault would end the process. */
TEST(test_read_blocked)
{
	uint8_t *p = pages(1), *dst = w.room;
	sigset_t set;

	guarded();
	CHECK(world_thread(&w, 1));
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, NULL);
	munmap(p, PAGE);
	CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
	CHECK(world_own(&w, w.t)->unsafe);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	for (int i = 0; i < 20; i++)
		CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
	CHECK(!world_own(&w, w.t)->unsafe);
	signal(SIGSEGV, SIG_DFL); /* without the reader's knowledge */
	world_own(&w, w.t)->checks = 0;
	CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT);
	CHECK(world_own(&w, w.t)->unsafe);
}

static void *stack_of(void *arg)
{
	struct world own = w;
	struct wire_thread *t = world_thread(&own, (uint64_t)gettid());
	uint64_t fs;

	__asm__("mov %%fs:0x10, %0" : "=r"(fs));
	CHECK(t && world_own(&w, t)->stack_lo < world_entry(&w, t)->rsp &&
	      world_own(&w, t)->stack_hi > world_entry(&w, t)->rsp &&
	      world_own(&w, t)->stack_hi <= fs);
	CHECK(!world_call(&own, WIRE_AGENT_probe_read, (uintptr_t)w.room, 8, fs - 64, 0));
	return NULL;
}
/* A thread's stack ends where its block begins, though its mapping goes on. */
TEST(test_stack_range)
{
	uint8_t *p =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t th;

	CHECK(p != MAP_FAILED);
	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstack(&attr, p, 60 * PAGE));
	guarded();
	CHECK(!pthread_create(&th, &attr, stack_of, NULL) && !pthread_join(th, NULL));
}

/* A firing in a handler on the signal stack: the frame of a fault would be written over that
 * handler. */
static uint8_t *gone;
static void on_alt(int sig)
{
	uint8_t here[4096];

	memset(here, 0x5a, sizeof(here));
	world_entry(&w, w.t)->rsp = (uintptr_t)here - 1024;
	world_own(&w, w.t)->checks = 0;
	world_own(&w, w.t)->unsafe = 0;
	world_own(&w, w.t)->range_lo = world_own(&w, w.t)->range_hi = 0;
	caught = (int64_t)CALL(probe_read, w.room, 8, gone) == -EFAULT &&
				 world_own(&w, w.t)->range_hi == 0
			 ? 1
			 : 2;
	for (unsigned i = 0; i < sizeof(here); i++)
		if (here[i] != 0x5a)
			caught = 3;
}
TEST(test_read_on_signal_stack)
{
	stack_t st = { .ss_sp = pages(32), .ss_size = 32 * PAGE };
	struct sigaction sa = { .sa_handler = on_alt, .sa_flags = SA_ONSTACK };

	gone = pages(1);
	CHECK(!sigaltstack(&st, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	guarded();
	CHECK(world_thread(&w, 1));
	munmap(gone, PAGE);
	raise(SIGUSR1);
	CHECK(caught == 1);
}

/* --- stacks --- */

TEST(test_get_stack)
{
	uint64_t *frames = (uint64_t *)w.room, regs[21] = { 0 }, chain[8] = { 0 };
	int modes;

	guarded();
	CHECK(world_thread(&w, 1));
	chain[0] = (uintptr_t)&chain[2];
	chain[1] = 0x1001;
	chain[2] = (uintptr_t)&chain[4];
	chain[3] = 0x1002;
	chain[4] = 8; /* leads nowhere */
	chain[5] = 0x1003;
	CHECK((int64_t)CALL(get_stack, 0, frames, 64, BPF_F_USER_STACK) ==
	      -EFAULT); /* no registers */
	world_own(&w, w.t)->regs = (uintptr_t)regs;
	regs[16] = 0x1000;
	regs[4] = (uintptr_t)chain;
	for (modes = 0; modes < 2; modes++) {
		memset(frames, 0xff, 128);
		CHECK(CALL(get_stack, 0, frames, 64, BPF_F_USER_STACK) == 32);
		CHECK(frames[0] == 0x1000 && frames[1] == 0x1001 && frames[3] == 0x1003 &&
		      !frames[4] && !frames[7]);
		CHECK(frames[8] == ~0ull);
		CHECK(CALL(get_stack, 0, frames, 16, BPF_F_USER_STACK) == 16);
		CHECK(CALL(get_stack, 0, frames, 16, BPF_F_USER_STACK | 2) == 16);
		CHECK(frames[0] == 0x1002 && frames[1] == 0x1003);
		CHECK((int64_t)CALL(get_stack, 0, frames, 64, 0) == -EFAULT);
		CHECK((int64_t)CALL(get_stack, 0, &w, 64, BPF_F_USER_STACK) == -EFAULT);
		CHECK((int64_t)CALL(get_stack, 0, world_map(&w, WORLD_AGG), BPF_F_USER_STACK,
				    BPF_F_USER_STACK) == -EFAULT);
		chain[4] = (uintptr_t)&chain[4]; /* a loop ends */
		CHECK(CALL(get_stack, 0, frames, 64, BPF_F_USER_STACK) == 32);
		chain[4] = 8;
		w.area->reads_guarded = 0;
		world_own(&w, w.t)->stack_lo = world_own(&w, w.t)->stack_hi = 0;
	}
}

/* The tracer runs D programs too, on slot 0. An address that it is given is a traced process's to
 * choose: its own memory is neither read nor written by it. */
TEST(test_read_in_tracer)
{
	uint8_t *dst = w.room, *p = pages(1);
	struct wire_thread *t = (struct wire_thread *)w.area->threads;
	uint64_t secret = 0x5ec2e7;
	char *text = (char *)w.room + 256;

	guarded();
	CHECK(world_thread(&w, 1));
	memcpy(p, "secret", 7);
	CHECK(!CALL(probe_read, dst, 8, p) && CALL(probe_read_str, dst, 8, p) == 7);
	world_entry(&w, t)->rsp = (uintptr_t)world_own(&w, t);
	w.t = t;
	CHECK((int64_t)CALL(probe_read, dst, 8, p) == -EFAULT && !dst[0]);
	CHECK((int64_t)CALL(probe_read, dst, 8, &secret) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, (uintptr_t)world_own(&w, t) - 64) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, w.private) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, w.head) == -EFAULT);
	CHECK((int64_t)CALL(probe_read_str, dst, 8, p) == -EFAULT);
	CHECK((int64_t)CALL(probe_read, dst, 8, (uint64_t)w.area + w.area->span - 4) == -EFAULT);
	CHECK((int64_t)CALL(probe_write, p, dst, 4) == -EFAULT && !strcmp((char *)p, "secret"));
	CHECK((int64_t)CALL(probe_write, &secret, dst, 4) == -EFAULT && secret == 0x5ec2e7);
	/* facts and D's own memory */
	strcpy(text, "mine");
	CHECK(CALL(probe_read_str, dst, 8, text) == 5 && !strcmp((char *)dst, "mine"));
	CHECK(!CALL(probe_read, dst, 8, w.area) && !memcmp(dst, &w.area->magic, 8));
	CHECK(t->violations == 0);
}

/* Programs whose reads of kernel memory must not read the process's. */
TEST(test_read_own)
{
	uint8_t *dst = w.room, *p = pages(1);
	char *text = (char *)w.room + 256;

	guarded();
	CHECK(world_thread(&w, 1));
	memcpy(p, "secret", 7);
	strcpy(text, "mine");
	CHECK((int64_t)CALL(read_own, dst, 8, p) == -EFAULT && !dst[0]);
	CHECK((int64_t)CALL(read_own_str, dst, 8, p) == -EFAULT && !dst[0]);
	CHECK((int64_t)CALL(read_own, dst, 8, (uint64_t)w.area + w.area->span - 4) == -EFAULT);
	CHECK((int64_t)CALL(read_own, dst, 8, w.private) == -EFAULT);
	CHECK(!CALL(read_own, dst, 8, w.area) && !memcmp(dst, &w.area->magic, 8));
	CHECK(CALL(read_own_str, dst, 8, text) == 5 && !strcmp((char *)dst, "mine"));
	w.area->together = 1; /* stand-ins are private, then */
	w.area->event = 1024;
	text = (char *)world_own(&w, w.t) - WIRE_EVENT_BELOW + 1000;
	strcpy(text, "task");
	CHECK(CALL(read_own_str, dst, 8, text) == 5 && !strcmp((char *)dst, "task"));
	CHECK(!CALL(probe_read, dst, 8, text) && !memcmp(dst, "task", 5));
	CHECK((int64_t)CALL(read_own, dst, 8, text + 20) == -EFAULT);
}

TEST(test_read_sandboxed)
{
	deny_open();
	CHECK(world_thread(&w, 1));
	read_all();
	CHECK(w.kept->no_vm_read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_exact),
		cmocka_unit_test(test_read_asking),
		cmocka_unit_test(test_read_guarded),
		cmocka_unit_test(test_read_stale),
		cmocka_unit_test(test_read_blocked),
		cmocka_unit_test(test_stack_range),
		cmocka_unit_test(test_read_on_signal_stack),
		cmocka_unit_test(test_read_own),
		cmocka_unit_test(test_read_sandboxed),
		cmocka_unit_test(test_read_in_tracer),
		cmocka_unit_test(test_get_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
