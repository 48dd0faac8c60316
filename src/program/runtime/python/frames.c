/* Reads the frames of a thread that runs Python. */

#include "program/runtime/circle.h"
#include "program/runtime/python/python.h"

enum { INTERPRETERS_MAX = 256, THREADS_MAX = 1 << 16 };

/* A walk along a chain of frames. */
struct chain {
	struct python *p;
	runtime_frame_vec *ret;
	uint64_t cframe;  /* PYTHON_CFRAMES: the _PyCFrame of the current frame's run of the loop */
	uint32_t steps;   /* frames read */
	uint32_t threads; /* states of threads read */
};

static bool word(const struct python *p, uint64_t addr, uint64_t *ret)
{
	return space_word(p->runtime.space, addr, ret);
}

static bool byte(const struct python *p, uint64_t addr, uint8_t *ret)
{
	return space_read_some(p->runtime.space, addr, ret, 1) == 1;
}

/* Finds the code object of a frame and the place in it. *ret_at: the byte of the code; below 0: the
 * function has not begun. Up to 3.10, f_lasti is -1 before the first instruction. */
static bool place(const struct python *p, uint64_t frame, uint64_t *ret_code, int64_t *ret_at)
{
	const struct python_layout *l = &p->layout;
	uint64_t instruction;
	int32_t at;

	if (!word(p, frame + l->frame_code, ret_code))
		return false;
	if (l->frames == PYTHON_OBJECTS) {
		if (space_read_some(p->runtime.space, frame + l->frame_instruction, &at, 4) != 4)
			return false;
		*ret_at = (int64_t)at * (l->wordcode ? 2 : 1);
		return true;
	}
	if (!word(p, frame + l->frame_instruction, &instruction))
		return false;
	*ret_at = (int64_t)(instruction - *ret_code - l->code_instructions);
	return true;
}

bool python_frame_at(struct python *p, uint64_t frame, struct runtime_frame *ret)
{
	const struct python_code *code;
	uint64_t object;
	int64_t at;

	if (!place(p, frame, &object, &at))
		return false;
	code = python_code(p, object);
	if (!code)
		return false;
	*ret = (struct runtime_frame){ .code = code->address,
				       .function = code->function,
				       .file = code->file,
				       .line = at < 0 ? code->first_line
						      : python_line(p, code, (uint32_t)at),
				       .frame = frame };
	return true;
}

static bool add(struct chain *c, uint64_t frame)
{
	struct runtime_frame f;

	if (!python_frame_at(c->p, frame, &f))
		return false;
	vec_push(c->ret, f);
	return true;
}

/* Marks the last frame added as the entry of its run: native code called it. */
static void end_run(struct chain *c, uint32_t first, uint64_t anchor)
{
	if (c->ret->n == first)
		return;
	vec_last(c->ret)->entry = true;
	vec_last(c->ret)->anchor = anchor;
}

/* Adds a frame of a version up to 3.10. Each frame has its own run of the loop. */
static bool object_frame(struct chain *c, uint64_t frame)
{
	if (!add(c, frame))
		return false;
	end_run(c, c->ret->n - 1, 0);
	return true;
}

/* Adds a frame of 3.11. Ends the run of the loop when the frame is the entry of the run. */
static bool step_cframes(struct chain *c, uint64_t frame, uint32_t *first)
{
	const struct python_layout *l = &c->p->layout;
	uint8_t owner, entry;

	if (!byte(c->p, frame + l->frame_owner, &owner) ||
	    !byte(c->p, frame + l->frame_is_entry, &entry) || !add(c, frame))
		return false;
	if (!entry)
		return true;
	end_run(c, *first, c->cframe);
	*first = c->ret->n;
	return word(c->p, c->cframe + l->cframe_previous, &c->cframe);
}

/* Adds a frame of 3.12 or later. A shim ends the run of the frames before it. */
static bool step_shims(struct chain *c, uint64_t frame, uint32_t *first)
{
	uint8_t owner;

	if (!byte(c->p, frame + c->p->layout.frame_owner, &owner))
		return false;
	if (owner != c->p->layout.shim)
		return add(c, frame);
	end_run(c, *first, frame);
	*first = c->ret->n;
	return true;
}

static void walk(struct chain *c, uint64_t frame)
{
	const struct python_layout *l = &c->p->layout;
	uint32_t first = c->ret->n, before = first;
	struct circle circle = { 0 };

	while (frame && !circle_closed(&circle, frame) && c->ret->n - before < RUNTIME_FRAMES_MAX &&
	       c->steps++ < RUNTIME_FRAMES_MAX * 2) {
		bool ok = l->frames == PYTHON_OBJECTS   ? object_frame(c, frame)
			  : l->frames == PYTHON_CFRAMES ? step_cframes(c, frame, &first)
							: step_shims(c, frame, &first);

		if (!ok || !word(c->p, frame + l->frame_previous, &frame))
			break;
	}
	end_run(c, first, 0);
}

/* Returns the innermost frame of a thread's state, or 0. */
static uint64_t innermost(struct chain *c, uint64_t thread)
{
	const struct python_layout *l = &c->p->layout;
	uint64_t frame = 0;

	if (!word(c->p, thread + l->thread_frame, &frame) || !frame)
		return 0;
	if (!python_by_cframe(l))
		return frame;
	c->cframe = frame;
	return word(c->p, frame + l->cframe_frame, &frame) ? frame : 0;
}

/* Finds the thread's state by its pthread_t, and walks its frames. On Linux pthread_t is the
 * address of the thread-local variables (fs_base). */
static void walk_thread(struct chain *c, uint64_t interpreter, uint64_t id)
{
	const struct python_layout *l = &c->p->layout;
	const uint32_t before = c->ret->n;
	uint64_t thread, owner, other;
	struct circle circle = { 0 };

	if (!word(c->p, interpreter + l->interpreter_threads, &thread))
		return;
	while (thread && !circle_closed(&circle, thread) && c->threads++ < THREADS_MAX) {
		if (!word(c->p, thread + l->thread_interpreter, &owner) || owner != interpreter ||
		    !word(c->p, thread + l->thread_id, &other))
			return;
		/* The state of a thread that has not begun has its maker's id, and no frame. */
		if (other == id) {
			walk(c, innermost(c, thread));
			if (c->ret->n > before)
				return;
		}
		if (!word(c->p, thread + l->thread_next, &thread))
			return;
	}
}

void python_frames_of(struct python *p, uint64_t id, runtime_frame_vec *ret)
{
	struct chain c = { .p = p, .ret = ret };
	uint32_t before = ret->n;
	struct circle circle = { 0 };
	uint64_t interpreter;

	if (!word(p, p->interpreters, &interpreter))
		return;
	for (uint32_t i = 0; interpreter && !circle_closed(&circle, interpreter) &&
			     i < INTERPRETERS_MAX && ret->n == before;
	     i++) {
		walk_thread(&c, interpreter, id);
		if (!word(p, interpreter + p->layout.interpreter_next, &interpreter))
			break;
	}
}

void python_frames(struct runtime *r, const struct space_thread *t, runtime_frame_vec *ret)
{
	python_frames_of((struct python *)r, t->regs.fs_base, ret);
}
