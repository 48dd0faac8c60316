/* A process's memory with the structures of HotSpot in it, as tests make it: a code cache with the
 * interpreter, a compiled function and a stub, one Java function, and a stack. */
#ifndef DESCRY_TEST_JVM_MEMORY_H
#define DESCRY_TEST_JVM_MEMORY_H

#include "made_memory.h"
#include "program/runtime/jvm/jvm.h"

enum {
	JVM_BASE = MADE_BASE,
	JVM_BYTES = 0x10000,
	/* addresses */
	JVM_HEAPS = JVM_BASE + 0x08, /* the variables */
	JVM_THREADS = JVM_BASE + 0x10,
	JVM_STUB_RETURN = JVM_BASE + 0x18,
	JVM_ARRAY = JVM_BASE + 0x20,
	JVM_CODELETS = JVM_BASE + 0x30, /* a variable */
	JVM_DATA = JVM_BASE + 0x40,
	JVM_HEAP = JVM_BASE + 0x80,
	JVM_QUEUE = JVM_BASE + 0xe0,
	JVM_SEGMENTS = JVM_BASE + 0x100,
	JVM_METHOD = JVM_BASE + 0x1000,
	JVM_INLINED = JVM_BASE + 0x1080, /* another Method with the same ConstMethod */
	JVM_CONST = JVM_BASE + 0x1100,
	JVM_CONSTANTS = JVM_BASE + 0x1200,
	JVM_CLASS = JVM_BASE + 0x1300,
	JVM_SYMBOLS = JVM_BASE + 0x1400, /* class, function, file; 0x100 for each */
	JVM_NAMES = JVM_BASE + 0x1800,   /* of pieces of code; 0x20 for each */
	JVM_IMMUTABLE = JVM_BASE + 0x2000,
	JVM_METADATA = JVM_BASE + 0x2200,
	JVM_CODE = JVM_BASE + 0x4000, /* the code cache: JVM_PIECE for each piece of code */
	JVM_PIECE = 0x1000,
	JVM_CODE_END = JVM_CODE + 3 * JVM_PIECE,
	JVM_CODE_OFFSET = 0x200,
	JVM_STACK = JVM_BASE + 0x8000,
	JVM_SHIFT = 7,
};

struct jvm_memory {
	struct made_memory made;
	struct jvm jvm;
};

/* A layout with all members that JDK 25 has, each 8 or 4 bytes. */
static inline void jvm_memory_layout(struct jvm_layout *l)
{
	*l = (struct jvm_layout){
		.method_const = { 8, 8 },
		.method_access = { 40, 2 },
		.const_constants = { 8, 8 },
		.const_words = { 24, 4 },
		.const_flags = { 28, 4 },
		.const_code_size = { 34, 2 },
		.const_name = { 36, 2 },
		.constants_class = { 24, 8 },
		.constants_file = { 54, 2 },
		.constants_length = { 60, 4 },
		.class_constants = { 224, 8 },
		.class_name = { 24, 8 },
		.symbol_length = { 4, 2 },
		.symbol_text = { 6, 1 },
		.array_length = { 0, 4 },
		.array_data = { 8, 8 },
		.heap_memory = { 0, 8 },
		.heap_segments = { 32, 8 },
		.heap_shift = { 64, 4 },
		.memory_low = { 16, 8 },
		.memory_high = { 24, 8 },
		.memory_end = { 24, 8 },
		.queue_buffer = { 0, 8 },
		.queue_limit = { 8, 4 },
		.block_used = { 4, 1 },
		.blob_name = { 8, 8 },
		.blob_mutable = { 16, 8 },
		.blob_size = { 24, 4 },
		.blob_relocation_size = { 28, 4 },
		.blob_code_offset = { 36, 4 },
		.blob_frame_words = { 44, 4 },
		.blob_complete = { 54, 2 },
		.compiled_method = { 80, 8 },
		.compiled_immutable = { 96, 8 },
		.compiled_osr_entry = { 144, 8 },
		.compiled_entry_offset = { 154, 2 },
		.compiled_osr_bci = { 156, 4 },
		.compiled_immutable_size = { 160, 4 },
		.compiled_deopt_offset = { 176, 4 },
		.compiled_deopt_mh_offset = { 180, 4 },
		.compiled_pcs = { 196, 4 },
		.compiled_scopes_offset = { 200, 4 },
		.compiled_original_pc = { 208, 4 },
		.compiled_number = { 212, 4 },
		.pc_offset = { 0, 4 },
		.pc_scope = { 4, 4 },
		.threads_length = { 4, 4 },
		.threads_first = { 16, 8 },
		.thread_os = { 0, 8 },
		.thread_anchor = { 32, 8 },
		.anchor_sp = { 0, 8 },
		.os_id = { 12, 4 },
		.variable = { .heaps = JVM_HEAPS,
			      .interpreter = JVM_CODELETS,
			      .threads = JVM_THREADS,
			      .call_stub_return = JVM_STUB_RETURN },
		.size = { .const_method = 56, .constants = 72, .block = 8, .pc = 16 },
		.excluded = 1,
	};
}

/* bytes and n are the caller's to fill. */
static inline void jvm_memory_init(struct jvm_memory *m)
{
	memset(m, 0, sizeof(*m));
	made_memory_init(&m->made);
	m->made.thread.tid = 4711;
	m->jvm.runtime.space = &m->made.space;
	m->jvm.budget = 1 << 20;
	m->jvm.work = 1 << 20;
	jvm_memory_layout(&m->jvm.layout);
	arena_init(&m->jvm.names);
}

static inline void jvm_memory_fini(struct jvm_memory *m)
{
	arena_fini(&m->jvm.names);
	hash_fini(&m->jvm.methods);
	hash_fini(&m->jvm.lines);
	hash_fini(&m->jvm.texts);
	hash_fini(&m->jvm.threads);
}

static inline void jvm_memory_member(struct jvm_memory *m, uint64_t addr, struct jvm_member to,
				     uint64_t v)
{
	made_memory_put(&m->made, addr + to.at, v, to.width);
}

static inline void jvm_memory_text(struct jvm_memory *m, uint64_t addr, const char *s)
{
	made_memory_bytes(&m->made, addr, s, strlen(s) + 1);
}

#endif
