/* Generates places that can be assigned to or addressed: variables, elements, members, and targets
 * of pointers. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"

bool gen_is_aggregate_type(struct gen *g, type_id t)
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

/* Returns memory of the size of the variable's elements. gen_zero_element() zeroes it at run
 * time. */
static struct ir_val new_element(struct gen *g, const struct variable *var)
{
	return gen_scratch_temp(g, (g->vars[var->index].size + 7) & ~7u);
}

void gen_zero_element(struct gen *g, const struct variable *var, struct ir_val at)
{
	(void)ir_routine(g->f, "d_zero", 2, at, IR_I((g->vars[var->index].size + 7) & ~7u));
}

/* Returns an element of an associative array as memory. Adds the element when there is none. */
static struct lval made_element(struct gen *g, struct lval p, loc_t loc)
{
	struct ir_fn *f = g->f;
	struct ir_val at = ir_new_reg(f), tmp = new_element(g, p.var);
	uint32_t have = ir_new_label(f);

	ir_set(f, at, assoc_lookup(g, &p));
	ir_if(f, at, IF_NE, IR_I(0), have);
	gen_zero_element(g, p.var, tmp);
	(void)ir_call(f, HELPER_MAP_UPDATE, 4, ir_map(f, (uint32_t)g->vars[p.var->index].map), p.v,
		      tmp, IR_I(BPF_ANY));
	ir_set(f, at, assoc_lookup(g, &p));
	gen_fault_if(g, at, IF_EQ, IR_I(0), WIRE_FAULT_NOSCRATCH, IR_I(0), loc);
	ir_place(f, have);
	p.kind = PLACE_MEM;
	p.v = at;
	return p;
}

/* Returns the place of the element at `index` of p, the place of a whole array or string. The
 * caller has checked that the index is below its end. */
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

/* Returns the place of the whole string that n is a character of: the variable itself, or the text
 * of any other string. */
static struct lval gen_place_text_of(struct gen *g, const struct node *n)
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

/* Loads a character. An index behind the end of an empty string is a fault, because a string
 * without a value is a null pointer in DTrace. */
struct ir_val gen_load_character(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct ir_val index = gen_expr(g, n->e.b);
	struct lval p = gen_place_text_of(g, n);
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
		return element_of(g, gen_place_text_of(g, n), index, 1, n->loc);
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
		/* Use the naturally aligned word of the declared type that holds the field. */
		uint64_t unit = 8 * gen_size_of(g, m->type), word = m->bit_offset / unit * unit;

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
		/* A cast between struct types of the same layout, or the last value of a comma
		 * expression. */
		if (n->kind == N_COMMA)
			gen_effect(g, n->e.a);
		return gen_place(g, n->kind == N_COMMA ? n->e.b : n->t.a);
	default: break;
	}
	/* A value without a place evaluates to its address (pointers to arrays and structs). */
	return (struct lval){ .kind = PLACE_KERNEL, .v = gen_expr(g, n), .type = n->type };
}

struct ir_val gen_bits(struct gen *g, struct ir_val word, const struct lval *p)
{
	struct ir_fn *f = g->f;

	if (type_is_signed(g->types, p->type)) {
		word = ir_bin(f, ALU_SHL, word, IR_I(64 - p->bit_off - p->bit_size));
		return ir_bin(f, ALU_SAR, word, IR_I(64 - p->bit_size));
	}
	word = ir_bin(f, ALU_SHR, word, IR_I(p->bit_off));
	return p->bit_size < 64 ? ir_bin(f, ALU_AND, word, IR_I((1ull << p->bit_size) - 1)) : word;
}

/* Returns true when pointers point to a process's memory, which the kernel's helpers do not
 * read. */
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
	/* Bring in pages that are not in memory: for text the first page, and the next if the text
	 * continues there. */
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

/* Emits a fault when addr, the base of a member, is NULL. The fault then reports address 0, not the
 * member's. */
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

	if (gen_is_aggregate_type(g, p.type))
		return gen_place_addr(g, p);
	size = gen_size_of(g, p.type);
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
	return p.bit_size ? gen_bits(g, v, &p) : v;
}

/* Returns true when n evaluates to a pointer that should point to the firing's own memory. */
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

/* Returns the offset of `size` bytes at addr + off in the firing's own memory. Emits a fault when
 * they are outside the memory that the clause has taken. */
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

	/* The same test again, in a form that the verifier remembers. */
	gen_fault_if(g, rel, IF_UGT, IR_I((int64_t)g->dynsize - size), WIRE_FAULT_BADADDR, addr,
		     loc);
	return ir_bin(f, ALU_ADD, gen_lazy(g, LAZY_SCRATCH), rel);
}

static void assoc_store(struct gen *g, const struct lval *p, uint32_t size, struct ir_val v)
{
	struct ir_fn *f = g->f;
	uint32_t done = ir_new_label(f), insert = ir_new_label(f),
		 map = (uint32_t)g->vars[p->var->index].map, tmp, keep;
	/* Assigning 0 to a member or a character does not free the element. */
	bool part = gen_is_aggregate_type(g, p->var->type) ||
		    type_is_string(g->types, p->var->type);
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
		gen_zero_element(g, p->var, value);
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
	uint32_t size = gen_size_of(g, p.type), none, done;
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
	/* Copy the pointer through memory. The verifier then takes it for a number, and D may
	 * compute with it. */
	scratch = gen_lazy(g, LAZY_SCRATCH);
	ir_store(f, scratch, SCRATCH_WORD, 8, ir_bin(f, ALU_ADD, at, IR_I(p.off)));
	return ir_load(f, scratch, SCRATCH_WORD, 8, false);
}

/* Returns memory that the verifier tracks for the whole of p. Creates it if needed. */
struct ir_val gen_writable(struct gen *g, struct lval p, uint32_t size, loc_t loc)
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
