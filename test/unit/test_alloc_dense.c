/* Names and stacks in the file of allocations, which are written in few bytes: what is written is
 * read; files of version 7 are read, and forged ones refused. */
#include "unit.h"

#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "base/io.h"
#include "memory/alloc/trace.h"
#include "random_number.h"

enum { HEAD = 16, FRAMES = 400, NODES = 20000, BASE = 5000 };

static char path[] = "/tmp/descry-dense-XXXXXX";

static struct alloc_trace *read_all(const void *p, size_t n, const char **ret_wrong)
{
	static char wrong[512];
	struct alloc_trace *t;
	struct alloc_event e;
	struct err *err;

	assert_null(p ? alloc_open_memory(p, n, "t", false, &t) : alloc_open(path, false, &t));
	while (alloc_next(t, &e, &err))
		;
	if (err)
		snprintf(wrong, sizeof(wrong), "%s", err->text);
	*ret_wrong = err ? wrong : NULL;
	err_free(err);
	return t;
}

static void make_text(uint32_t i, char text[64])
{
	static const char *const heads[] = { "library.so.3.1+0x", "library.so.3.1`function_", "",
					     "/usr/share/one/two.rb:" };

	snprintf(text, 64, "%s%u", heads[i / 7 % ARRAY_SIZE(heads)], i * 7919);
}

/* Most stacks continue the one before with the frame that stood there the last time. */
static void what_is_written_is_read(void **unused)
{
	static struct alloc_node nodes[NODES];
	static uint32_t usual[FRAMES + 1];
	struct alloc_writer *w;
	struct alloc_trace *t;
	const char *wrong;
	char text[64];

	(void)unused;
	assert_null(alloc_writer_new(path, &w));
	for (uint32_t i = 0; i < FRAMES; i++) {
		make_text(i, text);
		assert_int_equal(alloc_writer_frame(w, text, strlen(text)), i + 1);
		usual[i + 1] = 1 + (uint32_t)(random_number() % FRAMES);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		uint32_t kind = (uint32_t)(random_number() % 100), before = i ? BASE + i - 1 : 0;
		struct alloc_node *n = &nodes[i];

		while (before && !nodes[before - BASE].frame)
			before = nodes[before - BASE].parent;
		n->parent = kind < 3 ? 0 : before;
		n->frame = kind < 3 || kind > 90 || !before
				   ? 1 + (uint32_t)(random_number() % FRAMES)
				   : usual[nodes[before - BASE].frame];
		if (kind == 99 && before)
			n->frame = 0;
		alloc_writer_node(w, BASE + i, n->parent, n->frame);
		if (kind == 50)
			alloc_writer_flush(w);
	}
	assert_null(alloc_writer_end(w));
	t = read_all(NULL, 0, &wrong);
	assert_null(wrong);
	assert_true(t->ended);
	for (uint32_t i = 0; i < FRAMES; i++) {
		make_text(i, text);
		assert_string_equal(t->frames.v[i + 1].text, text);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		assert_true(t->nodes.v[BASE + i].defined);
		assert_int_equal(t->nodes.v[BASE + i].parent, nodes[i].parent);
		assert_int_equal(t->nodes.v[BASE + i].frame, nodes[i].frame);
	}
	alloc_close(t);
}

/* Returns the bytes of the file's first block, unpacked. */
static uint32_t block_bytes(void)
{
	cleanup_free char *text = NULL;
	uint32_t bytes;
	size_t n;

	assert_null(io_read_file(path, &text, &n));
	assert_true(n > 2 * HEAD);
	memcpy(&bytes, text + HEAD + 4, sizeof(bytes));
	return bytes;
}

static void few_bytes(void **unused)
{
	enum { CHAIN = 640 };
	static const char name[] = "a library with a long name`function_1";
	struct alloc_writer *w;
	char text[64];
	uint32_t names;

	(void)unused;
	/* a run of 64 frames that stood there before takes a byte, others 3 bytes each */
	assert_null(alloc_writer_new(path, &w));
	for (uint32_t i = 0; i < CHAIN; i++)
		alloc_writer_node(w, BASE + i, i ? BASE + i - 1 : 0, 1);
	assert_null(alloc_writer_end(w));
	assert_in_range(block_bytes(), CHAIN / 64, CHAIN / 64 + 16);
	assert_null(alloc_writer_new(path, &w));
	for (uint32_t i = 0; i < CHAIN; i++)
		alloc_writer_node(w, BASE + i, i ? BASE + i - 1 : 0, 200 + i);
	assert_null(alloc_writer_end(w));
	assert_in_range(block_bytes(), CHAIN * 3 - 100, CHAIN * 3 + 16);
	/* a name that differs at its end takes 3 bytes and this end */
	assert_null(alloc_writer_new(path, &w));
	alloc_writer_frame(w, name, sizeof(name) - 1);
	names = 100;
	for (uint32_t i = 0; i < names; i++) {
		memcpy(text, name, sizeof(name));
		text[sizeof(name) - 2] = (char)('A' + i % 2);
		alloc_writer_frame(w, text, sizeof(name) - 1);
	}
	assert_null(alloc_writer_end(w));
	assert_in_range(block_bytes(), names * 4, names * 4 + sizeof(name) + 16);
}

/* --- files that are made by hand --- */

static size_t make_file(uint8_t *p, uint32_t version, const void *entries, size_t n)
{
	size_t packed;

	memset(p, 0, HEAD * 2);
	memcpy(p, "DESCRYMA", 8);
	p[8] = (uint8_t)version;
	packed = ZSTD_compress(p + HEAD * 2, 4096, entries, n, 1);
	assert_false(ZSTD_isError(packed));
	for (int i = 0; i < 4; i++) {
		p[HEAD + i] = (uint8_t)((uint32_t)ALLOC_BLOCK >> 8 * i);
		p[HEAD + 4 + i] = (uint8_t)(n >> 8 * i);
		p[HEAD + 8 + i] = (uint8_t)(packed >> 8 * i);
		p[HEAD + 12 + i] = (uint8_t)((uint32_t)hash_fixed(entries, n) >> 8 * i);
	}
	return HEAD * 2 + packed;
}

enum { BOTH = ALLOC_NODE | ALLOC_NEXT | ALLOC_ABOVE };
#define END_ENTRY ALLOC_END, 0, 0

static void older_files_are_read(void **unused)
{
	static const uint8_t entries[] = { ALLOC_FRAME, 3,    'o', 'n',  'e', ALLOC_FRAME,
					   4,           'o',  'n', 'l',  'y', BOTH,
					   1,           BOTH, 2,   BOTH, 2,   END_ENTRY };
	uint8_t file[8192];
	const char *wrong;
	struct alloc_trace *t =
		read_all(file, make_file(file, 7, entries, sizeof(entries)), &wrong);

	(void)unused;
	assert_null(wrong);
	assert_string_equal(t->frames.v[1].text, "one");
	assert_string_equal(t->frames.v[2].text, "only");
	assert_int_equal(t->nodes.n, 4);
	assert_int_equal(t->nodes.v[3].parent, 2);
	assert_int_equal(t->nodes.v[3].frame, 2);
	alloc_close(t);
}

static void forged_files_are_refused(void **unused)
{
#define ONE ALLOC_FRAME, 3, 0, 'o', 'n', 'e'
	static const struct {
		uint8_t n, version, bytes[24];
		const char *wrong;
	} files[] = {
		{ 9, 8, { ONE, END_ENTRY }, NULL },
		{ 12, 8, { ONE, ALLOC_FRAME, 0, 2, END_ENTRY }, NULL },
		{ 12, 8, { ONE, ALLOC_FRAME, 0, 4, END_ENTRY }, "a text is too long" },
		{ 7, 8, { ONE, ALLOC_RUN }, "a stack of a run has no frame" },
		{ 9, 8, { ONE, BOTH, 1, ALLOC_RUN }, "a stack of a run has no frame" },
		{ 14, 8, { ONE, BOTH, 1, BOTH, 1, ALLOC_RUN + 63, END_ENTRY }, NULL },
		{ 11,
		  7,
		  { ALLOC_FRAME, 3, 'o', 'n', 'e', BOTH, 1, BOTH, 1, ALLOC_RUN, 0 },
		  "an entry is of no known kind" },
		{ 8, 8, { ONE, BOTH, 2 }, "a stack has a frame that is not defined" },
		{ 7, 8, { ONE, ALLOC_RUN + 64 }, "an entry is of no known kind" },
	};

	(void)unused;
	for (uint32_t i = 0; i < ARRAY_SIZE(files); i++) {
		uint8_t file[8192];
		const char *wrong;
		struct alloc_trace *t = read_all(
			file, make_file(file, files[i].version, files[i].bytes, files[i].n),
			&wrong);

		if (files[i].wrong)
			assert_true(wrong && strstr(wrong, files[i].wrong));
		else
			assert_null(wrong);
		alloc_close(t);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(few_bytes),
		cmocka_unit_test(older_files_are_read),
		cmocka_unit_test(forged_files_are_refused),
	};
	int failed;

	close(mkstemp(path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
