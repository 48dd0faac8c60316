/* Prototypes in ltrace's language: read, printed, and the values that they describe. */
#include "unit.h"

#include "program/prototype/prototype.h"

struct heard {
	char text[400];
	uint32_t n;
};

static void hear(void *arg, const char *message)
{
	struct heard *h = arg;

	snprintf(h->text, sizeof(h->text), "%s", message);
	h->n++;
}

static void check_read(const char *text, const char *want)
{
	struct prototypes p;
	struct heard h = { 0 };
	struct out o;
	const struct prototype *f;

	prototypes_init(&p);
	out_init(&o, NULL);
	prototypes_read(&p, "t.conf", text, strlen(text), hear, &h);
	f = prototypes_find(&p, "f");
	if (f)
		prototype_print(&o, f);
	else
		out_str(&o, h.text);
	out_char(&o, '\0');
	assert_string_equal(o.v, want);
	out_fini(&o);
	prototypes_fini(&p);
}

static void test_read(void **state)
{
	check_read("int f(int, ulong , char);", "int f(int, ulong, char);");
	check_read("addr f();", "hex(ulong) f();");
	check_read("void f(void)", "void f();");
	check_read("int f(+int*, +string[arg1])",
		   "int f(+int*, +string(array(char, zero(arg1))*));");
	check_read("; comment\n# and another\n\nint f(int); the end\n", "int f(int);");
	check_read("string f(string)", "string(array(char, zero)*) f(string(array(char, zero)*));");
	check_read("int f(string2, char)", "int f(string(array(char, zero(arg2))*), char);");
	check_read("int f(string(char*))", "int f(string(array(char, zero)*));");
	check_read("int f(string(array(char, 4)))", "int f(string(string(array(char, 4))*));");
	check_read("int f(enum(A, B = 4, C), enum[ushort](X=-1))",
		   "int f(enum[int](A=0, B=4, C=5), enum[ushort](X=-1));");
	check_read("typedef t = struct(char, int, t2)\ntypedef t2 = long\ntypedef t = struct(char, "
		   "t2, array(short, 3))\nt f(t*)",
		   "struct(char, long, array(short, 3)) f(struct(char, long, array(short, 3))*);");
	check_read("int f(array(int, zero(3)), array(struct(int, addr), arg1)*)",
		   "int f(array(int, zero(3))*, array(struct(int, hex(ulong)), arg1)*);");
	check_read("int f(oct(uint), octal, hex(long), bool(int), bitvec(ulong), hide(int))",
		   "int f(oct(uint), oct(uint), hex(long), bool(int), bitvec(ulong), hide(int));");
	check_read("int f(file, format)", "int f(hex(void*), format);");
	check_read("int f(float, double, string[retval])",
		   "int f(float, double, string(array(char, zero(retval))*));");
	check_read("int f(struct(int, array(int, elt1)))", "int f(struct(int, array(int, elt1)));");
	check_read("typedef t = struct(long tv_sec, long tv_nsec)\nerrno(int) f(+t*)",
		   "errno(int) f(+struct(long tv_sec, long tv_nsec)*);");
	check_read("typedef x = struct\ntypedef x = struct(int, x*)\nvoid f(x*)",
		   "void f(struct(int, struct*)*);");
	check_read("errno(addr) f(flags[ushort](A=0/3, B=1/3, C=4))",
		   "errno(hex(ulong)) f(flags[ushort](A=0/3, B=1/3, C=4));");
	check_read("typedef e = struct()\nldouble f(e*)", "ldouble f(struct()*);");
	check_read(
		"typedef w = string(uint)\ntypedef t = string(array(uint, zero)*)\nw f(format(t))",
		"string(uint) f(format(array(uint, zero)*));");
	check_read("typedef function = int\ntypedef import = int\ntypedef typedef = int\n"
		   "function typedef f(import, function)",
		   "int f(int, int);");
	check_read("typedef typedef = long\ntypedef f (int)", "long f(int);");
	check_read("import \"others\";\nvoid f ( ) ; ends", "void f();");
}

static void test_wrong(void **state)
{
	check_read("int f(nothing)", "t.conf:1: there is no type nothing");
	check_read("int g()\nint f(int", "t.conf:2: the line ends where a ')' is expected");
	check_read("int f(int] )", "t.conf:1: a ')' is expected, not '] )'");
	check_read("int f(int) int", "t.conf:1: what is \"int\"?");
	check_read("int (int)", "t.conf:1: a function's name is expected");
	check_read("int f(array(int))", "t.conf:1: a ',' is expected, not '))'");
	check_read("int f(array(int, many))",
		   "t.conf:1: many is no length: a number, argN, eltN, retval or zero");
	check_read("int f(array(void, 3))", "t.conf:1: an array's elements have a size");
	check_read("int f(int, void)", "t.conf:1: a parameter cannot be void");
	check_read("int f(flags(A=1/x))", "t.conf:1: a number is expected behind the '/' of A");
	check_read("typedef a = int\ntypedef a = int\n", "t.conf:2: type a is there already");
	check_read("typedef a = struct\ntypedef a = int\n", "t.conf:2: type a is there already");
	check_read("typedef a = struct\ntypedef a = struct(int)\ntypedef a = struct(int)\n",
		   "t.conf:3: type a is there already");
	check_read("typedef a = struct\ntypedef a = struct()\ntypedef a = struct()\n",
		   "t.conf:3: type a is there already");
	check_read("typedef a = struct\ntypedef a = struct(int, a)\n",
		   "t.conf:2: an element is a structure whose own elements are not known");
	check_read("typedef a = struct(int, struct;);\n",
		   "t.conf:1: an element is a structure whose own elements are not known");
	check_read("import \"others", "t.conf:1: a '\"' is missing behind import");
	check_read("int f(format(int))", "t.conf:1: a format is a string");
	check_read("errno int f()", "t.conf:1: a '(' is expected, not 'int f()'");
	check_read("typedef f int", "t.conf:1: a '=' is expected, not 'int'");
	check_read("int f(enum[double](A))", "t.conf:1: an enum's type is a whole number's");
	check_read("int f(array(int, 99999999))", "t.conf:1: an array has at most 1048576 bytes");
	check_read("int f(****************************************)",
		   "t.conf:1: a type is expected");
	check_read("int f(int******************************)", "t.conf:1: more than 24 stars");
	check_read("int f(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex("
		   "hex(hex(hex(hex(hex(hex(hex(hex(int)))))))))))))))))))))))))))",
		   "t.conf:1: types are nested deeper than 24");
}

/* Reads "typedef t0 = FIRST", and `levels` types of which each has `n` times `element` of the one
 * before. */
static void check_levels(const char *first, const char *element, int levels, int n,
			 const char *want)
{
	struct out o;
	char *text;

	out_init(&o, NULL);
	out_printf(&o, "typedef t0 = %s\n", first);
	for (int i = 1; i <= levels; i++) {
		out_printf(&o, "typedef t%d = struct(", i);
		for (int k = 0; k < n; k++) {
			out_str(&o, k ? ", " : "");
			out_printf(&o, element, i - 1);
		}
		out_str(&o, ")\n");
	}
	text = out_take(&o);
	check_read(text, want);
	free(text);
}

/* Types have a number of parts that a walk can visit, whatever their size is. */
static void test_parts(void **state)
{
	check_levels("struct()", "t%d", 1, 256, "");
	check_levels("struct()", "t%d", 2, 127, "");
	check_levels("struct()", "t%d", 2, 128, "t.conf:3: a type has at most 16384 parts");
	check_levels("struct(int)", "array(t%d, arg1), char", 1, 31, "");
	check_levels("struct(int)", "array(t%d, arg1), char", 1, 32,
		     "t.conf:2: a type has at most 16384 parts");
	check_levels("struct(int)", "array(t%d, 3)", 2, 10, "");
	check_levels("struct()", "t%d", 32, 1, "");
	check_levels("struct()", "t%d", 33, 1, "t.conf:34: types are nested deeper than 32");
	check_levels("struct(int)", "t%d*", 40, 250, ""); /* pointers are not followed */
}

static void check_value(const char *type, uint64_t value, const void *memory, uint32_t n,
			const char *want)
{
	cleanup_free char *text = xasprintf("void f(%s)", type);
	const struct prototype_memory m = { memory, n, false };
	const uint64_t args[] = { value, 3, 2 };
	const struct prototype_values v = { .args = args, .nargs = 3, .max_elements = 4 };
	struct prototypes p;
	struct out o;

	prototypes_init(&p);
	out_init(&o, NULL);
	assert_int_equal(prototypes_read(&p, "t", text, strlen(text), NULL, NULL), 0);
	prototype_value(&o, prototypes_find(&p, "f")->params[0].type, value, memory ? &m : NULL,
			&v);
	out_char(&o, '\0');
	assert_string_equal(o.v, want);
	out_fini(&o);
	prototypes_fini(&p);
}

/* Of a size that only debugging information can give. */
static void odd_float(void)
{
	const struct prototype_type t = { .kind = PROTOTYPE_FLOAT, .size = 2 };
	struct out o;

	out_init(&o, NULL);
	prototype_value(&o, &t, 0x3c00, NULL, NULL);
	out_char(&o, '\0');
	assert_string_equal(o.v, "...");
	out_fini(&o);
}

static void test_values(void **state)
{
	static const uint8_t timespec[16] = { 1, 0, 0, 0, 0, 0, 0, 0, 0xf4, 1 };
	static const int32_t ints[] = { 7, -1, 9, 10, 11, 0, 5 };
	static const struct {
		int32_t n;
		int16_t v[2];
	} counted = { 2, { 5, 6 } };

	odd_float();
	check_value("int", UINT64_C(0xffffffff), NULL, 0, "-1");
	check_value("uint", UINT64_C(0x1ffffffff), NULL, 0, "4294967295");
	check_value("short", 0xffff, NULL, 0, "-1");
	check_value("long", UINT64_MAX, NULL, 0, "-1");
	check_value("ulong", UINT64_MAX, NULL, 0, "18446744073709551615");
	check_value("addr", 0x1234, NULL, 0, "0x1234");
	check_value("addr", 0, NULL, 0, "0");
	check_value("octal", 0644, NULL, 0, "0644");
	check_value("char", 'x', NULL, 0, "'x'");
	check_value("char", '\n', NULL, 0, "'\\n'");
	check_value("bool(int)", 2, NULL, 0, "true");
	check_value("bitvec(uint)", 0x1e1, NULL, 0, "<0,5-8>");
	check_value("bitvec(uint)", 0xfffffffe, NULL, 0, "~<0>");
	check_value("bitvec(uint)", 0xffffffff, NULL, 0, "~<>");
	check_value("bitvec(ulong)", 0, NULL, 0, "<>");
	check_value("bitvec(array(char, 6)*)", 0x10, "\0\xff\0\0\0\x80", 6, "<8-15,47>");
	check_value("hex(int*)", 0x1000, "\x23\x01\x00\x00", 4, "0x123");
	check_value("hex(double)", 0x3ff8000000000000, NULL, 0, "0x1.8p+0");
	check_value("string(uint)", 0x424, NULL, 0, "'\320\244'");
	check_value("string(int)", '\n', NULL, 0, "'\\n'");
	check_value("string(int)", UINT32_MAX, NULL, 0, "'\\Uffffffff'");
	check_value("string(array(uint, zero)*)", 0x10, L"h\u00e9\u202e\U0001f600", 20,
		    "\"h\303\251\\u202e\360\237\230\200\"");
	check_value("string(array(uint, zero)*)", 0x10, L"abc", 12, "\"abc\"...");
	check_value("string(array(uint, zero(arg2))*)", 0x10, L"abcde", 20, "\"abc\"");
	check_value("string(array(ushort, arg3)*)", 0x10, "a\0b\0c\0", 6, "\"ab\"");
	check_value("hide(int)", 5, NULL, 0, "...");
	check_value("struct(hide(int), int, hide(int))*", 0x10, ints, 12, "{ -1 }");
	check_value("enum[ushort](A=-1)", 0xffff, NULL, 0, "A");
	check_value("enum(A, B)", 1, NULL, 0, "B");
	check_value("enum(A, B)", 3, NULL, 0, "3");
	check_value("enum(A = -1, B)", UINT64_C(0xffffffff), NULL, 0, "A");
	check_value("flags(A=0/3, B=1/3, C=4, D=24)", 0x4, NULL, 0, "A|C");
	check_value("flags(A=0/3, B=1/3, C=4, D=24)", 0x1d, NULL, 0, "B|C|D");
	check_value("flags(A=1, B=2)", 0x12, NULL, 0, "B|0x10");
	check_value("flags(A=1, B=2)", 0, NULL, 0, "0");
	check_value("flags(NONE=0, A=1)", 0, NULL, 0, "NONE");
	check_value("flags[uint](A=0x80000000)", 0x80000000, NULL, 0, "A");
	check_value("flags(A=0x80000000)", 0x80000001, NULL, 0, "A|0x1");
	check_value("struct(long tv_sec, long)*", 0x10, timespec, 16, "{ tv_sec=1, 500 }");
	check_value("int*", 0, NULL, 0, "nil");
	check_value("int*", 0x10, NULL, 0, "0x10");
	check_value("int*", 0x10, ints, 4, "7");
	check_value("string", 0x10, "a\"b\n", 4, "\"a\\\"b\\n\"");
	check_value("string[arg2]", 0x10, "abcdef", 6, "\"abc\"");
	check_value("string[zero(arg2)]", 0x10, "a\0cdef", 6, "\"a\"");
	check_value("struct(long, long)*", 0x10, timespec, 16, "{ 1, 500 }");
	check_value("struct(char, int, addr)*", 0x10, timespec, 16, "{ '\\001', 0, 0x1f4 }");
	check_value("struct(long, long, long)*", 0x10, timespec, 16, "{ 1, 500, ... }");
	check_value("array(int, arg2)*", 0x10, ints, sizeof(ints), "[ 7, -1, 9 ]");
	check_value("array(int, 6)", 0x10, ints, sizeof(ints), "[ 7, -1, 9, 10... ]");
	check_value("array(int, zero)", 0x10, ints + 3, 16, "[ 10, 11 ]");
	check_value("array(int, zero(1))", 0x10, ints, 28, "[ 7 ]");
	check_value("struct(int, array(short, elt1))*", 0x10, &counted, 8, "{ 2, [  ] }");
	check_value("struct(int, array(short, 2))*", 0x10, &counted, 8, "{ 2, [ 5, 6 ] }");
	check_value("struct(int, string(array(char, 4)))*", 0x10, "\1\0\0\0hey", 8,
		    "{ 1, \"hey\\0\" }");
	check_value("array(array(int, 2), 2)", 0x10, ints, 28, "[ [ 7, -1 ], [ 9, 10 ] ]");
}

/* A later text replaces a type of an earlier one. */
static void test_replaces(void **state)
{
	static const char first[] = "typedef t = int", second[] = "typedef t = long\nt f(t)";
	struct prototypes p;
	struct out o;

	prototypes_init(&p);
	out_init(&o, NULL);
	assert_int_equal(prototypes_read(&p, "a", first, strlen(first), NULL, NULL), 0);
	assert_int_equal(prototypes_read(&p, "b", second, strlen(second), NULL, NULL), 0);
	prototype_print(&o, prototypes_find(&p, "f"));
	out_char(&o, '\0');
	assert_string_equal(o.v, "long f(long);");
	out_fini(&o);
	prototypes_fini(&p);
}

static void take_import(void *arg, const char *from, const char *name)
{
	snprintf(arg, 32, "%s: %s", from, name);
}

static void test_import(void **state)
{
	static const char text[] = "import \"types.of\" ; comment";
	char got[32] = "";
	struct prototypes p;

	prototypes_init(&p);
	p.import = take_import;
	p.import_arg = got;
	assert_int_equal(prototypes_read(&p, "a.conf", text, strlen(text), NULL, NULL), 0);
	assert_string_equal(got, "a.conf: types.of");
	prototypes_fini(&p);
}

struct node {
	int32_t i;
	uint64_t next;
};

/* A list of n nodes, of which the first is at address 0x100, the next at 0x200 and so on. The last
 * one leads to `end`. */
static void check_list(uint32_t n, uint64_t end, const char *want)
{
	static const char conf[] = "typedef x = struct\ntypedef x = struct(int, x*)\nvoid f(x*)";
	struct prototype_memory inner[8];
	struct node nodes[8] = { 0 };
	struct prototype_values v = { .max_elements = 4, .inner = inner, .ninner = n - 1 };
	struct prototype_memory top = { .n = sizeof(nodes[0]), .bytes = (const void *)&nodes[0] };
	const struct prototype_type *t;
	struct prototypes p;
	struct out o;

	prototypes_init(&p);
	out_init(&o, NULL);
	assert_int_equal(prototypes_read(&p, "t", conf, strlen(conf), NULL, NULL), 0);
	t = prototypes_find(&p, "f")->params[0].type;
	for (uint32_t i = 0; i < n; i++) {
		nodes[i].i = (int32_t)(n - i);
		nodes[i].next = i + 1 < n ? (i + 2) * 0x100 : end;
		if (i)
			inner[i - 1] = (struct prototype_memory){ .bytes = (const void *)&nodes[i],
								  .n = sizeof(nodes[i]),
								  .type = t->target->fields[1],
								  .address = (i + 1) * 0x100 };
	}
	prototype_value(&o, t, 0x100, &top, &v);
	out_char(&o, '\0');
	assert_string_equal(o.v, want);
	out_fini(&o);
	prototypes_fini(&p);
}

static void test_inner(void **state)
{
	check_list(1, 0, "{ 1, nil }");
	check_list(3, 0, "{ 3, { 2, { 1, nil } } }");
	check_list(4, 0x900, "{ 4, { 3, { 2, { 1, ... } } } }");
	check_list(2, 0x900, "{ 2, { 1, 0x900 } }");
	check_list(1, 0x100, "{ 1, recurse }");
	check_list(2, 0x100, "{ 2, { 1, recurse^ } }");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),     cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_parts),    cmocka_unit_test(test_values),
		cmocka_unit_test(test_replaces), cmocka_unit_test(test_import),
		cmocka_unit_test(test_inner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
