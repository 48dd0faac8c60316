/* Follows a coroutine to what it awaits, as cr_await, gi_yieldfrom and ag_await do. */
#include "program/runtime/circle.h"
#include "program/runtime/python/python_objects.h"

enum {
	BYTES_DATA = 32,
	DEPTH_MAX = 1 << 20, /* values of a frame */
	YIELD_FROM = 72,     /* to 3.10: the instruction that goes on when the awaited one does */
	RESUME = 151,        /* 3.11 and 3.12 */
	RESUME_QUICK = 150,  /* 3.11: its other form */
	RESUME_MONITORED = 240,
	RESUME_AWAIT = 2, /* its operand, or more: the frame awaits something */
	EXECUTING = 0,    /* states of a frame, the same from 3.10 on */
	COMPLETED = 1,
	AWAITING = -1, /* 3.13: it is suspended, and awaits something */
};

/* The state of a coroutine. */
struct state {
	uint64_t frame;
	bool ended, runs, may_await;
};

/* Up to 3.9 a frame that runs has no end of its values, and 3.10 has a state. */
static bool old_state(struct python_objects *o, uint64_t coroutine, struct state *ret)
{
	uint64_t depth;
	int8_t state;

	if (!python_word(o, coroutine + o->l->coroutine_frame, &ret->frame))
		return false;
	ret->ended = !ret->frame;
	if (ret->ended)
		return true;
	if (!o->l->frame_state) {
		if (!python_word(o, ret->frame + o->l->frame_depth, &depth))
			return false;
		ret->runs = !depth;
	} else {
		if (!python_bytes(o, ret->frame + o->l->frame_state, &state, 1))
			return false;
		ret->runs = state == EXECUTING;
		ret->ended = state >= COMPLETED;
	}
	ret->may_await = !ret->runs;
	return true;
}

static bool state_of(struct python_objects *o, uint64_t coroutine, struct state *ret)
{
	int8_t state;

	*ret = (struct state){ 0 };
	if (!o->l->coroutine_state)
		return old_state(o, coroutine, ret);
	if (!python_bytes(o, coroutine + o->l->coroutine_state, &state, 1))
		return false;
	ret->frame = coroutine + o->l->coroutine_frame;
	ret->ended = state >= COMPLETED;
	ret->runs = state == EXECUTING;
	ret->may_await = o->l->version < PYTHON_3_13 ? state < EXECUTING : state == AWAITING;
	return true;
}

/* Returns true when the instruction at which a frame goes on is one that awaits. 3.13 has a state
 * for that. */
static bool awaits(struct python_objects *o, uint64_t frame)
{
	const struct python_layout *l = &o->p->layout;
	uint64_t code, at;
	uint8_t next[2];
	int32_t last;

	if (o->l->version >= PYTHON_3_13)
		return true;
	if (l->frames != PYTHON_OBJECTS)
		return python_word(o, frame + l->frame_instruction, &at) &&
		       python_bytes(o, at + 2, next, 2) &&
		       (next[0] == RESUME ||
			next[0] ==
				(o->l->version == PYTHON_3_11 ? RESUME_QUICK : RESUME_MONITORED)) &&
		       next[1] >= RESUME_AWAIT;
	if (!python_word(o, frame + l->frame_code, &code) ||
	    !python_word(o, code + o->l->code_bytes, &at) ||
	    !python_bytes(o, frame + l->frame_instruction, &last, 4) || last < 0)
		return false;
	return python_bytes(o, at + BYTES_DATA + ((uint64_t)last * (l->wordcode ? 2 : 1)) + 2, next,
			    1) &&
	       next[0] == YIELD_FROM;
}

/* Returns the object that a suspended frame awaits: the last of its values. 0: it is not known. */
static uint64_t awaited(struct python_objects *o, uint64_t frame)
{
	uint64_t values, end;
	int32_t depth;

	if (!awaits(o, frame))
		return 0;
	if (o->l->version < PYTHON_3_10)
		return python_word(o, frame + o->l->frame_depth, &end) &&
				       python_word(o, end - 8, &end)
			       ? end
			       : 0;
	if (o->l->version == PYTHON_3_10) {
		if (!python_word(o, frame + o->l->frame_values, &values))
			return 0;
	} else {
		values = frame + o->l->frame_values;
	}
	if (!python_bytes(o, frame + o->l->frame_depth, &depth, 4) || depth < 1 ||
	    depth > DEPTH_MAX || !python_word(o, values + ((uint64_t)depth - 1) * 8, &end))
		return 0;
	return end;
}

static void turn(runtime_frame_vec *v, uint32_t first)
{
	for (uint32_t i = first, k = v->n; i + 1 < k; i++) {
		struct runtime_frame f = v->v[i];

		v->v[i] = v->v[--k];
		v->v[k] = f;
	}
}

void python_coroutine(struct python_objects *o, uint64_t coroutine, runtime_frame_vec *ret,
		      uint64_t *ret_end, uint64_t *ret_runs)
{
	const uint32_t first = ret->n;
	struct circle circle = { 0 };
	uint64_t at = coroutine, end = 0;

	*ret_end = *ret_runs = 0;
	while (at && !circle_closed(&circle, at) && ret->n - first < RUNTIME_FRAMES_MAX) {
		enum python_is is = python_is(o, at);
		struct runtime_frame f;
		struct state s;

		if (is == PYTHON_IS_LINK && python_word(o, at + PYTHON_HEAD_WORD, &at))
			continue;
		if (is != PYTHON_IS_FRAMED) {
			end = at;
			break;
		}
		if (!state_of(o, at, &s) || s.ended)
			break;
		if (s.runs && at == coroutine) {
			*ret_runs = s.frame;
			return;
		}
		if (!python_frame_at(o->p, s.frame, &f))
			break;
		vec_push(ret, f);
		at = s.may_await ? awaited(o, s.frame) : 0;
	}
	turn(ret, first);
	*ret_end = end;
}
