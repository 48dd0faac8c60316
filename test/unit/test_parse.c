/* The parser, beyond the golden files: options of the command line, macros, types that only the
 * caller knows, places, copies, recovery, hostile input. */
#define _GNU_SOURCE
#include "unit.h"

#include "base/hash.h"
#include "compile/parse/parse.h"

/* One compilation: parse() may be called several times, as for several -n arguments. */
struct fix {
	struct arena arena;
	struct diags diags;
	struct hash typedefs;
	struct macro_args macros;
	struct parse_cx cx;
	uint32_t asked;   /* how often is_type was called */
	const char *type; /* the one type name the caller knows */
};

static bool is_type(void *arg, const char *module, const char *name)
{
	struct fix *f = arg;

	f->asked++;
	return f->type && !strcmp(f->type, name);
}

static int setup(void **state)
{
	struct fix *f = xcalloc(1, sizeof(*f));

	arena_init(&f->arena);
	diags_init(&f->diags);
	f->macros.target = -1;
	f->cx = (struct parse_cx){ .arena = &f->arena,
				   .diags = &f->diags,
				   .macros = &f->macros,
				   .is_type = is_type,
				   .is_type_arg = f,
				   .typedefs = &f->typedefs };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fix *f = *state;

	hash_fini(&f->typedefs);
	diags_fini(&f->diags);
	arena_fini(&f->arena);
	free(f);
	return 0;
}

static struct node *parse_as(struct fix *f, enum source_kind kind, enum pdesc_form form,
			     const char *text)
{
	source_add(&f->diags, kind, "x.d", text, strlen(text));
	return parse_source(&f->cx, f->diags.nsources - 1, form);
}

static struct node *parse(struct fix *f, const char *text)
{
	return parse_as(f, SOURCE_FILE, PDESC_NAME, text);
}

/* The expression of the only statement of "BEGIN { text; }". */
static struct node *expr(struct fix *f, const char *text)
{
	cleanup_free char *clause = xasprintf("BEGIN { %s; }", text);
	struct node *n = parse(f, clause);

	assert_int_equal(f->diags.errors, 0);
	assert_non_null(n);
	assert_int_equal(n->kind, D_CLAUSE);
	assert_non_null(n->clause.body);
	return n->clause.body->block.body;
}

static void assert_tags(struct fix *f, const char *tags)
{
	cleanup_free char *got = xstrdup("");

	for (uint32_t i = 0; i < f->diags.n; i++) {
		char *more = xasprintf("%s%s%s", got, i ? " " : "", f->diags.list[i].tag);

		free(got);
		got = more;
		free(f->diags.list[i].text);
	}
	assert_string_equal(got, tags);
	f->diags.n = f->diags.errors = 0;
}

static char *print(const struct node *n)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (; n; n = n->next)
		ast_print(out, n, NULL);
	fclose(out);
	return text;
}

static void assert_pdesc(const struct pdesc *d, const char *prov, const char *mod, const char *func,
			 const char *name)
{
	assert_non_null(d);
	assert_string_equal(d->prov, prov);
	assert_string_equal(d->mod, mod);
	assert_string_equal(d->func, func);
	assert_string_equal(d->name, name);
}

static void test_command_line_forms(void **state)
{
	struct fix *f = *state;
	struct node *n;

	n = parse_as(f, SOURCE_ARG, PDESC_NAME, "syscall::read:entry");
	assert_pdesc(n->clause.pdescs, "syscall", "", "read", "entry");
	assert_false(n->clause.has_body);
	assert_null(n->clause.pred);
	assert_pdesc(parse_as(f, SOURCE_ARG, PDESC_PROV, "syscall")->clause.pdescs, "syscall", "",
		     "", "");
	assert_pdesc(parse_as(f, SOURCE_ARG, PDESC_MOD, "vmlinux")->clause.pdescs, "", "vmlinux",
		     "", "");
	assert_pdesc(parse_as(f, SOURCE_ARG, PDESC_MOD, "fbt:vmlinux")->clause.pdescs, "fbt",
		     "vmlinux", "", "");
	n = parse_as(f, SOURCE_ARG, PDESC_FUNC, "read,write /pid/ { trace(1); }");
	assert_pdesc(n->clause.pdescs, "", "", "read", "");
	assert_pdesc(n->clause.pdescs->next, "", "", "write", "");
	assert_non_null(n->clause.pred);
	assert_true(n->clause.has_body);
	n = parse_as(f, SOURCE_ARG, PDESC_ID, "12 { trace(1); }");
	assert_true(n->clause.pdescs->by_id);
	assert_int_equal(n->clause.pdescs->id, 12);
	n = parse_as(f, SOURCE_ARG, PDESC_NAME, "BEGIN,END");
	assert_pdesc(n->clause.pdescs->next, "", "", "", "END");
	n = parse_as(f, SOURCE_ARG, PDESC_NAME, "BEGIN END");
	assert_non_null(n->next);
	n = parse_as(f, SOURCE_ARG, PDESC_NAME, "BEGIN { trace(1) } END");
	assert_non_null(n->next);
	assert_tags(f, "");

	/* to -i, text that is no number is a name; one empty field too many in front has no
	 * effect */
	n = parse_as(f, SOURCE_ARG, PDESC_ID, "read");
	assert_pdesc(n->clause.pdescs, "", "", "", "read");
	n = parse_as(f, SOURCE_ARG, PDESC_FUNC, ":a:b:c");
	assert_pdesc(n->clause.pdescs, "a", "b", "c", "");
	assert_tags(f, "");

	assert_null(parse_as(f, SOURCE_ARG, PDESC_PROV, "a:b"));
	assert_null(parse_as(f, SOURCE_ARG, PDESC_FUNC, "a:b:c:d"));
	assert_null(parse_as(f, SOURCE_ARG, PDESC_NAME, "BEGIN /x/"));
	assert_null(parse_as(f, SOURCE_FILE, PDESC_NAME, "BEGIN"));
	assert_null(parse_as(f, SOURCE_LIB, PDESC_NAME, "BEGIN"));
	assert_tags(f, "D_PDESC_INVAL D_PDESC_INVAL D_SYNTAX D_SYNTAX D_SYNTAX");
}

static void test_pdesc_text(void **state)
{
	struct fix *f = *state;

	f->macros.target = 55;
	source_add(&f->diags, SOURCE_ARG, "-n", "pid$target:libc.so.6::entry", 27);
	assert_pdesc(parse_pdesc_text(&f->cx, 0, PDESC_NAME), "pid55", "libc.so.6", "", "entry");
	source_add(&f->diags, SOURCE_ARG, "-n", "int", 3);
	assert_pdesc(parse_pdesc_text(&f->cx, 1, PDESC_NAME), "", "", "", "int");
	assert_tags(f, "");
	source_add(&f->diags, SOURCE_ARG, "-n", "a:b {", 5);
	assert_null(parse_pdesc_text(&f->cx, 2, PDESC_NAME));
	source_add(&f->diags, SOURCE_ARG, "-n", "", 0);
	assert_null(parse_pdesc_text(&f->cx, 3, PDESC_NAME));
	assert_tags(f, "D_SYNTAX D_SYNTAX");
}

static void test_empty(void **state)
{
	struct fix *f = *state;

	assert_null(parse(f, ""));
	assert_null(parse(f, " /* */ \n// x"));
	assert_tags(f, "D_EMPTY D_EMPTY");
	assert_null(parse_as(f, SOURCE_LIB, PDESC_NAME, ""));
	f->cx.empty = true;
	assert_null(parse(f, ""));
	assert_tags(f, "");
}

static const char *get_macro(void *arg, const char *name)
{
	return !strcmp(name, "limit") ? "100" : !strcmp(name, "who") ? "root" : NULL;
}

static void test_macros(void **state)
{
	struct fix *f = *state;
	char *argv[] = { "s.d", "12", "sshd", "/a/b c", "-0x10", "\"q\\n\"", "+7ull", "12x", "" };
	bool used[ARRAY_SIZE(argv)] = { false };
	struct node *n;

	f->macros.argv = argv;
	f->macros.argc = ARRAY_SIZE(argv);
	f->macros.used = used;
	f->macros.pid = 4321;
	f->macros.get = get_macro;
	assert_int_equal(expr(f, "$1")->i.value, 12);
	assert_true(used[1]);
	assert_false(used[2]);
	n = expr(f, "$2");
	assert_int_equal(n->kind, N_IDENT);
	assert_string_equal(n->ident.name, "sshd");
	n = expr(f, "$3");
	assert_int_equal(n->kind, N_STR);
	assert_string_equal(n->s.text, "/a/b c");
	n = expr(f, "$4");
	assert_int_equal(n->op, OP_NEG);
	assert_int_equal(n->e.a->i.value, 16);
	assert_true(n->e.a->i.based);
	n = expr(f, "$5");
	assert_int_equal(n->s.len, 2);
	assert_memory_equal(n->s.text, "q\n", 2);
	n = expr(f, "$6");
	assert_int_equal(n->i.value, 7);
	assert_true(n->i.is_unsigned);
	assert_int_equal(n->i.longs, 2);
	assert_int_equal(expr(f, "$7")->kind, N_STR);
	assert_int_equal(expr(f, "$8")->kind, N_STR);
	n = expr(f, "$$1");
	assert_int_equal(n->kind, N_STR);
	assert_string_equal(n->s.text, "12");
	n = expr(f, "$$5");
	assert_string_equal(n->s.text, "\"q\n\"");
	assert_int_equal(expr(f, "$pid")->i.value, 4321);
	assert_string_equal(expr(f, "$$pid")->s.text, "4321");
	assert_int_equal(expr(f, "$limit")->i.value, 100);
	assert_string_equal(expr(f, "$who")->ident.name, "root");
	n = expr(f, "p->$2");
	assert_string_equal(n->member.name, "sshd");
	assert_true(used[2] && used[4]);
	assert_tags(f, "");

	n = parse(f, "BEGIN { trace($9); trace($target); }");
	assert_tags(f, "D_MACRO_UNDEF D_MACRO_UNDEF");
	assert_non_null(n);
	f->macros.defaultargs = true;
	n = expr(f, "$9");
	assert_int_equal(n->kind, N_INT);
	assert_int_equal(n->i.value, 0);
	assert_string_equal(expr(f, "$$9")->s.text, "");
	f->cx.macros = NULL;
	parse(f, "BEGIN { trace($1); } pid$1:::x { }");
	assert_tags(f, "D_MACRO_UNDEF D_PDESC_INVAL");
}

static void test_casts(void **state)
{
	struct fix *f = *state;
	struct node *n;

	f->type = "foo_t";
	assert_int_equal(expr(f, "(foo_t)-1")->kind, N_CAST);
	assert_int_equal(expr(f, "(foo_t)(1)")->kind, N_CAST);
	assert_int_equal(expr(f, "(foo_t)*x")->kind, N_CAST);
	assert_int_equal(expr(f, "(bar_t)-1")->kind, N_BINARY);
	assert_int_equal(f->asked, 4);
	/* Where the form alone decides, is_type() is not called, so the kernel's types need not be
	 * read. */
	f->asked = 0;
	assert_int_equal(expr(f, "(bar_t *)x")->kind, N_CAST);
	assert_int_equal(expr(f, "(bar_t)x")->kind, N_CAST);
	assert_int_equal(expr(f, "(execname)")->kind, N_IDENT);
	assert_int_equal(expr(f, "(execname) == \"x\"")->kind, N_BINARY);
	assert_int_equal(expr(f, "(a * b)")->kind, N_BINARY);
	assert_int_equal(expr(f, "(int)x")->kind, N_CAST);
	assert_int_equal(f->asked, 0);
	/* A variable of the program hides a type of the kernel; a typedef of the program is known
	 * in later sources. */
	n = parse(f, "int foo_t; typedef int mine; BEGIN { x = (foo_t)-1; }");
	assert_int_equal(n->next->next->clause.body->block.body->e.b->kind, N_BINARY);
	assert_int_equal(expr(f, "(mine)-1")->kind, N_CAST);
	n = parse(f, "BEGIN { foo_t = 1; x = (foo_t)-1; }");
	assert_int_equal(n->clause.body->next->block.body->e.b->kind, N_BINARY);
	assert_tags(f, "");
}

static void test_declaration_or_clause(void **state)
{
	struct fix *f = *state;

	assert_int_equal(parse(f, "unknown_t x;")->kind, D_DECL);
	assert_int_equal(parse(f, "unknown_t *x;")->kind, D_DECL);
	assert_int_equal(parse(f, "unknown_t*x;")->kind, D_DECL);
	assert_int_equal(parse(f, "vmlinux`unknown_t x[4 / 2];")->kind, D_DECL);
	assert_int_equal(parse(f, "unknown_t* { }")->kind, D_CLAUSE);
	assert_int_equal(parse(f, "unknown_t /x/ { }")->kind, D_CLAUSE);
	assert_int_equal(parse(f, "int*, char* { }")->kind, D_CLAUSE);
	assert_int_equal(parse(f, "int x;")->kind, D_DECL);
	assert_int_equal(f->asked, 0);
	assert_tags(f, "");
	f->cx.pspec = true;
	assert_null(parse(f, "unknown_t x;"));
	assert_tags(f, "D_SYNTAX");
}

/* Each node's place is within its parent's, and each begins at its first byte. */
static void test_places(void **state)
{
	struct fix *f = *state;
	const char *text =
		"BEGIN\n/ x == 1 /\n{\n\ttrace(\"a\" , x->y [ 2 ]) ;\n\tz = (int) w ;\n}\n";
	struct node *n = parse(f, text), *s, *call;
	const char *name;
	uint32_t line, col;
	loc_t base = f->diags.sources[0].base;

	assert_memory_equal(text + (n->loc - base), "BEGIN", 5);
	assert_int_equal(n->end - base, strlen(text) - 1);
	assert_int_equal(n->clause.pdescs->end - n->clause.pdescs->loc, 5);
	assert_int_equal(n->clause.pred->end - n->clause.pred->loc, strlen("x == 1"));
	s = n->clause.body;
	call = s->block.body;
	assert_int_equal(call->end - call->loc, strlen("trace(\"a\" , x->y [ 2 ])"));
	assert_int_equal(call->call.args->end - call->call.args->loc, 3);
	assert_int_equal(call->call.args->next->end - call->call.args->next->loc,
			 strlen("x->y [ 2 ]"));
	assert_true(source_pos(&f->diags, s->next->block.body->e.b->loc, &name, &line, &col));
	assert_int_equal(line, 5);
	assert_int_equal(col, 6);
	assert_int_equal(s->next->block.body->e.b->end - s->next->block.body->e.b->loc,
			 strlen("(int) w"));
}

static void test_clone(void **state)
{
	static const char text[] =
		"#pragma D option quiet\n"
		"typedef struct a { int x : 3; union { char *p[4]; int (*f)(int, ...); }; } a_t, *ap;\n"
		"enum e { A, B = 2 }; self int t[int, string];\n"
		"inline int twice[int n] = n * 2;\n"
		"translator t_t < a_t *I > { x = I->x; y = sizeof (struct a) + offsetof(a_t, x); };\n"
		"provider p { probe q(int a) : (t_t *a); };\n"
		"syscall::read:entry, 12 / self->x && @ == 1 / { if (x) y = 1; else { @a[1, \"b\"] = sum(`k); } }\n"
		"BEGIN { x ? y++ : -z, (a_t *)w, stringof(v), sizeof x, xlate <t_t>(u).x, m`k, 'c'; }\n";
	struct fix *f = *state;
	struct arena other;
	struct node *n = parse(f, text), *copies = NULL, **tail = &copies;
	cleanup_free char *before = NULL, *after = NULL;

	assert_tags(f, "");
	arena_init(&other);
	before = print(n);
	for (; n; n = n->next) {
		*tail = node_clone(&other, n);
		assert_ptr_not_equal(*tail, n);
		assert_null((*tail)->next);
		tail = &(*tail)->next;
	}
	/* Nothing of the copy may lie in the original's arena. */
	arena_fini(&f->arena);
	arena_init(&f->arena);
	after = print(copies);
	assert_string_equal(before, after);
	arena_fini(&other);
	assert_null(node_clone(&f->arena, NULL));
}

/* One error for each cause. Correct text around it is still parsed. */
static void test_recovery(void **state)
{
	struct fix *f = *state;
	struct node *n;

	n = parse(
		f,
		"a { x = ; y = 1; z = = 2; w = 3 } b { trace( } c { v }\nint int i; int j;\nd { u }");
	assert_tags(f, "D_SYNTAX D_SYNTAX D_SYNTAX D_DECL_COMBO");
	assert_int_equal(n->kind, D_CLAUSE);
	assert_non_null(n->clause.body->next);
	assert_null(n->clause.body->next->next);
	n = n->next->next;
	assert_string_equal(n->clause.pdescs->name, "c");
	n = n->next;
	assert_string_equal(n->decl.decls->name, "j");
	n = n->next;
	assert_string_equal(n->clause.pdescs->name, "d");
	assert_null(n->next);
}

static struct node *repeat(struct fix *f, const char *before, const char *part, uint32_t times,
			   const char *after)
{
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fputs(before, out);
	for (uint32_t i = 0; i < times; i++)
		fputs(part, out);
	fputs(after, out);
	fclose(out);
	return parse(f, text);
}

static void test_hostile(void **state)
{
	static const char *const parts[][2] = {
		{ "BEGIN { x = ", "(" },
		{ "BEGIN { x = ", "-" },
		{ "BEGIN { x = ", "!(" },
		{ "BEGIN { x = ", "a[" },
		{ "BEGIN { x = ", "f(" },
		{ "BEGIN { x = ", "(int)" },
		{ "BEGIN { ", "a = " },
		{ "BEGIN { x = ", "a ? " },
		{ "BEGIN { x = ", "sizeof " },
		{ "BEGIN { x = ", "1 + " },
		{ "BEGIN { x = ", "a ? b : " },
		{ "BEGIN { x = a", ".b" },
		{ "BEGIN { x = ", "a, " },
		{ "BEGIN { ", "if (1) " },
		{ "BEGIN { ", "if (1) {" },
		{ "BEGIN { ", "if (1) ; else " },
		{ "", "struct { " },
		{ "int ", "*" },
		{ "int x", "[2]" },
		{ "int ", "(" },
		{ "int x(", "int (*)(" },
		{ "BEGIN { x = ", "(int (*)(" },
		{ "int x[", "int [" },
		{ "BEGIN { ", "@a[" },
		{ "BEGIN { x = ", "xlate <int>(" },
		{ "enum { A = ", "(" },
		{ "inline int x = ", "(" },
		{ "BEGIN / ", "(" },
		{ "BEGIN { x = ", "\"a\" " },
		{ "", "a " },
		{ "", "a," },
		{ "", "{" },
		{ "", "}" },
		{ "BEGIN ", "/" },
		{ "", ";" },
	};
	struct fix *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		repeat(f, parts[i][0], parts[i][1], 30000, "1; }");
		assert_true(f->diags.errors || i == 28);
		diags_fini(&f->diags);
		diags_init(&f->diags);
	}
}

/* Long is not deep: lists and else-if chains of reasonable length are fine. */
static void test_long(void **state)
{
	struct fix *f = *state;

	assert_non_null(repeat(f, "BEGIN { ", "trace(x); ", 50000, "}"));
	assert_non_null(repeat(f, "BEGIN { f(1", ", 2", 50000, "); }"));
	assert_non_null(repeat(f, "BEGIN { if (0) ; ", "else if (x == 1) trace(1); ", 900, "}"));
	assert_non_null(repeat(f, "BEGIN { x = ", "y == 1 ? z : ", 1500, "0; }"));
	assert_non_null(repeat(f, "BEGIN / 0", " || y == 1", 1500, "/ { }"));
	assert_tags(f, "");
	repeat(f, "BEGIN { x = ", "(", 400, "1");
	assert_tags(f, "D_SYNTAX");
	repeat(f, "BEGIN { x = ((((((((", "", 0, "1)))))))); }");
	assert_tags(f, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_command_line_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pdesc_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_macros, setup, teardown),
		cmocka_unit_test_setup_teardown(test_casts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_declaration_or_clause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recovery, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
