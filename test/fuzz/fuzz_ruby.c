/* Memory of any bytes, taken for a Ruby interpreter's: walks end, and names are text. Input: a byte
 * that chooses the layout, memory. */
#include <assert.h>
#include <stdint.h>

#include "unit/ruby_memory.h"
#include "unit/language_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 1, NAME_MAX_BYTES = 4096 * 3 + 8 };

static const struct ruby_layout *layout(uint8_t i)
{
	return i % 6 ? ruby_layout(3, i % 6 - 1u) : ruby_layout(2, 7);
}

/* The walk that programs make, and the names of what it met. */
static void walk(struct ruby_memory *m)
{
	static struct language_made made;
	struct wire_language l;

	ruby_wire(&m->ruby.runtime, &l);
	assert(language_made_walk(&made, &m->made, &l, 0) <= WIRE_STACK_FRAMES);
	for (u32 i = 0; i < made.nasks; i++) {
		struct runtime_frame f;
		const void *met = ruby_learn(&m->ruby.runtime, made.asks[i].code,
					     made.asks[i].entry, made.asks[i].id);

		if (met)
			ruby_describe(&m->ruby.runtime, met, i, 0, &f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ruby_memory m;
	runtime_frame_vec f = { 0 };

	if (size < HEAD)
		return 0;
	ruby_memory_init(&m, layout(data[0]));
	m.made.n = (uint32_t)(size - HEAD < RUBY_BYTES ? size - HEAD : RUBY_BYTES);
	memcpy(m.made.bytes, data + HEAD, m.made.n);
	ruby_frames(&m.ruby.runtime, &m.made.thread, &f);
	assert(f.n <= RUNTIME_FRAMES_MAX);
	for (uint32_t i = 0; i < f.n; i++)
		assert(f.v[i].code &&
		       (!f.v[i].function || strlen(f.v[i].function) <= NAME_MAX_BYTES));
	vec_fini(&f);
	walk(&m);
	ruby_memory_fini(&m);
	return 0;
}
