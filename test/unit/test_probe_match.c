/* Probe descriptions: matching, ids, rates, explanations. Tests that need the kernel's BTF name
 * it. */
#include "unit.h"

#include <unistd.h>

#include "probe/probe.h"

struct world {
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set ps;
	VEC(struct probe *) found;
};

static void collect(void *arg, struct probe *p)
{
	struct world *w = arg;

	vec_push(&w->found, p);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

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

	vec_fini(&w->found);
	probe_set_fini(&w->ps);
	symbols_free(w->symbols);
	type_graph_free(w->types);
	free(w);
	return 0;
}

/* All that match, in w->found; the first one, or NULL. */
static struct probe *match(struct world *w, const char *prov, const char *mod, const char *func,
			   const char *name)
{
	struct probe_desc pd = { prov, mod, func, name };
	uint32_t n = 0;

	w->found.n = 0;
	assert_null(probe_match(&w->ps, &pd, collect, w, &n));
	assert_int_equal(n, w->found.n);
	return n ? w->found.v[0] : NULL;
}

static void assert_explained(struct world *w, struct probe_desc pd, const char *part)
{
	char *why;

	assert_null(match(w, pd.prov, pd.mod, pd.func, pd.name));
	why = probe_explain(&w->ps, &pd);
	assert_non_null(why);
	if (!strstr(why, part))
		fail_msg("\"%s\" does not say \"%s\"", why, part);
	free(why);
}

static bool has_btf(void)
{
	return !access("/sys/kernel/btf/vmlinux", R_OK);
}

static void test_dtrace(void **state)
{
	struct world *w = *state;
	struct probe *p = match(w, "", "", "", "BEGIN");

	assert_int_equal(w->found.n, 1);
	assert_int_equal(p->id, 1);
	assert_int_equal(p->kind, ATTACH_SELF);
	assert_string_equal(p->prov, "dtrace");
	assert_int_equal(match(w, "dtrace", "", "", "END")->id, 2);
	assert_int_equal(match(w, "dt*", "", "", "E[R]R*")->id, 3);
	match(w, "dtrace", "", "", "");
	assert_int_equal(w->found.n, 3);
	assert_null(match(w, "dtrace", "x", "", "BEGIN"));
}

static void test_error_args(void **state)
{
	struct world *w = *state;
	struct probe *p = match(w, "dtrace", "", "", "ERROR");
	struct probe_args a;

	assert_null(probe_args(&w->ps, p, &a));
	assert_int_equal(a.arg[0].source, ARG_NONE);
	for (int i = 1; i <= 5; i++) {
		assert_int_equal(a.arg[i].source, ARG_FAULT);
		assert_int_equal(a.arg[i].value, i);
	}
	assert_int_equal(a.ntyped, 0);
}

static void test_rates(void **state)
{
	static const struct {
		const char *name;
		enum attach_kind kind;
		uint64_t period;
	} good[] = {
		{ "profile-997", ATTACH_PROFILE, 1000000000 / 997 },
		{ "profile-97hz", ATTACH_PROFILE, 1000000000 / 97 },
		{ "profile-5000", ATTACH_PROFILE, 200000 },
		{ "tick-1", ATTACH_TICK, 1000000000 },
		{ "tick-1s", ATTACH_TICK, 1000000000 },
		{ "tick-10sec", ATTACH_TICK, 10000000000ull },
		{ "tick-200us", ATTACH_TICK, 200000 },
		{ "tick-200000nsec", ATTACH_TICK, 200000 },
		{ "tick-5MS", ATTACH_TICK, 5000000 },
		{ "tick-2m", ATTACH_TICK, 120000000000ull },
		{ "tick-1hour", ATTACH_TICK, 3600000000000ull },
		{ "tick-1d", ATTACH_TICK, 86400000000000ull },
	};
	static const char *const bad[] = { "profile-",
					   "profile-0",
					   "tick-5001",
					   "tick-199us",
					   "tick-5x",
					   "tick--1",
					   "profile-99999999999999999999",
					   "tick-999999999999999d",
					   "tick-+1",
					   "profile-1 s" };
	struct world *w = *state;
	uint32_t id;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct probe *p = match(w, "", "", "", good[i].name);

		assert_non_null(p);
		assert_int_equal(w->found.n, 1);
		assert_int_equal(p->kind, good[i].kind);
		assert_int_equal(p->period_ns, good[i].period);
		assert_string_equal(p->name, good[i].name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(match(w, "profile", "", "", bad[i]));
	id = match(w, "", "", "", "tick-10sec")->id;
	assert_int_equal(match(w, "profile", "", "", "tick-10sec")->id, id);
	assert_int_equal(match(w, "profile", "", "", "profile-97")->id, 1000);
	assert_int_equal(match(w, "profile", "", "", "tick-1")->id, 1007);
	match(w, "profile", "", "", "profile-*");
	assert_int_equal(w->found.n, 9); /* 7 listed, 97hz and 5000 named */
}

static void test_syscalls(void **state)
{
	struct world *w = *state;
	struct probe *p = match(w, "syscall", "", "openat", "entry");

	assert_int_equal(w->found.n, 1);
	assert_int_equal(p->id, 10000 + 2 * 257);
	assert_int_equal(p->kind, ATTACH_SYSCALL_ENTRY);
	assert_int_equal(p->number, 257);
	assert_string_equal(p->mod, "vmlinux");
	p = match(w, "syscall", "vmlinux", "openat", "return");
	assert_int_equal(p->id, 10001 + 2 * 257);
	assert_int_equal(p->kind, ATTACH_SYSCALL_RETURN);
	assert_string_equal(p->object, "sys_exit");
	match(w, "syscall", "", "openat*", "entry");
	assert_int_equal(w->found.n, 2); /* openat, openat2 */
}

static void test_syscall_names(void **state)
{
	struct world *w = *state;
	struct probe *p = match(w, "syscall", "", "newstat", "entry");

	assert_non_null(p);
	assert_string_equal(p->func, "stat");
	assert_int_equal(p->number, 4);
	match(w, "syscall", "", "*stat", "entry");
	for (uint32_t i = 0; i < w->found.n; i++)
		assert_string_not_equal(w->found.v[i]->func, "newstat");
	match(w, "syscall", "", "", "");
	assert_true(w->found.n > 700);
	for (uint32_t i = 1; i < w->found.n; i++)
		assert_true(w->found.v[i]->id > w->found.v[i - 1]->id);
	assert_null(match(w, "syscall", "", "read", "enter"));
	assert_null(match(w, "syscall", "ext4", "read", "entry"));
}

static void test_by_id(void **state)
{
	struct world *w = *state;
	struct probe *p;

	assert_null(probe_by_id(&w->ps, 2, &p));
	assert_string_equal(p->name, "END");
	assert_null(probe_by_id(&w->ps, 10000 + 2 * 39, &p));
	assert_string_equal(p->func, "getpid");
	assert_null(probe_by_id(&w->ps, 19999, &p));
	assert_null(p);
	assert_null(probe_by_id(&w->ps, 0, &p));
	assert_null(p);
	assert_null(probe_by_id(&w->ps, 5000000, &p));
	assert_null(p);
}

/* Every provider's ids stay in its range and none is given twice. */
static void test_ids_unique(void **state)
{
	struct world *w = *state;
	struct hash seen = { 0 };

	if (!has_btf())
		skip();
	match(w, "", "", "", "");
	for (uint32_t i = 0; i < w->found.n; i++) {
		struct probe *p = w->found.v[i], *same;
		bool is_new;

		hash_put(&seen, &p->id, sizeof(p->id), &is_new);
		assert_true(is_new);
		assert_null(probe_by_id(&w->ps, p->id, &same));
		assert_ptr_equal(same, p);
	}
	hash_fini(&seen);
}

static void test_added_once(void **state)
{
	struct world *w = *state;
	bool is_new;
	struct probe *a = probe_add(&w->ps, &provider_dtrace, 0, "p1", "m", "f", "n", &is_new), *b;

	assert_true(is_new);
	assert_int_equal(a->id, PROBE_ID_DYNAMIC);
	assert_int_equal(a->thread_arg, -1);
	b = probe_add(&w->ps, &provider_dtrace, 0, "p1", "m", "f", "n", &is_new);
	assert_false(is_new);
	assert_ptr_equal(a, b);
	b = probe_add(&w->ps, &provider_dtrace, 0, "p1", "m", "f", "n2", &is_new);
	assert_int_equal(b->id, PROBE_ID_DYNAMIC + 1);
	assert_ptr_equal(a->prov, b->prov);
}

static void test_explain(void **state)
{
	struct world *w = *state;

	assert_explained(w, (struct probe_desc){ "sycall", "", "read", "entry" },
			 "did you mean syscall?");
	assert_explained(w, (struct probe_desc){ "nonsense", "", "", "" },
			 "no provider is called nonsense");
	assert_explained(w, (struct probe_desc){ "rawfbt", "", "vfs_read", "entry" },
			 "not built into descry");
	assert_explained(w, (struct probe_desc){ "syscall", "", "opnat", "entry" },
			 "syscall:vmlinux:openat:entry?");
	assert_explained(w, (struct probe_desc){ "", "syscall", "", "read" },
			 "did you mean syscall::read:?");
	assert_explained(w, (struct probe_desc){ "", "", "syscall", "read" },
			 "did you mean syscall::read: or");
	assert_explained(w, (struct probe_desc){ "syscall", "", "read", "retrun" }, "did you mean");
	assert_explained(w, (struct probe_desc){ "syscall", "ext4", "read", "entry" }, "no module");
	assert_explained(w, (struct probe_desc){ "profile", "", "", "profile-10000" },
			 "fastest rate is 5000");
	assert_explained(w, (struct probe_desc){ "", "", "", "tick-5x" }, "a number and a unit");
	assert_explained(w, (struct probe_desc){ "", "", "malloc", "entry" },
			 "pid123::malloc:entry");
	assert_explained(w, (struct probe_desc){ "syscall", "", "zzz*", "entry" },
			 "no function matches zzz*");
}

static void test_kind_names(void **state)
{
	for (int k = 0; k < ATTACH_KIND_COUNT; k++)
		assert_non_null(attach_kind_name(k));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_dtrace),     TEST(test_error_args),    TEST(test_rates),
		TEST(test_syscalls),   TEST(test_syscall_names), TEST(test_by_id),
		TEST(test_ids_unique), TEST(test_added_once),    TEST(test_explain),
		TEST(test_kind_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
