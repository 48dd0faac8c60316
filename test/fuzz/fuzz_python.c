/* Memory of any bytes, taken for a Python interpreter's: walks of threads and tasks end, and names
 * are text. Input: a byte that chooses the layout, the address of a code object's type, memory. */
#include <assert.h>
#include <stdint.h>

#include "unit/python_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 9, VERSIONS = 9, MODULES = 24, READS_MAX = 1 << 20 };

static const struct python_layout *layout(uint8_t i)
{
	return i % VERSIONS ? python_layout(3, 5 + i % VERSIONS) : python_layout(2, 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct python_memory m;
	struct runtime_tasks tasks = { 0 };
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
	m.python.layout.interpreter_modules = MODULES;
	m.python.runtime.type = &runtime_python;
	space_limit(&m.made.space, READS_MAX, UINT64_MAX);
	err_free(runtime_tasks(&m.python.runtime, &tasks));
	for (uint32_t i = 0; i < tasks.v.n; i++)
		assert(tasks.v.v[i].frame + tasks.v.v[i].nframes <= tasks.frames.n);
	runtime_tasks_fini(&tasks);
	python_memory_fini(&m);
	return 0;
}
