/* The compiler of the in-process engine: thunks, called with all registers set. */
#include "jit_fire.h"

#include <sys/auxv.h>

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
		/* the thread is not known: the agent finds it */
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

/* Operands in memory, and loads that must stay: the value is needed again, or a jump comes
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

/* The ring is full: the thunk calls the agent, and restores every register of the program. */
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

static uint64_t rsp_at_signals;
static uint64_t see_signals(uint32_t entry, const uint64_t args[6])
{
	if (entry != WIRE_AGENT_signals)
		return 0;
	assert_int_equal(args[0], (uintptr_t)mock.thread);
	rsp_at_signals = mock.entry->rsp;
	return 42;
}

/* Signals are sent behind the end of the firing, because their handlers may never return. */
static void test_thunk_signals(void **state)
{
	const struct bpf_insn p[] = { ALU64_IMM(MOV, 1, 10), CALL(BPF_FUNC_send_signal),
				      ALU64_IMM(MOV, 0, 0), EXIT() };
	const struct bpf_insn none[] = { ALU64_IMM(MOV, 0, 0), EXIT() };

	mock_know_thread();
	mock.helper = see_signals;
	COMPILE(p);
	for (uint32_t kind = 0; kind < WIRE_STUB_KINDS; kind++) {
		rsp_at_signals = 0;
		fire(kind, FLAGS);
		assert_true(rsp_at_signals == WIRE_IDLE);
		assert_int_equal(mock.calls[WIRE_AGENT_send_signal], kind + 1);
		assert_int_equal(mock.calls[WIRE_AGENT_signals], kind + 1);
	}
	COMPILE(none);
	fire(WIRE_STUB_ENTRY, FLAGS);
	assert_int_equal(mock.calls[WIRE_AGENT_signals], WIRE_STUB_KINDS);
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

/* The agent's result is the program's context; 0: no program runs. Every register is unchanged. */
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

	/* other calls are open: the call at this stack pointer is found; without room one call is
	 * lost and counted */
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

	/* under a system call filter no query is made */
	((struct wire_kept *)((uint8_t *)mock.private + WIRE_KEPT))->quiet = 1;
	fire_with(WIRE_STUB_SYSFORK, FLAGS, 0);
	assert_int_equal(t->vforked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		JIT_TEST(test_thunk_count),   JIT_TEST(test_thunk_signal_stack),
		JIT_TEST(test_thunk_regs),    JIT_TEST(test_thunk_clock),
		JIT_TEST(test_operands),      JIT_TEST(test_thunk_body),
		JIT_TEST(test_thunk_ring),    JIT_TEST(test_thunk_violation),
		JIT_TEST(test_thunk_nested),  JIT_TEST(test_thunk_arguments),
		JIT_TEST(test_thunk_syscall), JIT_TEST(test_thunk_event),
		JIT_TEST(test_thunk_signals),
	};

	return JIT_TESTS(tests);
}
