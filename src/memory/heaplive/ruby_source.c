/* The source of graphs "ruby": all slots of the collector's pages as objects. */
#include "memory/heaplive/live_copy.h"
#include "memory/heaplive/objects.h"
#include "memory/heaplive/ruby_heap.h"

enum { TRANSIENT_MAX = 32 << 20 };

static const char *const count_names[RUBY_TYPES] = {
	[RUBY_OBJECT] = "T_OBJECT", [RUBY_CLASS] = "T_CLASS",     [RUBY_MODULE] = "T_MODULE",
	[RUBY_FLOAT] = "T_FLOAT",   [RUBY_STRING] = "T_STRING",   [RUBY_REGEXP] = "T_REGEXP",
	[RUBY_ARRAY] = "T_ARRAY",   [RUBY_HASH] = "T_HASH",       [RUBY_STRUCT] = "T_STRUCT",
	[RUBY_BIGNUM] = "T_BIGNUM", [RUBY_FILE] = "T_FILE",       [RUBY_DATA] = "T_DATA",
	[RUBY_MATCH] = "T_MATCH",   [RUBY_COMPLEX] = "T_COMPLEX", [RUBY_RATIONAL] = "T_RATIONAL",
	[RUBY_SYMBOL] = "T_SYMBOL", [RUBY_IMEMO] = "T_IMEMO",     [RUBY_NODE] = "T_NODE",
	[RUBY_ICLASS] = "T_ICLASS", [RUBY_ZOMBIE] = "T_ZOMBIE",   [RUBY_MOVED] = "T_MOVED",
};

/* Says what ObjectSpace.count_objects says. */
static void remark_counts(struct ruby_reader *x)
{
	char text[512];
	int n = 0;

	for (uint32_t i = 1; i < RUBY_TYPES; i++)
		if (x->counts[i] && n < (int)sizeof(text) - 40)
			n += snprintf(text + n, sizeof(text) - (size_t)n, ", %s %llu",
				      count_names[i] ?: "T_?", (unsigned long long)x->counts[i]);
	graph_remark(x->graph, "Ruby's collector has %u pages with %llu slots: FREE %llu%s",
		     x->heap.pages.n, (unsigned long long)x->heap.slots,
		     (unsigned long long)x->counts[RUBY_NONE], n ? text : "");
	if (x->heap.pages.n < x->heap.listed)
		graph_remark(x->graph, "%llu of the collector's %llu pages could not be read",
			     (unsigned long long)(x->heap.listed - x->heap.pages.n),
			     (unsigned long long)x->heap.listed);
}

/* Marks a block as an object's own, so that the search from the roots does not pass through it. */
static bool own_block(struct ruby_reader *x, uint64_t addr)
{
	uint32_t k = heap_chunk(&x->blocks, addr);

	if (k == LEAKS_NONE)
		return false;
	x->blocks.chunks.v[k].bits |= CHUNK_REACHED;
	return true;
}

/* The VM and its threads have objects, but live without them. */
static bool is_of_vm(struct ruby_reader *x, const uint8_t *slot)
{
	uint64_t real;

	if (ruby_type(ruby_slot_word(slot, 0)) != RUBY_DATA)
		return false;
	ruby_class_number(x, slot, &real);
	return real && ruby_class_of_vm(x, real);
}

/* Up to 3.2 the items of young arrays, hashes and objects lie in an area of the collector's own,
 * which has old copies of them, too. */
static void own_transient(struct ruby_reader *x, const struct ruby_part *p)
{
	struct space_range *t = &x->transient;
	uint64_t end = p->addr + p->n;

	if (!ruby_memory(x, p->addr, p->n) || p->kind == RUBY_PART_BYTES || !p->n)
		return;
	if (!t->end)
		*t = (struct space_range){ p->addr, end };
	else if (p->addr < t->start && t->end - p->addr <= TRANSIENT_MAX)
		t->start = p->addr;
	else if (end > t->end && end - t->start <= TRANSIENT_MAX)
		t->end = end;
}

static void own_parts(struct ruby_reader *x, uint64_t addr, const uint8_t *slot, uint32_t size)
{
	struct ruby_parts parts;

	if (is_of_vm(x, slot))
		return;
	ruby_parts(x, addr, slot, size, &parts);
	for (uint32_t i = 0; i < parts.n; i++)
		if (!own_block(x, parts.v[i].addr))
			own_transient(x, &parts.v[i]);
}

static void each_slot(struct ruby_reader *x, void (*fn)(struct ruby_reader *x, uint64_t addr,
							const uint8_t *slot, uint32_t size))
{
	for (uint32_t i = 0; i < x->heap.pages.n; i++) {
		const struct ruby_page *p = &x->heap.pages.v[i];
		const uint8_t *slot = p->bytes;

		for (uint64_t at = p->start; at < p->end; at += p->slot_size, slot += p->slot_size)
			if (ruby_type(ruby_slot_word(slot, 0)))
				fn(x, at, slot, p->slot_size);
	}
}

static void add_object(struct ruby_reader *x, uint64_t addr, const uint8_t *slot, uint32_t size)
{
	struct ruby_parts parts;
	uint64_t real, bytes = size;
	uint32_t class = ruby_class_number(x, slot, &real);

	ruby_parts(x, addr, slot, size, &parts);
	for (uint32_t i = 0; i < parts.n; i++)
		bytes += parts.v[i].bytes;
	graph_object(x->graph, addr, class, bytes);
	if (!graph_wanted(x->graph)->counts)
		ruby_edges(x, addr, slot, size, real, &parts);
	ruby_values(x, addr, slot);
	x->counts[ruby_type(ruby_slot_word(slot, 0))]++;
}

static void add_root(void *arg, uint64_t word, const char *kind)
{
	struct ruby_reader *x = arg;
	const uint8_t *slot = ruby_slot(&x->heap, word, NULL);

	if (slot && ruby_type(ruby_slot_word(slot, 0)))
		graph_root(x->graph, word, kind);
}

/* Without the blocks of malloc(3), each word of memory that is no slot is a root. */
static void seek_everywhere(struct ruby_reader *x)
{
	struct leaks_seek seek = { .fn = add_root, .arg = x };
	space_range_vec pages = { 0 };

	for (uint32_t i = 0; i < x->heap.pages.n; i++)
		vec_push(&pages,
			 (struct space_range){ x->heap.pages.v[i].start, x->heap.pages.v[i].end });
	vec_push(&pages, x->transient);
	seek.skip = pages.v;
	seek.nskip = pages.n;
	leaks_seek(x->copy, &x->blocks, &seek);
	vec_fini(&pages);
}

static void add_roots(struct ruby_reader *x)
{
	if (x->has_blocks) {
		own_block(x, x->heap.collector);
		for (uint32_t i = 0; i < x->heap.pages.n; i++)
			own_block(x, x->heap.pages.v[i].start);
		each_slot(x, own_parts);
	} else {
		graph_remark(
			x->graph,
			"the allocator is none that descry knows: what only a Ruby object's own memory "
			"refers to counts as held by native memory");
	}
	seek_everywhere(x);
}

static struct err *read_ruby(struct ruby_reader *x)
{
	struct err *e = ruby_heap_find(x->copy, x->ruby, &x->heap), *blocks;

	if (e)
		return e;
	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		x->budget += x->copy->runs.v[i].end - x->copy->runs.v[i].start;
	x->budget = x->budget / 8 * 4 + (1 << 20);
	blocks = heap_find(x->copy, &x->blocks);
	x->has_blocks = !blocks;
	err_free(blocks);
	if (!graph_wanted(x->graph)->counts)
		add_roots(x);
	x->counts[RUBY_NONE] = x->heap.slots;
	each_slot(x, add_object);
	for (uint32_t i = 1; i < RUBY_TYPES; i++)
		x->counts[RUBY_NONE] -= x->counts[i];
	remark_counts(x);
	if (x->budget < 64)
		graph_remark(x->graph, "its objects claim more memory than the process has: some "
				       "references are missing");
	return NULL;
}

struct err *ruby_read(const struct memory_copy *c, struct ruby *r, struct graph *g)
{
	struct ruby_reader x = { .copy = c, .graph = g, .ruby = r };
	struct err *e;

	arena_init(&x.remarks.arena);
	x.blocks.l = &x.remarks;
	e = read_ruby(&x);
	ruby_heap_fini(&x.heap);
	heap_fini(&x.blocks);
	ruby_classes_fini(&x);
	vec_fini(&x.found);
	hash_fini(&x.symbols);
	vec_fini(&x.remarks.remarks);
	arena_fini(&x.remarks.arena);
	return e;
}

static struct err *read_runtime(struct memory_copy *c, struct runtime *r, struct graph *g)
{
	return ruby_read(c, (struct ruby *)r, g);
}

static struct err *read_copy(struct memory_copy *copy, struct space *s, struct graph *g)
{
	return live_read(copy, s, &runtime_ruby, read_runtime, g);
}

const struct heap_source heap_source_ruby = {
	.name = "ruby",
	.what = "Ruby",
	.runtime = &runtime_ruby,
	.read_copy = read_copy,
};
