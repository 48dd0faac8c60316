/* Arguments and attach plans of kernel probes, against the running kernel's BTF. */
#include "unit.h"

#include <unistd.h>

#include "probe/probe.h"

struct world {
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set ps;
};

static int setup(void **state)
{
	struct world *w;

	*state = NULL;
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return 0;
	w = xcalloc(1, sizeof(*w));
	w->types = type_graph_new();
	type_use_kernel(w->types, NULL);
	w->symbols = symbols_new();
	probe_set_init(&w->ps, w->types, w->symbols);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (!w)
		return 0;
	probe_set_fini(&w->ps);
	symbols_free(w->symbols);
	type_graph_free(w->types);
	free(w);
	return 0;
}

static struct world *world(void **state)
{
	if (!*state)
		skip();
	return *state;
}

static void keep_last(void *arg, struct probe *p)
{
	*(struct probe **)arg = p;
}

/* Returns the only probe of this name, and its arguments in *ret. */
static struct probe *get(struct world *w, const char *prov, const char *func, const char *name,
			 struct probe_args *ret)
{
	struct probe_desc pd = { prov, "", func, name };
	struct probe *p = NULL;
	uint32_t n;

	assert_null(probe_match(&w->ps, &pd, keep_last, &p, &n));
	assert_int_equal(n, 1);
	assert_null(probe_args(&w->ps, p, ret));
	return p;
}

static void assert_type(struct world *w, const struct probe_arg *a, const char *type,
			const char *xlate)
{
	assert_string_equal(type_name(w->types, &w->ps.arena, a->type, NULL), type);
	if (xlate)
		assert_string_equal(a->xlate, xlate);
	else
		assert_null(a->xlate);
}

static void test_syscall_entry(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	get(w, "syscall", "openat", "entry", &a);
	assert_true(a.known);
	assert_int_equal(a.ntyped, 4);
	assert_type(w, &a.typed[0], "int", NULL);
	assert_type(w, &a.typed[1], "const char *", NULL);
	assert_type(w, &a.typed[3], "umode_t", NULL);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(a.arg[i].source, ARG_SYSCALL);
		assert_int_equal(a.arg[i].value, i);
	}
	assert_int_equal(a.arg[6].source, ARG_NONE);
	get(w, "syscall", "getpid", "entry", &a);
	assert_int_equal(a.ntyped, 0);
}

static void test_syscall_return(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	get(w, "syscall", "read", "return", &a);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(a.arg[i].source, ARG_CTX);
		assert_int_equal(a.arg[i].value, 8);
	}
	assert_type(w, &a.typed[0], "long", NULL);
	assert_int_equal(a.arg[2].source, ARG_NONE);
}

static void count_unknown(void *arg, struct probe *p)
{
	struct world *w = arg;
	struct probe_args a;

	assert_null(probe_args(&w->ps, p, &a));
	for (uint32_t i = 0; i < a.ntyped; i++) {
		if (a.typed[i].type == T_INT64)
			print_message("%s args[%u]: a type this kernel does not have\n", p->func,
				      i);
	}
}

/* Each type text of syscalls.def parses; a kernel may lack some types, never many. */
static void test_syscall_types(void **state)
{
	struct world *w = world(state);
	struct probe_desc pd = { "syscall", "", "", "entry" };
	uint32_t n;

	assert_null(probe_match(&w->ps, &pd, count_unknown, w, &n));
	assert_true(n > 350);
}

static void test_tracepoint(void **state)
{
	struct world *w = world(state);
	struct probe_args a;
	struct probe *p = get(w, "sdt", "", "sched_process_fork", &a), *raw;

	assert_int_equal(p->kind, ATTACH_RAW_TP);
	assert_string_equal(p->object, "sched_process_fork");
	assert_true(!strcmp(p->mod, "sched") || !strcmp(p->mod, "vmlinux"));
	assert_int_equal(a.ntyped, 2);
	assert_type(w, &a.typed[1], "struct task_struct *", NULL);
	assert_int_equal(a.typed[1].source, ARG_CTX);
	assert_int_equal(a.typed[1].value, 8);
	assert_int_equal(a.arg[1].type, a.typed[1].type);
	assert_int_equal(a.arg[2].source, ARG_NONE);
	raw = get(w, "rawtp", "", "sched_process_fork", &a);
	assert_int_equal(raw->id, p->id + 10000);
}

static void test_every_tracepoint(void **state)
{
	struct world *w = world(state);
	struct probe_desc pd = { "sdt", "", "", "" };
	uint32_t n;

	assert_null(probe_match(&w->ps, &pd, count_unknown, w, &n));
	assert_true(n > 300);
}

static void test_sched(void **state)
{
	struct world *w = world(state);
	struct probe_args a;
	struct probe *p = get(w, "sched", "", "on-cpu", &a);

	assert_null(p->unavailable);
	assert_int_equal(p->kind, ATTACH_TP_BTF);
	assert_int_equal(p->thread_arg, 2);
	assert_int_equal(a.ntyped, 0);
	p = get(w, "sched", "", "off-cpu", &a);
	assert_int_equal(p->kind, ATTACH_RAW_TP);
	assert_int_equal(p->thread_arg, -1);
	assert_int_equal(a.ntyped, 2);
	assert_type(w, &a.typed[0], "struct task_struct *", "lwpsinfo_t *");
	assert_type(w, &a.typed[1], "struct task_struct *", "psinfo_t *");
	assert_int_equal(a.typed[0].value, 16);
	p = get(w, "sched", "", "surrender", &a);
	assert_int_equal(p->kind, ATTACH_SYSCALL_ENTRY);
	assert_int_equal(p->number, 24);
	assert_int_equal(a.typed[0].source, ARG_EXPR);
	assert_string_equal(a.typed[0].expr, "curthread");
	p = get(w, "sched", "", "cpucaps-sleep", &a);
	assert_non_null(p->unavailable);
}

static void test_proc(void **state)
{
	struct world *w = world(state);
	struct probe_args a;
	struct probe *p = get(w, "proc", "", "create", &a);

	assert_int_equal(p->thread_arg, -1);
	assert_non_null(p->filter);
	assert_type(w, &a.typed[0], "struct task_struct *", "psinfo_t *");
	assert_int_equal(a.typed[0].value, 8);
	p = get(w, "proc", "", "start", &a);
	assert_int_equal(p->thread_arg, 2);
	p = get(w, "proc", "", "exec", &a);
	assert_int_equal(a.typed[0].type, T_STRING);
	assert_non_null(strstr(a.typed[0].expr, "copyinstr"));
	assert_int_equal(a.arg[0].type, T_INT64);
	assert_null(strstr(a.arg[0].expr, "copyinstr"));
	p = get(w, "proc", "", "signal-send", &a);
	assert_int_equal(a.ntyped, 3);
	assert_int_equal(a.arg[2].source, ARG_CTX);
	assert_int_equal(a.arg[2].value, 0);
	p = get(w, "proc", "", "signal-clear", &a);
	assert_int_equal(p->kind, ATTACH_SYSCALL_RETURN);
	assert_int_equal(p->number, 128);
}

static void test_io(void **state)
{
	struct world *w = world(state);
	struct probe_args a;
	struct probe *p = get(w, "io", "", "start", &a);

	assert_null(p->unavailable);
	assert_int_equal(a.ntyped, 3);
	assert_type(w, &a.typed[0], "struct request *", "bufinfo_t *");
	assert_type(w, &a.typed[1], "struct request *", "devinfo_t *");
	assert_type(w, &a.typed[2], "struct request *", "fileinfo_t *");
	p = get(w, "io", "", "wait-start", &a);
	assert_non_null(strstr(p->unavailable, "no tracepoint"));
}

static void test_vminfo(void **state)
{
	struct world *w = world(state);
	struct probe_args a;

	get(w, "vminfo", "", "as_fault", &a);
	assert_int_equal(a.arg[0].source, ARG_CONST);
	assert_int_equal(a.arg[0].value, 1);
	get(w, "vminfo", "", "dfree", &a);
	assert_int_equal(a.arg[0].source, ARG_CTX);
	assert_int_equal(a.arg[0].value, 16);
	get(w, "vminfo", "", "pgpgin", &a);
	assert_int_equal(a.arg[0].source, ARG_EXPR);
}

/* Every tracepoint of a probe listed as available exists. */
static void check_available(void *arg, struct probe *p)
{
	struct world *w = arg;
	type_id func;

	if (p->unavailable) {
		assert_true(strlen(p->unavailable) > 0);
		return;
	}
	if (p->kind == ATTACH_RAW_TP || p->kind == ATTACH_TP_BTF)
		assert_true(type_kernel_tracepoint(w->types, p->object, &func));
}

static void test_available(void **state)
{
	static const char *const names[] = { "sched", "proc",    "io",      "vminfo",
					     "ip",    "sysinfo", "fsinfo",  "tcp",
					     "udp",   "mib",     "lockstat" };
	struct world *w = world(state);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct probe_desc pd = { names[i], "", "", "" };
		uint32_t n;

		assert_null(probe_match(&w->ps, &pd, check_available, w, &n));
		assert_true(n > 0);
	}
}

/* Without BTF nothing is guessed: probes are listed as unavailable, with the reason. */
static void test_without_btf(void **state)
{
	struct type_graph *types = type_graph_new();
	struct symbols *symbols = symbols_new();
	struct probe_desc sched = { "sched", "", "", "on-cpu" },
			  sdt = { "sdt", "", "", "sched_switch" };
	struct probe_set ps;
	struct probe *p = NULL;
	uint32_t n;
	char *why;

	type_use_kernel(types, "/nonexistent/vmlinux");
	probe_set_init(&ps, types, symbols);
	assert_null(probe_match(&ps, &sched, keep_last, &p, &n));
	assert_int_equal(n, 1);
	assert_non_null(p->unavailable);
	assert_null(probe_match(&ps, &sdt, keep_last, &p, &n));
	assert_int_equal(n, 0);
	why = probe_explain(&ps, &sdt);
	assert_non_null(why);
	assert_non_null(strstr(why, "/nonexistent/vmlinux"));
	free(why);
	probe_set_fini(&ps);
	symbols_free(symbols);
	type_graph_free(types);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_syscall_entry),
		TEST(test_syscall_return),
		TEST(test_syscall_types),
		TEST(test_tracepoint),
		TEST(test_every_tracepoint),
		TEST(test_sched),
		TEST(test_proc),
		TEST(test_io),
		TEST(test_available),
		TEST(test_vminfo),
		cmocka_unit_test(test_without_btf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
