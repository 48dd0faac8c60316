#define _GNU_SOURCE
/* The compiler of the in-process engine: firings that end in the thunk's shortcut, and those that
 * go on to the whole program. A program that calls the agent leaves its registers' address in
 * struct wire_own, so a mark there tells both apart. */
#include "jit_fire.h"

#include <signal.h>
#include <ucontext.h>

#include "compile/jit/jit_private.h"
#include "wire/language.h"

enum { UNTOUCHED = 0x4711 };

static bool takes_shortcut(enum wire_stub_kind kind)
{
	mock.own->regs = UNTOUCHED;
	fire(kind, FLAGS);
	return mock.own->regs == UNTOUCHED;
}

/* A predicate that compares a word of the slot with the stack pointer, and behind it one that tests
 * another word. The last word is only written by the whole program. */
static void test_shortcut_predicate(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 32, 1);
	const struct bpf_insn p[] = {
		STX(DW, 10, 1, -16),
		LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 2, 9, 0),
		LDX(DW, 3, 10, -16),
		LDX(DW, 3, 3, 152),
		ALU64_IMM(ADD, 3, 8),
		JMP_REG(JNE, 2, 3, 3),
		CALL(BPF_FUNC_get_prandom_u32),
		STX(DW, 9, 0, 24),
		JMP_IMM(JA, 0, 0, 4),
		LDX(DW, 2, 9, 8),
		JMP_IMM(JEQ, 2, 0, 2),
		CALL(BPF_FUNC_get_prandom_u32),
		STX(DW, 9, 0, 24),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	mock.result = 5;
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		bool after = kind == WIRE_STUB_RETURN || kind == WIRE_STUB_TAIL;

		v[0] = v[1] = v[3] = 0;
		assert_true(takes_shortcut(kind));
		assert_int_equal(v[3], 0);
		v[1] = 1;
		assert_false(takes_shortcut(kind));
		assert_int_equal(v[3], 5);
		v[3] = v[1] = 0;
		v[0] = cpu_in.r[4] + 8 + (after ? 8 : 0);
		assert_false(takes_shortcut(kind));
		assert_int_equal(v[3], 5);
		v[3] = 0;
		v[0]--;
		assert_true(takes_shortcut(kind));
		assert_int_equal(v[3], 0);
	}
}

/* Counts down: the common way has effects, and the other one calls the agent. */
static void test_shortcut_effects(void **state)
{
	uint32_t a = mock_add_map(WIRE_MAP_AGG_ARRAY, 8, 2);
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 40, 1);
	const struct bpf_insn p[] = {
		LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 6, 9, 0),
		LDX(DW, 7, 9, 24),
		JMP_IMM(JEQ, 6, 0, 18),
		ALU64_IMM(SUB, 6, 1),
		STX(DW, 9, 6, 0),
		STX(DW, 9, 6, 8), /* the word before the store, less one */
		ST(W, 9, 16, -2),
		STX(DW, 9, 7, 32),
		ST(W, 10, -8, 1),
		LD64(1, BPF_PSEUDO_MAP_FD, a),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -8),
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_IMM(JNE, 0, 0, 2),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
		ALU64_IMM(MOV, 1, 3),
		ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
		CALL(BPF_FUNC_get_prandom_u32),
		STX(DW, 9, 0, 0),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0), want = 0;

	mock_know_thread();
	mock.result = 2;
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		for (int round = 0; round < 4; round++) {
			memset(v, 0xff, 40);
			v[0] = 0;
			v[3] = 0x123456789abcdef;
			assert_false(takes_shortcut(kind));
			assert_int_equal(v[0], 2);
			assert_int_equal(v[4], UINT64_MAX);
			for (uint64_t left = 2; left; left--) {
				assert_true(takes_shortcut(kind));
				want += 3;
				assert_int_equal(v[0], left - 1);
				assert_int_equal(v[1], left - 1);
				assert_int_equal(v[2], 0xfffffffffffffffe);
				assert_int_equal(v[4], 0x123456789abcdef);
				assert_int_equal(*(uint64_t *)mock_value(a, 1), want);
			}
			assert_int_equal(*(uint64_t *)mock_value(a, 0), 0);
		}
	}
	assert_int_equal(mock.thread->gen, 0);
}

/* All comparisons, of words, registers and constants. */
static void test_shortcut_compares(void **state)
{
	static const uint8_t ops[] = { BPF_JEQ, BPF_JNE,  BPF_JGT,  BPF_JGE,  BPF_JLT,
				       BPF_JLE, BPF_JSGT, BPF_JSGE, BPF_JSLT, BPF_JSLE };
	static const int64_t values[] = { 0, 1, -1, 7, 8, INT64_MIN, INT64_MAX };
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 24, 1);
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	for (uint32_t i = 0; i < ARRAY_SIZE(ops) * 3; i++) {
		uint8_t op = ops[i / 3];
		struct bpf_insn p[] = {
			LDX(DW, 4, 1, 112), /* rdi */
			LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
			LDX(DW, 2, 9, 0),
			LDX(DW, 3, 9, 8),
			INSN(BPF_JMP | op | (i % 3 ? BPF_X : BPF_K), 2,
			     i % 3 == 1 ? 3
			     : i % 3    ? 4
					: 0,
			     2, i % 3 ? 0 : 7),
			ST(DW, 9, 16, 1),
			JMP_IMM(JA, 0, 0, 1),
			ST(DW, 9, 16, 2),
			ALU64_IMM(MOV, 0, 0),
			EXIT(),
		};

		COMPILE(p);
		for (uint32_t k = 0; k < ARRAY_SIZE(values) * ARRAY_SIZE(values); k++) {
			int64_t x = values[k % ARRAY_SIZE(values)],
				y = values[k / ARRAY_SIZE(values)];
			uint64_t a, b;
			bool want;

			v[0] = (uint64_t)x;
			v[1] = (uint64_t)y;
			v[2] = 0;
			fire((enum wire_stub_kind)(k % WIRE_STUB_KINDS), FLAGS);
			if (i % 3 != 1)
				y = i % 3 ? (int64_t)cpu_in.r[7] : 7;
			a = (uint64_t)x;
			b = (uint64_t)y;
			switch (op) {
			case BPF_JEQ: want = a == b; break;
			case BPF_JNE: want = a != b; break;
			case BPF_JGT: want = a > b; break;
			case BPF_JGE: want = a >= b; break;
			case BPF_JLT: want = a < b; break;
			case BPF_JLE: want = a <= b; break;
			case BPF_JSGT: want = x > y; break;
			case BPF_JSGE: want = x >= y; break;
			case BPF_JSLT: want = x < y; break;
			default: want = x <= y;
			}
			if (v[2] != (want ? 2 : 1))
				fail_msg("op 0x%x of 0x%llx and 0x%llx", op, (unsigned long long)a,
					 (unsigned long long)b);
		}
	}
}

/* A word that was loaded before a store keeps its value. */
static void test_shortcut_order(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 24, 1);
	const struct bpf_insn p[] = {
		LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 2, 9, 0),
		LDX(DW, 3, 9, 8),
		STX(DW, 9, 3, 0), /* exchanges two words */
		STX(DW, 9, 2, 8),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		v[0] = 1;
		v[1] = 2;
		fire(kind, FLAGS);
		assert_int_equal(v[0], 2);
		assert_int_equal(v[1], 1);
	}
}

/* More comparisons than a shortcut has. Behind some of them is a call of the agent. */
static void test_shortcut_limit(void **state)
{
	enum { CASES = 90 };
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 16, 1);
	const struct bpf_insn head[] = { LD64(9, EBPF_PSEUDO_MAP_VALUE, m), LDX(DW, 6, 9, 0) };
	struct bpf_insn p[ARRAY_SIZE(head) + 5 * CASES + 2];
	uint64_t *v = mock_value(m, 0);
	uint32_t n = ARRAY_SIZE(head);

	memcpy(p, head, sizeof(head));
	for (int i = 0; i < CASES; i++) {
		const struct bpf_insn one[] = {
			JMP_IMM(JNE, 6, i * 3, 4),
			CALL(i % 4 ? BPF_FUNC_get_current_task_btf : BPF_FUNC_get_prandom_u32),
			ST(DW, 9, 8, i + 1),
			ALU64_IMM(MOV, 0, 0),
			EXIT(),
		};

		memcpy(p + n, one, sizeof(one));
		n += ARRAY_SIZE(one);
	}
	p[n++] = (struct bpf_insn)ALU64_IMM(MOV, 0, 0);
	p[n++] = (struct bpf_insn)EXIT();
	mock_know_thread();
	compile(p, n);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++)
		for (uint64_t i = 0; i < CASES * 3 + 3; i++) {
			v[0] = i;
			v[1] = 0;
			fire(kind, FLAGS);
			assert_int_equal(v[1], i % 3 == 0 && i / 3 < CASES ? i / 3 + 1 : 0);
		}
}

/* In a firing there is no shortcut: the firing within it is skipped. */
static void test_shortcut_nested(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 8, 1);
	const struct bpf_insn p[] = { LD64(9, EBPF_PSEUDO_MAP_VALUE, m), ST(DW, 9, 0, 1),
				      ALU64_IMM(MOV, 0, 0), EXIT() };
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	COMPILE(p);
	cpu_stub = mock_stub(WIRE_STUB_ENTRY, 0x123456789, 31);
	cpu_in.flags = FLAGS_ON;
	v[0] = 0;
	mock.entry->rsp = 0x1000;
	cpu_run();
	assert_int_equal(v[0], 0);
	assert_int_equal(mock.calls[WIRE_AGENT_nested], 1);
	mock.entry->rsp = WIRE_IDLE;
	cpu_run();
	assert_int_equal(v[0], 1);
}

/* A predicate that chooses by a product of a register, of which all bits count, or the low half. */
static void test_shortcut_product(void **state)
{
	enum { FACTOR = 0x5ce7dcd5, LIMIT = 0x3fffffff, RDI = 7, ROUNDS = 200, MOST = 6 };
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 32, 1);
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	mock.result = 5;
	for (int narrow = 0; narrow < 2; narrow++) {
		const struct bpf_insn low = ALU32_REG(MOV, 1, 1), none = ALU64_REG(MOV, 1, 1);
		const struct bpf_insn p[] = {
			ALU64_REG(MOV, 6, 1),
			CALL(BPF_FUNC_get_attach_cookie),
			ALU64_REG(MOV, 7, 0),
			LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
			LDX(DW, 1, 6, 112),
			ALU64_IMM(ADD, 1, 8),
			ALU64_IMM(MUL, 1, FACTOR),
			narrow ? low : none,
			JMP_IMM(JGT, 1, LIMIT, 2),
			CALL(BPF_FUNC_get_prandom_u32),
			STX(DW, 9, 0, 24),
			ALU64_IMM(MOV, 0, 0),
			EXIT(),
		};
		uint32_t through = 0;

		COMPILE(p);
		cpu_stub = mock_stub(WIRE_STUB_ENTRY, 0x123456789, 31);
		cpu_in.flags = FLAGS_ON;
		for (uint64_t i = 0; i < ROUNDS; i++) {
			const uint64_t rdi = i < MOST ? i - 9 : i * 40 + 0x7f1234500000,
				       product = (rdi + 8) * FACTOR;
			const bool chosen = (narrow ? (uint32_t)product : product) <= LIMIT;

			cpu_in.r[RDI] = rdi;
			v[3] = 0;
			mock.own->regs = UNTOUCHED;
			cpu_run();
			assert_int_equal(mock.own->regs == UNTOUCHED, !chosen);
			assert_int_equal(v[3], chosen ? 5 : 0);
			through += chosen;
		}
		assert_in_range(through, narrow ? ROUNDS / 8 : 1, narrow ? ROUNDS / 2 : MOST);
	}
}

enum { WORDS = 6, RANDOM_ROUNDS = 2000, LENGTH = 24 };

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % n;
}

/* Returns a random instruction of those that a shortcut follows. left: instructions behind it. */
static struct bpf_insn random_insn(uint64_t *seed, uint32_t left)
{
	static const uint8_t ops[] = { BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JSGT, BPF_JLE, BPF_JSLT };
	uint8_t d = (uint8_t)(2 + below(seed, 4)), from = (uint8_t)(2 + below(seed, 4));
	int16_t word = (int16_t)(8 * below(seed, WORDS)),
		slot = (int16_t)(-8 - 8 * (int)below(seed, 3));
	int32_t imm = (int32_t)below(seed, 5) - 2;
	uint8_t by = below(seed, 2) ? BPF_X : BPF_K;

	switch (below(seed, 10)) {
	case 0:
	case 1: return (struct bpf_insn)LDX(DW, d, 9, word);
	case 2: return (struct bpf_insn)LDX(W, d, 9, word);
	case 3: return (struct bpf_insn)STX(DW, 9, from, word);
	case 4: return (struct bpf_insn)ST(W, 9, word, imm);
	case 5: return (struct bpf_insn)ALU64_IMM(ADD, d, imm);
	case 6: return (struct bpf_insn)ALU64_REG(MOV, d, from);
	case 7: return (struct bpf_insn)STX(DW, 10, from, slot);
	case 8: return (struct bpf_insn)LDX(DW, d, 10, slot);
	default:
		return (struct bpf_insn)INSN(BPF_JMP | ops[below(seed, ARRAY_SIZE(ops))] | by, d,
					     by == BPF_X ? from : 0, (int16_t)below(seed, left + 1),
					     by == BPF_X ? 0 : imm);
	}
}

/* Random programs leave the same memory by the shortcut and when the tracer runs them whole. */
static void test_shortcut_random(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 8 * WORDS, 1);
	uint64_t *v = mock_value(m, 0), first[WORDS], want[WORDS];
	struct bpf_insn p[LENGTH + 12];
	const struct bpf_insn head[] = {
		LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 2, 9, 0),
		LDX(DW, 3, 9, 8),
		LDX(DW, 4, 9, 16),
		ALU64_IMM(MOV, 5, 1),
		STX(DW, 10, 2, -8),
		ST(DW, 10, -16, 1),
		STX(DW, 10, 3, -24),
	};

	for (uint64_t round = 0; round < RANDOM_ROUNDS; round++) {
		uint64_t seed = round;
		uint32_t n = ARRAY_SIZE(head), length = 1 + below(&seed, LENGTH);

		memcpy(p, head, sizeof(head));
		for (uint32_t i = 0; i < length; i++)
			p[n++] = random_insn(&seed, length - 1 - i);
		p[n++] = (struct bpf_insn)ALU64_IMM(MOV, 0, 0);
		p[n++] = (struct bpf_insn)EXIT();
		compile(p, n);
		for (uint32_t i = 0; i < WORDS; i++)
			first[i] = v[i] = (uint64_t)(int64_t)((int32_t)below(&seed, 5) - 2);
		mock_know_thread();
		mock_host(NULL, 0);
		memcpy(want, v, sizeof(want));
		memcpy(v, first, sizeof(first));
		fire((enum wire_stub_kind)(round % WIRE_STUB_KINDS), FLAGS);
		if (memcmp(v, want, sizeof(want))) {
			ebpf_print(stderr, p, n, &(struct ebpf_names){ .index = true });
			fail_msg("round %llu", (unsigned long long)round);
		}
	}
}

/* A counter of one generation: both of wire_area.gen add to the same word. */
static void test_shortcut_counter(void **state)
{
	uint32_t a = mock_add_map(WIRE_MAP_AGG_ARRAY, 8, 2);
	const struct bpf_insn p[] = {
		ST(W, 10, -8, 1),
		LD64(1, BPF_PSEUDO_MAP_FD, a),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -8),
		CALL(BPF_FUNC_map_lookup_elem),
		JMP_IMM(JEQ, 0, 0, 2),
		ALU64_IMM(MOV, 1, 1),
		ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};

	mock.maps[a].gen_stride = 0;
	mock_know_thread();
	mock.thread->gen = 7;
	COMPILE(p);
	for (uint64_t i = 0; i < 2 * WIRE_STUB_KINDS; i++) {
		((struct wire_area *)(void *)mock.area)->gen = WIRE_GEN_RUNS | (i & 1);
		assert_true(takes_shortcut(i / 2));
		assert_int_equal(*(uint64_t *)mock_value(a, 1), i + 1);
		assert_int_equal(*(uint64_t *)mock_value(a, 0), 0);
		assert_int_equal(mock.thread->gen, 7); /* no generation is published */
	}
}

/* A word that two clauses test has one value in a firing, so the second test needs no code. */
static void test_shortcut_again(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 24, 1);
	const struct bpf_insn p[] = {
		LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 2, 9, 0),
		JMP_IMM(JEQ, 2, 0, 4),
		LDX(DW, 2, 9, 8),
		JMP_IMM(JEQ, 2, 0, 2),
		CALL(BPF_FUNC_get_prandom_u32),
		STX(DW, 9, 0, 16),
		LDX(DW, 2, 9, 0),
		JMP_IMM(JEQ, 2, 0, 4),
		LDX(DW, 2, 9, 8),
		JMP_IMM(JEQ, 2, 0, 2),
		CALL(BPF_FUNC_get_prandom_u32),
		STX(DW, 9, 0, 16),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	mock.result = 5;
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++)
		for (uint64_t i = 0; i < 4; i++) {
			v[0] = i & 1;
			v[1] = i >> 1;
			v[2] = 0;
			assert_int_equal(takes_shortcut(kind), i != 3);
			assert_int_equal(v[2], i == 3 ? 5 : 0);
		}
}

/* --- names of an interpreter's functions --- */

/* As the agent's handler continues behind a fault. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint8_t *rip = (const uint8_t *)r[REG_RIP];
	int32_t half[2];

	memcpy(half, rip - sizeof(half), sizeof(half));
	if (half[0] != WIRE_SURVIVED)
		abort();
	r[REG_RIP] += half[1];
}

static struct wire_own_text *note_name(uint32_t map, uint64_t number, uint64_t value)
{
	struct wire_own_text *x = &mock.own->texts[wire_text_place(number | WIRE_NAMED, map)];

	*x = (struct wire_own_text){ number | WIRE_NAMED, value, map, mock.head->gen };
	return x;
}

static uint32_t add_names(void)
{
	uint32_t m = mock_add_map(WIRE_MAP_AGG_HASH, 8, 4);

	mock.maps[m].key_size = 16;
	mock.maps[m].stride = 32;
	mock.maps[m].buckets = 8;
	return m;
}

/* Fires, and returns true when the shortcut has counted. */
static bool is_named(uint64_t *value)
{
	const uint64_t before = *value;
	bool cut = takes_shortcut(WIRE_STUB_MID);

	assert_int_equal(*value, before + cut);
	assert_int_equal(mock.thread->gen, 0);
	return cut;
}

/* A count by the name of a function of Python: the name's number leads to the entry. */
static void test_shortcut_python(void **state)
{
	static uint64_t frame[8], code[8], name[8];
	uint32_t first = add_names(), m = add_names();
	const struct bpf_insn p[] = {
		LDX(DW, 2, 1, 40),
		LD64(1, BPF_PSEUDO_MAP_FD, m),
		ALU64_IMM(MOV, 3, WIRE_PYTHON_PATH(32, 16)),
		ALU64_IMM(MOV, 4, 0),
		CALL(JIT_AGG_PYTHON),
		JMP_IMM(JNE, 0, 0, 3),
		CALL(BPF_FUNC_get_prandom_u32),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
		ALU64_IMM(MOV, 1, 1),
		ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	const struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct sigaction old;
	struct wire_own_text *x;
	uint64_t *value = (void *)((uint8_t *)mock.thread + 20000);

	mock_know_thread();
	COMPILE(p);
	mock.head->gen = WIRE_GEN_RUNS | WIRE_GEN_TURN;
	frame[4] = (uintptr_t)code;
	code[2] = (uintptr_t)name;
	name[3] = 0x123456789abcdef0;
	fire_rbx = (uintptr_t)frame;
	mock.own->named = 100;
	assert_false(is_named(value));
	x = note_name(m, name[3], 20000);
	assert_true(is_named(value));
	assert_int_equal(mock.own->named, 98);
	assert_int_equal(*value, 1);
	for (int kind = 0; kind < WIRE_STUB_MID; kind++) /* there, rax is not saved */
		assert_false(takes_shortcut(kind));
	name[3]++;
	assert_false(is_named(value));
	name[3]--;
	x->map = first;
	assert_false(is_named(value));
	x->map = m;
	mock.head->gen += 2 * WIRE_GEN_TURN; /* its entry may have another key by now */
	assert_false(is_named(value));
	mock.head->gen -= 2 * WIRE_GEN_TURN;
	mock.own->named = 0; /* not checked, or a fault would end the process */
	assert_false(is_named(value));
	assert_int_equal(mock.own->named, 0);
	mock.own->named = 100;
	mock.own->alt_lo = cpu_in.r[4] - 4096; /* on the signal stack */
	mock.own->alt_hi = cpu_in.r[4] + 4096;
	assert_false(is_named(value));
	mock.own->alt_lo = cpu_in.r[4] + 64;
	assert_true(is_named(value));
	mock.own->alt_lo = mock.own->alt_hi = 0;
	sigaction(SIGSEGV, &act, &old);
	for (uint64_t *at = &frame[4];; at = at == &frame[4] ? &code[2] : &fire_rbx) {
		const uint64_t was = *at;

		*at = 4096;
		assert_false(is_named(value));
		*at = was;
		assert_true(is_named(value));
		if (at == &fire_rbx)
			break;
	}
	sigaction(SIGSEGV, &old, NULL);
	fire_rbx = 0;
}

/* The same of a method of Ruby, whose entry the frame's scope or a register has. */
static void test_shortcut_ruby(void **state)
{
	static uint64_t frame[8], scope[4], method[8], definition[8];
	uint32_t m = add_names();
	struct bpf_insn p[] = {
		ALU64_REG(MOV, 6, 1),
		LDX(DW, 2, 1, 40),
		ALU64_IMM(ADD, 2, 8),
		LD64(1, BPF_PSEUDO_MAP_FD, m),
		ALU64_IMM(MOV, 3, 0),
		ALU64_IMM(MOV, 4, 0),
		CALL(JIT_AGG_RUBY),
		JMP_IMM(JNE, 0, 0, 3),
		CALL(BPF_FUNC_get_prandom_u32),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
		ALU64_IMM(MOV, 1, 1),
		ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *value = (void *)((uint8_t *)mock.thread + 20000);

	mock_know_thread();
	COMPILE(p);
	mock.head->gen = WIRE_GEN_RUNS;
	frame[1 + WIRE_RUBY_FRAME_SCOPE / 8] = (uintptr_t)&scope[2];
	scope[0] = (uintptr_t)method;
	method[0] = WIRE_RUBY_METHOD | 0x20;
	method[2] = (uintptr_t)definition;
	definition[4] = 0xabc1;
	fire_rbx = (uintptr_t)frame;
	mock.own->named = 100;
	assert_false(is_named(value));
	note_name(m, 0xabc1, 20000);
	assert_true(is_named(value));
	method[0] = WIRE_RUBY_SVAR;
	assert_false(is_named(value));
	method[0] = WIRE_RUBY_METHOD;
	definition[4] = 0xabd1;
	assert_false(is_named(value));
	definition[4] = 0xabc1;
	p[5] = LDX(DW, 3, 6, 40);
	COMPILE(p);
	fire_rbx = (uintptr_t)method;
	assert_true(is_named(value));
	method[2] = (uintptr_t)frame;
	assert_false(is_named(value));
	fire_rbx = 0;
}

/* --- answers about an interpreter's functions --- */

/* Fires, and returns true when the shortcut had the answer: then the function is not selected, or
 * is counted. */
static bool has_answer(uint64_t *value, bool counts)
{
	const uint64_t before = *value;
	bool cut = takes_shortcut(WIRE_STUB_MID);

	assert_int_equal(*value, before + (cut && counts));
	return cut;
}

static void remember(uint32_t map, uint64_t number, bool answer)
{
	((uint64_t *)mock_value(map, 0))[number >> WIRE_FUNCTION_SHIFT] = number | answer;
}

static uint32_t add_answers(void)
{
	const uint32_t size = 8 * WIRE_FUNCTIONS;

	return mock_add_map(WIRE_MAP_ARRAY, size, 1);
}

/* Whether a description selects the function, of Python or Ruby: the answer stands by the
 * function's number. */
static void test_shortcut_answers(void **state)
{
	static uint64_t frame[8], scope[4], code[8];
	uint32_t m = add_answers(), sum = mock_add_map(WIRE_MAP_AGG_ARRAY, 8, 1);
	struct bpf_insn p[] = {
		LDX(DW, 2, 1, 40),
		LD64(1, BPF_PSEUDO_MAP_FD, m),
		ALU64_IMM(MOV, 3, WIRE_PYTHON_PATH(32, 16)),
		ALU64_IMM(MOV, 4, 77),
		CALL(JIT_ID_PYTHON),
		ALU64_REG(MOV, 6, 0),
		JMP_IMM(JLE, 6, 1, 3),
		CALL(BPF_FUNC_get_prandom_u32),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
		JMP_IMM(JEQ, 6, 0, 9),
		MOCK_LOOKUP(sum),
		JMP_IMM(JEQ, 0, 0, 2),
		ALU64_IMM(MOV, 1, 1),
		ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	const struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	uint64_t *value = mock_value(sum, 0), number;
	struct sigaction old;

	mock_know_thread();
	COMPILE(p);
	mock.head->gen = WIRE_GEN_RUNS;
	frame[4] = (uintptr_t)code;
	code[2] = 0x1234567890;
	code[3] = 0x2345678901;
	code[4] = 0x3456789012;
	fire_rbx = (uintptr_t)frame;
	mock.own->named = 100;
	number = wire_function_id((uintptr_t)code, &code[2], 77);
	assert_false(has_answer(value, false));
	for (int answer = 0; answer < 2; answer++) {
		remember(m, number, answer);
		assert_true(has_answer(value, answer));
		for (int i = 2; i < 5; i++) {
			code[i] += 16;
			assert_false(has_answer(value, false));
			code[i] -= 16;
		}
	}
	assert_int_equal(*value, 1);
	remember(m, number ^ 4, true);
	assert_false(has_answer(value, false));
	remember(m, number, true);
	mock.own->named = 0;
	assert_false(has_answer(value, false));
	mock.own->named = 100;
	sigaction(SIGSEGV, &act, &old);
	frame[4] = 4096;
	assert_false(has_answer(value, false));
	fire_rbx = 4096;
	assert_false(has_answer(value, false));
	sigaction(SIGSEGV, &old, NULL);
	p[3] = ALU64_IMM(MOV, 3, 0);
	p[5] = CALL(JIT_ID_RUBY);
	COMPILE(p);
	fire_rbx = (uintptr_t)frame;
	frame[4] = (uintptr_t)&scope[2];
	scope[0] = (uintptr_t)code;
	code[0] = WIRE_RUBY_METHOD;
	assert_true(has_answer(value, true));
	code[0] = WIRE_RUBY_SVAR;
	assert_false(has_answer(value, false));
	fire_rbx = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JIT_TEST(test_shortcut_predicate), JIT_TEST(test_shortcut_effects),
		JIT_TEST(test_shortcut_compares),  JIT_TEST(test_shortcut_order),
		JIT_TEST(test_shortcut_limit),     JIT_TEST(test_shortcut_nested),
		JIT_TEST(test_shortcut_random),    JIT_TEST(test_shortcut_counter),
		JIT_TEST(test_shortcut_again),     JIT_TEST(test_shortcut_product),
		JIT_TEST(test_shortcut_python),    JIT_TEST(test_shortcut_ruby),
		JIT_TEST(test_shortcut_answers),
	};

	return JIT_TESTS(tests);
}
