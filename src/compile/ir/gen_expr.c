/* Expressions: integers and pointers in registers, places that can be assigned to or addressed. */
#include "compile/ir/gen.h"

#include "wire/record.h"

bool gen_is_string(struct gen *g, const struct node *n)
{
	return type_is_string(g->types, n->type);
}

static uint32_t size_of(struct gen *g, type_id t)
{
	uint64_t n = type_size(g->types, t);

	return n == 1 || n == 2 || n == 4 ? (uint32_t)n : 8;
}

static struct ir_val nonzero(struct gen *g, struct ir_val v)
{
	struct ir_val r;
	uint32_t done;

	if (v.kind == IR_IMM)
		return IR_I(v.imm != 0);
	r = ir_new_reg(g->f);
	done = ir_new_label(g->f);
	ir_set(g->f, r, IR_I(1));
	ir_if(g->f, v, IF_NE, IR_I(0), done);
	ir_set(g->f, r, IR_I(0));
	ir_place(g->f, done);
	return r;
}

/* v as a value of type t: every register holds its value extended to 64 bits. */
static struct ir_val normal(struct gen *g, struct ir_val v, type_id t)
{
	if (!type_is_integer(g->types, t))
		return v;
	if (type_int_flags(g->types, t) & TYPE_BOOL)
		return nonzero(g, v);
	return ir_ext(g->f, v, size_of(g, t), type_is_signed(g->types, t));
}

/* The value of an operation on numbers of type t: 32 bits are C's where they are unsigned. What is
 * smaller, and int, is calculated with in 64 bits: nothing overflows before it is kept somewhere,
 * in a variable or a record. */
static struct ir_val result(struct gen *g, struct ir_val v, type_id t)
{
	return type_is_integer(g->types, t) && !type_is_signed(g->types, t) && size_of(g, t) == 4
		       ? normal(g, v, t)
		       : v;
}

/* Is it such a value, which normal() may change? */
static bool is_result(const struct node *n)
{
	switch (n->kind) {
	case N_INT: return true;
	case N_UNARY:
		return n->op == OP_NEG || n->op == OP_BNOT ||
		       (n->op == OP_PLUS && is_result(n->e.a));
	case N_BINARY:
		return n->op != OP_LAND && n->op != OP_LOR && n->op != OP_LXOR &&
		       !(n->op >= OP_EQ && n->op <= OP_GE);
	case N_TERNARY: return is_result(n->e.b) || is_result(n->e.c);
	case N_COMMA: return is_result(n->e.b);
	default: return false;
	}
}

static struct ir_val operand(struct gen *g, const struct node *n);

/* --- places --- */

static bool is_aggregate_type(struct gen *g, type_id t)
{
	return type_is_sou(g->types, t) ||
	       type_kind(g->types, type_strip(g->types, t)) == TYPE_ARRAY;
}

static struct lval var_place(struct gen *g, const struct variable *var, const struct node *keys)
{
	const struct var_layout *l = &g->vars[var->index];
	struct lval p = { .type = var->type, .var = var };

	if (var->assoc) {
		p.kind = PLACE_ASSOC;
		p.v = gen_tuple(g, &l->key, keys, var->scope == SCOPE_SELF);
		return p;
	}
	switch (var->scope) {
	case SCOPE_THIS:
		if (g->this_regs[var->index].kind == IR_REG) {
			p.kind = PLACE_REG;
			p.v = g->this_regs[var->index];
		} else {
			p.kind = PLACE_MEM;
			p.v = gen_lazy(g, LAZY_SCRATCH);
			p.off = l->offset;
		}
		break;
	case SCOPE_SELF:
		p.kind = PLACE_TLS;
		p.off = l->offset;
		break;
	default:
		p.kind = PLACE_MEM;
		p.v = ir_map_value(g->f, gen_fixed_map(g, MAP_GLOBALS), l->offset);
	}
	return p;
}

static struct ir_val assoc_lookup(struct gen *g, const struct lval *p)
{
	return ir_call(g->f, HELPER_MAP_LOOKUP, 2,
		       ir_map(g->f, (uint32_t)g->vars[p->var->index].map), p->v);
}

/* Memory of the size of the variable's elements, zeroed when code runs through zero_element(). */
static struct ir_val new_element(struct gen *g, const struct variable *var)
{
	return gen_scratch_temp(g, (g->vars[var->index].size + 7) & ~7u);
}

static void zero_element(struct gen *g, const struct variable *var, struct ir_val at)
{
	(void)ir_routine(g->f, "d_zero", 2, at, IR_I((g->vars[var->index].size + 7) & ~7u));
}

/* An element of an associative array as memory: made when there is none. */
static struct lval made_element(struct gen *g, struct lval p, loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val at = ir_new_reg(f), tmp = new_element(g, p.var);
	uint32_t have = ir_new_label(f);

	ir_set(f, at, assoc_lookup(g, &p));
	ir_if(f, at, IF_NE, IR_I(0), have);
	zero_element(g, p.var, tmp);
	(void)ir_call(f, HELPER_MAP_UPDATE, 4, ir_map(f, (uint32_t)g->vars[p.var->index].map), p.v,
		      tmp, IR_I(BPF_ANY));
	ir_set(f, at, assoc_lookup(g, &p));
	gen_fault_if(g, at, IF_EQ, IR_I(0), WIRE_FAULT_NOSCRATCH, IR_I(0), loc);
	ir_place(f, have);
	p.kind = PLACE_MEM;
	p.v = at;
	return p;
}

/* p, the place of a whole array or string, moved to the element at `index`, which is below its
 * end. */
static struct lval element_of(struct gen *g, struct lval p, struct ir_val index, uint64_t size,
			      loc_t loc)
{
	if (p.kind == PLACE_TLS) {
		struct ir_val tls = gen_lazy(g, LAZY_TLS_RW);

		gen_fault_if(g, tls, IF_EQ, IR_I(0), WIRE_FAULT_NOSCRATCH, IR_I(0), loc);
		p.kind = PLACE_MEM;
		p.v = tls;
	}
	if (p.kind == PLACE_ASSOC && index.kind != IR_IMM)
		p = made_element(g, p, loc);
	if (index.kind == IR_IMM)
		p.off += index.imm * (int64_t)size;
	else
		p.v = ir_bin(g->f, ALU_ADD, p.v, ir_bin(g->f, ALU_MUL, index, IR_I(size)));
	return p;
}

/* The whole string that n is a character of: a variable's where it lies, of any other string where
 * its text is made. */
static struct lval text_of(struct gen *g, const struct node *n)
{
	const struct node *base = n->e.a;
	struct lval p = { .kind = PLACE_KERNEL };

	if (gen_is_string_place(base))
		p = gen_place(g, base);
	else
		p.v = gen_str_plain(g, base);
	p.type = T_CHAR;
	return p;
}

static void check_character(struct gen *g, const struct node *n, struct ir_val index)
{
	uint32_t bound = gen_is_string_place(n->e.a) ? g->strsize : gen_str_info(g, n->e.a).bound;

	gen_fault_if(g, index, IF_UGE, IR_I(bound), WIRE_FAULT_BADINDEX, index, n->loc);
}

/* Behind the end of no text at all is a fault: in DTrace a string without a value is a null
 * pointer. */
static struct ir_val load_character(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val index = gen_expr(g, n->e.b);
	struct lval p = text_of(g, n);
	uint32_t some = ir_new_label(f);

	check_character(g, n, index);
	if (gen_is_string_place(n->e.a) && (index.kind == IR_REG || index.imm)) {
		ir_if(f, index, IF_EQ, IR_I(0), some);
		gen_fault_if(g, gen_load_place(g, p, n->loc), IF_EQ, IR_I(0), WIRE_FAULT_BADADDR,
			     index, n->loc);
		ir_place(f, some);
	}
	return gen_load_place(g, element_of(g, p, index, 1, n->loc), n->loc);
}

static struct lval element(struct gen *g, const struct node *n)
{
	const struct node *base = n->e.a;
	uint64_t size = type_size(g->types, n->type);
	uint32_t nelems;
	struct ir_val index;
	struct lval p;

	index = gen_expr(g, n->e.b);
	if (gen_is_string(g, base)) {
		check_character(g, n, index);
		return element_of(g, text_of(g, n), index, 1, n->loc);
	}
	if (type_kind(g->types, type_strip(g->types, base->type)) != TYPE_ARRAY) {
		p = (struct lval){ .kind = PLACE_KERNEL, .v = gen_expr(g, base), .type = n->type };
		p.v = ir_bin(g->f, ALU_ADD, p.v, ir_bin(g->f, ALU_MUL, index, IR_I(size)));
		p.own = gen_is_own(g, base);
		return p;
	}
	p = gen_place(g, base);
	p.type = n->type;
	if (p.kind == PLACE_KERNEL) {
		p.v = ir_bin(g->f, ALU_ADD, p.v, ir_bin(g->f, ALU_MUL, index, IR_I(size)));
		return p;
	}
	nelems = type_nelems(g->types, type_strip(g->types, base->type));
	gen_fault_if(g, index, IF_UGE, IR_I(nelems), WIRE_FAULT_BADINDEX, index, n->loc);
	return element_of(g, p, index, size, n->loc);
}

static struct lval member(struct gen *g, const struct node *n)
{
	const struct bind_member *m = n->selected;
	struct lval p;

	if (n->kind == N_PMEMBER)
		p = (struct lval){ .kind = PLACE_KERNEL,
				   .v = gen_expr(g, n->member.a),
				   .own = gen_is_own(g, n->member.a) };
	else
		p = gen_place(g, n->member.a);
	p.type = n->type;
	p.bit_size = m->bit_size;
	if (m->bit_size) {
		/* The naturally aligned word of the declared type that holds the field. */
		uint64_t unit = 8 * size_of(g, m->type), word = m->bit_offset / unit * unit;

		p.off += (int64_t)(word / 8);
		p.bit_off = (uint32_t)(m->bit_offset - word);
	} else {
		p.off += (int64_t)(m->bit_offset / 8);
	}
	return p;
}

struct lval gen_place(struct gen *g, const struct node *n)
{
	switch (n->kind) {
	case N_IDENT:
		if (n->id && n->id->kind == IDENT_VAR)
			return var_place(g, n->id->var, NULL);
		break;
	case N_EXTERN:
		return (struct lval){ .kind = PLACE_KERNEL,
				      .v = IR_I(n->id->ksym.addr),
				      .type = n->type };
	case N_INDEX:
		if (n->id && n->id->kind == IDENT_VAR && n->id->var->assoc)
			return var_place(g, n->id->var, n->e.b);
		return element(g, n);
	case N_MEMBER:
	case N_PMEMBER: return member(g, n);
	case N_UNARY:
		if (n->op == OP_DEREF)
			return (struct lval){ .kind = PLACE_KERNEL,
					      .v = gen_expr(g, n->e.a),
					      .type = n->type,
					      .own = gen_is_own(g, n->e.a) };
		break;
	case N_CAST:
	case N_COMMA:
		/* A cast between struct types of the same layout, or the value of the last of
		 * several. */
		if (n->kind == N_COMMA)
			gen_effect(g, n->e.a);
		return gen_place(g, n->kind == N_COMMA ? n->e.b : n->t.a);
	default: break;
	}
	/* A value without a place: its address is what it evaluates to (pointers to arrays and
	 * structs). */
	return (struct lval){ .kind = PLACE_KERNEL, .v = gen_expr(g, n), .type = n->type };
}

static struct ir_val bits(struct gen *g, struct ir_val word, const struct lval *p)
{
	struct ir_fn *f = g->f;

	if (type_is_signed(g->types, p->type)) {
		word = ir_bin(f, ALU_SHL, word, IR_I(64 - p->bit_off - p->bit_size));
		return ir_bin(f, ALU_SAR, word, IR_I(64 - p->bit_size));
	}
	word = ir_bin(f, ALU_SHR, word, IR_I(p->bit_off));
	return p->bit_size < 64 ? ir_bin(f, ALU_AND, word, IR_I((1ull << p->bit_size) - 1)) : word;
}

/* Do pointers lead to a process's memory, which is not read as the kernel's is? */
static bool of_process(const struct gen *g)
{
	return (g->attach == ATTACH_UPROBE || g->attach == ATTACH_URETPROBE) &&
	       !g->target->inside && g->cl;
}

struct ir_val gen_pointed_copy(struct gen *g, struct ir_val dst, struct ir_val size,
			       struct ir_val at, bool text)
{
	struct ir_fn *f = g->f;
	uint32_t kernel_helper = text ? HELPER_READ_KERNEL_STR : HELPER_READ_KERNEL;
	uint32_t user_helper = text ? HELPER_READ_USER_STR : HELPER_READ_USER, kernel, done;
	struct ir_val r, page;

	if (!of_process(g))
		return ir_call(f, kernel_helper, 3, dst, size, at);
	kernel = ir_new_label(f);
	done = ir_new_label(f);
	r = ir_new_reg(f);
	ir_if(f, at, IF_SLT, IR_I(0), kernel);
	ir_set(f, r, ir_call(f, user_helper, 3, dst, size, at));
	/* Pages that are not in memory are brought in: of text the first, and the one behind it
	 * should it go on there. */
	for (int i = 0; i < 2 && g->sleepable && text; i++) {
		uint32_t byte = ir_new_object(f, 8, "byte");

		ir_if(f, r, IF_SGE, IR_I(0), done);
		page = i ? ir_bin(f, ALU_ADD, ir_bin(f, ALU_OR, at, IR_I(4095)), IR_I(1)) : at;
		ir_store_stack(f, byte, 0, 8, IR_I(0));
		(void)ir_call(f, HELPER_COPY_FROM_USER, 3, ir_stack(f, byte, 0), IR_I(1), page);
		ir_set(f, r, ir_call(f, user_helper, 3, dst, size, at));
	}
	if (g->sleepable && !text) {
		ir_if(f, r, IF_EQ, IR_I(0), done);
		ir_set(f, r, ir_call(f, HELPER_COPY_FROM_USER, 3, dst, size, at));
	}
	ir_goto(f, done);
	ir_place(f, kernel);
	ir_set(f, r, ir_call(f, kernel_helper, 3, dst, size, at));
	ir_place(f, done);
	return r;
}

/* A member of what NULL points to: it is NULL that is the invalid address. */
static void check_null(struct gen *g, struct ir_val addr, int64_t off, loc_t loc)
{
	if (off)
		gen_fault_if(g, addr, IF_EQ, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), loc);
}

static struct ir_val pointed_read(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
				  bool sign, loc_t loc)
{
	struct ir_fn *f = g->f;
	uint32_t obj;
	struct ir_val at, r;

	check_null(g, addr, off, loc);
	if (!of_process(g))
		return gen_kernel_read(g, addr, off, size, sign, loc);
	obj = ir_new_object(f, 8, "read");
	at = ir_bin(f, ALU_ADD, addr, IR_I(off));
	r = gen_pointed_copy(g, ir_stack(f, obj, 0), IR_I(size), at, false);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, at, loc);
	return ir_load_stack(f, obj, 0, size, sign);
}

struct ir_val gen_load_place(struct gen *g, struct lval p, loc_t loc)
{
	struct ir_fn *f = g->f;
	uint32_t size, done;
	bool sign;
	struct ir_val v, at;

	if (is_aggregate_type(g, p.type))
		return gen_place_addr(g, p);
	size = size_of(g, p.type);
	sign = !p.bit_size && type_is_integer(g->types, p.type) && type_is_signed(g->types, p.type);
	switch (p.kind) {
	case PLACE_REG: return ir_mov(f, p.v);
	case PLACE_MEM: v = ir_load(f, p.v, (int32_t)p.off, size, sign); break;
	case PLACE_KERNEL:
		if (p.own)
			gen_check_own(g, p.v, p.off, IR_I(size), loc);
		v = pointed_read(g, p.v, p.off, size, sign, loc);
		break;
	default:
		at = p.kind == PLACE_TLS ? gen_lazy(g, LAZY_TLS) : assoc_lookup(g, &p);
		v = ir_new_reg(f);
		done = ir_new_label(f);
		ir_set(f, v, IR_I(0));
		ir_if(f, at, IF_EQ, IR_I(0), done);
		ir_set(f, v, ir_load(f, at, (int32_t)p.off, size, sign));
		ir_place(f, done);
	}
	return p.bit_size ? bits(g, v, &p) : v;
}

/* Does the pointer that n evaluates to lead, if anywhere sensible, to the firing's own memory? */
bool gen_is_own(struct gen *g, const struct node *n)
{
	switch (n->kind) {
	case N_CALL:
		return n->id && n->id->kind == IDENT_SUBR &&
		       (n->id->subr == SUBR_ALLOCA || n->id->subr == SUBR_COPYIN);
	case N_IDENT:
	case N_INDEX: return n->id && n->id->kind == IDENT_VAR && g->vars[n->id->var->index].own;
	case N_CAST: return gen_is_own(g, n->t.a);
	case N_COMMA: return gen_is_own(g, n->e.b);
	case N_TERNARY: return gen_is_own(g, n->e.b) && gen_is_own(g, n->e.c);
	case N_ASSIGN: return gen_is_own(g, n->e.b);
	case N_BINARY: return (n->op == OP_ADD || n->op == OP_SUB) && gen_is_own(g, n->e.a);
	case N_UNARY: return n->op >= OP_PREINC && gen_is_own(g, n->e.a);
	default: return false;
	}
}

/* The offset of `size` bytes at addr + off within what the clause has of the firing's own memory; a
 * fault beyond its ends. */
static struct ir_val own_offset(struct gen *g, struct ir_val addr, int64_t off, struct ir_val size,
				loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val at = ir_bin(f, ALU_ADD, addr, IR_I(off)), rel;

	rel = ir_bin(f, ALU_SUB, at, gen_lazy(g, LAZY_SCRATCH_ADDR));
	rel = ir_bin(f, ALU_SUB, rel, IR_I(SCRATCH_DYN));
	gen_fault_if(g, rel, IF_UGT, g->top, WIRE_FAULT_BADADDR, at, loc);
	gen_fault_if(g, ir_bin(f, ALU_ADD, rel, size), IF_UGT, g->top, WIRE_FAULT_BADADDR, at, loc);
	return rel;
}

void gen_check_own(struct gen *g, struct ir_val addr, int64_t off, struct ir_val size, loc_t loc)
{
	(void)own_offset(g, addr, off, size, loc);
}

struct ir_val gen_own_memory(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
			     loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val rel = own_offset(g, addr, off, IR_I(size), loc);

	/* the same once more, in a form that the verifier keeps */
	gen_fault_if(g, rel, IF_UGT, IR_I((int64_t)g->dynsize - size), WIRE_FAULT_BADADDR, addr,
		     loc);
	return ir_bin(f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH), rel);
}

static void assoc_store(struct gen *g, const struct lval *p, uint32_t size, struct ir_val v)
{
	struct ir_fn *f = g->f;
	uint32_t done = ir_new_label(f), insert = ir_new_label(f),
		 map = (uint32_t)g->vars[p->var->index].map, tmp, keep;
	/* a member or a character: 0 does not free the element */
	bool part = is_aggregate_type(g, p->var->type) || type_is_string(g->types, p->var->type);
	struct ir_val at, r, value = part ? new_element(g, p->var) : IR_I(0);

	if (!part && (v.kind == IR_REG || v.imm == 0)) {
		keep = ir_new_label(f);
		ir_if(f, v, IF_NE, IR_I(0), keep);
		(void)ir_call(f, HELPER_MAP_DELETE, 2, ir_map(f, map), p->v);
		ir_goto(f, done);
		ir_place(f, keep);
		if (v.kind == IR_IMM) {
			ir_place(f, insert);
			ir_place(f, done);
			return;
		}
	}
	at = assoc_lookup(g, p);
	ir_if(f, at, IF_EQ, IR_I(0), insert);
	ir_store(f, at, (int32_t)p->off, size, v);
	ir_goto(f, done);
	ir_place(f, insert);
	if (part) {
		zero_element(g, p->var, value);
		ir_store(f, value, (int32_t)p->off, size, v);
	} else {
		tmp = ir_new_object(f, g->vars[p->var->index].size, "value");
		ir_store_stack(f, tmp, 0, 8, IR_I(0));
		ir_store_stack(f, tmp, 0, size, v);
		value = ir_stack(f, tmp, 0);
	}
	r = ir_call(f, HELPER_MAP_UPDATE, 4, ir_map(f, map), p->v, value, IR_I(BPF_ANY));
	ir_if(f, r, IF_EQ, IR_I(0), done);
	gen_count(g, IR_I(WIRE_DROP_DYN));
	ir_place(f, done);
}

void gen_store_place(struct gen *g, struct lval p, struct ir_val v, loc_t loc)
{
	struct ir_fn *f = g->f;
	uint32_t size = size_of(g, p.type), none, done;
	struct ir_val tls;

	if (p.bit_size) {
		struct lval word = p;
		uint64_t mask = (p.bit_size < 64 ? (1ull << p.bit_size) - 1 : ~0ull) << p.bit_off;

		word.bit_size = 0;
		v = ir_bin(f, ALU_AND, ir_bin(f, ALU_SHL, v, IR_I(p.bit_off)), IR_I(mask));
		v = ir_bin(f, ALU_OR, v,
			   ir_bin(f, ALU_AND, gen_load_place(g, word, loc), IR_I(~mask)));
		p.bit_size = 0;
	}
	switch (p.kind) {
	case PLACE_REG: ir_set(f, p.v, v); break;
	case PLACE_MEM: ir_store(f, p.v, (int32_t)p.off, size, v); break;
	case PLACE_TLS:
		none = ir_new_label(f);
		done = ir_new_label(f);
		tls = gen_lazy(g, LAZY_TLS_RW);
		ir_if(f, tls, IF_EQ, IR_I(0), none);
		ir_store(f, tls, (int32_t)p.off, size, v);
		ir_goto(f, done);
		ir_place(f, none);
		gen_count(g, IR_I(WIRE_DROP_DYN));
		ir_place(f, done);
		break;
	case PLACE_ASSOC: assoc_store(g, &p, size, v); break;
	case PLACE_KERNEL:
		ir_store(f, gen_own_memory(g, p.v, p.off, size, loc), SCRATCH_DYN, size, v);
		break;
	}
}

struct ir_val gen_place_addr(struct gen *g, struct lval p)
{
	struct ir_fn *f = g->f;
	struct ir_val at, scratch;

	switch (p.kind) {
	case PLACE_KERNEL: return ir_bin(f, ALU_ADD, p.v, IR_I(p.off));
	case PLACE_TLS:
		at = gen_lazy(g, LAZY_TLS_RW);
		gen_fault_if(g, at, IF_EQ, IR_I(0), WIRE_FAULT_NOSCRATCH, IR_I(0), f->loc);
		break;
	case PLACE_ASSOC:
		at = assoc_lookup(g, &p);
		gen_fault_if(g, at, IF_EQ, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), f->loc);
		break;
	default: at = p.v;
	}
	/* Through memory: the verifier forgets that it is a pointer, so that D may calculate with
	 * it. */
	scratch = gen_lazy(g, LAZY_SCRATCH);
	ir_store(f, scratch, SCRATCH_WORD, 8, ir_bin(f, ALU_ADD, at, IR_I(p.off)));
	return ir_load(f, scratch, SCRATCH_WORD, 8, false);
}

/* --- operators --- */

static struct ir_val divide(struct gen *g, bool mod, bool sign, struct ir_val a, struct ir_val b,
			    loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val sa, sb, q;

	/* a zero that is known here only, as of "1 / (x, 0)", is one of the program all the same */
	if (b.kind == IR_IMM && !b.imm)
		b = ir_mov(f, b);
	if (b.kind == IR_REG)
		gen_fault_if(g, b, IF_EQ, IR_I(0), WIRE_FAULT_DIVZERO, IR_I(0), loc);
	if (!sign)
		return ir_bin(f, mod ? ALU_MOD : ALU_DIV, a, b);
	if (b.kind == IR_IMM && a.kind == IR_IMM && b.imm && b.imm != -1)
		return IR_I(mod ? a.imm % b.imm : a.imm / b.imm);
	/* |a| op |b|, then the sign: the quotient has that of both operands' product, the
	 * remainder that of the dividend. */
	sa = ir_bin(f, ALU_SAR, a, IR_I(63));
	sb = ir_bin(f, ALU_SAR, b, IR_I(63));
	q = ir_bin(f, mod ? ALU_MOD : ALU_DIV, ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, a, sa), sa),
		   ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, b, sb), sb));
	if (!mod)
		sa = ir_bin(f, ALU_XOR, sa, sb);
	return ir_bin(f, ALU_SUB, ir_bin(f, ALU_XOR, q, sa), sa);
}

/* t: of the operands, or of the first where they may differ. */
static struct ir_val arithmetic(struct gen *g, enum op op, type_id t, struct ir_val a,
				struct ir_val b, loc_t loc)
{
	struct ir_fn *f = g->f;
	bool sign = type_is_signed(g->types, t);
	struct ir_val v;

	switch (op) {
	case OP_ADD: v = ir_bin(f, ALU_ADD, a, b); break;
	case OP_SUB: v = ir_bin(f, ALU_SUB, a, b); break;
	case OP_MUL: v = ir_bin(f, ALU_MUL, a, b); break;
	case OP_AND: return ir_bin(f, ALU_AND, a, b);
	case OP_OR: return ir_bin(f, ALU_OR, a, b);
	case OP_XOR: return ir_bin(f, ALU_XOR, a, b);
	case OP_SHL: v = ir_bin(f, ALU_SHL, a, b); break;
	case OP_SHR: v = ir_bin(f, sign ? ALU_SAR : ALU_SHR, a, b); break;
	default: v = divide(g, op == OP_MOD, sign, a, b, loc);
	}
	return result(g, v, t);
}

static enum ir_cond condition(struct gen *g, const struct node *n)
{
	bool s = type_is_integer(g->types, n->e.a->type) && type_is_signed(g->types, n->e.a->type);

	switch (n->op) {
	case OP_EQ: return IF_EQ;
	case OP_NE: return IF_NE;
	case OP_LT: return s ? IF_SLT : IF_ULT;
	case OP_LE: return s ? IF_SLE : IF_ULE;
	case OP_GT: return s ? IF_SGT : IF_UGT;
	default: return s ? IF_SGE : IF_UGE;
	}
}

static bool is_comparison(enum op op)
{
	return op >= OP_EQ && op <= OP_GE;
}

void gen_cond(struct gen *g, const struct node *n, bool want, uint32_t label)
{
	struct ir_fn *f = g->f;
	bool known[LAZY_COUNT];

	if (n->kind == N_UNARY && n->op == OP_LNOT) {
		gen_cond(g, n->e.a, !want, label);
	} else if (n->kind == N_BINARY && (n->op == OP_LAND || n->op == OP_LOR)) {
		/* `want` reached by one side alone: jump from either; by both only: the first skips
		 * the second. */
		bool either = (n->op == OP_LOR) == want;
		uint32_t skip = ir_new_label(f);

		gen_cond(g, n->e.a, either ? want : !want, either ? label : skip);
		gen_lazy_save(g, known);
		gen_cond(g, n->e.b, want, label);
		gen_lazy_restore(g, known);
		ir_place(f, skip);
	} else if (n->kind == N_BINARY && is_comparison(n->op) && gen_is_string(g, n->e.a)) {
		ir_if(f, gen_str_compare(g, n->op, n->e.a, n->e.b), want ? IF_NE : IF_EQ, IR_I(0),
		      label);
	} else if (n->kind == N_BINARY && is_comparison(n->op)) {
		enum ir_cond c = condition(g, n);
		struct ir_val a = operand(g, n->e.a), b = operand(g, n->e.b);

		ir_if(f, a, want ? c : ir_inverse(c), b, label);
	} else {
		ir_if(f, operand(g, n), want ? IF_NE : IF_EQ, IR_I(0), label);
	}
}

static struct ir_val truth(struct gen *g, const struct node *n)
{
	struct ir_val v = ir_new_reg(g->f);
	uint32_t done = ir_new_label(g->f);
	bool known[LAZY_COUNT];

	ir_set(g->f, v, IR_I(1));
	gen_lazy_save(g, known);
	gen_cond(g, n, true, done);
	gen_lazy_restore(g, known);
	ir_set(g->f, v, IR_I(0));
	ir_place(g->f, done);
	return v;
}

static struct ir_val binary(struct gen *g, const struct node *n)
{
	struct ir_val a, b;

	if (n->op == OP_LAND || n->op == OP_LOR || is_comparison(n->op))
		return truth(g, n);
	if (n->op == OP_LXOR) {
		a = truth(g, n->e.a);
		return ir_bin(g->f, ALU_XOR, a, truth(g, n->e.b));
	}
	a = operand(g, n->e.a);
	b = operand(g, n->e.b);
	return arithmetic(g, n->op, n->e.a->type, a, b, n->loc);
}

/* The value of an assignment: what of v is in the place afterwards. */
static struct ir_val kept(struct gen *g, struct ir_val v, struct lval p)
{
	p.bit_off = 0;
	return p.bit_size ? bits(g, v, &p) : v;
}

/* ++ and --; pointers step by e.c, set by the binder. */
static struct ir_val step(struct gen *g, const struct node *n)
{
	struct lval p = gen_place(g, n->e.a);
	struct ir_val old = gen_load_place(g, p, n->loc),
		      by = n->e.c ? gen_expr(g, n->e.c) : IR_I(1), new;
	bool inc = n->op == OP_PREINC || n->op == OP_POSTINC;

	new = normal(g, ir_bin(g->f, inc ? ALU_ADD : ALU_SUB, old, by), n->e.a->type);
	gen_store_place(g, p, new, n->loc);
	return n->op == OP_POSTINC || n->op == OP_POSTDEC ? old : kept(g, new, p);
}

/* Memory the verifier knows, for the whole of p: what is not there yet is made. */
static struct ir_val writable(struct gen *g, struct lval p, uint32_t size, loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val at = p.v;

	switch (p.kind) {
	case PLACE_ASSOC:
		p = made_element(g, p, loc);
		at = p.v;
		break;
	case PLACE_TLS:
		at = gen_lazy(g, LAZY_TLS_RW);
		gen_fault_if(g, at, IF_EQ, IR_I(0), WIRE_FAULT_NOSCRATCH, IR_I(0), loc);
		break;
	case PLACE_KERNEL:
		at = gen_own_memory(g, p.v, p.off, size, loc);
		p.off = SCRATCH_DYN;
		break;
	default: break;
	}
	return ir_bin(f, ALU_ADD, at, IR_I(p.off));
}

struct ir_val gen_readable(struct gen *g, struct lval p)
{
	struct ir_fn *f = g->f;
	struct ir_val at;
	uint32_t have;

	if (p.kind != PLACE_ASSOC && p.kind != PLACE_TLS)
		return p.kind == PLACE_MEM ? ir_bin(f, ALU_ADD, p.v, IR_I(p.off))
					   : gen_place_addr(g, p);
	at = ir_new_reg(f);
	have = ir_new_label(f);
	ir_set(f, at, p.kind == PLACE_TLS ? gen_lazy(g, LAZY_TLS) : assoc_lookup(g, &p));
	ir_if(f, at, IF_NE, IR_I(0), have);
	ir_set(f, at, ir_map_value(f, gen_fixed_map(g, MAP_RODATA), g->zeros));
	ir_place(f, have);
	return ir_bin(f, ALU_ADD, at, IR_I(p.off));
}

static struct ir_val assign_bytes(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	uint32_t size = (uint32_t)type_size(g->types, n->e.a->type);
	struct lval place = gen_place(g, n->e.b);
	struct ir_val from = gen_readable(g, place), to, r;

	to = writable(g, gen_place(g, n->e.a), size, n->loc);
	r = place.kind == PLACE_KERNEL ? gen_pointed_copy(g, to, IR_I(size), from, false)
				       : ir_call(f, HELPER_READ_KERNEL, 3, to, IR_I(size), from);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR, IR_I(0), n->loc);
	return from;
}

/* A struct = 0: an element of an array is gone, a thread's is all zeros, as it was before its first
 * use. */
static struct ir_val free_struct(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct lval p = gen_place(g, n->e.a);
	uint32_t none = ir_new_label(f);
	struct ir_val tls;

	if (p.kind == PLACE_ASSOC) {
		(void)ir_call(f, HELPER_MAP_DELETE, 2,
			      ir_map(f, (uint32_t)g->vars[p.var->index].map), p.v);
	} else {
		tls = gen_lazy(g, LAZY_TLS);
		ir_if(f, tls, IF_EQ, IR_I(0), none);
		zero_element(g, p.var, ir_bin(f, ALU_ADD, tls, IR_I(p.off)));
	}
	ir_place(f, none);
	return IR_I(0);
}

static struct ir_val assign(struct gen *g, const struct node *n)
{
	struct ir_val v;
	struct lval p;

	if (gen_is_string(g, n->e.a) ||
	    (gen_is_string(g, n->e.b) && is_aggregate_type(g, n->e.a->type))) {
		gen_assign_string(g, gen_place(g, n->e.a), n->e.b);
		return IR_I(0);
	}
	if (is_aggregate_type(g, n->e.a->type))
		return n->e.b->kind == N_INT ? free_struct(g, n) : assign_bytes(g, n);
	if (n->op == OP_NONE) {
		v = operand(g, n->e.b);
		p = gen_place(g, n->e.a);
	} else {
		/* e.c, put there by the binder, has the type to calculate in when it is not the
		 * target's. */
		type_id t = n->e.c ? n->e.c->type : n->e.a->type;

		p = gen_place(g, n->e.a);
		v = normal(g, gen_load_place(g, p, n->loc), t);
		v = arithmetic(g, n->op, t, v, operand(g, n->e.b), n->loc);
	}
	v = normal(g, v, n->e.a->type);
	gen_store_place(g, p, v, n->loc);
	return kept(g, v, p);
}

static struct ir_val ternary(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val v = ir_new_reg(f);
	uint32_t other = ir_new_label(f), done = ir_new_label(f);
	bool known[LAZY_COUNT];

	gen_lazy_save(g, known);
	gen_cond(g, n->e.a, false, other);
	ir_set(f, v, operand(g, n->e.b));
	ir_goto(f, done);
	gen_lazy_restore(g, known);
	ir_place(f, other);
	ir_set(f, v, operand(g, n->e.c));
	gen_lazy_restore(g, known);
	ir_place(f, done);
	return v;
}

static struct ir_val cast(struct gen *g, const struct node *n)
{
	/* A string as an integer or pointer is the address of its text. */
	if (gen_is_string(g, n->t.a))
		return gen_str_plain(g, n->t.a);
	return normal(g, operand(g, n->t.a), n->type);
}

static struct ir_val unary(struct gen *g, const struct node *n)
{
	switch (n->op) {
	case OP_NEG: return result(g, ir_neg(g->f, operand(g, n->e.a)), n->type);
	case OP_PLUS: return operand(g, n->e.a);
	case OP_BNOT:
		return result(g, ir_bin(g->f, ALU_XOR, operand(g, n->e.a), IR_I(-1)), n->type);
	case OP_LNOT: return truth(g, n);
	case OP_DEREF: return gen_load_place(g, gen_place(g, n), n->loc);
	case OP_ADDROF: return gen_place_addr(g, gen_place(g, n->e.a));
	default: return step(g, n);
	}
}

/* The value as another operation takes it. */
static struct ir_val operand(struct gen *g, const struct node *n)
{
	loc_t outer = g->f->loc;
	struct ir_val v = IR_I(0);

	g->f->loc = n->loc;
	switch (n->kind) {
	case N_INT: v = IR_I(n->i.value); break;
	case N_IDENT:
		if (n->id->kind == IDENT_BUILTIN && !gen_is_string(g, n))
			v = gen_builtin(g, n);
		else if (n->id->kind == IDENT_CTX)
			v = ir_load(g->f, g->ctx, (int32_t)n->id->ctx, 8, false);
		else if (gen_is_string(g, n))
			v = gen_str_plain(g, n);
		else
			v = gen_load_place(g, gen_place(g, n), n->loc);
		break;
	case N_INDEX:
		if (n->id && n->id->kind == IDENT_BUILTIN) {
			v = gen_uregs(g, gen_expr(g, n->e.b), n->loc);
			break;
		}
		if (!n->id && gen_is_string(g, n->e.a)) {
			v = load_character(g, n);
			break;
		}
		v = gen_load_place(g, gen_place(g, n), n->loc);
		break;
	case N_EXTERN:
	case N_MEMBER:
	case N_PMEMBER: v = gen_load_place(g, gen_place(g, n), n->loc); break;
	case N_CALL: v = gen_is_string(g, n) ? gen_str_plain(g, n) : gen_subr(g, n); break;
	case N_UNARY: v = unary(g, n); break;
	case N_BINARY: v = binary(g, n); break;
	case N_ASSIGN: v = assign(g, n); break;
	case N_TERNARY: v = ternary(g, n); break;
	case N_COMMA:
		gen_effect(g, n->e.a);
		v = operand(g, n->e.b);
		break;
	case N_CAST: v = cast(g, n); break;
	case N_STR:
	case N_STRINGOF: v = gen_str_plain(g, n); break;
	default:
		diag_error(g->diags, n->loc, n->end, "D_CG_EXPR",
			   "this expression cannot be used here");
		g->failed = true;
	}
	g->f->loc = outer;
	return v;
}

struct ir_val gen_expr(struct gen *g, const struct node *n)
{
	struct ir_val v = operand(g, n);

	return is_result(n) ? normal(g, v, n->type) : v;
}

void gen_effect(struct gen *g, const struct node *n)
{
	if (n->kind == N_BODY) {
		gen_function(g, n);
		return;
	}
	if (n->kind == N_COMMA) {
		gen_effect(g, n->e.a);
		gen_effect(g, n->e.b);
	} else if (n->kind != N_ASSIGN && is_aggregate_type(g, n->type)) {
		(void)gen_place(g, n);
	} else if (n->kind == N_ASSIGN || !gen_is_string(g, n)) {
		(void)gen_expr(g, n);
	} else if (n->kind == N_CALL || n->kind == N_TERNARY) {
		bool null_is_empty = g->null_is_empty;
		uint32_t known;

		g->null_is_empty = true;
		(void)gen_str_addr(g, n, &known);
		g->null_is_empty = null_is_empty;
	}
}
