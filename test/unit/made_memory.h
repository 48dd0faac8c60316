/* A process's memory as tests of language runtimes make it: MADE_BYTES at MADE_BASE, of which the
 * first n can be read. */
#ifndef DESCRY_TEST_MADE_MEMORY_H
#define DESCRY_TEST_MADE_MEMORY_H

#include <string.h>

#include "program/space/space.h"

enum { MADE_BASE = 0x10000, MADE_BYTES = 0x10000 };

struct made_memory {
	struct space space; /* first */
	struct space_thread thread;
	uint8_t bytes[MADE_BYTES];
	uint32_t n;
};

static inline uint32_t made_memory_read(struct space *s, uint64_t addr, void *buf, uint32_t n,
					uint32_t *ret_gap)
{
	struct made_memory *m = (struct made_memory *)s;
	uint64_t off = addr - MADE_BASE;

	(void)ret_gap;
	if (off >= m->n)
		return 0;
	n = m->n - off < n ? (uint32_t)(m->n - off) : n;
	memcpy(buf, m->bytes + off, n);
	return n;
}

/* *m is zero. The caller fills bytes, and sets n. */
static inline void made_memory_init(struct made_memory *m)
{
	static const struct space_ops ops = { .memory = { { "memory", made_memory_read } } };

	m->space.ops = &ops;
	m->space.name = (char *)"made up";
}

static inline void made_memory_bytes(struct made_memory *m, uint64_t addr, const void *p, size_t n)
{
	memcpy(m->bytes + (addr - MADE_BASE), p, n);
}

static inline void made_memory_put(struct made_memory *m, uint64_t addr, uint64_t v, size_t n)
{
	made_memory_bytes(m, addr, &v, n);
}

#endif
