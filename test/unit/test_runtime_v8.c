/* Frames of JavaScript in memory that is made up: sound, looping, cut off. Real: sh/stack_node. */
#include "unit.h"

#include "javascript_walk.h"

enum { CONTEXT = V8_SFI + 1, FP = V8_STACK + 0x100, CALLER = 0x400000, OPCODE = 10, TURBOFAN = 12 };

static const char source[] = "one\ntwo\nthree\nfour";
/* Three bytecodes of two bytes, in a line each. */
static const uint8_t bytecodes[] = { OPCODE, 0, OPCODE, 0, OPCODE, 0 };
static const uint8_t positions[] = { 2, 4, 4, 16, 4, 16 };
/* The same with the function's entry, in line 4. */
static const uint8_t entry_positions[] = { 0, 60, 2, 55, 4, 16, 4, 16 };
static const uint8_t places[] = { 0x10, 8, 8, 8 };

/* Two frames, the inner one inlined; then the same text again, which is only repeated. */
static const uint8_t translations[] = { 14, 0, 4, 4, 0, 4, 0,  0,  0, 0, 0,     39,
					1,  1, 0, 2, 0, 0, 14, 18, 4, 4, 45 + 3 };

/* The same with a frame of arguments that the inlined function does not take, between them. */
static const uint8_t extra_arguments[] = { 14, 0, 6,  4, 0, 4, 0, 0, 0, 0, 0,
					   39, 1, 10, 0, 2, 2, 1, 0, 2, 0, 0 };

static void word(struct v8_memory *m, uint64_t addr, uint64_t v)
{
	made_memory_put(&m->made, addr, v, 8);
}

static uint64_t small(int32_t n)
{
	return (uint64_t)(uint32_t)n << 32;
}

static void make_function(struct v8_memory *m, uint64_t shared)
{
	v8_memory_object(m, shared, V8_SHARED);
	word(m, shared + 8, V8_CODES + 1);
	word(m, shared + 24, V8_NAME + 1);
	word(m, shared + 40, V8_A_SCRIPT + 1);
}

static void make_code(struct v8_memory *m, uint32_t kind)
{
	v8_memory_object(m, V8_INSTRUCTIONS - 32, V8_STREAM);
	word(m, V8_INSTRUCTIONS - 24, V8_A_CODE + 1);
	v8_memory_object(m, V8_A_CODE, V8_CODE);
	word(m, V8_A_CODE + 8, V8_DEOPT + 1);
	word(m, V8_A_CODE + 16, V8_PLACES + 1);
	word(m, V8_A_CODE + 40, V8_INSTRUCTIONS);
	made_memory_put(&m->made, V8_A_CODE + 52, kind, 4);
	made_memory_put(&m->made, V8_A_CODE + 56, V8_SIZE, 4);
}

static void make_optimized(struct v8_memory *m)
{
	static const uint8_t table[] = { 9, 0,    0, 0, 2, 0, 0,    0, 0xa1, 4, 0,
					 0, 0x20, 0, 1, 0, 0, 0x40, 0, 2,    0, 0 };
	uint64_t data[18] = { V8_TRANSLATIONS + 1, 0, 0, V8_LITERALS + 1 };
	uint64_t literals[] = { V8_SFI + 1, V8_SFI_INLINED + 3 };

	make_code(m, TURBOFAN);
	made_memory_bytes(&m->made, V8_INSTRUCTIONS + V8_SIZE, table, sizeof(table));
	data[13] = small(0);
	data[16] = small(18);
	v8_memory_array(m, V8_DEOPT, data, 18, 8);
	v8_memory_array(m, V8_LITERALS, literals, 2, 8);
	v8_memory_array(m, V8_TRANSLATIONS, translations, sizeof(translations), 1);
}

static void make(struct v8_memory *m)
{
	v8_memory_init(m);
	m->made.n = V8_BYTES;
	for (uint32_t t = V8_MAP; t <= V8_DEBUG; t++) {
		v8_memory_object(m, V8_MAPS + 0x40ull * t, V8_MAP);
		made_memory_put(&m->made, V8_MAPS + 0x40ull * t + 12, t, 2);
	}
	m->made.bytes[V8_SIZES - V8_BASE + OPCODE] = 2;
	v8_memory_string(m, V8_NAME, "work");
	v8_memory_string(m, V8_FILE, "file:///app/x.js");
	v8_memory_string(m, V8_SOURCE, source);
	v8_memory_object(m, V8_A_SCRIPT, V8_SCRIPT);
	word(m, V8_A_SCRIPT + 8, V8_SOURCE + 1);
	word(m, V8_A_SCRIPT + 16, V8_FILE + 1);
	v8_memory_object(m, V8_CODES, V8_BYTECODES);
	word(m, V8_CODES + 8, small(sizeof(bytecodes)));
	word(m, V8_CODES + 24, V8_POSITIONS + 1);
	made_memory_bytes(&m->made, V8_CODES + 64, bytecodes, sizeof(bytecodes));
	v8_memory_array(m, V8_POSITIONS, positions, sizeof(positions), 1);
	v8_memory_array(m, V8_PLACES, places, sizeof(places), 1);
	make_function(m, V8_SFI);
	make_function(m, V8_SFI_INLINED);
	/* a ScopeInfo without locals: the function's name is behind its five numbers */
	v8_memory_object(m, V8_SCOPE_INFO, V8_SCOPE);
	word(m, V8_SCOPE_INFO + 8, 1 << 12);
	word(m, V8_SCOPE_INFO + 48, V8_NAME + 1);
	v8_memory_object(m, V8_JS_FUNCTION, V8_FUNCTION);
	word(m, V8_JS_FUNCTION + 32, V8_SFI + 1);
	word(m, FP, FP + 0x100);
	word(m, FP + 8, CALLER);
	word(m, FP - 8, CONTEXT);
	word(m, FP - 16, V8_JS_FUNCTION + 1);
	word(m, FP - 32, V8_CODES + 1);
	word(m, FP - 40, small(64 - 1 + 2));
}

static struct unwind_cursor at(uint64_t pc, bool called)
{
	return (struct unwind_cursor){
		.pc = pc, .sp = V8_STACK + 0x80, .bp = FP, .called = called, .first = !called
	};
}

/* Steps from a frame, and checks its innermost function and line. */
static void check_step(struct v8_memory *m, struct unwind_cursor c, const char *function,
		       uint32_t line, uint32_t n)
{
	runtime_frame_vec f = { 0 };

	assert_true(v8_step(&m->v8.runtime, &m->made.thread, &c, &f));
	assert_int_equal(f.n, n);
	if (n) {
		assert_string_equal(f.v[0].function, function);
		assert_int_equal(f.v[0].line, line);
		assert_true(f.v[n - 1].entry && f.v[n - 1].anchor == V8_STACK + 0x80);
	}
	vec_fini(&f);
}

static void test_interpreted(void **state)
{
	struct unwind_cursor c = at(V8_BUILTINS + 0x10, true);
	runtime_frame_vec f = { 0 };
	struct v8_memory m;

	make(&m);
	assert_true(v8_step(&m.v8.runtime, &m.made.thread, &c, &f));
	assert_int_equal(f.n, 1);
	assert_string_equal(f.v[0].function, "work");
	assert_string_equal(f.v[0].file, "/app/x.js");
	assert_int_equal(f.v[0].line, 2);
	assert_true(c.pc == CALLER && c.sp == FP + 16 && c.bp == FP + 0x100);
	assert_false(v8_step(&m.v8.runtime, &m.made.thread, &c, &f));
	vec_fini(&f);
	v8_memory_fini(&m);
}

/* In the code of a bytecode the registers have its place, if that bytecode has this code. */
static void test_handler(void **state)
{
	const struct unwind_cursor c = at(V8_BUILTINS + 0x110, false);
	struct v8_memory m;

	make(&m);
	for (uint32_t i = 0; i < m.v8.version->opcodes; i++)
		word(&m, V8_TABLE + i * 8ull, V8_BUILTINS + 0x200);
	word(&m, V8_TABLE + OPCODE * 8, V8_BUILTINS + 0x100);
	m.made.thread.regs.r12 = V8_CODES + 1;
	m.made.thread.regs.r9 = 64 - 1 + 4;
	m.made.thread.regs.r15 = V8_TABLE;
	check_step(&m, c, "work", 3, 1);
	word(&m, V8_TABLE + 8, V8_BUILTINS + 0x108);
	check_step(&m, c, "work", 0, 1);
	word(&m, V8_TABLE + 8, V8_BUILTINS + 0x200);
	m.made.thread.regs.r12 = V8_CODES + 9;
	check_step(&m, c, "work", 0, 1);
	v8_memory_fini(&m);
}

static void test_baseline(void **state)
{
	struct v8_memory m;

	make(&m);
	make_code(&m, V8_BASELINE);
	check_step(&m, at(V8_INSTRUCTIONS + 0x18, true), "work", 1, 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0x20, true), "work", 2, 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0x20, false), "work", 3, 1);
	v8_memory_fini(&m);
}

static void test_optimized(void **state)
{
	struct v8_memory m;

	make(&m);
	make_optimized(&m);
	check_step(&m, at(V8_INSTRUCTIONS + 0x20, true), "work", 1, 2);
	/* the second translation repeats the first one */
	check_step(&m, at(V8_INSTRUCTIONS + 0x40, true), "work", 1, 2);
	/* without a safepoint only the function is known */
	check_step(&m, at(V8_INSTRUCTIONS + 0x30, true), "work", 0, 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0xb0, false), "work", 0, 1);
	/* tables of another function are not believed */
	word(&m, V8_LITERALS + 16, V8_SFI_INLINED + 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0x20, true), "work", 0, 1);
	v8_memory_fini(&m);
	make(&m);
	make_optimized(&m);
	v8_memory_array(&m, V8_TRANSLATIONS, extra_arguments, sizeof(extra_arguments), 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0x20, true), "work", 1, 2);
	v8_memory_fini(&m);
}

static void test_names(void **state)
{
	static const uint8_t wide[] = {
		'a', 0, 0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde, 7, 0, 0x3d, 0xd8
	};
	struct v8_memory m;

	make(&m);
	word(&m, V8_SFI + 24, V8_SCOPE_INFO + 1);
	check_step(&m, at(V8_BUILTINS + 0x10, true), "work", 2, 1);
	/* a string that is made of others */
	v8_memory_object(&m, V8_SCOPE_INFO, V8_STRING_CONS);
	made_memory_put(&m.made, V8_SCOPE_INFO + 12, 4, 4);
	word(&m, V8_SCOPE_INFO + 16, V8_NAME + 1);
	word(&m, V8_SCOPE_INFO + 24, V8_DEOPT + 1);
	assert_string_equal(v8_text(&m.v8, V8_SCOPE_INFO + 1), "work");
	made_memory_put(&m.made, V8_DEOPT + 12, 1, 4);  /* not flat */
	assert_null(v8_text(&m.v8, V8_SCOPE_INFO + 1)); /* the second half is no string */
	word(&m, V8_SCOPE_INFO + 24, V8_NAME + 1);
	made_memory_put(&m.made, V8_SCOPE_INFO + 12, 8, 4);
	assert_string_equal(v8_text(&m.v8, V8_SCOPE_INFO + 1), "workwork");
	word(&m, V8_SCOPE_INFO + 16, V8_SCOPE_INFO + 1); /* its own half */
	assert_null(v8_text(&m.v8, V8_SCOPE_INFO + 1));
	v8_memory_object(&m, V8_SCOPE_INFO, V8_STRING_SLICED);
	word(&m, V8_SCOPE_INFO + 16, V8_NAME + 1);
	made_memory_put(&m.made, V8_SCOPE_INFO + 12, 2, 4);
	word(&m, V8_SCOPE_INFO + 24, small(1));
	assert_string_equal(v8_text(&m.v8, V8_SCOPE_INFO + 1), "or");
	word(&m, V8_SCOPE_INFO + 24, small(3)); /* goes over the end */
	assert_null(v8_text(&m.v8, V8_SCOPE_INFO + 1));
	v8_memory_object(&m, V8_SCOPE_INFO, V8_STRING_THIN);
	word(&m, V8_SCOPE_INFO + 16, V8_SCOPE_INFO + 1); /* itself */
	assert_null(v8_text(&m.v8, V8_SCOPE_INFO + 1));
	/* two bytes a character: a pair, a control character, half of a pair */
	v8_memory_object(&m, V8_DEOPT, V8_MAP - 1);
	made_memory_bytes(&m.made, V8_MAPS, m.made.bytes + 0x40, 0x40);
	made_memory_put(&m.made, V8_MAPS + 12, 0, 2);
	made_memory_put(&m.made, V8_DEOPT + 12, sizeof(wide) / 2, 4);
	made_memory_bytes(&m.made, V8_DEOPT + 16, wide, sizeof(wide));
	assert_string_equal(v8_text(&m.v8, V8_DEOPT + 1), "a\u20ac\U0001f600??");
	v8_memory_fini(&m);
}

/* Lines end at \n, \r, \r\n and the two characters of Unicode for it. */
static void test_lines(void **state)
{
	const struct v8_script *s;
	struct v8_memory m;

	make(&m);
	v8_memory_string(&m, V8_SOURCE, "a\rb\r\nc\n\nd");
	word(&m, V8_A_SCRIPT + 24, small(10)); /* its first line's number */
	s = v8_script(&m.v8, V8_A_SCRIPT + 1);
	assert_int_equal(v8_script_line(s, 0), 11);
	assert_int_equal(v8_script_line(s, 2), 12);
	assert_int_equal(v8_script_line(s, 5), 13);
	assert_int_equal(v8_script_line(s, 8), 15);
	assert_int_equal(v8_script_line(s, 9), 15);
	assert_int_equal(v8_script_line(s, 10), 0);
	v8_memory_fini(&m);
}

/* The beginning and the end of a function, at which rbp is its caller's. */
static void test_partial_frames(void **state)
{
	static const uint8_t code[] = { 0x90, 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57 };
	static const struct {
		uint32_t at;
		uint64_t pc, bp;
	} cases[] = { { 0, 1, FP },
		      { 1, 1, FP },
		      { 2, 2, 1 },
		      { 5, CALLER, FP + 0x100 },
		      { 6, CALLER, FP + 0x100 },
		      { 0xa0, 1, FP } };
	struct v8_memory m;

	make(&m);
	make_code(&m, TURBOFAN);
	made_memory_bytes(&m.made, V8_INSTRUCTIONS, code, sizeof(code));
	made_memory_put(&m.made, V8_INSTRUCTIONS + 0xa0, 0xc3, 1);
	m.made.thread.regs.rdi = V8_JS_FUNCTION + 1;
	word(&m, V8_STACK + 0x80, 1);
	word(&m, V8_STACK + 0x88, 2);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct unwind_cursor c = at(V8_INSTRUCTIONS + cases[i].at, false);
		runtime_frame_vec f = { 0 };

		assert_true(v8_step(&m.v8.runtime, &m.made.thread, &c, &f));
		assert_int_equal(c.pc, cases[i].pc);
		assert_int_equal(c.bp, cases[i].bp);
		assert_int_equal(f.n, cases[i].at < 7);
		if (f.n)
			assert_string_equal(f.v[0].function, "work");
		vec_fini(&f);
	}
	v8_memory_fini(&m);
}

/* Pointers to wrong objects give no name and no line, and loops end. */
static void test_hostile(void **state)
{
	struct unwind_cursor c = at(V8_BUILTINS + 0x10, true);
	runtime_frame_vec f = { 0 };
	struct v8_memory m;

	make(&m);
	word(&m, V8_SFI + 8, V8_DEOPT + 1); /* other bytecodes than the frame's */
	check_step(&m, c, "work", 0, 1);
	v8_memory_fini(&m);
	make(&m);
	word(&m, V8_MAPS + 0x40 * V8_SHARED, V8_SOURCE + 1); /* a Map that is none */
	check_step(&m, c, NULL, 0, 0);
	v8_memory_fini(&m);
	make(&m);
	word(&m, V8_JS_FUNCTION, V8_SFI); /* it was moved, to an object of another type */
	check_step(&m, c, NULL, 0, 0);
	word(&m, V8_JS_FUNCTION, V8_JS_FUNCTION); /* to itself */
	check_step(&m, c, NULL, 0, 0);
	v8_memory_fini(&m);
	make(&m);
	make_optimized(&m);
	m.made.bytes[V8_TRANSLATIONS - V8_BASE + 16 + 19] = 0; /* repeats what it does not have */
	check_step(&m, at(V8_INSTRUCTIONS + 0x40, true), "work", 0, 1);
	c.bp = FP + 4;
	assert_true(v8_step(&m.v8.runtime, &m.made.thread, &c, &f));
	assert_int_equal(c.sp, V8_STACK + 0x80);
	c.bp = V8_STACK;
	assert_true(v8_step(&m.v8.runtime, &m.made.thread, &c, &f));
	assert_int_equal(c.sp, V8_STACK + 0x80);
	vec_fini(&f);
	v8_memory_fini(&m);
}

/* --- the walk of programs --- */

static void check_word(struct v8_memory *m, struct machine_made *w, const char *function,
		       uint32_t line, uint32_t n)
{
	const struct wire_unwind_ask *a = &w->asks[0];
	struct runtime_frame f;
	const void *met;

	assert_int_equal(w->nasks, 1);
	assert_int_equal(a->id, WIRE_LANGUAGE_ID(w->frames[0]));
	met = v8_learn(&m->v8.runtime, a->code, a->entry, a->id);
	assert_non_null(met);
	assert_int_equal(v8_describe(&m->v8.runtime, met, WIRE_LANGUAGE_AT(w->frames[0]), 0, &f),
			 n);
	assert_string_equal(f.function, function);
	assert_string_equal(f.file, "/app/x.js");
	assert_int_equal(f.line, line);
	/* not with another id, nor when the object is another now */
	assert_null(v8_learn(&m->v8.runtime, a->code, a->entry, a->id ^ 1));
	assert_null(v8_learn(&m->v8.runtime, V8_NAME + 1, a->entry, a->id));
}

static uint32_t walk_at(struct v8_memory *m, struct machine_made *w, uint64_t pc, bool called)
{
	return js_made_walk(w, m, pc, V8_STACK + 0x80, FP, called, true);
}

static void make_numbered(struct v8_memory *m)
{
	make(m);
	word(m, V8_A_SCRIPT + 64, small(77));
	word(m, V8_SFI + 56, small(5));
	word(m, V8_SFI_INLINED + 56, small(6));
}

static void test_words(void **state)
{
	static struct machine_made w;
	struct v8_memory m;
	uint64_t before;

	make_numbered(&m);
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.state.pc == CALLER && w.state.sp == FP + 16 && w.state.bp == FP + 0x100);
	assert_int_equal(WIRE_LANGUAGE_AT(w.frames[0]), 2);
	check_word(&m, &w, "work", 2, 1);
	assert_true(w.reads < 20);
	before = w.frames[0];
	/* the word stays when the collector moves the function and the script */
	made_memory_bytes(&m.made, V8_SCOPE_INFO, m.made.bytes + (V8_A_SCRIPT - V8_BASE), 0x80);
	word(&m, V8_SFI + 40, V8_SCOPE_INFO + 1);
	made_memory_bytes(&m.made, V8_DEOPT, m.made.bytes + (V8_SFI - V8_BASE), 0x80);
	word(&m, V8_SFI, V8_DEOPT); /* still moving */
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] == before);
	/* a script of another thread has the same number */
	made_memory_put(&m.made, V8_SOURCE + 12, sizeof(source) - 2, 4);
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] != before);
	check_word(&m, &w, "work", 2, 1);
	made_memory_put(&m.made, V8_SOURCE + 12, sizeof(source) - 1, 4);
	/* another function has another word */
	word(&m, V8_DEOPT + 56, small(8));
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] != before);
	v8_memory_fini(&m);
}

/* The place in front of the first bytecode, in which V8 interrupts a function that begins. */
static void test_entry(void **state)
{
	static struct machine_made w;
	struct v8_memory m;

	make(&m);
	v8_memory_array(&m, V8_POSITIONS, entry_positions, sizeof(entry_positions), 1);
	check_step(&m, at(V8_BUILTINS + 0x10, true), "work", 2, 1);
	word(&m, FP - 40, small(64 - 1 - 1));
	check_step(&m, at(V8_BUILTINS + 0x10, true), "work", 4, 1);
	word(&m, FP - 40, small(64 - 1 - 2)); /* no place */
	check_step(&m, at(V8_BUILTINS + 0x10, true), "work", 0, 1);
	make_code(&m, V8_BASELINE);
	check_step(&m, at(V8_INSTRUCTIONS + 0x10, true), "work", 4, 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0x18, true), "work", 1, 1);
	v8_memory_fini(&m);

	make_numbered(&m);
	v8_memory_array(&m, V8_POSITIONS, entry_positions, sizeof(entry_positions), 1);
	word(&m, FP - 40, small(64 - 1 - 1));
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_int_equal(WIRE_LANGUAGE_AT(w.frames[0]), WIRE_V8_ENTRY);
	check_word(&m, &w, "work", 4, 1);
	v8_memory_fini(&m);
}

static void test_compiled_words(void **state)
{
	static struct machine_made w;
	struct v8_memory m;
	uint64_t before;

	make_numbered(&m);
	make_code(&m, V8_BASELINE);
	word(&m, V8_A_CODE + 8, V8_CODES + 1);
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	check_word(&m, &w, "work", 2, 1);
	before = w.frames[0];
	/* baseline code of another function has no line */
	word(&m, V8_A_CODE + 8, V8_PLACES + 1);
	check_word(&m, &w, "work", 0, 1);
	/* other instructions are another place */
	made_memory_put(&m.made, V8_INSTRUCTIONS + 0x1c, 7, 1);
	assert_null(v8_learn(&m.v8.runtime, w.asks[0].code, w.asks[0].entry, w.asks[0].id));
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	assert_true(w.frames[0] != before);
	make_optimized(&m);
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	check_word(&m, &w, "work", 1, 2);
	v8_memory_fini(&m);

	/* tables that are being moved are tried again, but not for ever */
	make_numbered(&m);
	make_optimized(&m);
	word(&m, V8_LITERALS + 16, V8_NAME + 1);
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	assert_null(v8_learn(&m.v8.runtime, w.asks[0].code, w.asks[0].entry, w.asks[0].id));
	assert_null(v8_learn(&m.v8.runtime, w.asks[0].code, w.asks[0].entry, w.asks[0].id));
	word(&m, V8_LITERALS + 16, V8_SFI + 1);
	check_word(&m, &w, "work", 1, 2);
	word(&m, V8_LITERALS + 16, V8_NAME + 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_null(v8_learn(&m.v8.runtime, w.asks[0].code, w.asks[0].entry, w.asks[0].id));
	check_word(&m, &w, "work", 0, 1);
	/* a call without tables has only its function */
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x30, true), 1);
	check_word(&m, &w, "work", 0, 1);
	v8_memory_fini(&m);
}

static uint32_t walk_unlisted(struct v8_memory *m, struct machine_made *w, uint64_t pc, bool called)
{
	return js_made_walk(w, m, pc, V8_STACK + 0x80, FP, called, false);
}

/* Code in no mapping that is known: the frame shows whether it is of the interpreter, of baseline
 * code, or of built-in code without a function. */
static void test_unlisted_words(void **state)
{
	static struct machine_made w;
	struct v8_memory m;
	uint64_t listed;

	make_numbered(&m);
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	listed = w.frames[0];
	assert_int_equal(walk_unlisted(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] == listed && w.asks[0].entry == 0);
	check_word(&m, &w, "work", 2, 1);
	/* a construct stub's frame */
	word(&m, FP - 8, 2 * 15);
	word(&m, FP - 16, 0);
	assert_int_equal(walk_unlisted(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] == WIRE_LANGUAGE_HIDDEN && w.state.pc == CALLER && !w.state.guess);
	/* no kind of frame */
	word(&m, FP - 8, 2 * WIRE_V8_FRAME_KINDS + 2);
	assert_int_equal(walk_unlisted(&m, &w, V8_BUILTINS + 0x10, true), 0);
	word(&m, FP - 8, 0);
	assert_int_equal(walk_unlisted(&m, &w, V8_BUILTINS + 0x10, true), 0);
	v8_memory_fini(&m);

	make_numbered(&m);
	make_code(&m, V8_BASELINE);
	word(&m, V8_A_CODE + 8, V8_CODES + 1);
	word(&m, FP - 40, V8_PLACES + 1);
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	listed = w.frames[0];
	assert_int_equal(walk_unlisted(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	assert_true(w.frames[0] == listed && w.asks[0].entry != 0);
	v8_memory_fini(&m);
}

/* The innermost frame: in a handler, half built, and in built-in code without a function. */
static void test_innermost_words(void **state)
{
	static const uint8_t code[] = { 0x90, 0x55, 0x48, 0x89, 0xe5, 0x56, 0x57 };
	static const struct {
		uint32_t at;
		uint64_t pc, bp;
	} cases[] = { { 0, V8_BUILTINS + 0x10, FP },
		      { 1, V8_BUILTINS + 0x10, FP },
		      { 2, V8_BUILTINS + 0x20, V8_BUILTINS + 0x10 },
		      { 5, CALLER, FP + 0x100 },
		      { 6, CALLER, FP + 0x100 } };
	static struct machine_made w;
	struct v8_memory m;

	make_numbered(&m);
	for (uint32_t i = 0; i < 256; i++)
		word(&m, V8_TABLE + i * 8ull, V8_BUILTINS + 0x200);
	word(&m, V8_TABLE + OPCODE * 8, V8_BUILTINS + 0x100);
	m.made.thread.regs.r12 = V8_CODES + 1;
	m.made.thread.regs.r9 = 64 - 1 + 4;
	m.made.thread.regs.r15 = V8_TABLE;
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x110, false), 1);
	assert_int_equal(WIRE_LANGUAGE_AT(w.frames[0]), 4);
	word(&m, V8_TABLE + 200 * 8, V8_BUILTINS + 0x108);
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x110, false), 1);
	assert_int_equal(WIRE_LANGUAGE_AT(w.frames[0]), WIRE_LANGUAGE_BEFORE);
	/* a frame of another kind, of built-in code */
	word(&m, FP - 8, 40);
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x110, false), 1);
	assert_true(w.frames[0] == WIRE_LANGUAGE_HIDDEN && !w.nasks);
	/* the same of other code is not V8's */
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x40, true), 0);
	word(&m, FP - 8, CONTEXT);
	made_memory_bytes(&m.made, V8_INSTRUCTIONS, code, sizeof(code));
	m.made.thread.regs.rdi = V8_JS_FUNCTION + 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		word(&m, V8_STACK + 0x80, V8_BUILTINS + 0x10);
		word(&m, V8_STACK + 0x88, V8_BUILTINS + 0x20);
		(void)js_made_walk(&w, &m, V8_INSTRUCTIONS + cases[i].at, V8_STACK + 0x80, FP,
				   false, true);
		assert_true(w.nasks >= 1 && w.asks[0].entry == 0);
		assert_int_equal(WIRE_LANGUAGE_ID(w.frames[0]), w.asks[0].id);
		assert_int_equal(WIRE_LANGUAGE_AT(w.frames[0]), WIRE_LANGUAGE_BEFORE);
		if (cases[i].pc == CALLER)
			assert_true(w.state.pc == CALLER && w.state.bp == cases[i].bp);
		else if (cases[i].bp == FP) /* then the caller's frame */
			assert_true(w.state.pc == CALLER && w.state.n == 2);
	}
	v8_memory_fini(&m);
}

/* Structures that are damaged give frames without words, and the walk ends. */
static void test_hostile_words(void **state)
{
	static struct machine_made w;
	struct v8_memory m;

	make_numbered(&m);
	word(&m, V8_MAPS + 0x40 * V8_SHARED, V8_SOURCE + 1); /* a Map that is none */
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] == WIRE_LANGUAGE_HIDDEN && !w.nasks);
	v8_memory_fini(&m);
	make_numbered(&m);
	word(&m, V8_JS_FUNCTION, V8_JS_FUNCTION); /* it was moved, to itself */
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_true(w.frames[0] == WIRE_LANGUAGE_HIDDEN && !w.nasks);
	v8_memory_fini(&m);
	make_numbered(&m);
	word(&m, FP + 8, V8_BUILTINS + 0x10);
	word(&m, FP, FP); /* a loop */
	assert_true(walk_at(&m, &w, V8_BUILTINS + 0x10, true) <= 2);
	assert_int_equal(
		js_made_walk(&w, &m, V8_BUILTINS + 0x10, V8_STACK + 0x80, FP + 4, true, true), 0);
	assert_int_equal(
		js_made_walk(&w, &m, V8_BUILTINS + 0x10, V8_STACK + 0x80, V8_STACK, true, true), 0);
	v8_memory_fini(&m);
	/* names of functions that are built in */
	make_numbered(&m);
	word(&m, V8_SFI + 40, 0);
	made_memory_put(&m.made, V8_NAME + 8, 0x1232, 4);
	assert_int_equal(walk_at(&m, &w, V8_BUILTINS + 0x10, true), 1);
	assert_int_equal(w.nasks, 1);
	assert_non_null(v8_learn(&m.v8.runtime, w.asks[0].code, 0, w.asks[0].id));
	made_memory_put(&m.made, V8_NAME + 8, 0x4232, 4);
	assert_null(v8_learn(&m.v8.runtime, w.asks[0].code, 0, w.asks[0].id));
	v8_memory_fini(&m);
}

/* --- names that only a function's object has --- */

enum {
	FUNCTION_MAP = V8_MAPS + 0x40 * V8_FUNCTION,
	PLAIN_DETAILS = 0,
	NAMED_ENTRY = V8_PROPERTIES + 24 + 24,
	INSIDE = 8, /* word of the function at which its own properties begin */
};

static void put_map(struct v8_memory *m, uint32_t bits)
{
	made_memory_put(&m->made, FUNCTION_MAP + 8, INSIDE + 1, 1);
	made_memory_put(&m->made, FUNCTION_MAP + 9, INSIDE, 1);
	made_memory_put(&m->made, FUNCTION_MAP + 16, bits, 4);
	word(m, FUNCTION_MAP + 40, V8_PROPERTIES + 1);
}

/* Makes the name of V8_JS_FUNCTION a property in the object, whose value is the string `own`. */
static void make_named(struct v8_memory *m, const char *own)
{
	make_numbered(m);
	v8_memory_string(m, V8_KEY, "name");
	v8_memory_string(m, V8_OWN, own);
	put_map(m, 2 << 10);
	word(m, NAMED_ENTRY, V8_KEY + 1);
	word(m, NAMED_ENTRY + 8, small(PLAIN_DETAILS));
	word(m, V8_JS_FUNCTION + INSIDE * 8, V8_OWN + 1);
}

/* A step and a walk say this name. Returns the walk's word. */
static uint64_t check_name(struct v8_memory *m, const char *name)
{
	static struct machine_made w;

	v8_pass(&m->v8);
	check_step(m, at(V8_BUILTINS + 0x10, true), name, 2, 1);
	assert_int_equal(walk_at(m, &w, V8_BUILTINS + 0x10, true), 1);
	check_word(m, &w, name, 2, 1);
	assert_true(w.reads < 60);
	return w.frames[0];
}

/* Two functions with the same source have their own names, and a word each, wherever the collector
 * moves them. */
static void test_own_names(void **state)
{
	struct v8_memory m;
	uint64_t first;

	make_named(&m, "[first]");
	first = check_name(&m, "[first]");
	v8_memory_string(&m, V8_OWN + 0x40, "[first]");
	word(&m, V8_JS_FUNCTION + INSIDE * 8, V8_OWN + 0x40 + 1);
	assert_true(check_name(&m, "[first]") == first);
	v8_memory_string(&m, V8_OWN, "[other]");
	word(&m, V8_JS_FUNCTION + INSIDE * 8, V8_OWN + 1);
	assert_true(check_name(&m, "[other]") != first);
	/* V8 has made the hash */
	made_memory_put(&m.made, V8_OWN + 8, 0x1232, 4);
	assert_true(check_name(&m, "[other]") != first);
	/* the function that gives the name in the source; no descriptor of the name */
	word(&m, NAMED_ENTRY + 8, small(1));
	assert_true(check_name(&m, "work") != first);
	put_map(&m, 1 << 10);
	check_name(&m, "work");
	/* no string; another property */
	word(&m, NAMED_ENTRY + 8, small(PLAIN_DETAILS));
	put_map(&m, 2 << 10);
	word(&m, V8_JS_FUNCTION + INSIDE * 8, V8_SFI + 1);
	check_name(&m, "work");
	word(&m, V8_JS_FUNCTION + INSIDE * 8, V8_OWN + 1);
	check_name(&m, "[other]");
	word(&m, NAMED_ENTRY, V8_NAME + 1);
	check_name(&m, "work");
	v8_memory_fini(&m);
}

/* The property lies in the descriptor, in an array, or in a dictionary. */
static void test_places_of_names(void **state)
{
	const uint64_t array[] = { 0, V8_OWN + 1 };
	const uint64_t dictionary[] = { 0,           0, 0,          0,          0, V8_NAME + 1,
					V8_FILE + 1, 0, V8_KEY + 1, V8_OWN + 1, 0 };
	struct v8_memory m;
	uint64_t word_before;

	make_named(&m, "[key]");
	word_before = check_name(&m, "[key]");
	word(&m, NAMED_ENTRY + 8, small(1 << 5));
	word(&m, NAMED_ENTRY + 16, V8_OWN + 1);
	word(&m, V8_JS_FUNCTION + INSIDE * 8, V8_FILE + 1);
	assert_true(check_name(&m, "[key]") == word_before);
	word(&m, NAMED_ENTRY + 8, small(2 << 19));
	v8_memory_array(&m, V8_DEOPT, array, 2, 8);
	word(&m, V8_JS_FUNCTION + 8, V8_DEOPT + 1);
	assert_true(check_name(&m, "[key]") == word_before);
	put_map(&m, 1 << 21);
	v8_memory_array(&m, V8_DEOPT, dictionary, ARRAY_SIZE(dictionary), 8);
	assert_true(check_name(&m, "[key]") == word_before);
	/* the entry is behind the end */
	word(&m, V8_DEOPT + 8, small(ARRAY_SIZE(dictionary) - 1));
	check_name(&m, "work");
	word(&m, V8_DEOPT + 8, small(-1)); /* a dictionary without end has none behind the limit */
	word(&m, V8_DEOPT + 16 + 8 * 8, V8_FILE + 1);
	check_name(&m, "work");
	v8_memory_fini(&m);
}

static void make_cons(struct v8_memory *m, uint64_t addr, uint32_t length, uint64_t first,
		      uint64_t second)
{
	v8_memory_object(m, addr, V8_STRING_CONS);
	made_memory_put(&m->made, addr + 12, length, 4);
	word(m, addr + 16, first + 1);
	word(m, addr + 24, second + 1);
}

/* A name that V8 has put together of pieces. */
static void test_names_of_pieces(void **state)
{
	enum { GET = V8_OWN, SYMBOL = V8_OWN + 0x40, HALF = V8_OWN + 0x80, ALL = V8_OWN + 0xc0 };
	struct v8_memory m;
	uint64_t before;

	make_named(&m, "get ");
	v8_memory_string(&m, SYMBOL, "[symbol]");
	make_cons(&m, HALF, 12, SYMBOL, GET);
	make_cons(&m, ALL, 16, GET, HALF);
	word(&m, V8_JS_FUNCTION + INSIDE * 8, ALL + 1);
	before = check_name(&m, "get [symbol]get ");
	v8_memory_string(&m, SYMBOL, "[simple]");
	assert_true(check_name(&m, "get [simple]get ") != before);
	/* a tree that is too deep, and one that is its own half: the name in the source */
	make_cons(&m, HALF, 12, SYMBOL, ALL);
	check_name(&m, "work");
	make_cons(&m, HALF, 12, HALF, SYMBOL);
	check_name(&m, "work");
	v8_memory_object(&m, ALL, V8_STRING_SLICED);
	check_name(&m, "work");
	v8_memory_fini(&m);
}

/* Optimized code was made for the object of an inlined function. */
static void test_inlined_names(void **state)
{
	static const uint8_t literal[] = { 14, 0,  4, 4, 0, 4, 0, 0, 0,  0,
					   0,  39, 1, 1, 0, 2, 0, 0, 38, 4 };
	const uint64_t literals[] = { V8_SFI + 1, V8_SFI_INLINED + 3, V8_JS_INLINED + 3 };
	static struct machine_made w;
	struct v8_memory m;
	struct runtime_frame f;
	const void *met;

	make_named(&m, "[key]");
	make_optimized(&m);
	v8_memory_array(&m, V8_TRANSLATIONS, literal, sizeof(literal), 1);
	v8_memory_array(&m, V8_LITERALS, literals, 3, 8);
	made_memory_bytes(&m.made, V8_JS_INLINED, m.made.bytes + (V8_JS_FUNCTION - V8_BASE), 0x80);
	word(&m, V8_JS_INLINED + 32, V8_SFI_INLINED + 1);
	v8_memory_string(&m, V8_OWN + 0x40, "[inlined]");
	word(&m, V8_JS_INLINED + INSIDE * 8, V8_OWN + 0x40 + 1);
	check_step(&m, at(V8_INSTRUCTIONS + 0x20, true), "[inlined]", 1, 2);
	assert_int_equal(walk_at(&m, &w, V8_INSTRUCTIONS + 0x20, true), 1);
	check_word(&m, &w, "[inlined]", 1, 2);
	met = v8_learn(&m.v8.runtime, w.asks[0].code, w.asks[0].entry, w.asks[0].id);
	v8_describe(&m.v8.runtime, met, 0, 1, &f);
	assert_string_equal(f.function, "[key]");
	/* the object of another function, or none */
	word(&m, V8_JS_INLINED + 32, V8_SFI + 1);
	check_word(&m, &w, "work", 1, 2);
	word(&m, V8_LITERALS + 32, small(1));
	check_word(&m, &w, "work", 1, 2);
	v8_memory_fini(&m);
}

/* Functions for the values of a class's members, which have the name of the class. */
static void test_initializers(void **state)
{
	struct v8_memory m;

	make_numbered(&m);
	made_memory_put(&m.made, V8_SFI + 56, 0x120 + 24, 4);
	check_name(&m, "<instance_members_initializer>");
	v8_memory_fini(&m);
	make_numbered(&m);
	made_memory_put(&m.made, V8_SFI + 56, 0x120 + 25, 4);
	check_name(&m, "<static_initializer>");
	v8_memory_fini(&m);
}

static void test_versions(void **state)
{
	assert_non_null(v8_version_find(10, 2));
	assert_null(v8_version_find(10, 3));
	assert_null(v8_version_find(-1, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpreted),     cmocka_unit_test(test_handler),
		cmocka_unit_test(test_baseline),        cmocka_unit_test(test_optimized),
		cmocka_unit_test(test_names),           cmocka_unit_test(test_lines),
		cmocka_unit_test(test_partial_frames),  cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_words),           cmocka_unit_test(test_compiled_words),
		cmocka_unit_test(test_unlisted_words),  cmocka_unit_test(test_innermost_words),
		cmocka_unit_test(test_hostile_words),   cmocka_unit_test(test_versions),
		cmocka_unit_test(test_entry),           cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_places_of_names), cmocka_unit_test(test_names_of_pieces),
		cmocka_unit_test(test_inlined_names),   cmocka_unit_test(test_initializers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
