/* A heap of V8 that is whole but for some words that the input names: 2 bytes that choose a word,
 * and 8 bytes of its new value. From 0xff00 on, the 2 bytes choose one of the numbers that V8
 * publishes, and 4 bytes are its new value. Every walk ends, and no object is there twice. */
#include <assert.h>

#include "unit/v8_heap_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATCH = 10, NUMBERS = sizeof(struct v8_numbers) / 4, FIRST_NUMBER = 0xff00 };

struct input {
	const uint8_t *data;
	size_t size;
};

static uint32_t patch_place(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static void patch_numbers(struct v8_numbers *n, const struct input *in)
{
	for (size_t i = 0; i + PATCH <= in->size; i += PATCH) {
		const uint8_t *p = in->data + i;
		const uint32_t place = patch_place(p);

		if (place >= FIRST_NUMBER)
			memcpy((char *)n + (place - FIRST_NUMBER) % NUMBERS * 4, p + 2, 4);
	}
}

static void read_made(struct memory_copy *c, struct heap_memory *m, const struct input *in,
		      bool counts)
{
	const struct graph_wanted w = { .labels = true, .counts = counts };
	struct space *s = memory_copy_space(c, &m->space);
	struct graph *g = graph_new(&w);
	struct v8_reader x;
	struct err *e;
	struct v8 v;

	vh_reader(&x, &v, c, s, g);
	patch_numbers(&v.n, in);
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
	const struct input in = { data, size };
	struct memory_copy *c = NULL;
	struct err *e;

	vh_make(&m);
	for (; size >= PATCH; data += PATCH, size -= PATCH) {
		const uint32_t place = patch_place(data), word = place % (HM_PARTS * HM_SIZE / 8);

		if (place < FIRST_NUMBER)
			memcpy(m.bytes[word / (HM_SIZE / 8)] + word % (HM_SIZE / 8) * 8, data + 2,
			       8);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	read_made(c, &m, &in, false);
	read_made(c, &m, &in, true);
	memory_copy_free(c);
	return 0;
}
