/* A process's memory with the structures of MRI in it, as tests make it: a VM, one thread, and
 * methods that call each other. */
#ifndef DESCRY_TEST_RUBY_MEMORY_H
#define DESCRY_TEST_RUBY_MEMORY_H

#include "made_memory.h"
#include "program/runtime/ruby/ruby.h"

enum {
	RUBY_BASE = MADE_BASE,
	RUBY_BYTES = 0x8000,
	/* addresses */
	RUBY_VM_WORD = RUBY_BASE,
	RUBY_STRING_CLASS_WORD = RUBY_BASE + 0x8,
	RUBY_SYMBOLS = RUBY_BASE + 0x20,
	RUBY_VM = RUBY_BASE + 0x100,
	RUBY_RACTOR = RUBY_BASE + 0x400,
	RUBY_THREAD = RUBY_BASE + 0x800,
	RUBY_NATIVE = RUBY_BASE + 0xa00,
	RUBY_CONTEXT = RUBY_BASE + 0xb00,
	RUBY_TAGS = RUBY_BASE + 0xc00, /* 0x100 for each */
	RUBY_ISEQ = RUBY_BASE + 0x1000,
	RUBY_BODY = RUBY_BASE + 0x1100,
	RUBY_CODE = RUBY_BASE + 0x1200,
	RUBY_LINES = RUBY_BASE + 0x1400,
	RUBY_STARTS = RUBY_BASE + 0x1500,
	RUBY_ENTRY = RUBY_BASE + 0x1600,
	RUBY_C_ENTRY = RUBY_BASE + 0x1640,
	RUBY_DEFINITION = RUBY_BASE + 0x1680,
	RUBY_C_DEFINITION = RUBY_BASE + 0x16c0,
	RUBY_OWNER = RUBY_BASE + 0x1800,
	RUBY_STRING_OBJECT = RUBY_BASE + 0x1a00, /* class String */
	RUBY_EXTRA = RUBY_BASE + 0x1c00,         /* 0x100 for each of the two classes */
	RUBY_TEXTS = RUBY_BASE + 0x2000,         /* 0x40 for each */
	RUBY_IDS = RUBY_BASE + 0x2400,
	RUBY_UNIT = RUBY_BASE + 0x2440,
	RUBY_UNIT_ITEMS = RUBY_BASE + 0x2500,
	RUBY_SHAPES = RUBY_BASE + 0x4800,
	RUBY_STACK = RUBY_BASE + 0x5000,
	RUBY_SCOPES = RUBY_BASE + 0x6000, /* 0x40 for each */
	RUBY_EXEC = 0x7f0000400000,       /* the loop's code */
	RUBY_SP = 0x7f0000002000,
	RUBY_FS_BASE = 0x7f0000001000,
};

struct ruby_memory {
	struct made_memory made;
	struct ruby ruby;
};

/* bytes and n are the caller's to fill. */
static inline void ruby_memory_init(struct ruby_memory *m, const struct ruby_layout *l)
{
	memset(m, 0, sizeof(*m));
	made_memory_init(&m->made);
	m->made.thread.regs.fs_base = RUBY_FS_BASE;
	m->made.thread.regs.rsp = RUBY_SP;
	m->ruby.runtime.space = &m->made.space;
	m->ruby.layout = *l;
	m->ruby.vm = RUBY_VM_WORD;
	m->ruby.string_class = RUBY_STRING_CLASS_WORD;
	m->ruby.symbols = RUBY_SYMBOLS;
	m->ruby.exec = (struct ruby_range){ RUBY_EXEC, 0x1000 };
	m->ruby.core = (struct ruby_range){ RUBY_EXEC + 0x1000, 0x1000 };
	m->ruby.text = (struct ruby_range){ RUBY_EXEC, 0x3000 };
	m->ruby.budget = 1 << 20;
	arena_init(&m->ruby.names);
}

static inline void ruby_memory_fini(struct ruby_memory *m)
{
	arena_fini(&m->ruby.names);
	hash_fini(&m->ruby.codes);
	hash_fini(&m->ruby.functions);
	hash_fini(&m->ruby.labels);
}

#endif
