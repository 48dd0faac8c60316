/* A heap of Ruby or Python that is whole but for some words that the input names: a byte that
 * chooses the language, then 2 bytes that choose a word and 8 bytes of its new value. Every walk
 * ends, and no object is counted twice. */
#include <assert.h>

#include "unit/objects_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATCH = 10 };

static struct err *read_heap(const struct memory_copy *c, struct space *s, struct graph *g,
			     uint8_t which)
{
	struct python p;
	struct ruby r;
	struct err *e;

	om_ruby_init(&r, s);
	om_python_init(&p, s);
	if (which & 1)
		p.layout = *python_layout(3, 8u + (which >> 1) % 6);
	else
		r.layout = which >> 1 & 7 ? *ruby_layout(3, (which >> 1 & 7) % 5u)
					  : *ruby_layout(3, 1);
	e = which & 1 ? python_read(c, &p, g) : ruby_read(c, &r, g);
	arena_fini(&r.names);
	arena_fini(&p.names);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct heap_memory m;
	const struct graph_wanted w = { .labels = true };
	struct memory_copy *c = NULL;
	struct graph *g;
	struct space *s;
	struct err *e;
	uint8_t which;

	if (!size)
		return 0;
	which = *data++;
	size--;
	if (which & 1)
		om_make_python(&m);
	else
		om_make_ruby(&m);
	for (; size >= PATCH; data += PATCH, size -= PATCH) {
		uint32_t word = (data[0] | (uint32_t)data[1] << 8) % (HM_PARTS * HM_SIZE / 8);

		memcpy(m.bytes[word / (HM_SIZE / 8)] + word % (HM_SIZE / 8) * 8, data + 2, 8);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	s = memory_copy_space(c, &m.space);
	g = graph_new(&w);
	e = read_heap(c, s, g, which);
	if (!e)
		e = graph_finish(g);
	if (!e) {
		assert(graph_totals(g)->repeated == 0);
		assert(graph_totals(g)->objects <= HM_PARTS * HM_SIZE / 8);
		assert(graph_reach(g)->objects <= graph_totals(g)->objects);
	}
	err_free(e);
	graph_free(g);
	space_free(s);
	memory_copy_free(c);
	return 0;
}
