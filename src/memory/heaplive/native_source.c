/* The source of graphs "native": the blocks of malloc(3) of a program in C, C++ and their like. A
 * block is of the type that C++'s tables or DWARF give it, else of a class for its size. A word of
 * a block that is an address in another one is a reference. */
#include <errno.h>

#include "base/sorted.h"
#include "memory/heaplive/objects.h"
#include "memory/leaks/blocks.h"
#include "memory/leaks/leaks.h"

enum {
	NAMED_OFFSETS = 512, /* references beyond so many words of a block have no label */
	ROOT_MEMORY = 2,
	ROOT_VARIABLE = 5, /* + its index */
};
/* What leads to a block, the kind that says least first. */
static const char *const root_kinds[ROOT_VARIABLE] = {
	NULL, "register", "native memory", "native stack", "native variable",
};

struct native_reader {
	const struct memory_copy *copy;
	struct graph *graph;
	struct leaks leaks;
	struct leaks_heap blocks;
	struct leaks_types types;
	struct hash classes; /* name: class + 1 */
	uint32_t nclasses;
	uint32_t *roots; /* for each chunk, what leads to it; 0: nothing but other blocks */
	uint32_t labels[NAMED_OFFSETS]; /* 0: not made yet */
};

static uint32_t native_class(struct native_reader *x, uint32_t chunk)
{
	const struct leaks_block_type *t = &x->types.of[chunk];
	char text[300];
	int n = t->name ? snprintf(text, sizeof(text), "%.280s%s", t->name, t->several ? "[]" : "")
			: snprintf(text, sizeof(text), "(%llu bytes)",
				   (unsigned long long)chunk_usable(&x->blocks.chunks.v[chunk]));
	uint64_t *known = hash_put(&x->classes, text, (size_t)n, NULL);

	if (!*known) {
		*known = graph_class(x->graph, x->nclasses++) + 1ull;
		graph_class_name(x->graph, (uint32_t)*known - 1, text, (size_t)n);
	}
	return (uint32_t)*known - 1;
}

/* The label of a word of a block: its place in it. */
static uint32_t offset_label(struct native_reader *x, uint64_t word)
{
	char text[24];

	if (word >= NAMED_OFFSETS || !graph_wanted(x->graph)->labels)
		return GRAPH_LABEL_NONE;
	if (!x->labels[word]) {
		int n = snprintf(text, sizeof(text), "+%u", (unsigned)word * MEMORY_WORD);

		x->labels[word] = graph_label(x->graph, text, (size_t)n);
	}
	return x->labels[word];
}

/* Returns the chunk whose block a word leads to, or LEAKS_NONE. */
static uint32_t chunk_led_to(const struct native_reader *x, uint64_t word)
{
	uint32_t i;

	if (word < x->blocks.lo || word >= x->blocks.hi + CHUNK_HEADER)
		return LEAKS_NONE;
	i = heap_chunk(&x->blocks, word);
	return i == LEAKS_NONE || x->blocks.chunks.v[i].bits & CHUNK_FREE ? LEAKS_NONE : i;
}

/* Of a block only what the program has touched is looked at. */
static void native_edges(struct native_reader *x, const struct leaks_chunk *k)
{
	const uint64_t from = chunk_block(k), end = from + chunk_usable(k);
	const struct memory_copy *c = x->copy;
	const struct memory_region *r = memory_region_at(c, from);
	uint32_t i = partition_point(c->runs.n, j, c->runs.v[j].end <= from);

	for (; r && i < c->runs.n && c->runs.v[i].start < end; i++) {
		uint64_t at = c->runs.v[i].start > from ? c->runs.v[i].start : from,
			 to = c->runs.v[i].end < end ? c->runs.v[i].end : end;

		to = to < r->end ? to : r->end;
		for (at = (at + MEMORY_WORD - 1) & ~(MEMORY_WORD - 1ull); at + MEMORY_WORD <= to;
		     at += MEMORY_WORD) {
			uint32_t to_chunk = chunk_led_to(x, memory_word(r, at));

			if (to_chunk != LEAKS_NONE && &x->blocks.chunks.v[to_chunk] != k)
				graph_edge(x->graph, chunk_block(&x->blocks.chunks.v[to_chunk]),
					   offset_label(x, (at - from) / MEMORY_WORD),
					   GRAPH_STRONG);
		}
	}
}

static void add_blocks(struct native_reader *x)
{
	for (uint32_t i = 0; i < x->blocks.chunks.n; i++) {
		const struct leaks_chunk *k = &x->blocks.chunks.v[i];

		if (k->bits & CHUNK_FREE)
			continue;
		graph_object(x->graph, chunk_block(k), native_class(x, i), chunk_usable(k));
		if (!graph_wanted(x->graph)->counts)
			native_edges(x, k);
	}
}

/* Returns what leads to a block from this address: a variable + ROOT_VARIABLE, or a kind. */
static uint32_t root_of(const struct native_reader *x, uint64_t at, const char *kind)
{
	const uint32_t n = x->types.variables.n,
		       i = partition_point(n, k, x->types.variables.v[k].addr <= at);
	const struct leaks_variable *v = i ? &x->types.variables.v[i - 1] : NULL;

	if (at && v && at - v->addr < v->size)
		return ROOT_VARIABLE + i - 1;
	for (uint32_t k = 1; k < ROOT_VARIABLE; k++)
		if (!strcmp(kind, root_kinds[k]))
			return k;
	return ROOT_MEMORY;
}

static void native_root(void *arg, uint64_t at, uint64_t word, const char *kind)
{
	struct native_reader *x = arg;
	const uint32_t i = chunk_led_to(x, word);
	uint32_t root;

	if (i == LEAKS_NONE)
		return;
	root = root_of(x, at, kind);
	if (root > x->roots[i])
		x->roots[i] = root;
}

/* All blocks count as searched, so that only the words outside of them are given. A block to which
 * several lead is the root of that which says most. */
static void add_roots(struct native_reader *x)
{
	const struct leaks_seek seek = { .placed = native_root, .arg = x };
	char buf[256];

	x->roots = xcalloc(x->blocks.chunks.n + 1ull, sizeof(*x->roots));
	for (uint32_t i = 0; i < x->blocks.chunks.n; i++)
		x->blocks.chunks.v[i].bits |= CHUNK_REACHED;
	leaks_seek(x->copy, &x->blocks, &seek);
	for (uint32_t i = 0; i < x->blocks.chunks.n; i++) {
		const uint32_t root = x->roots[i];
		const char *kind = root < ROOT_VARIABLE ? root_kinds[root] : buf;

		if (!root)
			continue;
		if (root >= ROOT_VARIABLE)
			snprintf(buf, sizeof(buf), "variable %.200s",
				 x->types.variables.v[root - ROOT_VARIABLE].name);
		graph_root(x->graph, chunk_block(&x->blocks.chunks.v[i]), kind);
	}
	free(x->roots);
}

static struct err *read_native(struct native_reader *x, struct space *s)
{
	struct symbols *symbols;
	struct err *e = heap_find(x->copy, &x->blocks);

	if (e)
		return e;
	symbols = symbols_new();
	leaks_types_find(&x->leaks, x->copy, s, symbols, &x->types);
	symbols_free(symbols);
	add_blocks(x);
	if (!graph_wanted(x->graph)->counts)
		add_roots(x);
	graph_remark(x->graph,
		     "it runs no language whose heap descry reads: these are the blocks of "
		     "malloc(3)");
	if (x->leaks.torn)
		graph_remark(x->graph, "the heap is not consistent: it was being changed, or it is "
				       "damaged");
	for (uint32_t i = 0; i < x->leaks.remarks.n; i++)
		graph_remark(x->graph, "%s", x->leaks.remarks.v[i]);
	return NULL;
}

static struct err *blocks_read(struct memory_copy *copy, struct space *s, struct graph *g)
{
	struct native_reader x = { .copy = copy, .graph = g };
	struct err *e;

	arena_init(&x.leaks.arena);
	x.leaks.heap = &x.blocks;
	x.blocks.l = &x.leaks;
	e = read_native(&x, s);
	if (e && e->code == ENOENT)
		e = err_wrap(e, "it runs no language whose heap descry reads");
	leaks_types_fini(&x.types);
	heap_fini(&x.blocks);
	hash_fini(&x.classes);
	vec_fini(&x.leaks.remarks);
	arena_fini(&x.leaks.arena);
	return e;
}

const struct heap_source heap_source_native = {
	.name = "native",
	.what = "blocks of malloc(3)",
	.read_copy = blocks_read,
};
