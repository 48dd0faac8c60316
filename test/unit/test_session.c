/* Tracing as a library: messages by the callback, output by the sink, several sessions at once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "session/program_files.h"
#include "session/session.h"

struct heard {
	char text[4096];
	size_t n;
	int stop;
};

static void message(void *arg, const char *text, size_t n)
{
	struct heard *h = arg;

	assert_true(h->n + n < sizeof(h->text));
	memcpy(h->text + h->n, text, n);
	h->n += n;
}

static int stop(void *arg)
{
	return ((struct heard *)arg)->stop;
}

/* The interpreter needs no privilege. */
static void begin(struct session *s, struct heard *h)
{
	static char name[] = "test";
	static char *args[] = { name };
	const struct session_setting o = {
		.message = message, .stop = stop, .arg = h, .args = args, .nargs = 1
	};
	const char *why;

	memset(h, 0, sizeof(*h));
	session_init(s, &o);
	assert_true(options_set(&s->options, "engine", "interp", WHEN_COMPILE, &why));
	options_put(&s->options, OPT_QUIET, true);
}

static void load(struct session *s, const char *program)
{
	assert_null(session_source(s, PDESC_NAME, false, program));
	assert_null(session_bind(s));
	assert_true(session_enables(s));
	assert_null(session_compile(s));
	assert_null(session_allowed(s));
	assert_null(session_load(s));
}

static void start(struct session *s, FILE *out)
{
	struct sink *sink = sink_text_new();

	sink->out = out;
	assert_null(session_start(s, sink));
}

static void output_and_status(void **state)
{
	struct session s;
	struct heard h;
	struct err *e = NULL;
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	begin(&s, &h);
	load(&s, "BEGIN { printf(\"%d\\n\", 6 * 7); exit(3); } END { printf(\"end\\n\"); }");
	start(&s, out);
	while (session_poll(&s, -1, &e))
		;
	assert_null(session_stop(&s, e));
	assert_int_equal(s.status, 3);
	session_fini(&s);
	fclose(out);
	assert_string_equal(text, "42\nend\n\n"); /* the last line feed is the sink's */
	assert_int_equal(h.n, 0);
	free(text);
}

static void wrong_d(void **state)
{
	struct session s;
	struct heard h;
	struct err *e;

	begin(&s, &h);
	assert_null(session_source(&s, PDESC_NAME, false, "BEGIN { x = ; }"));
	e = session_bind(&s);
	assert_non_null(e);
	assert_int_not_equal(s.diags.errors, 0);
	assert_non_null(strstr(h.text, "error:"));
	err_free(e);
	session_fini(&s);
}

/* A refusal is an error for the caller to show, and no message. */
static void not_allowed(void **state)
{
	struct session s;
	struct heard h;
	struct err *e;

	begin(&s, &h);
	assert_null(session_source(&s, PDESC_NAME, false, "BEGIN { system(\"true\"); }"));
	assert_null(session_bind(&s));
	assert_null(session_compile(&s));
	e = session_allowed(&s);
	assert_non_null(e);
	assert_non_null(strstr(e->text, "Destructive actions not allowed"));
	assert_int_equal(h.n, 0);
	err_free(e);
	session_fini(&s);
}

static void two_at_once(void **state)
{
	struct err *e[2] = { NULL };
	struct session s[2];
	struct heard h[2];
	char *text[2];
	size_t n[2];
	FILE *out[2];

	for (int i = 0; i < 2; i++) {
		out[i] = open_memstream(&text[i], &n[i]);
		begin(&s[i], &h[i]);
		load(&s[i], i ? "BEGIN { printf(\"b\"); } tick-1ms { printf(\"c\"); exit(1); }"
			      : "BEGIN { printf(\"a\"); }");
		start(&s[i], out[i]);
	}
	while (session_poll(&s[1], -1, &e[1]))
		assert_true(session_poll(&s[0], 0, &e[0]));
	h[0].stop = 1; /* nothing else ends it */
	assert_false(session_poll(&s[0], 0, &e[0]));
	for (int i = 0; i < 2; i++) {
		assert_null(session_stop(&s[i], e[i]));
		assert_int_equal(s[i].status, i);
		session_fini(&s[i]);
		fclose(out[i]);
	}
	assert_int_equal(text[0][0], 'a');
	assert_memory_equal(text[1], "bc", 2);
	free(text[0]);
	free(text[1]);
}

/* Programs of so many mappings, of a few files each. */
static void files_of_programs(void **state)
{
	enum { MAPPINGS = 65000, FILES = 6 };
	struct mappings maps = { .v = xcalloc(MAPPINGS, sizeof(*maps.v)) };
	struct program_files f[1 << FILES];

	(void)state;
	for (uint32_t set = 0; set < 1 << FILES; set++) {
		maps.n = 0;
		for (uint32_t i = 0; i < (set == 13 ? MAPPINGS : 100); i++) {
			const uint32_t file = i * 7 % FILES;

			if (set >> file & 1)
				maps.v[maps.n++] = (struct mapping){ .exec = true,
								     .dev_major = file & 1,
								     .inode = 1 + file / 2 };
			else if (maps.n) /* data, and memory without a file */
				maps.v[maps.n++] = (struct mapping){ .exec = i & 1,
								     .inode = i & 1 ? 0 : file };
		}
		program_files_init(&f[set], &maps);
		assert_int_equal(f[set].v.n, __builtin_popcount(set));
	}
	for (uint32_t a = 0; a < 1 << FILES; a++)
		for (uint32_t b = 0; b < 1 << FILES; b++)
			assert_int_equal(program_files_cover(&f[a], &f[b]), (a & b) == b);
	for (uint32_t set = 0; set < 1 << FILES; set++)
		program_files_fini(&f[set]);
	free(maps.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_status), cmocka_unit_test(wrong_d),
		cmocka_unit_test(not_allowed),       cmocka_unit_test(two_at_once),
		cmocka_unit_test(files_of_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
