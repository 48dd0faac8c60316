/* The size classes of glibc, jemalloc and mimalloc. */
#include "memory/alloc/size_classes.h"

#include "base/mem.h"

enum {
	CHUNK_MIN = 32,
	CHUNK_STEP = 16,
	CHUNK_HEAD = 8,
	MAPPED_FROM = 128 << 10, /* glibc: M_MMAP_THRESHOLD */
	MAPPED_HEAD = 8,         /* besides the chunk's */
	PAGE = 4096,
	MI_LARGE = 128 << 10, /* mimalloc: larger blocks are whole slices */
	MI_SLICE = 64 << 10,
	SIZE_MAX_BITS = 60, /* larger ones have no class */
};

const char *const size_classes_names[CLASSES_N] = { "glibc", "jemalloc", "mimalloc" };

static uint64_t glibc_bytes(uint64_t size)
{
	uint64_t chunk = round_up(size + CHUNK_HEAD, CHUNK_STEP);

	if (chunk < CHUNK_MIN)
		chunk = CHUNK_MIN;
	return chunk < MAPPED_FROM ? chunk : round_up(chunk + MAPPED_HEAD, PAGE);
}

/* Rounds up to the next of four steps of a power of two. n > 4. */
static uint64_t quarter(uint64_t n)
{
	uint32_t bits = 63 - (uint32_t)__builtin_clzll(n - 1);

	return round_up(n, 1ull << (bits - 2));
}

static uint64_t jemalloc_bytes(uint64_t size)
{
	if (size <= 8)
		return 8;
	return size <= 128 ? round_up(size, 16) : quarter(size);
}

static uint64_t mimalloc_bytes(uint64_t size)
{
	uint64_t words = (size + 7) / 8;

	if (words <= 1)
		return 8;
	if (words <= 8)
		return round_up(words, 2) * 8;
	return size <= MI_LARGE ? quarter(words) * 8 : round_up(size, MI_SLICE);
}

uint64_t size_classes_bytes(enum size_classes c, uint64_t size)
{
	if (size >> SIZE_MAX_BITS)
		return size;
	switch (c) {
	case CLASSES_GLIBC: return glibc_bytes(size);
	case CLASSES_JEMALLOC: return jemalloc_bytes(size);
	default: return mimalloc_bytes(size);
	}
}

void size_classes_init(struct size_classes_table *t)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(t->bytes); i++)
		for (int c = 0; c < CLASSES_N; c++)
			t->bytes[i][c] = (uint16_t)size_classes_bytes(c, i * 8ull);
}
