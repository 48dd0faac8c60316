/* src/memory/heaplive/ on memory that is made up. */
#include "unit.h"

#include "objects_memory.h"

static struct heap_memory mem;
static bool labels, counting; /* are wanted */

static struct graph *read_mem(bool ruby)
{
	const struct graph_wanted w = { .labels = labels, .counts = counting };
	struct memory_copy *c = NULL;
	struct graph *g = graph_new(&w);
	struct python p;
	struct space *s;
	struct ruby r;

	assert_null(memory_copy(&mem.space, &c));
	s = memory_copy_space(c, &mem.space);
	om_ruby_init(&r, s);
	om_python_init(&p, s);
	assert_null(ruby ? ruby_read(c, &r, g) : python_read(c, &p, g));
	assert_null(graph_finish(g));
	arena_fini(&r.names);
	arena_fini(&p.names);
	space_free(s);
	memory_copy_free(c);
	return g;
}

/* Has the object at `from` a reference to that at `to`? */
static bool refers(struct graph *g, uint64_t from, uint64_t to)
{
	struct graph_edge_to e;
	graph_id id = graph_find(g, from);
	struct graph_walk w;

	assert_int_not_equal(id, GRAPH_NONE);
	w = graph_out(g, id);
	while (graph_walk_next(&w, &e))
		if (graph_address(g, e.id) == to)
			return true;
	return false;
}

static uint64_t size_of(struct graph *g, uint64_t addr)
{
	graph_id id = graph_find(g, addr);

	assert_int_not_equal(id, GRAPH_NONE);
	return graph_size(g, id);
}

/* A graph that counts has the rows of the whole graph. */
static void counts(void **state)
{
	struct graph_rows whole, counted;
	struct graph *g, *n;

	(void)state;
	for (int ruby = 0; ruby < 2; ruby++) {
		if (ruby)
			om_make_ruby(&mem);
		else
			om_make_python(&mem);
		g = read_mem(ruby);
		counting = true;
		n = read_mem(ruby);
		counting = false;
		assert_true(graph_totals(g)->objects > 5);
		assert_int_equal(graph_totals(n)->objects, graph_totals(g)->objects);
		assert_int_equal(graph_totals(n)->bytes, graph_totals(g)->bytes);
		graph_histogram(g, GRAPH_ALL, &whole);
		graph_histogram(n, GRAPH_ALL, &counted);
		assert_int_equal(counted.n, whole.n);
		for (uint32_t i = 0; i < whole.n; i++) {
			assert_string_equal(graph_class_text(n, counted.v[i].class),
					    graph_class_text(g, whole.v[i].class));
			assert_int_equal(counted.v[i].n, whole.v[i].n);
			assert_int_equal(counted.v[i].bytes, whole.v[i].bytes);
		}
		graph_rows_free(&whole);
		graph_rows_free(&counted);
		graph_free(g);
		graph_free(n);
	}
}

static void ruby_objects(void **state)
{
	struct graph *g;

	(void)state;
	om_make_ruby(&mem);
	g = read_mem(true);
	assert_int_equal(graph_totals(g)->objects, 10);
	assert_int_equal(graph_totals(g)->dangling, 0);
	assert_true(refers(g, om_slot(OM_OBJECT), om_slot(OM_TEXT)));
	assert_true(refers(g, om_slot(OM_OBJECT), om_slot(OM_ARRAY)));
	assert_true(refers(g, om_slot(OM_OBJECT), om_slot(OM_HASH)));
	for (uint32_t i = 0; i < 3; i++)
		assert_true(refers(g, om_slot(OM_ARRAY), om_slot(OM_ITEM + i)));
	assert_true(refers(g, om_slot(OM_HASH), om_slot(OM_DATA)));
	assert_false(refers(g, om_slot(OM_HASH), om_slot(OM_LOST)));
	assert_true(refers(g, om_slot(OM_DATA), om_slot(OM_ITEM))); /* through two blocks */
	assert_int_equal(size_of(g, om_slot(OM_OBJECT)), 40);
	assert_int_equal(size_of(g, om_slot(OM_TEXT)), 40 + 95 + 1);
	assert_int_equal(size_of(g, om_slot(OM_ARRAY)), 40 + 8 * 8);
	assert_int_equal(size_of(g, om_slot(OM_HASH)), 40 + 56 + 8 * 24);
	assert_non_null(graph_root_kind(g, graph_find(g, om_slot(OM_OBJECT))));
	assert_null(graph_root_kind(g, graph_find(g, om_slot(OM_ITEM))));
	assert_true(graph_reachable(g, graph_find(g, om_slot(OM_ITEM + 2))));
	assert_false(graph_reachable(g, graph_find(g, om_slot(OM_LOST))));
	graph_free(g);
}

/* Pages that are listed twice, that overlap, and that are none. */
static void ruby_hostile_pages(void **state)
{
	struct graph *g;

	(void)state;
	om_make_ruby(&mem);
	heap_memory_put(&mem, OM_COLLECTOR + 24, 5);
	heap_memory_put(&mem, OM_LIST + 8, OM_PAGE);
	heap_memory_put(&mem, OM_LIST + 16, OM_PAGE);
	heap_memory_put(&mem, OM_LIST + 24, OM_PAGE + 0x40);
	heap_memory_put(&mem, OM_LIST + 32, 0xdead0000);
	heap_memory_put(&mem, OM_PAGE + 0x40, OM_SLOT | 0xffffull << 16);
	heap_memory_put(&mem, OM_PAGE + 0x40 + 32, OM_SLOTS + 0x400);
	g = read_mem(true);
	assert_int_equal(graph_totals(g)->objects, 10);
	graph_free(g);
}

/* Lengths that no memory has, and a class that is its own superclass. */
static void ruby_hostile_objects(void **state)
{
	struct graph *g;

	(void)state;
	om_make_ruby(&mem);
	heap_memory_put(&mem, om_slot(OM_ARRAY) + 16, UINT64_MAX / 8);
	heap_memory_put(&mem, om_slot(OM_CLASS), RUBY_CLASS | RUBY_USER(0));
	heap_memory_put(&mem, om_slot(OM_CLASS) + 16, om_slot(OM_CLASS));
	g = read_mem(true);
	assert_int_equal(graph_totals(g)->objects, 10);
	assert_false(refers(g, om_slot(OM_ARRAY), om_slot(OM_ITEM)));
	graph_free(g);
}

/* Classes that all claim names for 65,536 variables. */
static void ruby_many_labels(void **state)
{
	enum { CLASSES = 4, EXTRA = HM_VAR + 0xa00, TABLE = HM_VAR + 0xa40 };
	struct graph *g;

	(void)state;
	om_make_ruby(&mem);
	heap_memory_put(&mem, EXTRA, TABLE);
	heap_memory_put(&mem, TABLE + 40, 1 << 16);
	heap_memory_put(&mem, TABLE + 48, OM_SLOTS);
	for (uint32_t i = 0; i < CLASSES; i++) {
		om_object(&mem, 20 + i, RUBY_CLASS, om_slot(OM_CLASS), 0, EXTRA, 0);
		om_object(&mem, 30 + i, RUBY_OBJECT | RUBY_USER(1), om_slot(20 + i),
			  om_slot(OM_TEXT), 0, 0);
	}
	labels = true;
	g = read_mem(true);
	labels = false;
	assert_int_equal(graph_totals(g)->objects, 10 + 2 * CLASSES);
	assert_non_null(strstr(graph_remark_text(g, graph_remarks(g) - 1), "claim more memory"));
	graph_free(g);
}

static void python_objects(void **state)
{
	struct graph *g;

	(void)state;
	om_make_python(&mem);
	g = read_mem(false);
	assert_int_equal(graph_totals(g)->objects, 5 + OM_TYPES);
	assert_true(refers(g, om_python(OM_PY_LIST), om_python(OM_PY_DICT)));
	assert_true(refers(g, om_python(OM_PY_LIST), om_python(OM_PY_FLOAT)));
	assert_true(refers(g, om_python(OM_PY_DICT), om_python(OM_PY_OTHER)));
	assert_true(refers(g, om_python(OM_PY_OTHER), om_python(OM_PY_LIST)));
	assert_int_equal(size_of(g, om_python(OM_PY_LIST)), 16 + 40 + 4 * 8);
	assert_int_equal(size_of(g, om_python(OM_PY_DICT)), 16 + 48 + 32 + 8 + 5 * 24);
	assert_int_equal(size_of(g, om_python(OM_PY_FLOAT)), 24);
	assert_non_null(graph_root_kind(g, graph_find(g, om_python(OM_PY_LIST))));
	/* all references to it are found in the list */
	assert_null(graph_root_kind(g, graph_find(g, om_python(OM_PY_LOST))));
	assert_int_equal(graph_dominator(g, graph_find(g, om_python(OM_PY_LOST))),
			 graph_find(g, om_python(OM_PY_LIST)));
	graph_free(g);
}

/* A list of the collector that has a circle, and one that leads out of the memory. */
static void python_hostile_lists(void **state)
{
	struct graph *g;

	(void)state;
	om_make_python(&mem);
	heap_memory_put(&mem, om_python(OM_PY_OTHER) - 16, om_python(OM_PY_DICT) - 16);
	heap_memory_put(&mem, OM_PY_LISTS + 24, 0x123456789abcdef8);
	heap_memory_put(&mem, om_python(OM_PY_LIST) + 16, UINT64_MAX);
	g = read_mem(false);
	assert_int_not_equal(graph_find(g, om_python(OM_PY_DICT)), GRAPH_NONE);
	assert_int_not_equal(graph_find(g, om_python(OM_PY_OTHER)), GRAPH_NONE);
	assert_int_equal(graph_remarks(g), 2);
	graph_free(g);
}

/* An object of a type that is too small for its kind is none: what lies behind it is not read. */
static void python_small_type(void **state)
{
	struct graph *g;

	(void)state;
	om_make_python(&mem);
	heap_memory_put(&mem, om_type(OM_TYPE_DICT) + PYTHON_TYPE_BASIC, 47);
	g = read_mem(false);
	assert_int_equal(graph_find(g, om_python(OM_PY_DICT)), GRAPH_NONE);
	assert_int_not_equal(graph_find(g, om_python(OM_PY_LIST)), GRAPH_NONE);
	graph_free(g);
}

/* A type whose objects have items, but no room for their number. */
static void python_items_without_number(void **state)
{
	(void)state;
	for (uint64_t item = 0; item <= 8; item += 8)
		for (uint64_t basic = 16; basic <= 24; basic += 8) {
			struct graph *g;

			om_make_python(&mem);
			heap_memory_put(&mem, om_type(OM_TYPE_FLOAT) + PYTHON_TYPE_BASIC, basic);
			heap_memory_put(&mem, om_type(OM_TYPE_FLOAT) + PYTHON_TYPE_ITEM, item);
			heap_memory_put(&mem, om_python(OM_PY_FLOAT) + 16, 2);
			g = read_mem(false);
			if (item && basic < 24)
				assert_int_equal(graph_find(g, om_python(OM_PY_FLOAT)), GRAPH_NONE);
			else
				assert_int_equal(size_of(g, om_python(OM_PY_FLOAT)),
						 basic + 2 * item);
			graph_free(g);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ruby_objects),
		cmocka_unit_test(ruby_hostile_pages),
		cmocka_unit_test(ruby_hostile_objects),
		cmocka_unit_test(python_objects),
		cmocka_unit_test(python_hostile_lists),
		cmocka_unit_test(python_small_type),
		cmocka_unit_test(python_items_without_number),
		cmocka_unit_test(ruby_many_labels),
		cmocka_unit_test(counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
