/* Right programs: types of variables, folded constants, instances of clauses, and nodes that must
 * not be left in a tree. */
#include "unit.h"

#include "bind_run.h"

static void bind_ok(struct bind_run *r, const char *text, const char *btf)
{
	bind_run_init(r, "test.d", text, btf);
	if (r->diags.errors) {
		diags_print(&r->diags, &(struct diag_style){ .progname = "test" }, stdout);
		fail_msg("does not bind: %s", text);
	}
}

static const struct node *list_nth(const struct node *n, int i)
{
	while (i--)
		n = n->next;
	return n;
}

/* Checks that every expression has a type and that no node is left that bind expands. */
static void check_tree(struct bind_run *r, const struct node *n, bool statement)
{
	for (; n; n = n->next) {
		switch (n->kind) {
		case N_XLATE:
		case N_MACRO:
		case N_SIZEOF:
		case N_SIZEOF_TYPE:
		case N_OFFSETOF: fail_msg("%s is left", node_kind_name(n->kind)); break;
		case S_EXPR: check_tree(r, n->block.body, true); continue;
		case S_BLOCK: check_tree(r, n->block.body, false); continue;
		case S_IF:
			check_tree(r, n->cond.cond, false);
			check_tree(r, n->cond.then, false);
			check_tree(r, n->cond.els, false);
			continue;
		case N_AGG: check_tree(r, n->agg.keys, false); break;
		case N_CALL:
			assert_non_null(n->id);
			check_tree(r, n->call.args, false);
			break;
		case N_MEMBER:
		case N_PMEMBER:
			assert_non_null(n->selected);
			check_tree(r, n->member.a, false);
			break;
		case N_CAST: check_tree(r, n->t.a, false); break;
		case N_IDENT:
		case N_EXTERN: assert_non_null(n->id); break;
		case N_INDEX:
		case N_UNARY:
		case N_BINARY:
		case N_TERNARY:
		case N_COMMA:
		case N_STRINGOF:
			if (n->kind != N_INDEX || !n->id)
				check_tree(r, n->e.a, false);
			check_tree(r, n->e.b, false);
			check_tree(r, n->e.c, false);
			break;
		case N_ASSIGN:
			check_tree(r, n->e.a, false);
			if (n->e.a->kind != N_AGG) {
				assert_true(type_same(r->types, n->e.a->type, n->e.b->type) ||
					    n->op != OP_NONE);
				check_tree(r, n->e.b, false);
			}
			break;
		default: break;
		}
		if (!statement && n->kind != N_AGG)
			assert_int_not_equal(n->type, T_VOID);
		if (n->kind == N_BINARY && type_is_string(r->types, n->e.a->type))
			assert_true(type_is_string(r->types, n->e.b->type));
	}
}

static void check_all(struct bind_run *r)
{
	for (uint32_t i = 0; i < r->bound->clauses.n; i++) {
		check_tree(r, r->bound->clauses.v[i]->pred, false);
		check_tree(r, r->bound->clauses.v[i]->body, false);
	}
}

static void test_variables(void **state)
{
	static const struct {
		const char *text;
		enum var_scope scope;
		const char *name, *type;
	} table[] = {
		{ "BEGIN { x = 1; }", SCOPE_NONE, "x", "int" },
		{ "BEGIN { x = 0x80000000; }", SCOPE_NONE, "x", "unsigned int" },
		{ "BEGIN { x = 5000000000; }", SCOPE_NONE, "x", "long" },
		{ "BEGIN { x = timestamp; }", SCOPE_NONE, "x", "uint64_t" },
		{ "BEGIN { self->x = execname; }", SCOPE_SELF, "x", "string" },
		{ "BEGIN { this->x = \"s\"; }", SCOPE_THIS, "x", "string" },
		{ "BEGIN { x++; }", SCOPE_NONE, "x", "int64_t" },
		{ "BEGIN { x += 2; }", SCOPE_NONE, "x", "int64_t" },
		{ "BEGIN { x = 'a'; }", SCOPE_NONE, "x", "int" },
		{ "BEGIN { x = (char)1 + (char)2; }", SCOPE_NONE, "x", "char" },
		{ "BEGIN { x = 1 + 2u; }", SCOPE_NONE, "x", "unsigned int" },
		{ "BEGIN { x = 1u + 2ll; }", SCOPE_NONE, "x", "long long" },
		{ "BEGIN { x = 1 < 2u; }", SCOPE_NONE, "x", "int" },
		{ "BEGIN { x = sizeof(int); }", SCOPE_NONE, "x", "unsigned long" },
		{ "BEGIN { x = (char *)alloca(4); }", SCOPE_NONE, "x", "char *" },
		{ "struct s { char c[8]; int n; }; struct s v; BEGIN { x = v.c; }", SCOPE_NONE, "x",
		  "string" },
		{ "typedef struct { short h; } t; t *p; BEGIN { x = p->h; }", SCOPE_NONE, "x",
		  "short" },
		{ "int x; BEGIN { x = 1; }", SCOPE_NONE, "x", "int" },
		{ "self string x; BEGIN { self->x = 0; }", SCOPE_SELF, "x", "string" },
		{ "BEGIN { x = 1 ? \"a\" : \"b\"; }", SCOPE_NONE, "x", "string" },
		{ "enum e { A, B = 5, C }; BEGIN { x = C; }", SCOPE_NONE, "x", "enum e" },
		{ "inline int n = 3; BEGIN { x = n; }", SCOPE_NONE, "x", "int" },
		{ "int a[4]; BEGIN { x = a[1]; }", SCOPE_NONE, "x", "int" },
		{ "BEGIN { a[1, \"k\"] = timestamp; x = a[2, execname]; }", SCOPE_NONE, "x",
		  "uint64_t" },
	};
	struct bind_run r;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct variable *v;

		bind_ok(&r, table[i].text, "");
		check_all(&r);
		v = bind_run_var(&r, table[i].scope, table[i].name);
		assert_non_null(v);
		if (strcmp(type_name(r.types, &r.arena, v->type, NULL), table[i].type))
			fail_msg("%s: %s", table[i].text,
				 type_name(r.types, &r.arena, v->type, NULL));
		bind_run_fini(&r);
	}
}

/* trace(EXPR) of a constant. */
static void test_folding(void **state)
{
	static const struct {
		const char *expr;
		int64_t value;
	} table[] = {
		{ "1 + 2 * 3", 7 },
		{ "-5 / 2", -2 },
		{ "-5 % 3", -2 },
		{ "1 - 2u", UINT32_MAX },
		{ "~0", -1 },
		{ "~0u", UINT32_MAX },
		{ "1 << 40", 1ll << 40 },
		{ "1ll << 40", 1ll << 40 },
		{ "-1 >> 1", -1 },
		{ "-1u >> 1", INT32_MAX },
		{ "(uint8_t)300", 44 },
		{ "(int8_t)200", -56 },
		{ "!5", 0 },
		{ "!0", 1 },
		{ "1 && 0", 0 },
		{ "1 || 0", 1 },
		{ "1 ^^ 1", 0 },
		{ "1 ^^ 0", 1 },
		{ "-1 < 1u", 0 },
		{ "-1 < 1", 1 },
		{ "1 ? 2 : 3", 2 },
		{ "0 ? 2 : 3", 3 },
		{ "sizeof(long)", 8 },
		{ "sizeof(1 + 1ll)", 8 },
		{ "0x7fffffff + 1", 0x80000000 },
		{ "'a'", 97 },
		{ "-9223372036854775807 - 1", INT64_MIN },
		{ "(-9223372036854775807 - 1) / -1", INT64_MIN },
		{ "(-9223372036854775807 - 1) % -1", 0 },
		{ "5 == 5", 1 },
		{ "6 & 3", 2 },
		{ "6 | 3", 7 },
		{ "6 ^ 3", 5 },
		{ "ENOENT", 2 },
		{ "EPERM + 1", 2 },
	};
	struct bind_run r;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		cleanup_free char *text = xasprintf("BEGIN { trace(%s); }", table[i].expr);
		const struct node *n;

		bind_ok(&r, text, "");
		n = r.bound->clauses.v[0]->body->block.body->call.args;
		assert_int_equal(n->kind, N_INT);
		if ((int64_t)n->i.value != table[i].value)
			fail_msg("%s: %lld", table[i].expr, (long long)n->i.value);
		bind_run_fini(&r);
	}
}

static void test_pointers(void **state)
{
	struct bind_run r;
	const struct node *s, *n;

	bind_ok(&r,
		"int *p; int *q; BEGIN { p = q + 2; p += 3; p++; x = p - q; y = *(p - 1); z = p[2]; }",
		"");
	check_all(&r);
	s = r.bound->clauses.v[0]->body;
	n = s->block.body->e.b;
	assert_int_equal(n->op, OP_ADD);
	assert_int_equal(n->e.b->i.value, 8);
	n = (s = s->next)->block.body;
	assert_int_equal(n->op, OP_ADD);
	assert_int_equal(n->e.b->i.value, 12);
	n = (s = s->next)->block.body;
	assert_int_equal(n->e.c->i.value, 4);
	n = (s = s->next)->block.body->e.b;
	assert_int_equal(n->op, OP_DIV);
	assert_int_equal(n->e.b->i.value, 4);
	assert_int_equal(n->e.a->op, OP_SUB);
	bind_run_fini(&r);
}

static void test_strings(void **state)
{
	struct bind_run r;
	const struct node *n;

	bind_ok(&r,
		"char *p; self string s; BEGIN /p == \"x\"/ { self->s = 0; printf(\"%s\", p); @[strlen(p)] = count(); } "
		"END /self->s != NULL/ { x = NULL; n = 1; n = NULL; m = n == NULL; }",
		"");
	check_all(&r);
	n = r.bound->clauses.v[0]->pred;
	assert_int_equal(n->e.a->kind, N_STRINGOF);
	assert_int_equal(n->e.a->type, T_STRING);
	bind_run_fini(&r);
}

static void test_aggregations(void **state)
{
	struct bind_run r;
	struct agg *a;

	bind_ok(&r,
		"END { printa(\"%s %@d\\n\", @a); trunc(@b, 5); }\n"
		"BEGIN { @a[execname] = count(); @b[pid, \"k\", ustack(5)] = lquantize(pid, -10, 95, 10, 2); "
		"@c = llquantize(pid, 10, 0, 6, 20); @ = avg(timestamp); @b[1, execname, ustack(9)] = lquantize(1, -10, 95, 10); }",
		"");
	check_all(&r);
	assert_int_equal(r.bound->aggs.n, 4);
	a = r.bound->aggs.v[0];
	assert_int_equal(a->func, AGG_COUNT);
	assert_int_equal(a->nkeys, 1);
	assert_int_equal(r.bound->agg_key_types.v[0][0], T_STRING);
	a = r.bound->aggs.v[1];
	assert_int_equal(a->func, AGG_LQUANTIZE);
	assert_int_equal(a->base, -10);
	assert_int_equal(a->limit, 90);
	assert_int_equal(a->step, 10);
	assert_int_equal(a->nwords, 1 + 10 + 2);
	assert_int_equal(a->nkeys, 3);
	assert_int_equal(r.bound->agg_key_types.v[1][2], T_DYN);
	a = r.bound->aggs.v[2];
	assert_int_equal(a->factor, 10);
	assert_int_equal(a->steps, 20);
	const struct node *call = r.bound->clauses.v[1]->body->next->block.body->e.b;

	assert_int_equal(call->id->subr, SUBR_LQUANTIZE);
	assert_int_equal(call->call.args->type, T_INT64);
	assert_int_equal(list_nth(call->call.args, 4)->i.value, 2);
	assert_int_equal(list_nth(call->call.args, 4)->type, T_INT64);
	bind_run_fini(&r);
}

static void test_translators(void **state)
{
	static const char text[] =
		"struct in { int a; char name[8]; struct in *up; };\n"
		"typedef struct inner { int twice; } inner_t;\n"
		"typedef struct out { int64_t a; string name; inner_t in; } out_t;\n"
		"translator inner_t < int I > { twice = I * 2; };\n"
		"translator out_t < struct in *P > { a = P->a; name = P->name; in = xlate <inner_t>(P->a); };\n"
		"inline out_t *o[struct in *p] = xlate <out_t *>(p);\n"
		"inline int plus[int a, int b] = a + b;\n"
		"struct in *g;\n"
		"BEGIN { trace(xlate <out_t *>(g)->a); trace(xlate <out_t>(g->up).name); trace(o[g]->in.twice); "
		"trace(plus[1, plus[2, 3]]); trace((*o[g]).a); }\n";
	struct bind_run r;
	const struct node *s;

	bind_ok(&r, text, "");
	check_all(&r);
	s = r.bound->clauses.v[0]->body;
	assert_int_equal(s->block.body->call.args->type, T_INT64);
	s = s->next;
	assert_int_equal(s->block.body->call.args->type, T_STRING);
	s = s->next;
	assert_int_equal(s->block.body->call.args->kind, N_CAST);
	assert_int_equal(s->block.body->call.args->t.a->op, OP_MUL);
	s = s->next;
	assert_int_equal(s->block.body->call.args->i.value, 6);
	bind_run_fini(&r);
}

static void test_instances(void **state)
{
	struct bind_run r;

	bind_ok(&r, "syscall:::entry { @[probefunc] = count(); }", "");
	assert_int_equal(r.bound->clauses.n, 1);
	assert_true(r.bound->clauses.v[0]->nprobes > 300);
	assert_int_equal(r.bound->matched, r.bound->clauses.v[0]->nprobes);
	bind_run_fini(&r);

	bind_ok(&r, "syscall::read:entry,syscall::read:return,syscall::read:entry { trace(arg0); }",
		"");
	assert_int_equal(r.bound->clauses.n, 2);
	assert_int_equal(r.bound->clauses.v[0]->nprobes, 1);
	bind_run_fini(&r);

	bind_ok(&r, "BEGIN,END { trace(1); } ERROR { trace(arg4); }", "");
	assert_int_equal(r.bound->clauses.n, 3);
	bind_run_fini(&r);
}

/* A provider definition types the arguments of probes that have no types. */
static void test_provider(void **state)
{
	struct bind_run r;
	const struct node *s;

	bind_ok(&r,
		"struct conn { int fd; }; typedef struct info { string kind; int half; } info_t;\n"
		"translator info_t < int N > { kind = \"tcp\"; half = N / 2; };\n"
		"provider dtrace { probe BEGIN(int n, struct conn *c) : (struct conn *c, info_t *n); };\n"
		"BEGIN { trace(args[0]->fd); trace(args[1]->half); }",
		"");
	check_all(&r);
	s = r.bound->clauses.v[0]->body;
	assert_int_equal(s->block.body->call.args->kind, N_PMEMBER);
	s = s->next->block.body->call.args;
	assert_int_equal(s->kind, N_CAST); /* a translated member is cut to its type */
	assert_int_equal(s->t.a->op, OP_DIV);
	bind_run_fini(&r);
}

static void test_default_action(void **state)
{
	struct bind_run r;

	bind_ok(&r, "BEGIN { } END { trace(1); }", "");
	assert_int_equal(r.bound->clauses.n, 2);
	assert_true(r.bound->clauses.v[0]->default_action);
	assert_false(r.bound->clauses.v[1]->default_action);
	bind_run_fini(&r);
}

static void test_zdefs(void **state)
{
	struct bind_run r;

	bind_ok(&r,
		"#pragma D option zdefs\nnosuch:::probe { self->t = args[0]; trace(arg0); } BEGIN /self->t/ { trace(1); }",
		"");
	assert_int_equal(r.bound->clauses.n, 1);
	bind_run_fini(&r);
}

static void test_options(void **state)
{
	struct bind_run r;
	const struct node *call;

	bind_ok(&r,
		"#pragma D option quiet\n#pragma D option strsize = 64\n#pragma D option ustackframes=7\n"
		"BEGIN { ustack(); raise(9); x = sizeof(string); }",
		"");
	assert_true(opt_on(&r.options, OPT_QUIET));
	assert_int_equal(opt_num(&r.options, OPT_STRSIZE), 64);
	call = r.bound->clauses.v[0]->body->block.body;
	assert_int_equal(call->call.args->i.value, 7);
	assert_int_equal(r.bound->clauses.v[0]->body->next->next->block.body->e.b->i.value, 64);
	assert_true(r.bound->destructive);
	bind_run_fini(&r);
}

static void test_if(void **state)
{
	struct bind_run r;

	bind_ok(&r,
		"BEGIN { x = 1; if (x > 0) { speculate(1); trace(1); } else if (x == 0) trace(2); else { commit(1); } }",
		"");
	check_all(&r);
	bind_run_fini(&r);
}

static void test_kernel(void **state)
{
	static const char *const programs[] = {
		"BEGIN { trace(curthread->comm); trace(curthread->real_parent->pid); x = curthread->comm; }",
		"BEGIN { trace(curpsinfo->pr_psargs); trace(curlwpsinfo->pr_state == SRUN); trace(cwd); trace(curcpu->cpu_id); }",
		"BEGIN { trace(fds[0].fi_pathname); trace(uregs[R_RIP]); print(*curthread); }",
		"BEGIN { this->p = (struct task_struct *)curthread; trace(this->p->mm->mmap_base); }",
		"BEGIN { @[execname, stack()] = count(); @t = sum(((struct task_struct *)curthread)->pid); }",
		"syscall::openat:entry { printf(\"%s %x\", copyinstr(arg1), args[2]); }",
		/* the program's own struct has the name of a struct that the translator of args[0]
		 * reads */
		"struct request { int mine; }; struct request r[int]; BEGIN { r[1].mine = 2; } "
		"io:::start { trace(args[0]->b_blkno); r[0].mine = 1; }",
	};
	struct bind_run r;

	if (!have_kernel_types())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		bind_ok(&r, programs[i], NULL);
		check_all(&r);
		bind_run_fini(&r);
	}
}

/* Which programs may be divided among two engines. */
static void test_separable(void **state)
{
	static const struct {
		const char *text;
		bool separable;
	} programs[] = {
		{ "BEGIN { @[probefunc] = count(); this->x = 1; trace(this->x); }", true },
		{ "BEGIN { self->t[probefunc] = 1; } END /self->t[probefunc]/ { self->t[probefunc] = 0; }",
		  true },
		{ "BEGIN { t[tid, probefunc] = timestamp; @ = sum(t[tid, probefunc] + 1); }",
		  true },
		{ "BEGIN { self->t[probefunc] = 1; } END { trace(self->t[probename]); }", false },
		{ "BEGIN { self->t = 1; }", false },
		{ "BEGIN { n++; }", false },
		{ "int n; BEGIN { trace(n); }", false },
		{ "BEGIN { x[1] = 2; } END /x[1] == 2/ { }", false },
		{ "BEGIN { if (1) { n = 1; } }", false },
		{ "BEGIN { speculate(speculation()); trace(1); }", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct bind_run r;

		bind_ok(&r, programs[i].text, "");
		if (bound_is_separable(r.bound) != programs[i].separable)
			fail_msg("%s", programs[i].text);
		bind_run_fini(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_separable),   cmocka_unit_test(test_variables),
		cmocka_unit_test(test_folding),     cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_strings),     cmocka_unit_test(test_aggregations),
		cmocka_unit_test(test_translators), cmocka_unit_test(test_instances),
		cmocka_unit_test(test_provider),    cmocka_unit_test(test_default_action),
		cmocka_unit_test(test_zdefs),       cmocka_unit_test(test_options),
		cmocka_unit_test(test_if),          cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
