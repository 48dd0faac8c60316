/* Makes a process's memory with a heap of mimalloc, jemalloc or tcmalloc for tests. It is mostly
 * empty: only pages that were written count as touched. */
#ifndef DESCRY_TEST_ALLOCATOR_MEMORY_H
#define DESCRY_TEST_ALLOCATOR_MEMORY_H

#include <string.h>

#include "memory/leaks/leaks_private.h"

enum {
	AM_DATA = 0x10000000, /* of the library: tables, and the program's variables */
	AM_VAR = AM_DATA,
	AM_ROOT = AM_DATA + 0x1040,
	AM_CENTRAL = AM_DATA + 0x280000,
	AM_META = 0x20000000, /* the allocator's own memory: a leaf, and what is behind it */
	AM_OWN = AM_META + 0x200000,
	AM_HEAP = 0x44000000, /* a multiple of 32 MB */
	AM_STACK = 0x50000000,
	AM_FS = AM_STACK + 0x3000,
	AM_PARTS = 4,
	AM_SIZE = 0x300000, /* of each part */
	AM_PUTS = 4096,
};

struct allocator_memory {
	struct space space; /* first */
	struct mapping map[AM_PARTS];
	struct mappings maps;
	struct space_thread thread;
	uint8_t *bytes[AM_PARTS];
	uint8_t touched[AM_PARTS][AM_SIZE / MEMORY_PAGE];
	uint64_t put[AM_PUTS]; /* the words that were written */
	uint32_t nput;
};

static const uint64_t am_start[AM_PARTS] = { AM_DATA, AM_META, AM_HEAP, AM_STACK };

static inline void am_put(struct allocator_memory *m, uint64_t addr, uint64_t v)
{
	for (int i = 0; i < AM_PARTS; i++)
		if (addr >= am_start[i] && addr + 8 <= am_start[i] + AM_SIZE) {
			memcpy(m->bytes[i] + (addr - am_start[i]), &v, sizeof(v));
			m->touched[i][(addr - am_start[i]) / MEMORY_PAGE] = 1;
			m->touched[i][(addr + 7 - am_start[i]) / MEMORY_PAGE] = 1;
			if (m->nput < AM_PUTS)
				m->put[m->nput++] = addr;
		}
}

/* Writes the low bytes only. */
static inline void am_put32(struct allocator_memory *m, uint64_t addr, uint32_t v)
{
	for (int i = 0; i < AM_PARTS; i++)
		if (addr >= am_start[i] && addr + 8 <= am_start[i] + AM_SIZE) {
			uint64_t word;

			memcpy(m->bytes[i] + (addr - am_start[i]), &v, sizeof(v));
			memcpy(&word, m->bytes[i] + (addr - am_start[i]), sizeof(word));
			am_put(m, addr, word);
		}
}

static inline uint32_t am_read(struct space *s, uint64_t addr, void *buf, uint32_t n,
			       uint32_t *ret_gap)
{
	struct allocator_memory *m = (struct allocator_memory *)s;

	(void)ret_gap;
	for (int i = 0; i < AM_PARTS; i++)
		if (addr >= am_start[i] && addr < am_start[i] + AM_SIZE) {
			if (n > am_start[i] + AM_SIZE - addr)
				n = (uint32_t)(am_start[i] + AM_SIZE - addr);
			memcpy(buf, m->bytes[i] + (addr - am_start[i]), n);
			return n;
		}
	return 0;
}

static inline struct err *am_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	(void)time;
	*ret = &((struct allocator_memory *)s)->maps;
	return NULL;
}

static inline struct err *am_threads(struct space *s, const struct space_thread **ret,
				     uint32_t *ret_n)
{
	*ret = &((struct allocator_memory *)s)->thread;
	*ret_n = 1;
	return NULL;
}

static inline struct err *am_resident(struct space *s, struct space_range in, space_range_vec *ret)
{
	struct allocator_memory *m = (struct allocator_memory *)s;

	for (int i = 0; i < AM_PARTS; i++)
		for (uint64_t k = 0; k < AM_SIZE / MEMORY_PAGE; k++) {
			uint64_t at = am_start[i] + k * MEMORY_PAGE;

			if (!m->touched[i][k] || at < in.start || at >= in.end)
				continue;
			if (ret->n && vec_last(ret)->end == at)
				vec_last(ret)->end += MEMORY_PAGE;
			else
				vec_push(ret, (struct space_range){ at, at + MEMORY_PAGE });
		}
	return NULL;
}

static inline void am_init(struct allocator_memory *m)
{
	static const struct space_ops ops = {
		.mappings = am_mappings,
		.memory = { { "memory", am_read } },
		.threads = am_threads,
		.resident = am_resident,
	};
	static const char *const path[AM_PARTS] = { "/lib/libmalloc.so", "", "", "" };

	memset(m, 0, sizeof(*m));
	m->space.ops = &ops;
	m->space.name = (char *)"made up";
	for (int i = 0; i < AM_PARTS; i++) {
		m->bytes[i] = xcalloc(1, AM_SIZE);
		m->map[i] = (struct mapping){ .start = am_start[i],
					      .end = am_start[i] + AM_SIZE,
					      .path = path[i],
					      .read = true,
					      .write = true };
	}
	m->maps = (struct mappings){ .v = m->map, .n = AM_PARTS };
	m->thread.regs.rsp = AM_STACK + 0x1000;
	m->thread.regs.fs_base = AM_FS;
}

static inline void am_fini(struct allocator_memory *m)
{
	for (int i = 0; i < AM_PARTS; i++)
		free(m->bytes[i]);
}

/* --- mimalloc: two pages, of 16 blocks of 64 bytes and of 4 of 4096 --- */

enum { AM_MI_SMALL = AM_HEAP + 0x10000 + 384, AM_MI_LARGE = AM_HEAP + 0x20000 };

static inline void am_mi_page(struct allocator_memory *m, int slice, uint32_t size, uint32_t n,
			      uint32_t used, uint64_t local_free, uint64_t thread_free)
{
	const uint64_t p = AM_HEAP + 264 + 80ull * (uint64_t)slice;

	am_put32(m, p, 1);
	am_put(m, p + 8, (uint64_t)n << 16 | (uint64_t)n << 32);
	am_put32(m, p + 24, used);
	am_put32(m, p + 28, size);
	am_put(m, p + 32, local_free);
	am_put(m, p + 40, thread_free);
	am_put(m, p + 48, AM_OWN); /* the heap */
}

static inline void am_mimalloc(struct allocator_memory *m)
{
	const uint64_t b = AM_MI_SMALL;

	am_put(m, AM_HEAP + 216, (uint64_t)AM_HEAP ^ 0x1234567);
	am_put(m, AM_HEAP + 224, 512);
	am_put(m, AM_HEAP + 232, 1);
	am_put(m, AM_HEAP + 248, 512);
	am_put32(m, AM_HEAP + 264, 1);
	am_put32(m, AM_HEAP + 264 + 28, 0x10000);
	am_mi_page(m, 1, 64, 16, 12, b + 64 * 5, (b + 64 * 6) | 2);
	am_put(m, AM_HEAP + 264 + 80 + 16, b); /* free: 0, 3, 4 */
	am_put(m, b, b + 64 * 3);
	am_put(m, b + 64 * 3, b + 64 * 4);
	am_mi_page(m, 2, 4096, 4, 4, 0, 0);
	am_put32(m, AM_HEAP + 264 + 240, 509); /* the rest is free */
	am_put(m, AM_OWN + 2840, AM_MI_LARGE); /* given back to the heap */
	for (uint64_t i = 1; i < 4; i++)
		am_put(m, AM_MI_LARGE + 4096 * i, 0);
}

/* --- jemalloc: a slab of 64 blocks of 64 bytes, and a block of 16 KB --- */

enum {
	AM_JE_LARGE = AM_HEAP + 0x10040,
	AM_JE_BINS = AM_FS - 0x1000,
	AM_JE_STACKS = AM_OWN + 0x1000
};

static inline void am_je_extent(struct allocator_memory *m, uint64_t at, uint64_t bits,
				uint64_t addr, uint64_t size)
{
	uint64_t page = addr >> 12, slab = bits >> 12 & 1;

	am_put(m, at, bits);
	am_put(m, at + 8, addr);
	am_put(m, at + 16, size);
	am_put(m, AM_META + page % (1 << 18) * 8, at | slab | (bits >> 20 & 255) << 48);
}

static inline void am_jemalloc(struct allocator_memory *m)
{
	am_put(m, AM_ROOT + 8 * ((uint64_t)AM_HEAP >> 30), AM_META);
	/* blocks 60 to 63 are free: the class is 4, `nfree` 4 */
	am_je_extent(m, AM_OWN, 1ull << 12 | 4ull << 20 | 4ull << 28, AM_HEAP, 0x1000);
	am_put(m, AM_OWN + 64, 0xfull << 60);
	am_je_extent(m, AM_OWN + 128, 36ull << 20, AM_JE_LARGE, 0x5000);
	for (uint64_t i = 0; i < 41; i++) { /* stacks of 8 words; that of the slab's has a block */
		const uint64_t empty = AM_JE_STACKS + 64 * (i + 1), full = empty - 64;

		am_put(m, AM_JE_BINS + 24 * i, i == 4 ? empty - 8 : empty);
		am_put(m, AM_JE_BINS + 24 * i + 16,
		       (empty & 0xffff) | (full & 0xffff) << 16 | (empty & 0xffff) << 32);
	}
	am_put(m, AM_JE_STACKS + 64 * 5 - 8, AM_HEAP + 64 * 7);
	for (uint64_t i = 0; i < 6; i++)
		am_put(m, AM_HEAP + 0x10000 + 0x1000 * i, 0);
}

/* --- tcmalloc: a span of blocks of 64 bytes, and one of a block of 8 KB --- */

enum { AM_TC_CLASSES = 40, AM_TC_CLASS = 5, AM_TC_CACHE = AM_OWN + 0x1000 };

static inline uint64_t am_tc_size(uint64_t class)
{
	return class < 2 ? 8 * class : class + 1 < AM_TC_CLASSES ? 16 * (class - 1) : 256 << 10;
}

static inline void am_tc_span(struct allocator_memory *m, uint64_t at, uint64_t page,
			      uint64_t class, uint64_t used, uint64_t objects)
{
	am_put(m, at, page);
	am_put(m, at + 8, 1);
	am_put(m, at + 32, objects);
	am_put(m, at + 40, used | class << 16);
	am_put(m, AM_META + page % (1 << 18) * 8, at);
}

static inline void am_tcmalloc(struct allocator_memory *m)
{
	const uint64_t page = AM_HEAP >> 13, b = AM_HEAP;

	am_put(m, AM_ROOT + 8 * (page >> 18), AM_META);
	am_tc_span(m, AM_OWN, page, AM_TC_CLASS, 126, b + 64 * 2); /* 2, 3 are free */
	am_put(m, b + 64 * 2, b + 64 * 3);
	am_tc_span(m, AM_OWN + 64, page + 1, 0, 0, 0);
	am_put(m, b + 0x2000, 0);
	for (uint64_t i = 0; i < AM_TC_CLASSES; i++) {
		am_put(m, AM_TC_CACHE + 32 * i + 24, am_tc_size(i));
		am_put(m, AM_CENTRAL + 1216 * i + 8, i);
	}
	am_put(m, AM_TC_CACHE + 32 * AM_TC_CLASS, b + 64 * 7);
	am_put32(m, AM_TC_CACHE + 32 * AM_TC_CLASS + 8, 1);
	am_put(m, AM_FS - 0x40, AM_TC_CACHE);
	/* one chain of two; what is behind it is old */
	am_put(m, AM_CENTRAL + 1216 * AM_TC_CLASS + 128, b + 64 * 8);
	am_put(m, b + 64 * 8, b + 64 * 9);
	am_put(m, AM_CENTRAL + 1216 * AM_TC_CLASS + 144, b + 64 * 20);
	am_put32(m, AM_CENTRAL + 1216 * AM_TC_CLASS + 1152, 1);
}

#endif
