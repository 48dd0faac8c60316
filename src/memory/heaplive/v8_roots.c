/* What holds V8's objects: the Isolate, the handles of C++, stacks, and native memory. */
#include "memory/heaplive/v8_heap.h"

enum {
	AROUND = 1 << 16, /* bytes of the Isolate, on each side of its heap */
	/* Blocks of persistent handles: each handle has its number in the block. */
	HANDLES = 256,
	HANDLE_SIZE = 32,
	HANDLE_NUMBER = 10,
	HANDLE_FLAGS = 11,
	HANDLE_STATE = 3,
	HANDLE_NORMAL = 1, /* its state when it is strong */
	STRINGS_END = 128,
	NOT_INTERNALIZED = 32, /* bit of a string's type */
};

/* The table of internalized strings holds none of them. */
static bool is_internalized(struct v8_reader *x, uint64_t pointer)
{
	const uint8_t *p = v8_object(x, pointer, 8);
	const struct v8_map *m = p ? v8_map_at(x, v8_at(p, 0)) : NULL;

	return m && m->type < STRINGS_END && !(m->type & NOT_INTERNALIZED);
}

static void add_root(void *arg, uint64_t word, const char *kind)
{
	struct v8_reader *x = arg;

	if (v8_is_object(x, word) && x->holds && !is_internalized(x, word)) {
		x->holds--;
		graph_root(x->graph, word - V8_TAG, kind);
	}
}

static void roots_in(struct v8_reader *x, uint64_t from, uint64_t to, const char *kind)
{
	for (uint64_t at = round_up(from, 8), have = 0; at + 8 <= to; at += 8) {
		const uint8_t *p = v8_memory(x, at, &have);

		if (!p || have < 8)
			return;
		add_root(x, v8_at(p, 0), kind);
	}
}

/* Returns true for a block of persistent handles, and adds the strong ones. */
static bool handles_add(struct v8_reader *x, uint64_t addr)
{
	uint64_t have;
	const uint8_t *p = v8_memory(x, addr, &have);

	if (!p || have < HANDLES * HANDLE_SIZE)
		return false;
	for (uint32_t i = 0; i < HANDLES; i++)
		if (p[i * HANDLE_SIZE + HANDLE_NUMBER] != i)
			return false;
	for (uint32_t i = 0; i < HANDLES; i++, p += HANDLE_SIZE)
		if ((p[HANDLE_FLAGS] & HANDLE_STATE) == HANDLE_NORMAL)
			add_root(x, v8_at(p, 0), "persistent handle");
	return true;
}

static void handle_blocks_add(struct v8_reader *x)
{
	for (uint32_t i = 0; i < x->blocks.chunks.n; i++) {
		struct leaks_chunk *c = &x->blocks.chunks.v[i];
		const uint64_t usable = chunk_usable(c);

		if (!(c->bits & CHUNK_FREE) && usable >= HANDLES * HANDLE_SIZE &&
		    usable < HANDLES * HANDLE_SIZE + 256 && handles_add(x, c->addr + CHUNK_HEADER))
			c->bits |= CHUNK_REACHED;
	}
}

/* The Isolate has its table of roots, and its Heap, in one piece. */
static void isolates_add(struct v8_reader *x)
{
	for (uint32_t i = 0; i < x->heaps.n; i++) {
		const uint64_t heap = x->heaps.v[i];
		const struct memory_region *r = memory_region_at(x->copy, heap);
		uint64_t from = heap - AROUND, to = heap + AROUND;
		uint32_t k = x->has_blocks ? heap_chunk(&x->blocks, heap) : LEAKS_NONE;

		if (!r)
			continue;
		if (k != LEAKS_NONE) {
			const struct leaks_chunk *c = &x->blocks.chunks.v[k];

			from = c->addr + CHUNK_HEADER;
			to = from + chunk_usable(c);
		}
		roots_in(x, from < r->start ? r->start : from, to < r->end ? to : r->end, "V8");
	}
}

/* Memory that is no data of a library, no stack and no block of malloc(3) is V8's own heap, or has
 * bytes of the program. */
static void skip_anonymous(struct v8_reader *x, space_range_vec *ret)
{
	memory_word_vec stacks = { 0 };

	memory_stacks(x->copy, &stacks);
	for (uint32_t i = 0; i < x->copy->regions.n; i++) {
		const struct memory_region *r = &x->copy->regions.v[i];

		if (!r->file && !r->stack && !memory_has_stack(&stacks, r))
			vec_push(ret, (struct space_range){ r->start, r->end });
	}
	vec_fini(&stacks);
}

void v8_roots_add(struct v8_reader *x)
{
	struct leaks_seek seek = { add_root, x, NULL, 0 };
	space_range_vec skip = { 0 };
	struct err *e;

	x->blocks.l = &x->remarks;
	e = heap_find(x->copy, &x->blocks);
	x->has_blocks = !e;
	err_free(e);
	if (!x->has_blocks)
		graph_remark(x->graph, "the allocator is not glibc's: objects that only handles of "
				       "C++ refer to count as not reachable");
	isolates_add(x);
	handle_blocks_add(x);
	skip_anonymous(x, &skip);
	seek.skip = skip.v;
	seek.nskip = skip.n;
	leaks_seek(x->copy, &x->blocks, &seek);
	vec_fini(&skip);
}
