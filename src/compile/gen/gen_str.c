/* Generates strings. A value is text in memory, or an id as long as no use reads its characters:
 *
 *	literal, probefunc, ...   id (STR_ID): copied nowhere, compared as numbers
 *	everything else           NUL-terminated text (STR_TEXT), written directly to its destination
 */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"
#include "wire/routines.h"

enum { COMM_SIZE = 16, WORD_COMPARE_MAX = 40 };

int gen_probe_part(const struct node *n)
{
	if (n->kind != N_IDENT || !n->id || n->id->kind != IDENT_BUILTIN)
		return -1;
	switch (n->id->builtin) {
	case BUILTIN_PROBEPROV: return 0;
	case BUILTIN_PROBEMOD: return 1;
	case BUILTIN_PROBEFUNC: return 2;
	case BUILTIN_PROBENAME: return 3;
	default: return -1;
	}
}

const char *gen_part_text(const struct image_probe *p, int part)
{
	return part == 0 ? p->prov : part == 1 ? p->mod : part == 2 ? p->func : p->name;
}

/* Returns the text of this part if it is the same for every probe of the program, else NULL. */
static const char *common_part(const struct gen *g, int part)
{
	const char *text = NULL;

	if (g->in_error)
		return NULL;
	for (uint32_t i = 0; i < g->prog_nprobes; i++) {
		const char *t = gen_part_text(&g->probes.v[g->prog_probes[i]], part);

		if (text && strcmp(text, t))
			return NULL;
		text = t;
	}
	return text;
}

static bool is_execname(const struct node *n)
{
	return n->kind == N_IDENT && n->id && n->id->kind == IDENT_BUILTIN &&
	       n->id->builtin == BUILTIN_EXECNAME;
}

/* Returns the operand of (string)x or stringof(x). */
static const struct node *operand(const struct node *n)
{
	return n->kind == N_CAST ? n->t.a : n->e.a;
}

static uint32_t round8(uint64_t n)
{
	return (uint32_t)((n + 7) & ~7ull);
}

/* Returns a text of the program or of a probe's name, cut to the size of a string. */
static const char *clipped(const struct gen *g, const char *text)
{
	return strlen(text) < g->strmax ? text : arena_strndup(g->arena, text, g->strmax - 1);
}

struct str_info gen_str_info(struct gen *g, const struct node *n)
{
	struct str_info a, b, whole = { STR_TEXT, g->strsize };
	uint64_t size;

	switch (n->kind) {
	case N_STR:
		size = round8(n->s.len + 1);
		return (struct str_info){ STR_ID, size < g->strsize ? (uint32_t)size : g->strsize };
	case N_IDENT:
		if (gen_probe_part(n) >= 0)
			return (struct str_info){ STR_ID, g->strsize };
		if (is_execname(n))
			return (struct str_info){ STR_TEXT, COMM_SIZE };
		return whole;
	case N_TERNARY:
		a = gen_str_info(g, n->e.b);
		b = gen_str_info(g, n->e.c);
		return (struct str_info){ a.cls == STR_ID && b.cls == STR_ID ? STR_ID : STR_TEXT,
					  a.bound > b.bound ? a.bound : b.bound };
	case N_COMMA: return gen_str_info(g, n->e.b);
	case N_ASSIGN: return whole;
	case N_CAST:
	case N_STRINGOF:
		if (gen_is_string(g, operand(n)))
			return gen_str_info(g, operand(n));
		if (type_kind(g->types, type_strip(g->types, operand(n)->type)) == TYPE_ARRAY) {
			size = round8(type_size(g->types, operand(n)->type) + 1);
			if (size > 8 && size < g->strsize)
				return (struct str_info){ STR_TEXT, (uint32_t)size };
		}
		return whole;
	case N_CALL:
		if (n->id && n->id->kind == IDENT_SUBR && (n->id->subr == SUBR_INET_NTOA))
			return (struct str_info){ STR_TEXT, 16 < g->strsize ? 16 : g->strsize };
		return whole;
	default: return whole;
	}
}

/* --- ids --- */

uint32_t gen_text(struct gen *g, const char *text)
{
	return intern_str(&g->texts, text);
}

static struct ir_val probe_text_id(struct gen *g, int part)
{
	struct ir_fn *f = g->f;
	struct ir_val v = ir_new_reg(f), probe = ir_new_reg(f), base;
	uint32_t done = ir_new_label(f);

	ir_set(f, v, IR_I(0));
	/* A short-lived copy, because Linux 6.1 loses the bounds of this test when it loads the
	 * probe from the stack again. */
	ir_set(f, probe, g->probe);
	ir_if(f, probe, IF_UGE, IR_I(g->probes.n), done);
	base = ir_bin(f, ALU_ADD, ir_map_value(f, gen_fixed_map(g, MAP_RODATA), g->probe_texts),
		      ir_bin(f, ALU_SHL, probe, IR_I(4)));
	ir_set(f, v, ir_load(f, base, 4 * part, 4, false));
	ir_place(f, done);
	return v;
}

/* Returns a string's id. canonical: equal texts have equal ids. Otherwise a probe's part is "probe
 * * 4 + part", and literals follow behind. */
struct ir_val gen_str_id(struct gen *g, const struct node *n, bool canonical)
{
	struct ir_fn *f = g->f;
	int part = gen_probe_part(n);
	const char *text;
	struct ir_val v;
	uint32_t other, done;

	if (part >= 0) {
		text = common_part(g, part);
		if (!text && canonical)
			return probe_text_id(g, part);
		if (!text)
			return ir_bin(f, ALU_ADD, ir_bin(f, ALU_SHL, g->probe, IR_I(2)),
				      IR_I(part));
		text = clipped(g, text);
	} else if (n->kind == N_STR) {
		text = clipped(g, n->s.text);
	} else if (n->kind == N_COMMA) {
		gen_effect(g, n->e.a);
		return gen_str_id(g, n->e.b, canonical);
	} else if (n->kind == N_CAST || n->kind == N_STRINGOF) {
		return gen_str_id(g, operand(n), canonical);
	} else {
		bool known[LAZY_COUNT];

		v = ir_new_reg(f);
		other = ir_new_label(f);
		done = ir_new_label(f);
		gen_lazy_save(g, known);
		gen_cond(g, n->e.a, false, other);
		ir_set(f, v, gen_str_id(g, n->e.b, canonical));
		ir_goto(f, done);
		gen_lazy_restore(g, known);
		ir_place(f, other);
		ir_set(f, v, gen_str_id(g, n->e.c, canonical));
		gen_lazy_restore(g, known);
		ir_place(f, done);
		return v;
	}
	return IR_I((int64_t)gen_text(g, text) + (canonical ? 0 : 4ll * g->probes.n));
}

uint32_t gen_rodata_text(struct gen *g, const char *text)
{
	uint32_t len = (uint32_t)strlen(text) + 1;
	uint64_t *at = hash_put(&g->rodata_texts, text, len, NULL);

	if (!*at) {
		uint32_t off = gen_rodata(g, NULL, round8(len), 8);

		memcpy(g->rodata.v + off, text, len);
		/* `at` is still valid, because nothing was put into the hash in between. */
		*at = off + 1;
	}
	return (uint32_t)*at - 1;
}

/* Returns the address of a probe's part that is known only at run time. Goes from id to offset to
 * text, in read-only data. */
static struct ir_val probe_text_addr(struct gen *g, int part)
{
	struct ir_fn *f = g->f;
	uint32_t map = gen_fixed_map(g, MAP_RODATA), done = ir_new_label(f);
	struct ir_val id = probe_text_id(g, part), v = ir_new_reg(f), off;

	ir_set(f, v, ir_map_value(f, map, gen_rodata_text(g, "")));
	ir_if(f, id, IF_UGE, IR_I(g->text_count), done);
	off = ir_load(f,
		      ir_bin(f, ALU_ADD, ir_map_value(f, map, g->text_table),
			     ir_bin(f, ALU_SHL, id, IR_I(2))),
		      0, 4, false);
	ir_if(f, off, IF_UGE, IR_I(g->text_end), done);
	ir_set(f, v, ir_bin(f, ALU_ADD, ir_map_value(f, map, 0), off));
	ir_place(f, done);
	return v;
}

/* --- text --- */

static void read_kernel_str(struct gen *g, struct ir_val dst, int32_t off, uint32_t size,
			    struct ir_val src, loc_t loc)
{
	struct ir_val r = ir_call(g->f, HELPER_READ_KERNEL_STR, 3,
				  ir_bin(g->f, ALU_ADD, dst, IR_I(off)), IR_I(size), src);

	gen_fault_if(g, r, IF_SLT, IR_I(0), WIRE_FAULT_BADADDR, src, loc);
}

static void execname_into(struct gen *g, struct ir_val dst, int32_t off, uint32_t size, loc_t loc)
{
	struct ir_fn *f = g->f;
	uint32_t msize;

	if (gen_current_thread(g)) {
		(void)ir_call(f, HELPER_COMM, 2, ir_bin(f, ALU_ADD, dst, IR_I(off)),
			      IR_I(size < COMM_SIZE ? size : COMM_SIZE));
		return;
	}
	read_kernel_str(g, dst, off, size < COMM_SIZE ? size : COMM_SIZE,
			ir_bin(f, ALU_ADD, gen_thread(g),
			       IR_I(gen_kernel_offset(g, "task_struct", "comm", &msize, loc))),
			loc);
}

static void read_pointed_str(struct gen *g, struct ir_val dst, int32_t off, uint32_t size,
			     struct ir_val src, loc_t loc)
{
	struct ir_val r =
		gen_pointed_copy(g, ir_bin(g->f, ALU_ADD, dst, IR_I(off)), IR_I(size), src, true);

	gen_fault_if(g, r, IF_SLT, IR_I(0), WIRE_FAULT_BADADDR, src, loc);
}

/* Returns the address of a's text. *ret_pointed: it is in a pointer, not in a variable. */
static struct ir_val source_addr(struct gen *g, const struct node *a, bool *ret_pointed)
{
	struct lval place;

	*ret_pointed = true;
	/* A char array is a place; a pointer's value is the address. */
	if (type_kind(g->types, type_strip(g->types, a->type)) != TYPE_ARRAY)
		return gen_expr(g, a);
	place = gen_place(g, a);
	*ret_pointed = place.kind == PLACE_KERNEL;
	return gen_place_addr(g, place);
}

void gen_str_into(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		  uint32_t size)
{
	struct ir_fn *f = g->f;
	loc_t outer = f->loc;
	uint32_t other, done, known_bytes, most = size < g->strmax ? size : g->strmax;
	bool known[LAZY_COUNT], pointed;

	f->loc = n->loc;
	if (is_execname(n)) {
		execname_into(g, dst, off, most, n->loc);
	} else if (n->kind == N_TERNARY) {
		other = ir_new_label(f);
		done = ir_new_label(f);
		gen_lazy_save(g, known);
		gen_cond(g, n->e.a, false, other);
		gen_str_into(g, n->e.b, dst, off, size);
		ir_goto(f, done);
		gen_lazy_restore(g, known);
		ir_place(f, other);
		gen_str_into(g, n->e.c, dst, off, size);
		gen_lazy_restore(g, known);
		ir_place(f, done);
	} else if (n->kind == N_COMMA) {
		gen_effect(g, n->e.a);
		gen_str_into(g, n->e.b, dst, off, size);
	} else if (n->kind == N_CALL) {
		gen_subr_string(g, n, dst, off, size);
		if (size > most)
			ir_store(f, dst, off + (int32_t)most - 1, 1, IR_I(0));
	} else if ((n->kind == N_STRINGOF || n->kind == N_CAST) && !gen_is_string(g, operand(n))) {
		struct ir_val src = source_addr(g, operand(n), &pointed);

		if (pointed)
			read_pointed_str(g, dst, off, most, src, n->loc);
		else
			read_kernel_str(g, dst, off, most, src, n->loc);
	} else if (n->kind == N_STRINGOF || n->kind == N_CAST) {
		gen_str_into(g, operand(n), dst, off, size);
	} else {
		read_kernel_str(g, dst, off, most, gen_str_addr(g, n, &known_bytes), n->loc);
	}
	f->loc = outer;
}

static struct ir_val temp_text(struct gen *g, const struct node *n, uint32_t *ret_known)
{
	uint32_t bound = gen_str_info(g, n).bound;
	struct ir_val t = gen_scratch_temp(g, bound);

	gen_str_into(g, n, t, 0, bound);
	*ret_known = bound;
	return t;
}

/* Returns the address of a variable's text, or of "" in read-only data when the variable does not
 * exist. */
static struct ir_val variable_text(struct gen *g, const struct node *n)
{
	struct ir_fn *f = g->f;
	struct lval p = gen_place(g, n);
	uint32_t map = gen_fixed_map(g, MAP_RODATA), done;
	struct ir_val at, v;

	if (p.kind == PLACE_MEM || p.kind == PLACE_KERNEL)
		return ir_bin(f, ALU_ADD, p.v, IR_I(p.off));
	at = p.kind == PLACE_TLS ? gen_lazy(g, LAZY_TLS)
				 : ir_call(f, HELPER_MAP_LOOKUP, 2,
					   ir_map(f, (uint32_t)g->vars[p.var->index].map), p.v);
	v = ir_new_reg(f);
	done = ir_new_label(f);
	ir_set(f, v, ir_map_value(f, map, g->zeros));
	ir_if(f, at, IF_EQ, IR_I(0), done);
	ir_set(f, v, ir_bin(f, ALU_ADD, at, IR_I(p.off)));
	ir_place(f, done);
	return v;
}

static bool is_variable(const struct node *n)
{
	return (n->kind == N_IDENT || n->kind == N_INDEX) && n->id && n->id->kind == IDENT_VAR;
}

bool gen_is_string_place(const struct node *n)
{
	return is_variable(n) || n->kind == N_INDEX || n->kind == N_MEMBER ||
	       n->kind == N_PMEMBER || (n->kind == N_UNARY && n->op == OP_DEREF);
}

struct ir_val gen_str_addr(struct gen *g, const struct node *n, uint32_t *ret_known)
{
	const char *text;
	int part = gen_probe_part(n);

	*ret_known = 0;
	if (n->kind == N_STR || part >= 0) {
		text = part >= 0 ? common_part(g, part) : n->s.text;
		if (!text)
			return probe_text_addr(g, part);
		text = clipped(g, text);
		*ret_known = round8(strlen(text) + 1);
		return ir_map_value(g->f, gen_fixed_map(g, MAP_RODATA), gen_rodata_text(g, text));
	}
	if (n->kind == N_ASSIGN) {
		gen_effect(g, n);
		n = n->e.a;
	}
	if (is_variable(n)) {
		*ret_known = g->strsize;
		return variable_text(g, n);
	}
	/* Read strings in arrays, structs and memory of alloca() from where they are. */
	if (gen_is_string_place(n))
		return variable_text(g, n);
	return temp_text(g, n, ret_known);
}

struct ir_val gen_str_plain(struct gen *g, const struct node *n)
{
	uint32_t known;
	struct ir_val at = gen_str_addr(g, n, &known), scratch = gen_lazy(g, LAZY_SCRATCH);

	ir_store(g->f, scratch, SCRATCH_WORD, 8, at);
	return ir_load(g->f, scratch, SCRATCH_WORD, 8, false);
}

/* --- comparing --- */

static uint64_t text_word(const char *text, uint32_t len, uint32_t at)
{
	uint64_t w = 0;

	memcpy(&w, text + at, len - at < 8 ? len - at : 8);
	return w;
}

/* Compares text with a short constant, word by word. Jumps to `differ` at the first difference. */
static void compare_words(struct gen *g, struct ir_val addr, const char *text, uint32_t differ)
{
	uint32_t len = (uint32_t)strlen(text) + 1;

	for (uint32_t at = 0; at < len; at += 8) {
		struct ir_val w = ir_load(g->f, addr, (int32_t)at, 8, false);

		if (len - at < 8)
			w = ir_bin(g->f, ALU_AND, w, IR_I((1ull << 8 * (len - at)) - 1));
		ir_if(g->f, w, IF_NE, IR_I(text_word(text, len, at)), differ);
	}
}

static struct ir_val execname_words(struct gen *g)
{
	uint32_t obj = ir_new_object(g->f, COMM_SIZE, "comm"), size;

	if (g->target->task_btf && gen_current_thread(g))
		return ir_bin(g->f, ALU_ADD, gen_lazy(g, LAZY_TASK_BTF),
			      IR_I(gen_kernel_offset(g, "task_struct", "comm", &size, 0)));
	ir_store_stack(g->f, obj, 0, 8, IR_I(0));
	ir_store_stack(g->f, obj, 8, 8, IR_I(0));
	execname_into(g, ir_stack(g->f, obj, 0), 0, COMM_SIZE, g->f->loc);
	return ir_stack(g->f, obj, 0);
}

static struct ir_val from_label(struct gen *g, uint32_t differ, enum op op)
{
	struct ir_val v = ir_new_reg(g->f);
	uint32_t done = ir_new_label(g->f);

	ir_set(g->f, v, IR_I(op == OP_EQ));
	ir_goto(g->f, done);
	ir_place(g->f, differ);
	ir_set(g->f, v, IR_I(op == OP_NE));
	ir_place(g->f, done);
	return v;
}

static struct ir_val compare(struct gen *g, enum op op, const struct node *a, const struct node *b)
{
	struct ir_fn *f = g->f;
	bool equality = op == OP_EQ || op == OP_NE;
	uint32_t differ, known;
	struct ir_val x, y, v;

	if (equality && a->kind == N_STR && b->kind != N_STR) {
		const struct node *t = a;

		a = b;
		b = t;
	}
	if (equality && gen_str_info(g, a).cls == STR_ID && gen_str_info(g, b).cls == STR_ID) {
		differ = ir_new_label(f);
		x = gen_str_id(g, a, true);
		y = gen_str_id(g, b, true);
		ir_if(f, x, IF_NE, y, differ);
		return from_label(g, differ, op);
	}
	if (equality && b->kind == N_STR && b->s.len + 1 <= WORD_COMPARE_MAX) {
		differ = ir_new_label(f);
		if (is_execname(a)) {
			if (b->s.len + 1 > COMM_SIZE)
				return IR_I(op == OP_NE);
			compare_words(g, execname_words(g), b->s.text, differ);
			return from_label(g, differ, op);
		}
		x = gen_str_addr(g, a, &known);
		if (known && b->s.len + 1 > known)
			return IR_I(op == OP_NE);
		if (known) {
			compare_words(g, x, b->s.text, differ);
			return from_label(g, differ, op);
		}
	}
	x = gen_str_plain(g, a);
	y = gen_str_plain(g, b);
	v = ir_routine(f, "d_strcmp", 3, x, y, IR_I(g->strsize));
	gen_fault_if(g, v, IF_SLT, IR_I(-1), WIRE_FAULT_BADADDR, x, f->loc);
	differ = ir_new_label(f);
	y = ir_new_reg(f);
	ir_set(f, y, IR_I(1));
	ir_if(f, v,
	      op == OP_EQ   ? IF_EQ
	      : op == OP_NE ? IF_NE
	      : op == OP_LT ? IF_SLT
	      : op == OP_LE ? IF_SLE
	      : op == OP_GT ? IF_SGT
			    : IF_SGE,
	      IR_I(0), differ);
	ir_set(f, y, IR_I(0));
	ir_place(f, differ);
	return y;
}

/* Compares strings. NULL compares as "". */
struct ir_val gen_str_compare(struct gen *g, enum op op, const struct node *a, const struct node *b)
{
	bool outer = g->null_is_empty;
	struct ir_val v;

	g->null_is_empty = true;
	v = compare(g, op, a, b);
	g->null_is_empty = outer;
	return v;
}

/* --- assigning --- */

static bool is_zero(const struct node *n)
{
	while (n->kind == N_CAST || n->kind == N_STRINGOF)
		n = operand(n);
	return n->kind == N_INT && n->i.value == 0;
}

/* Generates x = 0: removes an element, and sets any other string to "". */
static void free_string(struct gen *g, const struct lval *p)
{
	struct ir_fn *f = g->f;
	uint32_t none = ir_new_label(f);
	struct ir_val at;

	if (p->kind == PLACE_ASSOC && type_is_string(g->types, p->var->type)) {
		(void)ir_call(f, HELPER_MAP_DELETE, 2,
			      ir_map(f, (uint32_t)g->vars[p->var->index].map), p->v);
	} else if (p->kind == PLACE_TLS) {
		ir_if(f, gen_lazy(g, LAZY_TLS), IF_EQ, IR_I(0), none);
		ir_store(f, gen_lazy(g, LAZY_TLS), (int32_t)p->off, 1, IR_I(0));
	} else if (p->kind == PLACE_ASSOC) {
		at = ir_call(f, HELPER_MAP_LOOKUP, 2,
			     ir_map(f, (uint32_t)g->vars[p->var->index].map), p->v);
		ir_if(f, at, IF_EQ, IR_I(0), none);
		ir_store(f, at, (int32_t)p->off, 1, IR_I(0));
	} else if (p->kind == PLACE_KERNEL) {
		at = gen_own_memory(g, p->v, p->off, 1, f->loc);
		ir_store(f, at, SCRATCH_DYN, 1, IR_I(0));
	} else {
		ir_store(f, p->v, (int32_t)p->off, 1, IR_I(0));
	}
	ir_place(f, none);
}

void gen_assign_string(struct gen *g, struct lval p, const struct node *value)
{
	struct ir_fn *f = g->f;
	/* Only a member of a translated struct is a char array that a string is assigned to. */
	uint32_t most = type_is_string(g->types, p.type) ? g->strmax
							 : (uint32_t)type_size(g->types, p.type);
	uint32_t done = ir_new_label(f), insert = ir_new_label(f), known, map, size;
	struct ir_val src, tmp, at, r;
	bool null_is_empty;

	if (is_zero(value)) {
		free_string(g, &p);
		return;
	}

	/* Evaluate the value first, into its own memory, because it may depend on the target. */
	null_is_empty = g->null_is_empty;
	g->null_is_empty = true;
	src = gen_str_addr(g, value, &known);
	g->null_is_empty = null_is_empty;
	switch (p.kind) {
	case PLACE_MEM:
		read_kernel_str(g, ir_bin(f, ALU_ADD, p.v, IR_I(p.off)), 0, most, src, value->loc);
		break;
	case PLACE_TLS:
		at = gen_lazy(g, LAZY_TLS_RW);
		ir_if(f, at, IF_EQ, IR_I(0), insert);
		read_kernel_str(g, at, (int32_t)p.off, most, src, value->loc);
		ir_goto(f, done);
		ir_place(f, insert);
		gen_count(g, IR_I(WIRE_DROP_DYN));
		break;
	case PLACE_ASSOC:
		map = (uint32_t)g->vars[p.var->index].map;
		size = (g->vars[p.var->index].size + 7) & ~7u;
		tmp = gen_scratch_temp(g, size);
		at = ir_call(f, HELPER_MAP_LOOKUP, 2, ir_map(f, map), p.v);
		ir_if(f, at, IF_EQ, IR_I(0), insert);
		read_kernel_str(g, at, (int32_t)p.off, most, src, value->loc);
		ir_goto(f, done);
		ir_place(f, insert);
		if (size > most)
			(void)ir_routine(f, "d_zero", 2, tmp, IR_I(size));
		read_kernel_str(g, tmp, (int32_t)p.off, most, src, value->loc);
		r = ir_call(f, HELPER_MAP_UPDATE, 4, ir_map(f, map), p.v, tmp, IR_I(BPF_ANY));
		ir_if(f, r, IF_EQ, IR_I(0), done);
		gen_count(g, IR_I(WIRE_DROP_DYN));
		break;
	case PLACE_KERNEL:
		at = gen_own_memory(g, p.v, p.off, most, value->loc);
		read_kernel_str(g, at, SCRATCH_DYN, most, src, value->loc);
		break;
	default: gen_fault(g, WIRE_FAULT_ILLOP, IR_I(0), value->loc);
	}
	ir_place(f, done);
}
