/* What holds V8's objects: the Isolate, the handles of C++, and stacks. Other native memory is not
 * searched: V8's own lists of objects have old pointers, and C++ has handles. */
#include "memory/heaplive/v8_heap.h"

enum {
	AROUND = 1 << 16, /* bytes of the Isolate, on each side of its heap */
	/* Blocks of persistent handles: each handle has its number in the block. */
	HANDLES = 256,
	HANDLES_MORE = 256, /* bytes of a block behind them, at most */
	HANDLE_SIZE = 32,
	HANDLE_NUMBER = 10,
	HANDLE_FLAGS = 11,
	HANDLE_STATE = 3,
	HANDLE_NORMAL = 1,    /* its state when it is strong */
	LOCAL_HANDLES = 1022, /* of a block */
	ISOLATE_MAX = 1 << 20,
	STACK_MAX = 64 << 20,
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

/* Heaps may lie in one block, and what looks like a list of handles may be one that others have
 * named: a process can make each word of its memory be searched as often as it likes. */
static bool may_search(struct v8_reader *x)
{
	x->words -= x->words > 0;
	return x->words > 0;
}

static void roots_in(struct v8_reader *x, uint64_t from, uint64_t to, const char *kind)
{
	for (uint64_t at = round_up(from, 8), have = 0; at + 8 <= to; at += 8) {
		const uint8_t *p = v8_memory(x, at, &have);

		if (!p || have < 8 || !may_search(x))
			return;
		add_root(x, v8_at(p, 0), kind);
	}
}

/* Adds the strong handles, if it is a block of persistent ones. */
static void handles_add(struct v8_reader *x, uint64_t addr)
{
	uint64_t have;
	const uint8_t *p = v8_memory(x, addr, &have);

	if (!p || have < HANDLES * HANDLE_SIZE)
		return;
	for (uint32_t i = 0; i < HANDLES; i++)
		if (p[i * HANDLE_SIZE + HANDLE_NUMBER] != i)
			return;
	for (uint32_t i = 0; i < HANDLES; i++, p += HANDLE_SIZE)
		if ((p[HANDLE_FLAGS] & HANDLE_STATE) == HANDLE_NORMAL)
			add_root(x, v8_at(p, 0), "persistent handle");
}

static void handle_blocks_add(struct v8_reader *x)
{
	for (uint32_t i = 0; i < x->blocks.chunks.n; i++) {
		const struct leaks_chunk *c = &x->blocks.chunks.v[i];
		const uint64_t usable = chunk_usable(c);

		if (!(c->bits & CHUNK_FREE) && usable >= HANDLES * HANDLE_SIZE &&
		    usable < HANDLES * HANDLE_SIZE + HANDLES_MORE)
			handles_add(x, chunk_block(c));
	}
}

/* Adds the block of handles of C++ functions that is being filled. The Isolate has {next, limit}
 * of it. */
static void local_handles_add(struct v8_reader *x, uint64_t from, uint64_t to)
{
	uint64_t have, next, limit, first;

	for (uint64_t at = round_up(from, 8); at + 16 <= to; at += 8) {
		const uint8_t *p = v8_memory(x, at, &have);
		uint32_t k;

		if (!p || have < 16 || !may_search(x))
			return;
		next = v8_at(p, 0);
		limit = v8_at(p, 8);
		first = limit - LOCAL_HANDLES * 8;
		if (next < first || next > limit || limit < LOCAL_HANDLES * 8)
			continue;
		k = x->has_blocks ? heap_chunk(&x->blocks, first) : LEAKS_NONE;
		if (k != LEAKS_NONE && chunk_block(&x->blocks.chunks.v[k]) == first)
			roots_in(x, first, next, "local handle");
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
		if (k != LEAKS_NONE && chunk_usable(&x->blocks.chunks.v[k]) < ISOLATE_MAX) {
			const struct leaks_chunk *c = &x->blocks.chunks.v[k];

			from = chunk_block(c);
			to = from + chunk_usable(c);
		}
		from = from < r->start ? r->start : from;
		to = to < r->end ? to : r->end;
		roots_in(x, from, to, "V8");
		local_handles_add(x, from, to);
	}
}

struct stretch {
	uint64_t start, end;
};

static int stretch_order(const void *pa, const void *pb)
{
	const struct stretch *a = pa, *b = pb;

	return COMPARE(a->start, b->start);
}

/* A thread's stack ends in front of its struct pthread, the main thread's at the end of its
 * memory. */
static void stacks_add(struct v8_reader *x)
{
	VEC(struct stretch) stacks = { 0 };
	uint64_t done = 0;

	for (uint32_t i = 0; i < x->copy->threads.n; i++) {
		const struct memory_thread *t = &x->copy->threads.v[i];
		const struct memory_region *r = memory_region_at(x->copy, t->sp);
		uint64_t end;

		if (!r)
			continue;
		end = !r->stack && t->fs > t->sp && t->fs < r->end ? t->fs : r->end;
		if (end - t->sp > STACK_MAX)
			end = t->sp + STACK_MAX;
		vec_push(&stacks, ((struct stretch){ t->sp, end }));
	}
	if (stacks.n)
		qsort(stacks.v, stacks.n, sizeof(*stacks.v), stretch_order);
	/* a forged core can give all threads the same stack, or stacks that overlap */
	for (uint32_t i = 0; i < stacks.n; i++) {
		struct stretch s = stacks.v[i];

		if (s.end <= done)
			continue;
		roots_in(x, s.start > done ? s.start : done, s.end, "stack");
		done = s.end;
	}
	vec_fini(&stacks);
	for (uint32_t i = 0; i < x->copy->registers.n; i++)
		add_root(x, x->copy->registers.v[i], "register");
}

void v8_roots_add(struct v8_reader *x)
{
	struct err *e;

	x->blocks.l = &x->remarks;
	e = heap_find(x->copy, &x->blocks);
	x->has_blocks = !e;
	err_free(e);
	if (!x->has_blocks)
		graph_remark(x->graph,
			     "the heap of its allocator is not known: objects that only handles of "
			     "C++ refer to count as not reachable");
	isolates_add(x);
	handle_blocks_add(x);
	stacks_add(x);
	if (!x->words)
		graph_remark(x->graph,
			     "it has more heaps and handles than its memory has room for: objects "
			     "that only some of them refer to count as not reachable");
}
