/* Types of leaked blocks that are no objects of C++ with virtual functions, by the program's DWARF.
 *
 *	variables ── typed pointers ──> blocks in use ── by their stacks ──> leaked blocks
 *	                                      types of their size ── words ──> leaked blocks
 */
#include "base/changed.h"
#include "memory/leaks/typed_blocks.h"
#include "program/object/dwarf.h"

enum { ROUNDS = 3 }; /* a type that was found may prove others */

static void take_item(void *arg, const struct type_user_item *item)
{
	struct typed_blocks *t = arg;

	if (item->addr)
		vec_push(&t->variables, (struct typed_variable){ item->addr, item->type });
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

void leaks_find_types(struct leaks *l, const struct memory_copy *c, struct space *s,
		      const char *(*class_of)(void *arg, uint64_t word), void *arg)
{
	struct typed_blocks t = { .c = c, .h = l->heap };
	uint64_t changed = changed_count();
	struct type_graph *g;

	if (has_all_types(l))
		return;
	g = type_graph_new();
	type_use_space(g, s);
	layouts_init(&t.layouts, g, &l->arena);
	type_user_each(g, take_item, &t);
	if (t.layouts.items.n && !err_drop(space_mappings(s, 0, &t.maps))) {
		layouts_ready(&t.layouts);
		typed_blocks_find(&t, class_of, arg);
		types_by_stack(&t, l);
		for (uint32_t i = 0; i < ROUNDS && types_by_pointers(&t, l); i++)
			;
		if (!typed_step(&t))
			vec_push(&l->remarks,
				 "types: some are left out: there are too many blocks");
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
	if (changed_count() != changed || type_user_is_cut(g))
		drop_types(l);
	typed_blocks_fini(&t);
	type_graph_free(g);
}
