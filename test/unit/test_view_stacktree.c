/* The stack tree: merging, order, totals, reversing, differences. */
#include "unit.h"

#include "render/folded.h"
#include "view/stacktree.h"

static char *folded(struct stacktree *t)
{
	struct out o = { 0 };

	stacktree_finish(t);
	folded_write(t, FOLDED_WHOLE, &o);
	out_char(&o, '\0');
	return o.v;
}

static void expect(struct stacktree *t, const char *text)
{
	cleanup_free char *is = folded(t);

	assert_string_equal(is, text);
}

static void add(struct stacktree *t, const char *text, uint64_t n)
{
	stacktree_add_text(t, text, strlen(text), n);
}

static uint32_t find(const struct stacktree *t, const char *name)
{
	for (uint32_t i = 1; i < t->nodes.n; i++) {
		const struct stacktree_frame *n = stacktree_frame_of(t, i);

		if (n->len == strlen(name) && !memcmp(n->text, name, n->len))
			return i;
	}
	return STACKTREE_NONE;
}

static void test_merge(void **state)
{
	struct stacktree t;
	uint32_t b;

	stacktree_init(&t);
	add(&t, "a;b;c", 2);
	add(&t, "a;b", 3);
	add(&t, "a;bb;c", 1);
	add(&t, "a;b;c", 5);
	add(&t, "a", 1);
	add(&t, "", 4);
	add(&t, ";x", 1);
	expect(&t, " 4\n;x 1\na 1\na;b 3\na;b;c 7\na;bb;c 1\n");
	b = find(&t, "b");
	assert_int_equal(t.nodes.v[b].total, 10);
	assert_int_equal(t.nodes.v[b].size, 2);
	assert_int_equal(t.nodes.v[0].total, 17);
	assert_int_equal(t.depth, 3);
	add(&t, "a;b;c", 1); /* after finish */
	expect(&t, " 4\n;x 1\na 1\na;b 3\na;b;c 8\na;bb;c 1\n");
	stacktree_fini(&t);
}

/* Lines are ordered by their bytes, which is not the order of a walk: ' ' < '-' < ';'. */
static void test_order(void **state)
{
	struct stacktree t;

	stacktree_init(&t);
	add(&t, "a;x", 1);
	add(&t, "a-b", 1);
	add(&t, "a", 1);
	add(&t, "a b;c", 1);
	add(&t, "\xff", 1);
	expect(&t, "a 1\na b;c 1\na-b 1\na;x 1\n\xff 1\n");
	stacktree_fini(&t);
}

static void test_names(void **state)
{
	struct stacktree t;
	uint32_t ids[3], many[20];

	stacktree_init(&t);
	ids[0] = stacktree_marked(&t, "leaf", 4);
	ids[1] = stacktree_marked(&t, "mid", 3);
	ids[2] = stacktree_marked(&t, "root", 4);
	assert_int_equal(stacktree_marked(&t, "leafy", 4), ids[0]);
	stacktree_add(&t, ids, 3, 5);
	stacktree_add(&t, ids, 3, 5);
	stacktree_add(&t, ids + 1, 2, 1);
	add(&t, "root;mid;leaf", 1);
	expect(&t, "root;mid 1\nroot;mid;leaf 11\n");
	for (uint32_t i = 0; i < 20; i++) { /* more children than the list is searched for */
		char name[8];

		many[i] = stacktree_marked(&t, name, (size_t)sprintf(name, "n%u", i));
	}
	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 20; i++)
			stacktree_add(&t, &many[i], 1, 1);
	stacktree_finish(&t);
	assert_int_equal(t.nodes.n, 1 + 3 + 20);
	assert_int_equal(t.nodes.v[find(&t, "n0")].total, 3);
	assert_int_equal(t.nodes.v[find(&t, "n19")].total, 3);
	stacktree_fini(&t);
}

static void test_saturation(void **state)
{
	struct stacktree t;

	stacktree_init(&t);
	add(&t, "a", UINT64_MAX - 1);
	add(&t, "a", 5);
	add(&t, "b", 5);
	stacktree_finish(&t);
	assert_true(t.nodes.v[0].total == UINT64_MAX);
	stacktree_fini(&t);
}

/* Levels of objects and lists; the names hold no brackets. */
static uint32_t nesting(const struct out *o)
{
	uint32_t depth = 0, most = 0;

	for (size_t i = 0; i < o->n; i++) {
		if (o->v[i] == '{' || o->v[i] == '[')
			depth++;
		else if (o->v[i] == '}' || o->v[i] == ']')
			depth--;
		most = depth > most ? depth : most;
	}
	assert_int_equal(depth, 0);
	return most;
}

static void test_deep(void **state)
{
	enum { DEPTH = 300000 };
	cleanup_free char *text = xmalloc(DEPTH * 2);
	struct stacktree t, reversed;
	struct out o = { 0 };

	memset(text, ';', DEPTH * 2);
	for (uint32_t i = 0; i < DEPTH; i++)
		text[i * 2] = "ab"[i & 1];
	stacktree_init(&t);
	stacktree_init(&reversed);
	stacktree_add_text(&t, text, DEPTH * 2 - 1, 1);
	stacktree_finish(&t);
	assert_int_equal(t.depth, DEPTH);
	folded_write(&t, FOLDED_WHOLE, &o);
	assert_int_equal(o.n, DEPTH * 2 - 1 + 3);
	o.n = 0;
	stacktree_json(&t, &o);
	assert_in_range(nesting(&o), 60, 97);
	stacktree_reverse(&t, &reversed);
	stacktree_finish(&reversed);
	assert_int_equal(reversed.nodes.n, t.nodes.n);
	out_fini(&o);
	stacktree_fini(&t);
	stacktree_fini(&reversed);
}

static void test_reverse(void **state)
{
	struct stacktree t, r;

	stacktree_init(&t);
	stacktree_init(&r);
	add(&t, "a;b;c", 2);
	add(&t, "a;d;c", 3);
	add(&t, "a", 1);
	stacktree_finish(&t);
	stacktree_reverse(&t, &r);
	expect(&r, "a 1\nc;b;a 2\nc;d;a 3\n");
	stacktree_fini(&t);
	stacktree_fini(&r);
}

static void test_diff(void **state)
{
	struct stacktree a, b, d;

	stacktree_init(&a);
	stacktree_init(&b);
	stacktree_init(&d);
	add(&a, "x;y", 10);
	add(&a, "x;gone", 10);
	add(&b, "x;y", 30);
	add(&b, "x;new", 10);
	stacktree_finish(&a);
	stacktree_finish(&b);
	stacktree_diff(&a, &b, false, &d);
	expect(&d, "x;gone 10 0\nx;new 0 10\nx;y 10 30\n");
	assert_int_equal(d.before.v[0].total, 20);
	assert_int_equal(d.nodes.v[0].total, 40);
	stacktree_fini(&d);
	stacktree_init(&d);
	stacktree_diff(&a, &b, true, &d);
	expect(&d, "x;gone 20 0\nx;new 0 10\nx;y 20 30\n");
	stacktree_fini(&a);
	stacktree_fini(&b);
	stacktree_fini(&d);
}

static void test_json(void **state)
{
	struct stacktree t;
	struct out o = { 0 };

	stacktree_init(&t);
	add(&t, "a;b", 1);
	add(&t, "a;\"\xff\n", 2);
	add(&t, "c", 3);
	stacktree_finish(&t);
	stacktree_json(&t, &o);
	out_char(&o, '\0');
	assert_string_equal(o.v, "{\"name\":\"all\",\"value\":6,\"self\":0,\"children\":["
				 "{\"name\":\"a\",\"value\":3,\"self\":0,\"children\":["
				 "{\"name\":\"\\\"\\\\xff\\n\",\"value\":2,\"self\":2},\n"
				 "{\"name\":\"b\",\"value\":1,\"self\":1}]},\n"
				 "{\"name\":\"c\",\"value\":3,\"self\":3}]}\n");
	out_fini(&o);
	stacktree_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge), cmocka_unit_test(test_order),
		cmocka_unit_test(test_names), cmocka_unit_test(test_saturation),
		cmocka_unit_test(test_deep),  cmocka_unit_test(test_reverse),
		cmocka_unit_test(test_diff),  cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
