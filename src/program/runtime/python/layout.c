/* The offsets of members in the structures of each version of CPython, on x86-64. They are the
 * values of offsetof() in each version's headers. 3.13 publishes its offsets (_Py_DebugOffsets in
 * pycore_runtime.h), and these replace the table's. */
#include <string.h>

#include "program/runtime/python/python.h"

#define VERSION(major, minor) ((major) << 8 | (minor))
#define LAYOUT(major, minor, lines_, ...) \
	{ \
		.version = VERSION(major, minor), .lines = lines_, __VA_ARGS__ \
	}

/* Members whose offsets are the same from 3.6 to 3.10. */
#define OBJECT_FRAMES \
	.frames = PYTHON_OBJECTS, .interpreter_next = 0, .interpreter_threads = 8, \
	.thread_next = 8, .thread_interpreter = 16, .thread_frame = 24, .frame_previous = 24, \
	.frame_code = 32, .object_type = 8
#define STRINGS_3 .text_length = 16, .text_state = 32, .bytes_length = 16, .bytes_data = 32
#define STRINGS_WIDE STRINGS_3, .text_ascii = 48, .text_other = 72
#define STRINGS_3_12 STRINGS_3, .text_ascii = 40, .text_other = 56
#define CODE_3_8 \
	.code_name = 112, .code_file = 104, .code_first_line = 40, .code_lines = 120, \
	.runtime_interpreters = 32, .finalizing = 16, .thread_id = 176

static const struct python_layout layouts[] = {
	LAYOUT(2, 7, PYTHON_LNOTAB_UNSIGNED, .frames = PYTHON_OBJECTS, .interpreter_threads = 8,
	       .thread_interpreter = 8, .thread_id = 144, .thread_frame = 16, .frame_previous = 24,
	       .frame_code = 32, .frame_instruction = 120, .code_name = 88, .code_file = 80,
	       .code_first_line = 96, .code_lines = 104, .object_type = 8, .bytes_length = 16,
	       .bytes_data = 36),
	LAYOUT(3, 6, PYTHON_LNOTAB, OBJECT_FRAMES, .thread_id = 152, .frame_instruction = 120,
	       .code_name = 104, .code_file = 96, .code_first_line = 36, .code_lines = 112,
	       STRINGS_WIDE),
	LAYOUT(3, 7, PYTHON_LNOTAB, OBJECT_FRAMES, .runtime_interpreters = 24, .finalizing = 16,
	       .thread_id = 176, .frame_instruction = 104, .code_name = 104, .code_file = 96,
	       .code_first_line = 36, .code_lines = 112, STRINGS_WIDE),
	LAYOUT(3, 8, PYTHON_LNOTAB, OBJECT_FRAMES, CODE_3_8, .frame_instruction = 104, STRINGS_WIDE,
	       .interpreter_modules = 56),
	LAYOUT(3, 9, PYTHON_LNOTAB, OBJECT_FRAMES, CODE_3_8, .frame_instruction = 104, STRINGS_WIDE,
	       .interpreter_modules = 856),
	LAYOUT(3, 10, PYTHON_LINETABLE, OBJECT_FRAMES, CODE_3_8, .frame_instruction = 96,
	       .wordcode = true, STRINGS_WIDE, .interpreter_modules = 856),
	LAYOUT(3, 11, PYTHON_LOCATIONS, .frames = PYTHON_CFRAMES, .runtime_interpreters = 40,
	       .finalizing = 16, .interpreter_threads = 16, .thread_next = 8,
	       .thread_interpreter = 16, .thread_id = 152, .thread_frame = 56, .cframe_frame = 8,
	       .cframe_previous = 16, .frame_previous = 48, .frame_code = 32,
	       .frame_instruction = 56, .frame_is_entry = 68, .code_name = 128, .code_file = 112,
	       .code_first_line = 72, .code_lines = 136, .code_instructions = 184, .object_type = 8,
	       STRINGS_WIDE, .interpreter_modules = 888),
	LAYOUT(3, 12, PYTHON_LOCATIONS, .frames = PYTHON_SHIMS, .shim = 3,
	       .runtime_interpreters = 40, .finalizing = 16, .interpreter_threads = 72,
	       .thread_next = 8, .thread_interpreter = 16, .thread_id = 136, .thread_frame = 56,
	       .cframe_frame = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70,
	       .code_name = 128, .code_file = 112, .code_first_line = 68, .code_lines = 136,
	       .code_instructions = 192, .object_type = 8, STRINGS_3_12,
	       .interpreter_modules = 944),
	LAYOUT(3, 13, PYTHON_LOCATIONS, .frames = PYTHON_SHIMS, .shim = 3,
	       .runtime_interpreters = 632, .interpreter_next = 7264, .interpreter_threads = 7344,
	       .thread_next = 8, .thread_interpreter = 16, .thread_id = 152, .thread_frame = 72,
	       .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .code_name = 128,
	       .code_file = 112, .code_first_line = 68, .code_lines = 136, .code_instructions = 200,
	       .object_type = 8, STRINGS_3_12, .interpreter_modules = 7656),
};

const struct python_layout *python_layout(uint32_t major, uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (major < 256 && minor < 256 && layouts[i].version == VERSION(major, minor))
			return &layouts[i];
	return NULL;
}

/* _Py_DebugOffsets of 3.13, up to the last member that is used. */
struct published {
	char cookie[8];
	uint64_t version, free_threaded;
	uint64_t runtime_size, finalizing, interpreters_head;
	uint64_t interpreter_size, interpreter_id, interpreter_next, threads_head, interpreter_gc,
		modules, sysdict, builtins, ceval_gil, gil_state, gil_enabled, gil_locked,
		gil_holder;
	uint64_t thread_size, thread_prev, thread_next, thread_interp, current_frame, thread_id,
		native_thread_id, datastack, thread_status;
	uint64_t frame_size, previous, executable, instr_ptr, localsplus, owner;
	uint64_t code_size, filename, name, qualname, linetable, firstlineno, argcount, localsnames,
		localskinds, code_adaptive;
	uint64_t object_size, ob_type;
};

enum { OFFSET_MAX = 1 << 20 };

bool python_published(struct space *s, uint64_t runtime, struct python_layout *l)
{
	struct published d;
	const uint64_t *words = &d.version;

	if (err_drop(space_read(s, runtime, &d, sizeof(d))))
		return false;
	if (memcmp(d.cookie, "xdebugpy", sizeof(d.cookie)))
		return l->version < PYTHON_3_13;
	if (d.version >> 16 != PYTHON_3_13 || l->version != PYTHON_3_13)
		return false;
	for (size_t i = 1; i < sizeof(d) / 8 - 1; i++)
		if (words[i] > OFFSET_MAX)
			return false;
	l->runtime_interpreters = (uint32_t)d.interpreters_head;
	l->finalizing = d.finalizing < d.interpreters_head
				? (uint32_t)(d.interpreters_head - d.finalizing)
				: 0;
	l->interpreter_next = (uint32_t)d.interpreter_next;
	l->interpreter_threads = (uint32_t)d.threads_head;
	l->interpreter_modules = (uint32_t)d.modules;
	l->thread_next = (uint32_t)d.thread_next;
	l->thread_interpreter = (uint32_t)d.thread_interp;
	l->thread_id = (uint32_t)d.thread_id;
	l->thread_frame = (uint32_t)d.current_frame;
	l->frame_previous = (uint32_t)d.previous;
	l->frame_code = (uint32_t)d.executable;
	l->frame_instruction = (uint32_t)d.instr_ptr;
	l->frame_owner = (uint32_t)d.owner;
	l->code_file = (uint32_t)d.filename;
	l->code_name = (uint32_t)d.qualname;
	l->code_lines = (uint32_t)d.linetable;
	l->code_first_line = (uint32_t)d.firstlineno;
	l->code_instructions = (uint32_t)d.code_adaptive;
	l->object_type = (uint32_t)d.ob_type;
	return true;
}
