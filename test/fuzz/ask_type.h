/* Everything the type graph answers about a type, for fuzz targets; and a value of it, made of the
 * input's bytes, is printed. */
#ifndef DESCRY_TEST_FUZZ_ASK_TYPE_H
#define DESCRY_TEST_FUZZ_ASK_TYPE_H

#include "program/type/type.h"
#include "render/value.h"

enum { ASK_TYPE_VALUE_MAX = 256, ASK_TYPE_MEMBERS_MAX = 8 };

struct ask_type {
	struct type_graph *g;
	struct arena *arena;
	const uint8_t *input;
	size_t len;
};

/* Printed exactly as long as it is: a read past the end is seen. */
static inline void ask_type_print(const struct ask_type *a, type_id t)
{
	struct value_style style = { .zeros = a->len % 2, .dtrace = a->len % 3 == 0 };
	size_t n = a->len < ASK_TYPE_VALUE_MAX ? a->len : ASK_TYPE_VALUE_MAX;
	uint8_t *bytes = xmemdup(a->input, n);
	struct out o;

	out_init(&o, NULL);
	value_print(&o, a->g, t, bytes, n, &style);
	value_json(&o, a->g, t, bytes, n, &style);
	out_fini(&o);
	free(bytes);
}

static inline void ask_type(const struct ask_type *a, type_id t)
{
	struct type_graph *g = a->g;
	struct type_member m;
	uint32_t n;
	bool varargs;
	const struct type_member *members = type_members(g, t, &n);

	for (uint32_t i = 0; i < n && i < ASK_TYPE_MEMBERS_MAX; i++) {
		type_size(g, members[i].type);
		type_name(g, a->arena, members[i].type, members[i].name);
	}
	type_find_member(g, t, "a", &m);
	type_enumerators(g, t, &n);
	type_params(g, t, &n, &varargs);
	type_size(g, t);
	type_align(g, t);
	type_name(g, a->arena, t, "x");
	type_same(g, t, type_ref(g, t));
	type_is_complete(g, t);
	type_is_char_array(g, t);
	type_is_char_pointer(g, t);
	ask_type_print(a, t);
}

#endif
