/* The source of graphs "javascript": the objects of V8 in Node.js. */
#include "memory/heaplive/live_copy.h"
#include "memory/heaplive/objects.h"
#include "memory/heaplive/v8_heap.h"

static void remarks_add(struct v8_reader *x)
{
	graph_remark(x->graph, "V8's heap has %u pages in %u isolate%s, with %llu objects",
		     x->pages.n, x->heaps.n, x->heaps.n == 1 ? "" : "s",
		     (unsigned long long)x->objects);
	if (x->skipped)
		graph_remark(x->graph,
			     "%llu bytes of the heap are no objects: half made, or being moved by "
			     "the collector",
			     (unsigned long long)x->skipped);
	if (x->outside)
		graph_remark(x->graph,
			     "%llu bytes of the heap are not in its memory: objects are missing",
			     (unsigned long long)x->outside);
	if (x->budget < 64)
		graph_remark(x->graph, "its objects claim more memory than the process has: some "
				       "names and references are missing");
}

/* The numbers that only the heap needs are not required of the runtime. */
static bool has_numbers(const struct v8_numbers *n)
{
	return n->map_words && n->map_first && n->map_bits2 && n->map_bits3 && n->map_prototype &&
	       n->map_constructor && n->map_descriptors && n->map_dictionary && n->names_prefix &&
	       n->object_properties && n->object_elements && n->function_context && n->symbol_name;
}

struct err *v8_read(struct v8_reader *x)
{
	const struct v8_version *v = x->v8->version;
	struct err *e;

	arena_init(&x->remarks.arena);
	x->constructor.text = "constructor";
	x->string_tag = (struct v8_name){ "Symbol.toStringTag", true, 0 };
	x->version = v8_heap_version_find(v->major, v->minor);
	if (!x->version)
		return err_new(0, "the heap of V8 %d.%d is not known to descry", v->major,
			       v->minor);
	if (!has_numbers(&x->v8->n))
		return err_new(0, "it does not publish the numbers of V8's objects");
	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		x->budget += x->copy->runs.v[i].end - x->copy->runs.v[i].start;
	x->walk = x->budget * 4 + (64 << 20);
	x->holds = x->budget / 8 + (1 << 16);
	x->budget = x->budget / 8 * 4 + (1 << 20);
	e = v8_pages_find(x);
	if (e)
		return e;
	v8_objects_add(x);
	if (!graph_wanted(x->graph)->counts)
		v8_roots_add(x);
	remarks_add(x);
	return NULL;
}

void v8_reader_fini(struct v8_reader *x)
{
	for (uint32_t i = 0; i < x->pages.n; i++)
		free(x->pages.v[i].starts);
	vec_fini(&x->pages);
	vec_fini(&x->frees);
	vec_fini(&x->heaps);
	vec_fini(&x->maps);
	vec_fini(&x->members);
	vec_fini(&x->stores);
	heap_fini(&x->blocks);
	vec_fini(&x->remarks.remarks);
	arena_fini(&x->remarks.arena);
	hash_fini(&x->names);
	hash_fini(&x->closures);
	hash_fini(&x->labels);
	free(x->page_slots);
	free(x->map_slots);
}

static struct err *v8_runtime_read(struct memory_copy *c, struct runtime *r, struct graph *g)
{
	struct v8_reader x = { .copy = c, .v8 = (struct v8 *)r, .graph = g };
	struct err *e = v8_read(&x);

	v8_reader_fini(&x);
	return e;
}

static struct err *v8_copy_read(struct memory_copy *c, struct space *s, struct graph *g)
{
	return live_read(c, s, &runtime_v8, v8_runtime_read, g);
}

const struct heap_source heap_source_v8 = {
	.name = "v8",
	.what = "JavaScript (V8)",
	.runtime = &runtime_v8,
	.read_copy = v8_copy_read,
};
