/* Memory of any bytes, taken for V8's: walks end, and names are text. Input: a byte of flags,
 * offsets of pc, sp and bp in the memory, two bytes each, memory. */
#include <assert.h>
#include <stdint.h>

#include "unit/javascript_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	HEAD = 7,
	STEPS = 64,
	CALLED = 1,
	FIRST = 2,
	VERSION_SHIFT = 2,
	UNLISTED = 1 << 7,
	NAME_MAX_ = 4096 * 3,
	READS_MAX = 150
};

static uint64_t address(const uint8_t *p)
{
	return V8_BASE + (uint64_t)(p[0] | p[1] << 8);
}

/* The walk of programs, and the names that it asks for. */
static void walk(struct v8_memory *m, const uint8_t *data)
{
	static struct machine_made w;
	u32 n = js_made_walk(&w, m, address(data + 1), address(data + 3), address(data + 5),
			     data[0] & CALLED, !(data[0] & UNLISTED));

	assert(n <= WIRE_STACK_FRAMES && w.reads <= n * READS_MAX + READS_MAX);
	for (u32 i = 0; i < w.nasks; i++) {
		const struct wire_unwind_ask *a = &w.asks[i];
		const void *met = v8_learn(&m->v8.runtime, a->code, a->entry, a->id);
		struct runtime_frame f;
		uint32_t many = 1;

		for (uint32_t k = 0; met && k < many; k++) {
			many = v8_describe(&m->v8.runtime, met, WIRE_LANGUAGE_AT(w.frames[0]), k,
					   &f);
			assert(f.function && strlen(f.function) <= NAME_MAX_);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int32_t versions[][2] = { { 10, 2 }, { 11, 3 }, { 12, 4 }, { 13, 6 } };
	static struct v8_memory m;
	runtime_frame_vec f = { 0 };
	struct unwind_cursor c = { 0 };
	const int32_t *version;

	if (size < HEAD)
		return 0;
	version = versions[data[0] >> VERSION_SHIFT & 3];
	v8_memory_init(&m);
	m.v8.version = v8_version_find(version[0], version[1]);
	m.made.n = (uint32_t)(size - HEAD < V8_BYTES ? size - HEAD : V8_BYTES);
	memcpy(m.made.bytes, data + HEAD, m.made.n);
	c = (struct unwind_cursor){ .pc = address(data + 1),
				    .sp = address(data + 3),
				    .bp = address(data + 5),
				    .called = data[0] & CALLED,
				    .first = data[0] & FIRST };
	m.made.thread.regs.rdi = V8_JS_FUNCTION + 1;
	m.made.thread.regs.r12 = V8_CODES + 1;
	m.made.thread.regs.r9 = 65;
	m.made.thread.regs.r15 = V8_TABLE;
	for (uint32_t i = 0; i < STEPS; i++) {
		uint64_t sp = c.sp;

		if (!v8_step(&m.v8.runtime, &m.made.thread, &c, &f) || c.sp <= sp)
			break;
		c.called = true;
		c.first = false;
		c.index++;
	}
	for (uint32_t i = 0; i < f.n; i++)
		assert(f.v[i].code && f.v[i].function && strlen(f.v[i].function) <= NAME_MAX_);
	vec_fini(&f);
	walk(&m, data);
	v8_memory_fini(&m);
	return 0;
}
