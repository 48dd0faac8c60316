/* Finds results that are never read: in registers (backward, per function) and in the bytes of
 * stacks. */
#include "compile/jit/jit_private.h"

enum { ARGS = 0x3e, ALL_CALLER = 0x3f };

bool jit_inline_lookup(const struct jit_env *env, const struct bpf_insn *ins,
		       const struct jit_fact *f)
{
	const struct wire_map *m = f->map >= 0 ? &env->maps[f->map] : NULL;

	return m && ins->imm == BPF_FUNC_map_lookup_elem && m->key_size == 4 &&
	       (m->kind == WIRE_MAP_ARRAY || m->kind == WIRE_MAP_THREAD_ARRAY ||
		m->kind == WIRE_MAP_AGG_ARRAY);
}

bool jit_inline(const struct jit_env *env, const struct bpf_insn *ins, const struct jit_fact *f)
{
	switch (ins->imm) {
	case BPF_FUNC_ktime_get_ns:
	case BPF_FUNC_get_current_task:
	case BPF_FUNC_get_current_task_btf:
	case BPF_FUNC_get_current_pid_tgid:
	case BPF_FUNC_task_pt_regs: return true;
	/* Every thread has its value from the start. */
	case BPF_FUNC_task_storage_get: return f->map >= 0 && !f->check;
	}
	return jit_inline_lookup(env, ins, f);
}

/* Returns true for a ring whose ring_reserve() can be written out. */
static bool plain_ring(const struct jit_env *env, const struct jit_fact *f)
{
	const struct wire_map *m = f->map >= 0 ? &env->maps[f->map] : NULL;

	return m && f->record && m->max_entries && !(m->max_entries & (m->max_entries - 1)) &&
	       m->base >= WIRE_THREAD_SPACE && m->base < INT32_MAX / 2 &&
	       m->max_entries < INT32_MAX / 2 && f->record + 16 <= m->max_entries;
}

bool jit_mostly_inline(const struct jit_env *env, const struct bpf_insn *ins,
		       const struct jit_fact *f)
{
	switch (ins->imm) {
	case BPF_FUNC_ringbuf_reserve: return plain_ring(env, f);
	case BPF_FUNC_ringbuf_submit: return f->record != 0;
	case BPF_FUNC_get_smp_processor_id: return true;
	}
	return false;
}

static void call_effects(const struct jit_env *env, const struct bpf_insn *ins,
			 const struct jit_fact *f, uint32_t *uses, uint32_t *defs, bool *pure)
{
	const struct jit_helper *h;

	*defs = ALL_CALLER;
	if (ins->src_reg == BPF_PSEUDO_CALL) {
		*uses = ARGS;
		return;
	}
	h = jit_helper((uint32_t)ins->imm);
	if (jit_inline_lookup(env, ins, f)) {
		*uses = f->key_known || f->key_own ? 0 : 1 << 2;
		*pure = f->key_known;
		return;
	}
	if (jit_inline(env, ins, f)) {
		*uses = h->id == BPF_FUNC_task_storage_get && !f->there ? 1 << 2 : 0;
		*pure = true;
		return;
	}
	if (h->id == BPF_FUNC_loop) {
		*uses = 1 << 1 | 1 << 3 | 1 << 4; /* the function is known */
		return;
	}
	if (h->id == JIT_SCRATCH_GET) {
		*uses = 0; /* the map is known */
		return;
	}
	if (h->agent < 0) {
		*uses = h->id == JIT_QUANTIZE_BUCKET ? 1u << f->arg : 0;
		*pure = true;
		return;
	}
	if (jit_mostly_inline(env, ins, f)) {
		*uses = h->id == BPF_FUNC_ringbuf_submit ? 1 << 1 : 0;
		return;
	}
	for (int i = 0; h->args[i]; i++)
		*uses |= 2u << i;
}

static void effects(const struct jit_env *env, const struct bpf_insn *ins, const struct jit_fact *f,
		    uint32_t *uses, uint32_t *defs, bool *pure)
{
	uint32_t d = 1u << ins->dst_reg, s = 1u << ins->src_reg;
	bool named = f->where != JIT_SOMEWHERE; /* the address register is not read */
	uint32_t x = BPF_SRC(ins->code) == BPF_X ? s : 0;
	uint8_t op = BPF_OP(ins->code);

	*uses = *defs = 0;
	*pure = false;
	switch (BPF_CLASS(ins->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		*uses = op == BPF_MOV ? x : op == BPF_END || op == BPF_NEG ? d : d | x;
		*defs = d;
		*pure = true;
		return;
	case BPF_LD:
		*defs = d;
		*pure = true;
		return;
	case BPF_LDX:
		*uses = named ? 0 : s;
		*defs = d;
		*pure = f->proven;
		return;
	case BPF_ST: *uses = named ? 0 : d; return;
	case BPF_STX:
		*uses = (named ? 0 : d) | (jit_constant_atomic(ins, f) ? 0 : s);
		if (BPF_MODE(ins->code) != BPF_ATOMIC)
			return;
		if (ins->imm == BPF_CMPXCHG) {
			*uses |= 1;
			*defs = 1;
		} else if (ins->imm & BPF_FETCH) {
			*defs = s;
		}
		return;
	}
	if (op == BPF_CALL)
		call_effects(env, ins, f, uses, defs, pure);
	else if (op == BPF_EXIT)
		*uses = 1;
	else if (op != BPF_JA && f->branch == JIT_EITHER)
		*uses = d | x;
}

/* Returns the registers that are live behind an instruction. branch: what is known of a jump. */
static uint32_t live_behind(const struct bpf_insn *ins, uint8_t branch, const uint16_t *live)
{
	uint32_t out = 0;
	bool ja = BPF_OP(ins->code) == BPF_JA;

	if (ebpf_is_jump(ins)) {
		if (ja || branch != JIT_NEVER)
			out |= live[1 + ebpf_jump_offset(ins)];
		if (!ja && branch != JIT_ALWAYS)
			out |= live[1];
	} else if (ins->code != (BPF_JMP | BPF_EXIT)) {
		out = live[1 + ebpf_is_ld_imm64(ins)];
	}
	return out;
}

/* Returns the registers that the verifier looks at in a call. */
static uint32_t call_reads(const struct bpf_insn *ins)
{
	const struct jit_helper *h = ins->src_reg ? NULL : jit_helper((uint32_t)ins->imm);
	uint32_t uses = 0;

	for (int i = 0; h && h->args[i]; i++)
		uses |= 2u << i;
	return h ? uses : ARGS;
}

uint16_t *jit_live(const struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
		   const struct jit_facts *f)
{
	static const struct jit_fact nothing = { .map = -1 };
	uint16_t *live = xcalloc(n + 2, sizeof(*live));
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t fn = f->nfns; fn--;) {
			for (uint32_t i = f->fns[fn].end; i-- > f->fns[fn].start;) {
				const struct bpf_insn *ins = &insns[i];
				uint32_t uses, defs, out = live_behind(ins, JIT_EITHER, &live[i]);
				bool pure;

				if (ins->code == (BPF_JMP | BPF_CALL)) {
					uses = call_reads(ins);
					defs = ALL_CALLER;
				} else {
					effects(env, ins, &nothing, &uses, &defs, &pure);
				}
				out = (out & ~defs) | uses;
				again |= out != live[i];
				live[i] = (uint16_t)out;
			}
		}
	}
	return live;
}

/* Returns true when no instruction reads a byte that f stores. */
static bool unread_store(const struct jit_fact *f, const struct jit_fn *fn)
{
	if (!f->own || fn->leaked)
		return false;
	for (int i = f->at + 512; i < f->at + 512 + f->size; i++)
		if (fn->read[i / 64] >> i % 64 & 1)
			return false;
	return true;
}

static void registers(const struct bpf_insn *insns, const struct jit_env *env, struct jit_facts *f,
		      const struct jit_fn *fn)
{
	cleanup_free uint16_t *live = xcalloc(fn->end - fn->start + 1, sizeof(*live)); /* before */
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t i = fn->end; i-- > fn->start;) {
			const struct bpf_insn *ins = &insns[i];
			struct jit_fact *a = &f->insn[i];
			uint32_t uses, defs, out;
			bool pure;

			if (!a->reached)
				continue;
			effects(env, ins, a, &uses, &defs, &pure);
			out = live_behind(ins, a->branch, &live[i - fn->start]);
			a->last_use =
				!(out >> (ebpf_is_jump(ins) ? ins->dst_reg : ins->src_reg) & 1);
			a->dead = unread_store(a, fn) || (pure && !(defs & out));
			if (!a->dead)
				out = (out & ~defs) | uses;
			else if (BPF_CLASS(ins->code) == BPF_JMP)
				out &= ~defs; /* a dead call still clobbers r1-r5 */
			if (out != live[i - fn->start]) {
				live[i - fn->start] = (uint16_t)out;
				again = true;
			}
		}
	}
}

void jit_dead(const struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
	      struct jit_facts *f)
{
	for (uint32_t i = 0; i < f->nfns; i++) {
		struct jit_fn *fn = &f->fns[i];
		int32_t low = fn->low;

		if (!fn->reached)
			continue;
		registers(insns, env, f, fn);
		for (int b = 0; b < 512; b++) {
			if (fn->read[b / 64] >> b % 64 & 1) {
				if (b - 512 < low)
					low = b - 512;
				break;
			}
		}
		for (uint32_t k = fn->start; k < fn->end; k++)
			if (f->insn[k].own && !f->insn[k].dead && f->insn[k].at < low)
				low = f->insn[k].at;
		fn->stack = ((uint32_t)-low + 7) & ~7u;
	}
}
