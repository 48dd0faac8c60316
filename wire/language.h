/* Frames of interpreted languages in a stack, as programs take them.
 *
 * Behind a stack's native frames stand those of the language, innermost first, one word each:
 *
 *	bit 63		1: no address of user space has it
 *	bit 62		the frame was called from native code: the outermost of a run of the
 *			interpreter's loop
 *	bits 61..44	byte of the function's code; all ones: it has not begun
 *	bits 43..0	id of the function's code object: wire_language_id()
 *
 * The tracer puts them in the places of the loop's native frames (program/runtime/merge.c).
 */
#ifndef DESCRY_WIRE_LANGUAGE_H
#define DESCRY_WIRE_LANGUAGE_H

#include "wire/unwind.h"

#define WIRE_LANGUAGE_FRAME (1ull << 63)
#define WIRE_LANGUAGE_ENTRY (1ull << 62)
#define WIRE_LANGUAGE_IDS ((1ull << 44) - 1)
#define WIRE_LANGUAGE_ID(word) ((word)&WIRE_LANGUAGE_IDS)
#define WIRE_LANGUAGE_AT(word) ((uint32_t)((word) >> 44 & WIRE_LANGUAGE_BEFORE))
enum { WIRE_LANGUAGE_BEFORE = 0x3ffff, WIRE_LANGUAGE_ABOUT = 3 };

/* Returns the id of a code object, from its process, its address and three of its pointers (names
 * and the table of lines). Python uses addresses again, but not all of these together. */
static inline uint64_t wire_language_id(uint32_t pid, uint64_t code,
					const uint64_t about[WIRE_LANGUAGE_ABOUT])
{
	uint64_t h = wire_unwind_mix(code ^ (uint64_t)pid << 47);

	h = wire_unwind_mix(h ^ about[0] ^ about[1] << 17);
	h = wire_unwind_mix(h ^ about[2]);
	return h & WIRE_LANGUAGE_IDS;
}

static inline uint64_t wire_language_word(uint64_t id, uint64_t at)
{
	return WIRE_LANGUAGE_FRAME | id |
	       (at < WIRE_LANGUAGE_BEFORE ? at : WIRE_LANGUAGE_BEFORE) << 44;
}

/* The links between frames: see enum python_frames. */
enum { WIRE_LANGUAGE_OBJECTS, WIRE_LANGUAGE_CFRAMES, WIRE_LANGUAGE_SHIMS };

/* The facts about a process's Python that a walk needs: 32 words at a multiple of 32 in the chunks
 * of unwind tables (wire/unwind.h). Byte offsets, as in struct python_layout. */
struct wire_language {
	uint64_t interpreters;        /* address of the word that has the first interpreter's */
	uint32_t frames, shim, scale; /* scale: bytes of code for each step of the instruction */
	uint32_t interpreter_threads, thread_next, thread_id, thread_frame;
	uint32_t by_cframe, cframe_frame; /* by_cframe: thread_frame has a _PyCFrame's address */
	uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_is_entry;
	uint32_t code_about, code_instructions; /* code_about: WIRE_LANGUAGE_ABOUT words */
	uint32_t pad[14];
};
enum { WIRE_LANGUAGE_WORDS = 32 };

enum {
	WIRE_LANGUAGE_THREADS =
		1024 /* limit of threads that are examined to find the current one */
};

#ifndef DESCRY_BPF
_Static_assert(sizeof(struct wire_language) == WIRE_LANGUAGE_WORDS * 4, "language");
#endif

#endif
