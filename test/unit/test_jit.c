/* The compiler of the in-process engine: what it refuses, what its code does, its thunks. */
#include "unit.h"

#include <sys/auxv.h>

#include "agent/ring.h"
#include "insn.h"
#include "jit_mock.h"

enum { JIT_DEEP = 9 };

static int setup(void **state)
{
	mock_init();
	return 0;
}

static int teardown(void **state)
{
	mock_fini();
	return 0;
}

#define COMPILE(p) compile((p), ARRAY_SIZE(p))
static void compile(const struct bpf_insn *p, size_t n)
{
	struct err *e = mock_compile(p, (uint32_t)n);

	if (e)
		fail_msg("%s", e->text);
}

#define REFUSED(p, text) refused((p), ARRAY_SIZE(p), (text))
static void refused(const struct bpf_insn *p, size_t n, const char *text)
{
	struct err *e = mock_compile(p, (uint32_t)n);

	if (!e)
		fail_msg("accepted, though %s", text);
	if (!strstr(e->text, text))
		fail_msg("\"%s\" does not say \"%s\"", e->text, text);
	err_free(e);
}

static uint32_t violations(void)
{
	return mock.calls[WIRE_AGENT_violation];
}

/* --- what is refused --- */

static void test_refuses(void **state)
{
	uint32_t ring = mock_add_map(WIRE_MAP_RING, 0, 4096);
	uint32_t array = mock_add_map(WIRE_MAP_ARRAY, 8, 1);
	const struct bpf_insn no_value[] = { ALU64_REG(MOV, 0, 3), EXIT() };
	const struct bpf_insn no_result[] = { EXIT() };
	const struct bpf_insn helper[] = { CALL(9999), EXIT() };
	const struct bpf_insn write_ctx[] = { ST(DW, 1, 0, 1), ALU64_IMM(MOV, 0, 0), EXIT() };
	const struct bpf_insn far_ctx[] = { LDX(DW, 0, 1, 168), EXIT() };
	const struct bpf_insn near_ctx[] = { LDX(DW, 0, 1, 161), EXIT() };
	const struct bpf_insn before_ctx[] = { LDX(B, 0, 1, -1), EXIT() };
	const struct bpf_insn itself[] = { CALL_REL(-1), EXIT() };
	const struct bpf_insn no_map[] = { LD64(1, BPF_PSEUDO_MAP_FD, 77), ALU64_IMM(MOV, 0, 0),
					   EXIT() };
	const struct bpf_insn no_ring[] = {
		LD64(1, BPF_PSEUDO_MAP_FD, array), ALU64_IMM(MOV, 2, 8), ALU64_IMM(MOV, 3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),    ALU64_IMM(MOV, 0, 0), EXIT()
	};
	const struct bpf_insn ring_value[] = { LD64(1, EBPF_PSEUDO_MAP_VALUE, ring),
					       ALU64_IMM(MOV, 0, 0), EXIT() };
	const struct bpf_insn callback[] = { ALU64_IMM(MOV, 1, 4),
					     ALU64_REG(MOV, 2, 1),
					     ALU64_IMM(MOV, 3, 0),
					     ALU64_IMM(MOV, 4, 0),
					     CALL(BPF_FUNC_loop),
					     ALU64_IMM(MOV, 0, 0),
					     EXIT() };
	struct bpf_insn deep[JIT_DEEP * 2];

	REFUSED(no_value, "instruction 0 (r0 = r3): r3 has no value");
	REFUSED(no_result, "r0");
	REFUSED(helper, "is not known");
	REFUSED(write_ctx, "writes to the context");
	REFUSED(far_ctx, "outside the context");
	REFUSED(near_ctx, "outside the context");
	REFUSED(before_ctx, "outside the context");
	REFUSED(itself, "calls itself");
	REFUSED(no_map, "there is no map 77");
	REFUSED(no_ring, "not of the kind");
	REFUSED(ring_value, "no fixed address");
	REFUSED(callback, "function is not known");
	for (int i = 0; i < JIT_DEEP; i++) {
		deep[2 * i] = i < JIT_DEEP - 1 ? CALL_REL(1) : ALU64_IMM(MOV, 0, 0);
		deep[2 * i + 1] = EXIT();
	}
	REFUSED(deep, "nested calls");
}

/* --- memory --- */

static void test_plain_access_is_proven(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 16, 1);
	const struct bpf_insn p[] = {
		LD64(1, EBPF_PSEUDO_MAP_VALUE, m),
		ST(DW, 10, -8, -5),
		LDX(DW, 2, 10, -8),
		STX(DW, 1, 2, 8),
		LDX(DW, 0, 1, 8),
		EXIT(),
	};

	COMPILE(p);
	assert_int_equal(mock.out.nchecked, 0);
	assert_int_equal(mock.out.nproven, 4);
	assert_int_equal(mock_host(NULL, 0), (uint64_t)-5);
	assert_int_equal(((int64_t *)mock_value(m, 0))[1], -5);
}

/* An address that is only known when the program runs: good and bad ones, every size, loads and
 * stores. */
static void test_checked_access(void **state)
{
	static const uint8_t sizes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
	uint64_t ctx[21] = { 0 };
	uint8_t local[16] = { 0 };

	for (int i = 0; i < 4; i++) {
		uint64_t size = sizes[i] == BPF_B   ? 1
				: sizes[i] == BPF_H ? 2
				: sizes[i] == BPF_W ? 4
						    : 8;
		uint64_t start = (uintptr_t)mock.area, end = start + MOCK_AREA,
			 shared = start + 65536; /* only read before, written too from here on */
		const struct bpf_insn loads[] = {
			LDX(DW, 2, 1, 0),
			INSN(BPF_LDX | BPF_MEM | sizes[i], 0, 2, 0, 0),
			ALU64_IMM(MOV, 0, 7),
			EXIT(),
		};
		const struct bpf_insn stores[] = {
			LDX(DW, 2, 1, 0),
			INSN(BPF_STX | BPF_MEM | sizes[i], 2, 2, 3, 0),
			ALU64_IMM(MOV, 0, 7),
			EXIT(),
		};
		const struct {
			uint64_t addr;
			bool good, read; /* read: good for loads */
		} cases[] = {
			{ start, false, true },
			{ shared - size, false, true },
			{ shared - 1, false, true },
			{ shared, true },
			{ end - size, true },
			{ end - size + 1, false },
			{ start - 1, false },
			{ start - size, false },
			{ 0, false },
			{ UINT64_MAX, false },
			{ (uintptr_t)local, false },
			{ (uintptr_t)mock.code, false },
			{ end, false },
		};

		for (uint32_t c = 0; c < ARRAY_SIZE(cases); c++) {
			for (int store = 0; store < 2; store++) {
				const bool good = cases[c].good || (!store && cases[c].read);
				uint32_t before = violations();
				uint64_t r0;

				mock.env.shared = shared;
				if (store)
					COMPILE(stores);
				else
					COMPILE(loads);
				assert_int_equal(mock.out.nchecked, 1);
				/* the store writes at address + 3 */
				ctx[0] = cases[c].addr - (store ? 3 : 0);
				r0 = mock_host(ctx, 0);
				assert_int_equal(violations() - before, !good);
				assert_int_equal(r0, good ? 7 : 0);
				if (!good)
					assert_int_equal(mock.insn, 1);
				assert_true(mock.entry->rsp == WIRE_IDLE);
			}
		}
	}
}

/* The own stack by a computed address: within, and just outside of it. */
static void test_checked_stack(void **state)
{
	uint64_t ctx[21] = { 0 };
	const struct bpf_insn p[] = {
		LDX(DW, 2, 1, 0),     ST(DW, 10, -8, 42), ALU64_REG(MOV, 3, 10),
		ALU64_REG(ADD, 3, 2), LDX(DW, 0, 3, 0),   EXIT(),
	};

	COMPILE(p);
	ctx[0] = (uint64_t)-8;
	assert_int_equal(mock_host(ctx, 0), 42);
	ctx[0] = (uint64_t)-512;
	mock_host(ctx, 0);
	assert_int_equal(violations(), 0);
	ctx[0] = 0;
	mock_host(ctx, 0);
	assert_int_equal(violations(), 1);
	ctx[0] = (uint64_t)-513;
	mock_host(ctx, 0);
	assert_int_equal(violations(), 2);
}

/* A frame's address that went through memory is still good in the callee, and the context through
 * the stack. */
static void test_frames(void **state)
{
	uint64_t ctx[21] = { [14] = 1000 };
	const struct bpf_insn p[] = {
		ST(DW, 10, -8, 5),
		STX(DW, 10, 1, -16),
		ALU64_REG(MOV, 1, 10),
		ALU64_IMM(ADD, 1, -16),
		CALL_REL(2),
		LDX(DW, 1, 10, -8),
		/* 6 */ EXIT(),
		/* 7: r1 = &{ ctx, 5 } */
		LDX(DW, 2, 1, 0),
		LDX(DW, 2, 2, 112),
		LDX(DW, 3, 1, 8),
		ALU64_REG(ADD, 2, 3),
		STX(DW, 1, 2, 8),
		ALU64_REG(MOV, 0, 2),
		EXIT(),
	};

	COMPILE(p);
	assert_int_equal(mock_host(ctx, 0), 1005);
	assert_int_equal(violations(), 0);
}

/* --- ends --- */

static void test_endless(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 8, 1);
	const struct bpf_insn p[] = {
		LD64(6, EBPF_PSEUDO_MAP_VALUE, m),
		ALU64_IMM(MOV, 7, 1),
		ATOMIC(DW, 6, 7, 0, BPF_ADD),
		INSN(BPF_JMP | BPF_JA, 0, 0, -2, 0),
	};
	const struct bpf_insn inner[] = {
		/* a callee that never returns */
		ALU64_IMM(MOV, 6, 3),
		CALL_REL(1),
		EXIT(),
		ALU64_IMM(MOV, 7, 3),
		INSN(BPF_JMP | BPF_JA, 0, 0, -1, 0),
	};

	COMPILE(p);
	assert_int_equal(mock_host(NULL, 0), 0);
	assert_int_equal(violations(), 1);
	assert_int_equal(mock.insn, 4);
	assert_int_equal(*(uint64_t *)mock_value(m, 0), (1 << 26) + 1);
	COMPILE(inner);
	assert_int_equal(mock_host(NULL, 0), 0);
	assert_int_equal(violations(), 2);
}

static void test_loop(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 16, 1);
	uint64_t ctx[21] = { 0 };
	const struct bpf_insn p[] = {
		LDX(DW, 6, 1, 0), /* rounds */
		LDX(DW, 7, 1, 8), /* flags */
		ST(DW, 10, -8, 0),
		ALU64_REG(MOV, 1, 6),
		LD64(2, EBPF_PSEUDO_FUNC, 6),
		ALU64_REG(MOV, 3, 10),
		ALU64_IMM(ADD, 3, -8),
		ALU64_REG(MOV, 4, 7),
		CALL(BPF_FUNC_loop),
		LDX(DW, 1, 10, -8),
		/* 11: result and sum */
		LD64(2, EBPF_PSEUDO_MAP_VALUE, m),
	};
	const struct bpf_insn rest[] = {
		STX(DW, 2, 1, 0),
		EXIT(),
		/* callback: *r2 += r1; stop at 5 */
		LDX(DW, 0, 2, 0),
		ALU64_REG(ADD, 0, 1),
		STX(DW, 2, 0, 0),
		ALU64_IMM(MOV, 0, 0),
		JMP_IMM(JNE, 1, 5, 1),
		ALU64_IMM(MOV, 0, 1),
		EXIT(),
	};
	struct bpf_insn all[ARRAY_SIZE(p) + ARRAY_SIZE(rest)];

	memcpy(all, p, sizeof(p));
	memcpy(all + ARRAY_SIZE(p), rest, sizeof(rest));
	all[4].imm = (int32_t)(ARRAY_SIZE(p) + 2 - 5);
	COMPILE(all);
	ctx[0] = 4;
	assert_int_equal(mock_host(ctx, 0), 4);
	assert_int_equal(*(uint64_t *)mock_value(m, 0), 0 + 1 + 2 + 3);
	ctx[0] = 100;
	assert_int_equal(mock_host(ctx, 0), 6);
	assert_int_equal(*(uint64_t *)mock_value(m, 0), 15);
	ctx[0] = 0;
	assert_int_equal(mock_host(ctx, 0), 0);
	ctx[0] = (1 << 23) + 1;
	assert_int_equal(mock_host(ctx, 0), (uint64_t)-E2BIG);
	ctx[0] = 1ull << 32 | 3; /* 32 bits count */
	assert_int_equal(mock_host(ctx, 0), 3);
	ctx[1] = 1;
	assert_int_equal(mock_host(ctx, 0), (uint64_t)-EINVAL);
	assert_int_equal(violations(), 0);
}

/* --- maps and helpers --- */

static uint64_t lookup(uint32_t m, uint32_t key, bool known)
{
	uint64_t ctx[21] = { key };
	const struct bpf_insn constant[] = {
		ST(W, 10, -8, (int32_t)key), LD64(1, BPF_PSEUDO_MAP_FD, m),  ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -8),       CALL(BPF_FUNC_map_lookup_elem), EXIT(),
	};
	const struct bpf_insn any[] = {
		LDX(DW, 0, 1, 0),
		STX(W, 10, 0, -8),
		LD64(1, BPF_PSEUDO_MAP_FD, m),
		ALU64_REG(MOV, 2, 10),
		ALU64_IMM(ADD, 2, -8),
		CALL(BPF_FUNC_map_lookup_elem),
		EXIT(),
	};

	if (known)
		COMPILE(constant);
	else
		COMPILE(any);
	assert_int_equal(mock.out.nchecked, 0);
	return mock_host(ctx, 0);
}

static void test_lookup(void **state)
{
	uint32_t array = mock_add_map(WIRE_MAP_ARRAY, 24, 5);
	uint32_t thread = mock_add_map(WIRE_MAP_THREAD_ARRAY, 8, 5);
	uint32_t agg = mock_add_map(WIRE_MAP_AGG_ARRAY, 16, 5);
	uint32_t scratch = mock_add_map(WIRE_MAP_THREAD_ARRAY, 64, 4);
	uint32_t odd = mock_add_map(WIRE_MAP_THREAD_ARRAY, 64, 3);
	uint32_t hash = mock_add_map(WIRE_MAP_HASH, 8, 16);

	mock.maps[scratch].role = mock.maps[odd].role = MAP_SCRATCH;
	for (int known = 0; known < 2; known++) {
		for (uint32_t k = 0; k < 7; k++) {
			uint64_t none = k < 5 ? UINT64_MAX : 0;

			assert_int_equal(lookup(array, k, known),
					 none & (uintptr_t)mock_value(array, k));
			assert_int_equal(lookup(thread, k, known),
					 none & (uintptr_t)mock_value(thread, k));
			assert_int_equal(lookup(scratch, k, known),
					 (uintptr_t)mock_value(scratch, k % 4));
			assert_int_equal(lookup(odd, k, known), (uintptr_t)mock_value(odd, k % 3));
			for (mock.head->gen = WIRE_GEN_RUNS; mock.head->gen < WIRE_GEN_RUNS + 2;
			     mock.head->gen++)
				assert_int_equal(lookup(agg, k, known),
						 none & ((uintptr_t)mock_value(agg, k) +
							 1024 * (mock.head->gen & 1)));
			mock.head->gen = 0;
		}
	}
	assert_int_equal(mock.calls[WIRE_AGENT_map_lookup], 0);
	mock.result = 4711;
	assert_int_equal(lookup(hash, 3, true), 4711);
	assert_int_equal(mock.calls[WIRE_AGENT_map_lookup], 1);
	assert_int_equal(mock.args[0], mock.addrs[hash]);
	assert_int_equal(mock.args[5], (uintptr_t)mock.thread);
}

/* What a helper writes to and how much may be unknown until it runs. */
static void test_helper_memory(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 64, 1);
	uint64_t ctx[21] = { 0 }, value = (uintptr_t)mock_value(m, 0);
	const struct bpf_insn p[] = {
		LDX(DW, 2, 1, 8), LDX(DW, 3, 1, 16),
		LDX(DW, 1, 1, 0), CALL(BPF_FUNC_probe_read_user),
		EXIT(),
	};
	const struct {
		uint64_t dst, size;
		bool good;
	} cases[] = {
		{ value, 64, true },
		{ value, 0, true },
		{ 0, 0, true },
		{ 0, 1, false },
		{ value, MOCK_AREA, false },
		{ value, 0xffffffff, false },
		{ value, 1ull << 32 | 16, true },
		{ (uintptr_t)mock.area, MOCK_AREA, true },
		{ (uintptr_t)mock.area + MOCK_AREA, 1, false },
		{ UINT64_MAX, 8, false },
		{ (uintptr_t)mock.area - 8, 16, false },
	};

	COMPILE(p);
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t bad = violations(), calls = mock.calls[WIRE_AGENT_probe_read];

		ctx[0] = cases[i].dst;
		ctx[1] = cases[i].size;
		ctx[2] = 99;
		mock_host(ctx, 0);
		assert_int_equal(violations() - bad, !cases[i].good);
		assert_int_equal(mock.calls[WIRE_AGENT_probe_read] - calls, cases[i].good);
		if (cases[i].good)
			assert_int_equal(mock.args[1], (uint32_t)cases[i].size);
	}
}

static uint64_t give_record(uint32_t entry, const uint64_t args[6])
{
	return entry == WIRE_AGENT_ring_reserve ? (uintptr_t)mock.area + 20000 : 0;
}

static void test_record(void **state)
{
	uint32_t ring = mock_add_map(WIRE_MAP_RING, 0, 4096);
	const struct bpf_insn p[] = {
		LD64(1, BPF_PSEUDO_MAP_FD, ring),
		ALU64_IMM(MOV, 2, 24),
		ALU64_IMM(MOV, 3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),
		ALU64_REG(MOV, 6, 0),
		JMP_IMM(JEQ, 0, 0, 5),
		ST(DW, 6, 0, 1),
		ST(DW, 6, 16, 3),
		ALU64_REG(MOV, 1, 6),
		ALU64_IMM(MOV, 2, 0),
		CALL(BPF_FUNC_ringbuf_submit),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	const struct bpf_insn beyond[] = {
		LD64(1, BPF_PSEUDO_MAP_FD, ring),
		ALU64_IMM(MOV, 2, 24),
		ALU64_IMM(MOV, 3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),
		JMP_IMM(JEQ, 0, 0, 1),
		ST(DW, 0, 17, 1),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};

	mock.maps[ring].base = 0; /* nowhere in a slot: the agent is asked */
	mock.helper = give_record;
	*(uint32_t *)(mock.area + 19992) = WIRE_RING_BUSY | 24;
	COMPILE(p);
	assert_int_equal(mock.out.nchecked, 0);
	mock_host(NULL, 0);
	assert_int_equal(mock.calls[WIRE_AGENT_ring_reserve], 1);
	assert_int_equal(*(uint32_t *)(mock.area + 19992), 24); /* submitted */
	assert_int_equal(*(uint64_t *)(mock.area + 20016), 3);
	mock.helper = NULL;
	*(uint32_t *)(mock.area + 19992) = WIRE_RING_BUSY;
	mock_host(NULL, 0);
	assert_int_equal(*(uint32_t *)(mock.area + 19992), WIRE_RING_BUSY);
	COMPILE(beyond);
	assert_int_equal(mock.out.nchecked, 1);
}

/* Reserving is written out: what is in the ring is what the agent's own code makes of it. */
static void test_ring(void **state)
{
	enum { SIZE = 256 };
	uint32_t map = mock_add_map(WIRE_MAP_RING, 0, SIZE), calls = 0;
	struct wire_ring *ring = (void *)((uint8_t *)mock.thread + 2048),
			 *twin = xcalloc(1, sizeof(*twin) + SIZE);
	const struct bpf_insn p[] = {
		ALU64_REG(MOV, 7, 1),
		LDX(DW, 7, 7, 0),
		LD64(1, BPF_PSEUDO_MAP_FD, map),
		ALU64_IMM(MOV, 2, 20),
		ALU64_IMM(MOV, 3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),
		JMP_IMM(JEQ, 0, 0, 6),
		ALU64_REG(MOV, 6, 0),
		STX(DW, 6, 7, 0),
		STX(DW, 6, 7, 8),
		ALU64_REG(MOV, 1, 6),
		ALU64_IMM(MOV, 2, 0),
		CALL(BPF_FUNC_ringbuf_submit),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};

	mock.maps[map].base = 2048;
	memset(ring, 0, sizeof(*ring) + SIZE);
	COMPILE(p);
	for (uint64_t i = 1; i < 200; i++) {
		uint64_t ctx[21] = { i }, *got;

		/* the mock's agent gives nothing: full, or at the end, where the twin pads */
		if (i % 11 == 0)
			ring->tail = twin->tail = twin->head;
		got = ring_reserve(twin, SIZE, 20);
		mock_host(ctx, 0);
		if (got && mock.calls[WIRE_AGENT_ring_reserve] == calls) {
			got[0] = got[1] = i;
			assert_true(ring_finish(got, false));
		} else {
			assert_int_equal(mock.calls[WIRE_AGENT_ring_reserve], ++calls);
			assert_int_equal(mock.args[1], 20);
			memcpy(ring, twin, sizeof(*ring) + SIZE);
		}
		assert_memory_equal(ring, twin, sizeof(*ring) + SIZE);
	}
	assert_in_range(calls, 20, 180);
	free(twin);
}

/* Routines that are written out give what their twins do. */
static void test_native_bucket(void **state)
{
	const struct bpf_insn p[] = { LDX(DW, 1, 1, 0),
				      CALL((int32_t)jit_native("d_quantize_bucket")), EXIT() };

	assert_int_equal(jit_native("d_strlen"), 0);
	for (int bit = 0; bit < 128; bit++) {
		if (bit % 64 == 0) {
			mock.env.lzcnt = bit && __builtin_cpu_supports("lzcnt");
			COMPILE(p);
		}
		for (int64_t d = -1; d <= 1; d++) {
			for (int minus = 0; minus < 2; minus++) {
				uint64_t v = (1ull << bit % 64) + (uint64_t)d,
					 ctx[21] = { minus ? -v : v }, size, want = 63;
				int64_t x = (int64_t)ctx[0];

				size = x < 0 ? -(uint64_t)x : (uint64_t)x;
				if (x > 0)
					want = 64 + (63 - (uint64_t)__builtin_clzll(size));
				else if (x < 0 && x > INT64_MIN)
					want = 62 - (63 - (uint64_t)__builtin_clzll(size));
				else if (x)
					want = 0;
				assert_int_equal(mock_host(ctx, 0), want);
			}
		}
	}
}

static void test_native_scratch(void **state)
{
	uint32_t map = mock_add_map(WIRE_MAP_THREAD_ARRAY, 64, 3);
	const struct bpf_insn p[] = { LD64(1, BPF_PSEUDO_MAP_FD, map),
				      CALL((int32_t)jit_native("d_scratch_get")), EXIT() };
	uint64_t *slot[3];

	COMPILE(p);
	for (uint32_t i = 0; i < 3; i++) {
		slot[i] = (uint64_t *)((uintptr_t)mock.thread + mock.maps[map].base +
				       i * mock.maps[map].stride);
		*slot[i] = 0;
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(mock_host(NULL, 0), (uintptr_t)slot[i]);
		assert_int_equal(*slot[i], 1);
	}
	assert_int_equal(mock_host(NULL, 0), 0);
	*slot[1] = 0;
	assert_int_equal(mock_host(NULL, 0), (uintptr_t)slot[1]);
}

static void test_cookie(void **state)
{
	const struct bpf_insn p[] = { CALL(BPF_FUNC_get_attach_cookie), EXIT() };

	COMPILE(p);
	assert_int_equal(mock_host(NULL, 77), 77);
}

/* What is written out in place of a call. */
static void test_short_helpers(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_TASK, 24, 1);
	const struct bpf_insn clock[] = { CALL(BPF_FUNC_ktime_get_ns), EXIT() };
	const struct bpf_insn task[] = { CALL(BPF_FUNC_get_current_task_btf), EXIT() };
	const struct bpf_insn ids[] = { CALL(BPF_FUNC_get_current_pid_tgid), EXIT() };
	const struct bpf_insn storage[] = {
		CALL(BPF_FUNC_get_current_task_btf),
		ALU64_REG(MOV, 2, 0),
		LD64(1, BPF_PSEUDO_MAP_FD, m),
		ALU64_IMM(MOV, 3, 0),
		ALU64_IMM(MOV, 4, 1),
		CALL(BPF_FUNC_task_storage_get),
		JMP_IMM(JEQ, 0, 0, 1),
		ST(DW, 0, 16, 9),
		EXIT(),
	};
	/* whose it is has been through arithmetic */
	const struct bpf_insn lost[] = {
		CALL(BPF_FUNC_get_current_task_btf),
		ALU64_REG(MOV, 2, 0),
		ALU64_IMM(XOR, 2, 0),
		LD64(1, BPF_PSEUDO_MAP_FD, m),
		ALU64_IMM(MOV, 3, 0),
		ALU64_IMM(MOV, 4, 1),
		CALL(BPF_FUNC_task_storage_get),
		EXIT(),
	};
	struct wire_clock *c = &mock.head->clock;
	uint64_t t, begin;

	mock.result = 12345;
	COMPILE(clock);
	assert_int_equal(mock_host(NULL, 0), 12345); /* no counter: the agent's clock */
	assert_int_equal(mock.calls[WIRE_AGENT_ktime], 1);
	mock_know_thread();
	begin = __builtin_ia32_rdtsc();
	*c = (struct wire_clock){ .base_ns = 1000 - begin / 2, .mult = 1ull << 63 };
	mock.env.tsc = true;
	COMPILE(clock);
	t = mock_host(NULL, 0);
	assert_in_range(t, 999, 1000 + (__builtin_ia32_rdtsc() - begin) / 2);
	assert_int_equal(mock.calls[WIRE_AGENT_ktime], 1);

	mock.thread->task = 0;
	mock.thread->pid = 7;
	mock.thread->tid = 8;
	COMPILE(ids);
	assert_int_equal(mock_host(NULL, 0), 7ull << 32 | 8);
	COMPILE(storage);
	assert_int_equal(mock.out.nchecked, 0);
	/* also where there is no BTF that tells a task_struct's layout */
	assert_int_equal(mock_host(NULL, 0), (uintptr_t)mock_value(m, 0));
	assert_int_equal(((uint64_t *)mock_value(m, 0))[2], 9);
	COMPILE(lost);
	assert_int_equal(mock_host(NULL, 0), 0);
	mock.thread->task = 4096;
	assert_int_equal(mock_host(NULL, 0), (uintptr_t)mock_value(m, 0));
	COMPILE(task);
	assert_int_equal(mock_host(NULL, 0), 4096);
}

/* --- thunks --- */

struct cpu {
	uint64_t r[16]; /* by x86 number; rsp is not loaded */
	uint64_t flags;
};
static struct cpu cpu_in __attribute__((used)), cpu_out __attribute__((used));
static void *cpu_stub __attribute__((used));

/* Loads every register and the flags, calls the stub, stores them. The red zone below is filled and
 * compared. */
extern void cpu_run(void);
__asm__(".text\n"
	"cpu_run:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	sub $8, %rsp\n"
	"	mov %rsp, cpu_in+32(%rip)\n"
	"	subq $8, cpu_in+32(%rip)\n" /* as the stub sees it */
	"	pushq cpu_in+128(%rip)\n"
	"	popfq\n"
	"	mov cpu_in+0(%rip), %rax\n"
	"	mov cpu_in+8(%rip), %rcx\n"
	"	mov cpu_in+16(%rip), %rdx\n"
	"	mov cpu_in+24(%rip), %rbx\n"
	"	mov cpu_in+40(%rip), %rbp\n"
	"	mov cpu_in+48(%rip), %rsi\n"
	"	mov cpu_in+56(%rip), %rdi\n"
	"	mov cpu_in+64(%rip), %r8\n"
	"	mov cpu_in+72(%rip), %r9\n"
	"	mov cpu_in+80(%rip), %r10\n"
	"	mov cpu_in+88(%rip), %r11\n"
	"	mov cpu_in+96(%rip), %r12\n"
	"	mov cpu_in+104(%rip), %r13\n"
	"	mov cpu_in+112(%rip), %r14\n"
	"	mov cpu_in+120(%rip), %r15\n"
	"	movq $0x1234, -16(%rsp)\n"
	"	movq $0x5678, -128(%rsp)\n"
	"	call *cpu_stub(%rip)\n"
	"cpu_after:\n"
	"	mov %rax, cpu_out+0(%rip)\n"
	"	mov %rcx, cpu_out+8(%rip)\n"
	"	mov %rdx, cpu_out+16(%rip)\n"
	"	mov %rbx, cpu_out+24(%rip)\n"
	"	mov %rsp, cpu_out+32(%rip)\n"
	"	mov %rbp, cpu_out+40(%rip)\n"
	"	mov %rsi, cpu_out+48(%rip)\n"
	"	mov %rdi, cpu_out+56(%rip)\n"
	"	mov %r8, cpu_out+64(%rip)\n"
	"	mov %r9, cpu_out+72(%rip)\n"
	"	mov %r10, cpu_out+80(%rip)\n"
	"	mov %r11, cpu_out+88(%rip)\n"
	"	mov %r12, cpu_out+96(%rip)\n"
	"	mov %r13, cpu_out+104(%rip)\n"
	"	mov %r14, cpu_out+112(%rip)\n"
	"	mov %r15, cpu_out+120(%rip)\n"
	"	mov -16(%rsp), %rcx\n"
	"	mov %rcx, cpu_red(%rip)\n"
	"	mov -128(%rsp), %rcx\n"
	"	mov %rcx, cpu_red+8(%rip)\n"
	"	pushfq\n"
	"	popq cpu_out+128(%rip)\n"
	"	cld\n"
	"	add $8, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");
extern const char cpu_after[];
static uint64_t cpu_red[2] __attribute__((used));
enum { FLAGS = 0x8d5, FLAGS_ON = 0x202 }; /* OF SF ZF AF PF CF */

/* Fires a probe; everything must be as it was. */
static void fire_with(enum wire_stub_kind kind, uint64_t flags, uint64_t rax)
{
	cpu_stub = mock_stub(kind, 0x123456789, 31);
	for (int i = 0; i < 16; i++)
		cpu_in.r[i] = 0x1111111111111111ull * (uint64_t)i + 0xabc;
	cpu_in.r[0] = rax;
	cpu_in.flags = flags | FLAGS_ON;
	memset(&cpu_out, 0, sizeof(cpu_out));
	cpu_run();
	for (int i = 0; i < 16; i++) {
		uint64_t was = cpu_in.r[i] + (i == 4 ? 8 : 0);

		if (cpu_out.r[i] != was)
			fail_msg("kind %d: register %d was 0x%llx, is 0x%llx", kind, i,
				 (unsigned long long)was, (unsigned long long)cpu_out.r[i]);
	}
	if (kind >= WIRE_STUB_MID) {
		assert_int_equal(cpu_out.flags & FLAGS, flags & FLAGS);
		assert_int_equal(cpu_red[1], 0x5678);
	}
	assert_true(mock.entry->rsp == WIRE_IDLE);
}

static void fire(enum wire_stub_kind kind, uint64_t flags)
{
	fire_with(kind, flags, 0xabc);
}

static void test_thunk_count(void **state)
{
	static const enum wire_identity ids[] = { WIRE_ID_FS64, WIRE_ID_FS32, WIRE_ID_FSBASE };
	uint32_t m = mock_add_map(WIRE_MAP_AGG_ARRAY, 8, 1);
	const struct bpf_insn p[] = {
		MOCK_LOOKUP(m),       JMP_IMM(JEQ, 0, 0, 2),
		ALU64_IMM(MOV, 1, 1), ATOMIC(DW, 0, 1, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0), EXIT(),
	};
	uint64_t want = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(ids); i++) {
		if (ids[i] == WIRE_ID_FSBASE && !(getauxval(AT_HWCAP2) & 2))
			continue;
		mock.env.identity = ids[i];
		COMPILE(p);
		assert_int_equal(mock.out.stack, 0);
		mock_forget_thread();
		/* nobody knows the thread: the agent gives it */
		for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
			uint32_t calls = mock.calls[WIRE_AGENT_thread];

			fire(kind, FLAGS);
			assert_int_equal(mock.calls[WIRE_AGENT_thread], calls + 1);
			assert_int_equal(*(uint64_t *)mock_value(m, 0), ++want);
			mock_know_thread();
			for (uint64_t f = 0; f < 64; f++)
				fire(kind, (f & 1) | (f & 2) << 1 | (f & 4) << 2 | (f & 8) << 3 |
						   (f & 16) << 3 | (f & 32) << 6);
			want += 64;
			assert_int_equal(*(uint64_t *)mock_value(m, 0), want);
			assert_int_equal(mock.calls[WIRE_AGENT_thread], calls + 1);
			mock_forget_thread();
		}
	}
	assert_int_equal(mock.thread->gen, 0);
	/* no slot free: skipped */
	mock.give = NULL;
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++)
		fire(kind, FLAGS);
	assert_int_equal(*(uint64_t *)mock_value(m, 0), want);
}

static struct {
	uint64_t cookie, rsp, regs;
} seen;
static uint64_t seen_regs[21];
static uint64_t look(uint32_t entry, const uint64_t args[6])
{
	seen.cookie = mock.thread->cookie;
	seen.rsp = mock.entry->rsp;
	seen.regs = mock.own->regs;
	if (seen.regs)
		memcpy(seen_regs, (void *)(uintptr_t)seen.regs, sizeof(seen_regs));
	return 5;
}

/* A helper sees the firing as it is, and every register of the program. */
static void test_thunk_regs(void **state)
{
	static const uint8_t order[] = { 15, 14, 13, 12, 5, 3, 11, 10, 9, 8, 0, 1, 2, 6, 7 };
	const struct bpf_insn p[] = {
		ST(DW, 10, -8, 0),
		ALU64_IMM(MOV, 6, 1),
		ALU64_IMM(MOV, 7, 2),
		ALU64_IMM(MOV, 8, 3),
		ALU64_IMM(MOV, 9, 4),
		CALL(BPF_FUNC_get_prandom_u32),
		ALU64_REG(MOV, 1, 0),
		CALL(BPF_FUNC_task_pt_regs),
		ALU64_REG(ADD, 0, 6),
		ALU64_REG(ADD, 0, 7),
		ALU64_REG(ADD, 0, 8),
		ALU64_REG(ADD, 0, 9),
		EXIT(),
	};

	mock.helper = look;
	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		bool after = kind == WIRE_STUB_RETURN || kind == WIRE_STUB_TAIL;
		uint64_t *r = seen_regs;

		fire(kind, FLAGS);
		assert_int_equal(seen.cookie, 31);
		assert_in_range(seen.rsp, cpu_in.r[4] - WIRE_THUNK_BELOW, cpu_in.r[4] - 8);
		assert_true(seen.regs > (uintptr_t)mock.stack && seen.regs < (uintptr_t)mock.own);
		for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
			assert_int_equal(r[i], cpu_in.r[order[i]]);
		assert_int_equal(r[15], UINT64_MAX);
		assert_int_equal(r[16], after ? (uintptr_t)cpu_after : 0x123456789);
		assert_int_equal(r[17], 0x33);
		assert_int_equal(r[19], cpu_in.r[4] + (after ? 8 : 0));
		assert_int_equal(r[20], 0x2b);
	}
}

/* On a signal stack with room the program stays there, else the kernel would take it for free. */
static void test_thunk_signal_stack(void **state)
{
	const struct bpf_insn p[] = { ST(DW, 10, -8, 0),
				      CALL(BPF_FUNC_task_pt_regs),
				      ALU64_REG(MOV, 6, 10),
				      STX(DW, 10, 6, -8),
				      CALL(BPF_FUNC_get_prandom_u32),
				      LDX(DW, 0, 10, -8),
				      EXIT() };
	uint8_t here;
	uint64_t sp = (uintptr_t)&here;

	mock.helper = look;
	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		for (int room = 0; room < 3; room++) {
			bool stays = room == 1;

			/* too small; large; elsewhere */
			mock.own->alt_lo = room == 0   ? sp - 5000
					   : room == 1 ? sp - 100000
						       : sp + 100000;
			mock.own->alt_hi = room == 2 ? sp + 200000 : sp + 100000;
			fire(kind, FLAGS);
			assert_in_range(seen.rsp, cpu_in.r[4] - WIRE_THUNK_BELOW, cpu_in.r[4] - 8);
			assert_int_equal(mock.own->frame % 16, 0);
			if (stays)
				assert_in_range(mock.own->frame, seen.rsp - 4096, seen.rsp);
			else
				assert_in_range(mock.own->frame, (uintptr_t)mock.stack,
						(uintptr_t)mock.own);
		}
	}
}

/* The agent's clock, where the program stays on the traced program's stack. */
static void test_thunk_clock(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 8, 1);
	const struct bpf_insn p[] = { CALL(BPF_FUNC_ktime_get_ns),
				      LD64(1, EBPF_PSEUDO_MAP_VALUE, m), STX(DW, 1, 0, 0),
				      ALU64_IMM(MOV, 0, 0), EXIT() };

	mock_know_thread();
	mock.result = 99;
	COMPILE(p);
	assert_int_equal(mock.out.stack, 0);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		mock.env.tsc = false;
		COMPILE(p);
		fire(kind, FLAGS);
		assert_int_equal(*(uint64_t *)mock_value(m, 0), 99);
		mock.env.tsc = true;
		mock.head->clock.mult = UINT64_MAX;
		COMPILE(p);
		fire(kind, FLAGS);
		assert_true(*(uint64_t *)mock_value(m, 0) > 1000);
	}
}

/* A program that stands in the thunk itself: ends in several places, parts that stand aside. */
static void test_thunk_body(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 24, 1);
	const struct bpf_insn p[] = {
		LD64(9, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 6, 9, 0),
		ALU64_REG(MOV, 1, 6),
		CALL((int32_t)jit_native("d_quantize_bucket")),
		STX(DW, 9, 0, 8),
		JMP_IMM(JSGT, 6, 5, 2),
		ALU64_IMM(MOV, 0, 1),
		EXIT(),
		ST(DW, 9, 16, 4711),
		JMP_IMM(JNE, 6, 7, 2),
		ALU64_IMM(MOV, 0, 2),
		EXIT(),
		ALU64_IMM(ADD, 6, 1),
		STX(DW, 9, 6, 16),
		ALU64_IMM(MOV, 0, 3),
		EXIT(),
	};
	static const int64_t in[] = { 0, 5, 7, 8, -1, -9, INT64_MIN, INT64_MAX - 1 };
	static const uint64_t bucket[] = { 63, 66, 66, 67, 62, 59, 0, 126 };
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	COMPILE(p);
	assert_int_equal(mock.out.stack, 0);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(in); i++) {
			v[0] = (uint64_t)in[i];
			v[1] = v[2] = 99;
			fire(kind, FLAGS);
			assert_int_equal(v[0], in[i]);
			assert_int_equal(v[1], bucket[i]);
			assert_int_equal(v[2], in[i] <= 5 ? 99 : in[i] == 7 ? 4711 : in[i] + 1);
			assert_int_equal(mock_host(NULL, 0), in[i] <= 5 ? 1 : in[i] == 7 ? 2 : 3);
		}
	}
}

/* Operands in memory, and what must not become one: the value is needed again, or a jump comes
 * between. */
static void test_operands(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 64, 1), t = mock_add_map(WIRE_MAP_TASK, 16, 1);
	const struct bpf_insn p[] = {
		LD64(6, EBPF_PSEUDO_MAP_VALUE, m),
		CALL(BPF_FUNC_get_current_task_btf),
		ALU64_REG(MOV, 2, 0),
		LD64(1, BPF_PSEUDO_MAP_FD, t),
		ALU64_IMM(MOV, 3, 0),
		ALU64_IMM(MOV, 4, 1),
		CALL(BPF_FUNC_task_storage_get),
		JMP_IMM(JEQ, 0, 0, 26),
		ALU64_REG(MOV, 7, 0),
		LDX(W, 1, 6, 0),
		JMP_IMM(JEQ, 1, -1, 23), /* never: 32 bits are not negative */
		LDX(DW, 2, 6, 8),
		JMP_IMM(JEQ, 2, -1, 1),
		ALU64_IMM(ADD, 2, 1), /* read after the comparison */
		STX(DW, 7, 2, 0),
		ALU64_IMM(MOV, 3, 5),
		JMP_IMM(JGT, 2, 9, 1),
		LDX(DW, 3, 6, 16),
		ALU64_REG(SUB, 3, 2), /* reached in two ways */
		STX(DW, 6, 3, 24),
		LDX(DW, 4, 6, 16),
		ALU64_REG(XOR, 3, 4),
		STX(DW, 6, 3, 32),
		ALU64_IMM(MOV, 5, -3),
		ATOMIC(DW, 7, 5, 8, BPF_ADD),
		ATOMIC(W, 6, 5, 40, BPF_ADD),
		STX(DW, 6, 5, 48),
		ALU64_IMM(ADD, 6, 32),
		LDX(DW, 1, 6, 24),
		JMP_IMM(JEQ, 1, 0, 2),
		ALU64_REG(MOV, 0, 1),
		EXIT(),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
		ALU64_IMM(MOV, 0, -1),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0), *s = mock_value(t, 0);

	COMPILE(p);
	assert_int_equal(mock.out.nchecked, 0);
	for (int i = 0; i < 2; i++) {
		memset(v, 0, 64);
		v[0] = UINT32_MAX;
		v[1] = i ? UINT64_MAX : 4;
		v[2] = 77;
		v[7] = (uint64_t)i;
		s[1] = 10;
		assert_int_equal(mock_host(NULL, 0), i);
		assert_int_equal(s[0], i ? UINT64_MAX : 5);
		assert_int_equal(s[1], 7);
		assert_int_equal(v[3], i ? 6 : 72);
		assert_int_equal(v[4], v[3] ^ 77);
		assert_int_equal(v[5], 0xfffffffd);
		assert_int_equal(v[6], (uint64_t)-3);
	}
}

/* The ring is full: the agent is asked, and every register is the program's again. */
static void test_thunk_ring(void **state)
{
	uint32_t ring = mock_add_map(WIRE_MAP_RING, 0, 4096);
	const struct bpf_insn p[] = {
		LD64(1, BPF_PSEUDO_MAP_FD, ring),
		ALU64_IMM(MOV, 2, 24),
		ALU64_IMM(MOV, 3, 0),
		CALL(BPF_FUNC_ringbuf_reserve),
		JMP_IMM(JEQ, 0, 0, 4),
		ST(DW, 0, 0, 5),
		ALU64_REG(MOV, 1, 0),
		ALU64_IMM(MOV, 2, 0),
		CALL(BPF_FUNC_ringbuf_submit),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	struct wire_ring *r;

	mock.maps[ring].base = 16384; /* behind the other maps of the slot */
	r = (struct wire_ring *)((uint8_t *)mock.thread + mock.maps[ring].base);
	mock_know_thread();
	COMPILE(p);
	assert_int_equal(mock.out.stack, 0);
	mock.result = 0;
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		uint32_t asked = mock.calls[WIRE_AGENT_ring_reserve];

		r->head = r->tail = 0;
		for (int i = 0; i < 128; i++)
			fire(kind, FLAGS);
		assert_int_equal(r->head, 4096);
		assert_int_equal(((uint32_t *)(r + 1))[0], 24);
		assert_int_equal(((uint64_t *)(r + 1))[1], 5);
		assert_int_equal(mock.calls[WIRE_AGENT_ring_reserve], asked);
		fire(kind, FLAGS);
		assert_int_equal(r->head, 4096);
		assert_int_equal(mock.calls[WIRE_AGENT_ring_reserve], asked + 1);
		assert_int_equal(mock.args[0], mock.addrs[ring]);
		assert_int_equal(mock.args[1], 24);
		assert_int_equal(mock.args[2], 0);
	}
}

/* A violation leaves nothing behind, at any depth. */
static void test_thunk_violation(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 8, 1);
	const struct bpf_insn p[] = {
		/* every callee-saved register is in use, in a function called from a loop */
		ALU64_IMM(MOV, 6, 1),
		ALU64_IMM(MOV, 7, 1),
		ALU64_IMM(MOV, 8, 1),
		ALU64_IMM(MOV, 9, 1),
		ST(DW, 10, -16, 1),
		ALU64_IMM(MOV, 1, 3),
		LD64(2, EBPF_PSEUDO_FUNC, 5),
		ALU64_IMM(MOV, 3, 0),
		ALU64_IMM(MOV, 4, 0),
		CALL(BPF_FUNC_loop),
		EXIT(),
		/* 12 */ CALL_REL(1),
		EXIT(),
		/* 14 */ ALU64_IMM(MOV, 6, 9),
		ALU64_IMM(MOV, 9, 9),
		ST(DW, 10, -24, 1),
		LD64(1, EBPF_PSEUDO_MAP_VALUE, m),
		LDX(DW, 1, 1, 0),
		LDX(DW, 0, 1, 0),
		EXIT(),
	};

	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		fire(kind, FLAGS);
		assert_int_equal(violations(), kind + 1);
		assert_int_equal(mock.insn, 20);
	}
}

static void test_thunk_nested(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_ARRAY, 8, 1);
	const struct bpf_insn p[] = {
		LD64(1, EBPF_PSEUDO_MAP_VALUE, m),
		ALU64_IMM(MOV, 2, 1),
		ATOMIC(DW, 1, 2, 0, BPF_ADD),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};

	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		uint64_t n = *(uint64_t *)mock_value(m, 0);
		struct cpu was;

		/* another firing runs: skipped, and its marks stay */
		mock.entry->rsp = 4242;
		mock.nested = 0;
		cpu_stub = mock_stub(kind, 1, 31);
		cpu_in.flags = FLAGS_ON | FLAGS;
		was = cpu_in;
		cpu_run();
		was.r[4] = cpu_in.r[4] + 8;
		assert_memory_equal(cpu_out.r, was.r, sizeof(was.r));
		assert_int_equal(mock.entry->rsp, 4242);
		assert_int_equal(*(uint64_t *)mock_value(m, 0), n);
		assert_int_equal(mock.args[0], (uintptr_t)mock.thread);
		assert_int_equal(mock.args[1], cpu_in.r[4]);
		/* it was left by longjmp: run after all */
		mock.nested = 1;
		fire(kind, FLAGS);
		assert_int_equal(*(uint64_t *)mock_value(m, 0), n + 1);
		mock.entry->rsp = WIRE_IDLE;
	}
}

/* Arguments of the traced function, read as ctx fields: only those are stored. */
static void test_thunk_arguments(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 16, 1);
	const struct bpf_insn p[] = {
		LDX(DW, 2, 1, 112),
		LDX(DW, 3, 1, 80),
		LD64(4, EBPF_PSEUDO_MAP_VALUE, m),
		STX(DW, 4, 2, 0),
		STX(DW, 4, 3, 8),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0);

	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		v[0] = v[1] = 0;
		fire(kind, FLAGS);
		assert_int_equal(v[0], cpu_in.r[7]);
		assert_int_equal(v[1], cpu_in.r[0]);
	}
}

/* What the agent made of the registers is the program's context; 0: nothing runs. Every register is
 * as it was. */
static uint64_t event_context[8], event_gives;
static struct wire_stub event_stub;
static uint64_t make_event(uint32_t entry, const uint64_t args[6])
{
	if (entry != WIRE_AGENT_event)
		return 0;
	memcpy(seen_regs, (const void *)(uintptr_t)args[0], sizeof(seen_regs));
	memcpy(&event_stub, (const void *)(uintptr_t)args[1], sizeof(event_stub));
	assert_ptr_equal(args[2], mock.thread);
	assert_int_equal(mock.own->regs, args[0]);
	return event_gives;
}

static void test_thunk_event(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 16, 1);
	const struct bpf_insn p[] = {
		LDX(DW, 2, 1, 0), LDX(DW, 3, 1, 32), LD64(4, EBPF_PSEUDO_MAP_VALUE, m),
		STX(DW, 4, 2, 0), STX(DW, 4, 3, 8),  ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0);

	mock.env.events = (1u << (WIRE_STUB_ALL - WIRE_STUB_EVENTS)) - 1;
	mock.helper = make_event;
	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_EVENTS; kind++)
		assert_true(!mock.out.thunk[kind] ==
			    (kind != WIRE_STUB_SYSNOTE && kind != WIRE_STUB_SYSFORK));
	event_context[0] = 11;
	event_context[4] = 44;
	for (int kind = WIRE_STUB_EVENTS; kind < WIRE_STUB_ALL; kind++) {
		bool behind = wire_stub_is_behind((unsigned)kind);

		mock.call = behind ? 56 + 1 : 0;
		v[0] = v[1] = 7;
		event_gives = 0;
		fire_with(kind, FLAGS, 0x12300000038);
		assert_int_equal(v[0], 7);
		event_gives = (uintptr_t)event_context;
		fire_with(kind, FLAGS, 0x12300000038);
		assert_int_equal(v[0], 11);
		assert_int_equal(v[1], 44);
		assert_int_equal(event_stub.kind & 0xffff, kind);
		assert_int_equal(event_stub.probe, 31);
		assert_int_equal(seen_regs[10], behind ? 0x12300000038 : (uint64_t)-38);
		assert_int_equal(seen_regs[15], 56);
		assert_int_equal(seen_regs[14], cpu_in.r[7]);
		assert_int_equal(seen_regs[13], cpu_in.r[6]);
		assert_int_equal(seen_regs[7], cpu_in.r[10]);
		/* not of the child of vfork() */
		mock.thread->vforked = 1;
		v[0] = 7;
		fire_with(kind, FLAGS, 0);
		assert_int_equal(v[0], 7);
		mock.thread->vforked = 0;
	}
	mock.env.events = 1;
	COMPILE(p);
	for (int kind = WIRE_STUB_EVENTS + 1; kind < WIRE_STUB_ALL; kind++)
		assert_int_equal(mock.out.thunk[kind], 0);
}

/* Around a system call: the number at both ends, as far as it is known; a vfork() child's calls are
 * not seen. */
static void test_thunk_syscall(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_THREAD_ARRAY, 24, 1);
	const struct bpf_insn p[] = {
		LDX(DW, 2, 1, 120),
		LDX(DW, 3, 1, 80),
		LDX(DW, 5, 1, 56),
		LD64(4, EBPF_PSEUDO_MAP_VALUE, m),
		STX(DW, 4, 2, 0),
		STX(DW, 4, 3, 8),
		STX(DW, 4, 5, 16),
		ALU64_IMM(MOV, 0, 0),
		EXIT(),
	};
	uint64_t *v = mock_value(m, 0);
	struct wire_thread *t = mock.thread;

	mock.env.syscalls = true;
	mock_know_thread();
	COMPILE(p);
	for (int kind = 0; kind < WIRE_STUB_KINDS; kind++)
		assert_int_equal(mock.out.thunk[kind], 0);
	fire_with(WIRE_STUB_SYSCALL, FLAGS, 0xffffffff00000027);
	assert_int_equal(v[0], 39);
	assert_int_equal(v[1], (uint64_t)-38);
	assert_int_equal(v[2], cpu_in.r[10]);

	/* the number that the stub knows */
	mock.call = 231 + 1;
	fire_with(WIRE_STUB_SYSRET, FLAGS, (uint64_t)-2);
	assert_int_equal(v[0], 231);
	assert_int_equal(v[1], (uint64_t)-2);

	/* noted at the entry; kept, then forgotten; then nothing is known and nothing runs */
	mock.call = 0;
	fire_with(WIRE_STUB_SYSNOTE, 0, 35);
	assert_int_equal(t->calls[0].rsp, cpu_in.r[4]);
	assert_int_equal(t->calls[0].number, 35);
	mock.call = WIRE_STUB_CALL_KEEP;
	fire_with(WIRE_STUB_SYSRET, 0, 0);
	assert_int_equal(v[0], 35);
	v[0] = 0;
	mock.call = 0;
	fire_with(WIRE_STUB_SYSRET, 0, 0);
	assert_int_equal(v[0], 35);
	assert_int_equal(t->calls[0].rsp, 0);
	v[0] = 7;
	fire_with(WIRE_STUB_SYSRET, FLAGS, 0);
	assert_int_equal(v[0], 7);

	/* others are under way: the one at this stack pointer is found; when there is no room one
	 * is lost, and counted */
	for (uint32_t i = 0; i < WIRE_CALLS; i++)
		t->calls[i] = (struct wire_call){ 100 + i, i };
	t->calls[5].rsp = 0;
	fire_with(WIRE_STUB_SYSNOTE, FLAGS, 1);
	assert_int_equal(t->calls[5].rsp, cpu_in.r[4]);
	assert_int_equal(t->skipped_nested, 0);
	fire_with(WIRE_STUB_SYSRET, FLAGS, 3);
	assert_int_equal(v[0], 1);
	t->calls[5].rsp = 42;
	fire_with(WIRE_STUB_SYSNOTE, FLAGS, 2);
	assert_int_equal(t->skipped_nested, 1);
	assert_int_equal(t->calls[7].rsp, cpu_in.r[4]);

	/* the child of vfork(): until the parent comes back */
	t->pid = (uint32_t)getpid();
	fire_with(WIRE_STUB_SYSFORK, FLAGS, 0);
	assert_int_equal(t->vforked, 0);
	t->pid++;
	fire_with(WIRE_STUB_SYSFORK, FLAGS, 0);
	assert_true(t->vforked);
	v[0] = 7;
	fire_with(WIRE_STUB_SYSCALL, FLAGS, 39);
	mock.call = 40;
	fire_with(WIRE_STUB_SYSRET, FLAGS, 39);
	assert_int_equal(v[0], 7);
	fire_with(WIRE_STUB_SYSFORK, FLAGS, 4711);
	assert_int_equal(t->vforked, 0);
	fire_with(WIRE_STUB_SYSCALL, FLAGS, 39);
	assert_int_equal(v[0], 39);

	/* where system calls are filtered nobody is asked */
	((struct wire_kept *)((uint8_t *)mock.private + WIRE_KEPT))->quiet = 1;
	fire_with(WIRE_STUB_SYSFORK, FLAGS, 0);
	assert_int_equal(t->vforked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_refuses),
		T(test_plain_access_is_proven),
		T(test_checked_access),
		T(test_checked_stack),
		T(test_frames),
		T(test_endless),
		T(test_loop),
		T(test_lookup),
		T(test_helper_memory),
		T(test_record),
		T(test_ring),
		T(test_native_bucket),
		T(test_native_scratch),
		T(test_cookie),
		T(test_short_helpers),
		T(test_thunk_count),
		T(test_thunk_signal_stack),
		T(test_thunk_regs),
		T(test_thunk_clock),
		T(test_operands),
		T(test_thunk_body),
		T(test_thunk_ring),
		T(test_thunk_violation),
		T(test_thunk_nested),
		T(test_thunk_arguments),
		T(test_thunk_syscall),
		T(test_thunk_event),
#undef T
	};

	int r = cmocka_run_group_tests(tests, NULL, NULL);

	mock_far = true;
	return r + cmocka_run_group_tests_name("far", tests, NULL, NULL);
}
