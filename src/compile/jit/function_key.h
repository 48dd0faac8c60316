/* What a shortcut knows of an interpreter's functions (function_key.c). */
#ifndef DESCRY_COMPILE_JIT_FUNCTION_KEY_H
#define DESCRY_COMPILE_JIT_FUNCTION_KEY_H

#include "compile/jit/shortcut.h"

/* An address in a register of the traced program. */
struct named_at {
	int reg; /* -1: none */
	int32_t add;
};
struct named_key {
	const struct wire_map *map;
	struct named_at frame;
	struct named_at method; /* of Ruby; none: the frame's scope has it */
	bool ruby;
	uint32_t path; /* of Python: WIRE_PYTHON_PATH() */
	uint32_t salt; /* jit_answer() */
};

/* Writes code that finds the entry of d_agg_python() or d_agg_ruby(). out: rax = the value. T1 is
 * lost. Adds jumps to `jumps->fails`: before these, rcx was pushed. */
void jit_named(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps);
/* The same of d_id_python() or d_id_ruby(), whose map is an array. out: rax = the answer, 0 or
 * 1. */
void jit_answer(struct jit *j, const struct named_key *k, struct shortcut_jumps *jumps);

#endif
