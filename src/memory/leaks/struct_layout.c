/* Makes layouts of types: where a struct has pointers, and to what. */
#include "memory/leaks/typed_blocks.h"

enum {
	FIELDS_MAX = 1024,        /* of one layout */
	ALL_FIELDS_MAX = 1 << 22, /* of all */
	LEVELS = 16,              /* of structs within structs */
	OWN_MEMBER = 2,           /* the level of an array that is a member of the struct itself */
	NAMES = 8,                /* of typedefs and qualifiers */
	KEY_ROOM = 640,
	POINTER_BYTES = 8,
	STEPS_MAX = 1 << 16,     /* members and elements of one layout that are looked at */
	ALL_STEPS_MAX = 1 << 26, /* of all layouts */
};

void layouts_init(struct layouts *ls, struct type_graph *g, struct arena *arena)
{
	memset(ls, 0, sizeof(*ls));
	ls->g = g;
	ls->arena = arena;
	vec_add(&ls->v);
}

void layouts_fini(struct layouts *ls)
{
	vec_fini(&ls->v);
	vec_fini(&ls->fields);
	vec_fini(&ls->items);
	hash_fini(&ls->by_type);
	hash_fini(&ls->by_name);
	hash_fini(&ls->shown);
	hash_fini(&ls->of_class);
}

/* Writes the key of a struct: units have types of their own, which are the same when they have one
 * name and size. A struct without a name has that of the typedef. Returns 0 when there is none. */
static size_t struct_key(struct layouts *ls, type_id t, char *buf)
{
	const char *name = "";
	type_id bare = type_strip(ls->g, t);
	uint64_t size = type_size(ls->g, bare);
	size_t n;

	for (uint32_t i = 0; i < NAMES && type_kind(ls->g, t) >= TYPE_TYPEDEF &&
			     type_kind(ls->g, t) <= TYPE_RESTRICT;
	     i++) {
		if (type_kind(ls->g, t) == TYPE_TYPEDEF)
			name = type_tag(ls->g, t);
		t = type_ref(ls->g, t);
	}
	if (*type_tag(ls->g, bare))
		name = type_tag(ls->g, bare);
	n = strlen(name);
	if (!n || n > KEY_ROOM - sizeof(size))
		return 0;
	memcpy(buf, &size, sizeof(size));
	memcpy(buf + sizeof(size), name, n);
	return sizeof(size) + n;
}

void layouts_add(struct layouts *ls, const struct type_user_item *item)
{
	enum type_kind kind = type_kind(ls->g, type_strip(ls->g, item->type));
	char key[KEY_ROOM];
	size_t n = struct_key(ls, item->type, key);
	const char *name;
	uint64_t *at;
	bool is_new;

	if (!n)
		return;
	name = !item->is_tag ? arena_strdup(ls->arena, item->name)
			     : arena_printf(ls->arena, "%s %s",
					    kind == TYPE_UNION ? "union" : "struct", item->name);
	at = hash_put(&ls->shown, key, n, &is_new);
	*at = is_new ? (uintptr_t)name : 0;
	if (!item->is_system)
		vec_push(&ls->items, (struct layout_item){ .name = name,
							   .type = item->type,
							   .size = type_size(ls->g, item->type) });
	if (!item->is_tag) {
		at = hash_put(&ls->of_class, name, strlen(name), &is_new);
		if (is_new)
			*at = item->type;
	}
}

static int by_size(const void *a, const void *b)
{
	const struct layout_item *x = a, *y = b;

	return COMPARE(x->size, y->size) ?: strcmp(x->name, y->name);
}

void layouts_ready(struct layouts *ls)
{
	if (ls->items.n)
		qsort(ls->items.v, ls->items.n, sizeof(*ls->items.v), by_size);
}

/* --- fields --- */

/* What a layout is made of, until it is whole. */
struct making {
	VEC(struct layout_field) fields;
	uint64_t tail_at;
	type_id tail;
	uint32_t steps, most; /* members and elements that were, and that may be, looked at */
};

/* Returns false when the layout has as much as it may have. The rest of it is left out. */
static bool may_add(struct making *m)
{
	return m->fields.n < FIELDS_MAX && m->steps < m->most && ++m->steps;
}

static void add_field(struct making *m, enum field_kind kind, uint64_t at, uint64_t size,
		      type_id to)
{
	if (m->fields.n < FIELDS_MAX && at + size <= UINT32_MAX && size)
		vec_push(&m->fields, (struct layout_field){ .at = (uint32_t)at,
							    .size = (uint32_t)size,
							    .kind = (uint8_t)kind,
							    .to = to });
}

static void add_type(struct layouts *ls, struct making *m, type_id t, uint64_t at, uint32_t level);

static void add_array(struct layouts *ls, struct making *m, type_id array, uint64_t at,
		      uint32_t level)
{
	type_id of = type_ref(ls->g, array), bare = type_strip(ls->g, of);
	uint64_t size = type_size(ls->g, bare);
	uint32_t n = type_nelems(ls->g, array);

	switch (type_kind(ls->g, bare)) {
	case TYPE_POINTER:
	case TYPE_STRUCT:
	case TYPE_ARRAY:
		if (!n && level == OWN_MEMBER) {
			m->tail_at = at;
			m->tail = of;
		}
		for (uint32_t i = 0; i < n && size && may_add(m); i++)
			add_type(ls, m, of, at + i * size, level);
		break;
	case TYPE_INT:
		add_field(m, size < POINTER_BYTES ? FIELD_OTHER : FIELD_NUMBER, at, n * size, 0);
		break;
	default: add_field(m, FIELD_OTHER, at, n * size, 0); break;
	}
}

static void add_members(struct layouts *ls, struct making *m, type_id t, uint64_t at,
			uint32_t level)
{
	const struct type_member *v;
	uint32_t n;

	v = type_members(ls->g, t, &n);
	for (uint32_t i = 0; i < n && may_add(m); i++)
		if (!v[i].bit_size)
			add_type(ls, m, v[i].type, at + v[i].bit_offset / 8, level);
}

static void add_type(struct layouts *ls, struct making *m, type_id t, uint64_t at, uint32_t level)
{
	type_id bare = type_strip(ls->g, t);
	uint64_t size = type_size(ls->g, bare);

	if (level > LEVELS)
		return;
	switch (type_kind(ls->g, bare)) {
	case TYPE_POINTER: {
		type_id to = type_ref(ls->g, bare);
		bool code = type_kind(ls->g, type_strip(ls->g, to)) == TYPE_FUNC;

		if (size == POINTER_BYTES && at % POINTER_BYTES == 0)
			add_field(m, code ? FIELD_CODE : FIELD_POINTER, at, size, to);
		break;
	}
	case TYPE_ARRAY: add_array(ls, m, bare, at, level + 1); break;
	case TYPE_STRUCT: add_members(ls, m, bare, at, level + 1); break;
	case TYPE_INT:
		add_field(m,
			  type_int_flags(ls->g, bare) & TYPE_BOOL && size == 1 ? FIELD_FLAG
									       : FIELD_NUMBER,
			  at, size, 0);
		break;
	case TYPE_ENUM:
	case TYPE_FLOAT: add_field(m, FIELD_NUMBER, at, size, 0); break;
	default: add_field(m, FIELD_OTHER, at, size, 0); break;
	}
}

static uint32_t make_layout(struct layouts *ls, type_id t, const char *name)
{
	const uint32_t left = ALL_STEPS_MAX - ls->steps;
	struct making m = { .most = left < STEPS_MAX ? left : STEPS_MAX };
	uint32_t number = 0;

	add_type(ls, &m, t, 0, 0);
	ls->steps += m.steps;
	ls->cut |= left < STEPS_MAX && m.steps == left;
	if (ls->fields.n + m.fields.n < ALL_FIELDS_MAX) {
		number = ls->v.n;
		vec_push(&ls->v, (struct layout){ .name = name,
						  .size = type_size(ls->g, t),
						  .first = ls->fields.n,
						  .n = m.fields.n,
						  .tail_at = m.tail_at,
						  .tail = m.tail });
		for (uint32_t i = 0; i < m.fields.n; i++)
			vec_push(&ls->fields, m.fields.v[i]);
	}
	vec_fini(&m.fields);
	return number;
}

static uint32_t struct_layout(struct layouts *ls, type_id t)
{
	char key[KEY_ROOM];
	size_t n = struct_key(ls, t, key);
	uint64_t *at = n ? hash_get(&ls->by_name, key, n) : NULL, *shown;
	uint32_t number;

	if (at)
		return (uint32_t)*at;
	shown = n ? hash_get(&ls->shown, key, n) : NULL;
	number = make_layout(ls, t, shown ? (const char *)(uintptr_t)*shown : NULL);
	if (n)
		*hash_put(&ls->by_name, key, n, NULL) = number;
	return number;
}

uint32_t layout_of(struct layouts *ls, type_id t)
{
	const type_id asked = t;
	uint64_t *at = hash_get(&ls->by_type, &asked, sizeof(asked));
	uint32_t number = 0;
	type_id bare;

	if (at)
		return (uint32_t)*at;
	bare = type_strip(ls->g, t);
	for (uint32_t i = 0; i < LEVELS && type_kind(ls->g, bare) == TYPE_ARRAY; i++)
		bare = type_strip(ls->g, t = type_ref(ls->g, bare));
	switch (type_kind(ls->g, bare)) {
	case TYPE_STRUCT:
	case TYPE_UNION: number = type_size(ls->g, bare) ? struct_layout(ls, t) : 0; break;
	case TYPE_POINTER: number = make_layout(ls, bare, NULL); break;
	default: break;
	}
	*hash_put(&ls->by_type, &asked, sizeof(asked), NULL) = number;
	return number;
}

uint32_t layout_of_class(struct layouts *ls, const char *name)
{
	uint64_t *at = hash_get(&ls->of_class, name, strlen(name));

	return at ? layout_of(ls, (type_id)*at) : 0;
}
