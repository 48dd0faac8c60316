/* Bytes as a dump file of the kind hprof. What is read answers every question. Several readers make
 * the graph that one makes. */
#define _GNU_SOURCE
#include "dump_ask.h"
#include "memory/heap/heap.h"
#include "memory/heapfile/hprof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct graph *graph_of(const char *path, uint64_t memory)
{
	struct graph *g = graph_new(&(struct graph_wanted){ .labels = true, .memory = memory });
	struct err *e = heap_source_hprof.read_file(path, g) ?: graph_finish(g);

	if (!e)
		return g;
	err_free(e);
	graph_free(g);
	return NULL;
}

/* With a limit of memory there is one reader. */
static void ask_readers(const uint8_t *data, size_t size)
{
	char path[INPUT_PATH];
	int fd = input_file(data, size, path);
	struct graph *one = graph_of(path, 1ull << 40), *many = graph_of(path, 0);

	if (one && !many)
		abort();
	if (one && many) {
		const struct graph_totals *a = graph_totals(one), *b = graph_totals(many);

		if (a->objects != b->objects || a->bytes != b->bytes || a->edges != b->edges ||
		    a->weak_edges != b->weak_edges || a->roots != b->roots ||
		    a->repeated != b->repeated || a->dangling != b->dangling ||
		    graph_remarks(one) != graph_remarks(many) ||
		    graph_reach(one)->bytes != graph_reach(many)->bytes)
			abort();
		dump_walk(many);
	}
	graph_free(one);
	graph_free(many);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hprof_limits(64, size % 256);
	ask_readers(data, size);
	return dump_ask(&heap_source_hprof, data, size);
}
