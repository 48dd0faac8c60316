/* The walk of JavaScript's frames that programs make (bpf/javascript.bpf.h), over memory that is
 * made up. Included last. */
#ifndef DESCRY_TEST_JAVASCRIPT_WALK_H
#define DESCRY_TEST_JAVASCRIPT_WALK_H

#include "v8_memory.h"
#include "machine_walk.h"

#include "bpf/javascript.bpf.h"

enum { JS_NOT_V8 = 7 };

/* Frames that are not V8's end the walk. */
INLINE long unwind_frame_pointer(struct unwind_walk *w, u32 i)
{
	return JS_NOT_V8;
}

/* Walks from a place, up to code that is not V8's. Returns the number of words in m->frames.
 * listed: the walk knows the mappings of the code. */
static inline u32 js_made_walk(struct machine_made *m, struct v8_memory *memory, u64 pc, u64 sp,
			       u64 bp, bool called, bool listed)
{
	struct unwind_walk w = { m, m, &m->state };
	struct wire_language l;
	long r = 0;

	memset(m, 0, sizeof(*m));
	memory->v8.blob = V8_BUILTINS;
	memory->v8.blob_size = V8_MADE - V8_BUILTINS;
	if (!v8_wire(&memory->v8.runtime, &l))
		return 0;
	machine_made_begin(m, &memory->made, &l, pc, sp, bp, called);
	while (!r && m->state.n < WIRE_STACK_FRAMES) {
		const u64 at = m->state.pc - m->state.call;

		if (at < V8_BUILTINS || at >= V8_MADE_END)
			break;
		m->state.pages = listed && at < V8_MADE;
		m->state.size = listed ? V8_MADE_END - V8_BUILTINS : 1;
		m->state.frame = m->state.pc;
		m->state.n++;
		r = javascript_step(&w, (u32)m->state.n - 1);
		m->frames[m->state.n - 1] = m->state.frame;
		if (r == JS_NOT_V8)
			m->state.n--;
	}
	return (u32)m->state.n;
}

#endif
