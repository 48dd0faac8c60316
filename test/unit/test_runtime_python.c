/* Tests frames of Python in a made-up memory with each version's layout: sound, looping, cut off.
 * sh/stack_python tests real interpreters. */
#include "unit.h"

#include "python_memory.h"
#include "random_number.h"
#include "language_walk.h"

enum { DEPTH = 3 };

static const uint32_t versions[][2] = { { 2, 7 },  { 3, 6 },  { 3, 7 },  { 3, 8 }, { 3, 9 },
					{ 3, 10 }, { 3, 11 }, { 3, 12 }, { 3, 13 } };

/* A frame before its first instruction has the line of the function. */
static void put_frame(struct python_memory *m, uint32_t i, bool last)
{
	const struct python_layout *l = &m->python.layout;
	uint64_t at = PYTHON_FRAMES + i * 0x100;

	made_memory_put(&m->made, at + l->frame_code, PYTHON_CODE, 8);
	made_memory_put(&m->made, at + l->frame_previous, last ? 0 : at + 0x100, 8);
	if (l->frames == PYTHON_OBJECTS)
		made_memory_put(&m->made, at + l->frame_instruction, (uint64_t)-1, 4);
	else
		made_memory_put(&m->made, at + l->frame_instruction,
				PYTHON_CODE + l->code_instructions - 2, 8);
	if (l->frames == PYTHON_CFRAMES && i + 1 == DEPTH)
		made_memory_put(&m->made, at + l->frame_is_entry, 1, 1);
	if (l->frames == PYTHON_SHIMS && i == DEPTH)
		made_memory_put(&m->made, at + l->frame_owner, l->shim, 1);
}

static void make(struct python_memory *m, uint32_t major, uint32_t minor)
{
	const struct python_layout *l = python_layout(major, minor);
	bool by_cframe;
	uint32_t shims;

	assert_non_null(l);
	python_memory_init(m, l);
	l = &m->python.layout;
	m->python.layout.interpreter_next = l->interpreter_next ? 8 : 0;
	m->python.layout.interpreter_threads =
		l->interpreter_threads > 0x100 ? 16 : l->interpreter_threads;
	m->made.n = PYTHON_BYTES;
	made_memory_put(&m->made, PYTHON_HEAD, PYTHON_INTERPRETER, 8);
	made_memory_put(&m->made, PYTHON_INTERPRETER + l->interpreter_threads, PYTHON_THREAD, 8);
	made_memory_put(&m->made, PYTHON_THREAD + l->thread_interpreter, PYTHON_INTERPRETER, 8);
	made_memory_put(&m->made, PYTHON_THREAD + l->thread_id, PYTHON_FS_BASE, 8);
	shims = l->frames == PYTHON_SHIMS ? 1 : 0;
	by_cframe = l->frames == PYTHON_CFRAMES || (shims && l->version == 0x030c);
	made_memory_put(&m->made, PYTHON_THREAD + l->thread_frame,
			by_cframe ? PYTHON_CFRAME : PYTHON_FRAMES, 8);
	made_memory_put(&m->made, PYTHON_CFRAME + l->cframe_frame, PYTHON_FRAMES, 8);
	python_put_code(m);
	for (uint32_t i = 0; i < DEPTH + shims; i++)
		put_frame(m, i, i + 1 == DEPTH + shims);
}

static void test_versions(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		runtime_frame_vec f = { 0 };
		struct python_memory m;

		make(&m, versions[i][0], versions[i][1]);
		python_frames(&m.python.runtime, &m.made.thread, &f);
		assert_int_equal(f.n, DEPTH);
		for (uint32_t k = 0; k < f.n; k++) {
			assert_string_equal(f.v[k].function, "handler");
			assert_string_equal(f.v[k].file, "/srv/app.py");
			assert_int_equal(f.v[k].line, 40);
			assert_int_equal(f.v[k].code, PYTHON_CODE);
		}
		assert_true(f.v[DEPTH - 1].entry);
		vec_fini(&f);
		python_memory_fini(&m);
	}
	assert_null(python_layout(3, 14));
	assert_null(python_layout(0, 0));
}

static void test_other_threads(void **state)
{
	runtime_frame_vec f = { 0 };
	struct python_memory m;

	make(&m, 3, 11);
	m.made.thread.regs.fs_base++;
	python_frames(&m.python.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, 0);
	python_memory_fini(&m);
	vec_fini(&f);
}

/* Walks of looping chains of frames, threads and interpreters end soon. */
static void test_loops(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		runtime_frame_vec f = { 0 };
		struct python_memory m;
		const struct python_layout *l = &m.python.layout;

		make(&m, versions[i][0], versions[i][1]);
		made_memory_put(&m.made, PYTHON_FRAMES + l->frame_previous, PYTHON_FRAMES, 8);
		made_memory_put(&m.made, PYTHON_THREAD + l->thread_next, PYTHON_THREAD, 8);
		made_memory_put(&m.made, PYTHON_INTERPRETER + l->interpreter_next,
				PYTHON_INTERPRETER, 8);
		space_limit(&m.made.space, 100, UINT64_MAX); /* reads */
		python_frames(&m.python.runtime, &m.made.thread, &f);
		assert_in_range(f.n, 1, 4);
		/* no thread of the list is this one */
		m.made.thread.regs.fs_base++;
		f.n = 0;
		python_frames(&m.python.runtime, &m.made.thread, &f);
		assert_int_equal(f.n, 0);
		assert_false(space_is_spent(&m.made.space));
		vec_fini(&f);
		python_memory_fini(&m);
	}
}

/* An address that is no code object gives no frame. A name that cannot be read is NULL. */
static void test_hostile(void **state)
{
	runtime_frame_vec f = { 0 };
	struct python_memory m;
	const struct python_layout *l = &m.python.layout;

	make(&m, 3, 11);
	made_memory_put(&m.made, PYTHON_CODE + l->code_name, 0x7fffffff0000, 8);
	made_memory_put(&m.made, PYTHON_FILE + l->text_length, UINT64_MAX, 8);
	python_frames(&m.python.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, DEPTH);
	assert_null(f.v[0].function);
	assert_true(!f.v[0].file || strlen(f.v[0].file) <= 4096);
	python_memory_fini(&m);
	f.n = 0;
	make(&m, 3, 11);
	made_memory_put(&m.made, PYTHON_CODE + l->object_type, 0, 8);
	python_frames(&m.python.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, 0);
	python_memory_fini(&m);
	f.n = 0;
	make(&m, 3, 11);
	python_put_text(&m, PYTHON_NAME, "a\n\033[1mb");
	python_frames(&m.python.runtime, &m.made.thread, &f);
	assert_string_equal(f.v[0].function, "a??[1mb");
	python_memory_fini(&m);
	vec_fini(&f);
}

static uint32_t line_of(enum python_lines how, const uint8_t *table, uint32_t n, uint32_t at)
{
	struct python_line_mark first = { .line = 1 };

	return python_lines_find(how, table, n, &first, 1, at);
}

/* The examples are the output of each version's compiler for
 *	def f():	# line 1
 *	    x = 1	# 2
 *	    return x	# 3 */
static void test_lines(void **state)
{
	static const uint8_t lnotab[] = { 0, 1, 4, 1 };
	static const uint8_t linetable[] = { 4, 1, 4, 1 };
	static const uint8_t locations[] = { 0x80, 0x00, 0xd8, 0x08, 0x09, 0x80,
					     0x41, 0xd8, 0x0b, 0x0c, 0x80, 0x48 };
	static const uint8_t none[] = { 0xf8 | 1 };

	assert_int_equal(line_of(PYTHON_LNOTAB, lnotab, 4, 0), 2);
	assert_int_equal(line_of(PYTHON_LNOTAB, lnotab, 4, 4), 3);
	assert_int_equal(line_of(PYTHON_LINETABLE, linetable, 4, 2), 2);
	assert_int_equal(line_of(PYTHON_LINETABLE, linetable, 4, 6), 3);
	assert_int_equal(line_of(PYTHON_LINETABLE, linetable, 4, 8), 0);
	assert_int_equal(line_of(PYTHON_LOCATIONS, locations, 12, 0), 1);
	assert_int_equal(line_of(PYTHON_LOCATIONS, locations, 12, 2), 2);
	assert_int_equal(line_of(PYTHON_LOCATIONS, locations, 12, 6), 3);
	assert_int_equal(line_of(PYTHON_LOCATIONS, locations, 12, 100), 0);
	assert_int_equal(line_of(PYTHON_LOCATIONS, none, 1, 0), 0);
}

/* A long table is not read from its beginning for each instruction: there are marks, and the bytes
 * between two of them are few. From the marks, the lines are the same. */
static void test_marks(void **state)
{
	enum { TABLE = 1 << 14, TAIL = 5000, APART = PYTHON_LINE_MARK + 64 };
	static uint8_t table[TABLE];
	struct python_line_mark marks[TABLE / PYTHON_LINE_MARK + 1];

	for (int how = PYTHON_LNOTAB_UNSIGNED; how <= PYTHON_LOCATIONS; how++) {
		uint32_t n;

		for (uint32_t i = 0; i < TABLE; i++)
			table[i] = (uint8_t)random_number();
		if (how == PYTHON_LOCATIONS) { /* an entry with a number that does not end */
			table[TAIL] = 0x80 | 13 << 3;
			memset(table + TAIL + 1, 0x40, TAIL);
			table[2 * TAIL] = 0x80;
		}
		n = python_lines_marks(how, table, TABLE, 1, marks);
		assert_in_range(n, 2, ARRAY_SIZE(marks));
		for (uint32_t i = 1; i < n; i++)
			assert_true(marks[i].at - marks[i - 1].at < APART ||
				    (how == PYTHON_LOCATIONS && marks[i].at == 2 * TAIL));
		for (uint32_t at = 0; at < marks[n - 1].end + 300; at += marks[n - 1].end / 500 + 1)
			assert_int_equal(python_lines_find(how, table, TABLE, marks, n, at),
					 line_of(how, table, TABLE, at));
	}
}

/* --- as programs walk them --- */

static struct language_made made;

static u32 walk(struct python_memory *m)
{
	struct wire_language l;

	runtime_python.wire(&m->python.runtime, &l);
	return language_made_walk(&made, &m->made, &l, 0);
}

static void test_walk(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const struct wire_unwind_ask *ask = made.asks;
		struct python_memory m;
		struct runtime_frame f;
		const void *met;

		make(&m, versions[i][0], versions[i][1]);
		assert_int_equal(walk(&m), DEPTH);
		assert_int_equal(made.nasks, 1);
		met = python_learn(&m.python.runtime, ask->code, ask->entry, ask->id);
		assert_non_null(met);
		for (u32 k = 0; k < DEPTH; k++) {
			uint64_t word = made.walk.stack.pc[k];

			assert_int_equal(WIRE_LANGUAGE_ID(word), ask->id);
			python_describe(&m.python.runtime, met, WIRE_LANGUAGE_AT(word), 0, &f);
			assert_string_equal(f.function, "handler");
			assert_int_equal(f.line, 40);
		}
		assert_true(made.walk.stack.pc[DEPTH - 1] & WIRE_LANGUAGE_ENTRY);
		/* lists that do not end, with the thread in them and without it */
		made_memory_put(&m.made, PYTHON_FRAMES + m.python.layout.frame_previous,
				PYTHON_FRAMES, 8);
		made_memory_put(&m.made, PYTHON_THREAD + m.python.layout.thread_next, PYTHON_THREAD,
				8);
		assert_int_equal(walk(&m), WIRE_STACK_FRAMES);
		m.made.thread.regs.fs_base++;
		assert_int_equal(walk(&m), 0);
		python_memory_fini(&m);
	}
}

/* A thread starts another one, which has not begun: its state, the first one, has the maker's id
 * and no frame. */
static void test_thread_begins(void **state)
{
	const uint64_t begins = PYTHON_THREAD + 0x400;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		runtime_frame_vec f = { 0 };
		struct python_memory m;
		const struct python_layout *l = &m.python.layout;

		make(&m, versions[i][0], versions[i][1]);
		made_memory_put(&m.made, PYTHON_INTERPRETER + l->interpreter_threads, begins, 8);
		made_memory_put(&m.made, begins + l->thread_interpreter, PYTHON_INTERPRETER, 8);
		made_memory_put(&m.made, begins + l->thread_id, PYTHON_FS_BASE, 8);
		made_memory_put(&m.made, begins + l->thread_next, PYTHON_THREAD, 8);
		if (python_by_cframe(l)) /* a _PyCFrame without a frame */
			made_memory_put(&m.made, begins + l->thread_frame, begins + 0x200, 8);
		python_frames(&m.python.runtime, &m.made.thread, &f);
		assert_int_equal(f.n, DEPTH);
		assert_int_equal(walk(&m), DEPTH);
		vec_fini(&f);
		python_memory_fini(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),      cmocka_unit_test(test_other_threads),
		cmocka_unit_test(test_loops),         cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_lines),         cmocka_unit_test(test_walk),
		cmocka_unit_test(test_thread_begins), cmocka_unit_test(test_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
