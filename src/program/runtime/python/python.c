/* Recognises CPython in an object, by the exported symbols. */
#include "program/runtime/python/python.h"

#include <string.h>

#include "wire/language.h"

enum { BUDGET = 64 << 20 };

/* Names that each minor version was the first to export, newest version first. The first name that
 * the object exports gives the version. From 3.11 on Py_Version holds the version. */
static const struct {
	const char *name;
	uint32_t major, minor;
} firsts[] = {
	{ "PyIter_Send", 3, 10 },
	{ "PyObject_CallNoArgs", 3, 9 },
	{ "PyCode_NewWithPosOnlyArgs", 3, 8 },
	{ "PyContextVar_New", 3, 7 },
	{ "PyOS_FSPath", 3, 6 },
	{ "PyString_FromString", 2, 7 },
};

static bool is_library(const char *name)
{
	return !strncmp(name, "libpython", 9) || !strncmp(name, "python", 6);
}

static bool symbol(const struct python *p, const char *name, uint64_t *ret)
{
	if (!object_symbol_value(p->object, name, ret))
		return false;
	*ret += p->bias;
	return true;
}

static void find_version(struct python *p, uint32_t *ret_major, uint32_t *ret_minor)
{
	uint64_t addr, v;

	if (symbol(p, "Py_Version", &addr) && space_word(p->runtime.space, addr, &v)) {
		*ret_major = v >> 24 & 255;
		*ret_minor = v >> 16 & 255;
		snprintf(p->runtime.version, sizeof(p->runtime.version), "%u.%u.%u", *ret_major,
			 *ret_minor, (uint32_t)(v >> 8 & 255));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(firsts); i++)
		if (symbol(p, firsts[i].name, &addr)) {
			*ret_major = firsts[i].major;
			*ret_minor = firsts[i].minor;
			break;
		}
	snprintf(p->runtime.version, sizeof(p->runtime.version), "%u.%u", *ret_major, *ret_minor);
}

/* Finds the list of interpreters before 3.7, where the list has no symbol. Reads its address from a
 * function that returns the head: mov head(%rip), %rax; ret. */
static bool head_by_function(struct python *p)
{
	static const uint8_t mov[] = { 0x48, 0x8b, 0x05 };
	uint64_t f;
	uint8_t code[8];
	int32_t to;

	if (!object_symbol_value(p->object, "PyInterpreterState_Head", &f) ||
	    object_read(p->object, f, code, sizeof(code)) != sizeof(code) ||
	    memcmp(code, mov, sizeof(mov)) || code[7] != 0xc3)
		return false;
	memcpy(&to, code + 3, sizeof(to));
	p->interpreters = p->bias + f + 7 + (uint64_t)(int64_t)to;
	return true;
}

static bool find_structures(struct python *p)
{
	const struct object_symbol *loop;
	uint64_t runtime;

	if (!p->layout.runtime_interpreters) {
		if (!head_by_function(p))
			return false;
	} else {
		if (!symbol(p, "_PyRuntime", &runtime) ||
		    !python_published(p->runtime.space, runtime, &p->layout))
			return false;
		p->interpreters = runtime + p->layout.runtime_interpreters;
	}
	loop = object_find_name(p->object, "_PyEval_EvalFrameDefault");
	if (!loop)
		loop = object_find_name(p->object, "PyEval_EvalFrameEx");
	if (loop) {
		p->loop = p->bias + loop->addr;
		p->loop_size = loop->size;
	}
	return symbol(p, "PyCode_Type", &p->code_type);
}

/* Checks the layout: the first thread of the first interpreter must point back to it. */
static bool is_closed(const struct python *p)
{
	struct space *s = p->runtime.space;
	uint64_t interpreter, thread, back;

	if (!space_word(s, p->interpreters, &interpreter))
		return false;
	if (!interpreter)
		return true; /* Python has not begun, or has ended */
	return space_word(s, interpreter + p->layout.interpreter_threads, &thread) &&
	       (!thread || (space_word(s, thread + p->layout.thread_interpreter, &back) &&
			    back == interpreter));
}

static void python_free(struct runtime *r)
{
	struct python *p = (struct python *)r;

	arena_fini(&p->names);
	hash_fini(&p->codes);
	free(p);
}

static struct err *python_open(struct space *s, struct object *o, uint64_t bias,
			       struct runtime **ret)
{
	const struct python_layout *layout;
	uint32_t major = 0, minor = 0;
	struct err *e = NULL;
	struct python *p;
	uint64_t addr;

	*ret = NULL;
	if (!object_symbol_value(o, "PyInterpreterState_Head", &addr))
		return NULL;
	p = xcalloc(1, sizeof(*p));
	p->runtime.type = &runtime_python;
	p->runtime.space = s;
	p->object = o;
	p->bias = bias;
	p->budget = BUDGET;
	arena_init(&p->names);
	find_version(p, &major, &minor);
	layout = python_layout(major, minor);
	if (!layout) {
		e = err_new(0, "%s: the structures of Python %s are not known to descry",
			    object_path(o), p->runtime.version);
	} else {
		p->layout = *layout;
		if (!find_structures(p) || !is_closed(p))
			e = err_new(0, "%s: the structures of Python %s are not as they should be",
				    object_path(o), p->runtime.version);
	}
	p->object = NULL;
	if (!e) {
		object_free(o); /* all needed facts are known now */
		*ret = &p->runtime;
		return NULL;
	}
	python_free(&p->runtime);
	return e;
}

static bool is_loop(const struct runtime *r, uint64_t addr)
{
	const struct python *p = (const struct python *)r;

	return addr - p->loop < p->loop_size;
}

static void loop_range(const struct runtime *r, uint64_t *ret_start, uint64_t *ret_size)
{
	const struct python *p = (const struct python *)r;

	*ret_start = p->loop;
	*ret_size = p->loop_size;
}

/* Sets where the first of some members begins and how many bytes there are to the end of the last.
 * Each has 8 bytes, in words of 8 bytes. */
static bool near_each_other(const uint32_t *members, size_t n, uint32_t *ret_low,
			    uint32_t *ret_size)
{
	uint32_t low = UINT32_MAX, high = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t word = members[i] & ~7u;

		low = word < low ? word : low;
		high = word > high ? word : high;
	}
	*ret_low = low;
	*ret_size = high + 8 - low;
	return *ret_size < WIRE_PYTHON_NEAR;
}

static bool python_wire(struct runtime *r, struct wire_language *ret)
{
	const struct python *p = (const struct python *)r;
	const struct python_layout *l = &p->layout;
	const uint32_t frame[] = {
		l->frame_previous,
		l->frame_code,
		l->frame_instruction,
		l->frames == PYTHON_SHIMS     ? l->frame_owner
		: l->frames == PYTHON_CFRAMES ? l->frame_is_entry
					      : l->frame_code,
	};
	const uint32_t code[] = {
		l->code_file,
		l->code_file + (WIRE_PYTHON_ABOUT - 1) * 8,
		l->code_first_line,
	};

	_Static_assert((int)WIRE_LANGUAGE_OBJECTS == PYTHON_OBJECTS &&
			       (int)WIRE_LANGUAGE_CFRAMES == PYTHON_CFRAMES &&
			       (int)WIRE_LANGUAGE_SHIMS == PYTHON_SHIMS,
		       "kinds of frames");
	*ret = (struct wire_language){ .root = p->interpreters, .frames = l->frames };
	ret->python = (struct wire_python){
		.shim = l->shim,
		.scale = l->wordcode ? 2 : 1,
		.interpreter_threads = l->interpreter_threads,
		.thread_next = l->thread_next,
		.thread_id = l->thread_id,
		.thread_frame = l->thread_frame,
		.by_cframe = python_by_cframe(l),
		.cframe_frame = l->cframe_frame,
		.frame_previous = l->frame_previous,
		.frame_code = l->frame_code,
		.frame_instruction = l->frame_instruction,
		.frame_owner = l->frame_owner,
		.frame_is_entry = l->frame_is_entry,
		.code_about = l->code_file,
		.code_line = l->code_first_line,
		.code_instructions = l->code_instructions,
		.finalizing = l->finalizing,
	};
	return near_each_other(frame, ARRAY_SIZE(frame), &ret->python.frame_low,
			       &ret->python.frame_size) &&
	       near_each_other(code, ARRAY_SIZE(code), &ret->python.code_low,
			       &ret->python.code_size);
}

const struct runtime_type runtime_python = {
	.name = "python",
	.is_library = is_library,
	.open = python_open,
	.frames = python_frames,
	.tasks = python_tasks,
	.is_loop = is_loop,
	.loop = loop_range,
	.wire = python_wire,
	.learn = python_learn,
	.describe = python_describe,
	.free = python_free,
};
