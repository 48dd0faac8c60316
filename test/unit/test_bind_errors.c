/* Wrong programs: each gives one error, with its tag, and nothing that follows from it. */
#include "unit.h"

#include "bind_run.h"

struct wrong {
	const char *tag, *text;
};

static const struct wrong wrongs[] = {
	{ "D_IDENT_UNDEF", "BEGIN { trace(nosuch); }" },
	{ "D_IDENT_UNDEF", "BEGIN { trace(execnam); trace(timestmp); }" },
	{ "D_VAR_UNDEF", "BEGIN { trace(self->x); }" },
	{ "D_VAR_UNDEF", "BEGIN { trace(this->x); }" },
	{ "D_OP_INCOMPAT", "BEGIN { x = 1; x = \"abc\"; }" },
	{ "D_OP_INCOMPAT", "BEGIN { trace(\"abc\" == 1); }" },
	{ "D_OP_INT", "BEGIN { trace(~\"abc\"); }" },
	{ "D_OP_INT", "BEGIN { trace(\"abc\" % 2); }" },
	{ "D_OP_INCOMPAT", "BEGIN { trace(\"abc\" + \"def\"); }" },
	{ "D_OP_SCALAR", "BEGIN { trace(!\"abc\"); }" },
	{ "D_OP_SCALAR", "BEGIN { trace(\"abc\" && 1); }" },
	{ "D_DIV_ZERO", "BEGIN { trace(1 / 0); }" },
	{ "D_DIV_ZERO", "BEGIN { x = 1; trace(x % 0); }" },
	{ "D_PRED_SCALAR", "BEGIN /execname/ { trace(1); }" },
	{ "D_PDESC_ZERO", "nosuch:probe:at:all { trace(1); }" },
	{ "D_PDESC_ZERO", "syscall::opennat:entry { trace(1); }" },
	{ "D_FUNC_UNDEF", "BEGIN { nosuchfunc(1); }" },
	{ "D_FUNC_UNDEF", "BEGIN { prinft(\"x\"); }" },
	{ "D_PROTO_LEN", "BEGIN { trace(strlen()); }" },
	{ "D_PROTO_LEN", "BEGIN { exit(); }" },
	{ "D_PROTO_ARG", "BEGIN { trace(strlen(5)); }" },
	{ "D_PROTO_ARG", "BEGIN { exit(\"a\"); }" },
	{ "D_PRINTF_ARG_FMT", "BEGIN { printf(execname); }" },
	{ "D_PRINTF_FMT_EMPTY", "BEGIN { printf(\"\"); }" },
	{ "D_PRINTF_ARG_PROTO", "BEGIN { printf(\"%d\"); }" },
	{ "D_PRINTF_ARG_EXTRA", "BEGIN { printf(\"x\", 1); }" },
	{ "D_PRINTF_ARG_TYPE", "BEGIN { printf(\"%d\", \"x\"); }" },
	{ "D_PRINTF_ARG_TYPE", "BEGIN { printf(\"%s\", 1); }" },
	{ "D_PRINTF_AGG_CONV", "BEGIN { printf(\"%@d\", 1); }" },
	{ "D_PRINTF_DYN_PROTO", "BEGIN { printf(\"%*d\"); }" },
	{ "D_PRINTF_DYN_TYPE", "BEGIN { printf(\"%*d\", \"x\", 1); }" },
	{ "D_SYNTAX", "BEGIN { printf(\"%z\", 1); }" },
	{ "D_AGG_FUNC", "BEGIN { @a = 1; }" },
	{ "D_OP_INCOMPAT", "BEGIN { x = count(); }" },
	{ "D_AGG_REDEF", "BEGIN { @a = count(); @a = sum(1); }" },
	{ "D_AGG_NULL", "BEGIN { @a = count(); @a; }" },
	{ "D_AGG_SCALAR", "BEGIN { @a = sum(\"x\"); }" },
	{ "D_AGG_MDIM", "BEGIN { @a[1][2] = count(); }" },
	{ "D_PROTO_LEN", "BEGIN { @a[1] = count(); @a[1, 2] = count(); }" },
	{ "D_PROTO_ARG", "BEGIN { @a[1] = count(); @a[\"x\"] = count(); }" },
	{ "D_LQUANT_BASETYPE", "BEGIN { @ = lquantize(1, pid, 10); }" },
	{ "D_LQUANT_MISMATCH", "BEGIN { @ = lquantize(1, 10, 1); }" },
	{ "D_LQUANT_STEPTYPE", "BEGIN { @ = lquantize(1, 0, 10, -1); }" },
	{ "D_LQUANT_STEPLARGE", "BEGIN { @ = lquantize(1, 0, 10, 100); }" },
	{ "D_LQUANT_STEPSMALL", "BEGIN { @ = lquantize(1, 0, 100000, 1); }" },
	{ "D_LQUANT_MATCHBASE",
	  "BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 1, 10, 1); }" },
	{ "D_LQUANT_MATCHLIM",
	  "BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 11, 1); }" },
	{ "D_LQUANT_MATCHSTEP",
	  "BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 10, 2); }" },
	{ "D_LLQUANT_FACTORTYPE", "BEGIN { @ = llquantize(1, pid, 0, 6, 20); }" },
	{ "D_LLQUANT_HMAGVAL", "BEGIN { @ = llquantize(1, 10, 6, 0, 20); }" },
	{ "D_PRINTA_AGGBAD", "BEGIN { printa(@nosuch); }" },
	{ "D_CLEAR_AGGBAD", "BEGIN { clear(@nosuch); }" },
	{ "D_TRUNC_AGGBAD", "BEGIN { trunc(@nosuch); }" },
	{ "D_NORMALIZE_AGGBAD", "BEGIN { normalize(@nosuch, 2); }" },
	{ "D_CLEAR_AGGARG", "BEGIN { clear(1); }" },
	{ "D_PROTO_LEN", "BEGIN { clear(); }" },
	{ "D_PROTO_LEN", "BEGIN { trunc(@a, 1, 2); }" },
	{ "D_PROTO_LEN", "BEGIN { @a = count(); normalize(@a); }" },
	{ "D_PROTO_ARG", "BEGIN { @a = count(); normalize(@a, \"x\"); }" },
	{ "D_PRINTA_AGGPROTO", "BEGIN { @a[1] = count(); @b[\"x\"] = count(); printa(@a, @b); }" },
	{ "D_PRINTA_AGGKEY", "BEGIN { @a[1] = count(); @b[1, 2] = count(); printa(@a, @b); }" },
	{ "D_PRINTA_PROTO", "BEGIN { printa(\"x\"); }" },
	{ "D_PRINTA_AGGARG", "BEGIN { printa(\"x\", 1); }" },
	{ "D_PRINTF_ARG_PROTO", "BEGIN { @a[1] = count(); printa(\"%d %d\", @a); }" },
	{ "D_COMM_DREC", "BEGIN { trace(1); commit(1); }" },
	{ "D_DREC_COMM", "BEGIN { commit(1); trace(1); }" },
	{ "D_AGG_COMM", "BEGIN { commit(1); @a = count(); }" },
	{ "D_SPEC_SPEC", "BEGIN { speculate(1); speculate(1); }" },
	{ "D_SPEC_COMM", "BEGIN { commit(1); speculate(1); }" },
	{ "D_SPEC_DREC", "BEGIN { trace(1); speculate(1); }" },
	{ "D_AGG_SPEC", "BEGIN { speculate(1); @a = count(); }" },
	{ "D_EXIT_SPEC", "BEGIN { speculate(1); exit(0); }" },
	{ "D_ACT_SPEC", "BEGIN { speculate(1); raise(9); }" },
	{ "D_TRACE_VOID", "BEGIN { trace(bcopy(alloca(1), alloca(1), 1)); }" },
	{ "D_TRACE_DYN", "BEGIN { trace(stack()); }" },
	{ "D_TRACEMEM_ADDR", "BEGIN { tracemem(\"x\", 10); }" },
	{ "D_TRACEMEM_SIZE", "BEGIN { tracemem(alloca(10), pid); }" },
	{ "D_STACK_SIZE", "BEGIN { stack(pid); }" },
	{ "D_PROTO_LEN", "BEGIN { stack(1, 2); }" },
	{ "D_USTACK_FRAMES", "BEGIN { ustack(0); }" },
	{ "D_USTACK_STRSIZE", "BEGIN { ustack(1, -1); }" },
	{ "D_PROTO_LEN", "BEGIN { ustack(1, 2, 3); }" },
	{ "D_OP_INCOMPAT", "BEGIN { x = exit(0); }" },
	{ "D_OP_DYN", "BEGIN { x = stack(); }" },
	{ "D_UNKNOWN", "BEGIN { panic(); }" },
	{ "D_UNKNOWN", "BEGIN { trace(msgsize(1)); }" },
	{ "D_VAR_UNSUP", "BEGIN { trace(jailname); }" },
	{ "D_OP_LVAL", "BEGIN { 1 = 2; }" },
	{ "D_OP_WRITE", "BEGIN { pid = 1; }" },
	{ "D_OP_WRITE", "BEGIN { timestamp++; }" },
	{ "D_DEREF_NONPTR", "BEGIN { trace(*1); }" },
	{ "D_DEREF_VOID", "BEGIN { trace(*alloca(1)); }" },
	{ "D_ADDROF_VAR", "BEGIN { x = 1; trace(&x); }" },
	{ "D_ADDROF_LVAL", "BEGIN { trace(&1); }" },
	{ "D_OP_SOU", "BEGIN { x = 1; trace(x.y); }" },
	{ "D_OP_PTR", "BEGIN { x = 1; trace(x->y); }" },
	{ "D_TYPE_MEMBER", "struct foo { int a; }; struct foo s; BEGIN { trace(s.b); }" },
	{ "D_CAST_INVAL", "struct foo { int a; }; BEGIN { trace((struct foo)1); }" },
	{ "D_STRINGOF_TYPE", "struct foo { int a; }; struct foo s; BEGIN { trace(stringof(s)); }" },
	{ "D_SIZEOF_TYPE", "BEGIN { trace(sizeof(void)); }" },
	{ "D_OFFSETOF_TYPE", "BEGIN { trace(offsetof(int, x)); }" },
	{ "D_OFFSETOF_BITFIELD",
	  "struct foo { int a:3; }; BEGIN { trace(offsetof(struct foo, a)); }" },
	{ "D_SIZEOF_BITFIELD",
	  "struct foo { int a:3; }; struct foo s; BEGIN { trace(sizeof(s.a)); }" },
	{ "D_DECL_TYPERED", "struct foo { int a; }; struct foo { int b; }; BEGIN { trace(1); }" },
	{ "D_DECL_IDRED", "int x; string x; BEGIN { trace(1); }" },
	{ "D_DECL_IDRED", "int pid; BEGIN { trace(1); }" },
	{ "D_DECL_LOCASSC", "this int x[int]; BEGIN { trace(1); }" },
	{ "D_DECL_VOIDOBJ", "void x; BEGIN { trace(1); }" },
	{ "D_DECL_INCOMPLETE", "struct nosuchfoo x; BEGIN { trace(1); }" },
	{ "D_DECL_BADCLASS", "static int x; BEGIN { trace(1); }" },
	{ "D_DECL_BFSIZE", "struct foo { int a:40; }; BEGIN { trace(1); }" },
	{ "D_DECL_BFTYPE", "struct foo { string a:4; }; BEGIN { trace(1); }" },
	{ "D_DECL_ARRNULL", "int x[]; BEGIN { trace(1); }" },
	{ "D_SYNTAX", "BEGIN { trace((nosuchtype_t *)1); }" },
	{ "D_ARR_LOCAL", "BEGIN { this->a[1] = 2; }" },
	{ "D_IDENT_BADREF", "BEGIN { a[1] = 2; trace(a); }" },
	{ "D_ARR_BOUNDS", "int a[4]; BEGIN { trace(a[4]); }" },
	{ "D_PROTO_LEN", "BEGIN { a[1] = 2; trace(a[1, 2]); }" },
	{ "D_PROTO_ARG", "BEGIN { a[1] = 2; trace(a[\"x\"]); }" },
	{ "D_ARGS_IDX", "BEGIN { trace(args[0]); }" },
	{ "D_PROTO_ARG", "syscall::read:entry { trace(args[pid]); }" },
	{ "D_ARGS_IDX", "syscall::read:entry { trace(args[9]); }" },
	{ "D_PROTO_ARG", "BEGIN { trace(uregs[pid]); }" },
	{ "D_XLATE_NONE", "struct foo { int a; }; BEGIN { trace(xlate <struct foo>(1).a); }" },
	{ "D_XLATE_SOU", "BEGIN { trace(xlate <int>(1)); }" },
	{ "D_XLATE_SOU", "translator int < int I > { a = 1; }; BEGIN { trace(1); }" },
	{ "D_XLATE_NOCONV",
	  "struct foo { int a; int b; }; translator struct foo < int I > { a = I; }; BEGIN { trace(xlate <struct foo>(1).b); }" },
	{ "D_XLATE_MEMB",
	  "struct foo { int a; }; translator struct foo < int I > { b = I; }; BEGIN { trace(1); }" },
	{ "D_XLATE_REDECL",
	  "struct foo { int a; }; translator struct foo < int I > { a = I; }; translator struct foo < int J > { a = J; }; BEGIN { trace(1); }" },
	{ "D_XLATE_INCOMPAT",
	  "struct foo { int a; }; translator struct foo < int I > { a = \"x\"; }; BEGIN { trace(xlate <struct foo>(1).a); }" },
	{ "D_OP_INCOMPAT",
	  "struct foo { int a; }; translator struct foo < int I > { a = 1; }; BEGIN { x = xlate <struct foo *>(1); }" },
	{ "D_PRAGMA_OPTSET", "#pragma D option nosuch" },
	{ "D_PRAGMA_INVAL", "#pragma D nosuch x" },
	{ "D_PRAGMA_MALFORM", "#pragma D option" },
	{ "D_PRAGERR", "#pragma error hello there" },
	{ "D_IDENT_UNDEF", "inline int a = b; inline int b = a; BEGIN { trace(a); }" },
	{ "D_OP_INCOMPAT", "inline int a = \"x\"; BEGIN { trace(a); }" },
	{ "D_FUNC_IDKIND", "BEGIN { x = 1; x(1); }" },
	{ "D_IDENT_BADREF", "BEGIN { trace(strlen); }" },
	{ "D_KEY_TYPE", "BEGIN { @a = count(); @[@a] = count(); }" },
	{ "D_OP_INCOMPAT", "BEGIN { trace(pid ? \"a\" : 2); }" },
};

/* These need the kernel's types. */
static const struct wrong kernel_wrongs[] = {
	{ "D_OP_INCOMPAT", "BEGIN { trace(curthread == 5); }" },
	{ "D_TYPE_MEMBER", "BEGIN { trace(curthread->nosuch); }" },
	{ "D_TYPE_MEMBER", "BEGIN { trace(curpsinfo->pr_psarg); }" },
	{ "D_OP_INCOMPAT", "BEGIN { self->p = curpsinfo; }" },
	{ "D_OP_DYN", "BEGIN { trace(*curpsinfo); }" },
	{ "D_XLATE_NOCONV", "BEGIN { trace(curpsinfo->pr_pctcpu); }" },
	{ "D_FUNC_UNDEF", "BEGIN { trace(__psargs(curthread)); }" },
	{ "D_ADDROF_BITFIELD", "BEGIN { trace(&curthread->in_iowait); }" },
};

static void check(const struct wrong *w, const char *btf)
{
	struct bind_run r;

	bind_run_init(&r, "wrong.d", w->text, btf);
	if (r.diags.errors == 0 || bind_run_count(&r, w->tag) != r.diags.errors) {
		diags_print(&r.diags, &(struct diag_style){ .progname = "test" }, stdout);
		fail_msg("%s: expected %s alone", w->text, w->tag);
	}
	bind_run_fini(&r);
}

static void test_wrong(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++)
		check(&wrongs[i], "");
}

static void test_wrong_kernel(void **state)
{
	if (!have_kernel_types())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(kernel_wrongs); i++)
		check(&kernel_wrongs[i], NULL);
}

/* One cause, one error, however often its result is used; other causes are reported too. */
static void test_one_each(void **state)
{
	struct bind_run r;

	bind_run_init(
		&r, "wrong.d",
		"BEGIN { x = nosuch + 1; y = x * 2; trace(y); printf(\"%s\", x); @[x] = sum(y); }\n"
		"END { trace(x); trace(~\"s\"); printa(@); }\n",
		"");
	assert_int_equal(r.diags.errors, 2);
	assert_int_equal(bind_run_count(&r, "D_IDENT_UNDEF"), 1);
	assert_int_equal(bind_run_count(&r, "D_OP_INT"), 1);
	bind_run_fini(&r);
}

/* An error of a clause with many probes is reported once. */
static void test_once_per_clause(void **state)
{
	struct bind_run r;

	bind_run_init(&r, "wrong.d", "BEGIN,END,ERROR { trace(nosuch); }", "");
	assert_int_equal(r.diags.errors, 1);
	bind_run_fini(&r);
}

static void assert_suggests(const char *text, const char *name)
{
	struct bind_run r;

	bind_run_init(&r, "wrong.d", text, "");
	assert_int_equal(r.diags.n, 1);
	if (!strstr(r.diags.list[0].text, name))
		fail_msg("%s", r.diags.list[0].text);
	bind_run_fini(&r);
}

static void test_nearest(void **state)
{
	assert_suggests("BEGIN { trace(execnam); }", "did you mean execname?");
	assert_suggests("BEGIN { prinft(\"x\"); }", "did you mean printf?");
	assert_suggests("struct s { int count; }; struct s v; BEGIN { trace(v.conut); }",
			"did you mean count?");
	assert_suggests("BEGIN { self->start = 1; } END { trace(self->strat); }",
			"did you mean self->start?");
	assert_suggests("BEGIN { @sizes = count(); printa(@size); }", "did you mean @sizes?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong),    cmocka_unit_test(test_wrong_kernel),
		cmocka_unit_test(test_one_each), cmocka_unit_test(test_once_per_clause),
		cmocka_unit_test(test_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
