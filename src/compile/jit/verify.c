#define _GNU_SOURCE
/* Interprets a linked program abstractly: finds the values of each register and stack word at the
 * start of every basic block, joined over all paths to it. Joins the arguments of all calls in the
 * callee's entry and joins the callee's result into its callers. So each function is walked once
 * for all its callers.
 *
 * The walk ends, because a value only grows (NONE, constant, range, any), and a range that grows
 * too often becomes any. */
#include <assert.h>

#include "compile/jit/verify_private.h"

void verify_refuse(struct v *v, const char *fmt, ...)
{
	cleanup_free char *why = NULL;
	char text[160];
	va_list ap;

	if (v->err)
		return;
	va_start(ap, fmt);
	if (vasprintf(&why, fmt, ap) < 0)
		why = xstrdup(fmt);
	va_end(ap);
	ebpf_text(text, sizeof(text), &v->insns[v->pc],
		  v->pc + 1 < v->n ? &v->insns[v->pc + 1] : NULL);
	v->err = err_new(0, "instruction %u (%s): %s", v->pc, text, why);
}

static bool same(const struct val *a, const struct val *b)
{
	return a->kind == b->kind && a->null == b->null && a->size == b->size && a->id == b->id &&
	       a->element == b->element && a->link == b->link && a->lo == b->lo && a->hi == b->hi &&
	       a->shared == b->shared;
}

static struct val join_values(const struct val *a, const struct val *b, bool widen)
{
	struct val r = *a;

	if (same(a, b))
		return r;
	if (a->size != b->size)
		return any;
	if (a->kind == NUMBER && b->kind == NUMBER) {
		r.lo = a->lo < b->lo ? a->lo : b->lo;
		r.hi = a->hi > b->hi ? a->hi : b->hi;
		if (widen && (r.lo != a->lo || r.hi != a->hi))
			r = any;
		r.size = a->size;
		return r;
	}
	if (is_pointer(a) && b->kind == NUMBER && b->lo == 0 && b->hi == 0) {
		r.null = true;
		r.link = 0;
		return r;
	}
	if (is_pointer(b) && a->kind == NUMBER && a->lo == 0 && a->hi == 0) {
		r = *b;
		r.null = true;
		r.link = 0;
		return r;
	}
	if (!is_pointer(a) || a->kind != b->kind || a->id != b->id)
		return any;
	r.null = a->null || b->null;
	r.link = a->link == b->link ? a->link : 0;
	r.element = a->element == b->element ? a->element : 0;
	r.lo = (int64_t)a->lo < (int64_t)b->lo ? a->lo : b->lo;
	r.hi = (int64_t)a->hi > (int64_t)b->hi ? a->hi : b->hi;
	if (widen && (r.lo != a->lo || r.hi != a->hi))
		return any;
	return r;
}

static struct val join(const struct val *a, const struct val *b, bool widen)
{
	struct val r = join_values(a, b, widen);

	r.shared = a->shared || b->shared;
	return r;
}

/* Joins `from` into `to`. Returns true when `to` changed. In slots NONE means "not known", the top.
 * In registers a join with NONE gives any. */
static bool join_state(struct state *to, const struct state *from, bool widen)
{
	bool changed = false;
	struct val j;

	for (int i = 0; i < 11; i++) {
		j = join(&to->r[i], &from->r[i], widen);
		changed |= !same(&j, &to->r[i]);
		to->r[i] = j;
	}
	for (int i = 0; i < SLOTS; i++) {
		if (to->slot[i].kind == NONE)
			continue;
		/* A word that is an address on one path only is not followed any more. */
		if (from->slot[i].kind == NONE ||
		    is_pointer(&from->slot[i]) != is_pointer(&to->slot[i]) ||
		    (is_pointer(&to->slot[i]) && from->slot[i].kind != to->slot[i].kind))
			j = (struct val){ 0 };
		else
			j = join(&to->slot[i], &from->slot[i], widen);
		changed |= !same(&j, &to->slot[i]);
		to->slot[i] = j;
	}
	return changed;
}

/* Loses the addresses in registers that `from` knows and `to` does not. Those on the stack are lost
 * when somebody reads them: lose_stored(). */
static void lose_state(struct v *v, const struct state *to, const struct state *from)
{
	for (int i = 0; i < 11; i++)
		if (is_pointer(&from->r[i]) && to->r[i].kind != from->r[i].kind)
			verify_lose(v, &from->r[i]);
}

void verify_flow(struct v *v, uint32_t to, const struct state *s)
{
	struct block *b = &v->blocks[v->block_of[to]];
	struct state live = *s;

	assert(b->start == to);
	for (int i = 0; i < 10; i++)
		if (!(v->live[to] >> i & 1))
			live.r[i] = (struct val){ 0 };
	if (v->record) {
		lose_state(v, b->in, &live);
		return;
	}
	if (!b->in) {
		b->in = xmemdup(&live, sizeof(live));
		b->dirty = true;
		return;
	}
	if (join_state(b->in, &live, b->joins > WIDEN)) {
		b->joins++;
		b->dirty = true;
	}
}

void verify_check_reg(struct v *v, uint32_t r)
{
	if (v->record && v->s.r[r].kind == NONE)
		verify_refuse(v, "r%u has no value", r);
}

uint32_t verify_fn_at(const struct jit_facts *f, uint32_t start)
{
	for (uint32_t i = 0; i < f->nfns; i++)
		if (f->fns[i].start == start)
			return i;
	return UINT32_MAX;
}

/* --- the walk --- */

static void verify_leave(struct v *v)
{
	struct val r0 = v->s.r[0], j;
	struct fn *f = &v->fns[v->fn];

	if (r0.kind == NONE) {
		if (v->record)
			verify_refuse(v, "returns without a value in r0");
		r0 = any;
	}
	/* The frame ends with its function. */
	if (r0.kind == STACK && r0.id == v->fn) {
		verify_lose(v, &r0);
		r0 = any;
	}
	r0.link = 0;
	r0.size = 0;
	if (v->record) {
		if (is_pointer(&r0) && f->ret.kind != r0.kind)
			verify_lose(v, &r0);
		return;
	}
	j = f->returns ? join(&f->ret, &r0, v->blocks[v->block_of[v->pc]].joins > WIDEN) : r0;
	if (f->returns && same(&j, &f->ret))
		return;
	f->ret = j;
	f->returns = true;
	verify_callers_again(v, v->fn);
}

static void note_constant(struct v *v, const struct bpf_insn *ins)
{
	const struct val *s = &v->s.r[ins->src_reg < 11 ? ins->src_reg : 0];

	v->f->insn[v->pc].constant = is_const(s);
	v->f->insn[v->pc].value = s->lo;
}

static void verify_walk(struct v *v, struct block *b)
{
	b->dirty = false;
	v->s = *b->in;
	v->fn = b->fn;
	for (v->pc = b->start; v->pc < b->end && !v->err; v->pc++) {
		const struct bpf_insn *ins = &v->insns[v->pc];

		if (v->record) {
			v->f->insn[v->pc].reached = true;
			note_constant(v, ins);
		}
		switch (BPF_CLASS(ins->code)) {
		case BPF_ALU:
		case BPF_ALU64: verify_alu(v, ins); break;
		case BPF_LDX: verify_load(v, ins); break;
		case BPF_ST:
		case BPF_STX: verify_store(v, ins); break;
		case BPF_LD:
			verify_load_imm64(v, ins);
			v->pc++;
			break;
		default:
			if (ins->code == (BPF_JMP | BPF_EXIT)) {
				verify_leave(v);
				return;
			}
			if (ins->code == (BPF_JMP | BPF_CALL)) {
				if (ins->src_reg == 0)
					verify_call_helper(v, ins);
				else if (!verify_call_function(v, ins))
					return;
				break;
			}
			if (BPF_OP(ins->code) == BPF_JA)
				verify_flow(v,
					    (uint32_t)((int64_t)v->pc + 1 + ebpf_jump_offset(ins)),
					    &v->s);
			else
				verify_branch(v, ins, (uint32_t)((int64_t)v->pc + 1 + ins->off));
			return;
		}
	}
	if (!v->err && b->end < v->n)
		verify_flow(v, b->end, &v->s);
}

/* --- structure --- */

static bool is_call(const struct bpf_insn *ins)
{
	return ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL;
}

static struct err *find_functions(const struct bpf_insn *insns, uint32_t n, struct jit_facts *f)
{
	cleanup_free bool *start = xcalloc(n + 1, sizeof(*start));
	uint32_t fn = 0;

	start[0] = true;
	for (uint32_t i = 0; i < n; i++) {
		const struct bpf_insn *ins = &insns[i];

		if (is_call(ins) || (ebpf_is_ld_imm64(ins) && ins->src_reg == EBPF_PSEUDO_FUNC))
			start[(int64_t)i + 1 + ins->imm] = true;
		else if (ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg)
			return err_new(0, "instruction %u: kernel functions cannot be called", i);
		if (ebpf_is_ld_imm64(ins))
			i++;
	}
	for (uint32_t i = 0; i < n; i++)
		f->nfns += start[i];
	f->fns = xcalloc(f->nfns, sizeof(*f->fns));
	for (uint32_t i = 0; i < n; i++)
		if (start[i])
			f->fns[fn++].start = i;
	for (fn = 0; fn < f->nfns; fn++) {
		struct jit_fn *x = &f->fns[fn];
		const struct bpf_insn *last;

		x->end = fn + 1 < f->nfns ? f->fns[fn + 1].start : n;
		last = &insns[x->end - 1];
		if (last->code != (BPF_JMP | BPF_EXIT) && last->code != (BPF_JMP | BPF_JA) &&
		    last->code != (BPF_JMP32 | BPF_JA))
			return err_new(0, "instruction %u: runs off the end of its function",
				       x->end - 1);
		for (uint32_t i = x->start; i < x->end; i++) {
			int64_t to = (int64_t)i + 1 + ebpf_jump_offset(&insns[i]);

			if (ebpf_is_jump(&insns[i]) && (to < x->start || to >= x->end))
				return err_new(0, "instruction %u: jumps out of its function", i);
			if (ebpf_is_ld_imm64(&insns[i]))
				i++;
		}
	}
	return NULL;
}

static void find_blocks(struct v *v)
{
	cleanup_free bool *start = xcalloc(v->n + 1, sizeof(*start));
	uint32_t fn = 0, k = 0;

	for (uint32_t i = 0; i < v->f->nfns; i++)
		start[v->f->fns[i].start] = true;
	for (uint32_t i = 0; i < v->n; i++) {
		const struct bpf_insn *ins = &v->insns[i];

		if (ebpf_is_jump(ins)) {
			start[(int64_t)i + 1 + ebpf_jump_offset(ins)] = true;
			start[i + 1] = true;
		} else if (ins->code == (BPF_JMP | BPF_EXIT)) {
			start[i + 1] = true;
		}
		if (ebpf_is_ld_imm64(ins))
			i++;
	}
	for (uint32_t i = 0; i < v->n; i++)
		v->nblocks += start[i];
	v->blocks = xcalloc(v->nblocks, sizeof(*v->blocks));
	v->block_of = xcalloc(v->n, sizeof(*v->block_of));
	for (uint32_t i = 0; i < v->n; i++) {
		if (start[i]) {
			if (fn + 1 < v->f->nfns && i >= v->f->fns[fn + 1].start)
				fn++;
			v->blocks[k++] = (struct block){ .start = i, .fn = fn };
		}
		v->blocks[k - 1].end = i + 1;
		v->block_of[i] = k - 1;
	}
}

/* Computes stack and depth of a function with all its callees. Refuses recursion. state: 1 being
 * measured, 2 done. */
static struct err *measure(const struct bpf_insn *insns, struct jit_facts *f, uint32_t fn,
			   uint8_t *state)
{
	struct jit_fn *x = &f->fns[fn];
	uint32_t below = 0, depth = 0;
	struct err *e;

	if (state[fn] == 2)
		return NULL;
	if (state[fn] == 1)
		return err_new(0, "instruction %u: a function calls itself", x->start);
	state[fn] = 1;
	for (uint32_t i = x->start; i < x->end; i++) {
		const struct bpf_insn *ins = &insns[i];
		struct jit_fn *callee;

		if (is_call(ins) || (ebpf_is_ld_imm64(ins) && ins->src_reg == EBPF_PSEUDO_FUNC)) {
			uint32_t to = verify_fn_at(f, (uint32_t)((int64_t)i + 1 + ins->imm));

			e = measure(insns, f, to, state);
			if (e)
				return e;
			callee = &f->fns[to];
			if (callee->data > below)
				below = callee->data;
			if (callee->depth > depth)
				depth = callee->depth;
		}
		if (ebpf_is_ld_imm64(ins))
			i++;
	}
	x->data = x->stack + below;
	x->depth = depth + 1;
	state[fn] = 2;
	if (x->depth > JIT_FRAMES)
		return err_new(0, "instruction %u: more than %d nested calls", x->start,
			       JIT_FRAMES);
	return NULL;
}

/* Loses addresses stored on a stack if the stack's bytes are read in a way that the verifier does
 * not follow. */
static void lose_stored(struct jit_facts *f)
{
	bool all = false, was;

	do {
		was = all;
		for (uint32_t i = 0; i < f->nfns; i++) {
			struct jit_fn *fn = &f->fns[i];
			uint64_t blind = all || fn->leaked ? UINT64_MAX : fn->blind;

			f->ctx_lost |= (fn->ctx_at & blind) != 0;
			all |= (fn->stack_at & blind) != 0;
		}
	} while (all != was);
	for (uint32_t i = 0; all && i < f->nfns; i++)
		f->fns[i].leaked = true;
}

/* Sets the facts that hold for the code as a whole. */
static void summarise(const struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
		      struct jit_facts *f)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct bpf_insn *ins = &insns[i];
		const struct jit_helper *h;

		if (!f->insn[i].reached)
			continue;
		if (ebpf_is_jump(ins) && ebpf_jump_offset(ins) < 0 &&
		    f->insn[i].branch != JIT_NEVER)
			f->budget_used = true;
		if (is_call(ins))
			f->frames = true;
		if (ins->code != (BPF_JMP | BPF_CALL) || ins->src_reg)
			continue;
		h = jit_helper((uint32_t)ins->imm);
		if (h->id == BPF_FUNC_loop) {
			f->budget_used = true;
			f->frames = true;
		} else if (h->id == BPF_FUNC_get_attach_cookie) {
			f->cookie_used = true;
		}
		if (f->insn[i].map >= 0 && wire_map_is_flipped(&env->maps[f->insn[i].map]))
			f->gen_used = true;
		if (h->id == BPF_FUNC_ktime_get_ns)
			f->clock_used = true;
		if (h->id == BPF_FUNC_ringbuf_reserve)
			f->reserve_used = true;
		if (h->id == BPF_FUNC_send_signal)
			f->signals_used = true;
		if (h->id == BPF_FUNC_get_smp_processor_id)
			f->cpu_used = true;
		if (h->agent >= 0 && !jit_inline(env, ins, &f->insn[i]) &&
		    !jit_mostly_inline(env, ins, &f->insn[i]))
			f->calls = true;
	}
	if (f->calls)
		f->cookie_used = true; /* the agent counts drops by probe */
	if (f->ctx_lost && (f->ctx_used || f->checks)) {
		f->ctx_used = true;
		f->ctx_words = (1u << JIT_CTX / 8) - 1;
	}
	if (f->regs_used) {
		f->ctx_used = true;
		f->ctx_words = (1u << JIT_CTX / 8) - 1;
	}
}

struct err *jit_verify(struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
		       struct jit_facts *ret)
{
	struct v v = { .insns = insns, .n = n, .env = env, .f = ret };
	cleanup_free uint8_t *seen = NULL;
	cleanup_free uint16_t *live = NULL;
	struct err *e;
	bool again = true;

	memset(ret, 0, sizeof(*ret));
	e = ebpf_check(insns, n, 0);
	if (e)
		return e;
	e = find_functions(insns, n, ret);
	if (e)
		return e;
	seen = xcalloc(ret->nfns, 1);
	e = measure(insns, ret, 0, seen);
	if (e)
		return e;
	ret->insn = xcalloc(n, sizeof(*ret->insn));
	for (uint32_t i = 0; i < n; i++)
		ret->insn[i].map = -1;
	v.fns = xcalloc(ret->nfns, sizeof(*v.fns));
	for (uint32_t i = 0; i < ret->nfns; i++)
		v.fns[i].writes = xcalloc(ret->nfns, sizeof(uint64_t));
	find_blocks(&v);
	v.live = live = jit_live(insns, n, env, ret);

	v.s.r[1] = (struct val){ .kind = CTX };
	v.s.r[10] = (struct val){ .kind = STACK };
	verify_flow(&v, 0, &v.s);
	while (again && !v.err) {
		again = false;
		for (uint32_t i = 0; i < v.nblocks && !v.err; i++) {
			if (v.blocks[i].dirty) {
				verify_walk(&v, &v.blocks[i]);
				again = true;
			}
		}
	}
	v.record = true;
	for (uint32_t i = 0; i < v.nblocks && !v.err; i++) {
		if (v.blocks[i].in) {
			ret->fns[v.blocks[i].fn].reached = true;
			verify_walk(&v, &v.blocks[i]);
		}
	}
	if (!v.err) {
		lose_stored(ret);
		summarise(insns, n, env, ret);
		jit_copies(insns, ret);
		jit_dead(insns, n, env, ret);
		memset(seen, 0, ret->nfns);
		v.err = measure(insns, ret, 0, seen);
	}
	for (uint32_t i = 0; i < v.nblocks; i++)
		free(v.blocks[i].in);
	for (uint32_t i = 0; i < ret->nfns; i++)
		free(v.fns[i].writes);
	free(v.fns);
	free(v.blocks);
	free(v.block_of);
	return v.err;
}

void jit_facts_fini(struct jit_facts *f)
{
	free(f->insn);
	free(f->fns);
	memset(f, 0, sizeof(*f));
}
