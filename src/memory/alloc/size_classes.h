/* What allocators take for a block of a size: their size classes.
 *
 * In: the size that a program asked for. Out: the bytes that the allocator sets aside for it, with
 * the block's header where there is one.
 */
#ifndef DESCRY_MEMORY_ALLOC_SIZE_CLASSES_H
#define DESCRY_MEMORY_ALLOC_SIZE_CLASSES_H

#include <stdint.h>

enum size_classes { CLASSES_GLIBC, CLASSES_JEMALLOC, CLASSES_MIMALLOC, CLASSES_N };
extern const char *const size_classes_names[CLASSES_N];

/* glibc: chunks by 16 bytes, from 128 KB on mappings of their own (its threshold may grow).
 * jemalloc 5, mimalloc 2: four classes of each power of two. */
uint64_t size_classes_bytes(enum size_classes c, uint64_t size);

/* The same of all, fast. */
struct size_classes_table {
	uint16_t bytes[513][CLASSES_N]; /* by size in units of 8 */
};
void size_classes_init(struct size_classes_table *t);
static inline uint64_t size_classes_get(const struct size_classes_table *t, enum size_classes c,
					uint64_t size)
{
	return size <= 4096 ? t->bytes[(size + 7) / 8][c] : size_classes_bytes(c, size);
}

#endif
