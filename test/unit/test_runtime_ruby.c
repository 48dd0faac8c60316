/* Frames of Ruby in memory that is made up, for each version's layout: sound, looping, cut off.
 * Real interpreters: sh/stack_ruby. */
#include "unit.h"

#include "ruby_memory.h"
#include "language_walk.h"

enum { DEPTH = 3, FLAGS_METHOD = 0x11110003, FLAGS_C = 0x55550083, FINISH = 0x20 };
enum { TEXT_LABEL, TEXT_BASE, TEXT_FILE, TEXT_OWNER, TEXT_STRING, TEXT_PUTS };

static const uint32_t versions[][2] = { { 2, 7 }, { 3, 0 }, { 3, 1 }, { 3, 2 }, { 3, 3 }, { 3, 4 } };
enum { PUTS_NUMBER = 5, PUTS_ID = PUTS_NUMBER << 4, PATH_ID = 0x990 };

static uint64_t put_text(struct ruby_memory *m, uint32_t i, const char *s)
{
	uint64_t at = RUBY_TEXTS + i * 0x40, n = strlen(s);
	bool in_flags = m->ruby.layout.length_in_flags;

	made_memory_put(&m->made, at, RUBY_STRING | (in_flags ? n << 14 : 0), 8);
	if (!in_flags)
		made_memory_put(&m->made, at + 16, n, 8);
	memcpy(m->made.bytes + (at - RUBY_BASE) + (in_flags ? 16 : 24), s, n);
	return at;
}

/* A class to 3.2: a hidden variable has its name; in 3.2 shape 1 says so. From 3.3 on the class has
 * it. */
static void put_class(struct ruby_memory *m, uint64_t at, uint64_t extra, uint64_t name)
{
	const struct ruby_layout *l = &m->ruby.layout;
	uint64_t table = extra + 0x20, entries = extra + 0x80;

	made_memory_put(&m->made, at, RUBY_CLASS, 8);
	if (l->class_path) {
		made_memory_put(&m->made, at + l->class_path, name, 8);
		made_memory_put(&m->made, at + l->class_flags, l->permanent, 1);
	}
	if (l->class_values) {
		made_memory_put(&m->made, at, 1ull << 32 | RUBY_CLASS, 8);
		made_memory_put(&m->made, at + l->class_values, extra, 8);
		made_memory_put(&m->made, extra, name, 8);
		made_memory_put(&m->made, RUBY_VM + l->vm_shapes, RUBY_SHAPES, 8);
		made_memory_put(&m->made, RUBY_SHAPES + 32 + 8, PATH_ID, 8);
		made_memory_put(&m->made, RUBY_SHAPES + 32 + 16, 1, 4);
		made_memory_put(&m->made, RUBY_SHAPES + 32 + 24, 1, 1);
	}
	if (!l->class_extra)
		return;
	made_memory_put(&m->made, at + l->class_extra, extra, 8);
	made_memory_put(&m->made, extra + l->extra_variables, table, 8);
	made_memory_put(&m->made, table + 32, 0, 8);
	made_memory_put(&m->made, table + 40, 1, 8);
	made_memory_put(&m->made, table + 48, entries, 8);
	made_memory_put(&m->made, entries + 8, PATH_ID, 8);
	made_memory_put(&m->made, entries + 16, name, 8);
}

static void put_methods(struct ruby_memory *m)
{
	made_memory_put(&m->made, RUBY_ENTRY, RUBY_IMEMO | RUBY_IMEMO_METHOD << 12, 8);
	made_memory_put(&m->made, RUBY_ENTRY + 16, RUBY_DEFINITION, 8);
	made_memory_put(&m->made, RUBY_ENTRY + 32, RUBY_OWNER, 8);
	made_memory_put(&m->made, RUBY_DEFINITION + 8, RUBY_ISEQ, 8);
	made_memory_put(&m->made, RUBY_C_ENTRY, RUBY_IMEMO | RUBY_IMEMO_METHOD << 12, 8);
	made_memory_put(&m->made, RUBY_C_ENTRY + 16, RUBY_C_DEFINITION, 8);
	made_memory_put(&m->made, RUBY_C_ENTRY + 32, RUBY_OWNER, 8);
	made_memory_put(&m->made, RUBY_C_DEFINITION, 1, 8);
	made_memory_put(&m->made, RUBY_C_DEFINITION + 32, PUTS_ID, 8);
	put_class(m, RUBY_OWNER, RUBY_EXTRA, put_text(m, TEXT_OWNER, "Order"));
	put_class(m, RUBY_STRING_OBJECT, RUBY_EXTRA + 0x100, put_text(m, TEXT_STRING, "String"));
	made_memory_put(&m->made, RUBY_STRING_CLASS_WORD, RUBY_STRING_OBJECT, 8);
	/* the table of symbols: one Array of one Array */
	made_memory_put(&m->made, RUBY_SYMBOLS, 200, 8);
	made_memory_put(&m->made, RUBY_SYMBOLS + 16, RUBY_IDS, 8);
	made_memory_put(&m->made, RUBY_IDS, RUBY_ARRAY | 1 << 13 | 1 << 15, 8);
	made_memory_put(&m->made, RUBY_IDS + 16, RUBY_UNIT, 8);
	made_memory_put(&m->made, RUBY_UNIT, RUBY_ARRAY, 8);
	made_memory_put(&m->made, RUBY_UNIT + 16, 1024, 8);
	made_memory_put(&m->made, RUBY_UNIT + 32, RUBY_UNIT_ITEMS, 8);
	made_memory_put(&m->made, RUBY_UNIT_ITEMS + PUTS_NUMBER * 16,
			put_text(m, TEXT_PUTS, "puts"), 8);
	made_memory_put(&m->made, RUBY_UNIT_ITEMS + PUTS_NUMBER * 16 + 8, PUTS_ID << 8 | 0x0c, 8);
}

/* "rescue in save" of app.rb, line 40, of ten words. */
static void put_code(struct ruby_memory *m)
{
	const struct ruby_layout *l = &m->ruby.layout;

	made_memory_put(&m->made, RUBY_ISEQ, RUBY_IMEMO | RUBY_IMEMO_ISEQ << 12, 8);
	made_memory_put(&m->made, RUBY_ISEQ + 16, RUBY_BODY, 8);
	made_memory_put(&m->made, RUBY_BODY, RUBY_ISEQ_METHOD, 4);
	made_memory_put(&m->made, RUBY_BODY + 4, 10, 4);
	made_memory_put(&m->made, RUBY_BODY + 8, RUBY_CODE, 8);
	made_memory_put(&m->made, RUBY_BODY + 64, put_text(m, TEXT_FILE, "/srv/app.rb"), 8);
	made_memory_put(&m->made, RUBY_BODY + 72, put_text(m, TEXT_BASE, "save"), 8);
	made_memory_put(&m->made, RUBY_BODY + 80, put_text(m, TEXT_LABEL, "rescue in save"), 8);
	made_memory_put(&m->made, RUBY_BODY + l->body_local, RUBY_ISEQ, 8);
	made_memory_put(&m->made, RUBY_BODY + l->body_lines, RUBY_LINES, 8);
	made_memory_put(&m->made, RUBY_BODY + l->body_lines + 16, 2, 4);
	made_memory_put(&m->made, RUBY_BODY + l->body_lines + 24, RUBY_STARTS, 8);
	made_memory_put(&m->made, RUBY_LINES, 40, 4);
	made_memory_put(&m->made, RUBY_LINES + l->line_size, 41, 4);
	/* the first entry begins at word 0, the second at word 4 */
	made_memory_put(&m->made, RUBY_STARTS,
			1ull | 1ull << 7 | 1ull << 14 | 1ull << 21 | 2ull << 28 | 2ull << 35 |
				2ull << 42 | 2ull << 49 | 2ull << 56,
			8);
	made_memory_put(&m->made, RUBY_STARTS + 8, 2, 8);
}

/* Frame 0 is a function of C, 1 is in line 41 of its caller, 2 in line 40 and called from native
 * code; 3 is the thread's first one, which is of no function. */
static void put_frame(struct ruby_memory *m, uint32_t i)
{
	uint64_t at = RUBY_STACK + i * m->ruby.layout.frame_size, scope = RUBY_SCOPES + i * 0x40;

	made_memory_put(&m->made, at + 32, scope, 8);
	made_memory_put(&m->made, scope - 16, i ? RUBY_ENTRY : RUBY_C_ENTRY, 8);
	made_memory_put(&m->made, scope, i ? FLAGS_METHOD | (i == 2 ? FINISH : 0) : FLAGS_C, 8);
	if (!i)
		return;
	made_memory_put(&m->made, at, RUBY_CODE + (i == 1 ? 6 * 8 : 2 * 8), 8);
	made_memory_put(&m->made, at + 16, RUBY_ISEQ, 8);
}

static void put_thread(struct ruby_memory *m)
{
	const struct ruby_layout *l = &m->ruby.layout;
	uint64_t list = l->vm_ractors ? RUBY_RACTOR + l->ractor_threads : RUBY_VM + l->vm_threads;

	made_memory_put(&m->made, RUBY_VM_WORD, RUBY_VM, 8);
	if (l->vm_ractors) {
		made_memory_put(&m->made, RUBY_VM + l->vm_ractors, RUBY_RACTOR + l->ractor_node, 8);
		made_memory_put(&m->made, RUBY_RACTOR + l->ractor_node, RUBY_VM + l->vm_ractors, 8);
	}
	made_memory_put(&m->made, list, RUBY_THREAD, 8);
	made_memory_put(&m->made, RUBY_THREAD, list, 8);
	made_memory_put(&m->made, RUBY_THREAD + l->thread_vm, RUBY_VM, 8);
	made_memory_put(&m->made, RUBY_THREAD + l->thread_context, RUBY_CONTEXT, 8);
	if (l->thread_native)
		made_memory_put(&m->made, RUBY_THREAD + l->thread_native, RUBY_NATIVE, 8);
	made_memory_put(&m->made, (l->thread_native ? RUBY_NATIVE : RUBY_THREAD) + l->thread_id,
			RUBY_FS_BASE, 8);
	made_memory_put(&m->made, RUBY_CONTEXT, RUBY_STACK, 8);
	made_memory_put(&m->made, RUBY_CONTEXT + 8, (DEPTH + 1) * l->frame_size / 8, 8);
	made_memory_put(&m->made, RUBY_CONTEXT + 16, RUBY_STACK, 8);
	made_memory_put(&m->made, RUBY_CONTEXT + 24, RUBY_TAGS, 8);
	made_memory_put(&m->made, RUBY_CONTEXT + l->context_thread, RUBY_THREAD, 8);
	/* two tags: the inner one is not the loop's */
	made_memory_put(&m->made, RUBY_TAGS + 24, RUBY_EXEC + 0x2500, 8);
	made_memory_put(&m->made, RUBY_TAGS + 56, RUBY_TAGS + 0x100, 8);
	made_memory_put(&m->made, RUBY_TAGS + 0x100 + 24, RUBY_EXEC + 0x80, 8);
}

static void make(struct ruby_memory *m, uint32_t major, uint32_t minor)
{
	const struct ruby_layout *l = ruby_layout(major, minor);

	assert_non_null(l);
	ruby_memory_init(m, l);
	m->made.n = RUBY_BYTES;
	put_thread(m);
	put_methods(m);
	put_code(m);
	for (uint32_t i = 0; i < DEPTH; i++)
		put_frame(m, i);
}

static void assert_frame(const struct runtime_frame *f, const char *function, uint32_t line)
{
	assert_string_equal(f->function, function);
	assert_string_equal(f->file, "/srv/app.rb");
	assert_int_equal(f->line, line);
}

static void test_versions(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		runtime_frame_vec f = { 0 };
		struct ruby_memory m;
		make(&m, versions[i][0], versions[i][1]);
		assert_true(ruby_is_vm(&m.ruby, RUBY_VM));
		ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
		assert_int_equal(f.n, DEPTH);
		assert_frame(&f.v[0], "Order#puts", 41);
		assert_frame(&f.v[1], "rescue in Order#save", 41);
		assert_frame(&f.v[2], "rescue in Order#save", 40);
		assert_false(f.v[1].entry);
		assert_true(f.v[2].entry);
		assert_int_equal(f.v[2].anchor, RUBY_TAGS + 0x100);
		vec_fini(&f);
		ruby_memory_fini(&m);
	}
	assert_null(ruby_layout(3, 5));
	assert_null(ruby_layout(0, 0));
}

/* The buffer of glibc's setjmp() hides the address by the thread's guard word. */
static void test_glibc_tags(void **state)
{
	runtime_frame_vec f = { 0 };
	struct ruby_memory m;
	uint64_t guard = 0x1122334455667788, label = (RUBY_EXEC + 0x80) ^ guard;

	make(&m, 3, 3);
	m.made.thread.regs.fs_base = RUBY_NATIVE + 0x40;
	made_memory_put(&m.made, RUBY_NATIVE + m.ruby.layout.thread_id, RUBY_NATIVE + 0x40, 8);
	made_memory_put(&m.made, RUBY_NATIVE + 0x70, guard, 8);
	made_memory_put(&m.made, RUBY_CONTEXT + 24, RUBY_TAGS + 0x200, 8);
	made_memory_put(&m.made, RUBY_TAGS + 0x200 + 72, label << 17 | label >> 47, 8);
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, DEPTH);
	assert_int_equal(f.v[2].anchor, RUBY_TAGS + 0x200);
	vec_fini(&f);
	ruby_memory_fini(&m);
}

/* The loop has not begun to run the innermost frame: it belongs to the innermost native one. */
static void test_frame_before_tag(void **state)
{
	runtime_frame_vec f = { 0 };
	struct ruby_memory m;

	make(&m, 3, 1);
	made_memory_put(&m.made, RUBY_SCOPES + 0x40, FLAGS_METHOD | FINISH, 8);
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, DEPTH);
	assert_int_equal(f.v[1].anchor, RUBY_SP);
	assert_int_equal(f.v[2].anchor, RUBY_TAGS + 0x100);
	vec_fini(&f);
	ruby_memory_fini(&m);
}

static void test_other_threads(void **state)
{
	runtime_frame_vec f = { 0 };
	struct ruby_memory m;

	make(&m, 3, 1);
	m.made.thread.regs.fs_base++;
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, 0);
	ruby_memory_fini(&m);
	vec_fini(&f);
}

/* Lists and chains that lead back to themselves end. */
static void test_loops(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		runtime_frame_vec f = { 0 };
		struct ruby_memory m;

		make(&m, versions[i][0], versions[i][1]);
		made_memory_put(&m.made, RUBY_THREAD, RUBY_THREAD, 8);
		made_memory_put(&m.made, RUBY_RACTOR + m.ruby.layout.ractor_node,
				RUBY_RACTOR + m.ruby.layout.ractor_node, 8);
		made_memory_put(&m.made, RUBY_TAGS + 0x100 + 56, RUBY_TAGS, 8);
		made_memory_put(&m.made, RUBY_SHAPES + 32 + 8, PATH_ID + 16, 8);
		made_memory_put(&m.made, RUBY_SHAPES + 32 + 28, 1, 4);
		made_memory_put(&m.made, RUBY_SCOPES + 0x40 - 8, RUBY_SCOPES + 0x40, 8);
		made_memory_put(&m.made, RUBY_SCOPES + 0x40 - 16, 0, 8);
		made_memory_put(&m.made, RUBY_SCOPES + 0x40, 0x22220001, 8);
		ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
		assert_int_equal(f.n, DEPTH);
		assert_string_equal(f.v[1].function, "rescue in save");
		m.made.thread.regs.fs_base++;
		f.n = 0;
		ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
		assert_int_equal(f.n, 0);
		vec_fini(&f);
		ruby_memory_fini(&m);
	}
}

/* What is no iseq has no frame; a name that cannot be read, or that is another ID's, is none; of a
 * singleton class the name is that of its class. */
static void test_hostile(void **state)
{
	runtime_frame_vec f = { 0 };
	struct ruby_memory m;

	make(&m, 3, 1);
	made_memory_put(&m.made, RUBY_BODY + 80, 0x7fffffff0000, 8);
	made_memory_put(&m.made, RUBY_UNIT_ITEMS + PUTS_NUMBER * 16 + 8, (PUTS_ID + 16) << 8 | 0x0c,
			8);
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, DEPTH);
	assert_null(f.v[0].function);
	assert_null(f.v[1].function);
	ruby_memory_fini(&m);
	f.n = 0;
	make(&m, 3, 1);
	made_memory_put(&m.made, RUBY_ISEQ, RUBY_STRING, 8);
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert_int_equal(f.n, 1);
	assert_null(f.v[0].file);
	ruby_memory_fini(&m);
	f.n = 0;
	make(&m, 3, 1);
	made_memory_put(&m.made, RUBY_EXTRA + 0x80 + 16, RUBY_STRING_OBJECT, 8);
	made_memory_put(&m.made, RUBY_STRING_OBJECT + 8, RUBY_OWNER, 8);
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert_string_equal(f.v[0].function, "String.puts");
	ruby_memory_fini(&m);
	vec_fini(&f);
}

/* Entries begin at words 0 and 4, 60 and 64 + 54: the second part has a block of 512 bits. */
static void test_lines(void **state)
{
	uint64_t t[16] = { 0 };
	const uint8_t *b = (const uint8_t *)t;

	for (uint32_t i = 0; i < 54; i++)
		t[i / 9] |= (uint64_t)(i < 4 ? 1 : 2) << i % 9 * 7;
	t[6] = 2; /* before the block */
	t[7] = 1; /* before its second word; two before the others */
	for (uint32_t i = 1; i < 7; i++)
		t[7] |= 2ull << i * 9;
	t[8] = 1ull << (60 - 54); /* bits of its first word */
	t[9] = 1;                 /* word 118 */
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 0), 1);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 3), 1);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 4), 2);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 53), 2);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 59), 2);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 60), 3);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 117), 3);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 118), 4);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 54 + 511), 4);
	assert_int_equal(ruby_lines_rank(b, sizeof(t), 54 + 512), 0);
	assert_int_equal(ruby_lines_rank(b, 8, 9), 0);
	assert_int_equal(ruby_lines_rank(b, 48, 60), 0);
}

/* --- as programs walk them --- */

static struct language_made made;

static u32 walk(struct ruby_memory *m, u32 native)
{
	struct wire_language l;

	m->ruby.runtime.type = &runtime_ruby;
	ruby_wire(&m->ruby.runtime, &l);
	return language_made_walk(&made, &m->made, &l, native);
}

/* The function of a word, by what was asked for. */
static struct runtime_frame described(struct ruby_memory *m, u64 word)
{
	struct runtime_frame f = { 0 };

	for (u32 i = 0; i < made.nasks; i++) {
		const struct wire_unwind_ask *a = &made.asks[i];
		const void *met;

		if (a->id != WIRE_LANGUAGE_ID(word))
			continue;
		met = ruby_learn(&m->ruby.runtime, a->code, a->entry, a->id);
		if (met)
			ruby_describe(&m->ruby.runtime, met, WIRE_LANGUAGE_AT(word), 0, &f);
	}
	return f;
}

static void test_walk(void **state)
{
	const uint64_t *pc = made.walk.stack.pc;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct runtime_frame f;
		struct ruby_memory m;

		make(&m, versions[i][0], versions[i][1]);
		assert_int_equal(walk(&m, 2), 2 + DEPTH);
		assert_int_equal(made.nasks, 2); /* the two frames of the method have one code */
		for (u32 k = 2; k < 2 + DEPTH; k++)
			assert_true(pc[k] & WIRE_LANGUAGE_FRAME);
		f = described(&m, pc[2]);
		assert_string_equal(f.function, "Order#puts");
		assert_null(f.file); /* it is where it was called */
		f = described(&m, pc[3]);
		assert_frame(&f, "rescue in Order#save", 41);
		f = described(&m, pc[4]);
		assert_frame(&f, "rescue in Order#save", 40);
		assert_false(pc[3] & WIRE_LANGUAGE_ENTRY);
		assert_true(pc[4] & WIRE_LANGUAGE_ENTRY);
		ruby_memory_fini(&m);
	}
}

/* The frames end where there is no room, and where the stack of frames does. */
static void test_walk_room(void **state)
{
	struct ruby_memory m;

	make(&m, 3, 1);
	assert_int_equal(walk(&m, WIRE_STACK_FRAMES - 1), WIRE_STACK_FRAMES);
	assert_int_equal(walk(&m, WIRE_STACK_FRAMES), WIRE_STACK_FRAMES);
	made_memory_put(&m.made, RUBY_CONTEXT + 8, 2 * m.ruby.layout.frame_size / 8, 8);
	assert_int_equal(walk(&m, 0), 1);
	made_memory_put(&m.made, RUBY_CONTEXT + 8, ~0ull, 8);
	assert_int_equal(walk(&m, 0), 0);
	ruby_memory_fini(&m);
}

/* Lists and scopes that lead back to themselves end; the name of what has changed is not learnt. */
static void test_walk_hostile(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct ruby_memory m;
		u32 n;

		make(&m, versions[i][0], versions[i][1]);
		made_memory_put(&m.made, RUBY_SCOPES + 0x40 - 8, RUBY_SCOPES + 0x40, 8);
		made_memory_put(&m.made, RUBY_SCOPES + 0x40 - 16, 0, 8);
		made_memory_put(&m.made, RUBY_SCOPES + 0x40, 0x22220001, 8);
		n = walk(&m, 0);
		assert_int_equal(n, 1); /* the second frame's scope never ends */
		assert_true(made.reads < 20000);
		made_memory_put(&m.made, RUBY_THREAD, RUBY_THREAD, 8);
		made_memory_put(&m.made, RUBY_RACTOR + m.ruby.layout.ractor_node,
				RUBY_RACTOR + m.ruby.layout.ractor_node, 8);
		m.made.thread.regs.fs_base++;
		assert_int_equal(walk(&m, 0), 0);
		assert_true(made.reads < 20000);
		ruby_memory_fini(&m);

		make(&m, versions[i][0], versions[i][1]);
		assert_int_equal(walk(&m, 0), DEPTH);
		made_memory_put(&m.made, RUBY_ENTRY + 32, RUBY_STRING_OBJECT, 8);
		made_memory_put(&m.made, RUBY_C_DEFINITION + 32, PUTS_ID, 8);
		assert_null(described(&m, made.walk.stack.pc[1]).function);
		assert_string_equal(described(&m, made.walk.stack.pc[0]).function, "Order#puts");
		made_memory_put(&m.made, RUBY_C_ENTRY, RUBY_STRING, 8);
		assert_null(described(&m, made.walk.stack.pc[0]).function);
		ruby_memory_fini(&m);
	}
}

/* Memory with compiled code, in the lines of /proc/PID/maps. */
static void test_compiled(void **state)
{
	static const struct {
		const char *maps;
		bool compiled;
	} cases[] = {
		{ "7f0000000000-7f0010000000 r-xp 00000000 00:00 0\n", true },
		{ "7f0000000000-7f0000004000 r-xp 00000000 00:00 0\n"
		  "7f0000004000-7f0004000000 ---p 00000000 00:00 0\n",
		  true },
		/* libffi's page, below a thread's memory that is not used yet */
		{ "7f0000000000-7f0000001000 rwxp 00000000 00:00 0\n"
		  "7f0000001000-7f0000021000 rw-p 00000000 00:00 0\n"
		  "7f0000021000-7f0004001000 ---p 00000000 00:00 0\n",
		  false },
		/* below a thread's guard page */
		{ "7f0000000000-7f0000001000 r-xp 00000000 00:00 0\n"
		  "7f0000001000-7f0000002000 ---p 00000000 00:00 0\n",
		  false },
		{ "7f0000000000-7f0010000000 r-xp 00000000 08:01 77 /usr/lib/libruby.so\n", false },
		{ "", false },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mappings maps;

		mappings_parse(xstrdup(cases[i].maps), strlen(cases[i].maps), &maps);
		assert_int_equal(ruby_compiled_in(&maps), cases[i].compiled);
		mappings_free(&maps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_glibc_tags),
		cmocka_unit_test(test_frame_before_tag),
		cmocka_unit_test(test_other_threads),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_room),
		cmocka_unit_test(test_walk_hostile),
		cmocka_unit_test(test_compiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
