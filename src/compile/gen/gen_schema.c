/* Makes the schema of a segment: the fields of its record, and the actions that read them. */
#include "compile/gen/gen_private.h"

#include "wire/wire_record.h"

static bool is_subr(const struct node *n)
{
	return n->kind == N_CALL && n->id && n->id->kind == IDENT_SUBR;
}

/* Returns the action of a statement, NULL when it is an expression or an aggregation. */
const struct subr_info *gen_action_of(const struct node *stmt)
{
	const struct node *e = stmt->block.body;

	return is_subr(e) && subr_table[e->id->subr].kind == SUBR_KIND_ACTION
		       ? &subr_table[e->id->subr]
		       : NULL;
}

static uint32_t add_field(struct gen_schema *s, enum field_kind kind, uint64_t size, uint32_t align,
			  type_id type, const struct node *value)
{
	s->size = (s->size + align - 1) / align * align;
	if (size > RECORD_MAX || s->size > RECORD_MAX - size) {
		s->too_large = true;
		size = 8;
	}
	vec_push(&s->fields,
		 (struct field){
			 .kind = kind, .offset = s->size, .size = (uint32_t)size, .type = type });
	vec_push(&s->values, value);
	s->size += (uint32_t)size;
	return s->fields.n - 1;
}

static uint32_t value_field(struct gen_schema *s, const struct node *n)
{
	struct gen *g = s->g;
	enum field_kind k;
	struct str_info info;
	uint64_t size;

	if (gen_is_string(g, n)) {
		info = gen_str_info(g, n);
		if (info.cls == STR_ID)
			return add_field(s, FIELD_STRID, 4, 4, T_STRING, n);
		return add_field(s, FIELD_STRING, info.bound, 8, T_STRING, n);
	}
	if (type_kind(g->types, n->type) == TYPE_DYN) {
		k = gen_dyn_kind(n, false);
		if (k == FIELD_KSTACK)
			return add_field(s, k, 8 + 8 * gen_frames(g, n), 8, T_DYN, n);
		if (k == FIELD_USTACK)
			return add_field(s, k, 16 + 8 * gen_frames(g, n), 8, T_DYN, n);
		return add_field(s, k, k == FIELD_SYM || k == FIELD_MOD ? 8 : 16, 8, T_DYN, n);
	}
	size = type_size(g->types, n->type);
	if (type_is_scalar(g->types, n->type)) {
		if (size != 1 && size != 2 && size != 4)
			size = 8;
		return add_field(s, FIELD_INT, size, size, n->type, n);
	}
	return add_field(s, FIELD_BYTES, size, 8, n->type, n);
}

struct action *gen_add_action(struct gen_schema *s, enum action_kind kind, const struct node *call)
{
	struct action *a = vec_add(&s->actions);
	uint32_t n = 1;

	for (const struct node *k = call ? call->call.args : NULL; k; k = k->next)
		n++;
	a->kind = kind;
	a->loc = call ? call->loc : 0;
	a->fields = arena_array(s->g->arena, uint32_t, n);
	a->aggs = arena_array(s->g->arena, uint32_t, n);
	return a;
}

static void take_values(struct gen_schema *s, struct action *a, const struct node *args)
{
	for (; args; args = args->next)
		a->fields[a->nfields++] = value_field(s, args);
}

static const struct node *take_agg(struct action *a, const struct node *args)
{
	if (args && args->kind == N_AGG)
		a->aggs[a->naggs++] = args->id->agg;
	return args ? args->next : NULL;
}

/* Adds print()'s fields. print() shows the object behind a pointer to a struct and behind the
 * address of anything, and any other value itself. */
static void print_fields(struct gen_schema *s, struct action *a, const struct node *arg)
{
	struct gen *g = s->g;
	type_id to = type_is_pointer(g->types, arg->type)
			     ? type_ref(g->types, type_strip(g->types, arg->type))
			     : T_VOID;
	uint64_t size = type_size(g->types, to);

	a->fields[a->nfields++] = value_field(s, arg);
	if (size && ((arg->kind == N_UNARY && arg->op == OP_ADDROF) ||
		     (!type_is_char_pointer(g->types, arg->type) && type_is_sou(g->types, to)))) {
		uint64_t most = (uint64_t)opt_num(g->options, OPT_PRINTSIZE);

		if (size > most)
			size = most;
		a->fields[a->nfields++] = add_field(s, FIELD_BYTES, size, 8, to, NULL);
	}
}

static const char *literal(const struct node *n)
{
	return n && n->kind == N_STR ? n->s.text : NULL;
}

void gen_describe(struct gen_schema *s, const struct node *call)
{
	const struct node *args = call->call.args;
	struct gen *g = s->g;
	struct action *a;

	switch (call->id->subr) {
	case SUBR_TRACE: take_values(s, gen_add_action(s, ACT_TRACE, call), args); break;
	case SUBR_TRACEMEM:
		a = gen_add_action(s, ACT_TRACEMEM, call);
		a->fields[a->nfields++] =
			add_field(s, FIELD_MEM, 8 + args->next->i.value, 8, T_VOID, NULL);
		break;
	case SUBR_PCAP:
		a = gen_add_action(s, ACT_PCAP, call);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_INT, args->next);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_UINT32, NULL);
		a->fields[a->nfields++] = add_field(s, FIELD_MEM,
						    8 + (uint64_t)opt_num(g->options, OPT_PCAPSIZE),
						    8, T_VOID, NULL);
		break;
	case SUBR_PRINTF:
	case SUBR_FREOPEN:
	case SUBR_SYSTEM:
		a = gen_add_action(s,
				   call->id->subr == SUBR_PRINTF   ? ACT_PRINTF
				   : call->id->subr == SUBR_SYSTEM ? ACT_SYSTEM
								   : ACT_FREOPEN,
				   call);
		a->format = call->aux;
		take_values(s, a, args->next);
		s->prints |= a->kind == ACT_PRINTF;
		s->prints |= a->kind != ACT_PRINTF;
		break;
	case SUBR_PRINTA:
		a = gen_add_action(s, ACT_PRINTA, call);
		a->format = call->aux;
		if (args && args->kind != N_AGG)
			args = args->next;
		while (args)
			args = take_agg(a, args);
		break;
	case SUBR_PRINT: print_fields(s, gen_add_action(s, ACT_PRINT, call), args); break;
	case SUBR_STACK:
	case SUBR_USTACK:
	case SUBR_JSTACK:
	case SUBR_LSTACK:
	case SUBR_SYM:
	case SUBR_FUNC:
	case SUBR_MOD:
	case SUBR_USYM:
	case SUBR_UFUNC:
	case SUBR_UMOD:
	case SUBR_UADDR:
		a = gen_add_action(s,
				   call->id->subr == SUBR_STACK ? ACT_STACK
				   : call->id->subr == SUBR_USTACK ||
						   call->id->subr == SUBR_JSTACK ||
						   call->id->subr == SUBR_LSTACK
					   ? ACT_USTACK
					   : ACT_SYM,
				   call);
		a->fields[a->nfields++] = value_field(s, call);
		break;
	case SUBR_EXIT:
		a = gen_add_action(s, ACT_EXIT, call);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_INT, args);
		g->exits = true;
		break;
	case SUBR_CLEAR: take_agg(gen_add_action(s, ACT_CLEAR, call), args); break;
	case SUBR_DENORMALIZE: take_agg(gen_add_action(s, ACT_DENORMALIZE, call), args); break;
	case SUBR_TRUNC:
	case SUBR_NORMALIZE:
		a = gen_add_action(s, call->id->subr == SUBR_TRUNC ? ACT_TRUNC : ACT_NORMALIZE,
				   call);
		args = take_agg(a, args);
		if (args)
			a->fields[a->nfields++] = add_field(s, FIELD_INT, 8, 8, T_INT64, args);
		break;
	case SUBR_COMMIT:
	case SUBR_DISCARD:
		a = gen_add_action(s, call->id->subr == SUBR_COMMIT ? ACT_COMMIT : ACT_DISCARD,
				   call);
		a->fields[a->nfields++] = add_field(s, FIELD_INT, 4, 4, T_UINT32, args);
		break;
	case SUBR_FTRUNCATE: (void)gen_add_action(s, ACT_FTRUNCATE, call); break;
	case SUBR_SETOPT:
		a = gen_add_action(s, ACT_SETOPT, call);
		a->text = arena_strdup(g->arena, literal(args) ? literal(args) : "");
		if (args->next && literal(args->next))
			a->text2 = arena_strdup(g->arena, literal(args->next));
		else if (args->next)
			a->fields[a->nfields++] = value_field(s, args->next);
		break;
	default: return;
	}
	s->control |= (subr_table[call->id->subr].flags & SUBR_CONTROL) != 0;
	s->prints = true;
}
