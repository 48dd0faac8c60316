/* A fuzz target's input as a dump of a heap: it is read, and everything is asked of the graph. */
#ifndef DESCRY_TEST_FUZZ_DUMP_ASK_H
#define DESCRY_TEST_FUZZ_DUMP_ASK_H

#include "input_file.h"
#include "memory/heap/heap.h"
#include "memory/heapfile/hprof_write.h"

static inline bool dump_wanted(void *arg, graph_id id)
{
	(void)arg;
	return id % 2 == 0;
}

static inline void dump_walk(struct graph *g)
{
	uint64_t out = 0, in = 0, retained = 0;

	for (graph_id id = 0; id < graph_totals(g)->objects; id++) {
		struct graph_walk w = graph_out(g, id);
		struct graph_edge_to e;

		while (graph_walk_next(&w, &e))
			out++;
		w = graph_in(g, id);
		while (graph_walk_next(&w, &e))
			in++;
		if (graph_find(g, graph_address(g, id)) != id)
			abort();
		if (graph_reachable(g, id) && graph_dominator(g, id) == GRAPH_NONE)
			retained += graph_retained(g, id);
	}
	if (out != in || out != graph_totals(g)->edges + graph_totals(g)->weak_edges)
		abort();
	if (retained != graph_reach(g)->bytes)
		abort();
}

static inline void ask_find(struct graph *g, const char *find, const char *by,
			    const struct heap_shown *how, struct out *o)
{
	struct heap_find *f = NULL;
	struct err *e = heap_find_new(find, by, &f);

	if (e)
		abort();
	err_free(heap_show_find(g, f, how, o));
	heap_find_free(f);
}

static inline int dump_ask(const struct heap_source *source, const uint8_t *data, size_t size)
{
	const struct heap_shown shown = { .name = "x", .source = source, .most = 20, .percent = 10 };
	const struct heap_shown json = {
		.name = "x", .source = source, .most = 20, .percent = 10, .json = true
	};
	struct graph *g = graph_new(
		&(struct graph_wanted){ .labels = true, .contents = true, .values = true });
	struct graph_paths paths;
	char path[INPUT_PATH];
	int fd = input_file(data, size, path);
	struct err *e = source->read_file(path, g);
	struct stacktree tree;
	char **texts = NULL;
	struct out o;

	e = e ?: graph_finish(g);
	if (!e) {
		out_init(&o, NULL);
		dump_walk(g);
		graph_paths(g, dump_wanted, NULL, &paths);
		graph_paths_fini(&paths);
		heap_show_summary(g, &shown, &o);
		heap_show_suspects(g, &shown, &o);
		heap_show_suspects(g, &json, &o);
		heap_show_biggest(g, &shown, &o);
		heap_show_retained(g, &shown, &o);
		heap_show_duplicates(g, &json, &o);
		heap_show_diff(g, g, &shown, &o);
		err_free(heap_show_paths(g, "1", &shown, &o));
		ask_find(g, "size > 10 && class != \"x\"", NULL, &shown, &o);
		ask_find(g, "text > \"x\" || this->next->value > this->x[3]", "this->value", &json,
			 &o);
		o.n = 0;
		hprof_write(g, &o);
		o.n = 0;
		err_free(heap_write_snapshot(g, &o));
		stacktree_init(&tree);
		heap_stacktree(g, &tree, &texts);
		heap_tree_paths_free(texts, &tree);
		stacktree_fini(&tree);
		out_fini(&o);
	}
	err_free(e);
	graph_free(g);
	close(fd);
	return 0;
}

#endif
