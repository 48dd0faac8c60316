/* Makes a process's memory with a heap of glibc's malloc(3) for tests: a main arena and its chunks,
 * a second arena, mapped memory, and a stack. */
#ifndef DESCRY_TEST_HEAP_MEMORY_H
#define DESCRY_TEST_HEAP_MEMORY_H

#include <string.h>

#include "memory/leaks/leaks_private.h"

enum {
	HM_DATA = 0x10000, /* of a C library: the main arena is at HM_ARENA */
	HM_ARENA = HM_DATA + 0x100,
	HM_VAR = HM_DATA + 0x1000, /* variables of the program */
	HM_HEAP = 0x5000000,
	HM_SECOND = 0x8000000, /* heap of the second arena, which is at + 0x30 */
	HM_MAPPED = 0xa000000,
	HM_STACK = 0xb000000,
	HM_SIZE = 0x2000, /* of each part */
	HM_PARTS = 5,
	HM_FIRST = 0x8d0, /* of the first chunk, in the second arena's heap */
};

struct heap_memory {
	struct space space; /* first */
	struct mapping map[HM_PARTS];
	struct mappings maps;
	struct space_thread thread;
	uint64_t at[HM_PARTS];
	uint8_t bytes[HM_PARTS][HM_SIZE];
	uint64_t top, second_top;
	uint64_t reads; /* that were asked for */
};

static inline uint8_t *heap_memory_at(struct heap_memory *m, uint64_t addr, uint64_t n)
{
	for (int i = 0; i < HM_PARTS; i++)
		if (addr >= m->at[i] && addr - m->at[i] < HM_SIZE &&
		    n <= HM_SIZE - (addr - m->at[i]))
			return m->bytes[i] + (addr - m->at[i]);
	return NULL;
}

static inline void heap_memory_put(struct heap_memory *m, uint64_t addr, uint64_t v)
{
	uint8_t *p = heap_memory_at(m, addr, sizeof(v));

	if (p)
		memcpy(p, &v, sizeof(v));
}

static inline uint32_t heap_memory_read(struct space *s, uint64_t addr, void *buf, uint32_t n,
					uint32_t *ret_gap)
{
	struct heap_memory *m = (struct heap_memory *)s;
	uint64_t most = HM_SIZE - addr % HM_SIZE; /* the parts lie at multiples of it, or near */
	const uint8_t *p;

	(void)ret_gap;
	m->reads++;
	most = most < n ? most : n;
	p = heap_memory_at(m, addr, most);
	if (!p)
		p = heap_memory_at(m, addr, most = 1);
	if (!p)
		return 0;
	memcpy(buf, p, most);
	return (uint32_t)most;
}

static inline struct err *heap_memory_mappings(struct space *s, uint64_t time,
					       const struct mappings **ret)
{
	(void)time;
	*ret = &((struct heap_memory *)s)->maps;
	return NULL;
}

static inline struct err *heap_memory_threads(struct space *s, const struct space_thread **ret,
					      uint32_t *ret_n)
{
	*ret = &((struct heap_memory *)s)->thread;
	*ret_n = 1;
	return NULL;
}

/* An arena without free chunks. */
static inline void heap_memory_arena(struct heap_memory *m, uint64_t arena, uint64_t next,
				     uint64_t top, uint64_t size)
{
	for (uint64_t i = 0; i < ARENA_NBINS; i++) {
		uint64_t head = arena + ARENA_BINS - 16 + 16 * i;

		heap_memory_put(m, head + 16, head);
		heap_memory_put(m, head + 24, head);
	}
	heap_memory_put(m, arena + ARENA_TOP, top);
	heap_memory_put(m, arena + ARENA_NEXT, next);
	heap_memory_put(m, arena + ARENA_SYSTEM_MEM, size);
	heap_memory_put(m, arena + ARENA_MAX_SYSTEM_MEM, size);
}

static inline void heap_memory_tops(struct heap_memory *m)
{
	heap_memory_arena(m, HM_ARENA, HM_SECOND + 0x30, m->top, HM_SIZE);
	heap_memory_put(m, m->top + 8, (HM_HEAP + HM_SIZE - m->top) | 1);
	heap_memory_arena(m, HM_SECOND + 0x30, HM_ARENA, m->second_top, HM_SIZE);
	heap_memory_put(m, m->second_top + 8, (HM_SECOND + HM_SIZE - m->second_top) | 1);
}

/* Allocates a chunk of this size at the main arena's top, or the second's. Returns its block. */
static inline uint64_t heap_memory_chunk(struct heap_memory *m, uint64_t size, bool second)
{
	uint64_t *top = second ? &m->second_top : &m->top, at = *top;

	heap_memory_put(m, at + 8, size | 1 | (second ? 4 : 0));
	*top += size;
	heap_memory_tops(m);
	return at + 16;
}

static inline void heap_memory_init(struct heap_memory *m)
{
	static const struct space_ops ops = {
		.mappings = heap_memory_mappings,
		.memory = { { "memory", heap_memory_read } },
		.threads = heap_memory_threads,
	};
	static const uint64_t at[HM_PARTS] = { HM_DATA, HM_HEAP, HM_SECOND, HM_MAPPED, HM_STACK };
	static const char *const path[HM_PARTS] = { "/lib/libc.so.6", "[heap]", "", "", "" };

	memset(m, 0, sizeof(*m));
	m->space.ops = &ops;
	m->space.name = (char *)"made up";
	memcpy(m->at, at, sizeof(at));
	for (int i = 0; i < HM_PARTS; i++) {
		m->map[i] = (struct mapping){ .start = at[i],
					      .end = at[i] + HM_SIZE,
					      .path = path[i],
					      .read = true,
					      .write = true };
	}
	m->maps = (struct mappings){ .v = m->map, .n = HM_PARTS };
	m->thread.regs.rsp = HM_STACK + 0x1000;
	m->thread.regs.fs_base = HM_STACK + 0x1c00;
	heap_memory_put(m, HM_STACK + 0x1d00, HM_STACK - 0x1000); /* of struct pthread */
	heap_memory_put(m, HM_STACK + 0x1d08, HM_SIZE + 0x1000);
	heap_memory_put(m, HM_STACK + 0x1d10, 0x1000);
	m->top = HM_HEAP;
	m->second_top = HM_SECOND + HM_FIRST;
	heap_memory_put(m, HM_SECOND, HM_SECOND + 0x30);
	heap_memory_put(m, HM_SECOND + 16, HM_SIZE);
	heap_memory_tops(m);
}

#endif
