/* BTF: made files, split files, damaged and malicious files, and the running kernel's. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "btf_make.h"
#include "program/type/type.h"

static char dir[] = "/tmp/descry-btf-XXXXXX";
static char vmlinux[64], module[64];
static struct type_graph *g;
static struct arena arena;
static struct btf_make b;

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(vmlinux, sizeof(vmlinux), "%s/vmlinux", dir);
	snprintf(module, sizeof(module), "%s/somemod", dir);
	return 0;
}

static int remove_dir(void **state)
{
	unlink(vmlinux);
	unlink(module);
	return rmdir(dir);
}

static int setup(void **state)
{
	g = type_graph_new();
	arena_init(&arena);
	btf_make_init(&b, NULL);
	return 0;
}

static int teardown(void **state)
{
	arena_fini(&arena);
	type_graph_free(g);
	unlink(module);
	return 0;
}

static void use(void)
{
	btf_make_write(&b, vmlinux);
	type_use_kernel(g, vmlinux);
}

static void has_text(type_id t, const char *name, const char *text)
{
	assert_string_equal(type_name(g, &arena, t, name), text);
}

static void test_kinds(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED), c = btf_make_int(&b, "char", 1, 0);
	uint32_t ul = btf_make_int(&b, "long unsigned int", 8, 0), id, n;
	uint32_t bl = btf_make_int(&b, "_Bool", 1, BTF_INT_BOOL),
		 i128 = btf_make_int(&b, "__int128", 16, BTF_INT_SIGNED);
	uint32_t cc = btf_make_type(&b, BTF_KIND_CONST, NULL, 0, false, c);
	uint32_t tag = btf_make_type(&b, BTF_KIND_TYPE_TAG, "rcu", 0, false, cc);
	uint32_t pcc = btf_make_type(&b, BTF_KIND_PTR, NULL, 0, false, tag);
	uint32_t td = btf_make_type(&b, BTF_KIND_TYPEDEF, "u64", 0, false, ul), fwd, proto, f;
	uint32_t arr = btf_make_array(&b, c, i, 16), en, e64, fl, st, data;
	struct type_member m;
	const struct type_param *p;
	type_id t, en_t;
	int64_t v;
	bool varargs;

	fwd = btf_make_type(&b, BTF_KIND_FWD, "hidden", 0, false, 0);
	proto = btf_make_type(&b, BTF_KIND_FUNC_PROTO, NULL, 3, false, i);
	btf_make_param(&b, "s", pcc);
	btf_make_param(&b, "n", td);
	btf_make_param(&b, NULL, 0);
	f = btf_make_type(&b, BTF_KIND_FUNC, "do_it", 1, false, proto);
	btf_make_type(&b, BTF_KIND_DECL_TAG, "bpf_kfunc", 0, false, f);
	btf_make_u32(&b, UINT32_MAX);
	en = btf_make_type(&b, BTF_KIND_ENUM, "color", 2, false, 4);
	btf_make_u32(&b, btf_make_str(&b, "RED"));
	btf_make_u32(&b, 1);
	btf_make_u32(&b, btf_make_str(&b, "HUGE"));
	btf_make_u32(&b, 0xffffffff);
	btf_make_type(&b, BTF_KIND_ENUM, "temp", 1, true, 4);
	btf_make_u32(&b, btf_make_str(&b, "COLD"));
	btf_make_u32(&b, (uint32_t)-5);
	e64 = btf_make_type(&b, BTF_KIND_ENUM64, "wide", 1, false, 8);
	btf_make_u32(&b, btf_make_str(&b, "WIDE"));
	btf_make_u32(&b, 7);
	btf_make_u32(&b, 1);
	fl = btf_make_type(&b, BTF_KIND_FLOAT, "double", 0, false, 8);
	st = btf_make_type(&b, BTF_KIND_STRUCT, "thing", 8, true, 72);
	btf_make_member(&b, "name", arr, 0);
	btf_make_member(&b, "low", i, 3u << 24 | 128);
	btf_make_member(&b, "high", i, 5u << 24 | 131);
	btf_make_member(&b, "flag", bl, 136);
	btf_make_member(&b, "next", pcc, 512);
	btf_make_member(&b, "wide", e64, 192);
	btf_make_member(&b, "d", fl, 256);
	btf_make_member(&b, "big", i128, 384);
	btf_make_type(&b, BTF_KIND_VAR, "the_thing", 0, false, st);
	btf_make_u32(&b, 1);
	data = btf_make_type(&b, BTF_KIND_DATASEC, ".data", 1, false, 72);
	btf_make_u32(&b, data - 1);
	btf_make_u32(&b, 0);
	btf_make_u32(&b, 72);
	btf_make_type(&b, BTF_KIND_VOLATILE, NULL, 0, false, i);
	btf_make_type(&b, BTF_KIND_RESTRICT, NULL, 0, false, pcc);
	use();

	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "thing", &t));
	assert_null(type_kernel_err(g));
	assert_int_equal(type_size(g, t), 72);
	assert_true(type_find_member(g, t, "name", &m));
	assert_true(type_is_char_array(g, m.type));
	has_text(m.type, "name", "char name[16]");
	assert_true(type_find_member(g, t, "high", &m));
	assert_int_equal(m.bit_offset, 131);
	assert_int_equal(m.bit_size, 5);
	assert_int_equal(m.type, T_INT);
	assert_true(type_find_member(g, t, "flag", &m));
	assert_int_equal(m.type, T_BOOL);
	assert_int_equal(m.bit_size, 0);
	assert_true(type_find_member(g, t, "d", &m));
	assert_int_equal(m.type, T_DOUBLE);
	assert_true(type_find_member(g, t, "big", &m));
	has_text(m.type, "", "__int128");
	assert_int_equal(type_size(g, m.type), 16);
	assert_true(type_find_member(g, t, "wide", &m));
	has_text(m.type, NULL, "enum wide");
	assert_true(type_lookup(g, NULL, TYPE_TYPEDEF, "u64", &t));
	assert_int_equal(type_ref(g, t), T_ULONG);
	assert_true(type_lookup(g, "vmlinux", TYPE_TYPEDEF, "__int128", &t));
	assert_false(type_lookup(g, NULL, TYPE_UNION, "thing", &t));
	assert_false(type_lookup(g, NULL, TYPE_UNION, "hidden", &t));
	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "hidden", &t));
	assert_int_equal(type_kind(g, t), TYPE_FORWARD);
	assert_false(type_is_complete(g, t));
	assert_true(type_is_sou(g, t));

	assert_true(type_kernel_func(g, "do_it", &t));
	has_text(t, "do_it", "int do_it(const char *, u64, ...)");
	p = type_params(g, t, &n, &varargs);
	assert_int_equal(n, 2);
	assert_true(varargs);
	assert_string_equal(p[1].name, "n");
	assert_true(type_is_char_pointer(g, p[0].type));
	assert_true(type_kernel_btf_id(g, BTF_KIND_FUNC, "do_it", &id));
	assert_int_equal(id, f);
	assert_true(type_kernel_btf_id(g, BTF_KIND_FWD, "hidden", &id));
	assert_int_equal(id, fwd);
	assert_false(type_kernel_btf_id(g, BTF_KIND_STRUCT, "do_it", &id));
	assert_false(type_kernel_btf_id(g, 99, "do_it", &id));
	assert_true(type_kernel_var(g, "the_thing", &t));
	has_text(t, "the_thing", "struct thing the_thing");
	assert_false(type_kernel_var(g, "do_it", &t));

	assert_true(type_enumerator(g, "HUGE", &v, &en_t));
	assert_int_equal(v, 0xffffffffll);
	assert_true(type_kernel_btf_id(g, BTF_KIND_ENUM, "color", &id));
	assert_int_equal(id, en);
	assert_false(type_is_signed(g, en_t));
	assert_true(type_enumerator(g, "COLD", &v, &en_t));
	assert_int_equal(v, -5);
	assert_true(type_is_signed(g, en_t));
	assert_true(type_enumerator(g, "WIDE", &v, &en_t));
	assert_int_equal(v, 0x100000007ll);
	assert_int_equal(type_size(g, en_t), 8);
	assert_false(type_enumerator(g, "NONE", &v, &en_t));

	/* After some look-ups an index answers instead of a scan: the same. */
	for (uint32_t round = 0; round < 12; round++) {
		assert_true(type_kernel_btf_id(g, BTF_KIND_STRUCT, "thing", &id));
		assert_int_equal(id, st);
		assert_true(type_kernel_btf_id(g, BTF_KIND_FUNC, "do_it", &id));
		assert_int_equal(id, f);
		assert_true(type_kernel_btf_id(g, BTF_KIND_ENUM, "color", &id));
		assert_int_equal(id, en);
		assert_false(type_kernel_btf_id(g, BTF_KIND_STRUCT, "hing", &id));
		assert_false(type_kernel_btf_id(g, BTF_KIND_FUNC, "thing", &id));
		assert_false(type_kernel_btf_id(g, BTF_KIND_TYPEDEF, "nothing", &id));
	}
}

/* The program's own declaration wins; a forward declaration of it is completed from the kernel. */
static void test_own_first(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED), n;
	struct type_member m;
	type_id t, own;

	btf_make_type(&b, BTF_KIND_STRUCT, "both", 1, false, 4);
	btf_make_member(&b, "kernel", i, 0);
	btf_make_type(&b, BTF_KIND_STRUCT, "theirs", 1, false, 4);
	btf_make_member(&b, "k", i, 0);
	use();
	own = type_new_sou(g, TYPE_STRUCT, "both");
	type_add_member(g, own, "mine", T_LONG, 0);
	type_complete(g, own);
	assert_true(type_lookup(g, "", TYPE_STRUCT, "both", &t));
	assert_int_equal(t, own);
	assert_true(type_lookup(g, "vmlinux", TYPE_STRUCT, "both", &t));
	assert_int_not_equal(t, own);
	assert_true(type_find_member(g, t, "kernel", &m));
	assert_false(type_lookup(g, "D", TYPE_STRUCT, "theirs", &t));

	own = type_new_sou(g, TYPE_STRUCT, "theirs");
	assert_true(type_find_member(g, own, "k", &m));
	assert_int_equal(type_size(g, own), 4);
	type_members(g, own, &n);
	assert_int_equal(n, 1);
	assert_true(type_is_complete(g, own));
}

/* Bit-fields as they were written before kind_flag: an integer of fewer bits than its bytes hold.
 */
static void test_old_bit_fields(void **state)
{
	uint32_t i = btf_make_int(&b, "unsigned int", 4, 0), narrow;
	struct type_member m;
	type_id t;

	narrow = btf_make_type(&b, BTF_KIND_INT, "unsigned int", 0, false, 4);
	btf_make_u32(&b, 2u << 16 | 5);
	btf_make_type(&b, BTF_KIND_STRUCT, "old", 2, false, 8);
	btf_make_member(&b, "x", narrow, 0);
	btf_make_member(&b, "y", i, 32);
	use();
	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "old", &t));
	assert_true(type_find_member(g, t, "x", &m));
	assert_int_equal(m.bit_size, 5);
	assert_int_equal(m.bit_offset, 2);
	assert_true(type_find_member(g, t, "y", &m));
	assert_int_equal(m.bit_size, 0);
}

static void test_split(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED), s;
	struct btf_make mod;
	struct type_member m;
	type_id t, e;
	int64_t v;

	btf_make_type(&b, BTF_KIND_STRUCT, "shared", 1, false, 4);
	btf_make_member(&b, "base", i, 0);
	btf_make_init(&mod, &b);
	s = btf_make_type(&mod, BTF_KIND_STRUCT, "shared", 1, false, 8);
	btf_make_member(&mod, "modular", i, 32);
	btf_make_type(&mod, BTF_KIND_STRUCT, "only_mod", 2, false, 16);
	btf_make_member(&mod, "sh", s, 0);
	btf_make_member(&mod, "i", i, 64);
	btf_make_type(&mod, BTF_KIND_ENUM, "me", 1, false, 4);
	btf_make_u32(&mod, btf_make_str(&mod, "MOD_CONST"));
	btf_make_u32(&mod, 42);
	btf_make_write(&mod, module);
	use();

	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "only_mod", &t));
	assert_true(type_find_member(g, t, "sh", &m));
	assert_true(type_find_member(g, m.type, "modular", &m));
	assert_int_equal(m.bit_offset, 32);
	assert_int_equal(m.type, T_INT);
	assert_true(type_lookup(g, NULL, TYPE_STRUCT, "shared", &t));
	assert_true(type_find_member(g, t, "base", &m));
	assert_true(type_lookup(g, "somemod", TYPE_STRUCT, "shared", &t));
	assert_true(type_find_member(g, t, "modular", &m));
	assert_true(type_lookup(g, "builtin_mod", TYPE_STRUCT, "shared", &t));
	assert_true(type_enumerator(g, "MOD_CONST", &v, &e));
	assert_int_equal(v, 42);
	assert_true(type_parse_name(g, "struct somemod`only_mod *", &t));
	assert_null(type_kernel_err(g));
}

/* Strings may share their ends, and stand in more places than a scan follows. */
static void test_shared_strings(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED), long_name, id, want;
	char text[16];

	long_name = btf_make_str(&b, "very_long");
	want = btf_make_type(&b, BTF_KIND_TYPEDEF, NULL, 0, false, i);
	memcpy(b.types + b.types_len - 12, &(uint32_t){ long_name + 5 }, 4);
	for (int k = 0; k < 40; k++) {
		snprintf(text, sizeof(text), "%c%c_file", 'a' + k % 26, 'a' + k / 26);
		btf_make_type(&b, BTF_KIND_TYPEDEF, text, 0, false, i);
	}
	btf_make_type(&b, BTF_KIND_STRUCT, "file", 0, false, 0);
	btf_make_type(&b, BTF_KIND_STRUCT, "file", 0, false, 8);
	use();
	assert_true(type_kernel_btf_id(g, BTF_KIND_TYPEDEF, "long", &id));
	assert_int_equal(id, want);
	assert_true(type_kernel_btf_id(g, BTF_KIND_STRUCT, "file", &id));
	assert_int_equal(id, want + 41);
	assert_true(type_kernel_btf_id(g, BTF_KIND_TYPEDEF, "long", &id));
	assert_int_equal(id, want);
}

struct walk {
	char names[256];
	type_id func;
};

static void on_tracepoint(void *arg, const char *name, type_id func)
{
	struct walk *w = arg;

	strcat(w->names, name);
	strcat(w->names, " ");
	w->func = func;
}

static void test_tracepoints(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED), vp, proto, ptr;
	struct walk w = { 0 };
	type_id t;

	vp = btf_make_type(&b, BTF_KIND_PTR, NULL, 0, false, 0);
	proto = btf_make_type(&b, BTF_KIND_FUNC_PROTO, NULL, 2, false, 0);
	btf_make_param(&b, NULL, vp);
	btf_make_param(&b, NULL, i);
	ptr = btf_make_type(&b, BTF_KIND_PTR, NULL, 0, false, proto);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "btf_trace_one", 0, false, ptr);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "btf_trace_bad", 0, false, i);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "btf_trace_worse", 0, false, 4000);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "btf_trace_", 0, false, ptr);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "btf_trace_two", 0, false, ptr);
	use();
	type_kernel_tracepoints(g, on_tracepoint, &w);
	assert_string_equal(w.names, "one two ");
	has_text(w.func, "f", "void f(int)");
	assert_true(type_kernel_tracepoint(g, "one", &t));
	assert_int_equal(t, w.func);
	assert_false(type_kernel_tracepoint(g, "bad", &t));
	assert_false(type_kernel_tracepoint(g, "worse", &t));
	assert_false(type_kernel_tracepoint(g, "three", &t));
}

/* Queries every name that the made files below use. */
static void ask_all(const char *name)
{
	static const enum type_kind kinds[] = { TYPE_STRUCT, TYPE_UNION, TYPE_ENUM, TYPE_TYPEDEF };
	struct type_member m;
	type_id t;
	uint32_t n;
	bool v;

	for (uint32_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (!type_lookup(g, NULL, kinds[k], name, &t))
			continue;
		type_size(g, t);
		type_align(g, t);
		type_strip(g, t);
		type_members(g, t, &n);
		type_params(g, t, &n, &v);
		type_enumerators(g, t, &n);
		type_find_member(g, t, "absent", &m);
		type_name(g, &arena, t, "x");
		type_name(g, &arena, type_ref(g, t), "x");
		type_same(g, t, type_new_pointer(g, t));
		type_is_complete(g, t);
		type_int_flags(g, t);
		type_is_char_array(g, t);
	}
	type_kernel_func(g, name, &t);
	type_kernel_var(g, name, &t);
}

static void test_cycles(void **state)
{
	uint32_t self = b.n + b.first, s;

	btf_make_type(&b, BTF_KIND_TYPEDEF, "loop", 0, false, self);
	self = b.n + b.first;
	btf_make_array(&b, self, self, 3);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "arr", 0, false, self);
	self = b.n + b.first;
	btf_make_type(&b, BTF_KIND_PTR, NULL, 0, false, self);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "ptr", 0, false, self);
	self = b.n + b.first;
	btf_make_type(&b, BTF_KIND_FUNC_PROTO, NULL, 3, false, self);
	btf_make_param(&b, NULL, self);
	btf_make_param(&b, NULL, self);
	btf_make_param(&b, NULL, self);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "func", 0, false, self);
	self = b.n + b.first;
	btf_make_type(&b, BTF_KIND_TYPE_TAG, "t", 0, false, self);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "tag", 0, false, self);
	self = b.n + b.first;
	btf_make_type(&b, BTF_KIND_CONST, NULL, 0, false, self);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "qual", 0, false, self);
	/* struct of two anonymous copies of itself: 2^depth paths */
	self = b.n + b.first;
	s = btf_make_type(&b, BTF_KIND_STRUCT, "tree", 3, false, 16);
	btf_make_member(&b, NULL, s, 0);
	btf_make_member(&b, NULL, s, 64);
	btf_make_member(&b, "leaf", 0, 64);
	/* two types that name each other, and a type that names nothing */
	self = b.n + b.first;
	btf_make_type(&b, BTF_KIND_TYPEDEF, "ping", 0, false, self + 1);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "pong", 0, false, self);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "nowhere", 0, false, 0x7fffffff);
	use();
	static const char *const names[] = { "loop", "arr",  "ptr",  "func", "tag",
					     "qual", "tree", "ping", "pong", "nowhere" };
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		ask_all(names[i]);
}

/* Arrays with a size above 64 bits have none. */
static void test_huge_array(void **state)
{
	uint32_t t = btf_make_int(&b, "int", 4, BTF_INT_SIGNED);
	type_id id;

	for (uint32_t i = 0; i < 3; i++)
		t = btf_make_array(&b, t, t, UINT32_MAX);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "huge", 0, false, t);
	use();
	assert_true(type_lookup(g, NULL, TYPE_TYPEDEF, "huge", &id));
	assert_int_equal(type_size(g, id), 0);
}

static void use_bytes(const void *p, size_t n)
{
	FILE *f = fopen(vmlinux, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
	type_use_kernel(g, vmlinux);
}

/* Every prefix of a good file, and each of its bytes set to 0xff in turn. */
static void test_damaged(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED), p;
	cleanup_free uint8_t *good = NULL;
	size_t len;

	p = btf_make_type(&b, BTF_KIND_PTR, NULL, 0, false, i);
	btf_make_type(&b, BTF_KIND_STRUCT, "s", 2, true, 16);
	btf_make_member(&b, "a", p, 0);
	btf_make_member(&b, "b", i, 64);
	btf_make_type(&b, BTF_KIND_ENUM, "e", 1, false, 4);
	btf_make_u32(&b, btf_make_str(&b, "C"));
	btf_make_u32(&b, 1);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "t", 0, false, p);
	good = btf_make_file(&b, &len);
	for (size_t cut = 0; cut <= len; cut++) {
		teardown(NULL);
		setup(NULL);
		use_bytes(good, cut);
		ask_all("s");
		if (cut < len)
			assert_non_null(type_kernel_err(g));
		else
			assert_null(type_kernel_err(g));
	}
	for (size_t at = 0; at < len; at++) {
		uint8_t was = good[at];

		teardown(NULL);
		setup(NULL);
		good[at] = 0xff;
		use_bytes(good, len);
		ask_all("s");
		ask_all("e");
		ask_all("t");
		good[at] = was;
	}
}

/* The records before an unreadable one stay usable, and the error names the missing part. */
static void test_unknown_kind(void **state)
{
	uint32_t i = btf_make_int(&b, "int", 4, BTF_INT_SIGNED);
	type_id t;

	btf_make_type(&b, BTF_KIND_TYPEDEF, "before", 0, false, i);
	btf_make_type(&b, 31, "future", 0, false, 0);
	btf_make_type(&b, BTF_KIND_TYPEDEF, "after", 0, false, i);
	use();
	assert_true(type_lookup(g, NULL, TYPE_TYPEDEF, "before", &t));
	assert_false(type_lookup(g, NULL, TYPE_TYPEDEF, "after", &t));
	assert_non_null(strstr(type_kernel_err(g), "unknown kind 31"));
}

static void test_vlen(void **state)
{
	type_id t;

	btf_make_type(&b, BTF_KIND_STRUCT, "wide", 0xffff, false, 4);
	btf_make_u32(&b, 0);
	use();
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "wide", &t));
	assert_non_null(strstr(type_kernel_err(g), "does not fit"));
}

static void test_absent(void **state)
{
	type_id t;

	type_use_kernel(g, "/nonexistent/vmlinux");
	assert_null(type_kernel_err(g));
	assert_true(type_lookup(g, NULL, TYPE_TYPEDEF, "size_t", &t));
	assert_null(type_kernel_err(g));
	assert_false(type_lookup(g, NULL, TYPE_STRUCT, "task_struct", &t));
	assert_non_null(strstr(type_kernel_err(g), "/nonexistent/vmlinux"));
	assert_false(type_kernel_func(g, "vfs_read", &t));
	assert_false(type_kernel_tracepoint(g, "sched_switch", &t));
}

static uint32_t tracepoints;

static void count_tracepoint(void *arg, const char *name, type_id func)
{
	uint32_t n;
	bool v;

	assert_int_equal(type_kind(g, func), TYPE_FUNC);
	type_params(g, func, &n, &v);
	assert_in_range(n, 0, 15);
	tracepoints++;
}

static void test_live(void **state)
{
	struct type_member m, in;
	uint32_t n, id;
	type_id t, e;
	int64_t v;
	bool varargs;

	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		fprintf(stderr, "no /sys/kernel/btf/vmlinux: kernel types not tested\n");
		skip();
	}
	type_use_kernel(g, NULL);
	assert_true(type_parse_name(g, "struct task_struct *", &t));
	t = type_ref(g, t);
	assert_true(type_size(g, t) > 1000);
	assert_true(type_find_member(g, t, "comm", &m));
	assert_true(type_is_char_array(g, m.type));
	assert_int_equal(type_size(g, m.type), 16);
	assert_int_equal(m.bit_offset % 8, 0);
	assert_true(type_find_member(g, t, "pid", &m));
	has_text(m.type, "pid", "pid_t pid");
	assert_true(type_is_signed(g, m.type));
	assert_true(type_find_member(g, t, "tgid", &in));
	assert_int_equal(in.bit_offset, m.bit_offset + 32);
	assert_true(type_find_member(g, t, "mm", &m));
	assert_true(type_is_pointer(g, m.type));
	/* through the anonymous struct of mm_struct */
	assert_true(type_find_member(g, type_ref(g, m.type), "pgd", &in));
	assert_true(type_find_member(g, t, "in_execve", &m));
	assert_int_equal(m.bit_size, 1);
	type_members(g, t, &n);
	assert_true(n > 100);
	assert_true(type_kernel_func(g, "vfs_read", &t));
	type_params(g, t, &n, &varargs);
	assert_int_equal(n, 4);
	assert_true(type_enumerator(g, "PIDTYPE_PGID", &v, &e));
	has_text(e, "", "enum pid_type");
	assert_true(type_kernel_btf_id(g, BTF_KIND_STRUCT, "task_struct", &id));
	assert_true(type_kernel_tracepoint(g, "sched_switch", &t));
	type_params(g, t, &n, &varargs);
	assert_in_range(n, 3, 4);
	type_kernel_tracepoints(g, count_tracepoint, NULL);
	assert_true(tracepoints > 200);
	assert_null(type_kernel_err(g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_bit_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_split, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tracepoints, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cycles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_huge_array, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_kind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vlen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_live, setup, teardown),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
