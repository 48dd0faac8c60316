/* Memory of any bytes, taken for a JVM's: walks end, and names are text. Input: a byte of flags,
 * offsets of pc, sp and bp in the memory, two bytes each, memory. */
#include <assert.h>
#include <stdint.h>

#include "unit/jvm_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 7, STEPS = 64, CALLED = 1, FIRST = 2, DENSE = 4, OLD_NUMBERS = 8 };

static uint64_t address(const uint8_t *p)
{
	return JVM_BASE + (uint64_t)(p[0] | p[1] << 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct jvm_memory m;
	runtime_frame_vec f = { 0 };
	struct unwind_cursor c = { 0 };

	if (size < HEAD)
		return 0;
	jvm_memory_init(&m);
	m.made.n = (uint32_t)(size - HEAD < JVM_BYTES ? size - HEAD : JVM_BYTES);
	memcpy(m.made.bytes, data + HEAD, m.made.n);
	m.jvm.dense = data[0] & DENSE;
	m.jvm.layout.excluded = !(data[0] & OLD_NUMBERS);
	c = (struct unwind_cursor){ .pc = address(data + 1),
				    .sp = address(data + 3),
				    .bp = address(data + 5),
				    .called = data[0] & CALLED,
				    .first = data[0] & FIRST };
	m.made.thread.regs.rbx = c.bp;
	m.made.thread.regs.r13 = c.sp + 64;
	for (uint32_t i = 0; i < STEPS; i++) {
		uint64_t sp = c.sp;

		if (!jvm_step(&m.jvm.runtime, &m.made.thread, &c, &f) || c.sp <= sp)
			break;
		c.called = true;
		c.first = false;
		c.index++;
	}
	for (uint32_t i = 0; i < f.n; i++)
		assert(f.v[i].code &&
		       (!f.v[i].function || strlen(f.v[i].function) <= 4096 * 2 + 1));
	vec_fini(&f);
	jvm_memory_fini(&m);
	return 0;
}
