/* The compiler of the in-process engine: refusals and the code's results. */
#include "jit_test.h"

enum { JIT_DEEP = 9 };

/* --- refused programs --- */

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

/* An address known only at run time: good and bad addresses, every size, loads and stores. */
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

/* The place and size of a helper's output may be known only at run time. */
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

	mock.maps[ring].base = 0; /* in no slot: calls the agent */
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

/* Reserving is written out: the ring has the same contents as from the agent's own code. */
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

/* Routines that are written out return the same as their counterparts in bpf/. */
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

#define READ(helper) \
	ALU64_REG(MOV, 1, 10), ALU64_IMM(ADD, 1, -8), ALU64_IMM(MOV, 2, 8), CALL(helper)
#define STORAGE(m) \
	CALL(BPF_FUNC_get_current_task_btf), ALU64_REG(MOV, 2, 0), LD64(1, BPF_PSEUDO_MAP_FD, m), \
		ALU64_IMM(MOV, 3, 0), ALU64_IMM(MOV, 4, 1), CALL(BPF_FUNC_task_storage_get)

/* Does an address come from memory that other processes may write? */
static void test_steered(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_TASK, 24, 1);
	const struct bpf_insn argument[] = { ALU64_REG(MOV, 6, 1),
					     STORAGE(m),
					     LDX(DW, 7, 0, 0),
					     STX(DW, 10, 7, -24), /* data */
					     LDX(DW, 3, 6, 112),
					     STX(DW, 10, 3, -16),
					     LDX(DW, 3, 10, -16),
					     READ(BPF_FUNC_probe_read_user),
					     EXIT() };
	const struct bpf_insn variable[] = { STORAGE(m), LDX(DW, 3, 0, 0),
					     READ(BPF_FUNC_probe_read_user), EXIT() };
	const struct bpf_insn by_stack[] = { STORAGE(m),
					     LDX(DW, 3, 0, 8),
					     ALU64_IMM(ADD, 3, 8),
					     STX(DW, 10, 3, -16),
					     LDX(DW, 3, 10, -16),
					     READ(BPF_FUNC_probe_read_user_str),
					     EXIT() };
	const struct bpf_insn copied[] = {
		/* into the stack, from there */
		STORAGE(m),         ALU64_REG(MOV, 3, 0),          READ(BPF_FUNC_probe_read_kernel),
		LDX(DW, 3, 10, -8), READ(BPF_FUNC_copy_from_user), EXIT()
	};
	const struct bpf_insn either[] = { ALU64_REG(MOV, 6, 1),
					   STORAGE(m),
					   LDX(DW, 3, 6, 112),
					   JMP_IMM(JEQ, 3, 0, 1),
					   LDX(DW, 3, 0, 0),
					   READ(BPF_FUNC_probe_read_user),
					   EXIT() };
	const struct bpf_insn written[] = { STORAGE(m),
					    LDX(DW, 1, 0, 0),
					    ST(DW, 10, -8, 1),
					    ALU64_REG(MOV, 2, 10),
					    ALU64_IMM(ADD, 2, -8),
					    ALU64_IMM(MOV, 3, 8),
					    CALL(BPF_FUNC_probe_write_user),
					    EXIT() };

	COMPILE(argument);
	assert_false(mock.out.steered);
	COMPILE(variable);
	assert_true(mock.out.steered);
	COMPILE(by_stack);
	assert_true(mock.out.steered);
	COMPILE(copied);
	assert_true(mock.out.steered);
	COMPILE(either);
	assert_true(mock.out.steered);
	COMPILE(written);
	assert_true(mock.out.steered);
}

/* The same of private variables: a word is private until something shared is stored in it, by any
 * program. */
static void test_steered_own(void **state)
{
	uint32_t m = mock_add_map(WIRE_MAP_OWN_TASK, 32, 1),
		 shared = mock_add_map(WIRE_MAP_TASK, 8, 1);
	uint64_t words[1] = { 0 };
	const struct bpf_insn first[] = { STORAGE(m), LDX(DW, 3, 0, 0),
					  READ(BPF_FUNC_probe_read_user), EXIT() };
	const struct bpf_insn second[] = { STORAGE(m), LDX(DW, 3, 0, 8),
					   READ(BPF_FUNC_probe_read_user), EXIT() };
	const struct bpf_insn third[] = { STORAGE(m), LDX(DW, 3, 0, 16),
					  READ(BPF_FUNC_probe_read_user), EXIT() };
	const struct bpf_insn argument[] = { LDX(DW, 6, 1, 112), STORAGE(m), STX(DW, 0, 6, 0),
					     EXIT() };
	const struct bpf_insn stored[] = { STORAGE(shared), LDX(DW, 6, 0, 0), STORAGE(m),
					   STX(DW, 0, 6, 8), EXIT() };
	const struct bpf_insn copied[] = { STORAGE(shared),
					   ALU64_REG(MOV, 6, 0),
					   STORAGE(m),
					   ALU64_REG(MOV, 1, 0),
					   ALU64_IMM(ADD, 1, 16),
					   ALU64_IMM(MOV, 2, 8),
					   ALU64_REG(MOV, 3, 6),
					   CALL(BPF_FUNC_probe_read_kernel),
					   EXIT() };
	const struct bpf_insn both[] = { /* copies two words, of which the second is shared */
					 STORAGE(m),
					 ALU64_REG(MOV, 3, 0),
					 ALU64_REG(MOV, 1, 10),
					 ALU64_IMM(ADD, 1, -16),
					 ALU64_IMM(MOV, 2, 16),
					 CALL(BPF_FUNC_probe_read_kernel),
					 LDX(DW, 3, 10, -8),
					 READ(BPF_FUNC_copy_from_user),
					 EXIT()
	};

	mock.env.own_shared = words;
	COMPILE(first);
	assert_false(mock.out.steered);
	COMPILE(argument);
	assert_int_equal(words[0], 0);
	COMPILE(both);
	assert_false(mock.out.steered);
	COMPILE(stored);
	assert_false(mock.out.steered);
	assert_int_equal(words[0], 1 << 1);
	COMPILE(first);
	assert_false(mock.out.steered);
	COMPILE(second);
	assert_true(mock.out.steered);
	COMPILE(both);
	assert_true(mock.out.steered);
	COMPILE(third);
	assert_false(mock.out.steered);
	COMPILE(copied); /* how much a helper has written is not known */
	assert_int_equal(words[0], 1 << 1 | 1 << 2 | 1 << 3);
	COMPILE(third);
	assert_true(mock.out.steered);
	COMPILE(first);
	assert_false(mock.out.steered);
	mock.env.own_shared = NULL;
}

/* Calls that are written out. */
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
	/* the task's address has been through arithmetic */
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
	/* also without BTF that has task_struct's layout */
	assert_int_equal(mock_host(NULL, 0), (uintptr_t)mock_value(m, 0));
	assert_int_equal(((uint64_t *)mock_value(m, 0))[2], 9);
	COMPILE(lost);
	assert_int_equal(mock_host(NULL, 0), 0);
	mock.thread->task = 4096;
	assert_int_equal(mock_host(NULL, 0), (uintptr_t)mock_value(m, 0));
	COMPILE(task);
	assert_int_equal(mock_host(NULL, 0), 4096);
	/* what others may write is not gone by */
	mock.env.family = true;
	mock.own->task = 8192;
	COMPILE(task);
	assert_int_equal(mock_host(NULL, 0), 8192);
	mock.env.family = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JIT_TEST(test_refuses),        JIT_TEST(test_plain_access_is_proven),
		JIT_TEST(test_checked_access), JIT_TEST(test_checked_stack),
		JIT_TEST(test_frames),         JIT_TEST(test_endless),
		JIT_TEST(test_loop),           JIT_TEST(test_lookup),
		JIT_TEST(test_helper_memory),  JIT_TEST(test_record),
		JIT_TEST(test_ring),           JIT_TEST(test_native_bucket),
		JIT_TEST(test_native_scratch), JIT_TEST(test_cookie),
		JIT_TEST(test_steered),        JIT_TEST(test_steered_own),
		JIT_TEST(test_short_helpers),
	};

	return JIT_TESTS(tests);
}
