/* Writes machine code of calls: functions, bpf_loop(), and helpers. Many helpers are written
 * out. */
#include <assert.h>
#include <errno.h>

#include "compile/jit/code_private.h"
#include "data/image.h"
#include "wire/routines.h"

/* Uses one bit of the word, so that no other
 * writer of the slot can choose an address. */
void code_load_gen(struct jit *j, unsigned reg, const struct wire_map *m)
{
	assert(m->gen_stride <= INT32_MAX);
	x86_rm(&j->b, 4, X86_OP_LOAD, reg, THREAD, OFF_GEN);
	x86_alu_imm(&j->b, 4, X86_AND, reg, 1);
	x86_imul_imm(&j->b, 8, reg, reg, (int32_t)m->gen_stride);
}

/* rax = address of the value at offset rax from the map's first value. */
static void value_address(struct jit *j, const struct wire_map *m)
{
	struct x86 *b = &j->b;

	wrote(j, T0);
	if (m->kind == WIRE_MAP_ARRAY) {
		code_load_address(j, T0, m->base);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, X86_RAX);
		return;
	}
	if (wire_map_is_flipped(m)) {
		code_load_gen(j, T0, m);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, X86_RAX);
	}
	if (m->base <= INT32_MAX) {
		x86_rx(b, 8, X86_OP_LEA, X86_RAX, THREAD, X86_RAX, (int32_t)m->base);
	} else {
		code_thread_address(j, T0, m->base);
		x86_rr(b, 8, x86_alu_op(X86_ADD), T0, X86_RAX);
	}
}

static void known_address(struct jit *j, const struct wire_map *m, uint64_t off)
{
	struct x86 *b = &j->b;

	if (m->kind == WIRE_MAP_ARRAY) {
		code_load_address(j, X86_RAX, m->base + off);
	} else if (wire_map_is_flipped(m) && m->gen_stride <= INT32_MAX &&
		   m->base + off <= INT32_MAX) {
		code_load_gen(j, X86_RAX, m);
		x86_rx(b, 8, X86_OP_LEA, X86_RAX, THREAD, X86_RAX, (int32_t)(m->base + off));
	} else if (wire_map_is_flipped(m)) {
		x86_mov_imm(b, X86_RAX, off);
		value_address(j, m);
	} else {
		code_thread_address(j, X86_RAX, m->base + off);
	}
}

/* rax = the thread's value of a map of task storage. */
static void task_address(struct jit *j, const struct wire_map *m)
{
	if (m->kind != WIRE_MAP_OWN_TASK) {
		code_thread_address(j, X86_RAX, m->base);
		return;
	}
	wrote(j, X86_RAX);
	jit_own(j, X86_RAX);
	x86_alu_imm(&j->b, 8, X86_SUB, X86_RAX, (int32_t)(WIRE_EVENT_BELOW - m->base));
}

static void lookup(struct jit *j, uint32_t i)
{
	const struct jit_fact *f = &j->facts.insn[i];
	const struct wire_map *m = &j->env->maps[f->map];
	bool scratch = m->kind == WIRE_MAP_THREAD_ARRAY && m->role == MAP_SCRATCH;
	struct x86 *b = &j->b;
	unsigned base = X86_RSI;
	int32_t off = 0;
	uint32_t key = f->key, none;

	wrote(j, X86_RAX);
	if (f->key_known) {
		if (scratch)
			key %= m->max_entries;
		if (key < m->max_entries)
			known_address(j, m, (uint64_t)key * m->stride);
		else
			x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
		return;
	}
	/* eBPF's r3 and r4 do not survive the call. */
	wrote(j, X86_RCX);
	if (scratch)
		wrote(j, X86_RDX);
	if (f->key_own) {
		base = X86_RBP;
		off = f->key_at;
	} else if (f->check & 1 << 2) {
		code_check_access(j, i, X86_RSI, 0, 4, true);
		base = T0;
	}
	if (scratch) {
		x86_rm(b, 4, X86_OP_LOAD, X86_RAX, base, off);
		if (m->max_entries & (m->max_entries - 1)) {
			x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDX, X86_RDX);
			x86_mov_imm(b, X86_RCX, m->max_entries);
			x86_rr(b, 4, X86_OP_GROUP3, X86_DIV, X86_RCX);
			x86_mov_rr(b, X86_RAX, X86_RDX);
		} else {
			x86_alu_imm(b, 4, X86_AND, X86_RAX, (int32_t)(m->max_entries - 1));
		}
		x86_imul_imm(b, 8, X86_RAX, X86_RAX, (int32_t)m->stride);
		value_address(j, m);
		return;
	}
	x86_rm(b, 4, X86_OP_LOAD, X86_RCX, base, off);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
	x86_alu_imm(b, 4, X86_CMP, X86_RCX, (int32_t)m->max_entries);
	none = x86_jcc_over(b, X86_AE);
	x86_imul_imm(b, 8, X86_RAX, X86_RCX, (int32_t)m->stride);
	value_address(j, m);
	x86_land(b, none);
}

static void go_down(struct jit *j, uint32_t stack)
{
	if (stack)
		x86_alu_imm(&j->b, 8, X86_SUB, X86_RBP, (int32_t)stack);
}

static void go_up(struct jit *j, uint32_t stack)
{
	if (stack)
		x86_alu_imm(&j->b, 8, X86_ADD, X86_RBP, (int32_t)stack);
}

static void loop(struct jit *j, uint32_t i, uint32_t stack)
{
	enum { INDEX = 8, COUNT = 16, ARG = 24 };
	struct x86 *b = &j->b;
	uint32_t flags, many, done, top;

	x86_mov_imm(b, X86_RAX, (uint64_t)-EINVAL);
	x86_rr(b, 8, X86_OP_TEST, X86_RCX, X86_RCX);
	flags = x86_jcc_over(b, X86_NE);
	x86_mov_imm(b, X86_RAX, (uint64_t)-E2BIG);
	x86_alu_imm(b, 4, X86_CMP, X86_RDI, JIT_LOOPS);
	many = x86_jcc_over(b, X86_A);
	x86_rr(b, 4, X86_OP_STORE, X86_RDI, X86_RAX);
	x86_push(b, X86_RDX);
	x86_push(b, X86_RAX);
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RDI, X86_RDI);
	x86_push(b, X86_RDI);
	x86_push(b, X86_RDI);
	go_down(j, stack);
	top = b->n;
	x86_rm(b, 8, X86_OP_LOAD, X86_RDI, X86_RSP, INDEX);
	x86_rm(b, 8, 0x3b, X86_RDI, X86_RSP, COUNT);
	done = x86_jcc_over(b, X86_AE);
	code_spend(j, i);
	x86_rm(b, 8, X86_OP_LOAD, X86_RSI, X86_RSP, ARG);
	x86_call(b, j->fn_at[j->facts.insn[i].func]);
	x86_alu_mem_imm(b, 8, X86_ADD, X86_RSP, INDEX, 1);
	x86_rr(b, 8, X86_OP_TEST, X86_RAX, X86_RAX);
	x86_jcc(b, X86_E, top, false);
	x86_land(b, done);
	x86_rm(b, 8, X86_OP_LOAD, X86_RAX, X86_RSP, INDEX);
	go_up(j, stack);
	x86_alu_imm(b, 8, X86_ADD, X86_RSP, 32);
	x86_land(b, flags);
	x86_land(b, many);
}

/* rax = CLOCK_MONOTONIC, computed from the processor's counter in the same way as by the agent. */
static void clock_now(struct jit *j)
{
	const uint64_t clock = j->env->area + offsetof(struct wire_area, clock);
	struct x86 *b = &j->b;

	if (!j->env->tsc) {
		wrote(j, T0);
		x86_call(b, j->clock);
		return;
	}
	wrote(j, X86_RDX);
	x86_byte(b, 0x0f); /* rdtsc */
	x86_byte(b, 0x31);
	x86_shift_imm(b, 8, X86_SHL, X86_RDX, 32);
	x86_rr(b, 8, x86_alu_op(X86_OR), X86_RDX, X86_RAX);
	jit_at(j, 8, X86_OP_GROUP3, X86_MUL, clock + offsetof(struct wire_clock, mult), T0);
	jit_at(j, 8, X86_OP_LOAD, X86_RAX, clock + offsetof(struct wire_clock, base_ns), T0);
	x86_rr(b, 8, x86_alu_op(X86_ADD), X86_RDX, X86_RAX);
}

/* rax = d_quantize_bucket(v): 63 is 0; 64 + k: [2^k, 2^(k+1)); 62 - k: (-2^(k+1), -2^k]; -2^63:
 * 0. */
static void quantize_bucket(struct jit *j, uint32_t i)
{
	unsigned v = jit_reg[j->facts.insn[i].arg];
	struct x86 *b = &j->b;
	struct jit_cold *c;

	x86_rr(b, 8, X86_OP_TEST, v, v);
	c = code_cold(j, X86_S, i);
	c->bucket = true;
	if (j->env->lzcnt) {
		x86_byte(b, 0xf3);
		x86_rr(b, 8, X86_OP_BSR, X86_RAX, v);     /* lzcnt */
		x86_alu_imm(b, 4, X86_XOR, X86_RAX, 127); /* 127 - n */
	} else {
		wrote(j, T0);
		x86_rr(b, 8, X86_OP_BSR, X86_RAX, v);
		x86_mov_imm(b, T0, UINT32_MAX);
		x86_rr(b, 8, X86_OP_CMOVE, X86_RAX, T0); /* v is 0 */
		x86_alu_imm(b, 4, X86_ADD, X86_RAX, 64);
	}
	j->cold[j->ncold - 1].back = b->n;
}

/* rax = the first scratch slot of this thread that is not in use, or 0, as d_scratch_get of bpf/
 * returns it. */
static void scratch_get(struct jit *j, const struct wire_map *m)
{
	struct x86 *b = &j->b;
	uint32_t found[WIRE_SCRATCH_SLOTS], n = 0, end;

	code_thread_address(j, X86_RAX, m->base);
	for (; n < WIRE_SCRATCH_SLOTS && n < m->max_entries; n++) {
		if (n)
			x86_alu_imm(b, 8, X86_ADD, X86_RAX, (int32_t)m->stride);
		x86_alu_mem_imm(b, 8, X86_CMP, X86_RAX, 0, 0);
		found[n] = x86_jcc_over(b, X86_E);
	}
	x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
	end = x86_jmp_over(b);
	while (n)
		x86_land(b, found[--n]);
	x86_store_imm(b, 8, X86_RAX, 0, 1);
	x86_land(b, end);
}

/* rax = the room of a record in the ring, whose one writer is this thread. A cold path calls the
 * agent when the ring is full or the record does not fit in one piece. */
static void ring_reserve(struct jit *j, uint32_t i)
{
	/* AHEAD: distance of the prefetch. It brings a line back from the tracer's cache before
	 * this thread writes it. */
	enum {
		HEAD = offsetof(struct wire_ring, head),
		TAIL = offsetof(struct wire_ring, tail),
		AHEAD = 1024
	};
	const struct wire_map *m = &j->env->maps[j->facts.insn[i].map];
	const uint32_t n = j->facts.insn[i].record;
	const int32_t need = (int32_t)((n + 7 + WIRE_RING_HEAD) & ~7u), ring = (int32_t)m->base;
	struct x86 *b = &j->b;
	uint32_t first = j->ncold;

	wrote(j, X86_R8);
	wrote(j, T0);
	x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, ring + HEAD);
	x86_rm(b, 8, X86_OP_LEA, X86_R8, X86_RAX, need);
	x86_mov_rr(b, T0, X86_R8);
	x86_rm(b, 8, 0x2b, T0, THREAD, ring + TAIL);
	x86_alu_imm(b, 8, X86_CMP, T0, (int32_t)m->max_entries);
	code_cold(j, X86_A, i);
	x86_alu_imm(b, 4, X86_AND, X86_RAX, (int32_t)m->max_entries - 1);
	x86_alu_imm(b, 4, X86_CMP, X86_RAX, (int32_t)m->max_entries - need);
	code_cold(j, X86_A, i);
	x86_rx(b, 8, X86_OP_LEA, X86_RAX, THREAD, X86_RAX,
	       ring + (int32_t)sizeof(struct wire_ring) + WIRE_RING_HEAD);
	x86_rm(b, 4, X86_OP_PREFETCH, X86_PREFETCHW, X86_RAX, AHEAD);
	x86_mov_imm(b, T0, WIRE_RING_BUSY | n); /* the padding is 0 */
	x86_rm(b, 8, X86_OP_STORE, T0, X86_RAX, -WIRE_RING_HEAD);
	x86_rm(b, 8, X86_OP_STORE, X86_R8, THREAD, ring + HEAD);
	for (; first < j->ncold; first++) {
		j->cold[first].reserve = true;
		j->cold[first].back = b->n;
	}
}

static void cpu_number(struct jit *j)
{
	enum { SELECTOR = 0x7b }; /* a segment whose limit is node << 12 | cpu */
	struct x86 *b = &j->b;
	uint32_t good;

	if (j->env->rdpid) {
		x86_byte(b, 0xf3); /* rdpid rax */
		x86_byte(b, 0x0f);
		x86_byte(b, 0xc7);
		x86_byte(b, 0xf8);
		x86_alu_imm(b, 4, X86_AND, X86_RAX, 0xfff);
		return;
	}
	wrote(j, T0);
	x86_mov_imm(b, X86_RAX, SELECTOR);
	x86_rr(b, 4, X86_OP_LSL, X86_RAX, X86_RAX);
	good = x86_jcc_over(b, X86_E);
	x86_call(b, j->cpu);
	x86_land(b, good);
	x86_alu_imm(b, 4, X86_AND, X86_RAX, 0xfff);
}

/* rax = the low eight bytes of xmm<n>. Neither thunks nor the agent change vector registers, so
 * they hold the traced program's values. In the tracer's own thread they mean nothing. */
static void vector_value(struct jit *j, uint32_t n)
{
	struct x86 *b = &j->b;

	x86_byte(b, 0x66); /* movq */
	x86_byte(b, 0x48);
	x86_byte(b, 0x0f);
	x86_byte(b, 0x7e);
	x86_byte(b, (uint8_t)(0xc0 | n << 3 | X86_RAX));
}

/* Writes helpers of a few instructions. Returns false for other helpers. */
static bool short_helper(struct jit *j, uint32_t i, const struct jit_helper *h)
{
	struct x86 *b = &j->b;
	uint32_t none;

	if (h->id >= JIT_VECTOR && h->id < JIT_VECTORS_END) {
		vector_value(j, h->id - JIT_VECTOR);
		return true;
	}
	switch (h->id) {
	case BPF_FUNC_get_attach_cookie:
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, OFF_COOKIE);
		return true;
	case BPF_FUNC_get_func_ip: x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX); return true;
	case BPF_FUNC_get_stackid: x86_mov_imm(b, X86_RAX, (uint64_t)-EFAULT); return true;
	case BPF_FUNC_ktime_get_ns: clock_now(j); return true;
	case JIT_QUANTIZE_BUCKET: quantize_bucket(j, i); return true;
	case JIT_SCRATCH_GET: scratch_get(j, &j->env->maps[j->facts.insn[i].map]); return true;
	case BPF_FUNC_get_current_task:
	case BPF_FUNC_get_current_task_btf:
		if (j->env->family) {
			jit_own(j, X86_RAX);
			x86_rm(b, 8, X86_OP_LOAD, X86_RAX, X86_RAX,
			       offsetof(struct wire_own, task));
		} else {
			x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD,
			       offsetof(struct wire_thread, task));
		}
		return true;
	case BPF_FUNC_get_current_pid_tgid: /* tid and pid are adjacent */
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, THREAD, offsetof(struct wire_thread, tid));
		return true;
	case BPF_FUNC_task_pt_regs:
		jit_own(j, X86_RAX);
		x86_rm(b, 8, X86_OP_LOAD, X86_RAX, X86_RAX, OFF_REGS);
		return true;
	case BPF_FUNC_task_storage_get:
		if (!jit_inline(j->env, &j->insns[i], &j->facts.insn[i]))
			return false;
		if (j->facts.insn[i].there) {
			task_address(j, &j->env->maps[j->facts.insn[i].map]);
			return true;
		}
		x86_mov_rr(b, X86_RAX, X86_RSI);
		x86_rr(b, 8, X86_OP_TEST, X86_RAX, X86_RAX);
		none = x86_jcc_over(b, X86_E);
		task_address(j, &j->env->maps[j->facts.insn[i].map]);
		x86_land(b, none);
		return true;
	}
	return false;
}

static enum wire_agent_entry entry_of(const struct jit *j, const struct jit_helper *h)
{
	if (j->env->own_reads && h->id == BPF_FUNC_probe_read_kernel)
		return WIRE_AGENT_read_own;
	if (j->env->own_reads && h->id == BPF_FUNC_probe_read_kernel_str)
		return WIRE_AGENT_read_own_str;
	return (enum wire_agent_entry)h->agent;
}

void code_call(struct jit *j, uint32_t i, const struct bpf_insn *ins, const struct jit_fn *fn)
{
	const struct jit_fact *f = &j->facts.insn[i];
	const struct jit_helper *h;
	struct x86 *b = &j->b;

	if (ins->src_reg == BPF_PSEUDO_CALL) {
		go_down(j, fn->stack);
		x86_call(b, j->fn_at[f->func]);
		go_up(j, fn->stack);
		return;
	}
	h = jit_helper((uint32_t)ins->imm);
	wrote(j, X86_RAX);
	if (h->id == BPF_FUNC_loop) {
		j->clobbered |= 1 << X86_RDI | 1 << X86_RSI;
		loop(j, i, fn->stack);
		return;
	}
	if (short_helper(j, i, h))
		return;
	if (jit_inline_lookup(j->env, ins, f)) {
		lookup(j, i);
		return;
	}
	if (jit_mostly_inline(j->env, ins, f)) {
		switch (h->id) {
		case BPF_FUNC_ringbuf_reserve: ring_reserve(j, i); return;
		case BPF_FUNC_get_smp_processor_id: cpu_number(j); return;
		}
		x86_store_imm(b, 4, X86_RDI, -WIRE_RING_HEAD, (int32_t)f->record); /* submit */
		x86_rr(b, 4, x86_alu_op(X86_XOR), X86_RAX, X86_RAX);
		return;
	}
	j->clobbered |= HELPER_CLOBBERS;
	code_check_args(j, i, h);
	x86_mov_rr(b, X86_R9, THREAD);
	x86_call(b, jit_agent(j, entry_of(j, h)));
}
