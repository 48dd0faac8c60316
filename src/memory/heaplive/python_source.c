/* The source of graphs "python": the objects in the collector's lists, all that these refer to, and
 * all that the roots lead to. */
#include "memory/heaplive/live_copy.h"
#include "memory/heaplive/objects.h"
#include "memory/heaplive/python_heap.h"

enum {
	SEARCHED = 1 << 17, /* bytes of the runtime and of an interpreter */
	GENERATIONS = 3,
	GENERATION_SIZE = 24,
	LISTS_SIZE = GENERATIONS * GENERATION_SIZE + 8 + 8 + GENERATION_SIZE,
	INTERPRETERS_MAX = 64,
	THREADS_MAX = 1 << 16,
	HEAD = 16,
	NAME_SIZE = 256,
	STACK_CHUNK = 296, /* of a thread of 3.11 */
	STACK_CHUNKS_MAX = 1 << 12,
	STACK_CHUNK_MAX = 1 << 22,
};

/* Returns the address of the pointer to the first list. It is behind the lists, which in 3.13 need
 * not be aligned to a word. */
static uint64_t behind_lists(uint64_t lists)
{
	return (lists + GENERATIONS * GENERATION_SIZE + 7) & ~7ull;
}

/* Finds the collector's lists: the pointer behind them leads to the first one. */
static uint64_t find_lists(struct python_reader *x, uint64_t addr)
{
	const struct memory_region *r = addr & 7 ? NULL : memory_region_at(x->copy, addr);
	uint64_t end;

	if (!r)
		return 0;
	end = r->end - addr < SEARCHED ? r->end : addr + SEARCHED;
	for (uint64_t at = addr; at + LISTS_SIZE <= end; at += 4)
		if (memory_word(r, behind_lists(at)) == at)
			return at;
	return 0;
}

/* Sees the objects of a list. A list that is not closed ends at the first word that is no link. */
static uint64_t see_list(struct python_reader *x, uint64_t head)
{
	const uint8_t *p = python_memory(x, head, HEAD);
	uint64_t n = 0, at = p ? python_at(p, 0) : head;

	while (at != head) {
		p = at & 7 || !x->budget ? NULL : python_memory(x, at, HEAD);
		if (!p || !python_object(x, at + HEAD) || !python_mark(x, at + HEAD)) {
			x->torn = true;
			break;
		}
		x->budget--;
		vec_push(&x->queue, at + HEAD);
		python_own(x, at + HEAD);
		if (x->last->file && heap_chunk(&x->blocks, at + HEAD) == LEAKS_NONE)
			python_set_put(&x->pages, (at + HEAD) & ~(MEMORY_PAGE - 1ull));
		n++;
		at = python_at(p, 0) & ~3ull;
	}
	return n;
}

static void name_type(struct python_reader *x, struct python_type *t)
{
	cleanup_free char *name = NULL;
	uint64_t at;

	t->number = graph_class(x->graph, t->address) + 1;
	if (space_word(x->space, t->address + PYTHON_TYPE_NAME, &at))
		name = space_string(x->space, at, NAME_SIZE);
	if (name && *name)
		graph_class_name(x->graph, t->number - 1, name, strlen(name));
	t->is_float = name && !strcmp(name, "float");
	t->is_none = name && !strcmp(name, "NoneType");
	graph_class_object(x->graph, t->number - 1, t->address);
}

static void add_objects(struct python_reader *x)
{
	while (x->queue.n) {
		uint64_t addr = x->queue.v[--x->queue.n];
		struct python_type *t = python_object(x, addr);

		if (!t)
			continue;
		if (!t->number)
			name_type(x, t);
		graph_object(x->graph, addr, t->number - 1, python_size(x, addr, t));
		python_see(x, t->address, true);
		python_refs(x, addr, t);
		python_values(x, addr, t);
	}
}

static void add_root(void *arg, uint64_t word, const char *kind)
{
	struct python_reader *x = arg;

	/* pointers that are no longer in use lead to objects whose references are all known */
	if (!(word & 7) && word >= 4096 && python_object(x, word) && python_is_held(x, word) &&
	    python_see(x, word, false))
		graph_root(x->graph, word, kind);
}

/* The stacks of variables that 3.11 has for the functions of a thread: in pieces, of which the
 * thread knows the end of the last, and each other one its own. */
static void seek_stacks(struct python_reader *x, uint64_t thread)
{
	uint64_t chunk, top, header[3];

	if (x->python->layout.version != PYTHON_3_11 ||
	    !space_word(x->space, thread + STACK_CHUNK, &chunk) ||
	    !space_word(x->space, thread + STACK_CHUNK + 8, &top))
		return;
	for (uint32_t i = 0; chunk && i < STACK_CHUNKS_MAX; i++, chunk = header[0]) {
		const uint8_t *p;
		uint64_t n;

		/* forged pieces may be empty and form a circle, in each of 65,536 threads */
		if (space_read_some(x->space, chunk, header, sizeof(header)) != sizeof(header) ||
		    header[1] > STACK_CHUNK_MAX || x->budget < header[1] / 8 + sizeof(header))
			return;
		n = i ? sizeof(header) + header[2] * 8 : top - chunk;
		if (n > header[1])
			n = header[1];
		p = python_memory(x, chunk, n);
		x->budget -= n / 8 + sizeof(header);
		for (uint64_t k = sizeof(header); p && k + 8 <= n; k += 8)
			add_root(x, python_at(p + k, 0), "Python frame");
	}
}

/* Memory that is no data of a library, no stack and no block of malloc(3) holds Python's own
 * objects. So do pages behind a library's data that have objects of the collector. */
static void skip_anonymous(struct python_reader *x, space_range_vec *ret)
{
	memory_word_vec stacks = { 0 };

	memory_stacks(x->copy, &stacks);
	for (uint32_t i = 0; i < x->copy->regions.n; i++) {
		const struct memory_region *r = &x->copy->regions.v[i];

		if (!r->file && !r->stack && !memory_has_stack(&stacks, r))
			vec_push(ret, (struct space_range){ r->start, r->end });
	}
	vec_fini(&stacks);
	for (uint64_t i = 0; x->pages.v && i <= x->pages.mask; i++)
		if (x->pages.v[i])
			vec_push(ret, (struct space_range){ x->pages.v[i],
							    x->pages.v[i] + MEMORY_PAGE });
}

static void add_roots(struct python_reader *x)
{
	struct leaks_seek seek = { .fn = add_root, .arg = x };
	space_range_vec skip = { 0 };

	skip_anonymous(x, &skip);
	seek.skip = skip.v;
	seek.nskip = skip.n;
	leaks_seek(x->copy, &x->blocks, &seek);
	vec_fini(&skip);
	add_objects(x);
}

static void each_interpreter(struct python_reader *x,
			     void (*fn)(struct python_reader *x, uint64_t interpreter))
{
	const struct python *p = x->python;
	uint64_t at;

	if (!space_word(x->space, p->interpreters, &at))
		return;
	for (uint32_t i = 0; at && i < INTERPRETERS_MAX; i++) {
		fn(x, at);
		if (!space_word(x->space, at + p->layout.interpreter_next, &at))
			return;
	}
}

static void see_generations(struct python_reader *x, uint64_t lists)
{
	for (uint32_t i = 0; lists && i < GENERATIONS; i++)
		x->generations[i] += see_list(x, lists + i * GENERATION_SIZE);
	if (lists)
		x->generations[GENERATIONS] += see_list(x, behind_lists(lists) + 8);
}

static void see_interpreter(struct python_reader *x, uint64_t interpreter)
{
	see_generations(x, find_lists(x, interpreter));
}

static void seek_threads(struct python_reader *x, uint64_t interpreter)
{
	const struct python_layout *l = &x->python->layout;
	uint64_t at;

	if (!space_word(x->space, interpreter + l->interpreter_threads, &at))
		return;
	for (uint32_t i = 0; at && i < THREADS_MAX; i++) {
		seek_stacks(x, at);
		if (!space_word(x->space, at + l->thread_next, &at))
			return;
	}
}

static void add_remarks(struct python_reader *x)
{
	const uint64_t *g = x->generations;

	graph_remark(x->graph,
		     "Python's collector has %llu objects (%llu, %llu and %llu in its "
		     "generations, %llu frozen); %llu others are found by references",
		     (unsigned long long)x->tracked, (unsigned long long)g[0],
		     (unsigned long long)g[1], (unsigned long long)g[2], (unsigned long long)g[3],
		     (unsigned long long)(x->seen - x->tracked));
	if (x->torn)
		graph_remark(x->graph, "a list of the collector is damaged, or was being changed: "
				       "objects may be missing");
	if (!x->has_blocks)
		graph_remark(x->graph,
			     "the allocator is none that descry knows: objects that only native "
			     "memory refers to are missing");
	if (x->budget < 64)
		graph_remark(x->graph, "its objects claim more memory than the process has: some "
				       "objects and references are missing");
}

static struct err *read_python(struct python_reader *x)
{
	struct err *blocks;

	if (x->python->layout.version < 0x0308)
		return err_new(0,
			       "the heap of Python %s is not known to descry: it reads 3.8 to "
			       "3.13",
			       x->python->runtime.version);
	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		x->budget += x->copy->runs.v[i].end - x->copy->runs.v[i].start;
	x->budget = x->budget / 8 * 4 + (1 << 20);
	blocks = heap_find(x->copy, &x->blocks);
	x->has_blocks = !blocks;
	err_free(blocks);
	each_interpreter(x, see_interpreter);
	if (!x->seen) /* 3.8 has the collector in the runtime, in front of the interpreters */
		see_generations(x, find_lists(x, x->python->interpreters -
							 x->python->layout.runtime_interpreters));
	if (!x->seen)
		return err_new(0,
			       "the heap of Python %s is not as it should be: the lists of its "
			       "collector are not found",
			       x->python->runtime.version);
	x->tracked = x->seen;
	add_objects(x);
	each_interpreter(x, seek_threads);
	add_roots(x);
	add_remarks(x);
	return NULL;
}

struct err *python_read(const struct memory_copy *c, struct python *p, struct graph *g)
{
	struct python_reader x = { .copy = c, .graph = g, .python = p, .space = p->runtime.space };
	struct err *e;

	arena_init(&x.remarks.arena);
	arena_init(&x.arena);
	x.blocks.l = &x.remarks;
	e = read_python(&x);
	heap_fini(&x.blocks);
	python_objects_fini(&x);
	vec_fini(&x.remarks.remarks);
	arena_fini(&x.remarks.arena);
	return e;
}

static struct err *read_runtime(struct memory_copy *c, struct runtime *r, struct graph *g)
{
	return python_read(c, (struct python *)r, g);
}

static struct err *read_copy(struct memory_copy *copy, struct space *s, struct graph *g)
{
	return live_read(copy, s, &runtime_python, read_runtime, g);
}

const struct heap_source heap_source_python = {
	.name = "python",
	.what = "Python",
	.runtime = &runtime_python,
	.read_copy = read_copy,
};
