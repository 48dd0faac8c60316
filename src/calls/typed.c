/* Prototypes of functions by the debugging information of their library: where no file and no
 * shipped prototype has the function. */
#include "calls/calls.h"

enum {
	MAX_DEPTH = 4, /* of structures in structures */
	MAX_NEST = 16, /* of arrays and structures in each other */
};

struct maker {
	struct calls *c;
	struct type_graph *g;
	uint32_t depth, nest;
};

static struct prototype_type *make(struct maker *m, type_id t);

static struct prototype_type *new_type(struct maker *m, enum prototype_kind kind, uint64_t size)
{
	struct prototype_type *t = arena_new(&m->c->arena, struct prototype_type);

	t->kind = kind;
	t->size = (uint32_t)size;
	t->align = size && size <= 8 && !(size & (size - 1)) ? (uint32_t)size : 1;
	return t;
}

static struct prototype_type *address(struct maker *m)
{
	struct prototype_type *t = new_type(m, PROTOTYPE_INT, 8);

	t->lens = LENS_HEX;
	return t;
}

/* Returns the name of a member or of an enumerator, "" when it is no name of C. The library's file
 * can have others, which would end a line of text or separate arguments. */
static const char *plain(const char *name)
{
	for (const char *s = name; *s; s++)
		if ((uint8_t)*s <= ' ' || *s == 0x7f)
			return "";
	return name;
}

/* What cannot be shown: "...". */
static struct prototype_type *hidden(struct maker *m, type_id id)
{
	struct prototype_type *t = new_type(m, PROTOTYPE_STRUCT, type_size(m->g, id));

	t->align = type_align(m->g, id);
	t->lens = LENS_DOTS;
	return t;
}

static struct prototype_type *array(struct maker *m, type_id element, uint64_t n, bool text)
{
	struct prototype_type *of = make(m, element), *t;

	t = new_type(m, PROTOTYPE_ARRAY, n * of->size);
	t->align = of->align;
	t->target = of;
	t->length.value = n;
	if (text) {
		t->lens = LENS_STRING;
		t->length.zero = true;
	}
	return t;
}

static struct prototype_type *structure(struct maker *m, type_id id)
{
	uint32_t n, at = 0;
	const struct type_member *members = type_members(m->g, id, &n);
	struct prototype_type *t = new_type(m, PROTOTYPE_STRUCT, type_size(m->g, id));

	t->align = type_align(m->g, id);
	if (!n || m->depth >= MAX_DEPTH || t->size > CALLS_MEMORY_MAX)
		return hidden(m, id);
	t->fields = arena_array(&m->c->arena, const struct prototype_type *, n);
	t->field_names = arena_array(&m->c->arena, const char *, n);
	m->depth++;
	for (uint32_t i = 0; i < n; i++) {
		struct prototype_type *f = make(m, members[i].type);

		/* A pointer within memory that was read leads to memory that was not. */
		if (f->kind == PROTOTYPE_POINTER)
			f = address(m);
		at = (uint32_t)round_up(at, f->align);
		if (members[i].bit_size || members[i].bit_offset != 8 * (uint64_t)at || !f->size)
			break;
		t->fields[i] = f;
		t->field_names[i] = *plain(members[i].name) ? members[i].name : NULL;
		t->nfields++;
		at += f->size;
	}
	m->depth--;
	return t->nfields == n ? t : hidden(m, id);
}

static struct prototype_type *enumeration(struct maker *m, type_id id)
{
	struct prototype_type *t = new_type(m, PROTOTYPE_INT, type_size(m->g, id));
	uint32_t n;
	const struct type_enumerator *e = type_enumerators(m->g, id, &n);
	struct prototype_name *names = arena_array(&m->c->arena, struct prototype_name, n + 1);

	for (uint32_t i = 0; i < n; i++)
		if (*plain(e[i].name))
			names[t->nnames++] =
				(struct prototype_name){ e[i].name, e[i].value, e[i].value };
	t->is_signed = type_int_flags(m->g, id) & TYPE_SIGNED;
	t->lens = LENS_ENUM;
	t->names = names;
	return t;
}

static bool is_char(struct maker *m, type_id id)
{
	id = type_strip(m->g, id);
	return type_kind(m->g, id) == TYPE_INT && type_size(m->g, id) == 1 &&
	       type_int_flags(m->g, id) & TYPE_CHAR;
}

static bool is_const(struct maker *m, type_id id)
{
	while (type_kind(m->g, id) == TYPE_TYPEDEF)
		id = type_ref(m->g, id);
	return type_kind(m->g, id) == TYPE_CONST;
}

/* A const char * is text. Another one may be memory that the function writes. */
static struct prototype_type *pointer(struct maker *m, type_id to)
{
	struct prototype_type *t = new_type(m, PROTOTYPE_POINTER, 8), *of;

	if (is_char(m, to)) {
		if (!is_const(m, to))
			return address(m);
		t->target = of = array(m, T_CHAR, 0, false);
		of->length = (struct prototype_length){ .count = COUNT_ZERO, .zero = true };
		t->lens = LENS_STRING;
		return t;
	}
	if (m->depth)
		return address(m);
	m->depth++;
	of = make(m, to);
	m->depth--;
	if (of->kind == PROTOTYPE_VOID || of->kind == PROTOTYPE_POINTER || !of->size ||
	    of->lens == LENS_DOTS)
		return address(m);
	t->target = of;
	return t;
}

static struct prototype_type *make_new(struct maker *m, type_id id)
{
	struct prototype_type *t;
	uint32_t flags;

	switch (type_kind(m->g, id)) {
	case TYPE_VOID: return new_type(m, PROTOTYPE_VOID, 0);
	case TYPE_INT:
		t = new_type(m, PROTOTYPE_INT, type_size(m->g, id));
		flags = type_int_flags(m->g, id);
		t->is_signed = flags & TYPE_SIGNED;
		t->lens = flags & TYPE_BOOL ? LENS_BOOL : is_char(m, id) ? LENS_CHAR : LENS_DEFAULT;
		return t->size > 8 ? hidden(m, id) : t;
	case TYPE_FLOAT: return new_type(m, PROTOTYPE_FLOAT, type_size(m->g, id));
	case TYPE_ENUM: return enumeration(m, id);
	case TYPE_POINTER: return pointer(m, type_ref(m->g, id));
	case TYPE_STRUCT: return structure(m, id);
	case TYPE_ARRAY:
		if (m->depth < MAX_DEPTH && type_nelems(m->g, id) &&
		    type_size(m->g, id) <= CALLS_MEMORY_MAX)
			return array(m, type_ref(m->g, id), type_nelems(m->g, id),
				     is_char(m, type_ref(m->g, id)));
		return hidden(m, id);
	case TYPE_UNION:
	case TYPE_FORWARD: return hidden(m, id);
	default: return address(m);
	}
}

/* Makes a type once for each depth: a library chooses its types, and thousands of its functions can
 * have a parameter of an enumeration of a million names. */
static struct prototype_type *make(struct maker *m, type_id id)
{
	const struct {
		type_id id;
		uint32_t depth;
	} key = { type_strip(m->g, id), m->depth };
	uint64_t *at = hash_get(&m->c->by_type, &key, sizeof(key));
	struct prototype_type *t;

	if (at)
		return (struct prototype_type *)(uintptr_t)*at;
	if (m->nest >= MAX_NEST)
		return hidden(m, key.id);
	m->nest++;
	t = make_new(m, key.id);
	m->nest--;
	*hash_put(&m->c->by_type, &key, sizeof(key), NULL) = (uintptr_t)t;
	return t;
}

const struct prototype *calls_typed(struct calls *c, struct type_graph *g, const char *path,
				    uint64_t addr, const char *name)
{
	struct maker m = { .c = c, .g = g };
	const struct type_param *params;
	struct prototype *f;
	type_id func;
	bool varargs;
	uint32_t n;

	if (!g || !type_user_func(g, path, addr, &func))
		return NULL;
	params = type_params(g, func, &n, &varargs);
	f = arena_new(&c->arena, struct prototype);
	f->name = name;
	f->result = make(&m, type_ref(g, func));
	f->params = arena_array(&c->arena, struct prototype_param, PROTOTYPE_PARAMS);
	for (; f->nparams < n && f->nparams < PROTOTYPE_PARAMS; f->nparams++)
		f->params[f->nparams].type = make(&m, params[f->nparams].type);
	return f;
}
