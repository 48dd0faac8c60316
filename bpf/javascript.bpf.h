/* SPDX-License-Identifier: GPL-2.0-only */
/* Frames of JavaScript: from code of V8 to its caller, as program/runtime/v8/ does it.
 *
 * rbp links all frames. A frame has its function, which leads to the number of its script and to
 * its own number there. The innermost frame may be half built; the instructions there show it. V8's
 * code is in pages without a file, and in a part of V8's own text; neither has unwind tables. */
#include "bpf/javascript_function.bpf.h"

enum { JS_RDI = 5, JS_R9 = 9, JS_R12 = 12, JS_R15 = 15, JS_HANDLERS = 8, JS_CHECKS_MAX = 16 };

/* What the instructions at the innermost place show of the frame. */
enum {
	JS_WHOLE,
	JS_NONE,   /* the return address is on top of the stack */
	JS_PUSHED, /* ... below the caller's rbp */
	JS_LINKED, /* rbp is set, and the function is not in the frame yet */
};

/* wire/step.h */
INLINE long unwind_frame_pointer(struct unwind_walk *w, u32 i);

/* Goes to the caller. guess: the frame was not checked. */
INLINE long js_go(struct unwind_walk *w, u64 pc, u64 sp, u64 bp, bool guess)
{
	struct unwind_state *s = w->s;

	if (sp <= s->sp || sp & 7 || !pc) {
		s->end = WIRE_UNWIND_END_BAD;
		return 1;
	}
	s->pc = pc;
	s->sp = sp;
	s->bp = bp;
	s->call = 1;
	s->guess = guess;
	return 0;
}

/* The eight bytes behind i bytes of the instructions in js.around, i < 24. */
INLINE u64 js_bytes(const u64 *around, u32 i)
{
	u32 bits = i % 8 * 8;

	return bits ? around[i / 8] >> bits | around[i / 8 + 1] << (64 - bits) : around[i / 8];
}

/* Returns what the instructions show. *ret_function: rdi has the function, as at the beginning of
 * each function of JavaScript:
 *
 *	checks; push %rbp; mov %rsp, %rbp; push %rsi; push %rdi */
INLINE u32 js_partial(const u64 *around, bool *ret_function)
{
	const u64 begins = 0x5756e5894855, mask = 0xffffffffffff;
	u64 k = around[1];
	u32 op = k & 0xff;
	bool found = false;

	*ret_function = false;
	if (op == 0xc3 || op == 0xc2)
		return JS_NONE;
	if ((u32)k == 0xe5894855) {
		*ret_function = (k & mask) == begins;
		return JS_NONE;
	}
	if ((k & 0xffffff) == 0xe58948 && around[0] >> 56 == 0x55) {
		*ret_function = (k >> 24 & 0xffff) == 0x5756;
		return JS_PUSHED;
	}
	if (around[0] >> 32 == 0xe5894855) {
		*ret_function = (k & 0xffff) == 0x5756;
		return JS_LINKED;
	}
	if (around[0] >> 24 == 0x56e5894855) {
		*ret_function = op == 0x57;
		return op == 0x57 ? JS_LINKED : JS_WHOLE;
	}
#pragma unroll
	for (u32 i = 1; i <= JS_CHECKS_MAX; i++)
		found |= (js_bytes(around, 8 + i) & mask) == begins;
	*ret_function = found;
	return found ? JS_NONE : JS_WHOLE;
}

/* Looks at the next handlers of bytecodes. Returns 1 when one of them begins between the one that
 * runs and the instruction. */
SUBROUTINE js_handlers(u32 i, struct unwind_walk *w)
{
	struct javascript_state *v = &w->s->js;
	u64 between = w->s->pc - v->start;

	v->other = 1;
	if (MACHINE_READ(w, v->object, 8 * JS_HANDLERS, v->table + i * (8 * JS_HANDLERS)))
		return 1;
	v->other = 0;
#pragma unroll
	for (int k = 0; k < JS_HANDLERS; k++)
		v->other |= v->object[k] - v->start - 1 < between;
	return (long)v->other;
}

/* Returns the place in the bytecodes that the interpreter executes. While it executes a bytecode,
 * registers have it; they are used only if the running code belongs to the bytecode there. */
INLINE u64 js_running(struct unwind_walk *w, const struct wire_v8 *j, u64 bytecodes, u64 length)
{
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	u64 at;

	if (s->n != 1 || UNWIND_REGISTER(w, JS_R12) || s->word != bytecodes ||
	    UNWIND_REGISTER(w, JS_R9))
		return WIRE_LANGUAGE_BEFORE;
	at = s->word - (j->bytecodes_data - 1);
	if (at >= length || MACHINE_READ(w, v->around, 1, bytecodes + s->word) ||
	    UNWIND_REGISTER(w, JS_R15))
		return WIRE_LANGUAGE_BEFORE;
	v->table = s->word;
	if (!machine_user(w, &v->start, v->table + (v->around[0] & 0xff) * 8) ||
	    s->pc - v->start >= WIRE_V8_FRAME_MAX)
		return WIRE_LANGUAGE_BEFORE;
	v->other = 0;
	bpf_loop((j->opcodes + JS_HANDLERS - 1) / JS_HANDLERS, js_handlers, w, 0);
	return v->other || at >= WIRE_V8_ENTRY ? WIRE_LANGUAGE_BEFORE : at;
}

/* Returns true when the walk knows no mapping of the code. The agent sees V8's code so until the
 * tracer has listed it (unwind_mapping()); that may be code that was made or built-in code. */
INLINE bool js_unlisted(const struct unwind_state *s)
{
	return s->size == 1;
}

/* Returns the place in the bytecodes that an interpreter's frame of a call holds. Frames of
 * baseline code have a pointer there, and those of optimized code have no bytecodes. */
INLINE u64 js_saved(const struct unwind_state *s, const struct wire_v8 *j, u64 length)
{
	u64 saved = s->js.frame[WIRE_V8_PLACE], at = (saved >> 32) - (j->bytecodes_data - 1);

	if (!js_is_small(saved))
		return WIRE_LANGUAGE_BEFORE;
	if (length && at == (u64)-1)
		return WIRE_V8_ENTRY;
	return at < length && at < WIRE_V8_ENTRY ? at : WIRE_LANGUAGE_BEFORE;
}

/* Sets s->frame to the word of a frame whose function has s->id. */
SUBROUTINE js_named(struct unwind_walk *w, const struct wire_v8 *j, bool built_in)
{
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	u64 at = WIRE_LANGUAGE_BEFORE, shared = s->code, place = 0, bytecodes, length;

	bytecodes = js_object(w, j, v->frame[WIRE_V8_FRAME_BYTECODES], WIRE_V8_BYTECODES, 16);
	length = bytecodes && js_is_small(js_member(v, j->bytecodes_length))
			 ? js_member(v, j->bytecodes_length) >> 32
			 : 0;
	if (built_in || js_unlisted(s))
		at = s->call ? js_saved(s, j, length) : js_running(w, j, bytecodes, length);
	if (!built_in && at == WIRE_LANGUAGE_BEFORE && (s->call || length) &&
	    !MACHINE_READ(w, v->around, 32, s->pc - WIRE_V8_BEFORE)) {
		place = WIRE_JAVA_PLACE(s->pc, s->call);
		s->id = wire_language_v8_place(s->id, place, v->around);
	}
	machine_word(w, shared, place, at);
	return 0;
}

/* Steps from a frame that is not built, or not any more. */
INLINE long js_unbuilt(struct unwind_walk *w, u32 partial)
{
	struct unwind_state *s = w->s;

	s->end = WIRE_UNWIND_END_UNREADABLE;
	if (partial == JS_NONE)
		return machine_user(w, s->pair, s->sp)
			       ? js_go(w, s->pair[0], s->sp + 8, s->bp, true)
			       : 1;
	if (partial == JS_LINKED && (s->bp & 7 || s->bp < s->sp))
		return js_go(w, 0, 0, 0, true);
	if (MACHINE_READ(w, s->pair, 16, partial == JS_LINKED ? s->bp : s->sp))
		return 1;
	return js_go(w, s->pair[1], (partial == JS_LINKED ? s->bp : s->sp) + 16, s->pair[0], true);
}

/* Steps from code without unwind tables. s->frame is the address before. */
SUBROUTINE javascript_step(struct unwind_walk *w, u32 i)
{
	const struct wire_v8 *j = js_data(w);
	struct unwind_state *s = w->s;
	struct javascript_state *v = &s->js;
	u32 partial = JS_WHOLE;
	bool built_in, function = false;
	u64 context;

	built_in = j && s->pages && s->pc - s->call - s->bias - j->blob < j->blob_size;
	if (!j || (s->pages && !built_in))
		return unwind_frame_pointer(w, i);
	if (built_in) {
		v->low = s->bias + j->blob;
		v->size = j->blob_size;
	}
	if (!s->call && !MACHINE_READ(w, v->around, 32, s->pc - 8))
		partial = js_partial(v->around, &function);
	if (partial != JS_WHOLE) {
		if (function && s->n == 1 && !UNWIND_REGISTER(w, JS_RDI) &&
		    js_function(w, j, s->word))
			machine_word(w, s->code, 0, WIRE_LANGUAGE_BEFORE);
		else if (!s->machine.addresses)
			s->frame = WIRE_LANGUAGE_HIDDEN;
		return js_unbuilt(w, partial);
	}
	if (s->bp & 7 || s->bp + 16 <= s->sp || s->bp + 16 - s->sp > WIRE_V8_FRAME_MAX ||
	    MACHINE_READ(w, v->frame, sizeof(v->frame), s->bp - WIRE_V8_FRAME_BELOW))
		return unwind_frame_pointer(w, i);
	context = v->frame[WIRE_V8_CONTEXT];
	v->function = v->frame[WIRE_V8_FRAME_FUNCTION];
	if (context == (u64)j->builtin_exit << 1)
		v->function = v->frame[WIRE_V8_EXIT_FUNCTION];
	else if (!(context & 1))
		v->function = 0;
	if (v->function && js_function(w, j, v->function))
		js_named(w, j, built_in);
	else if (!built_in && !(js_unlisted(s) && context - 2 < WIRE_V8_FRAME_KINDS * 2))
		return unwind_frame_pointer(w, i);
	else if (!s->machine.addresses)
		s->frame = WIRE_LANGUAGE_HIDDEN;
	return js_go(w, v->frame[WIRE_V8_RETURN], s->bp + 16, v->frame[WIRE_V8_RBP], false);
}
