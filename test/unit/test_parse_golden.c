/* The parser's golden tests without descry: test/golden/parse/x.d -> x.out (the tree) and
 * test/golden/err/D_TAG.parse*.d -> x.out (the diagnostics). tools/run-tests does the same through the command line.
 *
 *	test_parse_golden [--bless | file.d...]       --bless rewrites the .out files; files are parsed and printed
 */
#define _GNU_SOURCE
#include <glob.h>

#include "unit.h"

#include "base/hash.h"
#include "base/io.h"
#include "compile/parse/parse.h"

enum { MAX_ARGS = 16 };

static bool bless;

/* What golden files may use without declaring it. */
static bool is_type(void *arg, const char *module, const char *name)
{
	static const char *const known[] = {
		"int8_t",   "int16_t",    "int32_t",    "int64_t",   "uint8_t",   "uint16_t",
		"uint32_t", "uint64_t",   "size_t",     "pid_t",     "uintptr_t", "intptr_t",
		"psinfo_t", "lwpsinfo_t", "fileinfo_t", "bufinfo_t",
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], name))
			return true;
	return false;
}

struct options {
	char *argv[MAX_ARGS];
	bool used[MAX_ARGS];
	uint32_t argc;
	int64_t target;
	bool pspec, empty;
};

/* "//@ cmd: -d parse -p 1 -x pspec word..." */
static void read_options(struct options *o, char *line)
{
	char *save = NULL, *w;

	o->target = -1;
	o->argv[o->argc++] = "script.d";
	if (strncmp(line, "//@ cmd:", 8))
		return;
	for (w = strtok_r(line + 8, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
		if (!strcmp(w, "-d") || !strcmp(w, "-s")) {
			strtok_r(NULL, " \n", &save);
		} else if (!strcmp(w, "-p")) {
			o->target = strtoll(strtok_r(NULL, " \n", &save), NULL, 10);
		} else if (!strcmp(w, "-x")) {
			w = strtok_r(NULL, " \n", &save);
			o->pspec |= !strcmp(w, "pspec");
			o->empty |= !strcmp(w, "empty");
		} else if (o->argc < MAX_ARGS) {
			o->argv[o->argc++] = w;
		}
	}
}

/* What the parser makes of the text: the tree, or the diagnostics. */
static char *run(const char *name, const char *text, size_t len)
{
	struct options o = { 0 };
	cleanup_free char *line = strndup(text, strcspn(text, "\n"));
	struct arena arena;
	struct diags diags;
	struct hash typedefs = { 0 };
	struct macro_args macros = { 0 };
	struct parse_cx cx = { .arena = &arena,
			       .diags = &diags,
			       .macros = &macros,
			       .is_type = is_type,
			       .typedefs = &typedefs };
	struct node *tree;
	char *result = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&result, &n);

	read_options(&o, line);
	arena_init(&arena);
	diags_init(&diags);
	macros.argv = o.argv;
	macros.argc = o.argc;
	macros.used = o.used;
	macros.target = o.target;
	cx.pspec = o.pspec;
	cx.empty = o.empty;
	source_add(&diags, SOURCE_FILE, name, text, len);
	tree = parse_source(&cx, 0, PDESC_NAME);
	for (struct node *d = tree; d && !diags.errors; d = d->next)
		ast_print(out, d, NULL);
	diags_print(&diags, &(struct diag_style){ .progname = "descry" }, out);
	fclose(out);
	hash_fini(&typedefs);
	diags_fini(&diags);
	arena_fini(&arena);
	return result;
}

static void check_file(const char *path)
{
	cleanup_free char *text = NULL, *want = NULL, *got = NULL,
			  *stem = xstrndup(path, strlen(path) - 2);
	cleanup_free char *out = xasprintf("%s.out", stem);
	size_t len, n;

	assert_null(io_read_file(path, &text, &len));
	got = run(path, text, len);
	if (bless) {
		cleanup_fclose FILE *f = fopen(out, "w");

		assert_non_null(f);
		fputs(got, f);
		return;
	}
	assert_null(io_read_file(out, &want, &n));
	if (strcmp(got, want))
		fail_msg("%s: differs; got:\n%s", path, got);
}

static void check_dir(const char *pattern)
{
	glob_t g;

	if (glob(pattern, 0, NULL, &g)) /* not at the root of the source tree */
		skip();
	for (size_t i = 0; i < g.gl_pathc; i++)
		check_file(g.gl_pathv[i]);
	globfree(&g);
}

static void test_trees(void **state)
{
	check_dir("test/golden/parse/*.d");
}

static void test_errors(void **state)
{
	check_dir("test/golden/err/D_*.parse*.d");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_trees),
					    cmocka_unit_test(test_errors) };

	if (argc > 1 && !strcmp(argv[1], "--bless")) {
		bless = true;
		argv++;
		argc--;
	}
	for (int i = 1; i < argc; i++) {
		cleanup_free char *text = NULL, *got = NULL;
		size_t len;

		if (io_read_file(argv[i], &text, &len))
			return 1;
		got = run(argv[i], text, len);
		fputs(got, stdout);
	}
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
