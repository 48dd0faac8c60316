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

static inline void python_put_text(struct python_memory *m, uint64_t at, const char *s)
{
	const struct python_layout *l = &m->python.layout;
	bool bytes = !l->text_length;

	made_memory_put(&m->made, at + (bytes ? l->bytes_length : l->text_length), strlen(s), 8);
	if (!bytes)
		made_memory_put(&m->made, at + l->text_state, 1 << 2 | 0x20 | 0x40, 4);
	memcpy(m->made.bytes + (at - PYTHON_BASE) + (bytes ? l->bytes_data : l->text_ascii), s,
	       strlen(s));
}

static inline void python_put_code(struct python_memory *m)
{
	const struct python_layout *l = &m->python.layout;

	made_memory_put(&m->made, PYTHON_CODE + l->object_type, PYTHON_TYPE, 8);
	made_memory_put(&m->made, PYTHON_CODE + l->code_name, PYTHON_NAME, 8);
	made_memory_put(&m->made, PYTHON_CODE + l->code_file, PYTHON_FILE, 8);
	made_memory_put(&m->made, PYTHON_CODE + l->code_first_line, 40, 4);
	made_memory_put(&m->made, PYTHON_CODE + l->code_lines, PYTHON_TABLE, 8);
	python_put_text(m, PYTHON_NAME, "handler");
	python_put_text(m, PYTHON_FILE, "/srv/app.py");
}

#endif
