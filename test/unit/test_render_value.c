/* print(): values of C's own structs, described to the graph by hand and laid out by it. */
#include "unit.h"

#include <stdbool.h>

#include "render/value.h"

static struct type_graph *g;
static struct out o;

static int setup(void **state)
{
	g = type_graph_new();
	out_init(&o, NULL);
	return 0;
}

static int teardown(void **state)
{
	out_fini(&o);
	type_graph_free(g);
	return 0;
}

static const char *text(type_id t, const void *p, size_t n, const struct value_style *style)
{
	o.n = 0;
	value_print(&o, g, t, p, n, style);
	out_char(&o, '\0');
	return o.v;
}

static const char *json(type_id t, const void *p, size_t n, const struct value_style *style)
{
	o.n = 0;
	value_json(&o, g, t, p, n, style);
	out_char(&o, '\0');
	return o.v;
}

static type_id parse(const char *name)
{
	type_id t;

	if (!type_parse_name(g, name, &t))
		fail_msg("not a type: %s", name);
	return t;
}

#define SCALAR(name, ctype, v, c_text, json_text) \
	do { \
		ctype v_ = (v); \
		assert_string_equal(text(parse(name), &v_, sizeof(v_), NULL), \
				    "(" name ")" c_text "\n"); \
		assert_string_equal(json(parse(name), &v_, sizeof(v_), NULL), \
				    "{\"type\":\"" name "\",\"value\":" json_text "}"); \
	} while (0)

static void test_scalars(void **state)
{
	type_id e = type_new_enum(g, "color");

	type_add_enumerator(g, e, "RED", 1);
	type_add_enumerator(g, e, "BLUE", 7);
	SCALAR("int", int, -5, "-5", "-5");
	SCALAR("unsigned int", unsigned, 0xffffffff, "4294967295", "4294967295");
	SCALAR("uint64_t", uint64_t, UINT64_MAX, "18446744073709551615", "18446744073709551615");
	SCALAR("int64_t", int64_t, INT64_MIN, "-9223372036854775808", "-9223372036854775808");
	SCALAR("short", short, -1, "-1", "-1");
	SCALAR("unsigned char", unsigned char, 200, "200", "200");
	SCALAR("char", char, 't', "'t'", "116");
	SCALAR("char", char, '\n', "'\\n'", "10");
	SCALAR("char", char, '\'', "'\\''", "39");
	SCALAR("char", char, 0, "'\\0'", "0");
	SCALAR("_Bool", bool, true, "1", "true");
	SCALAR("void *", uint64_t, 0xffff9b7aca7e0000, "0xffff9b7aca7e0000",
	       "\"0xffff9b7aca7e0000\"");
	SCALAR("enum color", int, 7, "BLUE", "\"BLUE\"");
	SCALAR("enum color", int, 3, "3", "3");
	SCALAR("double", double, 1.5, "1.5", "1.5");
	SCALAR("float", float, -0.25f, "-0.25", "-0.25");
	SCALAR("long double", long double, 2.0L, "2", "2");
	SCALAR("double", double, __builtin_inf(), "inf", "null");
}

struct inner {
	void *e;
	uint64_t f;
};

struct test_struct {
	int a;
	char b[5];
	union {
		uint8_t c;
		uint64_t d;
	} u;
	struct inner s;
	bool g;
	int h;
	unsigned low : 3;
	int high : 5;
	int (*fn)(int);
	short v[4];
	struct inner list[2];
	union {
		int x;
		struct {
			char y;
			char z;
		};
	};
	int flex[];
};

static type_id make_struct(void)
{
	type_id t = type_new_sou(g, TYPE_STRUCT, "test_struct"),
		u = type_new_sou(g, TYPE_UNION, ""), in, an, yz;
	type_id en = type_new_enum(g, "eh");

	type_add_enumerator(g, en, "FIRSTVAL", 0);
	type_add_enumerator(g, en, "SECONDVAL", 1);
	type_add_member(g, u, "c", T_UINT8, 0);
	type_add_member(g, u, "d", T_UINT64, 0);
	type_complete(g, u);
	in = type_new_sou(g, TYPE_STRUCT, "inner");
	type_add_member(g, in, "e", T_VOIDPTR, 0);
	type_add_member(g, in, "f", T_UINT64, 0);
	type_complete(g, in);
	yz = type_new_sou(g, TYPE_STRUCT, "");
	type_add_member(g, yz, "y", T_CHAR, 0);
	type_add_member(g, yz, "z", T_CHAR, 0);
	type_complete(g, yz);
	an = type_new_sou(g, TYPE_UNION, "");
	type_add_member(g, an, "x", T_INT, 0);
	type_add_member(g, an, "", yz, 0);
	type_complete(g, an);
	type_add_member(g, t, "a", T_INT, 0);
	type_add_member(g, t, "b", type_new_array(g, T_CHAR, 5), 0);
	type_add_member(g, t, "u", u, 0);
	type_add_member(g, t, "s", in, 0);
	type_add_member(g, t, "g", T_BOOL, 0);
	type_add_member(g, t, "h", en, 0);
	type_add_member(g, t, "low", T_UINT, 3);
	type_add_member(g, t, "high", T_INT, 5);
	type_add_member(g, t, "fn", parse("int (*)(int)"), 0);
	type_add_member(g, t, "v", type_new_array(g, T_SHORT, 4), 0);
	type_add_member(g, t, "list", type_new_array(g, in, 2), 0);
	type_add_member(g, t, "", an, 0);
	type_add_member(g, t, "flex", type_new_array(g, T_INT, 0), 0);
	type_complete(g, t);
	assert_int_equal(type_size(g, t), sizeof(struct test_struct));
	return t;
}

static const struct test_struct full = {
	.a = 1,
	.b = "test",
	.u.d = 123456789,
	.s = { (void *)0xffff9b7aca7e0000, 987654321 },
	.g = true,
	.h = 1,
	.low = 5,
	.high = -3,
	.fn = (int (*)(int))0xffffffff81000010,
	.v = { 0, 2, 0, -4 },
	.list[1].f = 9,
	.x = 0x4241,
};

static bool symbol(void *arg, uint64_t addr, char *buf, size_t n)
{
	if (addr != 0xffffffff81000010)
		return false;
	snprintf(buf, n, "vmlinux`do_it");
	return true;
}

static void test_struct_text(void **state)
{
	type_id t = make_struct();
	struct value_style style = {
		.has_addr = true, .addr = 0xabc0, .indent = 4, .symbol = symbol
	};

	assert_string_equal(text(t, &full, sizeof(full), &style),
			    "0xabc0 = *\n"
			    "    (struct test_struct) {\n"
			    "     .a = (int)1,\n"
			    "     .b = (char [5])\"test\",\n"
			    "     .u = (union) {\n"
			    "      .c = (uint8_t)21,\n"
			    "      .d = (uint64_t)123456789,\n"
			    "     },\n"
			    "     .s = (struct inner) {\n"
			    "      .e = (void *)0xffff9b7aca7e0000,\n"
			    "      .f = (uint64_t)987654321,\n"
			    "     },\n"
			    "     .g = (_Bool)1,\n"
			    "     .h = (enum eh)SECONDVAL,\n"
			    "     .low = (unsigned int)5,\n"
			    "     .high = (int)-3,\n"
			    "     .fn = (int (*)(int))vmlinux`do_it,\n"
			    "     .v = (short [4]) [\n"
			    "      [1] = (short)2,\n"
			    "      [3] = (short)-4,\n"
			    "     ],\n"
			    "     .list = (struct inner [2]) [\n"
			    "      [1] = (struct inner) {\n"
			    "       .f = (uint64_t)9,\n"
			    "      },\n"
			    "     ],\n"
			    "     (union) {\n"
			    "      .x = (int)16961,\n"
			    "      (struct) {\n"
			    "       .y = (char)'A',\n"
			    "       .z = (char)'B',\n"
			    "      },\n"
			    "     },\n"
			    "    }\n");
}

/* Oracle's own expected output for a struct of zeros with two members set. */
static void test_dtrace_form(void **state)
{
	type_id t = make_struct();
	struct test_struct v = { .g = true };
	struct value_style style = { .has_addr = true, .addr = 0x10, .indent = 44, .dtrace = true };

	assert_string_equal(text(t, &v, offsetof(struct test_struct, v), &style),
			    "0x10 = *\n"
			    "                                            (struct test_struct) {\n"
			    "                                             .g = (_Bool)1,\n"
			    "                                             .h = (enum eh)FIRSTVAL,\n"
			    "                                             ...\n"
			    "                                            }\n");
	memcpy(v.b, "te", 2);
	style = (struct value_style){ .dtrace = true };
	assert_string_equal(text(parse("char [5]"), v.b, 5, &style),
			    "(char [5]) [\n (char)'t',\n (char)'e',\n]\n");
	assert_string_equal(text(parse("char [5]"), v.b, 5, NULL), "(char [5])\"te\"\n");
}

static void test_zeros(void **state)
{
	type_id t = make_struct();
	struct inner v = { NULL, 0 };
	struct value_style style = { .zeros = true };

	(void)t;
	assert_string_equal(text(parse("struct inner"), &v, sizeof(v), NULL),
			    "(struct inner) {\n}\n");
	assert_string_equal(text(parse("struct inner"), &v, sizeof(v), &style),
			    "(struct inner) {\n .e = (void *)0x0,\n .f = (uint64_t)0,\n}\n");
}

static void test_cut(void **state)
{
	type_id t = make_struct();

	assert_string_equal(
		text(t, &full, 12, NULL),
		"(struct test_struct) {\n .a = (int)1,\n .b = (char [5])\"test\",\n ...\n}\n");
	assert_string_equal(text(t, &full, offsetof(struct test_struct, s) + 8, NULL),
			    "(struct test_struct) {\n"
			    " .a = (int)1,\n"
			    " .b = (char [5])\"test\",\n"
			    " .u = (union) {\n"
			    "  .c = (uint8_t)21,\n"
			    "  .d = (uint64_t)123456789,\n"
			    " },\n"
			    " .s = (struct inner) {\n"
			    "  .e = (void *)0xffff9b7aca7e0000,\n"
			    "  ...\n"
			    " },\n"
			    "}\n");
	assert_string_equal(text(T_LONG, &full, 4, NULL), "(long)...\n");
	assert_string_equal(text(t, NULL, 0, NULL), "(struct test_struct)...\n");
	assert_string_equal(
		json(t, &full, 12, NULL),
		"{\"type\":\"struct test_struct\",\"value\":{\"a\":1,\"b\":\"test\"},\"truncated\":true}");
	assert_string_equal(json(T_LONG, &full, 4, NULL),
			    "{\"type\":\"long\",\"value\":null,\"truncated\":true}");
	/* Every length, with the bytes where reading past them is seen. */
	for (size_t n = 0; n <= sizeof(full); n++) {
		uint8_t *copy = xmemdup(&full, n ? n : 1);

		text(t, copy, n, NULL);
		json(t, copy, n, NULL);
		free(copy);
	}
}

static void test_struct_json(void **state)
{
	type_id t = make_struct();
	struct value_style style = { .has_addr = true, .addr = 0xabc0 };

	assert_string_equal(
		json(t, &full, sizeof(full), &style),
		"{\"type\":\"struct test_struct\",\"addr\":\"0xabc0\",\"value\":{\"a\":1,\"b\":\"test\","
		"\"u\":{\"c\":21,\"d\":123456789},\"s\":{\"e\":\"0xffff9b7aca7e0000\",\"f\":987654321},\"g\":true,"
		"\"h\":\"SECONDVAL\",\"low\":5,\"high\":-3,\"fn\":\"0xffffffff81000010\",\"v\":[0,2,0,-4],"
		"\"list\":[{\"e\":\"0x0\",\"f\":0},{\"e\":\"0x0\",\"f\":9}],\"x\":16961,\"y\":65,\"z\":66}}");
}

static void test_strings(void **state)
{
	char s[256] = "a\"b\\c\n\x01\xc3\xa9\xff\xed\xa0\x80z";

	assert_string_equal(text(T_STRING, s, sizeof(s), NULL),
			    "(string)\"a\\\"b\\\\c\\n\\001\\303\\251\\377\\355\\240\\200z\"\n");
	assert_string_equal(
		json(T_STRING, s, sizeof(s), NULL),
		"{\"type\":\"string\",\"value\":\"a\\\"b\\\\c\\n\\u0001\xc3\xa9\\u00ff\\u00ed\\u00a0\\u0080z\"}");
	/* Cut before its NUL. */
	assert_string_equal(json(T_STRING, s, 3, NULL),
			    "{\"type\":\"string\",\"value\":\"a\\\"b\",\"truncated\":true}");
	assert_string_equal(text(parse("char [2]"), "xy", 2, NULL), "(char [2])\"xy\"\n");
}

/* Bits that straddle bytes, and signs. */
static void test_bits(void **state)
{
	const uint8_t b[] = { 0x80, 0xff, 0x01, 0, 0, 0, 0, 0, 0xff };
	uint64_t v;

	assert_true(value_bits(b, sizeof(b), 7, 10, false, &v));
	assert_int_equal(v, 0x3ff);
	assert_true(value_bits(b, sizeof(b), 7, 10, true, &v));
	assert_int_equal(v, -1);
	assert_true(value_bits(b, sizeof(b), 7, 12, true, &v));
	assert_int_equal(v, 0x3ff);
	assert_true(value_bits(b, sizeof(b), 4, 64, false, &v));
	assert_int_equal(v, 0xf000000000001ff8ull);
	assert_false(value_bits(b, sizeof(b), 9, 64, false, &v));
	assert_false(value_bits(b, sizeof(b), UINT64_MAX, 1, false, &v));
	assert_false(value_bits(b, sizeof(b), 0, 65, false, &v));
}

static void test_arrays(void **state)
{
	int m[2][2] = { { 1, 2 }, { 0, 4 } };
	char names[2][4] = { "ab", "cd" };

	assert_string_equal(
		text(parse("int [2][2]"), m, sizeof(m), NULL),
		"(int [2][2]) [\n (int [2]) [\n  (int)1,\n  (int)2,\n ],\n (int [2]) [\n  [1] = (int)4,\n ],\n]\n");
	assert_string_equal(json(parse("int [2][2]"), m, sizeof(m), NULL),
			    "{\"type\":\"int [2][2]\",\"value\":[[1,2],[0,4]]}");
	assert_string_equal(json(parse("char [2][4]"), names, sizeof(names), NULL),
			    "{\"type\":\"char [2][4]\",\"value\":[\"ab\",\"cd\"]}");
	assert_string_equal(text(parse("int [2][2]"), m, 7, NULL),
			    "(int [2][2]) [\n (int [2]) [\n  (int)1,\n  ...\n ],\n]\n");
}

/* A process's own types: of long names, and of many constants. */
static void test_large_types(void **state)
{
	enum { NAME = 1 << 20, CONSTANTS = 1 << 18, ELEMENTS = 20000 };
	cleanup_free char *name = malloc(NAME + 1);
	cleanup_free int *values = malloc(ELEMENTS * sizeof(*values));
	type_id s, e;

	memset(name, 'x', NAME);
	name[NAME] = 0;
	memset(values, 1, ELEMENTS * sizeof(*values));
	s = type_new_sou(g, TYPE_STRUCT, name);
	type_add_member(g, s, name, T_INT, 0);
	type_complete(g, s);
	(void)text(type_new_array(g, s, ELEMENTS), values, ELEMENTS * sizeof(*values), NULL);
	assert_true(o.n < 16 * NAME);
	assert_non_null(strstr(o.v, "..."));
	(void)json(type_new_array(g, s, ELEMENTS), values, ELEMENTS * sizeof(*values), NULL);
	assert_true(o.n < 16 * NAME);
	assert_non_null(strstr(o.v, "\"truncated\":true"));

	e = type_new_enum(g, "many");
	for (uint32_t i = 0; i < CONSTANTS; i++)
		type_add_enumerator(g, e, "ONE", i);
	assert_non_null(strstr(text(type_new_array(g, e, ELEMENTS), values,
				    ELEMENTS * sizeof(*values), NULL),
			       "..."));
	assert_non_null(strstr(json(type_new_array(g, e, ELEMENTS), values,
				    ELEMENTS * sizeof(*values), NULL),
			       "\"truncated\":true"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_scalars, setup, teardown),
		cmocka_unit_test_setup_teardown(test_struct_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dtrace_form, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_struct_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arrays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_types, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
