/* Frames of Java in memory that is made up: sound, looping, cut off. Real JVMs: sh/stack_java. */
#include "unit.h"

#include "java_walk.h"

enum {
	INTERPRETER = JVM_CODE,
	COMPILED = JVM_CODE + JVM_PIECE,
	STUBS = JVM_CODE + 2 * JVM_PIECE,
	RETURN_IN_COMPILED = COMPILED + 8 + JVM_CODE_OFFSET + 0x40,
	RETURN_IN_STUBS = STUBS + 8 + JVM_CODE_OFFSET + 0x10,
	IN_INTERPRETER = INTERPRETER + 8 + JVM_CODE_OFFSET + 0x20,
	BYTECODES = JVM_CONST + 56,
	FRAME_WORDS = 4,
};

static void put_symbol(struct jvm_memory *m, uint64_t at, const char *s)
{
	made_memory_put(&m->made, at + 4, strlen(s), 2);
	jvm_memory_text(m, at + 6, s);
}

/* Ten bytecodes; from 0 on of line 40, from 4 on of 42. */
static void put_method(struct jvm_memory *m)
{
	const struct jvm_layout *l = &m->jvm.layout;

	jvm_memory_member(m, JVM_METHOD, l->method_const, JVM_CONST);
	jvm_memory_member(m, JVM_INLINED, l->method_const, JVM_CONST);
	jvm_memory_member(m, JVM_CONST, l->const_constants, JVM_CONSTANTS);
	jvm_memory_member(m, JVM_CONST, l->const_words, 12);
	jvm_memory_member(m, JVM_CONST, l->const_flags, 1);
	jvm_memory_member(m, JVM_CONST, l->const_code_size, 10);
	jvm_memory_member(m, JVM_CONST, l->const_name, 1);
	jvm_memory_text(m, BYTECODES + 10, "\xff\x01\x51\x22");
	jvm_memory_member(m, JVM_CONSTANTS, l->constants_class, JVM_CLASS);
	jvm_memory_member(m, JVM_CONSTANTS, l->constants_length, 3);
	jvm_memory_member(m, JVM_CONSTANTS, l->constants_file, 2);
	made_memory_put(&m->made, JVM_CONSTANTS + 72 + 8, JVM_SYMBOLS + 0x100, 8);
	made_memory_put(&m->made, JVM_CONSTANTS + 72 + 16, JVM_SYMBOLS + 0x200, 8);
	jvm_memory_member(m, JVM_CLASS, l->class_constants, JVM_CONSTANTS);
	jvm_memory_member(m, JVM_CLASS, l->class_name, JVM_SYMBOLS);
	put_symbol(m, JVM_SYMBOLS, "shop/Order$$Lambda+0x0000000097044000");
	put_symbol(m, JVM_SYMBOLS + 0x100, "save");
	put_symbol(m, JVM_SYMBOLS + 0x200, "Order.java");
}

static void put_piece(struct jvm_memory *m, uint32_t i, const char *name, uint32_t frame_words)
{
	const struct jvm_layout *l = &m->jvm.layout;
	uint64_t block = JVM_CODE + i * JVM_PIECE, blob = block + 8;

	made_memory_put(&m->made, block + 4, 1, 1);
	for (uint32_t k = 0; k < JVM_PIECE >> JVM_SHIFT; k++)
		made_memory_put(&m->made, JVM_SEGMENTS + i * (JVM_PIECE >> JVM_SHIFT) + k, k, 1);
	jvm_memory_text(m, JVM_NAMES + i * 0x20, name);
	jvm_memory_member(m, blob, l->blob_name, JVM_NAMES + i * 0x20);
	jvm_memory_member(m, blob, l->blob_size, JVM_PIECE - 8);
	jvm_memory_member(m, blob, l->blob_code_offset, JVM_CODE_OFFSET);
	jvm_memory_member(m, blob, l->blob_frame_words, frame_words);
}

/* Two places: at 0x40 the function and one that is inlined; at 0x80 the function alone. */
static void put_compiled(struct jvm_memory *m)
{
	const struct jvm_layout *l = &m->jvm.layout;
	static const struct {
		uint32_t pc, scope;
	} pcs[] = { { UINT32_MAX, 0 }, { 0x40, 1 }, { 0x80, 4 }, { INT32_MAX, 0 } };
	uint64_t blob = COMPILED + 8;

	jvm_memory_member(m, blob, l->compiled_method, JVM_METHOD);
	jvm_memory_member(m, blob, l->compiled_immutable, JVM_IMMUTABLE);
	jvm_memory_member(m, blob, l->compiled_immutable_size, sizeof(pcs) / 8 * 16 + 8);
	jvm_memory_member(m, blob, l->compiled_pcs, 0);
	jvm_memory_member(m, blob, l->compiled_scopes_offset, ARRAY_SIZE(pcs) * 16);
	jvm_memory_member(m, blob, l->compiled_osr_bci, UINT32_MAX);
	jvm_memory_member(m, blob, l->blob_mutable, JVM_METADATA);
	made_memory_put(&m->made, JVM_METADATA, JVM_METHOD, 8);
	made_memory_put(&m->made, JVM_METADATA + 8, JVM_INLINED, 8);
	for (uint32_t i = 0; i < ARRAY_SIZE(pcs); i++) {
		made_memory_put(&m->made, JVM_IMMUTABLE + i * 16, pcs[i].pc, 4);
		made_memory_put(&m->made, JVM_IMMUTABLE + i * 16 + 4, pcs[i].scope, 4);
	}
	/* Scopes, each number one more: sender, function, bytecode + 1. 0 is none. */
	jvm_memory_text(m, JVM_IMMUTABLE + ARRAY_SIZE(pcs) * 16, "\x01\x05\x03\x06\x01\x02\x03");
}

/* interpreter -> compiled code -> stub. rbp of the interpreter's frame: JVM_STACK + 0x80. */
static void put_stack(struct jvm_memory *m)
{
	made_memory_put(&m->made, JVM_STACK + 0x80, JVM_STACK + 0x200, 8);
	made_memory_put(&m->made, JVM_STACK + 0x88, RETURN_IN_COMPILED, 8);
	made_memory_put(&m->made, JVM_STACK + 0x78, JVM_STACK + 0xa0, 8);
	made_memory_put(&m->made, JVM_STACK + 0x68, JVM_METHOD, 8);
	made_memory_put(&m->made, JVM_STACK + 0x40, BYTECODES + 5, 8);
	made_memory_put(&m->made, JVM_STACK + 0xa0 + 0x18, RETURN_IN_STUBS, 8);
	made_memory_put(&m->made, JVM_STACK + 0xa0 + 0x10, JVM_STACK + 0x100, 8);
	made_memory_put(&m->made, JVM_STACK + 0x100, 0, 8);
	made_memory_put(&m->made, JVM_STACK + 0x108, 0x400000, 8);
	made_memory_put(&m->made, JVM_STUB_RETURN, RETURN_IN_STUBS, 8);
}

static void make(struct jvm_memory *m)
{
	const struct jvm_layout *l;

	jvm_memory_init(m);
	l = &m->jvm.layout;
	m->made.n = JVM_BYTES;
	made_memory_put(&m->made, JVM_HEAPS, JVM_ARRAY, 8);
	jvm_memory_member(m, JVM_ARRAY, l->array_length, 1);
	jvm_memory_member(m, JVM_ARRAY, l->array_data, JVM_DATA);
	made_memory_put(&m->made, JVM_DATA, JVM_HEAP, 8);
	made_memory_put(&m->made, JVM_CODELETS, JVM_QUEUE, 8);
	jvm_memory_member(m, JVM_QUEUE, l->queue_buffer, INTERPRETER + 8 + JVM_CODE_OFFSET);
	jvm_memory_member(m, JVM_QUEUE, l->queue_limit, JVM_PIECE - 8 - JVM_CODE_OFFSET);
	made_memory_put(&m->made, JVM_HEAP + 16, JVM_CODE, 8);
	made_memory_put(&m->made, JVM_HEAP + 24, JVM_CODE_END, 8);
	made_memory_put(&m->made, JVM_HEAP + 32 + 16, JVM_SEGMENTS, 8);
	made_memory_put(&m->made, JVM_HEAP + 64, JVM_SHIFT, 4);
	put_method(m);
	put_piece(m, 0, "Interpreter", 0);
	put_piece(m, 1, "nmethod", FRAME_WORDS);
	put_piece(m, 2, "StubRoutines (1)", 0);
	put_compiled(m);
	put_stack(m);
	m->made.thread.regs.r13 = BYTECODES + 2;
}

static struct unwind_cursor top(void)
{
	return (struct unwind_cursor){
		.pc = IN_INTERPRETER, .sp = JVM_STACK, .bp = JVM_STACK + 0x80, .first = true
	};
}

static bool step(struct jvm_memory *m, struct unwind_cursor *c, runtime_frame_vec *f)
{
	bool ok = jvm_step(&m->jvm.runtime, &m->made.thread, c, f);

	c->called = true;
	c->first = false;
	c->index++;
	return ok;
}

static void test_frames(void **state)
{
	struct unwind_cursor c = top();
	runtime_frame_vec f = { 0 };
	struct jvm_memory m;

	make(&m);
	assert_true(step(&m, &c, &f));
	assert_int_equal(f.n, 1);
	assert_string_equal(f.v[0].function, "shop.Order$$Lambda/0x0000000097044000.save");
	assert_string_equal(f.v[0].file, "Order.java");
	assert_int_equal(f.v[0].line, 40); /* by r13 */
	assert_true(f.v[0].entry && f.v[0].anchor == JVM_STACK);
	assert_true(c.pc == RETURN_IN_COMPILED && c.sp == JVM_STACK + 0xa0);
	assert_true(step(&m, &c, &f));
	assert_int_equal(f.n, 3);
	assert_int_equal(f.v[1].code, JVM_INLINED);
	assert_int_equal(f.v[1].line, 42);
	assert_int_equal(f.v[2].code, JVM_METHOD);
	assert_int_equal(f.v[2].line, 40);
	assert_true(!f.v[1].entry && f.v[2].entry);
	assert_true(c.pc == RETURN_IN_STUBS && c.bp == JVM_STACK + 0x100);
	assert_true(step(&m, &c, &f));
	assert_string_equal(f.v[3].function, "call_stub");
	assert_true(c.pc == 0x400000 && c.sp == JVM_STACK + 0x110);
	assert_false(step(&m, &c, &f));
	assert_int_equal(f.n, 4);
	vec_fini(&f);
	jvm_memory_fini(&m);
}

/* A caller is at the bytecode that its frame has, and a leaf call saves none. */
static void test_bytecode(void **state)
{
	struct unwind_cursor c = top();
	runtime_frame_vec f = { 0 };
	struct jvm_memory m;

	make(&m);
	c.called = true;
	c.first = false;
	step(&m, &c, &f);
	assert_int_equal(f.v[0].line, 42);
	c = top();
	c.called = true;
	m.made.thread.regs.r13 = 0;
	step(&m, &c, &f);
	assert_int_equal(f.v[1].line, 0);
	vec_fini(&f);
	jvm_memory_fini(&m);
}

/* Between two places, only functions that both have in common are shown. */
static void test_places(void **state)
{
	struct jvm_scope s[JVM_SCOPES_MAX];
	struct jvm_blob b;
	struct jvm_memory m;

	make(&m);
	assert_true(jvm_blob_find(&m.jvm, COMPILED + 8 + JVM_CODE_OFFSET, &b));
	assert_int_equal(jvm_scopes(&m.jvm, &b, b.code + 0x40, true, s), 2);
	assert_int_equal(jvm_scopes(&m.jvm, &b, b.code + 0x40, false, s), 2);
	assert_int_equal(jvm_scopes(&m.jvm, &b, b.code + 0x60, false, s), 1);
	assert_int_equal(s[0].method, JVM_METHOD);
	assert_true(s[0].sure); /* both are in bytecode 2 of it */
	assert_int_equal(jvm_scopes(&m.jvm, &b, b.code + 0x20, false, s), 1);
	assert_false(s[0].sure);
	m.jvm.dense = true;
	assert_int_equal(jvm_scopes(&m.jvm, &b, b.code + 0x20, false, s), 2);
	jvm_memory_fini(&m);
}

/* Scopes that lead back to themselves end; so do segments; a Method that leads to no class has no
 * name, and its frame no caller. */
static void test_hostile(void **state)
{
	struct jvm_scope s[JVM_SCOPES_MAX];
	struct unwind_cursor c = top();
	runtime_frame_vec f = { 0 };
	struct jvm_memory m;
	struct jvm_blob b;

	make(&m);
	jvm_memory_text(&m, JVM_IMMUTABLE + 64, "\x01\x02\x02\x02");
	assert_true(jvm_blob_find(&m.jvm, COMPILED + 8 + JVM_CODE_OFFSET, &b));
	assert_true(jvm_scopes(&m.jvm, &b, b.code + 0x40, true, s) <= JVM_SCOPES_MAX);
	made_memory_put(&m.made, JVM_CLASS + 224, 0, 8);
	step(&m, &c, &f);
	assert_string_equal(f.v[0].function, "Interpreter");
	assert_int_equal(c.pc, IN_INTERPRETER);
	memset(m.made.bytes + (JVM_SEGMENTS - JVM_BASE), 0xff, 96);
	c = top();
	assert_false(step(&m, &c, &f));
	assert_int_equal(f.n, 1);
	vec_fini(&f);
	jvm_memory_fini(&m);
}

/* Instructions that begin and end functions. */
static void test_partial_frames(void **state)
{
	static const uint8_t entry[] = { 0x89, 0x84, 0x24, 0,    0xc0, 0xfe, 0xff,
					 0x55, 0x48, 0x83, 0xec, 0x10, 0x90 };
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 0x10, 0x5d, 0x49, 0x3b, 0xa7, 0x48, 0x03,
				       0,    0,    0x0f, 0x87, 1,    2,    3,    4,    0xc3 };
	static const struct {
		uint32_t at, depth;
		bool rbp;
	} cases[] = {
		{ 0, 0, false },    { 7, 0, false },   { 8, 8, true },     { 12, 24, true },
		{ 0x60, 24, true }, { 0x64, 8, true }, { 0x65, 0, false }, { 0x72, 0, false }
	};
	struct jvm_memory m;
	struct jvm_blob b;

	make(&m);
	assert_true(jvm_blob_find(&m.jvm, COMPILED + 8 + JVM_CODE_OFFSET, &b));
	memcpy(m.made.bytes + (b.code - JVM_BASE), entry, sizeof(entry));
	memcpy(m.made.bytes + (b.code + 0x60 - JVM_BASE), end, sizeof(end));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t sp = JVM_STACK + 0x400;
		struct unwind_cursor c = { .pc = b.code + cases[i].at, .sp = sp, .bp = 7 };

		made_memory_put(&m.made, sp + cases[i].depth, 0x1234, 8);
		made_memory_put(&m.made, sp + cases[i].depth - 8, 0x5678, 8);
		assert_true(jvm_caller(&m.jvm, &b, &c));
		assert_int_equal(c.pc, 0x1234);
		assert_int_equal(c.sp, sp + cases[i].depth + 8);
		assert_int_equal(c.bp, cases[i].rbp ? 0x5678 : 7);
	}
	jvm_memory_fini(&m);
}

static bool many(struct runtime *r, const struct space_thread *t, struct unwind_cursor *c,
		 runtime_frame_vec *ret)
{
	for (uint32_t i = 0; i < 1000; i++)
		vec_push(ret, (struct runtime_frame){ .code = 1 });
	c->sp += 8;
	return true;
}

/* A walk adds a bounded number of frames to those of the walks before, and goes on without. */
static void test_many(void **state)
{
	static const struct runtime_type type = { .step = many };
	struct runtime r = { .type = &type };
	runtime_frame_vec f = { 0 };

	for (uint32_t walks = 1; walks <= 2; walks++) {
		struct runtime_walk w = { .runtime = &r, .ret = &f };
		struct unwind_code code = runtime_code(&w);
		struct unwind_cursor c = { 0 };

		for (uint32_t i = 0; i < 100; i++)
			assert_true(code.step(code.arg, &c));
		assert_int_equal(c.sp, 800);
		assert_int_equal(f.n, walks * RUNTIME_FRAMES_MAX);
	}
	vec_fini(&f);
}

static void test_numbers(void **state)
{
	static const uint8_t bytes[] = { 0xbf, 0xc0, 0x01, 0xff };
	uint32_t i = 0;

	assert_int_equal(jvm_number(1, bytes, 4, &i), 0xbe);
	assert_int_equal(jvm_number(1, bytes, 4, &i), 0xbf);
	assert_int_equal(i, 3);
	jvm_number(1, bytes, 4, &i);
	assert_int_equal(i, 4);
	assert_int_equal(jvm_number(1, bytes, 4, &i), 0);
	i = 0;
	assert_int_equal(jvm_number(0, bytes, 4, &i), 0xbf);
	assert_int_equal(jvm_number(0, bytes, 4, &i), 0xc0 + (1 << 6));
}

static struct machine_made made;

/* The functions of a word, by what was asked for. Returns their number, 0: not known. */
static uint32_t described(struct jvm_memory *m, u64 word, uint32_t i, struct runtime_frame *ret)
{
	for (u32 k = 0; k < made.nasks; k++) {
		const struct wire_unwind_ask *a = &made.asks[k];
		const void *met;

		assert_int_equal(a->what, WIRE_UNWIND_ASK_CODE);
		if (a->id != WIRE_LANGUAGE_ID(word))
			continue;
		met = jvm_learn(&m->jvm.runtime, a->code, a->entry, a->id);
		if (met)
			return jvm_describe(&m->jvm.runtime, met, WIRE_LANGUAGE_AT(word), i, ret);
	}
	return 0;
}

/* A call in front of the return address in the compiled code. */
static void put_call(struct jvm_memory *m)
{
	made_memory_put(&m->made, RETURN_IN_COMPILED - 5, 0xe8, 1);
}

static u32 walk(struct jvm_memory *m)
{
	return java_made_walk(&made, m, IN_INTERPRETER, JVM_STACK, JVM_STACK + 0x80, false);
}

/* The same stack as in test_frames(). */
static void test_walk(void **state)
{
	struct runtime_frame f;
	struct jvm_memory m;

	make(&m);
	put_call(&m);
	assert_int_equal(walk(&m), 3);
	assert_int_equal(made.nasks, 3);
	assert_true(made.state.pc == 0x400000 && made.state.sp == JVM_STACK + 0x110);
	assert_int_equal(described(&m, made.frames[0], 0, &f), 1);
	assert_string_equal(f.function, "shop.Order$$Lambda/0x0000000097044000.save");
	assert_string_equal(f.file, "Order.java");
	assert_int_equal(f.line, 40); /* by r13 */
	assert_int_equal(described(&m, made.frames[1], 0, &f), 2);
	assert_int_equal(f.code, JVM_INLINED);
	assert_int_equal(f.line, 42);
	assert_int_equal(described(&m, made.frames[1], 1, &f), 2);
	assert_int_equal(f.code, JVM_METHOD);
	assert_int_equal(f.line, 40);
	assert_int_equal(described(&m, made.frames[2], 0, &f), 1);
	assert_string_equal(f.function, "call_stub");
	assert_string_equal(f.file, "[jvm]");
	jvm_memory_fini(&m);
}

/* The place in the bytecodes: of a frame that native code interrupts, it is not known. */
static void test_walk_bytecode(void **state)
{
	struct runtime_frame f;
	struct jvm_memory m;

	make(&m);
	put_call(&m);
	m.made.thread.regs.r13 = 0;
	assert_int_equal(walk(&m), 3);
	described(&m, made.frames[0], 0, &f);
	assert_int_equal(f.line, 42); /* by the frame */
	assert_int_equal(
		java_made_walk(&made, &m, IN_INTERPRETER, JVM_STACK, JVM_STACK + 0x80, true), 3);
	described(&m, made.frames[0], 0, &f);
	assert_int_equal(f.line, 0);
	/* At the entry of a function, before it has a frame. */
	m.made.thread.regs.rbx = JVM_INLINED;
	m.made.thread.regs.r13 = JVM_STACK + 0x18;
	made_memory_put(&m.made, JVM_STACK, IN_INTERPRETER + 8, 8);
	assert_int_equal(walk(&m), 4);
	described(&m, made.frames[0], 0, &f);
	assert_int_equal(f.code, JVM_INLINED);
	assert_int_equal(f.line, 40);
	described(&m, made.frames[1], 0, &f);
	assert_int_equal(f.code, JVM_METHOD);
	assert_int_equal(f.line, 42);
	jvm_memory_fini(&m);
}

/* The frames of test_partial_frames(), and where the host goes from them. */
static void test_walk_partial(void **state)
{
	static const uint8_t entry[] = { 0x89, 0x84, 0x24, 0,    0xc0, 0xfe, 0xff,
					 0x55, 0x48, 0x83, 0xec, 0x10, 0x90 };
	static const uint8_t end[] = { 0x48, 0x83, 0xc4, 0x10, 0x5d, 0x49, 0x3b, 0xa7, 0x48, 0x03,
				       0,    0,    0x0f, 0x87, 1,    2,    3,    4,    0xc3 };
	static const uint32_t at[] = { 0, 7, 8, 12, 0x60, 0x64, 0x65, 0x6c, 0x72 };
	struct jvm_memory m;
	struct jvm_blob b;

	make(&m);
	put_call(&m);
	assert_true(jvm_blob_find(&m.jvm, COMPILED + 8 + JVM_CODE_OFFSET, &b));
	jvm_memory_member(&m, COMPILED + 8, m.jvm.layout.blob_complete, 12);
	memcpy(m.made.bytes + (b.code - JVM_BASE), entry, sizeof(entry));
	memcpy(m.made.bytes + (b.code + 0x60 - JVM_BASE), end, sizeof(end));
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		struct unwind_cursor c = { .pc = b.code + at[i], .sp = JVM_STACK + 0x400, .bp = 7 };

		for (uint32_t k = 0; k < 8; k++)
			made_memory_put(&m.made, JVM_STACK + 0x400 + k * 8, RETURN_IN_COMPILED, 8);
		assert_true(jvm_blob_find(&m.jvm, c.pc, &b));
		assert_true(jvm_caller(&m.jvm, &b, &c));
		assert_true(java_made_walk(&made, &m, b.code + at[i], JVM_STACK + 0x400, 7, false));
		assert_int_equal(made.first.pc, c.pc);
		assert_int_equal(made.first.sp, c.sp);
		assert_int_equal(made.first.bp, c.bp);
	}
	/* Nothing is shown that the instructions do not show. */
	memset(m.made.bytes + (JVM_STACK + 0x400 - JVM_BASE), 0, 64);
	assert_int_equal(java_made_walk(&made, &m, b.code + 7, JVM_STACK + 0x400, 7, false), 1);
	jvm_memory_fini(&m);
}

/* A name is not learnt when the object is another one by then. */
static void test_walk_stale(void **state)
{
	struct runtime_frame f;
	struct jvm_memory m;

	make(&m);
	put_call(&m);
	assert_int_equal(walk(&m), 3);
	jvm_memory_member(&m, COMPILED + 8, m.jvm.layout.compiled_number, 2);
	assert_int_equal(described(&m, made.frames[1], 0, &f), 0);
	assert_int_equal(described(&m, made.frames[0], 0, &f), 1);
	/* only the count of the symbol's uses */
	made_memory_put(&m.made, JVM_SYMBOLS, 5, 2);
	assert_int_equal(described(&m, made.frames[0], 0, &f), 1);
	/* another symbol in its place */
	made_memory_put(&m.made, JVM_SYMBOLS + 2, 0x1234, 2);
	assert_int_equal(described(&m, made.frames[0], 0, &f), 0);
	jvm_memory_fini(&m);
}

/* Frames that lead back to themselves, absurd sizes and segments without a first one end. */
static void test_walk_hostile(void **state)
{
	const struct jvm_layout *l;
	struct jvm_memory m;

	make(&m);
	l = &m.jvm.layout;
	put_call(&m);
	made_memory_put(&m.made, JVM_STACK + 0x80, JVM_STACK + 0x80, 8);
	made_memory_put(&m.made, JVM_STACK + 0x88, IN_INTERPRETER, 8);
	assert_true(walk(&m) <= 3);
	assert_true(made.reads < 2000);

	jvm_memory_fini(&m);
	make(&m);
	jvm_memory_member(&m, COMPILED + 8, l->blob_frame_words, 0x7fffffff);
	put_call(&m);
	assert_true(walk(&m) <= 3);
	jvm_memory_member(&m, COMPILED + 8, l->blob_frame_words, UINT32_MAX);
	assert_true(walk(&m) <= 3);
	assert_true(made.reads < 2000);

	memset(m.made.bytes + (JVM_SEGMENTS - JVM_BASE), 1, 96);
	(void)walk(&m);
	assert_true(made.reads < 2000);
	memset(m.made.bytes + (JVM_SEGMENTS - JVM_BASE), 0xff, 96);
	assert_int_equal(walk(&m), 1);
	/* a class that does not have the constants: it is no Method */
	made_memory_put(&m.made, JVM_CLASS + 224, 0, 8);
	assert_int_equal(walk(&m), 1);
	assert_int_equal(made.nasks, 0);
	assert_false(made.frames[0] & WIRE_LANGUAGE_FRAME);
	/* the JVM begins: it has no interpreter yet */
	made_memory_put(&m.made, JVM_CODELETS, 0, 8);
	assert_int_equal(walk(&m), 0);
	jvm_memory_fini(&m);
}

/* Lines that were found once cost nothing, nor do tables of an ordinary size. */
static void test_lines_for_ever(void **state)
{
	enum { LONG = 1 << 16, ORDINARY = 4000, BUDGET = 3 * LONG };
	static uint8_t entries[LONG];
	struct jvm_method many = { .lines = entries, .nlines = LONG },
			  few = { .lines = entries, .nlines = ORDINARY };
	struct jvm j = { .work = BUDGET };

	(void)state;
	memset(entries, 1 << 3 | 1, sizeof(entries)); /* a line for each bytecode */
	for (int i = 0; i < 1000; i++)
		assert_int_equal(jvm_line(&j, &many, 7), 7);
	assert_int_equal(j.work, BUDGET - LONG);
	for (int i = 1; i < ORDINARY; i++)
		assert_int_equal(jvm_line(&j, &few, i), i);
	assert_int_equal(j.work, BUDGET - LONG);
	/* a process cannot make descry search long tables without end */
	for (int i = 0; i < 100; i++)
		(void)jvm_line(&j, &many, LONG + i);
	assert_true(j.work < LONG);
	assert_int_equal(jvm_line(&j, &many, 8), 0);
	assert_int_equal(jvm_line(&j, &many, 7), 7);
	hash_fini(&j.lines);
}

/* Java 11 has its threads in a linked list, which a hostile JVM may close to a circle. */
static void test_threads_linked(void **state)
{
	enum { NEXT = 8, OS = 0x40, SECOND = 0x80 };
	const uint64_t first = JVM_STACK + 0x200;
	struct jvm_memory m;

	make(&m);
	m.jvm.layout.variable.threads = 0;
	m.jvm.layout.variable.threads_linked = JVM_THREADS;
	m.jvm.layout.thread_next = (struct jvm_member){ NEXT, 8 };
	made_memory_put(&m.made, JVM_THREADS, first, 8);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t at = first + i * SECOND;

		jvm_memory_member(&m, at, m.jvm.layout.thread_os, at + OS);
		jvm_memory_member(&m, at + OS, m.jvm.layout.os_id, 101 + i);
		made_memory_put(&m.made, at + NEXT, i ? first : first + SECOND, 8);
	}
	assert_int_equal(jvm_thread(&m.jvm, 101), first);
	assert_int_equal(jvm_thread(&m.jvm, 102), first + SECOND);
	assert_int_equal(jvm_thread(&m.jvm, 103), 0);
	jvm_memory_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_linked), cmocka_unit_test(test_frames),
		cmocka_unit_test(test_bytecode),       cmocka_unit_test(test_places),
		cmocka_unit_test(test_hostile),        cmocka_unit_test(test_partial_frames),
		cmocka_unit_test(test_numbers),        cmocka_unit_test(test_many),
		cmocka_unit_test(test_walk),           cmocka_unit_test(test_walk_bytecode),
		cmocka_unit_test(test_walk_partial),   cmocka_unit_test(test_walk_stale),
		cmocka_unit_test(test_walk_hostile),   cmocka_unit_test(test_lines_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
