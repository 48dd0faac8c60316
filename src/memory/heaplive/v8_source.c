/* The source of graphs "javascript": the objects of V8 in Node.js. */
#include <stddef.h>

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
	if (!v8_can_name(x->v8))
		graph_remark(x->graph, "its names are too many or too long: some are missing");
	if (x->budget < 64)
		graph_remark(x->graph, "its objects claim more memory than the process has: some "
				       "names and references are missing");
}

enum {
	HEAD = 24,         /* bytes of a symbol or an object that are known to be there */
	STRING_HEAD = 16,  /* of a string */
	OBJECT_MAX = 1024, /* offsets of members of larger objects */
	STRING_MAX = 64,   /* offset of a string's characters */
	PREFIX_MAX = 16,   /* words */
	SCOPE_MAX = 64,    /* words */
	TYPE_MAX = UINT16_MAX,
};

/* The published numbers that lead to places in the copy: the least and the most that a number may
 * be, and what it is a multiple of. The process can have written any number. */
static const struct {
	const char *name;
	uint32_t offset;
	int32_t least, most, unit;
} heap_numbers[] = {
#define NUMBER(name, least, most, unit) \
	{ \
#name, offsetof(struct v8_numbers, name), least, most, unit \
	}
#define MEMBER(name, size, width) NUMBER(name, 8, (size) - (width), width)
	MEMBER(map_type, V8_MAP_SIZE, 2),
	MEMBER(map_words, V8_MAP_SIZE, 1),
	MEMBER(map_first, V8_MAP_SIZE, 1),
	MEMBER(map_bits2, V8_MAP_SIZE, 1),
	MEMBER(map_bits3, V8_MAP_SIZE, 4),
	MEMBER(map_prototype, V8_MAP_SIZE, 8),
	MEMBER(map_constructor, V8_MAP_SIZE, 8),
	MEMBER(map_descriptors, V8_MAP_SIZE, 8),
	MEMBER(object_properties, HEAD, 8),
	MEMBER(object_elements, HEAD, 8),
	MEMBER(symbol_name, HEAD, 8),
	MEMBER(string_length, STRING_HEAD, 4),
	MEMBER(function_shared, OBJECT_MAX, 8),
	MEMBER(function_context, OBJECT_MAX, 8),
	NUMBER(string_one_byte, STRING_HEAD - 4, STRING_MAX, 1),
	NUMBER(string_two_bytes, STRING_HEAD - 4, STRING_MAX, 1),
	NUMBER(bytecodes_data, HEAD, OBJECT_MAX, 1),
	NUMBER(map_dictionary, 1, 31, 1),
	NUMBER(names_prefix, 1, PREFIX_MAX, 1),
	NUMBER(scope_first, 0, SCOPE_MAX, 1),
	NUMBER(type_function, 1, TYPE_MAX, 1),
	/* not every version has these */
	NUMBER(buffer_store, 0, OBJECT_MAX, 8),
	NUMBER(buffer_bytes, 0, OBJECT_MAX, 8),
#undef MEMBER
#undef NUMBER
};

static struct err *numbers_check(const struct v8_numbers *n)
{
	for (size_t i = 0; i < ARRAY_SIZE(heap_numbers); i++) {
		const int32_t have =
			*(const int32_t *)(const void *)((const char *)n + heap_numbers[i].offset);

		if (!have && heap_numbers[i].least)
			return err_new(0, "it does not publish the numbers of V8's objects");
		if (have < heap_numbers[i].least || have > heap_numbers[i].most ||
		    have % heap_numbers[i].unit)
			return err_new(
				0, "it publishes wrong numbers of V8's objects: %s cannot be %d",
				heap_numbers[i].name, have);
	}
	return NULL;
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
	e = numbers_check(&x->v8->n);
	if (e)
		return e;
	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		x->budget += x->copy->runs.v[i].end - x->copy->runs.v[i].start;
	x->walk = x->budget * 4 + (64 << 20);
	x->holds = x->budget / 8 + (1 << 16);
	x->words = x->budget / 8 * 2 + (1 << 20); /* each word is searched once, or twice */
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
