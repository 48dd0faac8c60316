/* A heap that is whole but for some words that the input names: 2 bytes that choose a word, 8 bytes
 * of its new value. Every walk ends, no block is counted twice, and each leaked block is found by
 * its address. Then the types of blocks are looked for, by a few types that lead to each other; a
 * type that is found fits its block. */
#include <assert.h>

#include "memory/leaks/typed_blocks.h"
#include "unit/heap_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHUNKS = 40, PATCH = 10, VARIABLES = 6 };

static type_id add_struct(struct typed_blocks *t, const char *name)
{
	type_id s = type_new_sou(t->layouts.g, TYPE_STRUCT, name);

	type_add_member(t->layouts.g, s, "next", type_new_pointer(t->layouts.g, s), 0);
	return s;
}

static void end_struct(struct typed_blocks *t, type_id s)
{
	type_complete(t->layouts.g, s);
	layouts_add(&t->layouts, &(struct type_user_item){ .name = type_tag(t->layouts.g, s),
							   .type = s,
							   .is_tag = true });
}

/* struct node { node *next; }, struct list { list *next; node *first[2]; }, struct table { table
 * *next; list *slots[]; }, struct task { task *next; void (*call)(); bool is; long n; }. */
static void add_types(struct typed_blocks *t)
{
	struct type_graph *g = t->layouts.g;
	type_id node = add_struct(t, "node"), list = add_struct(t, "list");
	type_id table = add_struct(t, "table"), task = add_struct(t, "task");
	type_id call = type_new_func(g, T_VOID, NULL, 0, false);

	type_add_member(g, list, "first", type_new_array(g, type_new_pointer(g, node), 2), 0);
	type_add_member(g, table, "slots", type_new_array(g, type_new_pointer(g, list), 0), 0);
	type_add_member(g, task, "call", type_new_pointer(g, call), 0);
	type_add_member(g, task, "is", T_BOOL, 0);
	type_add_member(g, task, "n", T_LONG, 0);
	end_struct(t, node);
	end_struct(t, list);
	end_struct(t, table);
	end_struct(t, task);
	layouts_ready(&t->layouts);
	for (uint64_t i = 0; i < VARIABLES; i++) {
		type_id to = i % 3 == 0 ? node : i % 3 == 1 ? list : table;

		vec_push(&t->variables,
			 (struct typed_variable){ HM_VAR + 64 * i, type_new_pointer(g, to) });
	}
}

static const char *no_class(void *arg, uint64_t word)
{
	(void)arg;
	(void)word;
	return NULL;
}

static void look_for_types(struct leaks *l, const struct memory_copy *c, struct heap_memory *m)
{
	struct typed_blocks t = { .c = c, .h = l->heap, .maps = &m->maps };

	layouts_init(&t.layouts, type_graph_new(), &l->arena);
	add_types(&t);
	typed_blocks_find(&t, no_class, NULL);
	for (uint32_t i = 0; i < l->blocks.n; i++) {
		uint32_t chunk = l->blocks.v[i].chunk;
		uint32_t layout = typed_block_guess(&t, chunk);

		if (!layout)
			continue;
		assert(t.layouts.v.v[layout].name);
		assert(typed_block_fits(&l->heap->chunks.v[chunk], &t.layouts.v.v[layout]));
		typed_block_set(&t, chunk, layout);
		typed_blocks_follow(&t);
	}
	for (uint32_t i = 0; i < l->heap->chunks.n; i++)
		assert(!t.of[i] || chunk_usable(&l->heap->chunks.v[i]) >=
					   t.layouts.v.v[t.of[i] & ~TYPED_LOOSE].size);
	assert(typed_step(&t));
	type_graph_free(t.layouts.g);
	typed_blocks_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct heap_memory m;
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;
	uint64_t before = 0, held = 0;
	struct err *e;

	heap_memory_init(&m);
	heap_memory_chunk(&m, 0x290, false);
	for (int i = 0; i < CHUNKS; i++) {
		uint64_t at = heap_memory_chunk(&m, 0x20 + 0x10 * (i % 5), i % 3 == 0);

		heap_memory_put(&m, i % 7 ? at + 8 : HM_VAR + 8 * (uint64_t)i, before);
		before = at;
	}
	for (; size >= PATCH; data += PATCH, size -= PATCH) {
		uint32_t word = (data[0] | (uint32_t)data[1] << 8) % (HM_PARTS * HM_SIZE / 8);

		memcpy(m.bytes[word / (HM_SIZE / 8)] + word % (HM_SIZE / 8) * 8, data + 2, 8);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	e = leaks_find(c, &l);
	if (!e) {
		for (uint32_t i = 0; i < l->blocks.n; i++) {
			const struct leaks_block *b = &l->blocks.v[i];

			held += 1 + b->held;
			assert(b->size && heap_chunk(l->heap, b->addr) == b->chunk);
		}
		assert(held == l->leaked && l->leaked <= l->used);
		look_for_types(l, c, &m);
		assert(l->used_bytes + l->unused_bytes <= HM_PARTS * HM_SIZE);
		leaks_free(l);
	}
	err_free(e);
	memory_copy_free(c);
	return 0;
}
