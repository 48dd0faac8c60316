/* Makes a process's memory with the structures of CPython for tests: one interpreter, one thread,
 * and functions that call each other. */
#ifndef DESCRY_TEST_PYTHON_MEMORY_H
#define DESCRY_TEST_PYTHON_MEMORY_H

#include "made_memory.h"
#include "program/runtime/python/python.h"

enum {
	PYTHON_BASE = MADE_BASE,
	PYTHON_BYTES = 0x8000,
	/* addresses */
	PYTHON_HEAD = PYTHON_BASE,
	PYTHON_INTERPRETER = PYTHON_BASE + 0x100,
	PYTHON_THREAD = PYTHON_BASE + 0x3000,
	PYTHON_CFRAME = PYTHON_BASE + 0x3800, /* the previous _PyCFrame is at + 0x40 */
	PYTHON_CODE = PYTHON_BASE + 0x4000,
	PYTHON_NAME = PYTHON_BASE + 0x5000,
	PYTHON_FILE = PYTHON_BASE + 0x5200,
	PYTHON_TABLE = PYTHON_BASE + 0x5400,
	PYTHON_FRAMES = PYTHON_BASE + 0x6000, /* 0x100 for each */
	PYTHON_TYPE = 0x123450,
	PYTHON_FS_BASE = 0x7f0000001000,
};

struct python_memory {
	struct made_memory made;
	struct python python;
};

/* Initialises everything except `bytes` and `n`, which the caller fills. */
static inline void python_memory_init(struct python_memory *m, const struct python_layout *l)
{
	memset(m, 0, sizeof(*m));
	made_memory_init(&m->made);
	m->made.thread.regs.fs_base = PYTHON_FS_BASE;
	m->python.runtime.space = &m->made.space;
	m->python.layout = *l;
	m->python.interpreters = PYTHON_HEAD;
	m->python.code_type = PYTHON_TYPE;
	m->python.budget = 1 << 20;
	arena_init(&m->python.names);
}

static inline void python_memory_fini(struct python_memory *m)
{
	arena_fini(&m->python.names);
	hash_fini(&m->python.codes);
}

#endif
