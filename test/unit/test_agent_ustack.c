/* agent_ustack on stacks of this process: beside d_ustack's bytecode in the interpreter, which must
 * give the same words, and libdw's walk of a forked copy that stands at the same place. */
#define _GNU_SOURCE
#include "unit.h"

#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/map.h"
#include "agent_link.h"
#include "agent_world.h"
#include "base/mem.h"
#include "data/image.h"
#include "insn.h"
#include "isa/interp.h"
#include "libdw_stack.h"
#include "load/link.h"
#include "program/unwind/unwind.h"
#include "wire/offsets.h"
#include "wire/wire_unwind.h"

enum {
	CHUNKS,
	PROCESSES,
	WANTED,
	FD = 1000,    /* what a map is to the interpreter */
	INNER = 5000, /* and a chunk */
	DEPTH_MAX = 200,
	REGS = 21,
};
enum { CURRENT_TASK = 35, CURRENT_TASK_BTF = 158, TASK_PT_REGS = 175 };

static struct world w;
static struct unwind_store *store;
static struct wire_unwind_process own; /* the interpreter's */
static struct linked linked;
static uint64_t regs[REGS] __attribute__((aligned(16)));
static uint64_t fired_at; /* the stack pointer, whatever regs say */
static struct wire_walk theirs;
static struct wire_unwind_offsets none;
static struct args {
	uint64_t walk, offsets;
} args;

static struct {
	uint32_t walks, frames, libdw, deepest;
} seen;

/* --- tables --- */

static uint32_t *chunk_words(uint64_t chunk)
{
	const uint64_t *inner = (const uint64_t *)w.maps[WORLD_UNWIND].base;
	const struct wire_map *m = chunk < w.maps[WORLD_UNWIND].max_entries
					   ? (const struct wire_map *)inner[chunk]
					   : NULL;

	return m ? (uint32_t *)m->base : NULL;
}

static struct err *put_chunk(void *arg, uint32_t chunk, const uint32_t *words)
{
	uint64_t *inner = (uint64_t *)w.maps[WORLD_UNWIND].base;
	uint32_t size = WIRE_UNWIND_CHUNK_WORDS * 4;

	assert_true(chunk < w.maps[WORLD_UNWIND].max_entries);
	w.area->unwind_version++;
	if (!inner[chunk]) {
		struct wire_map *m = (struct wire_map *)world_facts(&w, sizeof(*m));

		*m = (struct wire_map){ .kind = WIRE_MAP_ARRAY,
					.key_size = 4,
					.value_size = size,
					.stride = size,
					.max_entries = 1,
					.base = world_facts(&w, size),
					.index = UINT32_MAX };
		inner[chunk] = (uintptr_t)m;
	}
	memcpy(chunk_words(chunk), words, size);
	w.area->unwind_version++;
	return NULL;
}

static struct err *put_process(void *arg, uint32_t pid, const struct wire_unwind_process *p)
{
	assert_int_equal(pid, getpid());
	own = *p;
	w.area->unwind_version += 2;
	((struct wire_unwind_process *)w.area->unwinds)[1] = *p;
	return NULL;
}

static void del_process(void *arg, uint32_t pid)
{
}

static void no_error(struct err *e)
{
	if (e)
		fail_msg("%s", e->text);
}

/* --- the interpreter --- */

static bool resolve(struct interp *in, const struct bpf_insn *insn, uint64_t *ret)
{
	*ret = (uint64_t)(uint32_t)insn->imm + FD;
	return insn->src_reg == BPF_PSEUDO_MAP_FD;
}

static uint64_t read_any(struct interp *in, const uint64_t a[5])
{
	uint64_t n = (uint32_t)a[1];
	void *to = interp_bytes(in, a[0], n, true);
	struct iovec dst = { to, n }, src = { (void *)a[2], n };

	if (!to)
		return 0;
	if (process_vm_readv(getpid(), &dst, 1, &src, 1, 0) == (ssize_t)n)
		return 0;
	memset(to, 0, n);
	return (uint64_t)-EFAULT;
}

static uint64_t helper(struct interp *in, uint32_t id, const uint64_t a[5])
{
	uint64_t r0, next[5] = { 0, a[2] };
	const uint32_t *key;

	switch (id) {
	case BPF_FUNC_loop:
		for (uint64_t i = 0; i < (uint32_t)a[0]; i++) {
			next[0] = i;
			if (!interp_call(in, a[1], next, &r0))
				return 0;
			if (r0)
				return i + 1;
		}
		return (uint32_t)a[0];
	case BPF_FUNC_get_current_pid_tgid: return (uint64_t)getpid() << 32 | (uint32_t)gettid();
	case BPF_FUNC_get_smp_processor_id: return 0;
	case CURRENT_TASK:
	case CURRENT_TASK_BTF: return 0;
	case TASK_PT_REGS: return (uintptr_t)regs;
	case BPF_FUNC_probe_read_user:
	case BPF_FUNC_probe_read_kernel: return read_any(in, a);
	case BPF_FUNC_ringbuf_output: return 0;
	case BPF_FUNC_map_update_elem: return (uint64_t)-E2BIG;
	case BPF_FUNC_map_lookup_elem:
		key = interp_bytes(in, a[1], 4, false);
		if (!key)
			return 0;
		if (a[0] >= INNER)
			return *key ? 0 : (uintptr_t)chunk_words(a[0] - INNER);
		if (a[0] == FD + CHUNKS)
			return chunk_words(*key) ? INNER + *key : 0;
		if (a[0] == FD + PROCESSES)
			return *key == (uint32_t)getpid() && own.mappings ? (uintptr_t)&own : 0;
	}
	interp_fail(in, "helper %u", id);
	return 0;
}

static void link_routine(void)
{
	struct bpf_insn p[] = {
		ALU64_REG(MOV, 6, 1),
		LD64(1, 0, 0),
		LD64(2, 0, 0),
		LD64(3, 0, 0),
		LDX(DW, 4, 6, offsetof(struct args, walk)),
		LDX(DW, 5, 6, offsetof(struct args, offsets)),
		INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, -1),
		EXIT(),
	};
	struct reloc relocs[] = {
		{ .insn = 1, .kind = RELOC_MAP, .target = CHUNKS },
		{ .insn = 3, .kind = RELOC_MAP, .target = PROCESSES },
		{ .insn = 5, .kind = RELOC_MAP, .target = WANTED },
		{ .insn = 9, .kind = RELOC_ROUTINE, .name = "d_ustack" },
	};
	world_link(p, ARRAY_SIZE(p), relocs, ARRAY_SIZE(relocs), &linked);
}

static int64_t interpreted(uint32_t max)
{
	static const struct interp_ops ops = { .helper = helper, .resolve = resolve };
	struct interp_mem mem = { 0 };
	struct interp in;
	uint64_t r0 = 0;

	memset(&theirs, 0, sizeof(theirs));
	theirs.stack.n = max;
	args = (struct args){ (uintptr_t)&theirs, (uintptr_t)&none };
	interp_mem_add(&mem, &args, sizeof(args), true);
	interp_mem_add(&mem, &theirs, sizeof(theirs), true);
	interp_mem_add(&mem, &none, sizeof(none), false);
	interp_mem_add(&mem, &own, sizeof(own), true);
	interp_mem_add(&mem, regs, sizeof(regs), false);
	for (uint64_t i = 0; i < w.maps[WORLD_UNWIND].max_entries; i++)
		if (chunk_words(i))
			interp_mem_add(&mem, chunk_words(i), WIRE_UNWIND_CHUNK_WORDS * 4, false);
	interp_init(&in, &ops, NULL, linked.insns, linked.ninsns, &mem);
	in.budget = 50000000;
	no_error(interp_run(&in, 0, (uintptr_t)&args, &r0));
	interp_fini(&in);
	interp_mem_fini(&mem);
	return (int64_t)r0;
}

/* --- libdw --- */

/* Of a copy of this process that is stopped below the caller. */
static void by_libdw(struct frames *ret)
{
	pid_t pid = fork();
	int st;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFSTOPPED(st));
	libdw_stack(pid, ret);
	kill(pid, SIGKILL);
	waitpid(pid, &st, 0);
}

/* --- both --- */

static void fill_regs(const ucontext_t *u)
{
	static const int order[] = { REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP,
				     REG_RBX, REG_R11, REG_R10, REG_R9,  REG_R8,
				     REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI };

	memset(regs, 0, sizeof(regs));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		regs[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
	regs[16] = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	regs[17] = 0x33;
	regs[19] = (uint64_t)u->uc_mcontext.gregs[REG_RSP];
	regs[20] = 0x2b;
	fired_at = regs[19];
}

static int64_t by_agent(struct wire_walk *walk, uint32_t max)
{
	int64_t (*fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, struct wire_thread *);
	uintptr_t at = w.base + w.head->entry[WIRE_AGENT_ustack];

	memcpy(&fn, &at, sizeof(fn));
	memset(walk, 0, sizeof(*walk));
	walk->stack.n = max;
	world_own(&w, w.t)->regs = (uintptr_t)regs;
	world_entry(&w, w.t)->rsp = fired_at;
	return fn(world_map(&w, WORLD_UNWIND), world_map(&w, WORLD_UNWIND_PROCESSES),
		  world_map(&w, WORLD_UNWIND_WANTED), (uintptr_t)walk, (uintptr_t)&none, w.t);
}

static void same(uint32_t max)
{
	struct wire_walk *walk = (struct wire_walk *)w.room;
	int64_t want = interpreted(max), got = by_agent(walk, max);

	if (got != want)
		print_message("pc %#lx sp %#lx bp %#lx: %ld bytes and %u, %ld and %u\n",
			      (unsigned long)regs[16], (unsigned long)regs[19],
			      (unsigned long)regs[4], (long)got, walk->stack.end, (long)want,
			      theirs.stack.end);
	assert_int_equal(got, want);
	assert_int_equal(walk->stack.n, theirs.stack.n);
	assert_int_equal(walk->stack.end, theirs.stack.end);
	if (want > 0)
		assert_memory_equal(walk->stack.pc, theirs.stack.pc, (size_t)want);
	seen.walks++;
	seen.frames += got > 0 ? (uint32_t)got / 8 : 0;
	if (got > 0 && (uint32_t)got / 8 > seen.deepest)
		seen.deepest = (uint32_t)got / 8;
}

/* Compares with libdw, from the caller of the function that has these registers. */
static void as_libdw(uint32_t max)
{
	const struct wire_walk *walk = (const struct wire_walk *)w.room;
	static struct frames f;
	uint32_t at = 0, n;
	int64_t got = by_agent((struct wire_walk *)w.room, max);

	assert_true(got >= 16);
	n = (uint32_t)got / 8;
	by_libdw(&f);
	while (at < f.n && f.pc[at] != walk->stack.pc[1])
		at++;
	assert_true(at < f.n);
	for (uint32_t i = 1; i < n && at + i - 1 < f.n; i++)
		assert_int_equal(walk->stack.pc[i], f.pc[at + i - 1]);
	if (n < max) /* it came to the end */
		assert_int_equal(f.n - at, n - 1);
	seen.libdw++;
}

/* Walks the caller's stack: with an empty cache, without the cache, with a filled cache, and with
 * new tables. */
static __attribute__((noinline)) void look(const ucontext_t *u, bool libdw)
{
	static const uint32_t counts[] = { WIRE_STACK_FRAMES, 1, 2, 3, 16, 63 };

	fill_regs(u);
	world_own(&w, w.t)->stack_lo = world_own(&w, w.t)->stack_hi = 0;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		same(counts[i]);
	world_own(&w, w.t)->stack_lo = regs[19] & ~4095ull;
	world_own(&w, w.t)->stack_hi = (regs[19] | 4095) + 1;
	same(WIRE_STACK_FRAMES);
	w.area->unwind_version += 2;
	same(WIRE_STACK_FRAMES);
	same(16);
	if (libdw)
		as_libdw(WIRE_STACK_FRAMES);
}

#define LOOK(libdw) \
	do { \
		ucontext_t u_; \
		getcontext(&u_); \
		look(&u_, libdw); \
		__asm__ volatile(""); \
	} while (0)

/* --- scenes --- */

static volatile int sink;

static __attribute__((noipa)) int recurse(int n, bool libdw)
{
	if (n)
		sink = recurse(n - 1, libdw);
	else
		LOOK(libdw);
	return n;
}

/* A frame whose size is only known at run time. The walk finds it by its frame pointer. */
static __attribute__((noipa)) int variable(int n, int size)
{
	volatile char *p = alloca((size_t)size);

	p[0] = 1;
	if (n)
		sink = variable(n - 1, size * 2 + 16);
	else
		LOOK(true);
	return p[0];
}

static int compare(const void *a, const void *b)
{
	static int once;

	if (!once++)
		LOOK(true);
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int sig)
{
	LOOK(false);
}

static void on_other_stack(int sig)
{
	recurse(3, false);
}

static void *in_thread(void *arg)
{
	/* in the slot of the first thread, which stands still meanwhile */
	recurse(5, false);
	return NULL;
}

static void test_calls(void **state)
{
	for (int n = 0; n < 40; n += 13)
		recurse(n, true);
	recurse(DEPTH_MAX, false); /* deeper than a stack is kept */
	variable(6, 24);
	assert_int_equal(seen.deepest, WIRE_STACK_FRAMES);
}

static void test_library(void **state)
{
	int v[] = { 5, 3, 9, 1, 7, 2, 8 };

	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), compare);
	assert_int_equal(v[0], 1);
}

static void test_signals(void **state)
{
	static char stack[65536];
	stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) },
		off = { .ss_flags = SS_DISABLE };
	struct sigaction sa = { .sa_handler = on_other_stack, .sa_flags = SA_ONSTACK };
	uint32_t before = seen.walks;

	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	assert_int_equal(sigaltstack(&alt, NULL), 0);
	sigaction(SIGUSR2, &sa, NULL);
	raise(SIGUSR2);
	sigaltstack(&off, NULL);
	assert_true(seen.walks > before + 10);
}

static void test_threads(void **state)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, in_thread, NULL), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
}

/* Registers that lead nowhere: both end alike, and nothing is touched. */
static void test_wrong_registers(void **state)
{
	static const uint64_t bad[] = { 0,
					8,
					4095,
					1ull << 40,
					0x7ffffffff000ull,
					0xdeadbeefdeadbeefull,
					~0ull,
					0x8000000000000000ull };
	ucontext_t u;
	uint64_t good[REGS];

	getcontext(&u);
	fill_regs(&u);
	memcpy(good, regs, sizeof(good));
	world_own(&w, w.t)->stack_lo = world_own(&w, w.t)->stack_hi = 0;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		for (int which = 0; which < 3; which++) {
			memcpy(regs, good, sizeof(regs));
			regs[which == 0 ? 16 : which == 1 ? 19 : 4] = bad[i];
			same(WIRE_STACK_FRAMES);
		}
		memcpy(regs, good, sizeof(regs));
		regs[19] += i;
		same(WIRE_STACK_FRAMES);
	}
	memcpy(regs, good, sizeof(regs));
	regs[17] = 0x10; /* the kernel's */
	same(16);
	assert_int_equal(((const struct wire_walk *)w.room)->stack.n, 0);
}

/* A process without tables is walked by frame pointer. */
static void test_no_tables(void **state)
{
	struct wire_unwind_process kept = own;

	no_error(put_process(NULL, (uint32_t)getpid(), &(struct wire_unwind_process){ 0 }));
	recurse(3, false);
	no_error(put_process(NULL, (uint32_t)getpid(), &kept));
	recurse(3, true);
}

/* A process that the tables do not have yet, whose stand-in for struct task_struct has an
 * mm_struct. */
static void test_too_new(void **state)
{
	uint64_t mm[64] = { 0 }, task = (uintptr_t)mm;
	struct wire_walk *walk = (struct wire_walk *)w.room;
	struct wire_unwind_process kept = own;
	const struct wire_unwind_offsets before = none;
	ucontext_t u;

	no_error(put_process(NULL, (uint32_t)getpid(), &(struct wire_unwind_process){ 0 }));
	memset(&none, 0, sizeof(none));
	world_own(&w, w.t)->task = (uintptr_t)&task;
	getcontext(&u);
	fill_regs(&u);
	for (int i = 0; i < 3; i++) {
		assert_true(by_agent(walk, WIRE_STACK_FRAMES) >= 8);
		assert_int_equal(walk->stack.end, WIRE_UNWIND_END_NOT_LOADED + 1);
	}
	world_own(&w, w.t)->task = 0;
	none = before;
	no_error(put_process(NULL, (uint32_t)getpid(), &kept));
	recurse(3, true);
}

/* No word that another process may write decides which tables are this process's. */
static void test_others_write(void **state)
{
	const uint32_t pid = w.t->pid;

	w.t->pid = pid + 1;
	memset((void *)w.maps[WORLD_UNWIND_PROCESSES].base, 0xff,
	       w.maps[WORLD_UNWIND_PROCESSES].buckets * w.maps[WORLD_UNWIND_PROCESSES].stride);
	recurse(3, true);
	w.t->pid = pid;
	memset((void *)w.maps[WORLD_UNWIND_PROCESSES].base, 0,
	       w.maps[WORLD_UNWIND_PROCESSES].buckets * w.maps[WORLD_UNWIND_PROCESSES].stride);
}

/* The walks keep nothing but frames where a process with fewer rights may write. */
static void test_walk_state(void **state)
{
	struct wire_walk *walk = (struct wire_walk *)w.room;
	uintptr_t at = w.base + w.head->entry[WIRE_AGENT_language];
	int64_t (*fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, struct wire_thread *);
	ucontext_t u;

	memcpy(&fn, &at, sizeof(fn));
	memset(walk, 0x5a, sizeof(*walk));
	walk->stack.n = 3;
	assert_int_equal(fn(world_map(&w, WORLD_UNWIND), world_map(&w, WORLD_UNWIND_PROCESSES),
			    world_map(&w, WORLD_UNWIND_WANTED), (uintptr_t)walk, (uintptr_t)&none,
			    w.t),
			 3 * 8);
	for (size_t i = 0; i < sizeof(walk->state); i++)
		assert_int_equal(((const uint8_t *)walk->state)[i], 0x5a);
	getcontext(&u);
	fill_regs(&u);
	assert_true(by_agent(walk, WIRE_STACK_FRAMES) >= 8); /* begins with zeros there */
	for (size_t i = 0; i < sizeof(walk->state); i++)
		assert_int_equal(((const uint8_t *)walk->state)[i], 0);
}

/* The upper part of the range around the stack has been unmapped, and the frame pointer leads
 * there. */
static void test_unmapped_stack(void **state)
{
	enum { PAGE = 4096 };
	uint8_t *p =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wire_unwind_process kept = own;

	assert_true(p != MAP_FAILED);
	assert_int_equal(world_call(&w, WIRE_AGENT_guard, 7, 0, 0, 0), 0);
	no_error(put_process(NULL, (uint32_t)getpid(), &(struct wire_unwind_process){ 0 }));
	memset(regs, 0, sizeof(regs));
	regs[4] = (uintptr_t)p + PAGE + 64;
	regs[16] = (uintptr_t)test_unmapped_stack;
	regs[17] = 0x33;
	regs[19] = fired_at = (uintptr_t)p + PAGE - 64;
	world_own(&w, w.t)->stack_lo = (uintptr_t)p;
	world_own(&w, w.t)->stack_hi = (uintptr_t)p + 2 * PAGE;
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	same(WIRE_STACK_FRAMES);
	assert_int_equal(((const struct wire_walk *)w.room)->stack.n, 1);
	munmap(p, PAGE);
	world_own(&w, w.t)->stack_lo = world_own(&w, w.t)->stack_hi = 0;
	no_error(put_process(NULL, (uint32_t)getpid(), &kept));
}

static int set_up(void **state)
{
	static const struct unwind_store_ops ops = { put_chunk, put_process, del_process };
	uint32_t *zeros = xcalloc(WIRE_UNWIND_CHUNK_WORDS, 4);

	world_make(&w);
	assert_non_null(world_thread(&w, 4711));
	memset(&none, 0xff, sizeof(none));
	link_routine();
	no_error(put_chunk(NULL, 0, zeros));
	free(zeros);
	store = unwind_store_new(&ops, NULL);
	no_error(unwind_store_add(store, getpid()));
	assert_true(own.n > 0);
	return 0;
}

static int tear_down(void **state)
{
	print_message("%u walks, %u frames, %u against libdw\n", seen.walks, seen.frames,
		      seen.libdw);
	unwind_store_free(store);
	linked_free(&linked);
	return seen.walks > 100 && seen.libdw >= 6 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),           cmocka_unit_test(test_library),
		cmocka_unit_test(test_signals),         cmocka_unit_test(test_threads),
		cmocka_unit_test(test_wrong_registers), cmocka_unit_test(test_no_tables),
		cmocka_unit_test(test_too_new),         cmocka_unit_test(test_others_write),
		cmocka_unit_test(test_unmapped_stack),  cmocka_unit_test(test_walk_state),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
