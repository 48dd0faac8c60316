/* Flame graphs: geometry, and names that cannot leave their place in the document. */
#include "unit.h"

#include "render/picture_flame.h"

static struct stacktree tree;

static void add(const char *text, size_t n, uint64_t count)
{
	stacktree_add_text(&tree, text, n, count);
}

static int setup(void **state)
{
	stacktree_init(&tree);
	return 0;
}

static int teardown(void **state)
{
	stacktree_fini(&tree);
	return 0;
}

static char *svg(const struct flame_options *o, struct flame_result *ret)
{
	struct out out = { 0 };

	stacktree_finish(&tree);
	svg_write(&tree, o, &out, ret);
	out_char(&out, '\0');
	return out.v;
}

static char *html(const struct flame_options *o)
{
	struct flame_result r;
	struct out out = { 0 };

	stacktree_finish(&tree);
	html_write(&tree, o, &out, &r);
	out_char(&out, '\0');
	return out.v;
}

static unsigned count_of(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void assert_has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("there is no %s", what);
}

static void test_geometry(void **state)
{
	struct flame_options o = { .title = "a & b" };
	struct flame_result r;
	cleanup_free char *s = NULL, *inverted = NULL;

	add("a;b_[k]", 7, 750);
	add("a;c", 3, 250);
	s = svg(&o, &r);
	assert_int_equal(r.shown, 4);
	assert_int_equal(r.culled, 0);
	assert_has(s, "width=\"1200\" height=\"118\"");
	assert_has(s, "<title>all (1,000 samples, 100%)</title><rect x=\"10.0\" y=\"69\" "
		      "width=\"1180.0\" height=\"15.0\"");
	assert_has(s, "<title>a (1,000 samples, 100.00%)</title><rect x=\"10.0\" y=\"53\"");
	assert_has(s, "<title>b (750 samples, 75.00%)</title><rect x=\"10.0\" y=\"37\" "
		      "width=\"885.0\"");
	assert_has(s, "<title>c (250 samples, 25.00%)</title><rect x=\"895.0\" y=\"37\" "
		      "width=\"295.0\"");
	assert_has(s, ">a &amp; b</text>");
	o.inverted = true;
	inverted = svg(&o, &r);
	assert_has(inverted, "<title>all (1,000 samples, 100%)</title><rect x=\"10.0\" y=\"36\"");
	assert_has(inverted, "<title>b (750 samples, 75.00%)</title><rect x=\"10.0\" y=\"68\"");
}

static void test_culling(void **state)
{
	struct flame_options o = { .min_width = 1 };
	struct flame_result r;
	cleanup_free char *s = NULL;

	add("a", 1, 1000000);
	add("b;c;d", 5, 3);
	s = svg(&o, &r);
	assert_int_equal(r.shown, 2);
	assert_int_equal(r.culled, 3);
	assert_has(s, ">3 frames are too narrow to be shown</text>");
}

static void test_empty(void **state)
{
	struct flame_options o = { 0 };
	struct flame_result r;
	cleanup_free char *s = svg(&o, &r), *h = html(&o);

	assert_has(s, "There are no stacks in the input.");
	assert_has(h, "\"depth\":[0]");
}

static void test_diff_colors(void **state)
{
	struct flame_options o = { 0 };
	struct flame_result r;
	cleanup_free char *s = NULL;

	stacktree_add_change(&tree, "more", 4, 10, 30);
	stacktree_add_change(&tree, "less", 4, 30, 10);
	stacktree_add_change(&tree, "same", 4, 10, 10);
	s = svg(&o, &r);
	assert_has(s, "<title>more (30 samples, 60.00%; +40.00%)</title>");
	assert_has(s, "<title>less (10 samples, 20.00%; -40.00%)</title>");
	assert_has(s, "fill=\"#ff7070\"");
	assert_has(s, "fill=\"#7070ff\"");
	assert_has(s, "fill=\"#f2f2f2\"");
}

/* All of it is text of XML 1.0: valid UTF-8, no control characters. */
static void assert_clean(const char *text)
{
	for (const uint8_t *p = (const uint8_t *)text; *p; p++) {
		unsigned more = *p < 0x80 ? 0 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;

		assert_true(*p >= 0x20 || *p == '\n' || *p == '\t');
		assert_true(*p != 0x7f && (*p < 0x80 || (*p >= 0xc2 && *p < 0xf5)));
		while (more--)
			assert_int_equal(*++p & 0xc0, 0x80);
	}
}

static void test_hostile_names(void **state)
{
	static const char *const names[] = {
		"<script>alert(1)</script>", "]]><script>alert(2)</script>",
		"</script><script>alert(3)", "\" onload=\"alert(4)",
		"' onmouseover='alert(5)",   "&lt;&#60;script&gt;",
		"\x01\x02\x1b[31m\x7f",      "\xff\xfe\xc0\xaf\xed\xa0\x80",
		"\xe2\x80\xae gnp.exe",      "\xf0\x9f\x94\xa5 na\xc3\xafve",
		"\xc2\x85\xef\xbf\xbf",      "\xe2\x80",
		"\\u003cscript\\u003e",      "<!-- --><![CDATA[",
	};
	enum { LONG = 64 * 1024 };
	cleanup_free char *big = xmalloc(LONG), *s = NULL, *h = NULL;
	struct flame_options o = { .title = "</title><script>alert(6)</script>",
				   .subtitle = "\"\xff<script>",
				   .count_name = "<b>&" };
	struct flame_result r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		add(names[i], strlen(names[i]), 100);
	for (size_t i = 0; i < LONG; i++)
		big[i] = "\xe2\x82\xac"[i % 3];
	add(big, LONG, 5000);
	s = svg(&o, &r);
	h = html(&o);
	assert_clean(s);
	assert_clean(h);
	assert_int_equal(count_of(s, "<script"), 1);
	assert_int_equal(count_of(s, "]]>"), 1);
	assert_int_equal(count_of(h, "<script"), 2);
	assert_int_equal(count_of(h, "</script"), 2);
	assert_int_equal(count_of(h, "<!--"), 0);
	assert_null(strstr(s, "\" onload"));
	assert_has(s, "\\x01\\x02\\x1b[31m\\x7f");
	assert_has(s, "\\xff\\xfe\\xc0\\xaf\\xed\\xa0\\x80");
	assert_has(s, "\\u202e gnp.exe");
	assert_has(s, "\\u0085\\uffff");
	assert_has(s, "\xf0\x9f\x94\xa5 na\xc3\xafve");
	assert_has(s, ".. (65536 bytes)");
	assert_has(s, "\\u003cscript");
}

static void test_palettes(void **state)
{
	struct flame_options o = { .palette = FLAME_KIND };
	uint32_t a, b;

	add("f_[k]", 5, 1);
	add("f", 1, 1);
	add("m`g", 3, 1);
	stacktree_finish(&tree);
	a = flame_color(&tree, 1, &o, 1);
	b = flame_color(&tree, 2, &o, 1);
	assert_true(a != b);
	o.palette = FLAME_HOT; /* a mark is no part of the name */
	assert_int_equal(flame_color(&tree, 1, &o, 1), flame_color(&tree, 2, &o, 1));
	for (int p = 0; p < FLAME_NPALETTES; p++) {
		o.palette = (enum flame_palette)p;
		assert_int_equal(flame_palette_named(flame_palette_name(o.palette)), p);
		for (uint32_t i = 0; i < tree.nodes.n; i++)
			assert_true(flame_color(&tree, i, &o, 1) <= 0xffffff);
	}
	assert_int_equal(flame_palette_named("none"), FLAME_NPALETTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_geometry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_culling, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_diff_colors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_palettes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
