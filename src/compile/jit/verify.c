#define _GNU_SOURCE
/* Abstract interpretation of a linked program: what each register and stack word holds, at the
 * start of every basic block, joined over all ways there. Calls join their arguments into the
 * callee's entry and the callee's result into what follows, so each function is walked once for all
 * its callers.
 *
 * A value only ever grows (NONE, constant, range, any), a range that grows too often becomes any:
 * the walk ends.
 */
#include <assert.h>
#include <errno.h>

#include "compile/jit/jit_int.h"
#include "data/image.h"

enum { SLOTS = EBPF_STACK_SIZE / 8, WIDEN = 8, OFF_MAX = 1 << 29 };

enum kind {
	NONE,   /* no value on any way here */
	NUMBER, /* lo..hi unsigned; also what is not known */
	STACK,  /* r10 of function id + lo..hi */
	CTX,    /* the context + lo..hi */
	MAP,    /* descriptor of map id */
	VALUE,  /* in a value of map id, + lo..hi */
	RECORD, /* in a ring record of id bytes, + lo..hi */
	FUNC,   /* function id */
	TASK,   /* the running thread's task_struct, or what stands for it */
};
struct val {
	uint8_t kind;
	bool null;    /* pointers: or it is 0 */
	uint8_t size; /* slots: 4: only the lower half is known */
	uint32_t id;
	uint32_t element; /* VALUE: number of the value in its map + 1; 0 not known */
	uint32_t link;    /* copies of one result that may be 0 have the same; 0 none */
	uint64_t lo, hi;  /* pointers: int64_t */
};
static const struct val any = { .kind = NUMBER, .hi = UINT64_MAX };

struct state {
	struct val r[11];
	struct val
		slot[SLOTS]; /* of the own stack: slot[i] is at r10 - 8 * (i + 1); NONE: not known */
};

struct block {
	uint32_t start, end; /* instructions */
	uint32_t fn;
	uint32_t joins;
	bool dirty;
	struct state *in; /* NULL: not reached */
};

struct fn {
	struct val ret;
	bool returns,
		wild; /* wild: a store or helper of it (or below it) may write any stack byte */
	uint64_t *writes; /* [nfns] slots of other functions' frames that it (or what it calls) writes */
};

struct v {
	const struct bpf_insn *insns;
	uint32_t n;
	const struct jit_env *env;
	struct jit_facts *f;
	struct block *blocks;
	uint32_t nblocks;
	uint32_t *block_of; /* [n] */
	struct fn *fns;
	bool record; /* last walk: facts are written down */
	struct err *err;
	/* of the walk */
	struct state s;
	uint32_t fn, pc;
};

static struct val number(uint64_t lo, uint64_t hi)
{
	return (struct val){ .kind = NUMBER, .lo = lo, .hi = hi };
}

static bool is_const(const struct val *a)
{
	return a->kind == NUMBER && a->lo == a->hi;
}

static bool is_pointer(const struct val *a)
{
	return a->kind > NUMBER;
}

static void refuse(struct v *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void refuse(struct v *v, const char *fmt, ...)
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
	       a->element == b->element && a->link == b->link && a->lo == b->lo && a->hi == b->hi;
}

/* The function's stack reaches down to there. */
static void stack_low(struct v *v, uint32_t fn, int64_t at)
{
	if (at < -EBPF_STACK_SIZE)
		at = -EBPF_STACK_SIZE;
	if (v->record && at < v->f->fns[fn].low)
		v->f->fns[fn].low = (int32_t)at;
}

/* An address is about to be held where it is not followed: whoever it points to must expect every
 * read. */
static void lose(struct v *v, const struct val *a)
{
	if (!v->record)
		return;
	if (a->kind == CTX)
		v->f->ctx_lost = true;
	if (a->kind == STACK) {
		v->f->fns[a->id].leaked = true;
		stack_low(v, a->id, (int64_t)a->lo);
	}
}

/* ... and arithmetic or an access beyond its frame made it point anywhere. */
static void lose_bounds(struct v *v, const struct val *a)
{
	lose(v, a);
	if (!v->record || a->kind != STACK)
		return;
	for (uint32_t i = 0; i < v->f->nfns; i++)
		v->f->fns[i].leaked = true;
	stack_low(v, a->id, -EBPF_STACK_SIZE);
}

static struct val join(const struct val *a, const struct val *b, bool widen)
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

/* slots: NONE there is "not known", the top; in registers it joins to any. */
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
		if (from->slot[i].kind == NONE)
			j = (struct val){ 0 };
		else
			j = join(&to->slot[i], &from->slot[i], widen);
		if (j.kind == NUMBER && !j.size && j.hi == UINT64_MAX && !j.lo)
			j = (struct val){ 0 };
		changed |= !same(&j, &to->slot[i]);
		to->slot[i] = j;
	}
	return changed;
}

/* What state `from` knew and the place it goes to does not. */
static void lose_state(struct v *v, const struct state *to, const struct state *from)
{
	for (int i = 0; i < 11; i++)
		if (is_pointer(&from->r[i]) && to->r[i].kind != from->r[i].kind)
			lose(v, &from->r[i]);
	for (int i = 0; i < SLOTS; i++)
		if (is_pointer(&from->slot[i]) && to->slot[i].kind != from->slot[i].kind)
			lose(v, &from->slot[i]);
}

static void flow(struct v *v, uint32_t to, const struct state *s)
{
	struct block *b = &v->blocks[v->block_of[to]];

	assert(b->start == to);
	if (v->record) {
		lose_state(v, b->in, s);
		return;
	}
	if (!b->in) {
		b->in = xmemdup(s, sizeof(*s));
		b->dirty = true;
		return;
	}
	if (join_state(b->in, s, b->joins > WIDEN)) {
		b->joins++;
		b->dirty = true;
	}
}

/* --- memory --- */

static uint32_t insn_size(const struct bpf_insn *ins)
{
	static const uint8_t size[] = { 4, 2, 1, 8 };

	return size[BPF_SIZE(ins->code) >> 3];
}

static bool in_bounds(struct v *v, const struct val *p, int64_t off, uint64_t size)
{
	int64_t lo = (int64_t)p->lo + off, hi = (int64_t)p->hi + off;

	if (p->null || size > OFF_MAX)
		return false;
	switch (p->kind) {
	case STACK: return lo >= -EBPF_STACK_SIZE && hi + (int64_t)size <= 0;
	case CTX: return lo >= 0 && hi + (int64_t)size <= JIT_CTX;
	case VALUE: return lo >= 0 && hi + (int64_t)size <= v->env->maps[p->id].value_size;
	case RECORD: return lo >= 0 && hi + (int64_t)size <= p->id;
	}
	return false;
}

/* Bytes [lo, hi) of function fn's stack, relative to its r10, may be read. */
static void reads_stack(struct v *v, uint32_t fn, int64_t lo, int64_t hi)
{
	for (int64_t i = lo; i < hi; i++)
		v->f->fns[fn].read[(i + 512) / 64] |= 1ull << (i + 512) % 64;
}

static uint64_t slot_mask(int64_t lo, int64_t hi) /* slots that bytes [lo, hi) below r10 touch */
{
	uint64_t m = 0;

	for (int64_t i = (-hi) / 8; i < SLOTS && -8 * (i + 1) < hi; i++)
		if (i >= 0 && -8 * i > lo)
			m |= 1ull << i;
	return m;
}

static void proven_read(struct v *v, const struct val *p, int64_t off, uint64_t size)
{
	int64_t lo = (int64_t)p->lo + off, hi = (int64_t)p->hi + off + (int64_t)size;

	if (!v->record)
		return;
	if (p->kind == STACK) {
		reads_stack(v, p->id, lo, hi);
		v->f->fns[p->id].blind |= slot_mask(lo, hi);
	}
	if (p->kind == CTX) {
		v->f->ctx_used = true;
		for (int64_t i = lo / 8; i * 8 < hi; i++)
			v->f->ctx_words |= 1u << i;
	}
}

/* gone: what stood there is overwritten for sure. */
static void forget_slots(struct v *v, uint64_t mask, bool gone)
{
	for (int i = 0; i < SLOTS; i++) {
		if (!(mask >> i & 1))
			continue;
		if (!gone)
			lose(v, &v->s.slot[i]);
		v->s.slot[i] = (struct val){ 0 };
	}
}

/* Everything that calls function fn learns that it writes more. */
static void callers_again(struct v *v, uint32_t fn)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct bpf_insn *ins = &v->insns[i];
		bool ref = (ins->code == (BPF_JMP | BPF_CALL) && ins->src_reg == BPF_PSEUDO_CALL) ||
			   (ebpf_is_ld_imm64(ins) && ins->src_reg == EBPF_PSEUDO_FUNC);

		if (ref && (uint32_t)((int64_t)i + 1 + ins->imm) == v->f->fns[fn].start) {
			uint32_t f = v->blocks[v->block_of[i]].fn;

			/* a callback's loop may stand in another block than its address */
			for (uint32_t b = 0; b < v->nblocks; b++)
				if (v->blocks[b].fn == f && v->blocks[b].in)
					v->blocks[b].dirty = true;
		}
		if (ebpf_is_ld_imm64(ins))
			i++;
	}
}

static void writes_any(struct v *v)
{
	forget_slots(v, UINT64_MAX, false);
	if (!v->fns[v->fn].wild) {
		v->fns[v->fn].wild = true;
		callers_again(v, v->fn);
	}
}

static void writes_frame(struct v *v, uint32_t fn, uint64_t mask, bool gone)
{
	if (fn == v->fn) {
		forget_slots(v, mask, gone);
	} else if (mask & ~v->fns[v->fn].writes[fn]) {
		v->fns[v->fn].writes[fn] |= mask;
		callers_again(v, v->fn);
	}
}

static void writes(struct v *v, const struct val *p, int64_t off, uint64_t size, bool proven)
{
	int64_t lo = (int64_t)p->lo + off, hi = (int64_t)p->hi + off + (int64_t)size;

	if (!proven) {
		writes_any(v);
	} else if (p->kind == STACK) {
		writes_frame(v, p->id, slot_mask(lo, hi), p->lo == p->hi);
		if (p->id != v->fn || p->lo != p->hi)
			stack_low(v, p->id, lo);
	}
}

static struct val load_slot(struct v *v, const struct val *p, int64_t off, uint32_t size)
{
	int64_t at = (int64_t)p->lo + off;
	const struct val *s;
	struct val r;

	if (p->kind != STACK || p->id != v->fn || p->lo != p->hi || at & 7 || at < -512 || at >= 0)
		return any;
	s = &v->s.slot[-at / 8 - 1];
	if (s->kind == NONE)
		return any;
	if (size == 8)
		return s->size ? any : *s;
	if (size == 4 && is_const(s)) {
		r = number((uint32_t)s->lo, (uint32_t)s->lo);
		return r;
	}
	return any;
}

static struct val zero_extended(struct val r, uint32_t size)
{
	uint64_t max = size == 8 ? UINT64_MAX : (1ull << size * 8) - 1;

	if (r.kind == NUMBER && r.hi <= max)
		return r;
	if (size == 8)
		return r;
	return number(0, max);
}

static void check_read_reg(struct v *v, uint32_t r)
{
	if (v->record && v->s.r[r].kind == NONE)
		refuse(v, "r%u has no value", r);
}

static void note_access(struct v *v, bool proven)
{
	if (!v->record)
		return;
	v->f->insn[v->pc].proven = proven;
	if (proven) {
		v->f->nproven++;
	} else {
		v->f->nchecked++;
		v->f->checks = true;
	}
}

/* A proven access whose place does not depend on the generation. */
static void note_place(struct v *v, const struct val *p, int64_t off)
{
	const struct wire_map *m = p->kind == VALUE ? &v->env->maps[p->id] : NULL;
	struct jit_fact *f = &v->f->insn[v->pc];
	uint64_t place;

	if (!v->record || !m || !p->element || p->lo != p->hi)
		return;
	place = m->base + (uint64_t)(p->element - 1) * m->stride + p->lo + (uint64_t)off;
	if (m->kind == WIRE_MAP_ARRAY)
		f->where = JIT_AT;
	else if ((m->kind == WIRE_MAP_THREAD_ARRAY || m->kind == WIRE_MAP_TASK) &&
		 place < INT32_MAX - 8)
		f->where = JIT_IN_THREAD;
	f->place = place;
}

static void load(struct v *v, const struct bpf_insn *ins)
{
	const struct val *p = &v->s.r[ins->src_reg];
	uint32_t size = insn_size(ins);
	bool ok = in_bounds(v, p, ins->off, size), sign = BPF_MODE(ins->code) == EBPF_MEMSX;
	struct val r = any;

	check_read_reg(v, ins->src_reg);
	if (v->record && p->kind == CTX && !ok)
		refuse(v, "reads outside the context");
	note_access(v, ok);
	if (!ok)
		lose_bounds(v, p);
	if (ok) {
		uint64_t blind = p->kind == STACK ? v->f->fns[p->id].blind : 0;

		note_place(v, p, ins->off);
		proven_read(v, p, ins->off, size);
		if (!sign)
			r = load_slot(v, p, ins->off, size);
		if (is_pointer(&r)) /* it was followed */
			v->f->fns[p->id].blind = blind;
	}
	if (!sign)
		r = zero_extended(r, size);
	v->s.r[ins->dst_reg] = r;
}

static bool of_thread(const struct v *v, const struct val *p)
{
	if (p->kind == STACK)
		return true;
	if (p->kind != VALUE)
		return false;
	switch (v->env->maps[p->id].kind) {
	case WIRE_MAP_THREAD_ARRAY:
	case WIRE_MAP_AGG_ARRAY:
	case WIRE_MAP_AGG_HASH:
	case WIRE_MAP_TASK: return true;
	}
	return false;
}

static void store(struct v *v, const struct bpf_insn *ins)
{
	struct val p = v->s.r[ins->dst_reg], x;
	bool atomic = BPF_CLASS(ins->code) == BPF_STX && BPF_MODE(ins->code) == BPF_ATOMIC;
	uint32_t size = insn_size(ins);
	bool ok = in_bounds(v, &p, ins->off, size) && p.kind != CTX;
	int64_t at = (int64_t)p.lo + ins->off;
	struct jit_fact *f = &v->f->insn[v->pc];

	check_read_reg(v, ins->dst_reg);
	if (BPF_CLASS(ins->code) == BPF_STX)
		check_read_reg(v, ins->src_reg);
	if (v->record && p.kind == CTX)
		refuse(v, "writes to the context");
	note_access(v, ok);
	if (ok)
		note_place(v, &p, ins->off);
	else
		lose_bounds(v, &p);
	x = BPF_CLASS(ins->code) == BPF_STX
		    ? v->s.r[ins->src_reg]
		    : number((uint64_t)(int64_t)ins->imm, (uint64_t)(int64_t)ins->imm);
	writes(v, &p, ins->off, size, ok);
	if (atomic) {
		if (v->record) {
			f->alone = ok && of_thread(v, &p);
			if (ok)
				proven_read(v, &p, ins->off, size);
			lose(v, &x);
		}
		if (ins->imm != BPF_ADD && ins->imm != BPF_OR && ins->imm != BPF_AND &&
		    ins->imm != BPF_XOR) {
			struct val old = zero_extended(any, size);

			if (ins->imm == BPF_CMPXCHG) {
				check_read_reg(v, 0);
				v->s.r[0] = old;
			} else {
				v->s.r[ins->src_reg] = old;
			}
		}
		return;
	}
	if (ok && p.kind == STACK && p.id == v->fn && p.lo == p.hi) {
		if (v->record) {
			f->own = true;
			f->at = (int16_t)at;
			f->size = (uint8_t)size;
		}
		if (!(at & 7) && (size == 8 || (size == 4 && is_const(&x)))) {
			x.size = size == 8 ? 0 : 4;
			if (size == 4)
				x.lo = x.hi = (uint32_t)x.lo;
			if (x.kind != NONE)
				v->s.slot[-at / 8 - 1] = x;
			if (v->record && x.kind == CTX)
				v->f->fns[v->fn].ctx_at |= slot_mask(at, at + 8);
			if (v->record && x.kind == STACK)
				v->f->fns[v->fn].stack_at |= slot_mask(at, at + 8);
			return;
		}
	}
	lose(v, &x);
}

/* --- arithmetic --- */

static uint64_t up_to(uint64_t v) /* all bits below and with the highest */
{
	return v ? UINT64_MAX >> __builtin_clzll(v) : 0;
}

static struct val const_alu(const struct bpf_insn *ins, uint64_t a, uint64_t b, bool wide, bool *ok)
{
	uint32_t count;

	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	count = b & (wide ? 63 : 31);
	*ok = true;
	switch (BPF_OP(ins->code)) {
	case BPF_ADD: a += b; break;
	case BPF_SUB: a -= b; break;
	case BPF_MUL: a *= b; break;
	case BPF_OR: a |= b; break;
	case BPF_AND: a &= b; break;
	case BPF_XOR: a ^= b; break;
	case BPF_NEG: a = -a; break;
	case BPF_LSH: a <<= count; break;
	case BPF_RSH: a >>= count; break;
	case BPF_ARSH:
		a = wide ? (uint64_t)((int64_t)a >> count) : (uint32_t)((int32_t)a >> count);
		break;
	default: *ok = false;
	}
	if (!wide)
		a = (uint32_t)a;
	return number(a, a);
}

static struct val range_alu(const struct bpf_insn *ins, struct val a, struct val b, bool wide)
{
	uint64_t max = wide ? UINT64_MAX : UINT32_MAX, lo = 0, hi = max;
	bool ok;

	if (a.kind != NUMBER || (!wide && a.hi > max))
		a = number(0, max);
	if (b.kind != NUMBER || (!wide && b.hi > max))
		b = number(0, max);
	if (a.lo == a.hi && b.lo == b.hi) {
		struct val r = const_alu(ins, a.lo, b.lo, wide, &ok);

		if (ok)
			return r;
	}
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

/* pointer + number (or - number) when the sum stays near. */
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

static void alu(struct v *v, const struct bpf_insn *ins)
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
		check_read_reg(v, ins->src_reg);
	if (op != BPF_MOV)
		check_read_reg(v, ins->dst_reg);
	if (op == BPF_MOV) {
		if (reg && ins->off)
			r = wide ? any : number(0, UINT32_MAX);
		else if (wide)
			r = x;
		else
			r = zero_extended(x, 4);
		if (is_pointer(&x) && !is_pointer(&r))
			lose(v, &x);
		if (r.kind == NONE)
			r = any;
		*d = r;
		return;
	}
	if (op == BPF_END) {
		lose(v, d);
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
		/* the difference of two addresses is none */
		if (op != BPF_SUB || !is_pointer(d) || !is_pointer(&x)) {
			lose_bounds(v, d);
			lose_bounds(v, &x);
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
		refuse(v, "there is no map %d", ins->imm);
	return UINT32_MAX;
}

static uint32_t fn_at(const struct jit_facts *f, uint32_t start)
{
	for (uint32_t i = 0; i < f->nfns; i++)
		if (f->fns[i].start == start)
			return i;
	return UINT32_MAX;
}

static void load_imm64(struct v *v, const struct bpf_insn *ins)
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
				refuse(v, "the values of map %u have no fixed address", m);
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
				   .id = fn_at(v->f, (uint32_t)((int64_t)v->pc + 1 + ins->imm)) };
		break;
	default:
		if (v->record)
			refuse(v, "unknown kind of constant");
	}
}

/* --- calls --- */

static void clobber_args(struct v *v)
{
	for (int i = 1; i <= 5; i++)
		v->s.r[i] = (struct val){ 0 };
}

static void new_link(struct v *v, uint32_t link)
{
	for (int i = 0; i < 11; i++)
		if (v->s.r[i].link == link)
			v->s.r[i].link = 0;
	for (int i = 0; i < SLOTS; i++)
		if (v->s.slot[i].link == link)
			v->s.slot[i].link = 0;
}

/* A call's or loop's function: its entry learns the arguments, its caller what it may have
 * written. */
static void enter(struct v *v, uint32_t callee, const struct val args[5])
{
	struct state *s = xcalloc(1, sizeof(*s));

	for (int i = 0; i < 5; i++)
		s->r[i + 1] = args[i];
	s->r[10] = (struct val){ .kind = STACK, .id = callee };
	flow(v, v->f->fns[callee].start, s);
	free(s);
	for (uint32_t i = 0; i < v->f->nfns; i++)
		if (v->fns[callee].writes[i])
			writes_frame(v, i, v->fns[callee].writes[i], false);
	if (v->fns[callee].wild)
		writes_any(v);
}

/* False: the function has not returned on any way seen so far. */
static bool call_function(struct v *v, const struct bpf_insn *ins)
{
	uint32_t callee = fn_at(v->f, (uint32_t)((int64_t)v->pc + 1 + ins->imm));

	if (v->record)
		v->f->insn[v->pc].func = callee;
	enter(v, callee, &v->s.r[1]);
	clobber_args(v);
	if (!v->fns[callee].returns)
		return false;
	v->s.r[0] = v->fns[callee].ret;
	new_link(v, v->pc + 1);
	if (v->s.r[0].null)
		v->s.r[0].link = v->pc + 1;
	return true;
}

static void loop(struct v *v)
{
	struct val *r = v->s.r, args[5] = { 0 };

	for (uint32_t i = 1; i <= 4; i++)
		check_read_reg(v, i);
	if (r[2].kind != FUNC || r[2].null) {
		if (v->record)
			refuse(v, "the loop's function is not known");
		return;
	}
	if (v->record)
		v->f->insn[v->pc].func = r[2].id;
	args[0] = number(0, JIT_LOOPS - 1);
	if (r[1].kind == NUMBER && r[1].hi && r[1].hi < JIT_LOOPS)
		args[0].hi = r[1].hi - 1;
	args[1] = r[3].kind ? r[3] : any;
	enter(v, r[2].id, args);
	clobber_args(v);
	v->s.r[0] = any;
}

/* A helper's memory argument: proven, or a check when it runs. */
static void helper_memory(struct v *v, uint32_t reg, uint64_t size, bool write)
{
	struct val *p = &v->s.r[reg];
	bool ok = in_bounds(v, p, 0, size) && (!write || p->kind != CTX);

	if (write)
		writes(v, p, 0, size, ok);
	else if (ok)
		proven_read(v, p, 0, size);
	if (!v->record)
		return;
	if (ok) {
		v->f->nproven++;
		return;
	}
	lose_bounds(v, p);
	v->f->insn[v->pc].check |= (uint8_t)(1 << reg);
	v->f->nchecked++;
	v->f->checks = true;
}

static uint64_t size_bound(const struct val *s, bool wide)
{
	if (s->kind != NUMBER)
		return UINT64_MAX;
	if (!wide && s->hi > UINT32_MAX)
		return UINT32_MAX;
	return s->hi;
}

/* The constant in the 4 bytes that r2 points to. */
static bool known_key(struct v *v, uint32_t *ret)
{
	const struct val *p = &v->s.r[2];
	struct val k;

	if (!in_bounds(v, p, 0, 4))
		return false;
	k = load_slot(v, p, 0, 4);
	*ret = (uint32_t)k.lo;
	return is_const(&k);
}

bool jit_map_usable(const struct jit_env *env, uint32_t m, uint32_t helper)
{
	uint32_t kind = env->maps[m].kind;

	switch (helper) {
	case BPF_FUNC_ringbuf_reserve:
	case BPF_FUNC_ringbuf_output:
	case BPF_FUNC_ringbuf_query: return kind == WIRE_MAP_RING;
	case BPF_FUNC_task_storage_get:
	case BPF_FUNC_task_storage_delete: return kind == WIRE_MAP_TASK;
	default: return kind != WIRE_MAP_RING && kind != WIRE_MAP_TASK;
	}
}

uint32_t jit_key_size(const struct jit_env *env, int32_t map, uint32_t helper)
{
	uint32_t size = 4;

	if (map >= 0)
		return env->maps[map].key_size;
	for (uint32_t i = 0; i < env->nmaps && helper != BPF_FUNC_map_lookup_elem; i++)
		if (jit_map_usable(env, i, helper) && env->maps[i].key_size > size)
			size = env->maps[i].key_size;
	return size;
}

uint32_t jit_value_size(const struct jit_env *env, int32_t map, uint32_t helper)
{
	uint32_t size = 8;

	if (map >= 0)
		return env->maps[map].value_size;
	for (uint32_t i = 0; i < env->nmaps; i++)
		if (jit_map_usable(env, i, helper) && env->maps[i].value_size > size)
			size = env->maps[i].value_size;
	return size;
}

static void helper_args(struct v *v, const struct jit_helper *h, int32_t map)
{
	const struct wire_map *m = map >= 0 ? &v->env->maps[map] : NULL;
	struct jit_fact *f = &v->f->insn[v->pc];
	uint32_t key;

	for (uint32_t i = 0; h->args[i]; i++) {
		struct val *p = &v->s.r[i + 1];

		check_read_reg(v, i + 1);
		switch (h->args[i]) {
		case 'm':
			if (m)
				break;
			/* an inner map, or one whose address came by way of memory: looked at when
			 * it runs */
			if (h->id == BPF_FUNC_map_lookup_elem) {
				helper_memory(v, i + 1, sizeof(struct wire_map), false);
			} else if (v->record) {
				f->check |= 1 << 1;
				v->f->checks = true;
			}
			break;
		case 'k':
			if (v->record)
				f->key_known = f->key_own = false;
			if (m && h->id == BPF_FUNC_map_lookup_elem && m->key_size == 4 &&
			    (m->kind == WIRE_MAP_ARRAY || m->kind == WIRE_MAP_THREAD_ARRAY ||
			     m->kind == WIRE_MAP_AGG_ARRAY) &&
			    known_key(v, &key)) {
				if (v->record) {
					f->key_known = true;
					f->key = key;
				}
				break;
			}
			if (v->record && m && in_bounds(v, p, 0, m->key_size) && p->kind == STACK &&
			    p->id == v->fn && p->lo == p->hi) {
				f->key_own = true;
				f->key_at = (int16_t)p->lo;
			}
			helper_memory(v, i + 1, jit_key_size(v->env, map, h->id), false);
			break;
		case 'V':
			if (p->kind == NUMBER && !p->hi)
				break;
			/* fall through */
		case 'v': helper_memory(v, i + 1, jit_value_size(v->env, map, h->id), false); break;
		case 'w': helper_memory(v, i + 1, size_bound(p + 1, false), true); break;
		case 'r': helper_memory(v, i + 1, size_bound(p + 1, false), false); break;
		case 'l': helper_memory(v, i + 1, size_bound(p + 1, true), false); break;
		case 'M':
			if (v->record && (p->kind != MAP || p->null))
				refuse(v, "r%u is no map", i + 1);
			break;
		case 'S': helper_memory(v, i + 1, sizeof(struct wire_stack), true); break;
		case 'W': helper_memory(v, i + 1, sizeof(struct wire_walk), true); break;
		case 'O': helper_memory(v, i + 1, sizeof(struct wire_unwind_offsets), false); break;
		case 'q': helper_memory(v, i + 1, size_bound(p - 1, false), false); break;
		case 'g':
			if (p->kind == RECORD && !p->null && !p->lo && !p->hi) {
				if (v->record && h->id == BPF_FUNC_ringbuf_submit)
					f->record = p->id;
				break;
			}
			helper_memory(v, i + 1, 8, true);
			break;
		case '.':
			/* probe_read() may read any of it */
			lose(v, p);
			break;
		}
	}
}

static void call_helper(struct v *v, const struct bpf_insn *ins)
{
	const struct jit_helper *h = jit_helper((uint32_t)ins->imm);
	struct jit_fact *f = &v->f->insn[v->pc];
	/* nothing to begin with: written out, see jit_inline() */
	bool is_task = v->s.r[2].kind == TASK && v->s.r[3].kind == NUMBER && !v->s.r[3].hi;
	struct val r0 = any;
	int32_t map = -1;
	uint32_t scratch;

	if (!h) {
		const char *name = ebpf_helper_name((uint32_t)ins->imm);

		if (v->record)
			refuse(v, "helper %s is not known", name ? name : "");
		return;
	}
	if (v->record && h->regs) {
		v->f->ctx_lost = true;
		v->f->regs_used = true;
	}
	if (h->id == BPF_FUNC_loop) {
		loop(v);
		return;
	}
	if ((h->args[0] == 'm' || h->args[0] == 'M') && v->s.r[1].kind == MAP && !v->s.r[1].null)
		map = (int32_t)v->s.r[1].id;
	if (map >= 0 && v->record && !jit_map_usable(v->env, (uint32_t)map, h->id))
		refuse(v, "map %d is not of the kind that this helper works on", map);
	if (map >= 0 && v->record && h->id == JIT_SCRATCH_GET &&
	    v->env->maps[map].kind != WIRE_MAP_THREAD_ARRAY)
		refuse(v, "map %d has no room for each thread", map);
	if (v->record)
		f->map = map;
	helper_args(v, h, map);
	if (h->result == 'v' && map >= 0) {
		const struct wire_map *m = &v->env->maps[map];

		if (m->kind != WIRE_MAP_TABLES)
			r0 = (struct val){ .kind = VALUE, .id = (uint32_t)map, .null = true };
		if (h->id == BPF_FUNC_map_lookup_elem && m->kind == WIRE_MAP_THREAD_ARRAY &&
		    m->role == MAP_SCRATCH)
			r0.null = false;
		else if (v->s.r[1].kind == MAP && h->id == BPF_FUNC_map_lookup_elem &&
			 m->key_size == 4 && m->kind != WIRE_MAP_TABLES) {
			uint32_t key;

			if ((m->kind == WIRE_MAP_ARRAY || m->kind == WIRE_MAP_THREAD_ARRAY ||
			     m->kind == WIRE_MAP_AGG_ARRAY) &&
			    known_key(v, &key)) {
				if (key >= m->max_entries)
					r0 = number(0, 0);
				else
					r0.element = key + 1;
				r0.null = false;
			}
		}
		if (h->id == BPF_FUNC_map_lookup_elem && m->kind == WIRE_MAP_THREAD_ARRAY &&
		    m->role == MAP_SCRATCH && m->key_size == 4 && known_key(v, &scratch))
			r0.element = scratch % m->max_entries + 1;
		if (h->id == BPF_FUNC_task_storage_get && is_task) {
			r0.null = false;
			r0.element = 1;
			if (v->record)
				f->there = true;
		}
	}
	if (h->id == BPF_FUNC_get_current_task || h->id == BPF_FUNC_get_current_task_btf)
		r0 = (struct val){ .kind = TASK, .null = true };
	if (h->result == 'b')
		r0 = number(0, 126);
	if (h->result == 'g') {
		const struct val *size = &v->s.r[2], *flags = &v->s.r[3];

		if (v->record && is_const(size) && size->lo && size->lo < OFF_MAX &&
		    is_const(flags) && !flags->lo)
			f->record = (uint32_t)size->lo;

		if (is_const(size) && size->lo < OFF_MAX)
			r0 = (struct val){ .kind = RECORD, .id = (uint32_t)size->lo, .null = true };
	}
	if (r0.null) {
		new_link(v, v->pc + 1);
		r0.link = v->pc + 1;
	}
	clobber_args(v);
	v->s.r[0] = r0;
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
		/* as unsigned, where the signs are known to be alike */
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

/* The comparison that holds where `op` does not. */
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

/* a (an unsigned range) `op` b holds. */
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

/* The state where `op` holds of registers (or register and constant). */
static void assume(struct v *v, struct state *s, const struct bpf_insn *ins, uint8_t op, bool wide)
{
	bool reg = BPF_SRC(ins->code) == BPF_X;
	struct val *a = &s->r[ins->dst_reg], b, c;

	b = reg ? s->r[ins->src_reg]
		: number((uint64_t)(int64_t)ins->imm, (uint64_t)(int64_t)ins->imm);
	if (!wide) {
		if (!reg)
			b = number((uint32_t)ins->imm, (uint32_t)ins->imm);
		/* halves say nothing of the whole; signs are those of 32 bits */
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

static void branch(struct v *v, const struct bpf_insn *ins, uint32_t to)
{
	bool wide = BPF_CLASS(ins->code) == BPF_JMP, reg = BPF_SRC(ins->code) == BPF_X;
	uint8_t op = BPF_OP(ins->code), d = JIT_EITHER;
	struct val a = v->s.r[ins->dst_reg], b;
	struct state *s;

	check_read_reg(v, ins->dst_reg);
	if (reg)
		check_read_reg(v, ins->src_reg);
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
		flow(v, to, s);
	}
	if (d != JIT_ALWAYS) {
		*s = v->s;
		if (op != BPF_JSET)
			assume(v, s, ins, opposite(op), wide);
		flow(v, v->pc + 1, s);
	}
	free(s);
}

/* --- the walk --- */

static void leave(struct v *v)
{
	struct val r0 = v->s.r[0], j;
	struct fn *f = &v->fns[v->fn];

	if (r0.kind == NONE) {
		if (v->record)
			refuse(v, "returns without a value in r0");
		r0 = any;
	}
	/* a frame is gone with its function */
	if (r0.kind == STACK && r0.id == v->fn) {
		lose(v, &r0);
		r0 = any;
	}
	r0.link = 0;
	r0.size = 0;
	if (v->record) {
		if (is_pointer(&r0) && f->ret.kind != r0.kind)
			lose(v, &r0);
		return;
	}
	j = f->returns ? join(&f->ret, &r0, v->blocks[v->block_of[v->pc]].joins > WIDEN) : r0;
	if (f->returns && same(&j, &f->ret))
		return;
	f->ret = j;
	f->returns = true;
	callers_again(v, v->fn);
}

static void note_constant(struct v *v, const struct bpf_insn *ins)
{
	const struct val *s = &v->s.r[ins->src_reg < 11 ? ins->src_reg : 0];

	v->f->insn[v->pc].constant = is_const(s);
	v->f->insn[v->pc].value = s->lo;
}

static void walk(struct v *v, struct block *b)
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
		case BPF_ALU64: alu(v, ins); break;
		case BPF_LDX: load(v, ins); break;
		case BPF_ST:
		case BPF_STX: store(v, ins); break;
		case BPF_LD:
			load_imm64(v, ins);
			v->pc++;
			break;
		default:
			if (ins->code == (BPF_JMP | BPF_EXIT)) {
				leave(v);
				return;
			}
			if (ins->code == (BPF_JMP | BPF_CALL)) {
				if (ins->src_reg == 0)
					call_helper(v, ins);
				else if (!call_function(v, ins))
					return;
				break;
			}
			if (BPF_OP(ins->code) == BPF_JA)
				flow(v, (uint32_t)((int64_t)v->pc + 1 + ebpf_jump_offset(ins)),
				     &v->s);
			else
				branch(v, ins, (uint32_t)((int64_t)v->pc + 1 + ins->off));
			return;
		}
	}
	if (!v->err && b->end < v->n)
		flow(v, b->end, &v->s);
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

/* Stack and depth of a function with all it calls; refuses recursion. state: 1 being measured, 2
 * done. */
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
			uint32_t to = fn_at(f, (uint32_t)((int64_t)i + 1 + ins->imm));

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

/* Addresses that were stored on a stack whose bytes are read in a way that does not follow them are
 * lost, too. */
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

/* What the code needs as a whole. */
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
		if (f->insn[i].map >= 0 && (env->maps[f->insn[i].map].kind == WIRE_MAP_AGG_ARRAY ||
					    env->maps[f->insn[i].map].kind == WIRE_MAP_AGG_HASH))
			f->gen_used = true;
		if (h->id == BPF_FUNC_ktime_get_ns)
			f->clock_used = true;
		if (h->id == BPF_FUNC_ringbuf_reserve)
			f->reserve_used = true;
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

	v.s.r[1] = (struct val){ .kind = CTX };
	v.s.r[10] = (struct val){ .kind = STACK };
	flow(&v, 0, &v.s);
	while (again && !v.err) {
		again = false;
		for (uint32_t i = 0; i < v.nblocks && !v.err; i++) {
			if (v.blocks[i].dirty) {
				walk(&v, &v.blocks[i]);
				again = true;
			}
		}
	}
	v.record = true;
	for (uint32_t i = 0; i < v.nblocks && !v.err; i++) {
		if (v.blocks[i].in) {
			ret->fns[v.blocks[i].fn].reached = true;
			walk(&v, &v.blocks[i]);
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
