/* Finds the targets of the indirect jumps of a function.
 *
 * An indirect jump through a pointer can only lead to a taken address (MARK_TAKEN covers the
 * module). A jump to a computed address can lead anywhere. Such an address is traced back to
 * `lea table(%rip)` and `movslq (table,index,4)` on every path, and the table's entries become
 * marks. If this fails, the function is unresolved. A table is read up to the next one, and
 * behind its start while entries lead into the function, because a bounds check cannot be
 * trusted. Entries that lead to the start of another function or to no code mean nothing
 * (compilers point unreachable cases anywhere). */
#include "base/sorted.h"
#include "program/text/text_private.h"

enum {
	TABLE_ENTRIES = 1 << 20, /* read at most */
	TABLE_BASES = 8,
	TABLE_OUTSIDE = 64, /* words in a row behind a table that do not lead into the function */
	PARTS_OUTSIDE = 64, /* parts that are kept; site.c refuses a function of so many */
	TRACE_STEPS = 100000,
	TRACE_DEPTH = 1000,
	COMPARED_AT_ONCE = 16,    /* tables whose comparison takes as long as a step of decoding */
	FUNCTION_STEPS = 1000000, /* of all jumps, and some for each instruction */
};

struct edge {
	uint32_t to, from;
};
struct trace {
	struct text *t;
	struct text_code *c;
	struct edge *edges; /* direct branches inside the function, sorted by `to` */
	uint32_t nedges;
	uint16_t *seen;      /* by instruction: registers traced from there */
	uint16_t from_jumps; /* registers traced from all indirect jumps */
	uint32_t steps, depth;
	uint64_t left;                                  /* steps of all jumps */
	enum { NOT_KNOWN, NO, YES } taken_label, frame; /* has_taken_label(), has_frame() */
	bool strict;
};

static int by_to(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return COMPARE(x->to, y->to);
}

static bool decode_full(const struct trace *tr, uint32_t i, ZydisDecodedInstruction *z,
			ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT])
{
	const struct insn *n = &tr->c->insns.v[i];

	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&tr->t->decoder, tr->c->bytes + n->off, n->len, z, ops));
}

/* Returns 0..15 for a general register of any width, -1 for another register. */
static int gpr(ZydisRegister r)
{
	ZydisRegister big = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return big >= ZYDIS_REGISTER_RAX && big <= ZYDIS_REGISTER_R15
		       ? (int)big - (int)ZYDIS_REGISTER_RAX
		       : -1;
}

static bool writes(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, int reg)
{
	for (uint32_t i = 0; i < z->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    gpr(ops[i].reg.value) == reg)
			return true;
	return false;
}

static bool call_clobbers(int reg)
{
	static const uint16_t clobbered = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 0xf << 8;

	return clobbered >> reg & 1;
}

typedef bool arrive_fn(struct trace *tr, void *arg, uint32_t at, int reg);
enum step { STEP_GO, STEP_DONE, STEP_FAIL };
/* Handles instruction i, which may define reg. STEP_GO: trace *reg further. */
typedef enum step define_fn(struct trace *tr, void *arg, uint32_t i, int *reg);
/* Called when the trace arrives at the function's entry and reg has no definition. */
typedef bool entry_fn(struct trace *tr, void *arg, int reg);

struct follow {
	define_fn *define;
	entry_fn *entry;
	void *arg;
};

static bool follow(struct trace *tr, const struct follow *f, uint32_t i, int reg);

static bool follow_from(struct trace *tr, const struct follow *f, uint32_t pred, int reg)
{
	bool ok;

	if (tr->seen[pred] >> reg & 1)
		return true;
	if (tr->depth == TRACE_DEPTH)
		return false;
	tr->seen[pred] |= (uint16_t)(1 << reg);
	tr->depth++;
	ok = follow(tr, f, pred, reg);
	tr->depth--;
	return ok;
}

/* Traces reg backwards on every path that leads to instruction i, to its definitions. */
static bool follow_before(struct trace *tr, const struct follow *f, uint32_t i, int reg)
{
	struct text_code *c = tr->c;
	uint64_t addr = c->start + c->insns.v[i].off;
	uint32_t lo;
	bool explained = false;
	bool falls = i && text_falls_through(&c->insns.v[i - 1]) && c->insns.v[i - 1].reached;

	if (!i && !f->entry(tr, f->arg, reg))
		return false;
	lo = partition_point(tr->nedges, k, tr->edges[k].to < i);
	for (; lo < tr->nedges && tr->edges[lo].to == i; lo++) {
		explained = true;
		if (!follow_from(tr, f, tr->edges[lo].from, reg))
			return false;
	}
	if (i && (c->insns.v[i].table_target || text_marked(tr->t, addr, MARK_TAKEN) ||
		  (!explained && (!falls || text_marked(tr->t, addr, MARK_BRANCH))))) {
		/* An indirect jump of this function leads here, or an unknown one. */
		if (tr->strict && !c->insns.v[i].table_target)
			return false;
		if (!(tr->from_jumps >> reg & 1)) {
			tr->from_jumps |= (uint16_t)(1 << reg);
			for (uint32_t j = 0; j < c->jumps.n; j++)
				if (!follow_from(tr, f, c->jumps.v[j].insn, reg))
					return false;
		}
	}
	return !falls || follow_from(tr, f, i - 1, reg);
}

static bool follow(struct trace *tr, const struct follow *f, uint32_t i, int reg)
{
	/* Step back while there is only one path. Recurse where paths join. */
	for (;;) {
		uint64_t addr = tr->c->start + tr->c->insns.v[i].off;

		if (tr->steps++ > TRACE_STEPS || !tr->left)
			return false;
		tr->left--;
		switch (f->define(tr, f->arg, i, &reg)) {
		case STEP_DONE: return true;
		case STEP_FAIL: return false;
		case STEP_GO: break;
		}
		if (!i || text_marked(tr->t, addr, MARK_BRANCH) ||
		    text_marked(tr->t, addr, MARK_TAKEN) || tr->c->insns.v[i].table_target ||
		    !text_falls_through(&tr->c->insns.v[i - 1]) || !tr->c->insns.v[i - 1].reached)
			return follow_before(tr, f, i, reg);
		i--;
		if (tr->seen[i] >> reg & 1)
			return true;
		tr->seen[i] |= (uint16_t)(1 << reg);
	}
}

static bool trace_before(struct trace *tr, const struct follow *f, uint32_t i, int reg)
{
	cleanup_free uint16_t *seen = NULL;
	const uint64_t cost = tr->c->insns.n / 64;
	const uint16_t outer_jumps = tr->from_jumps;
	uint16_t *outer = tr->seen;
	bool ok;

	if (tr->left <= cost)
		return false;
	tr->left -= cost;
	seen = xcalloc(tr->c->insns.n, sizeof(*seen));

	tr->seen = seen;
	tr->from_jumps = 0;
	ok = follow_before(tr, f, i, reg);
	tr->seen = outer;
	tr->from_jumps = outer_jumps;
	return ok;
}

/* Constants that a register may hold: lea x(%rip), mov $x. */
struct bases {
	uint64_t v[TABLE_BASES];
	uint32_t n;
};

static bool add_base(struct bases *b, uint64_t v)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->v[i] == v)
			return true;
	if (b->n == TABLE_BASES)
		return false;
	b->v[b->n++] = v;
	return true;
}

static enum step define_base(struct trace *tr, void *arg, uint32_t i, int *reg)
{
	const struct insn *n = &tr->c->insns.v[i];
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (n->kind == INSN_CALL)
		return call_clobbers(*reg) ? STEP_FAIL : STEP_GO;
	if (!decode_full(tr, i, &z, ops))
		return STEP_FAIL;
	if (!writes(&z, ops, *reg))
		return STEP_GO;
	if (z.mnemonic == ZYDIS_MNEMONIC_LEA && n->relative && z.operand_width == 64)
		return add_base(arg, n->target) ? STEP_DONE : STEP_FAIL;
	if (z.mnemonic == ZYDIS_MNEMONIC_MOV && ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    tr->t->fixed)
		return add_base(arg, ops[1].imm.value.u) ? STEP_DONE : STEP_FAIL;
	if (z.mnemonic == ZYDIS_MNEMONIC_MOV && z.operand_width == 64 &&
	    ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && gpr(ops[1].reg.value) >= 0) {
		*reg = gpr(ops[1].reg.value);
		return STEP_GO;
	}
	return STEP_FAIL;
}

static bool entry_never(struct trace *tr, void *arg, int reg)
{
	return false;
}

static bool constant_before(struct trace *tr, uint32_t i, int reg, struct bases *ret)
{
	struct follow f = { define_base, entry_never, ret };

	ret->n = 0;
	return trace_before(tr, &f, i, reg) && ret->n;
}

/* Adds the part of the function that has addr. Returns false when addr is in none. */
static bool add_outside(struct trace *tr, uint64_t addr)
{
	struct text_range *r = text_part_at(tr->t, addr);
	struct text_code *c = tr->c;

	if (!r)
		return false;
	text_mark(tr->t, addr, MARK_BRANCH);
	for (uint32_t i = 0; i < c->outside.n; i++)
		if (c->outside.v[i] >= r->start && c->outside.v[i] < r->end)
			return true;
	if (c->outside.n < PARTS_OUTSIDE)
		vec_push(&c->outside, addr);
	return true;
}

/* Returns true for the middle of another function. A case that never happens may lead to a
 * start. */
static bool is_elsewhere(const struct trace *tr, uint64_t addr)
{
	const struct text_range *r = text_range_cover(tr->t, addr);

	return r && addr != r->start;
}

/* Reads a relative table. Marks the entries that lead into the function and its parts. Returns
 * false when the table is too long. */
static bool read_table(struct trace *tr, uint64_t table, uint64_t base)
{
	const struct text_segment *g = text_segment_at(tr->t, table);
	struct text_code *c = tr->c;
	uint64_t left, next = text_next_table(tr->t, table);
	const uint32_t uncertain = c->perhaps.n;
	bool elsewhere = false, sure = true;

	if (!g)
		return true;
	if (!text_may_work(tr->t, c->tables.n / COMPARED_AT_ONCE))
		return false;
	for (uint32_t i = 0; i < c->tables.n; i++)
		if (c->tables.v[i].addr == table && c->tables.v[i].base == base)
			return true;
	left = (g->size - (table - g->addr)) / 4;
	next = (next - table) / 4;
	for (uint64_t i = 0, none = 0; i < left && none<TABLE_OUTSIDE; i++, none += i> next) {
		int32_t w;
		uint64_t to;

		if (i == TABLE_ENTRIES || !text_may_work(tr->t, 1))
			return false;
		memcpy(&w, g->bytes + (table - g->addr) + i * 4, 4);
		to = base + (uint64_t)(int64_t)w;
		if (text_inside(c, to)) {
			uint32_t k = text_insn_of(c, to);

			text_mark(tr->t, to, MARK_BRANCH);
			if (k != UINT32_MAX)
				c->insns.v[k].table_target = true;
		} else if (sure && i >= next && text_part_at(tr->t, to)) {
			text_mark(tr->t, to, MARK_BRANCH);
			if (c->perhaps.n == uncertain || *vec_last(&c->perhaps) != to)
				vec_push(&c->perhaps, to);
			continue;
		} else if (!sure || !add_outside(tr, to)) {
			/* Behind the next address these may be the entries of another table. */
			sure &= i < next || to == c->end;
			elsewhere |= i < next && is_elsewhere(tr, to);
			continue;
		}
		/* Entries behind the last one that leads here are not of this table. */
		c->shares |= elsewhere;
		none = 0;
		while (c->perhaps.n > uncertain)
			(void)add_outside(tr, c->perhaps.v[--c->perhaps.n]);
	}
	vec_push(&c->tables, (struct table){ table, base });
	return true;
}

/* Returns the last definition of reg on the straight path before i, or UINT32_MAX. Many jumps may
 * have this path before them, so its steps count. */
static uint32_t straight_definition(struct trace *tr, uint32_t i, int reg,
				    ZydisDecodedInstruction *z, ZydisDecodedOperand *ops)
{
	while (i) {
		uint64_t addr = tr->c->start + tr->c->insns.v[i].off;
		const struct insn *n = &tr->c->insns.v[i - 1];

		if (text_marked(tr->t, addr, MARK_BRANCH) || text_marked(tr->t, addr, MARK_TAKEN) ||
		    !text_falls_through(n) || n->kind == INSN_CALL || !tr->left)
			return UINT32_MAX;
		tr->left--;
		i--;
		if (!decode_full(tr, i, z, ops))
			return UINT32_MAX;
		if (writes(z, ops, reg))
			return i;
	}
	return UINT32_MAX;
}

/* Resolves add %x,%y; jmp *%y at i. One register was read from a table and the other is its
 * base. */
static bool resolve_table(struct trace *tr, uint32_t i, int x, int y)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct bases tables, bases;
	uint32_t load;
	int other = x, base;

	load = straight_definition(tr, i, y, &z, ops);
	if (load == UINT32_MAX || z.mnemonic != ZYDIS_MNEMONIC_MOVSXD) {
		load = straight_definition(tr, i, x, &z, ops);
		other = y;
	}
	if (load == UINT32_MAX || z.mnemonic != ZYDIS_MNEMONIC_MOVSXD ||
	    ops[1].type != ZYDIS_OPERAND_TYPE_MEMORY || z.operand_width != 64)
		return false;
	if (ops[1].mem.base == ZYDIS_REGISTER_NONE) {
		tables.n = 1;
		tables.v[0] = (uint64_t)ops[1].mem.disp.value;
	} else {
		base = gpr(ops[1].mem.base);
		if (base < 0 ||
		    (ops[1].mem.index != ZYDIS_REGISTER_NONE && ops[1].mem.scale != 4) ||
		    !constant_before(tr, load, base, &tables))
			return false;
		for (uint32_t k = 0; k < tables.n; k++)
			tables.v[k] += (uint64_t)ops[1].mem.disp.value;
	}
	if (!constant_before(tr, i, other, &bases))
		return false;
	for (uint32_t k = 0; k < tables.n; k++)
		for (uint32_t m = 0; m < bases.n; m++)
			if (!read_table(tr, tables.v[k], bases.v[m]))
				return false;
	return true;
}

struct pointer {
	bool table, loaded;
	bool in_table_inside; /* the first entries of a static table lead into the function */
	bool static_table;
};

/* Handles a pointer that is loaded from memory. If it is from a table of the object, looks at the
 * entries. */
static void pointer_load(struct trace *tr, struct pointer *p, const ZydisDecodedOperand *op,
			 uint32_t i)
{
	struct bases b = { .n = 0 };

	p->loaded = true;
	if (op->mem.index == ZYDIS_REGISTER_NONE || op->mem.scale != 8)
		return;
	if (op->mem.base == ZYDIS_REGISTER_NONE) {
		b.v[b.n++] = (uint64_t)op->mem.disp.value;
	} else if (gpr(op->mem.base) < 0 || !constant_before(tr, i, gpr(op->mem.base), &b)) {
		return;
	} else {
		for (uint32_t k = 0; k < b.n; k++)
			b.v[k] += (uint64_t)op->mem.disp.value;
	}
	for (uint32_t k = 0; k < b.n; k++) {
		uint64_t to;

		if (!text_bytes(tr->t, b.v[k], &to, 8) || !to)
			return; /* relocations fill it */
		p->static_table = true;
		for (uint32_t e = 0; e < 8 && text_bytes(tr->t, b.v[k] + e * 8, &to, 8); e++)
			if (text_inside(tr->c, to) && to != tr->c->start)
				p->in_table_inside = true;
	}
}

static enum step define_pointer(struct trace *tr, void *arg, uint32_t i, int *reg)
{
	struct pointer *p = arg;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (tr->c->insns.v[i].kind == INSN_CALL)
		return !call_clobbers(*reg) ? STEP_GO : *reg == 0 ? STEP_DONE : STEP_FAIL;
	if (!decode_full(tr, i, &z, ops))
		return STEP_FAIL;
	if (!writes(&z, ops, *reg))
		return STEP_GO;
	switch (z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (z.operand_width != 64 && ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return STEP_FAIL;
		if (ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			*reg = gpr(ops[1].reg.value);
			return *reg >= 0 ? STEP_GO : STEP_FAIL;
		}
		if (ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
			pointer_load(tr, p, &ops[1], i);
		return STEP_DONE;
	case ZYDIS_MNEMONIC_LEA: return tr->c->insns.v[i].relative ? STEP_DONE : STEP_FAIL;
	case ZYDIS_MNEMONIC_POP: p->loaded = true; return STEP_DONE;
	/* The C library keeps these pointers scrambled. */
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_ROL: return STEP_GO;
	case ZYDIS_MNEMONIC_XOR:
		return ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY ? STEP_GO : STEP_FAIL;
	case ZYDIS_MNEMONIC_ADD:
		if (ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER || gpr(ops[1].reg.value) < 0 ||
		    !resolve_table(tr, i, gpr(ops[1].reg.value), *reg))
			return STEP_FAIL;
		p->table = true;
		return STEP_DONE;
	default: break;
	}
	/* cmov: trace both operands */
	if (z.meta.category == ZYDIS_CATEGORY_CMOV && z.operand_width == 64) {
		if (ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			struct follow f = { define_pointer, entry_never, p };
			int from = gpr(ops[1].reg.value);

			if (from < 0 || !trace_before(tr, &f, i, from))
				return STEP_FAIL;
		} else {
			p->loaded = true;
		}
		return STEP_GO;
	}
	return STEP_FAIL;
}

/* Returns true for an argument register, which may hold a function pointer, and for the static
 * chain. */
static bool entry_argument(struct trace *tr, void *arg, int reg)
{
	static const uint16_t arguments = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 0xf << 8;

	return arguments >> reg & 1;
}

/* Returns true when the address of a label in the function is taken. */
static bool has_taken_label(struct trace *tr)
{
	const struct text_code *c = tr->c;

	for (uint32_t i = 1; i < c->insns.n && !tr->taken_label; i++)
		if (text_marked(tr->t, c->start + c->insns.v[i].off, MARK_TAKEN))
			tr->taken_label = YES;
	if (!tr->taken_label)
		tr->taken_label = NO;
	return tr->taken_label == YES;
}

/* Returns true when the stack at addr is as at the function's entry, or when there are no unwind
 * tables. */
static bool at_entry_depth(struct text *t, uint64_t addr)
{
	uint32_t rule;

	if (!t->unwind_tried) {
		struct err *e = unwind_image_build(t->object, &t->unwind);

		t->unwind_tried = true;
		if (e) {
			t->unwind = NULL;
			err_free(e);
		}
	}
	rule = t->unwind ? unwind_image_rule(t->unwind, addr) : 0;
	return !rule ||
	       (WIRE_UNWIND_RULE_KIND(rule) == WIRE_UNWIND_RSP && WIRE_UNWIND_RULE_OFF(rule) == 1);
}

/* Returns true when the function has a frame somewhere. */
static bool has_frame(struct trace *tr)
{
	const struct text_code *c = tr->c;

	for (uint32_t i = 1; i < c->insns.n && !tr->frame; i++)
		if (!at_entry_depth(tr->t, c->start + c->insns.v[i].off))
			tr->frame = YES;
	if (!tr->frame)
		tr->frame = NO;
	return tr->frame == YES;
}

static enum jump_kind resolve(struct trace *tr, uint32_t i)
{
	struct text_code *c = tr->c;
	uint64_t addr = c->start + c->insns.v[i].off;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct pointer p = { 0 };

	tr->steps = 0;
	if (!decode_full(tr, i, &z, ops))
		return JUMP_UNRESOLVED;
	if (ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		pointer_load(tr, &p, &ops[0], i);
	} else {
		struct follow f = { define_pointer, entry_argument, &p };
		int reg = gpr(ops[0].reg.value);

		if (reg < 0 || !trace_before(tr, &f, i, reg))
			return JUMP_UNRESOLVED;
	}
	if (p.table || p.in_table_inside)
		return JUMP_INTRA;
	if (p.static_table || !has_taken_label(tr))
		return JUMP_TAIL;
	if (!at_entry_depth(tr->t, addr))
		return JUMP_INTRA;
	return has_frame(tr) ? JUMP_TAIL : JUMP_UNRESOLVED;
}

void text_resolve(struct text *t, struct text_code *c)
{
	struct trace tr = { .t = t, .c = c, .left = FUNCTION_STEPS + 10ull * c->insns.n };
	VEC(struct edge) edges = { 0 };

	for (uint32_t i = 0; i < c->insns.n; i++) {
		const struct insn *n = &c->insns.v[i];

		if (n->kind == INSN_JUMP_INDIRECT)
			vec_push(&c->jumps, (struct jump){ i, JUMP_UNRESOLVED });
		if (text_is_branch(n) && text_inside(c, n->target)) {
			uint32_t to = text_insn_of(c, n->target);

			if (to == UINT32_MAX && text_is_lock_skip(c, n->target))
				to = text_insn_of(c, n->target - 1);
			if (to != UINT32_MAX)
				vec_push(&edges, (struct edge){ to, i });
		}
	}
	if (c->jumps.n) {
		if (edges.n)
			qsort(edges.v, edges.n, sizeof(*edges.v), by_to);
		tr.edges = edges.v;
		tr.nedges = edges.n;
		/* Two rounds find the tables. The third, strict, checks that nothing else leads to
		 * labels on the paths. */
		for (int round = 0; round < 3; round++) {
			tr.strict = round == 2;
			for (uint32_t j = 0; j < c->jumps.n; j++)
				c->jumps.v[j].kind = resolve(&tr, c->jumps.v[j].insn);
			text_reach(t, c);
		}
		for (uint32_t j = 0; j < c->jumps.n; j++)
			c->unresolved |= c->jumps.v[j].kind == JUMP_UNRESOLVED;
	}
	vec_fini(&edges);
}
