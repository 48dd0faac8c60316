/* A heap of mimalloc, jemalloc or tcmalloc that is whole but for some words that the input names: a
 * byte that chooses the allocator, then 2 bytes that choose one of the words of its structures, and
 * 8 bytes of its new value. Every walk ends, and no block is counted twice. */
#include <assert.h>

#include "unit/allocator_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATCH = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const make[])(struct allocator_memory *) = { am_mimalloc, am_jemalloc,
								   am_tcmalloc };
	static struct allocator_memory m;
	struct memory_copy *c = NULL;
	struct leaks *l = NULL;
	uint64_t held = 0, word;
	struct err *e;

	if (!size)
		return 0;
	am_init(&m);
	make[data[0] % 3](&m);
	for (data++, size--; size >= PATCH; data += PATCH, size -= PATCH) {
		memcpy(&word, data + 2, sizeof(word));
		am_put(&m, m.put[(data[0] | (uint32_t)data[1] << 8) % m.nput], word);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	e = leaks_find(c, &l);
	if (!e) {
		for (uint32_t i = 0; i < l->blocks.n; i++)
			held += 1 + l->blocks.v[i].held;
		assert(held == l->leaked && l->leaked <= l->used);
		leaks_free(l);
	}
	err_free(e);
	memory_copy_free(c);
	am_fini(&m);
	return 0;
}
