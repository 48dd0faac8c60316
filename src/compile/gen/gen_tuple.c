/* Generates tuples: the keys of associative arrays and aggregations, and single fields of
 * records. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"
#include "wire/routines.h"

static bool is_action(const struct node *n, enum subr_id id)
{
	return n->kind == N_CALL && n->id && n->id->kind == IDENT_SUBR && n->id->subr == id;
}

bool gen_is_lstack(const struct node *n)
{
	return is_action(n, SUBR_LSTACK);
}

/* Returns the kind of field of stack(), usym() and the like. */
enum field_kind gen_dyn_kind(const struct node *n, bool key)
{
	if (is_action(n, SUBR_STACK))
		return key ? FIELD_KSTACKID : FIELD_KSTACK;
	if (is_action(n, SUBR_USTACK) || is_action(n, SUBR_JSTACK) || gen_is_lstack(n))
		return key ? FIELD_USTACKID : FIELD_USTACK;
	if (is_action(n, SUBR_SYM) || is_action(n, SUBR_FUNC))
		return FIELD_SYM;
	if (is_action(n, SUBR_MOD))
		return FIELD_MOD;
	if (is_action(n, SUBR_USYM) || is_action(n, SUBR_UFUNC))
		return FIELD_USYM;
	if (is_action(n, SUBR_UMOD))
		return FIELD_UMOD;
	return FIELD_UADDR;
}

static uint32_t dyn_size(enum field_kind k)
{
	return k == FIELD_SYM || k == FIELD_MOD || k == FIELD_KSTACKID ? 8 : 16;
}

/* Returns the bytes of a field, or GEN_KEY_MAX + 8 if it is larger. */
static uint32_t field_size(struct gen *g, type_id t)
{
	uint64_t n = type_size(g->types, t);

	/* The size of a type that exceeds 64 bits is 0. */
	if (n > GEN_KEY_MAX || (!n && type_kind(g->types, type_strip(g->types, t)) == TYPE_ARRAY))
		return GEN_KEY_MAX + 8;
	return (uint32_t)n;
}

void gen_layout_tuple(struct gen *g, struct tuple_layout *l, const type_id *types, uint32_t n)
{
	l->n = n;
	l->fields = arena_array(g->arena, struct field, n + 2);
	for (uint32_t i = 0; i < n; i++) {
		struct field *fl = &l->fields[i];

		fl->type = types[i];
		if (type_is_string(g->types, types[i]))
			fl->kind = FIELD_STRID; /* until a use needs text: gen_widen_tuple */
		else if (type_is_scalar(g->types, types[i]))
			fl->kind = FIELD_INT;
		else
			fl->kind = type_kind(g->types, types[i]) == TYPE_DYN ? FIELD_UADDR
									     : FIELD_BYTES;
		fl->size = fl->kind == FIELD_INT || fl->kind == FIELD_BYTES
				   ? field_size(g, types[i])
				   : 4;
		if (fl->kind == FIELD_INT && !fl->size)
			fl->size = 8;
	}
}

/* Widens the layout for one use. A string field becomes text if some use has text, and gets the
 * length of the longest use. */
void gen_widen_tuple(struct gen *g, struct tuple_layout *l, const struct node *keys, bool is_agg)
{
	uint32_t i = 0;

	for (const struct node *k = keys; k && i < l->n; k = k->next, i++) {
		struct field *fl = &l->fields[i];

		if (fl->kind == FIELD_STRID || fl->kind == FIELD_STRING) {
			struct str_info s = gen_str_info(g, k);

			if (s.cls == STR_TEXT)
				fl->kind = FIELD_STRING;
			/* The size of an id is kept too, because another use may be text.
			 * gen_finish_tuple() packs the fields. */
			if (fl->strsize < s.bound)
				fl->strsize = s.bound;
		} else if (type_kind(g->types, fl->type) == TYPE_DYN) {
			fl->kind = gen_dyn_kind(k, is_agg);
			fl->size = dyn_size(fl->kind);
		}
	}
}

static uint32_t align_of(const struct field *fl)
{
	return fl->kind == FIELD_INT ? fl->size : fl->kind == FIELD_STRID ? 4 : 8;
}

bool gen_finish_tuple(struct tuple_layout *l, bool thread)
{
	uint64_t at = 0;

	l->padded = false;
	for (uint32_t i = 0; i < l->n; i++) {
		struct field *fl = &l->fields[i];
		uint32_t align = align_of(fl);

		if (fl->kind == FIELD_STRING)
			fl->size = fl->strsize;
		l->padded |= at % align != 0 || (fl->kind == FIELD_BYTES && fl->size % 8);
		at = (at + align - 1) / align * align;
		fl->offset = (uint32_t)at;
		at += fl->size;
		if (at > GEN_KEY_MAX) {
			l->size = GEN_KEY_MAX + 8;
			return false;
		}
	}
	if (thread) {
		l->padded |= at % 4 != 0;
		at = (at + 3) & ~3ull;
		l->fields[l->n] = (struct field){
			.kind = FIELD_INT, .offset = (uint32_t)at, .size = 4, .type = T_UINT32
		};
		at += 4;
	}
	l->padded |= at % 8 != 0;
	l->size = (uint32_t)((at + 7) & ~7ull);
	if (l->n && !l->size) { /* structs without members */
		l->padded = true;
		l->size = 8;
	}
	return true;
}

static void zero(struct gen *g, struct ir_val dst, uint32_t off, uint32_t size)
{
	if (size > 128) {
		(void)ir_routine(g->f, "d_zero", 2, ir_bin(g->f, ALU_ADD, dst, IR_I(off)),
				 IR_I(size));
		return;
	}
	for (uint32_t i = 0; i + 8 <= size; i += 8)
		ir_store(g->f, dst, (int32_t)(off + i), 8, IR_I(0));
}

static struct ir_val first_arg(struct gen *g, const struct node *n)
{
	return n->call.args ? gen_expr(g, n->call.args) : IR_I(0);
}

static void copy_bytes(struct gen *g, const struct field *fl, const struct node *n,
		       struct ir_val dst)
{
	struct lval place = gen_place(g, n);
	struct ir_val addr = gen_readable(g, place), to, r;

	to = ir_bin(g->f, ALU_ADD, dst, IR_I(fl->offset));
	r = place.kind == PLACE_KERNEL
		    ? gen_pointed_copy(g, to, IR_I(fl->size), addr, false)
		    : ir_call(g->f, HELPER_READ_KERNEL, 3, to, IR_I(fl->size), addr);
	gen_fault_if(g, r, IF_NE, IR_I(0), WIRE_FAULT_BADADDR,
		     place.kind == PLACE_KERNEL ? addr : IR_I(0), n->loc);
}

void gen_field(struct gen *g, const struct field *fl, const struct node *n, struct ir_val dst,
	       bool is_agg)
{
	struct ir_fn *f = g->f;
	int32_t at = (int32_t)fl->offset;
	struct ir_val v;

	switch (fl->kind) {
	case FIELD_INT:
		v = gen_expr(g, n);
		ir_store(f, dst, at, fl->size, v);
		break;
	case FIELD_STRID: ir_store(f, dst, at, 4, gen_str_id(g, n, !is_agg)); break;
	case FIELD_STRING: gen_str_into(g, n, dst, at, fl->size); break;
	case FIELD_BYTES: copy_bytes(g, fl, n, dst); break;
	case FIELD_KSTACKID:
	case FIELD_USTACKID: gen_stack_id(g, fl, dst, n); break;
	case FIELD_KSTACK:
	case FIELD_USTACK: gen_stack_frames(g, fl, dst, n); break;
	case FIELD_SYM:
	case FIELD_MOD: ir_store(f, dst, at, 8, first_arg(g, n)); break;
	default:
		v = first_arg(g, n);
		ir_store(f, dst, at, 4, gen_tgid(g));
		ir_store(f, dst, at + 4, 4, IR_I(0));
		ir_store(f, dst, at + 8, 8, v);
	}
}

static struct ir_val thread_key(struct gen *g)
{
	struct ir_fn *f = g->f;
	struct ir_val tid = ir_mov(f, gen_tid(g));
	uint32_t ok = ir_new_label(f);

	/* The idle threads of all CPUs have tid 0: use the CPU's number. */
	ir_if(f, tid, IF_NE, IR_I(0), ok);
	ir_set(f, tid, ir_bin(f, ALU_OR, ir_call(f, HELPER_CPU, 0), IR_I(0x40000000)));
	ir_place(f, ok);
	return tid;
}

/* Returns true when a routine of bpf/ writes this text. On the stack, the verifier accepts its word
 * stores only at offsets that it knows to be aligned. */
static bool by_routine(const struct node *n)
{
	switch (n->kind) {
	case N_CALL: return n->id && n->id->kind == IDENT_SUBR && n->id->subr != SUBR_COPYINSTR;
	case N_TERNARY: return by_routine(n->e.b) || by_routine(n->e.c);
	case N_COMMA: return by_routine(n->e.b);
	case N_CAST:
	case N_STRINGOF: return by_routine(n->kind == N_CAST ? n->t.a : n->e.a);
	default: return false;
	}
}

/* Builds the key in memory that the verifier tracks: on the stack, or in scratch memory when it is
 * large. */
struct ir_val gen_tuple(struct gen *g, const struct tuple_layout *l, const struct node *keys,
			bool thread)
{
	struct ir_fn *f = g->f;
	bool is_agg = false, text = false, routine = false, null_is_empty = g->null_is_empty;
	struct ir_val at, fields;
	uint32_t i = 0;

	for (uint32_t k = 0; k < l->n; k++)
		text |= l->fields[k].kind == FIELD_STRING;
	for (const struct node *k = keys; k && i < l->n; k = k->next, i++)
		routine |= l->fields[i].kind == FIELD_STRING && by_routine(k);
	i = 0;
	for (uint32_t a = 0; a < g->b->aggs.n; a++)
		is_agg |= l == &g->agg_keys[a];
	if (l->size <= KEY_ON_STACK && !routine)
		at = ir_stack(f, ir_new_object(f, l->size, "key"), 0);
	else
		at = gen_scratch_temp(g, l->size);
	if (l->padded || text || l->tag)
		zero(g, at, 0, l->size);
	fields = at;
	if (l->tag) {
		ir_store(f, at, 0, 8, IR_I(l->tag));
		fields = ir_bin(f, ALU_ADD, at, IR_I(8));
	}
	g->null_is_empty = false; /* keys are always read this way */
	for (const struct node *k = keys; k && i < l->n; k = k->next, i++)
		gen_field(g, &l->fields[i], k, fields, is_agg);
	g->null_is_empty = null_is_empty;
	if (thread)
		ir_store(f, fields, (int32_t)l->fields[l->n].offset, 4, thread_key(g));
	return at;
}
