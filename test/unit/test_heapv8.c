/* src/memory/heaplive/v8_*.c on memory that is made up. */
#include <stddef.h>

#include "unit.h"

#include "v8_heap_memory.h"

static struct heap_memory mem;

static struct graph *read_made(bool counts, uint64_t *ret_skipped)
{
	const struct graph_wanted w = { .labels = true, .counts = counts };
	struct graph *g = graph_new(&w);
	struct v8_reader x;
	struct space *s;
	struct memory_copy *c = NULL;
	struct v8 v;

	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	vh_reader(&x, &v, c, s, g);
	assert_null(v8_read(&x));
	if (ret_skipped)
		*ret_skipped = x.skipped;
	assert_null(graph_finish(g));
	vh_reader_fini(&x);
	space_free(s);
	memory_copy_free(c);
	return g;
}

/* The name of the reference between two objects; NULL: there is none. */
static const char *reference(struct graph *g, uint64_t from, uint64_t to,
			     enum graph_strength strength)
{
	static char buf[64];
	struct graph_edge_to e;
	graph_id id = graph_find(g, from);
	struct graph_walk w;

	assert_int_not_equal(id, GRAPH_NONE);
	w = graph_out(g, id);
	while (graph_walk_next(&w, &e))
		if (graph_address(g, e.id) == to && e.strength == strength)
			return graph_label_text(g, e.label, buf, sizeof(buf));
	return NULL;
}

static uint64_t count(struct graph *g, const char *class)
{
	struct graph_rows r;
	uint64_t n = 0;

	graph_histogram(g, GRAPH_ALL, &r);
	for (uint32_t i = 0; i < r.n; i++)
		if (!strcmp(graph_class_text(g, r.v[i].class), class))
			n += r.v[i].n;
	graph_rows_free(&r);
	return n;
}

static bool reaches(struct graph *g, uint64_t addr)
{
	graph_id id = graph_find(g, addr);

	assert_int_not_equal(id, GRAPH_NONE);
	return graph_reachable(g, id);
}

static void v8_objects(void **state)
{
	uint64_t skipped = 1;
	struct graph *g;

	(void)state;
	vh_make(&mem);
	g = read_made(false, &skipped);
	assert_int_equal(skipped, 0);
	assert_int_equal(graph_totals(g)->objects, VH_MAPS + 13);
	assert_int_equal(count(g, "Node"), 4);
	assert_int_equal(count(g, "(closure Node)"), 1);
	assert_int_equal(count(g, "(string)"), 2);
	assert_int_equal(graph_size(g, graph_find(g, VH_ITEMS)), 40);
	assert_int_equal(graph_size(g, graph_find(g, VH_NODE_NAMES)), 72);
	assert_string_equal(reference(g, VH_A, VH_B, GRAPH_STRONG), "next");
	assert_string_equal(reference(g, VH_A, VH_ITEMS, GRAPH_STRONG), "Node");
	assert_string_equal(reference(g, VH_A, VH_OUTSIDE, GRAPH_STRONG), "properties");
	assert_string_equal(reference(g, VH_ITEMS, VH_C, GRAPH_STRONG), "[1]");
	assert_non_null(reference(g, VH_WEAK, VH_B, GRAPH_WEAK));
	assert_non_null(reference(g, VH_EPHEMERON, VH_LAST, GRAPH_WEAK));
	assert_non_null(reference(g, VH_B, VH_LAST, GRAPH_STRONG));
	assert_true(reaches(g, VH_C) && reaches(g, VH_LAST) && reaches(g, VH_MAKER));
	assert_false(reaches(g, VH_WEAK));
	graph_free(g);
}

static void v8_counted(void **state)
{
	struct graph *whole, *counted;

	(void)state;
	vh_make(&mem);
	whole = read_made(false, NULL);
	counted = read_made(true, NULL);
	for (uint32_t i = 0; i < graph_classes(whole); i++)
		assert_int_equal(count(counted, graph_class_text(whole, i)),
				 count(whole, graph_class_text(whole, i)));
	assert_int_equal(graph_totals(counted)->objects, graph_totals(whole)->objects);
	assert_int_equal(graph_totals(counted)->bytes, graph_totals(whole)->bytes);
	graph_free(whole);
	graph_free(counted);
}

/* What is being moved is passed over, and the walk finds the next object. */
static void v8_moved(void **state)
{
	uint64_t skipped;
	struct graph *g;

	(void)state;
	vh_make(&mem);
	heap_memory_put(&mem, VH_B, VH_C); /* the collector has moved it there */
	g = read_made(false, &skipped);
	assert_int_equal(skipped, 8); /* the others are zeros */
	assert_int_equal(count(g, "Node"), 3);
	graph_free(g);
}

static void v8_no_pages(void **state)
{
	const struct graph_wanted w = { 0 };
	struct graph *g = graph_new(&w);
	struct v8_reader x;
	struct space *s;
	struct err *e;
	struct memory_copy *c = NULL;
	struct v8 v;

	(void)state;
	heap_memory_init(&mem);
	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	vh_reader(&x, &v, c, s, g);
	e = v8_read(&x);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "the pages of V8's heap cannot be found"));
	err_free(e);
	vh_reader_fini(&x);
	graph_free(g);
	space_free(s);
	memory_copy_free(c);
}

/* Reads the heap with one of the published numbers changed. Returns the error's text or "". */
static const char *read_with(uint32_t offset, int32_t number)
{
	const struct graph_wanted w = { .labels = true };
	static char text[256];
	struct graph *g = graph_new(&w);
	struct memory_copy *c = NULL;
	struct v8_reader x;
	struct space *s;
	struct err *e;
	struct v8 v;

	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	vh_reader(&x, &v, c, s, g);
	memcpy((char *)&v.n + offset, &number, sizeof(number));
	e = v8_read(&x);
	snprintf(text, sizeof(text), "%s", e ? e->text : "");
	err_free(e);
	vh_reader_fini(&x);
	graph_free(g);
	space_free(s);
	memory_copy_free(c);
	return text;
}

/* The process writes whatever it likes over the numbers: no read leaves the copy. */
static void v8_forged_numbers(void **state)
{
	static const int32_t forged[] = { INT32_MIN, -1000000000, -8,         1,        25,
					  72,        0x10000000,  2000000000, INT32_MAX };

	(void)state;
	vh_make(&mem);
	for (uint32_t at = 0; at < sizeof(struct v8_numbers); at += 4)
		for (size_t i = 0; i < ARRAY_SIZE(forged); i++)
			read_with(at, forged[i]);
	assert_non_null(strstr(read_with(offsetof(struct v8_numbers, map_words), 2000000000),
			       "map_words cannot be 2000000000"));
	assert_non_null(strstr(read_with(offsetof(struct v8_numbers, map_prototype), 68),
			       "map_prototype cannot be 68"));
	assert_non_null(strstr(read_with(offsetof(struct v8_numbers, map_dictionary), 0),
			       "does not publish"));
	assert_string_equal(read_with(offsetof(struct v8_numbers, buffer_store), 0), "");
}

/* Reads a heap with a dictionary whose names are symbols, all with one description. */
static struct graph *read_symbols(uint32_t n, uint64_t work, struct v8 *v)
{
	const struct graph_wanted w = { .labels = true };
	const uint64_t names = VH_REST + n * 24ull, end = names + 16 + (6 + 3ull * n) * 8;
	struct graph *g = graph_new(&w);
	struct memory_copy *c = NULL;
	struct v8_reader x;
	struct space *s;

	vh_make(&mem);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t symbol = VH_REST + i * 24ull,
			       entry = names + 16 + (6 + 3ull * i) * 8;

		heap_memory_put(&mem, symbol, vh_map(VH_SYMBOL));
		heap_memory_put(&mem, symbol + 16, VH_NAME_B + 1);
		heap_memory_put(&mem, entry, symbol + 1);
		heap_memory_put(&mem, entry + 8, VH_C + 1);
	}
	heap_memory_put(&mem, names, vh_map(VH_DICTIONARY));
	heap_memory_put(&mem, names + 8, vh_small(6 + 3 * n));
	vh_space(&mem, end, VH_END - end);
	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	vh_reader(&x, v, c, s, g);
	v->work = work;
	assert_null(v8_read(&x));
	assert_null(graph_finish(g));
	vh_reader_fini(&x);
	space_free(s);
	memory_copy_free(c);
	return g;
}

/* A description of many pieces is put together once, and not when too many were. */
static void v8_symbols_of_one_text(void **state)
{
	enum { MANY = 20, WORK = 1 << 20 };
	struct v8 one, many, none;
	struct graph *g;

	(void)state;
	graph_free(read_symbols(1, WORK, &one));
	g = read_symbols(MANY, WORK, &many);
	assert_string_equal(reference(g, VH_REST + MANY * 24, VH_C, GRAPH_STRONG), "Symbol(next)");
	for (uint32_t i = 0; i < graph_remarks(g); i++)
		assert_null(strstr(graph_remark_text(g, i), "too many or too long"));
	graph_free(g);
	assert_int_equal(many.budget, one.budget);
	assert_int_equal(many.work, one.work);
	assert_in_range(many.work, WORK / 2, WORK - 32);
	g = read_symbols(1, 100, &none);
	assert_string_equal(reference(g, VH_REST + 24, VH_C, GRAPH_STRONG), "Symbol()");
	assert_non_null(strstr(graph_remark_text(g, graph_remarks(g) - 1), "too many or too long"));
	graph_free(g);
	assert_int_equal(none.work, 100);
}

/* Any number of heaps can lie in one block, whose words are searched for each of them. */
static void v8_heaps_in_one_block(void **state)
{
	enum { HEAPS = 1000 };
	const struct graph_wanted w = { .labels = true };
	struct memory_copy *c = NULL;
	struct v8_reader x;
	struct graph *g;
	struct space *s;
	uint32_t remarks;
	struct v8 v;

	(void)state;
	vh_make(&mem);
	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	g = graph_new(&w);
	vh_reader(&x, &v, c, s, g);
	assert_null(v8_read(&x));
	assert_int_equal(x.heaps.n, 1);
	remarks = graph_remarks(g);
	assert_true(x.words > 0);
	/* once more, with many heaps */
	heap_fini(&x.blocks);
	x.blocks = (struct leaks_heap){ 0 };
	for (uint32_t i = 0; i < HEAPS; i++)
		vec_push(&x.heaps, VH_HEAP + i % 4 * 8);
	v8_roots_add(&x);
	assert_int_equal(x.words, 0);
	assert_int_equal(graph_remarks(g), remarks + 1);
	assert_non_null(strstr(graph_remark_text(g, remarks), "more heaps and handles"));
	assert_null(graph_finish(g));
	graph_free(g);
	vh_reader_fini(&x);
	space_free(s);
	memory_copy_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v8_objects),
		cmocka_unit_test(v8_counted),
		cmocka_unit_test(v8_moved),
		cmocka_unit_test(v8_no_pages),
		cmocka_unit_test(v8_forged_numbers),
		cmocka_unit_test(v8_symbols_of_one_text),
		cmocka_unit_test(v8_heaps_in_one_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
