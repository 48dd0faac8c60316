/* A heap of V8 that is whole but for some words that the input names: 2 bytes that choose a word,
 * and 8 bytes of its new value. Every walk ends, and no object is there twice. */
#include <assert.h>

#include "unit/v8_heap_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATCH = 10 };

static void read_made(struct memory_copy *c, struct heap_memory *m, bool counts)
{
	const struct graph_wanted w = { .labels = true, .counts = counts };
	struct space *s = memory_copy_space(c, &m->space);
	struct graph *g = graph_new(&w);
	struct v8_reader x;
	struct err *e;
	struct v8 v;

	vh_reader(&x, &v, c, s, g);
	e = v8_read(&x);
	if (!e)
		e = graph_finish(g);
	if (!e) {
		assert(graph_totals(g)->repeated == 0);
		assert(graph_totals(g)->objects <= HM_PARTS * HM_SIZE / 8);
		if (!counts)
			assert(graph_reach(g)->objects <= graph_totals(g)->objects);
	}
	err_free(e);
	vh_reader_fini(&x);
	graph_free(g);
	space_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct heap_memory m;
	struct memory_copy *c = NULL;
	struct err *e;

	vh_make(&m);
	for (; size >= PATCH; data += PATCH, size -= PATCH) {
		uint32_t word = (data[0] | (uint32_t)data[1] << 8) % (HM_PARTS * HM_SIZE / 8);

		memcpy(m.bytes[word / (HM_SIZE / 8)] + word % (HM_SIZE / 8) * 8, data + 2, 8);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	read_made(c, &m, false);
	read_made(c, &m, true);
	memory_copy_free(c);
	return 0;
}
