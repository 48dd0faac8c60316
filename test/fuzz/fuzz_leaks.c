/* A heap that is whole but for some words that the input names: 2 bytes that choose a word, 8 bytes
 * of its new value. Every walk ends, and no block is counted twice. */
#include <assert.h>

#include "unit/heap_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHUNKS = 40, PATCH = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct heap_memory m;
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;
	uint64_t before = 0, held = 0;
	struct err *e;

	heap_memory_init(&m);
	heap_memory_chunk(&m, 0x290, false);
	for (int i = 0; i < CHUNKS; i++) {
		uint64_t at = heap_memory_chunk(&m, 0x20 + 0x10 * (i % 5), i % 3 == 0);

		heap_memory_put(&m, i % 7 ? at + 8 : HM_VAR + 8 * (uint64_t)i, before);
		before = at;
	}
	for (; size >= PATCH; data += PATCH, size -= PATCH) {
		uint32_t word = (data[0] | (uint32_t)data[1] << 8) % (HM_PARTS * HM_SIZE / 8);

		memcpy(m.bytes[word / (HM_SIZE / 8)] + word % (HM_SIZE / 8) * 8, data + 2, 8);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	e = leaks_find(c, &l);
	if (!e) {
		for (uint32_t i = 0; i < l->blocks.n; i++)
			held += 1 + l->blocks.v[i].held;
		assert(held == l->leaked && l->leaked <= l->used);
		assert(l->used_bytes + l->unused_bytes <= HM_PARTS * HM_SIZE);
		leaks_free(l);
	}
	err_free(e);
	memory_copy_free(c);
	return 0;
}
