/* Writes the shortcut of a thunk: what most firings of a program do, where that is little.
 *
 * The shortcut follows the program from its start through instructions that only move and compare
 * words: of the context, also multiplied by a constant, of the thread's slot, and constants. Where
 * it meets any other instruction, it jumps to the whole program, which begins anew. So it changes
 * nothing until then. Where it reaches the program's end, the firing is over, and only three
 * registers were saved. As soon as no way leads to the whole program any more, it also stores words
 * of the thread's slot, and adds constants to them and to aggregations. A single addition needs no
 * mark of a firing, because it is one instruction. A name of an interpreter's function is looked
 * for (function_key.c) behind the mark of a firing; if it is not found, the whole program runs,
 * which sets the mark again.
 *
 * So a predicate that is false costs a few comparisons. They are not part of a firing: a signal
 * handler that comes in between has firings of its own, which end before the next comparison.
 */
#include "compile/jit/shortcut.h"

#include "compile/jit/code_private.h"
#include "compile/jit/function_key.h"
#include "compile/jit/way.h"
#include "data/image.h"
#include "wire/language.h"

enum {
	STEPS = 4096, /* instructions followed, on all ways together */
	NEAR = 1 << 16,
	WIDE_JUMP = 5,
};

/* How far the firing has come. */
enum stage {
	COMPARING, /* it has had no effect */
	MARKED,    /* its effects are between jit_firing_begins() and jit_firing_ends() */
	ADDED,     /* its only effect was one instruction */
};

struct shortcut {
	struct jit *j;
	const struct shortcut_place *p;
	bool write;      /* writes code; else only looks where the ways lead */
	bool ends, runs; /* a way leads to the program's end; to the whole program */
	uint32_t acts;   /* effects, on all ways together */
	uint32_t steps, ways;
	struct shortcut_jumps *jumps;
	uint32_t out_at; /* end of the last jump out of the thunk that is not conditional */
	bool uses_t1;
};

/* Registers by their place in struct pt_regs, in words. r10, r11 and r12 hold the thunk's data. */
static const int8_t register_of[JIT_CTX / 8] = {
	X86_R15, X86_R14, X86_R13, -1,      X86_RBP, X86_RBX, -1, -1, X86_R9,  X86_R8, X86_RAX,
	X86_RCX, X86_RDX, X86_RSI, X86_RDI, -1,      -1,      -1, -1, X86_RSP, -1
};

/* --- code of one word --- */

static bool is_imm(const struct word *w)
{
	return w->kind == WORD_KNOWN && (int64_t)w->at == (int32_t)w->at;
}

static bool has_value(const struct word *w)
{
	return w->kind == WORD_KNOWN || w->kind == WORD_THREAD || w->kind == WORD_FIXED ||
	       w->kind == WORD_SEEN || (w->kind == WORD_ANSWER && !w->add);
}

/* T1 = the word. */
static void fetch(struct shortcut *s, const struct word *w)
{
	struct x86 *b = &s->j->b;

	s->uses_t1 = true;
	switch (w->kind) {
	case WORD_KNOWN: x86_mov_imm(b, T1, w->at); return;
	case WORD_SEEN:
		if (w->at == X86_RSP)
			x86_rm(b, 8, X86_OP_LEA, T1, X86_RSP, s->p->rsp + w->add);
		else
			x86_rm(b, 8, X86_OP_LEA, T1, (unsigned)w->at, w->add);
		if (w->times)
			x86_imul_imm(b, w->narrow ? 4 : 8, T1, T1, w->times);
		return;
	case WORD_ANSWER: x86_mov_rr(b, T1, X86_RAX); return;
	case WORD_THREAD: x86_rm(b, w->size, X86_OP_LOAD, T1, THREAD, (int32_t)w->at); break;
	default: jit_at(s->j, w->size, X86_OP_LOAD, T1, w->at, T1); break;
	}
	if (w->add)
		x86_alu_imm(b, 8, X86_ADD, T1, w->add);
}

/* Returns true when an instruction can have the word as its operand. */
static bool is_operand(const struct word *w)
{
	return !w->add && ((w->kind == WORD_THREAD && w->size == 8) ||
			   (w->kind == WORD_SEEN && w->at != X86_RSP && !w->times));
}

static bool comparable(const struct word *a, const struct word *c)
{
	return has_value(a) && has_value(c) && (is_imm(c) || is_operand(c) || is_operand(a));
}

static enum x86_cc turned(enum x86_cc cc)
{
	switch (cc) {
	case X86_A: return X86_B;
	case X86_AE: return X86_BE;
	case X86_B: return X86_A;
	case X86_BE: return X86_AE;
	case X86_G: return X86_L;
	case X86_GE: return X86_LE;
	case X86_L: return X86_G;
	case X86_LE: return X86_GE;
	default: return cc;
	}
}

/* Compares two words. Returns the condition to test in place of cc. */
static enum x86_cc compare_words(struct shortcut *s, const struct word *a, const struct word *c,
				 enum x86_cc cc)
{
	struct x86 *b = &s->j->b;
	const struct word *swap = a;

	if (is_imm(c)) {
		if (a->kind == WORD_THREAD && !a->add && a->size == 8) {
			x86_alu_mem_imm(b, 8, X86_CMP, THREAD, (int32_t)a->at, (int32_t)c->at);
		} else if (a->kind == WORD_FIXED && !a->add && jit_near(s->j, a->at) &&
			   (a->size == 8 || (int32_t)c->at >= 0) && (cc == X86_E || cc == X86_NE)) {
			x86_rip_alu_imm(b, a->size, X86_CMP, (int64_t)(a->at - s->j->env->code),
					(int32_t)c->at);
		} else {
			fetch(s, a);
			x86_alu_imm(b, 8, X86_CMP, T1, (int32_t)c->at);
		}
		return cc;
	}
	if (!is_operand(c)) {
		a = c;
		c = swap;
		cc = turned(cc);
	}
	fetch(s, a);
	if (c->kind == WORD_THREAD)
		x86_rm(b, 8, 0x3b, T1, THREAD, (int32_t)c->at);
	else
		x86_rr(b, 8, x86_alu_op(X86_CMP), (unsigned)c->at, T1);
	return cc;
}

/* --- instructions --- */

/* Returns false for an instruction that is not followed. */
static bool follow_alu(struct way *w, const struct bpf_insn *ins, const struct jit_fact *f)
{
	struct word *d = &w->r[ins->dst_reg], by;
	bool wide = BPF_CLASS(ins->code) == BPF_ALU64;
	int64_t add;

	by = BPF_SRC(ins->code) == BPF_K ? word_known((uint64_t)(int64_t)ins->imm)
	     : f->constant               ? word_known(f->value)
					 : w->r[ins->src_reg];
	switch (BPF_OP(ins->code)) {
	case BPF_MOV:
		if (ins->off)
			return false;
		if (!wide && by.kind == WORD_KNOWN)
			by.at = (uint32_t)by.at;
		else if (!wide && by.kind == WORD_SEEN && by.times)
			by.narrow = true;
		else if (!wide)
			return false;
		*d = by;
		return true;
	case BPF_MUL:
		if (!wide || d->kind != WORD_SEEN || d->times || !is_imm(&by) || !by.at)
			return false;
		d->times = (int32_t)by.at;
		return true;
	case BPF_ADD:
	case BPF_SUB:
		if (!wide || by.kind != WORD_KNOWN)
			return false;
		add = BPF_OP(ins->code) == BPF_ADD ? (int64_t)by.at : (int64_t)-by.at;
		if (d->kind == WORD_KNOWN) {
			d->at += (uint64_t)add;
			return true;
		}
		if (d->kind == WORD_OBJECT || d->times || add < -NEAR || add > NEAR ||
		    d->add < -NEAR || d->add > NEAR)
			return false;
		d->add += (int32_t)add;
		return d->kind != WORD_LOST;
	}
	return false;
}

static bool follow_load(struct shortcut *s, struct way *w, const struct bpf_insn *ins,
			const struct jit_fact *f)
{
	struct word from = w->r[ins->src_reg], *d = &w->r[ins->dst_reg], *slot;
	uint32_t n = jit_access_size(ins);
	int64_t at = (int64_t)from.add + ins->off;

	if (BPF_MODE(ins->code) != BPF_MEM || n < 4)
		return false;
	if (f->where != JIT_SOMEWHERE) {
		if (!f->proven || (f->where == JIT_IN_THREAD && f->place > INT32_MAX / 2))
			return false;
		*d = (struct word){ .kind = f->where == JIT_AT ? WORD_FIXED : WORD_THREAD,
				    .size = (uint8_t)n,
				    .at = f->place };
		return true;
	}
	if (n != 8)
		return false;
	if (from.kind == WORD_STACK) {
		slot = way_slot(w, at);
		if (!slot || slot->kind == WORD_LOST)
			return false;
		*d = *slot;
		return true;
	}
	if (from.kind != WORD_CTX || at < 0 || at >= JIT_CTX || at % 8 || register_of[at / 8] < 0 ||
	    (register_of[at / 8] == X86_RAX && !s->p->rax))
		return false;
	*d = (struct word){ .kind = WORD_SEEN, .at = (uint64_t)register_of[at / 8] };
	return true;
}

static bool follow_call(struct shortcut *s, struct way *w, const struct bpf_insn *ins,
			const struct jit_fact *f)
{
	const struct jit_env *env = s->j->env;
	const struct wire_map *m = f->map >= 0 ? &env->maps[f->map] : NULL;
	struct word result = { .kind = WORD_OBJECT };

	if (ins->src_reg)
		return false;
	switch (ins->imm) {
	case BPF_FUNC_get_current_task:
	case BPF_FUNC_get_current_task_btf: break;
	case BPF_FUNC_get_attach_cookie: result.kind = WORD_LOST; break;
	case BPF_FUNC_task_storage_get:
		if (!f->there)
			return false;
		break;
	case BPF_FUNC_map_lookup_elem:
		if (!m || !jit_inline_lookup(env, ins, f) || !f->key_known ||
		    f->key >= m->max_entries || m->role == MAP_SCRATCH)
			return false;
		if (m->gen_stride > INT32_MAX || m->base > INT32_MAX / 4 ||
		    (uint64_t)f->key * m->stride > NEAR)
			return false;
		if (m->kind == WIRE_MAP_AGG_ARRAY)
			result = (struct word){ .kind = WORD_SUM,
						.at = (uint64_t)f->map,
						.add = (int32_t)(f->key * m->stride) };
		break;
	default: return false;
	}
	w->r[0] = result;
	for (int r = 1; r < 6; r++)
		w->r[r].kind = WORD_LOST;
	return true;
}

/* --- effects --- */

/* What a store or an atomic addition does that others can see. */
struct effect {
	enum {
		EFFECT_NONE,
		EFFECT_STORE,
		EFFECT_ADD,
		EFFECT_SUM,
		EFFECT_NAMED
	} kind;      /* NONE: cannot be followed */
	uint64_t at; /* in the thread's slot; SUM: the map */
	uint32_t size;
	int32_t add, off;  /* SUM: off: in the map; NAMED: from rax */
	struct word value; /* STORE */
};

static bool in_slot(const struct jit_fact *f)
{
	return f->where == JIT_IN_THREAD && f->proven && f->place <= INT32_MAX / 2;
}

static struct effect effect_of(const struct way *w, const struct bpf_insn *ins,
			       const struct jit_fact *f)
{
	const struct word *to = &w->r[ins->dst_reg], *from = &w->r[ins->src_reg];
	bool atomic = BPF_CLASS(ins->code) == BPF_STX && BPF_MODE(ins->code) == BPF_ATOMIC;
	struct effect e = { .at = f->place, .size = jit_access_size(ins) };

	if (e.size < 4)
		return e;
	if (!atomic && in_slot(f)) {
		e.value = BPF_CLASS(ins->code) == BPF_ST ? word_known((uint64_t)(int64_t)ins->imm)
			  : f->constant                  ? word_known(f->value)
							 : *from;
		e.kind = has_value(&e.value) ? EFFECT_STORE : EFFECT_NONE;
		return e;
	}
	if (!atomic || ins->imm != BPF_ADD || !f->alone || !jit_constant_atomic(ins, f))
		return e;
	e.add = (int32_t)f->value;
	if (in_slot(f)) {
		e.kind = EFFECT_ADD;
	} else if (f->where == JIT_SOMEWHERE && f->proven && to->kind == WORD_SUM) {
		e.kind = EFFECT_SUM;
		e.at = to->at;
		e.off = to->add + ins->off;
	} else if (f->where == JIT_SOMEWHERE && f->proven && to->kind == WORD_NAMED) {
		e.kind = EFFECT_NAMED;
		e.off = to->add + ins->off;
	}
	return e;
}

static void write_effect(struct shortcut *s, const struct effect *e)
{
	const struct wire_map *m;
	struct x86 *b = &s->j->b;

	switch (e->kind) {
	case EFFECT_NONE: break;
	case EFFECT_ADD:
		x86_alu_mem_imm(b, e->size, X86_ADD, THREAD, (int32_t)e->at, e->add);
		break;
	case EFFECT_NAMED: x86_alu_mem_imm(b, e->size, X86_ADD, X86_RAX, e->off, e->add); break;
	case EFFECT_SUM:
		s->uses_t1 = true;
		m = &s->j->env->maps[e->at];
		code_load_gen(s->j, T1, m);
		x86_rx(b, 8, X86_OP_LEA, T1, THREAD, T1, (int32_t)m->base + e->off);
		x86_alu_mem_imm(b, e->size, X86_ADD, T1, 0, e->add);
		break;
	case EFFECT_STORE:
		if (is_imm(&e->value)) {
			x86_store_imm(b, e->size, THREAD, (int32_t)e->at, (int32_t)e->value.at);
		} else if (e->value.kind == WORD_THREAD && e->value.at == e->at &&
			   e->value.size == e->size) {
			if (e->value.add)
				x86_alu_mem_imm(b, e->size, X86_ADD, THREAD, (int32_t)e->at,
						e->value.add);
		} else {
			fetch(s, &e->value);
			x86_rm(b, e->size, X86_OP_STORE, T1, THREAD, (int32_t)e->at);
		}
	}
}

/* Stores to the eBPF stack. Returns false for any other address. */
static bool follow_stack(struct way *w, const struct bpf_insn *ins, const struct jit_fact *f)
{
	const struct word *to = &w->r[ins->dst_reg];
	int64_t at = (int64_t)to->add + ins->off;
	uint32_t n = jit_access_size(ins);

	if (to->kind != WORD_STACK ||
	    (BPF_CLASS(ins->code) == BPF_STX && BPF_MODE(ins->code) != BPF_MEM))
		return false;
	way_forget(w, at, n);
	if (n == 8 && way_slot(w, at))
		*way_slot(w, at) = BPF_CLASS(ins->code) == BPF_ST
					   ? word_known((uint64_t)(int64_t)ins->imm)
				   : f->constant ? word_known(f->value)
						 : w->r[ins->src_reg];
	return true;
}

/* --- ways --- */

static void walk(struct shortcut *s, struct way *w, uint32_t i, enum stage stage);

/* Finds out where the ways from instruction i lead. */
static struct shortcut look(const struct shortcut *s, const struct way *w, uint32_t i,
			    enum stage stage)
{
	struct shortcut k = { .j = s->j, .p = s->p, .steps = s->steps, .ways = s->ways };
	struct way copy = *w;

	walk(&k, &copy, i, stage);
	return k;
}

/* Adds the wide jump that was just written to those to the whole program, or out of the thunk. */
static void jumps_to_run(struct shortcut *s)
{
	s->jumps->runs[s->jumps->nruns++] = s->j->b.n;
}

static void jumps_out(struct shortcut *s)
{
	s->jumps->outs[s->jumps->nouts++] = s->j->b.n;
}

static void go_run(struct shortcut *s)
{
	s->runs = true;
	if (!s->write)
		return;
	x86_jmp(&s->j->b, s->j->b.n, true);
	jumps_to_run(s);
}

static void go_out(struct shortcut *s, enum stage stage)
{
	s->ends = true;
	if (!s->write)
		return;
	if (stage == MARKED)
		jit_firing_ends(s->j);
	x86_jmp(&s->j->b, s->j->b.n, true);
	jumps_out(s);
	s->out_at = s->j->b.n;
}

/* Returns true when a way leads to the program's end, and needs no code. */
static bool is_bare(const struct shortcut *s, const struct shortcut *way, enum stage stage)
{
	return way->ends && !way->runs && !way->acts && way->ways == s->ways && stage != MARKED;
}

static bool decided(uint8_t op, uint64_t a, uint64_t c)
{
	switch (op) {
	case BPF_JEQ: return a == c;
	case BPF_JNE: return a != c;
	case BPF_JGT: return a > c;
	case BPF_JGE: return a >= c;
	case BPF_JLT: return a < c;
	case BPF_JLE: return a <= c;
	case BPF_JSGT: return (int64_t)a > (int64_t)c;
	case BPF_JSGE: return (int64_t)a >= (int64_t)c;
	case BPF_JSLT: return (int64_t)a < (int64_t)c;
	default: return (int64_t)a <= (int64_t)c;
	}
}

/* Writes the two ways behind a comparison that jumps to instruction `to` on condition cc. A way
 * that needs no code is a jump of the comparison itself. */
static void write_both(struct shortcut *s, struct way *on, struct way *away, enum x86_cc cc,
		       uint32_t next, uint32_t to, enum stage stage)
{
	struct shortcut there = look(s, away, to, stage), here = look(s, on, next, stage);
	struct x86 *b = &s->j->b;
	struct way *w = on;
	uint32_t jump;

	if (!there.ends || is_bare(s, &there, stage)) {
		x86_jcc(b, cc, b->n, true);
	} else if (!here.ends || is_bare(s, &here, stage)) {
		x86_jcc(b, (enum x86_cc)(cc ^ 1), b->n, true);
		there = here;
		next = to;
		w = away;
	} else if (stage == COMPARING && here.ways > s->ways && there.ways > s->ways) {
		/* Both compare on. One way is followed, else the code would double at each
		 * comparison: that of the jump, which a predicate takes when it is false. */
		x86_jcc(b, (enum x86_cc)(cc ^ 1), b->n, true);
		there.ends = false;
		next = to;
		w = away;
	} else {
		x86_jcc(b, cc, b->n, true);
		jump = b->n;
		walk(s, on, next, stage);
		code_land(b, jump);
		walk(s, away, to, stage);
		return;
	}
	if (there.ends)
		jumps_out(s);
	else
		jumps_to_run(s);
	s->ends |= there.ends;
	s->runs |= !there.ends;
	walk(s, w, next, stage);
}

/* Follows both ways of a comparison at instruction i. */
static void walk_both(struct shortcut *s, struct way *w, uint32_t i, uint32_t to, enum stage stage)
{
	const struct bpf_insn *ins = &s->j->insns[i];
	const struct jit_fact *f = &s->j->facts.insn[i];
	uint8_t op = BPF_OP(ins->code);
	struct word a = w->r[ins->dst_reg], c;
	struct way away = *w;
	bool by_zero, is_zero;

	c = BPF_SRC(ins->code) == BPF_K ? word_known((uint64_t)(int64_t)ins->imm)
	    : f->constant               ? word_known(f->value)
					: w->r[ins->src_reg];
	by_zero = c.kind == WORD_KNOWN && !c.at && (op == BPF_JEQ || op == BPF_JNE);
	if (by_zero && way_knows_zero(w, &a, &is_zero))
		a = word_known(!is_zero);
	if (by_zero) {
		way_learn_zero(&away, &a, op == BPF_JEQ);
		way_learn_zero(w, &a, op != BPF_JEQ);
	}
	if (BPF_CLASS(ins->code) != BPF_JMP || op == BPF_JSET || to <= i) {
		go_run(s);
	} else if (a.kind == WORD_ANSWER && c.kind == WORD_KNOWN && c.at == 1 &&
		   (op == BPF_JLE || op == BPF_JGT)) {
		walk(s, w, op == BPF_JLE ? to : i + 1, stage);
	} else if (a.kind == WORD_KNOWN && c.kind == WORD_KNOWN) {
		walk(s, w, decided(op, a.at, c.at) ? to : i + 1, stage);
	} else if (!comparable(&a, &c) || ++s->ways >= SHORTCUT_WAYS ||
		   (s->write && stage == COMPARING && !look(s, &away, to, stage).ends &&
		    !look(s, w, i + 1, stage).ends)) {
		go_run(s); /* each comparison leads to one more end */
	} else if (s->write) {
		write_both(s, w, &away, compare_words(s, &a, &c, code_condition(op)), i + 1, to,
			   stage);
	} else {
		walk(s, w, i + 1, stage);
		walk(s, &away, to, stage);
	}
}

/* Returns false when the word is not an address that jit_named() can use. It pushes and changes
 * rcx. */
static bool named_at(const struct word *w, struct named_at *ret)
{
	*ret = (struct named_at){ (int)w->at, w->add };
	return w->kind == WORD_SEEN && !w->times && w->at != X86_RSP && w->at != X86_RCX;
}

/* Returns false when the call is not one that function_key.c can write. */
static bool named_key(const struct shortcut *s, const struct way *w, const struct bpf_insn *ins,
		      const struct jit_fact *f, struct named_key *ret)
{
	const bool answers = ins->imm == JIT_ID_PYTHON || ins->imm == JIT_ID_RUBY;
	const struct word *method = &w->r[3], *last = &w->r[4];

	if (s->p->rax || f->map < 0 || last->kind != WORD_KNOWN ||
	    last->at > (answers ? INT32_MAX : 0) || !named_at(&w->r[2], &ret->frame))
		return false;
	ret->map = &s->j->env->maps[f->map];
	ret->salt = (uint32_t)last->at;
	ret->ruby = ins->imm == JIT_AGG_RUBY || ins->imm == JIT_ID_RUBY;
	ret->method.reg = -1;
	if (answers ? ret->map->kind != WIRE_MAP_ARRAY || ret->map->value_size != 8 * WIRE_FUNCTIONS
		    : ret->map->kind != WIRE_MAP_AGG_HASH)
		return false;
	if (method->kind == WORD_KNOWN) {
		ret->path = (uint32_t)method->at;
		return ret->ruby ? !method->at : method->at <= UINT32_MAX;
	}
	return ret->ruby && named_at(method, &ret->method);
}

/* Forgets the word in rax. */
static void forget_rax(struct way *w)
{
	struct word *all[] = { w->r, w->slot };
	uint32_t counts[] = { ARRAY_SIZE(w->r), WAY_SLOTS };

	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < counts[k]; i++)
			if (all[k][i].kind == WORD_ANSWER)
				all[k][i].kind = WORD_LOST;
}

static bool is_named(const struct bpf_insn *ins)
{
	return !ins->src_reg && (ins->imm == JIT_AGG_PYTHON || ins->imm == JIT_AGG_RUBY ||
				 ins->imm == JIT_ID_PYTHON || ins->imm == JIT_ID_RUBY);
}

/* Follows a call that function_key.c writes. Its result is in rax. A call that finds an entry
 * begins the firing, so there is one such call. If it finds none, the whole program runs after
 * all: nothing but the mark of the firing has been written before. */
static bool follow_named(struct shortcut *s, struct way *w, uint32_t i, enum stage *stage)
{
	const struct bpf_insn *ins = &s->j->insns[i];
	const bool finds = ins->imm == JIT_AGG_PYTHON || ins->imm == JIT_AGG_RUBY;
	struct named_key key;

	if (*stage != COMPARING || !named_key(s, w, ins, &s->j->facts.insn[i], &key))
		return false;
	forget_rax(w);
	w->r[0] = (struct word){ .kind = finds ? WORD_NAMED : WORD_ANSWER };
	for (int r = 1; r < 6; r++)
		w->r[r].kind = WORD_LOST;
	if (finds && look(s, w, i + 1, MARKED).runs)
		return false;
	s->uses_t1 = true;
	s->acts++; /* it needs code */
	if (finds)
		*stage = MARKED;
	if (!s->write)
		return true;
	if (finds) {
		jit_firing_begins(s->j);
		jit_named(s->j, &key, s->jumps);
	} else {
		jit_answer(s->j, &key, s->jumps);
	}
	return true;
}

/* Follows the program from instruction i. stage: behind COMPARING, no way leads to the whole
 * program. */
static void walk(struct shortcut *s, struct way *w, uint32_t i, enum stage stage)
{
	const struct jit *j = s->j;
	struct effect e;

	while (s->steps++ < STEPS) {
		const struct bpf_insn *ins = &j->insns[i];
		const struct jit_fact *f = &j->facts.insn[i];
		uint8_t class = BPF_CLASS(ins->code);
		uint32_t to = i + 1;

		if (f->dead) {
			i += 1 + ebpf_is_ld_imm64(ins);
			continue;
		}
		if (ins->code == (BPF_JMP | BPF_EXIT)) {
			go_out(s, stage);
			return;
		}
		if (ins->code == (BPF_JMP | BPF_CALL)) {
			if (is_named(ins) ? !follow_named(s, w, i, &stage)
					  : !follow_call(s, w, ins, f))
				break;
		} else if (class == BPF_JMP || class == BPF_JMP32) {
			to = (uint32_t)((int64_t)i + 1 + ebpf_jump_offset(ins));
			if (BPF_OP(ins->code) != BPF_JA && f->branch == JIT_EITHER) {
				walk_both(s, w, i, to, stage);
				return;
			}
			if (BPF_OP(ins->code) != BPF_JA && f->branch == JIT_NEVER)
				to = i + 1;
			if (to <= i)
				break;
		} else if (class == BPF_LD) {
			w->r[ins->dst_reg] =
				ins->src_reg ? (struct word){ .kind = WORD_OBJECT }
					     : word_known((uint32_t)ins->imm |
							  (uint64_t)(uint32_t)ins[1].imm << 32);
			to = i + 2;
		} else if (class == BPF_LDX) {
			if (!follow_load(s, w, ins, f))
				break;
		} else if (class == BPF_ALU || class == BPF_ALU64) {
			if (!follow_alu(w, ins, f))
				break;
		} else if (!follow_stack(w, ins, f)) {
			e = effect_of(w, ins, f);
			if (!e.kind)
				break;
			if (stage == COMPARING) {
				const struct shortcut ahead = look(s, w, i, MARKED);

				if (ahead.runs)
					break;
				stage = e.kind == EFFECT_ADD && ahead.acts == 1 ? ADDED : MARKED;
				if (stage == MARKED && s->write)
					jit_firing_begins(s->j);
				s->uses_t1 |= stage == MARKED && s->j->facts.gen_used;
			}
			s->acts++;
			if (s->write)
				write_effect(s, &e);
			if (e.kind != EFFECT_SUM && e.kind != EFFECT_NAMED) {
				way_forget_thread(w, e.at, e.size);
				way_forget_zeros(w, e.at, e.size);
			}
			/* The register's word is now also there. */
			if (e.kind == EFFECT_STORE && class == BPF_STX && e.size == 8)
				w->r[ins->src_reg] =
					(struct word){ .kind = WORD_THREAD, .size = 8, .at = e.at };
		}
		i = to;
	}
	go_run(s);
}

static void start(struct way *w)
{
	memset(w, 0, sizeof(*w));
	w->r[1].kind = WORD_CTX;
	w->r[10].kind = WORD_STACK;
}

bool jit_has_shortcut(struct jit *j, const struct shortcut_place *p)
{
	struct shortcut s = { .j = j, .p = p };
	struct way w;

	start(&w);
	return look(&s, &w, j->facts.fns[0].start, COMPARING).ends;
}

bool jit_shortcut(struct jit *j, const struct shortcut_place *p, struct shortcut_jumps *ret)
{
	struct shortcut s = { .j = j, .p = p, .write = true, .jumps = ret };
	struct way w;

	ret->nouts = ret->nruns = ret->nfails = 0;
	start(&w);
	walk(&s, &w, j->facts.fns[0].start, COMPARING);
	/* The end follows, so a jump to it is not needed. */
	if (s.out_at == j->b.n) {
		j->b.n -= WIDE_JUMP;
		ret->nouts--;
	}
	return s.uses_t1;
}
