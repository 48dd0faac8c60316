/* A heap of HotSpot that is whole but for some words that the input names: a byte that chooses how
 * wide pointers are, then 2 bytes that choose a word and 8 bytes of its new value. Every walk ends,
 * and no object is counted twice. */
#include <assert.h>

#include "memory/heapfile/hprof_write.h"
#include "unit/java_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATCH = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct heap_memory m;
	const struct graph_wanted w = { .labels = true, .contents = true, .values = true };
	struct memory_copy *c = NULL;
	struct java_reader x;
	struct graph *g;
	struct space *s;
	struct err *e;
	struct jvm j;
	struct out o;
	uint8_t which;

	if (!size)
		return 0;
	which = *data++;
	size--;
	jm_make(&m);
	if (which & 32)
		jm_make_zgc(&m);
	for (; size >= PATCH; data += PATCH, size -= PATCH) {
		uint32_t word = (data[0] | (uint32_t)data[1] << 8) % (HM_PARTS * HM_SIZE / 8);

		memcpy(m.bytes[word / (HM_SIZE / 8)] + word % (HM_SIZE / 8) * 8, data + 2, 8);
	}
	e = memory_copy(&m.space, &c);
	assert(!e);
	s = memory_copy_space(c, &m.space);
	g = graph_new(&w);
	jm_reader(&x, &j, c, s, g);
	x.narrow = !(which & 1);
	x.narrow_class = !(which & 2);
	x.oop_shift = which >> 2 & 3;
	if (which & 16) { /* all that is known of G1 is in the same words */
		x.collector = JAVA_G1;
		x.layout.g1_manager = (struct jvm_member){ 64, 8 };
		x.layout.manager_regions = (struct jvm_member){ 8, 8 };
		x.layout.regions_base = (struct jvm_member){ 16, 8 };
		x.layout.regions_length = (struct jvm_member){ 24, 8 };
		x.layout.region_bottom = (struct jvm_member){ 8, 8 };
		x.layout.region_top = (struct jvm_member){ 64, 8 };
		x.layout.region_type = (struct jvm_member){ 16, 4 };
		x.layout.type_tag = (struct jvm_member){ 0, 4 };
		x.layout.size.g1_heap = 256;
		x.layout.size.region = 64;
	}
	if (which & 32)
		jm_zgc(&x);
	e = java_read(&x);
	if (!e)
		e = graph_finish(g);
	if (!e) {
		assert(graph_totals(g)->repeated == 0);
		assert(graph_totals(g)->objects <= HM_PARTS * HM_SIZE / 8);
		assert(graph_reach(g)->objects <= graph_totals(g)->objects);
		out_init(&o, NULL);
		hprof_write(g, &o);
		out_fini(&o);
	}
	err_free(e);
	jm_reader_fini(&x);
	graph_free(g);
	space_free(s);
	memory_copy_free(c);
	return 0;
}
