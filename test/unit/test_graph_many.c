/* Graphs with many references of one object to another, and many sets of paths: what is done for
 * each of them must not depend on how large the graph is. */
#include "unit.h"

#include "memory/graph/graph_private.h"
#include "memory/heap/heap.h"

enum { ITEMS = 1000, OBJECTS = 600000, SETS = 8 };

/* Of the references of one list to an object, each has its own label. */
static void referrers(void **state)
{
	const struct graph_wanted w = { .labels = true };
	struct graph *g = graph_new(&w);
	const uint32_t class = graph_class(g, 1);
	struct graph_walk in;
	struct graph_edge_to e;

	(void)state;
	graph_object(g, 0x100, class, 16);
	for (uint32_t i = 0; i < ITEMS; i++)
		graph_edge(g, i % 2 ? 0x300 : 0x200, GRAPH_LABEL_INDEX | i, GRAPH_STRONG);
	graph_object(g, 0x200, class, 16);
	graph_object(g, 0x300, class, 16);
	graph_edge(g, 0x300, GRAPH_LABEL_INDEX | 7, GRAPH_STRONG);
	assert_null(graph_finish(g));
	in = graph_in(g, graph_find(g, 0x300));
	for (uint32_t i = 1; i < ITEMS; i += 2) {
		assert_true(graph_walk_next(&in, &e));
		assert_int_equal(graph_address(g, e.id), 0x100);
		assert_int_equal(e.label, GRAPH_LABEL_INDEX | i);
	}
	assert_true(graph_walk_next(&in, &e));
	assert_int_equal(graph_address(g, e.id), 0x300);
	assert_int_equal(e.label, GRAPH_LABEL_INDEX | 7);
	assert_false(graph_walk_next(&in, &e));
	graph_free(g);
}

/* The paths to a set need no more memory of the size of the graph. */
static void paths_of_sets(void **state)
{
	struct graph *g = graph_new(NULL);
	const uint32_t class = graph_class(g, 1);
	struct graph_ways *ways;
	size_t used, spared;

	(void)state;
	for (uint64_t i = 0; i < OBJECTS; i++)
		graph_object(g, 0x1000 + i * 16, class, 16);
	graph_root(g, 0x1000, "root");
	graph_root(g, 0x1010, "root");
	assert_null(graph_finish(g));
	ways = graph_ways_new(g);
	used = g->memory.used;
	spared = g->memory.spared;
	for (graph_id id = 0; id < SETS; id++) {
		struct graph_paths p;

		assert_int_equal(graph_ways_to(ways, &id, 1, &p), 1);
		assert_int_equal(p.wanted, id < 2);
		assert_int_equal(p.nodes.n, id < 2);
		graph_paths_fini(&p);
	}
	assert_int_equal(g->memory.used, used);
	assert_int_equal(g->memory.spared, spared);
	graph_ways_free(ways);
	graph_free(g);
}

/* Of a String with many references, no more are looked at for its text than are left to look at. */
static void text_of_many(void **state)
{
	const struct graph_wanted w = { .labels = true, .values = true };
	struct graph *g = graph_new(&w);
	const uint32_t string = graph_class(g, 1), other = graph_class(g, 2);
	uint64_t budget = ITEMS / 2;
	struct out o;

	(void)state;
	graph_class_name(g, string, "java.lang.String", 16);
	graph_object(g, 0x100, string, 16);
	for (uint32_t i = 0; i < ITEMS; i++)
		graph_edge(g, 0x200, GRAPH_LABEL_NONE, GRAPH_STRONG);
	graph_object(g, 0x200, other, 16);
	assert_null(graph_finish(g));
	out_init(&o, NULL);
	assert_false(heap_text(g, graph_find(g, 0x100), &o, &budget));
	assert_int_equal(budget, 0);
	out_fini(&o);
	graph_free(g);
}

/* The name of a kind of roots is short: each root may have it. */
static void long_kind(void **state)
{
	struct graph *g = graph_new(NULL);
	char kind[10000];

	(void)state;
	memset(kind, 'k', sizeof(kind) - 1);
	kind[sizeof(kind) - 1] = 0;
	graph_object(g, 0x100, graph_class(g, 1), 16);
	graph_root(g, 0x100, kind);
	assert_null(graph_finish(g));
	assert_int_equal(strlen(graph_root_kind(g, graph_find(g, 0x100))), 256);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(referrers),
		cmocka_unit_test(paths_of_sets),
		cmocka_unit_test(text_of_many),
		cmocka_unit_test(long_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
