/* Types of blocks that are no objects of C++ with virtual functions, by the program's DWARF.
 *
 *	variables ── typed pointers ──> blocks in use ── by their stacks ──> leaked blocks
 *	                                      types of their size ── words ──> leaked blocks
 */
#include "base/changed.h"
#include "memory/leaks/typed_blocks.h"
#include "program/object/dwarf.h"

enum {
	ROUNDS = 3, /* a type that was found may prove others */
	VARIABLE_NAME = 200,
};

static void take_item(void *arg, const struct type_user_item *item)
{
	struct typed_blocks *t = arg;

	if (item->addr)
		vec_push(&t->variables,
			 (struct typed_variable){
				 item->addr, item->type,
				 *item->name ? arena_strndup(t->layouts.arena, item->name,
							     strnlen(item->name, VARIABLE_NAME))
					     : NULL });
	else
		layouts_add(&t->layouts, item);
}

static void set_type(struct typed_blocks *t, struct leaks_block *b, uint32_t layout,
		     enum leaks_by by)
{
	b->type = t->layouts.v.v[layout].name;
	b->by = by;
	typed_block_set(t, b->chunk, layout);
	typed_blocks_follow(t);
}

/* Where all blocks of a stack that have a type have the same, its leaked blocks have it, too. */
static void types_by_stack(struct typed_blocks *t, struct leaks *l)
{
	enum { SEVERAL = UINT32_MAX };
	uint32_t *of = xcalloc(l->stacks.n + 1, sizeof(*of));

	for (uint32_t i = 0; l->chunk_stacks && i < l->heap->chunks.n; i++) {
		uint32_t *at = &of[l->chunk_stacks[i]], is = t->of[i];

		if (is)
			*at = *at && *at != is ? SEVERAL : is;
	}
	for (uint32_t i = 0; i < l->blocks.n; i++) {
		struct leaks_block *b = &l->blocks.v[i];
		uint32_t is = b->stack ? of[b->stack] : 0;

		if (!b->type && is && is != SEVERAL && !(is & TYPED_LOOSE) &&
		    t->layouts.v.v[is].name &&
		    typed_block_fits(&l->heap->chunks.v[b->chunk], &t->layouts.v.v[is]))
			set_type(t, b, is, LEAKS_BY_STACK);
	}
	free(of);
}

static bool types_by_pointers(struct typed_blocks *t, struct leaks *l)
{
	bool found = false;

	for (uint32_t i = 0; i < l->blocks.n; i++) {
		struct leaks_block *b = &l->blocks.v[i];
		uint32_t layout;

		if (b->type)
			continue;
		layout = typed_block_guess(t, b->chunk);
		if (layout)
			set_type(t, b, layout, LEAKS_BY_POINTERS);
		found |= layout;
	}
	return found;
}

static bool has_all_types(const struct leaks *l)
{
	for (uint32_t i = 0; i < l->blocks.n; i++)
		if (!l->blocks.v[i].type)
			return false;
	return true;
}

static void drop_types(struct leaks *l)
{
	for (uint32_t i = 0; i < l->blocks.n; i++) {
		struct leaks_block *b = &l->blocks.v[i];

		if (b->by == LEAKS_BY_TABLE)
			continue;
		b->type = NULL;
		b->by = LEAKS_BY_NOTHING;
	}
}

/* Reads the program's DWARF and gives types to the blocks. Then calls use(). Returns false when
 * what was read is not true or not whole. */
static bool with_types(struct leaks *l, const struct memory_copy *c, struct space *s,
		       const char *(*class_of)(void *arg, uint64_t word), void *arg,
		       void (*use)(struct typed_blocks *t, struct leaks *l, void *ret), void *ret)
{
	struct typed_blocks t = { .c = c, .h = l->heap };
	uint64_t changed = changed_count();
	struct type_graph *g = type_graph_new();
	bool whole;

	type_use_space(g, s);
	layouts_init(&t.layouts, g, &l->arena);
	type_user_each(g, take_item, &t);
	if (t.layouts.items.n && !err_drop(space_mappings(s, 0, &t.maps))) {
		layouts_ready(&t.layouts);
		typed_blocks_find(&t, class_of, arg);
		use(&t, l, ret);
		if (t.layouts.cut || !typed_step(&t))
			vec_push(&l->remarks,
				 "types: some are left out: there are too many blocks or types");
	}
	if (type_user_is_cut(g))
		vec_push(&l->remarks, "types: none is shown: the program has too many");
	if (dwarf_untrusted())
		vec_push(&l->remarks,
			 arena_printf(
				 &l->arena,
				 "types: the debugging information of %s is not read, because it "
				 "belongs to another user, or anybody can write it",
				 dwarf_untrusted()));
	/* Nothing that was read is true when a file was truncated meanwhile. A type without all its
	 * members agrees with blocks of others. */
	whole = changed_count() == changed && !type_user_is_cut(g);
	typed_blocks_fini(&t);
	type_graph_free(g);
	return whole;
}

static void lost_blocks_name(struct typed_blocks *t, struct leaks *l, void *ret)
{
	(void)ret;
	types_by_stack(t, l);
	for (uint32_t i = 0; i < ROUNDS && types_by_pointers(t, l); i++)
		;
}

void leaks_find_types(struct leaks *l, const struct memory_copy *c, struct space *s,
		      const char *(*class_of)(void *arg, uint64_t word), void *arg)
{
	if (!has_all_types(l) && !with_types(l, c, s, class_of, arg, lost_blocks_name, NULL))
		drop_types(l);
}

static int compare_variables(const void *x, const void *y)
{
	const struct leaks_variable *a = x, *b = y;

	return COMPARE(a->addr, b->addr);
}

static void all_blocks_name(struct typed_blocks *t, struct leaks *l, void *ret)
{
	struct leaks_types *types = ret;

	for (uint32_t i = 0; i < l->heap->chunks.n; i++) {
		const struct leaks_chunk *k = &l->heap->chunks.v[i];
		const uint32_t number = t->of[i];
		const struct layout *y = &t->layouts.v.v[number & ~TYPED_LOOSE];

		if (types->of[i].name || !number || number & TYPED_LOOSE || k->bits & CHUNK_FREE)
			continue;
		types->of[i].name = y->name;
		types->of[i].several = !typed_block_fits(k, y);
	}
	for (uint32_t i = 0; i < t->variables.n; i++) {
		const struct typed_variable *v = &t->variables.v[i];

		if (v->name)
			vec_push(&types->variables,
				 (struct leaks_variable){ v->addr, type_size(t->layouts.g, v->type),
							  v->name });
	}
	if (types->variables.n)
		qsort(types->variables.v, types->variables.n, sizeof(*types->variables.v),
		      compare_variables);
}

void leaks_types_by_dwarf(struct leaks *l, const struct memory_copy *c, struct space *s,
			  const char *(*class_of)(void *arg, uint64_t word), void *arg,
			  struct leaks_types *ret)
{
	struct leaks_types found = { 0 };

	found.of = xmalloc((l->heap->chunks.n + 1ull) * sizeof(*found.of));
	memcpy(found.of, ret->of, l->heap->chunks.n * sizeof(*found.of));
	if (with_types(l, c, s, class_of, arg, all_blocks_name, &found)) {
		leaks_types_fini(ret);
		*ret = found;
	} else {
		leaks_types_fini(&found);
	}
}
