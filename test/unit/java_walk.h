/* The walk of Java's frames that programs make (bpf/java.bpf.h), over memory that is made up.
 * Included last. */
#ifndef DESCRY_TEST_JAVA_WALK_H
#define DESCRY_TEST_JAVA_WALK_H

#include "jvm_memory.h"
#include "machine_walk.h"

#include "bpf/java.bpf.h"

/* Walks from a place, up to code that is not the JVM's. Returns the number of words in
 * m->frames. */
static inline u32 java_made_walk(struct machine_made *m, struct jvm_memory *memory, u64 pc, u64 sp,
				 u64 bp, bool called)
{
	struct unwind_walk w = { m, m, &m->state };
	struct wire_language l;
	long r = JAVA_CALLER;

	memset(m, 0, sizeof(*m));
	if (!jvm_wire(&memory->jvm.runtime, &l))
		return 0;
	machine_made_begin(m, &memory->made, &l, pc, sp, bp, called);
	while (r == JAVA_CALLER && m->state.n < WIRE_STACK_FRAMES) {
		r = java_step(&w);
		if (r != JAVA_NOT_CODE)
			m->frames[m->state.n++] = m->state.frame;
		if (m->state.n == 1 && !m->first.pc)
			m->first = m->state;
	}
	return (u32)m->state.n;
}

#endif
