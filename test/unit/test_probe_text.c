/* The D texts that stand in tables and library files parse: filters and argument expressions of
 * providers, dlib/. */
#include "unit.h"

#include <unistd.h>

#include "base/hash.h"
#include "compile/dlib.h"
#include "compile/parse/parse.h"
#include "probe/probe.h"

struct world {
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set ps;
	struct arena arena;
	struct diags diags;
	struct hash typedefs;
	uint32_t ntexts;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->types = type_graph_new();
	type_use_kernel(w->types, NULL);
	w->symbols = symbols_new();
	probe_set_init(&w->ps, w->types, w->symbols);
	arena_init(&w->arena);
	diags_init(&w->diags);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hash_fini(&w->typedefs);
	diags_fini(&w->diags);
	arena_fini(&w->arena);
	probe_set_fini(&w->ps);
	symbols_free(w->symbols);
	type_graph_free(w->types);
	free(w);
	return 0;
}

static bool is_type(void *arg, const char *module, const char *name)
{
	struct world *w = arg;
	type_id t;

	return type_lookup(w->types, module, TYPE_TYPEDEF, name, &t);
}

static void assert_parses(struct world *w, enum source_kind kind, const char *name,
			  const char *text)
{
	struct macro_args macros = { .target = -1 };
	struct parse_cx cx = { .arena = &w->arena,
			       .diags = &w->diags,
			       .macros = &macros,
			       .is_type = is_type,
			       .is_type_arg = w,
			       .typedefs = &w->typedefs };
	struct diag_style style = { .progname = "test" };
	struct node *top;

	source_add(&w->diags, kind, name, text, strlen(text));
	top = parse_source(&cx, w->diags.nsources - 1, PDESC_NAME);
	if (w->diags.errors) {
		diags_print(&w->diags, &style, stdout);
		fail_msg("%s does not parse", name);
	}
	assert_non_null(top);
	w->ntexts++;
}

static void parse_texts(void *arg, struct probe *p)
{
	struct world *w = arg;
	struct probe_args a;

	if (p->filter)
		assert_parses(w, SOURCE_FILE, p->name,
			      arena_printf(&w->arena, "BEGIN /%s/ { }", p->filter));
	assert_null(probe_args(&w->ps, p, &a));
	for (uint32_t i = 0; i < a.ntyped; i++) {
		if (a.typed[i].expr)
			assert_parses(w, SOURCE_FILE, p->name,
				      arena_printf(&w->arena, "BEGIN { this->x = %s; }",
						   a.typed[i].expr));
	}
}

static void test_provider_texts(void **state)
{
	static const char *const names[] = { "sched", "proc",    "io",      "vminfo",
					     "ip",    "sysinfo", "fsinfo",  "tcp",
					     "udp",   "mib",     "lockstat" };
	struct world *w = *state;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct probe_desc pd = { names[i], "", "", "" };
		uint32_t n;

		assert_null(probe_match(&w->ps, &pd, parse_texts, w, &n));
	}
	assert_true(w->ntexts > 20);
}

static void parse_library(struct world *w, const char *name)
{
	for (const struct embedded_file *f = dlib_files; f->name; f++) {
		if (!strcmp(f->name, name)) {
			assert_parses(w, SOURCE_LIB, name, f->text);
			return;
		}
	}
	fail_msg("%s is not in the binary", name);
}

static void test_libraries(void **state)
{
	static const char *const names[] = { "types.d",  "sched.d", "procfs.d", "io.d",
					     "fcntl.d",  "errno.d", "signal.d", "regs.d",
					     "unistd.d", "ip.d",    "tcp.d",    "udp.d" };
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		parse_library(w, names[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_provider_texts), TEST(test_libraries) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
