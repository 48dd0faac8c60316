/* The graph without any kernel: builtins, layout against the compiler's own, names both ways. */
#include "unit.h"

#include <stdbool.h>
#include <sys/types.h>

#include "program/type/type.h"

static struct type_graph *g;
static struct arena arena;

static int setup(void **state)
{
	g = type_graph_new();
	arena_init(&arena);
	return 0;
}

static int teardown(void **state)
{
	arena_fini(&arena);
	type_graph_free(g);
	return 0;
}

static type_id parse(const char *text)
{
	type_id t;

	if (!type_parse_name(g, text, &t))
		fail_msg("not a type: %s", text);
	return t;
}

static void test_builtins(void **state)
{
	static const struct {
		type_id t;
		const char *name;
		uint64_t size;
		bool is_signed;
	} known[] = {
		{ T_CHAR, "char", 1, true },
		{ T_UCHAR, "unsigned char", 1, false },
		{ T_SHORT, "short", 2, true },
		{ T_USHORT, "unsigned short", 2, false },
		{ T_INT, "int", 4, true },
		{ T_UINT, "unsigned int", 4, false },
		{ T_LONG, "long", 8, true },
		{ T_ULONG, "unsigned long", 8, false },
		{ T_LLONG, "long long", 8, true },
		{ T_ULLONG, "unsigned long long", 8, false },
		{ T_BOOL, "_Bool", 1, false },
		{ T_INT8, "int8_t", 1, true },
		{ T_INT64, "int64_t", 8, true },
		{ T_UINT64, "uint64_t", 8, false },
		{ T_SIZE, "size_t", 8, false },
		{ T_PID, "pid_t", 4, true },
		{ T_UID, "uid_t", 4, false },
		{ T_STRING, "string", 256, false },
		{ T_LDOUBLE, "long double", 16, false },
		{ T_U_LONGLONG_T, "u_longlong_t", 8, false },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(known); i++) {
		type_id t;

		assert_int_equal(type_size(g, known[i].t), known[i].size);
		assert_int_equal(type_is_signed(g, known[i].t), known[i].is_signed);
		assert_string_equal(type_name(g, &arena, known[i].t, NULL), known[i].name);
		assert_true(type_lookup(g, NULL, TYPE_TYPEDEF, known[i].name, &t));
		assert_int_equal(t, known[i].t);
	}
	assert_int_equal(type_kind(g, 0), TYPE_VOID);
	assert_int_equal(type_size(g, T_VOID), 0);
	assert_int_equal(type_size(g, T_VOIDPTR), 8);
	assert_true(type_is_char_pointer(g, T_CHARPTR));
	assert_false(type_is_char_pointer(g, T_VOIDPTR));
	assert_true(type_is_string(g, T_STRING));
	assert_false(type_is_scalar(g, T_STRING));
	assert_false(type_is_scalar(g, T_DOUBLE));
	assert_int_equal(type_new_pointer(g, T_CHAR), T_CHARPTR);
	assert_int_equal(type_new_pointer(g, T_LONG), type_new_pointer(g, T_LONG));
	assert_true(type_int_flags(g, T_BOOL) & TYPE_BOOL);
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "task_struct", &(type_id){ 0 }));
	assert_null(type_kernel_err(g));
	type_set_strsize(g, 1000);
	assert_int_equal(type_size(g, type_new_array(g, T_STRING, 2)), 2000);
}

/* Every id has an answer, even an id that names nothing. */
static void test_wild_ids(void **state)
{
	uint32_t n;
	bool v;

	assert_int_equal(type_kind(g, 123456), TYPE_VOID);
	assert_int_equal(type_size(g, UINT32_MAX), 0);
	assert_int_equal(type_strip(g, UINT32_MAX), T_VOID);
	assert_string_equal(type_tag(g, 99999), "void");
	type_members(g, T_INT, &n);
	assert_int_equal(n, 0);
	type_params(g, 77777, &n, &v);
	assert_int_equal(n, 0);
}

static void same_member(type_id s, const char *name, uint64_t offset, uint64_t size)
{
	struct type_member m;

	if (!type_find_member(g, s, name, &m))
		fail_msg("no member %s", name);
	if (m.bit_offset != offset * 8 || type_size(g, m.type) != size)
		fail_msg("%s: bit %lu size %lu, wanted %lu %lu", name, m.bit_offset,
			 type_size(g, m.type), offset * 8, size);
}

#define SAME(type, s, member) \
	same_member(s, #member, offsetof(type, member), sizeof(((type *)0)->member))

static void same_whole(type_id s, uint64_t size, uint32_t align)
{
	assert_int_equal(type_size(g, s), size);
	assert_int_equal(type_align(g, s), align);
	assert_true(type_is_complete(g, s));
}

struct plain {
	char a;
	short b;
	char c;
	long d;
	char e[3];
	int f;
	long double g;
	char *h;
	char i;
};

struct nested {
	char a;
	struct plain p;
	char b;
	union {
		int u1;
		char u2[7];
		struct {
			short in1;
			double in2;
		};
	};
	bool c;
	int flex[];
};

static type_id make_plain(void)
{
	type_id s = type_new_sou(g, TYPE_STRUCT, "plain");

	assert_false(type_is_complete(g, s));
	type_add_member(g, s, "a", T_CHAR, 0);
	type_add_member(g, s, "b", T_SHORT, 0);
	type_add_member(g, s, "c", T_CHAR, 0);
	type_add_member(g, s, "d", T_LONG, 0);
	type_add_member(g, s, "e", type_new_array(g, T_CHAR, 3), 0);
	type_add_member(g, s, "f", T_INT, 0);
	type_add_member(g, s, "g", T_LDOUBLE, 0);
	type_add_member(g, s, "h", T_CHARPTR, 0);
	type_add_member(g, s, "i", T_CHAR, 0);
	type_complete(g, s);
	return s;
}

static void test_layout(void **state)
{
	type_id p = make_plain(), n, u, in;

	SAME(struct plain, p, a);
	SAME(struct plain, p, b);
	SAME(struct plain, p, c);
	SAME(struct plain, p, d);
	SAME(struct plain, p, e);
	SAME(struct plain, p, f);
	SAME(struct plain, p, g);
	SAME(struct plain, p, h);
	SAME(struct plain, p, i);
	same_whole(p, sizeof(struct plain), _Alignof(struct plain));

	in = type_new_sou(g, TYPE_STRUCT, "");
	type_add_member(g, in, "in1", T_SHORT, 0);
	type_add_member(g, in, "in2", T_DOUBLE, 0);
	type_complete(g, in);
	u = type_new_sou(g, TYPE_UNION, "");
	type_add_member(g, u, "u1", T_INT, 0);
	type_add_member(g, u, "u2", type_new_array(g, T_CHAR, 7), 0);
	type_add_member(g, u, "", in, 0);
	type_complete(g, u);
	n = type_new_sou(g, TYPE_STRUCT, "nested");
	type_add_member(g, n, "a", T_CHAR, 0);
	type_add_member(g, n, "p", p, 0);
	type_add_member(g, n, "b", T_CHAR, 0);
	type_add_member(g, n, "", u, 0);
	type_add_member(g, n, "c", T_BOOL, 0);
	type_add_member(g, n, "flex", type_new_array(g, T_INT, 0), 0);
	type_complete(g, n);
	SAME(struct nested, n, a);
	SAME(struct nested, n, p);
	SAME(struct nested, n, b);
	SAME(struct nested, n, u1);
	SAME(struct nested, n, u2);
	SAME(struct nested, n, in1);
	SAME(struct nested, n, in2);
	SAME(struct nested, n, c);
	same_member(n, "flex", offsetof(struct nested, flex), 0);
	same_whole(n, sizeof(struct nested), _Alignof(struct nested));
	assert_false(type_find_member(g, n, "absent", &(struct type_member){ 0 }));
	assert_false(type_find_member(g, n, "", &(struct type_member){ 0 }));
}

/* The bits of a bit-field are found by setting them and looking at the bytes. */
#define BITS(type, s, member, width) \
	do { \
		type v_; \
		uint64_t first_ = 0, count_ = 0, ones_ = ~0ull; \
		const uint8_t *b_ = (const uint8_t *)&v_; \
		struct type_member m_; \
		memset(&v_, 0, sizeof(v_)); \
		v_.member = ones_; \
		for (uint64_t i_ = sizeof(v_) * 8; i_-- > 0;) { \
			if (b_[i_ / 8] >> (i_ % 8) & 1) { \
				first_ = i_; \
				count_++; \
			} \
		} \
		assert_true(type_find_member(g, s, #member, &m_)); \
		assert_int_equal(count_, width); \
		assert_int_equal(m_.bit_size, width); \
		assert_int_equal(m_.bit_offset, first_); \
	} while (0)

struct bits1 {
	unsigned a : 3;
	unsigned b : 30;
	char c;
	unsigned d : 7;
	unsigned long e : 33;
	unsigned short f : 9;
	unsigned short h : 9;
	int i;
};

struct bits2 {
	char a;
	unsigned b : 4;
	unsigned : 0;
	unsigned c : 4;
	unsigned : 5;
	_Bool d : 1;
	unsigned long e : 60;
};

struct bits3 {
	char a;
	long : 20;
	char b : 2;
};

union bits4 {
	unsigned a : 5;
	unsigned long b : 40;
};

static void test_bit_fields(void **state)
{
	type_id s = type_new_sou(g, TYPE_STRUCT, "bits1");

	type_add_member(g, s, "a", T_UINT, 3);
	type_add_member(g, s, "b", T_UINT, 30);
	type_add_member(g, s, "c", T_CHAR, 0);
	type_add_member(g, s, "d", T_UINT, 7);
	type_add_member(g, s, "e", T_ULONG, 33);
	type_add_member(g, s, "f", T_USHORT, 9);
	type_add_member(g, s, "h", T_USHORT, 9);
	type_add_member(g, s, "i", T_INT, 0);
	type_complete(g, s);
	BITS(struct bits1, s, a, 3);
	BITS(struct bits1, s, b, 30);
	BITS(struct bits1, s, d, 7);
	BITS(struct bits1, s, e, 33);
	BITS(struct bits1, s, f, 9);
	BITS(struct bits1, s, h, 9);
	SAME(struct bits1, s, c);
	SAME(struct bits1, s, i);
	same_whole(s, sizeof(struct bits1), _Alignof(struct bits1));

	s = type_new_sou(g, TYPE_STRUCT, "bits2");
	type_add_member(g, s, "a", T_CHAR, 0);
	type_add_member(g, s, "b", T_UINT, 4);
	type_add_member(g, s, "", T_UINT, 0);
	type_add_member(g, s, "c", T_UINT, 4);
	type_add_member(g, s, "", T_UINT, 5);
	type_add_member(g, s, "d", T_BOOL, 1);
	type_add_member(g, s, "e", T_ULONG, 60);
	type_complete(g, s);
	BITS(struct bits2, s, b, 4);
	BITS(struct bits2, s, c, 4);
	BITS(struct bits2, s, d, 1);
	BITS(struct bits2, s, e, 60);
	same_whole(s, sizeof(struct bits2), _Alignof(struct bits2));

	s = type_new_sou(g, TYPE_STRUCT, "bits3");
	type_add_member(g, s, "a", T_CHAR, 0);
	type_add_member(g, s, "", T_LONG, 20);
	type_add_member(g, s, "b", T_CHAR, 2);
	type_complete(g, s);
	BITS(struct bits3, s, b, 2);
	same_whole(s, sizeof(struct bits3), _Alignof(struct bits3));

	s = type_new_sou(g, TYPE_UNION, "bits4");
	type_add_member(g, s, "a", T_UINT, 5);
	type_add_member(g, s, "b", T_ULONG, 40);
	type_complete(g, s);
	BITS(union bits4, s, a, 5);
	BITS(union bits4, s, b, 40);
	same_whole(s, sizeof(union bits4), _Alignof(union bits4));
}

static void test_enum(void **state)
{
	enum e1 { A1 = 5, B1 };
	enum e2 { A2 = -1, B2 = 7 };
	enum e3 { A3 = 1, B3 = 0x100000000 };
	type_id e = type_new_enum(g, "e1"), found;
	int64_t v;
	uint32_t n;

	type_add_enumerator(g, e, "A1", 5);
	type_add_enumerator(g, e, "B1", 6);
	assert_int_equal(type_size(g, e), sizeof(enum e1));
	assert_false(type_is_signed(g, e));
	assert_true(type_enumerator(g, "B1", &v, &found));
	assert_int_equal(v, 6);
	assert_int_equal(found, e);
	assert_false(type_enumerator(g, "C1", &v, &found));
	assert_string_equal(type_enumerators(g, e, &n)[0].name, "A1");
	assert_int_equal(n, 2);
	assert_true(type_is_integer(g, e));

	e = type_new_enum(g, "e2");
	type_add_enumerator(g, e, "A2", -1);
	type_add_enumerator(g, e, "B2", 7);
	assert_int_equal(type_size(g, e), sizeof(enum e2));
	assert_true(type_is_signed(g, e));

	e = type_new_enum(g, "");
	type_add_enumerator(g, e, "A3", 1);
	type_add_enumerator(g, e, "B3", 0x100000000);
	assert_int_equal(type_size(g, e), sizeof(enum e3));
	assert_int_equal(type_align(g, e), _Alignof(enum e3));
}

/* A forward declaration, a pointer to it, then the members: one type throughout. */
static void test_forward(void **state)
{
	type_id f = type_new_sou(g, TYPE_STRUCT, "later"), p = type_new_pointer(g, f), s;

	assert_int_equal(type_size(g, f), 0);
	assert_true(type_is_sou(g, f));
	s = type_new_sou(g, TYPE_STRUCT, "later");
	assert_int_equal(s, f);
	type_add_member(g, s, "next", type_new_pointer(g, s), 0);
	type_add_member(g, s, "v", T_INT, 0);
	type_complete(g, s);
	assert_int_equal(type_size(g, type_ref(g, p)), 16);
	same_member(type_ref(g, p), "v", 8, 4);
	/* A second definition hides the first. */
	s = type_new_sou(g, TYPE_STRUCT, "later");
	assert_int_not_equal(s, f);
	type_complete(g, s);
	assert_int_equal(parse("struct later"), s);
	assert_int_equal(type_size(g, s), 0);
	assert_true(type_is_complete(g, s));
	assert_false(type_lookup(g, "nosuch", TYPE_STRUCT, "later", &s));
	assert_true(type_lookup(g, "D", TYPE_STRUCT, "later", &s));
	assert_false(type_lookup(g, NULL, TYPE_UNION, "later", &s));
}

/* A type that is parsed prints as the same text. */
static void test_names(void **state)
{
	static const char *const texts[][2] = {
		/* abstract, and with the name x */
		{ "int", "int x" },
		{ "char *", "char *x" },
		{ "char *const *", "char *const *x" },
		{ "const char *", "const char *x" },
		{ "const volatile int", "const volatile int x" },
		{ "int [3]", "int x[3]" },
		{ "int [2][3]", "int x[2][3]" },
		{ "int *[3]", "int *x[3]" },
		{ "int (*)[4]", "int (*x)[4]" },
		{ "int (*(*)[3])[4]", "int (*(*x)[3])[4]" },
		{ "void (*)(void)", "void (*x)(void)" },
		{ "int (*)(const char *, ...)", "int (*x)(const char *, ...)" },
		{ "void (*(*)(int))(void)", "void (*(*x)(int))(void)" },
		{ "void (*(*[2])(int, char))(long)", "void (*(*x[2])(int, char))(long)" },
		{ "int (*const)(int)", "int (*const x)(int)" },
		{ "struct plain *", "struct plain *x" },
		{ "char *restrict", "char *restrict x" },
		{ "int []", "int x[]" },
		{ "string", "string x" },
		{ "uint64_t *", "uint64_t *x" },
		{ "int (int)", "int x(int)" },
	};
	static const char *const spelt[][2] = {
		{ "long unsigned int", "unsigned long" },
		{ "signed", "int" },
		{ "unsigned", "unsigned int" },
		{ "short signed int", "short" },
		{ "long long unsigned", "unsigned long long" },
		{ "int const *", "const int *" },
		{ "  struct\tplain*", "struct plain *" },
		{ "long double", "long double" },
		{ "char signed", "signed char" },
		{ "long const int", "const long" },
		{ "D`int *", "int *" },
		{ "struct D`plain", "struct plain" },
	};
	static const char *const wrong[] = {
		"",
		"*",
		"nosuch_t",
		"int int",
		"long char",
		"unsigned double",
		"short long",
		"long long long",
		"unsigned signed",
		"struct nosuch",
		"int (",
		"int (*",
		"int [",
		"int [3",
		"int [x]",
		"int )",
		"int *)",
		"int x",
		"int (*)(nosuch_t)",
		"void (*)(int,",
		"D`",
		"struct",
		"int [99999999999]",
		"float float",
		"struct 9",
		"unsigned plain",
		"((((",
		"int ((((((((((((((((((((((((((((((((((((((((((((((((*)",
		"int [1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]"
		"[1][1][1][1][1]",
	};

	make_plain();
	for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_string_equal(type_name(g, &arena, parse(texts[i][0]), NULL), texts[i][0]);
		assert_string_equal(type_name(g, &arena, parse(texts[i][0]), "x"), texts[i][1]);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(spelt); i++)
		assert_string_equal(type_name(g, &arena, parse(spelt[i][0]), ""), spelt[i][1]);
	for (uint32_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		type_id t = 4711;

		if (type_parse_name(g, wrong[i], &t))
			fail_msg("accepted: %s", wrong[i]);
		assert_int_equal(t, 4711);
	}
	assert_string_equal(type_name(g, &arena, type_new_sou(g, TYPE_UNION, ""), "u"), "union u");
	assert_int_equal(type_size(g, parse("int [2][3]")), 24);
	assert_int_equal(type_nelems(g, parse("int [2][3]")), 2);
}

static void test_same(void **state)
{
	type_id p = make_plain(), t = type_new_typedef(g, "plain_t", p);

	assert_true(type_same(g, p, t));
	assert_true(type_same(g, type_new_pointer(g, t), parse("const struct plain *")));
	assert_false(type_same(g, type_new_pointer(g, t), p));
	assert_true(type_same(g, parse("int64_t"), T_LONG));
	assert_false(type_same(g, T_INT, T_UINT));
	assert_false(type_same(g, parse("int [3]"), parse("int [4]")));
	assert_true(type_same(g, parse("int (*)(long, char *)"),
			      parse("int (*)(int64_t, const char *)")));
	assert_false(type_same(g, parse("int (*)(long)"), parse("int (*)(long, ...)")));
	assert_false(type_same(g, T_STRING, T_CHARPTR));
	assert_int_equal(parse("plain_t"), t);
	assert_int_equal(type_strip(g, parse("const plain_t")), p);
}

/* A program's own DWARF gives names of 16,383 bytes. The text of a type with many of them stays
 * short: it is copied for each step. */
static void test_long_names(void **state)
{
	enum { LONG = 16383, PARAMS = 300 };
	struct type_param params[PARAMS] = { 0 };
	char *name = malloc(LONG + 1);
	const char *text;
	type_id t;

	memset(name, 'x', LONG);
	name[LONG] = 0;
	t = type_new_typedef(g, name, T_INT);
	for (uint32_t i = 0; i < PARAMS; i++)
		params[i] = (struct type_param){ .name = "", .type = t };
	text = type_name(g, &arena, type_new_func(g, T_VOID, params, PARAMS, false), "f");
	assert_true(strlen(text) < 32u * LONG);
	assert_non_null(strstr(text, "..."));
	/* a few are shown whole */
	text = type_name(g, &arena, type_new_func(g, T_VOID, params, 3, false), "f");
	assert_true(strlen(text) > 3u * LONG);
	assert_null(strstr(text, "..."));
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_builtins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wild_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_layout, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bit_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_enum, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forward, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
