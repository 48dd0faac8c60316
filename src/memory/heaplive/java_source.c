/* The source of graphs "java": HotSpot's heap, by the structures that libjvm.so publishes. */
#include "memory/heaplive/java_heap.h"
#include "memory/heaplive/live_copy.h"
#include "memory/heaplive/objects.h"

enum { HOLDS_MAX = 1 << 24 /* of 32 bytes each */ };

static const char *collector_name(enum java_collector c)
{
	switch (c) {
	case JAVA_SERIAL: return "Serial";
	case JAVA_PARALLEL: return "Parallel";
	case JAVA_G1: return "G1";
	case JAVA_ZGC: return "ZGC";
	}
	return "";
}

static void remarks_add(struct java_reader *x)
{
	uint64_t heap = jvm_get(x->jvm, x->layout.variable.heap, (struct jvm_member){ 0, 8 });

	graph_remark(x->graph,
		     "Java's collector is %s; %llu objects in %u parts of its heap, %llu bytes of "
		     "threads' buffers without objects yet",
		     collector_name(x->collector), (unsigned long long)x->objects, x->parts.n,
		     (unsigned long long)x->holes);
	if (jvm_get(x->jvm, heap, (struct jvm_member){ x->layout.heap_active.at, 1 }) == 1)
		graph_remark(x->graph, "the collector was at work: objects that it moves may be "
				       "missing or be there twice");
	if (x->skipped)
		graph_remark(x->graph,
			     "%llu bytes of the heap are no objects: half made, or of classes that "
			     "are unloaded",
			     (unsigned long long)x->skipped);
	if (x->outside)
		graph_remark(x->graph,
			     "%llu bytes of the heap are not in its memory: objects are "
			     "missing",
			     (unsigned long long)x->outside);
	if (!x->zgc.looks)
		graph_remark(x->graph, "the tables of moved objects are fuller than the collector "
				       "makes them: references to some are missing");
	if (x->unheld)
		graph_remark(x->graph,
			     "%llu references of threads, class loaders and the JVM are left out: "
			     "there are too many for a process of its size",
			     (unsigned long long)x->unheld);
	if (x->copy->left_out)
		graph_remark(x->graph,
			     "%llu bytes of private mappings of files that it has not touched are "
			     "left out",
			     (unsigned long long)x->copy->left_out);
	if (x->budget < 64)
		graph_remark(x->graph, "its classes claim more memory than the process has: some "
				       "objects and references are missing");
}

struct err *java_read(struct java_reader *x)
{
	struct err *e;

	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		x->budget += x->copy->runs.v[i].end - x->copy->runs.v[i].start;
	x->values = x->budget * 2 + (1 << 20);
	x->zgc.looks = x->budget + (1 << 20); /* a table is half empty: a reference needs two */
	x->holds = x->budget / 16 + (1 << 16);
	if (x->holds > HOLDS_MAX)
		x->holds = HOLDS_MAX;
	x->budget = x->budget / 8 * 4 + (1 << 20);
	if (x->collector == JAVA_ZGC)
		java_zgc_moves(x);
	e = java_classes_find(x);
	e = e ?: java_parts_find(x);
	if (e)
		return e;
	java_objects_add(x);
	if (!graph_wanted(x->graph)->counts)
		java_roots_add(x);
	remarks_add(x);
	return NULL;
}

void java_reader_fini(struct java_reader *x)
{
	for (uint32_t i = 0; i < x->parts.n; i++) {
		free(x->parts.v[i].starts);
		free(x->parts.v[i].made);
	}
	vec_fini(&x->parts);
	vec_fini(&x->zgc.moved);
	vec_fini(&x->buffers);
	vec_fini(&x->classes);
	vec_fini(&x->refs);
	vec_fini(&x->numbers);
	free(x->class_slots);
}

static struct err *read_runtime(struct memory_copy *c, struct runtime *r, struct graph *g)
{
	struct java_reader x = { .copy = c, .jvm = (struct jvm *)r, .graph = g };
	struct err *e = java_layout_read(&x);

	e = e ?: java_read(&x);
	java_reader_fini(&x);
	return e;
}

static struct err *read_copy(struct memory_copy *copy, struct space *s, struct graph *g)
{
	return live_read(copy, s, &runtime_jvm, read_runtime, g);
}

const struct heap_source heap_source_java = {
	.name = "java",
	.what = "Java",
	.runtime = &runtime_jvm,
	.files = true, /* objects of the class data archive lie in pages of its file */
	.read_copy = read_copy,
};
