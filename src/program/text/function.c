/* One function decoded: its instructions, which of them can be reached, and where its indirect
 * jumps lead.
 *
 * An indirect jump through a pointer can only lead where an address was taken (MARK_TAKEN covers
 * the module). Through an address that was computed it can lead anywhere: these are followed back
 * to `lea table(%rip)` and `movslq (table,index,4)` on every path, and the table's entries become
 * marks; else the function is unresolved. A table is read further than it is long rather than
 * trusting a bounds check; entries that lead out of the function mean nothing (compilers point
 * unreachable cases anywhere).
 */
#include "base/sorted.h"
#include "program/text/inside.h"

enum {
	REACH = 130,           /* a short branch and its instruction, in bytes */
	TABLE_ENTRIES = 16384, /* read at most */
	TABLE_BASES = 8,
	TRACE_STEPS = 100000,
	TRACE_DEPTH = 1000,
};

/* --- decoding --- */

void text_classify(const ZydisDecodedInstruction *z, uint64_t addr, struct insn *ret)
{
	bool memory = (z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod == 0 &&
		      z->raw.modrm.rm == 5 && z->raw.disp.size == 32;
	uint64_t next = addr + z->length;

	ret->len = z->length;
	ret->target = 0;
	ret->kind = INSN_PLAIN;
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_RET:
		ret->kind = z->mnemonic == ZYDIS_MNEMONIC_RET &&
					    z->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR
				    ? INSN_RET
				    : INSN_STUCK;
		break;
	case ZYDIS_CATEGORY_CALL: ret->kind = INSN_CALL; break;
	case ZYDIS_CATEGORY_COND_BR:
		switch (z->mnemonic) {
		case ZYDIS_MNEMONIC_JCXZ:
		case ZYDIS_MNEMONIC_JECXZ:
		case ZYDIS_MNEMONIC_JRCXZ:
		case ZYDIS_MNEMONIC_LOOP:
		case ZYDIS_MNEMONIC_LOOPE:
		case ZYDIS_MNEMONIC_LOOPNE: ret->kind = INSN_LOOP; break;
		case ZYDIS_MNEMONIC_XBEGIN:
		case ZYDIS_MNEMONIC_XEND:
		case ZYDIS_MNEMONIC_XABORT: ret->kind = INSN_STUCK; break;
		default: ret->kind = INSN_JCC;
		}
		break;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (z->mnemonic != ZYDIS_MNEMONIC_JMP ||
		    z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			ret->kind = INSN_STUCK;
		else
			ret->kind = z->raw.imm[0].is_relative ? INSN_JMP : INSN_JUMP_INDIRECT;
		break;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP: ret->kind = INSN_NOP; break;
	case ZYDIS_CATEGORY_INTERRUPT:
		ret->kind = z->mnemonic == ZYDIS_MNEMONIC_INT3 ? INSN_END : INSN_STUCK;
		break;
	case ZYDIS_CATEGORY_SYSCALL:
		ret->kind = z->mnemonic == ZYDIS_MNEMONIC_SYSCALL ? INSN_SYSCALL : INSN_STUCK;
		break;
	case ZYDIS_CATEGORY_SYSRET: ret->kind = INSN_STUCK; break;
	default:
		if (z->mnemonic == ZYDIS_MNEMONIC_UD0 || z->mnemonic == ZYDIS_MNEMONIC_UD1 ||
		    z->mnemonic == ZYDIS_MNEMONIC_UD2 || z->mnemonic == ZYDIS_MNEMONIC_HLT)
			ret->kind = INSN_END;
	}
	if (ret->kind == INSN_JMP || ret->kind == INSN_JCC || ret->kind == INSN_LOOP)
		ret->target = next + z->raw.imm[0].value.u;
	else if (memory)
		ret->target = next + (uint64_t)z->raw.disp.value;
	if (memory && z->address_width != 64)
		ret->kind = INSN_STUCK;
	/* a branch with a 16-bit operand truncates rip */
	if (ret->target && !memory && z->raw.imm[0].size == 16)
		ret->kind = INSN_STUCK;
}

static bool falls_through(const struct insn *n)
{
	return n->kind != INSN_JMP && n->kind != INSN_JUMP_INDIRECT && n->kind != INSN_RET &&
	       n->kind != INSN_END && n->kind != INSN_BAD;
}

static bool is_branch(const struct insn *n)
{
	return n->kind == INSN_JMP || n->kind == INSN_JCC || n->kind == INSN_LOOP;
}

static bool inside(const struct text_code *c, uint64_t addr)
{
	return addr >= c->start && addr < c->end;
}

uint32_t text_insn_at(const struct text_code *c, uint64_t off)
{
	uint32_t lo = partition_point(c->insns.n, i, c->insns.v[i].off < off);

	return lo < c->insns.n && c->insns.v[lo].off == off ? lo : UINT32_MAX;
}

static uint32_t insn_of(const struct text_code *c, uint64_t addr)
{
	return inside(c, addr) ? text_insn_at(c, addr - c->start) : UINT32_MAX;
}

static void sweep(struct text *t, struct text_code *c)
{
	uint64_t size = c->end - c->start;

	vec_reserve(&c->insns, size / 4 + 1);
	for (uint64_t off = 0; off < size;) {
		ZydisDecodedInstruction z;
		struct insn n = { .off = (uint32_t)off, .len = 1, .kind = INSN_BAD };

		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&t->decoder, NULL, c->bytes + off,
							       size - off > 15 ? 15 : size - off,
							       &z)))
			text_classify(&z, c->start + off, &n);
		if (is_branch(&n))
			text_mark(t, n.target, MARK_BRANCH);
		vec_push(&c->insns, n);
		off += n.len;
	}
}

/* The C library jumps over a lock prefix. */
static bool is_lock_skip(const struct text_code *c, uint64_t target)
{
	return inside(c, target) && target > c->start && c->bytes[target - 1 - c->start] == 0xf0 &&
	       insn_of(c, target - 1) != UINT32_MAX;
}

/* From the instructions that are reached already. */
static void reach(struct text_code *c, uint32_t *stack, uint32_t depth)
{
	while (depth) {
		uint32_t i = stack[--depth];

		for (; i < c->insns.n && !c->insns.v[i].reached; i++) {
			struct insn *n = &c->insns.v[i];

			n->reached = true;
			if (n->kind == INSN_BAD)
				c->irregular = true;
			if (is_branch(n) && inside(c, n->target)) {
				uint32_t to = insn_of(c, n->target);

				if (to == UINT32_MAX && is_lock_skip(c, n->target))
					to = insn_of(c, n->target - 1);
				if (to == UINT32_MAX)
					c->irregular = true;
				else if (!c->insns.v[to].reached)
					stack[depth++] = to;
			}
			if (!falls_through(n))
				break;
		}
	}
}

static void reach_all(struct text *t, struct text_code *c)
{
	/* a branch is pushed once: when it is reached */
	cleanup_free uint32_t *stack = xmalloc((c->insns.n + 1) * sizeof(*stack));

	for (uint32_t i = 0; i < c->insns.n; i++) {
		uint64_t addr = c->start + c->insns.v[i].off;

		if (c->insns.v[i].reached ||
		    (i && !c->insns.v[i].table_target && !text_marked(t, addr, MARK_BRANCH) &&
		     !text_marked(t, addr, MARK_TAKEN)))
			continue;
		stack[0] = i;
		reach(c, stack, 1);
	}
}

/* --- where an indirect jump leads --- */

struct edge {
	uint32_t to, from;
};
struct trace {
	struct text *t;
	struct text_code *c;
	struct edge *edges; /* direct branches inside, by to */
	uint32_t nedges;
	uint16_t *seen; /* per instruction: registers followed from there */
	uint32_t steps, depth;
	bool strict;
};

static int by_to(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->to < y->to ? -1 : x->to > y->to;
}

static bool decode_full(const struct trace *tr, uint32_t i, ZydisDecodedInstruction *z,
			ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT])
{
	const struct insn *n = &tr->c->insns.v[i];

	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&tr->t->decoder, tr->c->bytes + n->off, n->len, z, ops));
}

/* 0..15 of a general register of any width, -1 another register. */
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
/* What defines reg at i. STEP_GO: *reg is followed further. */
typedef enum step define_fn(struct trace *tr, void *arg, uint32_t i, int *reg);
/* The function's entry is reached with reg not defined. */
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

/* Every way that leads to just before instruction i, backwards, to the definitions of reg. */
static bool follow_before(struct trace *tr, const struct follow *f, uint32_t i, int reg)
{
	struct text_code *c = tr->c;
	uint64_t addr = c->start + c->insns.v[i].off;
	uint32_t lo;
	bool explained = false;
	bool falls = i && falls_through(&c->insns.v[i - 1]) && c->insns.v[i - 1].reached;

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
		/* reached by one of our own indirect jumps, or by something unknown */
		if (tr->strict && !c->insns.v[i].table_target)
			return false;
		for (uint32_t j = 0; j < c->jumps.n; j++)
			if (!follow_from(tr, f, c->jumps.v[j].insn, reg))
				return false;
	}
	return !falls || follow_from(tr, f, i - 1, reg);
}

static bool follow(struct trace *tr, const struct follow *f, uint32_t i, int reg)
{
	/* straight back as long as there is one way only; recursion at joins */
	for (;;) {
		uint64_t addr = tr->c->start + tr->c->insns.v[i].off;

		if (tr->steps++ > TRACE_STEPS)
			return false;
		switch (f->define(tr, f->arg, i, &reg)) {
		case STEP_DONE: return true;
		case STEP_FAIL: return false;
		case STEP_GO: break;
		}
		if (!i || text_marked(tr->t, addr, MARK_BRANCH) ||
		    text_marked(tr->t, addr, MARK_TAKEN) || tr->c->insns.v[i].table_target ||
		    !falls_through(&tr->c->insns.v[i - 1]) || !tr->c->insns.v[i - 1].reached)
			return follow_before(tr, f, i, reg);
		i--;
		if (tr->seen[i] >> reg & 1)
			return true;
		tr->seen[i] |= (uint16_t)(1 << reg);
	}
}

static bool trace_before(struct trace *tr, const struct follow *f, uint32_t i, int reg)
{
	cleanup_free uint16_t *seen = xcalloc(tr->c->insns.n, sizeof(*seen));
	uint16_t *outer = tr->seen;
	bool ok;

	tr->seen = seen;
	ok = follow_before(tr, f, i, reg);
	tr->seen = outer;
	return ok;
}

/* A constant: lea x(%rip), mov $x. */
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
	if (z.mnemonic == ZYDIS_MNEMONIC_LEA && n->target && z.operand_width == 64)
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

/* A relative table: entries that lead into the function (or into cold parts) are marked. */
static void read_table(struct trace *tr, uint64_t table, uint64_t base)
{
	const struct text_segment *g = text_segment_at(tr->t, table);
	struct text_code *c = tr->c;
	uint64_t left;

	if (!g)
		return;
	for (uint32_t i = 0; i < c->tables.n; i++)
		if (c->tables.v[i].addr == table && c->tables.v[i].base == base)
			return;
	vec_push(&c->tables, (struct table){ table, base });
	left = (g->size - (table - g->addr)) / 4;
	for (uint64_t i = 0; i < left && i < TABLE_ENTRIES; i++) {
		int32_t w;
		uint64_t to;

		memcpy(&w, g->bytes + (table - g->addr) + i * 4, 4);
		to = base + (uint64_t)(int64_t)w;
		if (inside(c, to)) {
			uint32_t k = insn_of(c, to);

			text_mark(tr->t, to, MARK_BRANCH);
			if (k != UINT32_MAX)
				c->insns.v[k].table_target = true;
		} else if (to >= tr->t->lo && to < tr->t->hi && text_is_odd(tr->t, to)) {
			text_mark(tr->t, to, MARK_BRANCH);
		}
	}
}

/* The last definition of reg before i on the straight way there; UINT32_MAX none. */
static uint32_t straight_definition(struct trace *tr, uint32_t i, int reg,
				    ZydisDecodedInstruction *z, ZydisDecodedOperand *ops)
{
	while (i) {
		uint64_t addr = tr->c->start + tr->c->insns.v[i].off;
		const struct insn *n = &tr->c->insns.v[i - 1];

		if (text_marked(tr->t, addr, MARK_BRANCH) || text_marked(tr->t, addr, MARK_TAKEN) ||
		    !falls_through(n) || n->kind == INSN_CALL)
			return UINT32_MAX;
		i--;
		if (!decode_full(tr, i, z, ops))
			return UINT32_MAX;
		if (writes(z, ops, reg))
			return i;
	}
	return UINT32_MAX;
}

/* add %x,%y; jmp *%y at i: one of them was read from a table, the other is its base. */
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
			read_table(tr, tables.v[k], bases.v[m]);
	return true;
}

struct pointer {
	bool table, loaded;
	bool in_table_inside; /* a static table's first entries lead into the function */
	bool static_table;
};

/* A pointer loaded from memory: of a table of the object, look at its entries. */
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
			return; /* filled by relocations */
		p->static_table = true;
		for (uint32_t e = 0; e < 8 && text_bytes(tr->t, b.v[k] + e * 8, &to, 8); e++)
			if (inside(tr->c, to) && to != tr->c->start)
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
	case ZYDIS_MNEMONIC_LEA: return tr->c->insns.v[i].target ? STEP_DONE : STEP_FAIL;
	case ZYDIS_MNEMONIC_POP: p->loaded = true; return STEP_DONE;
	/* pointers that the C library keeps scrambled */
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
	/* cmov: either */
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

/* An argument is a function pointer; the static chain too. */
static bool entry_argument(struct trace *tr, void *arg, int reg)
{
	static const uint16_t arguments = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 0xf << 8;

	return arguments >> reg & 1;
}

/* Has the function a label whose address is somewhere? */
static bool has_taken_label(const struct text *t, const struct text_code *c)
{
	for (uint32_t i = 1; i < c->insns.n; i++)
		if (text_marked(t, c->start + c->insns.v[i].off, MARK_TAKEN))
			return true;
	return false;
}

/* Is the stack at addr as it was at the function's entry? Without tables, yes. */
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

/* Does the function ever have a frame? */
static bool has_frame(struct text *t, const struct text_code *c)
{
	for (uint32_t i = 1; i < c->insns.n; i++)
		if (!at_entry_depth(t, c->start + c->insns.v[i].off))
			return true;
	return false;
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
	if (p.static_table || !has_taken_label(tr->t, c))
		return JUMP_TAIL;
	if (!at_entry_depth(tr->t, addr))
		return JUMP_INTRA;
	return has_frame(tr->t, c) ? JUMP_TAIL : JUMP_UNRESOLVED;
}

static void resolve_all(struct text *t, struct text_code *c)
{
	struct trace tr = { .t = t, .c = c };
	VEC(struct edge) edges = { 0 };

	for (uint32_t i = 0; i < c->insns.n; i++) {
		const struct insn *n = &c->insns.v[i];

		if (n->kind == INSN_JUMP_INDIRECT)
			vec_push(&c->jumps, (struct jump){ i, JUMP_UNRESOLVED });
		if (is_branch(n) && inside(c, n->target)) {
			uint32_t to = insn_of(c, n->target);

			if (to == UINT32_MAX && is_lock_skip(c, n->target))
				to = insn_of(c, n->target - 1);
			if (to != UINT32_MAX)
				vec_push(&edges, (struct edge){ to, i });
		}
	}
	if (c->jumps.n) {
		if (edges.n)
			qsort(edges.v, edges.n, sizeof(*edges.v), by_to);
		tr.edges = edges.v;
		tr.nedges = edges.n;
		/* First to find the tables, then to see that nothing but them leads to the labels
		 * on the way. */
		for (int round = 0; round < 3; round++) {
			tr.strict = round == 2;
			for (uint32_t j = 0; j < c->jumps.n; j++)
				c->jumps.v[j].kind = resolve(&tr, c->jumps.v[j].insn);
			reach_all(t, c);
		}
		for (uint32_t j = 0; j < c->jumps.n; j++)
			c->unresolved |= c->jumps.v[j].kind == JUMP_UNRESOLVED;
	}
	vec_fini(&edges);
}

static void find_end(struct text_code *c)
{
	uint32_t i = c->insns.n;

	while (i && c->insns.v[i - 1].kind == INSN_NOP && c->insns.v[i - 1].reached)
		i--;
	if (i) {
		const struct insn *last = &c->insns.v[i - 1];

		/* what ends in a call or a system call does not come back from it */
		c->falls_off = last->reached &&
			       (last->kind == INSN_PLAIN || last->kind == INSN_JCC ||
				last->kind == INSN_LOOP || last->kind == INSN_STUCK);
	}
}

void text_code_put(struct text_code *c)
{
	if (!c || --c->refs)
		return;
	vec_fini(&c->insns);
	vec_fini(&c->jumps);
	vec_fini(&c->tables);
	free(c);
}

struct text_code *text_code(struct text *t, struct text_range *r)
{
	const struct text_segment *g = text_segment_at(t, r->start);
	struct text_code *c;

	for (uint32_t i = 0; i < CODE_CACHE; i++)
		if (t->cache[i] && t->cache[i]->range == r) {
			t->cache[i]->refs++;
			return t->cache[i];
		}
	if (!g || r->end <= r->start || r->end - g->addr > g->size ||
	    r->end - r->start > UINT32_MAX)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->refs = 2; /* the cache's, the caller's */
	c->range = r;
	c->start = r->start;
	c->end = r->end;
	c->bytes = g->bytes + (r->start - g->addr);
	sweep(t, c);
	reach_all(t, c);
	resolve_all(t, c);
	find_end(c);
	if (!r->decoded) {
		t->decoded++;
		t->unresolved += c->unresolved;
		t->irregular += c->irregular;
	}
	r->decoded = true;
	r->unresolved = c->unresolved;
	r->irregular = c->irregular;
	text_code_put(t->cache[t->next]);
	t->cache[t->next] = c;
	t->next = (t->next + 1) % CODE_CACHE;
	return c;
}

/* --- surroundings --- */

/* Bytes of no function: any of them may be a short branch. */
static void scan_gap(struct text *t, uint64_t lo, uint64_t hi)
{
	for (; lo < hi; lo++) {
		const struct text_segment *g = text_segment_at(t, lo);
		uint8_t b[2];

		if (!g || !text_bytes(t, lo, b, 2))
			continue;
		if (b[0] == 0xeb || (b[0] & 0xf0) == 0x70 || (b[0] & 0xfc) == 0xe0)
			text_mark(t, lo + 2 + (uint64_t)(int64_t)(int8_t)b[1], MARK_BRANCH);
	}
}

void text_mark_around(struct text *t, uint64_t lo, uint64_t hi)
{
	uint64_t from = lo < REACH ? 0 : lo - REACH, to = hi + REACH, at = from;
	uint32_t i = text_range_from(t, from);

	/* back to the range that covers `from`, and to all inside it */
	while (i && t->ranges.v[i - 1].inner)
		i--;
	if (i)
		i--;
	for (; i < t->ranges.n && t->ranges.v[i].start < to; i++) {
		struct text_range *r = &t->ranges.v[i];

		if (r->end <= from)
			continue;
		if (!r->decoded)
			text_code_put(text_code(t, r));
		if (r->irregular)
			scan_gap(t, r->start > from ? r->start : from, r->end < to ? r->end : to);
		if (r->inner)
			continue;
		if (r->start > at)
			scan_gap(t, at, r->start);
		if (r->end > at)
			at = r->end;
	}
	if (at < to)
		scan_gap(t, at, to);
}

bool text_is_part(struct text *t, const struct text_code *c, uint64_t addr)
{
	struct text_range *r = text_range_at(t, addr);
	cleanup_code struct text_code *part = NULL;

	if (!r || r == c->range)
		return false;
	if (r->cold)
		return true;
	if (text_marked(t, addr, MARK_CALLED) || text_marked(t, addr, MARK_TAKEN))
		return false;
	if (r->odd_cfa)
		return true;
	part = text_code(t, r);
	for (uint32_t i = 0; part && i < part->insns.n; i++) {
		const struct insn *n = &part->insns.v[i];

		if (n->reached && is_branch(n) && inside(c, n->target) && n->target != c->start)
			return true;
	}
	return false;
}
