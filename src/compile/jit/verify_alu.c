/* Verifies arithmetic and branches: computes the numbers and addresses that an instruction can
 * leave in a register, and the ranges that a comparison proves. */
#include "compile/jit/verify_private.h"

/* --- arithmetic --- */

static uint64_t up_to(uint64_t v) /* sets all bits below the highest */
{
	return v ? UINT64_MAX >> __builtin_clzll(v) : 0;
}

static struct val range_alu(const struct bpf_insn *ins, struct val a, struct val b, bool wide)
{
	uint64_t max = wide ? UINT64_MAX : UINT32_MAX, lo = 0, hi = max;

	if (a.kind != NUMBER || (!wide && a.hi > max))
		a = number(0, max);
	if (b.kind != NUMBER || (!wide && b.hi > max))
		b = number(0, max);
	if (a.lo == a.hi && b.lo == b.hi && ebpf_alu(ins, a.lo, b.lo, &lo))
		return number(lo, lo);
	switch (BPF_OP(ins->code)) {
	case BPF_ADD:
		if (a.hi <= max - b.hi) {
			lo = a.lo + b.lo;
			hi = a.hi + b.hi;
		}
		break;
	case BPF_SUB:
		if (a.lo >= b.hi) {
			lo = a.lo - b.hi;
			hi = a.hi - b.lo;
		}
		break;
	case BPF_MUL:
		if (!b.hi || a.hi <= max / b.hi) {
			lo = a.lo * b.lo;
			hi = a.hi * b.hi;
		}
		break;
	case BPF_AND: hi = a.hi < b.hi ? a.hi : b.hi; break;
	case BPF_OR:
	case BPF_XOR: hi = up_to(a.hi | b.hi); break;
	case BPF_LSH:
		if (b.lo == b.hi && b.lo < 64 && a.hi <= max >> b.lo) {
			lo = a.lo << b.lo;
			hi = a.hi << b.lo;
		}
		break;
	case BPF_ARSH:
		if (a.hi > max >> 1)
			break;
		/* fall through */
	case BPF_RSH:
		hi = a.hi;
		if (b.lo == b.hi && b.lo < (wide ? 64 : 32)) {
			lo = a.lo >> b.lo;
			hi = a.hi >> b.lo;
		}
		break;
	case BPF_DIV:
		if (!ins->off)
			hi = a.hi;
		break;
	case BPF_MOD:
		if (!ins->off)
			hi = b.lo && b.hi - 1 < a.hi ? b.hi - 1 : a.hi;
		break;
	}
	return number(lo, hi);
}

/* Computes pointer + number (or - number). Returns false when the sum may be far away. */
static bool pointer_alu(uint8_t op, const struct val *p, const struct val *x, struct val *ret)
{
	int64_t lo = (int64_t)x->lo, hi = (int64_t)x->hi;

	if (x->kind != NUMBER || p->null ||
	    (p->kind != STACK && p->kind != CTX && p->kind != VALUE && p->kind != RECORD))
		return false;
	if (lo > hi || lo < -OFF_MAX || hi > OFF_MAX)
		return false;
	*ret = *p;
	if (op == BPF_SUB) {
		int64_t t = -lo;

		lo = -hi;
		hi = t;
	}
	ret->lo = p->lo + (uint64_t)lo;
	ret->hi = p->hi + (uint64_t)hi;
	ret->link = 0;
	return (int64_t)ret->lo >= -OFF_MAX && (int64_t)ret->hi <= OFF_MAX;
}

static void compute(struct v *v, const struct bpf_insn *ins)
{
	bool wide = BPF_CLASS(ins->code) == BPF_ALU64, reg = BPF_SRC(ins->code) == BPF_X;
	uint8_t op = BPF_OP(ins->code);
	struct val *d = &v->s.r[ins->dst_reg], r, x;

	x = op == BPF_END || op == BPF_NEG ? number(0, 0)
	    : reg                          ? v->s.r[ins->src_reg]
		  : number((uint64_t)(int64_t)ins->imm, (uint64_t)(int64_t)ins->imm);
	if (!wide && !reg)
		x = number((uint32_t)ins->imm, (uint32_t)ins->imm);
	if (reg && op != BPF_END)
		verify_check_reg(v, ins->src_reg);
	if (op != BPF_MOV)
		verify_check_reg(v, ins->dst_reg);
	if (op == BPF_MOV) {
		if (reg && ins->off)
			r = wide ? any : number(0, UINT32_MAX);
		else if (wide)
			r = x;
		else
			r = zero_extended(x, 4);
		if (is_pointer(&x) && !is_pointer(&r))
			verify_lose(v, &x);
		if (r.kind == NONE)
			r = any;
		*d = r;
		return;
	}
	if (op == BPF_END) {
		verify_lose(v, d);
		*d = ins->imm == 64 ? any : number(0, (1ull << ins->imm) - 1);
		return;
	}
	if (wide && (op == BPF_ADD || op == BPF_SUB) && is_pointer(d) &&
	    pointer_alu(op, d, &x, &r)) {
		*d = r;
		return;
	}
	if (wide && op == BPF_ADD && is_pointer(&x) && pointer_alu(op, &x, d, &r)) {
		*d = r;
		return;
	}
	if (is_pointer(d) || is_pointer(&x)) {
		/* The difference of two addresses is a number. */
		if (op != BPF_SUB || !is_pointer(d) || !is_pointer(&x)) {
			verify_lose_bounds(v, d);
			verify_lose_bounds(v, &x);
		}
		*d = wide ? any : number(0, UINT32_MAX);
		return;
	}
	*d = range_alu(ins, *d, x, wide);
}

static uint32_t map_index(struct v *v, const struct bpf_insn *ins)
{
	if ((uint32_t)ins->imm < v->env->nmaps)
		return (uint32_t)ins->imm;
	if (v->record)
		verify_refuse(v, "there is no map %d", ins->imm);
	return UINT32_MAX;
}

void verify_alu(struct v *v, const struct bpf_insn *ins)
{
	const uint8_t op = BPF_OP(ins->code);
	const bool reg = BPF_SRC(ins->code) == BPF_X && op != BPF_END && op != BPF_NEG;
	const bool shared = (op != BPF_MOV && v->s.r[ins->dst_reg].shared) ||
			    (reg && v->s.r[ins->src_reg].shared);

	compute(v, ins);
	v->s.r[ins->dst_reg].shared = shared;
}

void verify_load_imm64(struct v *v, const struct bpf_insn *ins)
{
	struct val *d = &v->s.r[ins->dst_reg];
	uint64_t c = (uint32_t)ins->imm | (uint64_t)(uint32_t)ins[1].imm << 32;
	uint32_t m;

	*d = any;
	switch (ins->src_reg) {
	case 0: *d = number(c, c); break;
	case BPF_PSEUDO_MAP_FD:
		m = map_index(v, ins);
		if (m != UINT32_MAX)
			*d = (struct val){ .kind = MAP, .id = m };
		break;
	case EBPF_PSEUDO_MAP_VALUE:
		m = map_index(v, ins);
		if (m == UINT32_MAX)
			break;
		if (v->env->maps[m].kind != WIRE_MAP_ARRAY &&
		    v->env->maps[m].kind != WIRE_MAP_THREAD_ARRAY) {
			if (v->record)
				verify_refuse(v, "the values of map %u have no fixed address", m);
			break;
		}
		*d = (struct val){ .kind = VALUE,
				   .id = m,
				   .element = 1,
				   .lo = (uint32_t)ins[1].imm,
				   .hi = (uint32_t)ins[1].imm };
		break;
	case EBPF_PSEUDO_FUNC:
		*d = (struct val){ .kind = FUNC,
				   .id = verify_fn_at(v->f,
						      (uint32_t)((int64_t)v->pc + 1 + ins->imm)) };
		break;
	default:
		if (v->record)
			verify_refuse(v, "unknown kind of constant");
	}
}

/* --- branches --- */

static uint8_t decide(uint8_t op, const struct val *a, const struct val *b)
{
	uint64_t top = UINT64_MAX >> 1;

	if (is_pointer(a) && b->kind == NUMBER && !b->hi && !a->null) {
		if (op == BPF_JEQ)
			return JIT_NEVER;
		if (op == BPF_JNE)
			return JIT_ALWAYS;
		return JIT_EITHER;
	}
	if (a->kind != NUMBER || b->kind != NUMBER)
		return JIT_EITHER;
	switch (op) {
	case BPF_JSGT:
	case BPF_JSGE:
	case BPF_JSLT:
	case BPF_JSLE:
		/* Compare as unsigned if both have the same sign. */
		if (!(a->hi <= top && b->hi <= top) && !(a->lo > top && b->lo > top)) {
			if (a->lo > top && b->hi <= top) /* a < 0 <= b */
				return op == BPF_JSLT || op == BPF_JSLE ? JIT_ALWAYS : JIT_NEVER;
			if (b->lo > top && a->hi <= top)
				return op == BPF_JSGT || op == BPF_JSGE ? JIT_ALWAYS : JIT_NEVER;
			return JIT_EITHER;
		}
	}
	switch (op) {
	case BPF_JEQ:
	case BPF_JNE:
		if (a->lo == a->hi && b->lo == b->hi && a->lo == b->lo)
			return op == BPF_JEQ ? JIT_ALWAYS : JIT_NEVER;
		if (a->hi < b->lo || b->hi < a->lo)
			return op == BPF_JEQ ? JIT_NEVER : JIT_ALWAYS;
		break;
	case BPF_JGT:
	case BPF_JSGT:
		if (a->lo > b->hi)
			return JIT_ALWAYS;
		if (a->hi <= b->lo)
			return JIT_NEVER;
		break;
	case BPF_JGE:
	case BPF_JSGE:
		if (a->lo >= b->hi)
			return JIT_ALWAYS;
		if (a->hi < b->lo)
			return JIT_NEVER;
		break;
	case BPF_JLT:
	case BPF_JSLT:
		if (a->hi < b->lo)
			return JIT_ALWAYS;
		if (a->lo >= b->hi)
			return JIT_NEVER;
		break;
	case BPF_JLE:
	case BPF_JSLE:
		if (a->hi <= b->lo)
			return JIT_ALWAYS;
		if (a->lo > b->hi)
			return JIT_NEVER;
		break;
	case BPF_JSET:
		if (a->lo == a->hi && b->lo == b->hi)
			return a->lo & b->lo ? JIT_ALWAYS : JIT_NEVER;
		break;
	}
	return JIT_EITHER;
}

/* Returns the comparison that holds where `op` does not. */
static uint8_t opposite(uint8_t op)
{
	static const struct {
		uint8_t a, b;
	} pairs[] = { { BPF_JEQ, BPF_JNE },
		      { BPF_JGT, BPF_JLE },
		      { BPF_JGE, BPF_JLT },
		      { BPF_JSGT, BPF_JSLE },
		      { BPF_JSGE, BPF_JSLT } };

	for (uint32_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (op == pairs[i].a)
			return pairs[i].b;
		if (op == pairs[i].b)
			return pairs[i].a;
	}
	return 0;
}

static void resolve_null(struct state *s, uint32_t reg, bool is_null)
{
	struct val zero = number(0, 0), was = s->r[reg];
	uint32_t link = was.link;

	for (int i = 0; i < 11 + SLOTS; i++) {
		struct val *x = i < 11 ? &s->r[i] : &s->slot[i - 11];

		if (!(x == &s->r[reg] || (link && x->link == link && x->null)))
			continue;
		if (is_null)
			*x = zero;
		else
			x->null = false;
	}
}

/* Narrows a, an unsigned range, to the values for which a `op` b holds. */
static void narrow(struct val *a, uint8_t op, const struct val *b)
{
	uint64_t lo = a->lo, hi = a->hi, top = UINT64_MAX >> 1;

	if (a->kind != NUMBER || b->kind != NUMBER)
		return;
	switch (op) {
	case BPF_JSGT:
	case BPF_JSGE:
		if (b->hi > top)
			return;
		if (hi > top)
			hi = top;
		op = op == BPF_JSGT ? BPF_JGT : BPF_JGE;
		break;
	case BPF_JSLT:
	case BPF_JSLE:
		if (hi > top || b->hi > top)
			return;
		op = op == BPF_JSLT ? BPF_JLT : BPF_JLE;
		break;
	}
	switch (op) {
	case BPF_JEQ:
		lo = lo > b->lo ? lo : b->lo;
		hi = hi < b->hi ? hi : b->hi;
		break;
	case BPF_JNE:
		if (b->lo == b->hi && lo == b->lo && lo < hi)
			lo++;
		else if (b->lo == b->hi && hi == b->lo && lo < hi)
			hi--;
		break;
	case BPF_JGT:
		if (b->lo != UINT64_MAX && lo < b->lo + 1)
			lo = b->lo + 1;
		break;
	case BPF_JGE:
		if (lo < b->lo)
			lo = b->lo;
		break;
	case BPF_JLT:
		if (b->hi && hi > b->hi - 1)
			hi = b->hi - 1;
		break;
	case BPF_JLE:
		if (hi > b->hi)
			hi = b->hi;
		break;
	}
	if (lo <= hi) {
		a->lo = lo;
		a->hi = hi;
	}
}

static uint8_t mirrored(uint8_t op)
{
	switch (op) {
	case BPF_JGT: return BPF_JLT;
	case BPF_JGE: return BPF_JLE;
	case BPF_JLT: return BPF_JGT;
	case BPF_JLE: return BPF_JGE;
	case BPF_JSGT: return BPF_JSLT;
	case BPF_JSGE: return BPF_JSLE;
	case BPF_JSLT: return BPF_JSGT;
	case BPF_JSLE: return BPF_JSGE;
	}
	return op;
}

/* Narrows the state to where `op` holds of registers (or register and constant). */
static void assume(struct v *v, struct state *s, const struct bpf_insn *ins, uint8_t op, bool wide)
{
	bool reg = BPF_SRC(ins->code) == BPF_X;
	struct val *a = &s->r[ins->dst_reg], b, c;

	b = reg ? s->r[ins->src_reg]
		: number((uint64_t)(int64_t)ins->imm, (uint64_t)(int64_t)ins->imm);
	if (!wide) {
		if (!reg)
			b = number((uint32_t)ins->imm, (uint32_t)ins->imm);
		/* A 32-bit comparison proves nothing about 64 bits unless both are at most
		 * INT32_MAX. */
		if (a->kind != NUMBER || b.kind != NUMBER || a->hi > INT32_MAX || b.hi > INT32_MAX)
			return;
	}
	if (is_pointer(a) && a->null && b.kind == NUMBER && !b.hi &&
	    (op == BPF_JEQ || op == BPF_JNE)) {
		resolve_null(s, ins->dst_reg, op == BPF_JEQ);
		return;
	}
	c = *a;
	narrow(a, op, &b);
	if (reg && ins->src_reg != ins->dst_reg)
		narrow(&s->r[ins->src_reg], mirrored(op), &c);
}

void verify_branch(struct v *v, const struct bpf_insn *ins, uint32_t to)
{
	bool wide = BPF_CLASS(ins->code) == BPF_JMP, reg = BPF_SRC(ins->code) == BPF_X;
	uint8_t op = BPF_OP(ins->code), d = JIT_EITHER;
	struct val a = v->s.r[ins->dst_reg], b;
	struct state *s;

	verify_check_reg(v, ins->dst_reg);
	if (reg)
		verify_check_reg(v, ins->src_reg);
	b = reg ? v->s.r[ins->src_reg]
		: number((uint64_t)(int64_t)ins->imm, (uint64_t)(int64_t)ins->imm);
	if (wide) {
		d = decide(op, &a, &b);
	} else {
		if (!reg)
			b = number((uint32_t)ins->imm, (uint32_t)ins->imm);
		if (a.kind == NUMBER && b.kind == NUMBER && a.hi <= INT32_MAX && b.hi <= INT32_MAX)
			d = decide(op, &a, &b);
	}
	if (v->record)
		v->f->insn[v->pc].branch = d;
	s = xmemdup(&v->s, sizeof(v->s));
	if (d != JIT_NEVER) {
		if (op != BPF_JSET)
			assume(v, s, ins, op, wide);
		verify_flow(v, to, s);
	}
	if (d != JIT_ALWAYS) {
		*s = v->s;
		if (op != BPF_JSET)
			assume(v, s, ins, opposite(op), wide);
		verify_flow(v, v->pc + 1, s);
	}
	free(s);
}
