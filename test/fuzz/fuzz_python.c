/* Memory of any bytes, taken for a Python interpreter's: walks end, and names are text. Input: a
 * byte that chooses the layout, the address of a code object's type, memory. */
#include <assert.h>
#include <stdint.h>

#include "unit/python_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 9, VERSIONS = 9 };

static const struct python_layout *layout(uint8_t i)
{
	return i % VERSIONS ? python_layout(3, 5 + i % VERSIONS) : python_layout(2, 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct python_memory m;
	runtime_frame_vec f = { 0 };

	if (size < HEAD)
		return 0;
	python_memory_init(&m, layout(data[0]));
	memcpy(&m.python.code_type, data + 1, 8);
	m.made.n = (uint32_t)(size - HEAD < PYTHON_BYTES ? size - HEAD : PYTHON_BYTES);
	memcpy(m.made.bytes, data + HEAD, m.made.n);
	/* 3.13's interpreter is larger than the memory here */
	if (m.python.layout.interpreter_threads > 0x1000) {
		m.python.layout.interpreter_next = 8;
		m.python.layout.interpreter_threads = 16;
	}
	python_frames(&m.python.runtime, &m.made.thread, &f);
	assert(f.n <= RUNTIME_FRAMES_MAX);
	for (uint32_t i = 0; i < f.n; i++)
		assert(f.v[i].code && (!f.v[i].function || strlen(f.v[i].function) <= 4096 * 4));
	vec_fini(&f);
	python_memory_fini(&m);
	return 0;
}
