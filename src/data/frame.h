/* A stack frame as a value.
 *
 * Symbol look-ups and readers of profiles make frames; stack trees hold them; only writers turn a
 * frame into text with marks.
 */
#ifndef DESCRY_DATA_FRAME_H
#define DESCRY_DATA_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "program/symbol/symbol.h"

/* What kind of code runs in a frame. Interpreters' kinds stand beside the native ones. */
enum frame_kind {
	FRAME_NATIVE, /* compiled before the program started; or not known */
	FRAME_KERNEL,
	FRAME_INLINED, /* has no frame of its own on the stack: its caller's frame is the next one */
	FRAME_JIT,     /* compiled while the program ran */
	FRAME_WAKER,   /* of the thread that ended the wait of the stack's own thread */
	FRAME_END,     /* no code: says why the stack ends here */
};

struct frame {
	enum frame_kind kind;
	uint64_t address; /* as recorded: a return address but for the innermost; 0 not known */
	struct place
		place; /* module and function of the call; its offset is the address's. Zeroed: not known */
	const char *file; /* base name of the source file; NULL not known */
	uint32_t line;    /* in file, from 1 */
	const char *end;  /* FRAME_END: why; nothing else is set */
};

/* "native", "kernel", "inlined", "jit", "waker", "end" */
const char *frame_kind_name(enum frame_kind kind);
/* The mark that folded text has behind a name of this kind, as FlameGraph's stackcollapse programs
 * write it; "" for none. */
const char *frame_mark(enum frame_kind kind);
/* The kind that a mark at the end of text stands for. *len becomes shorter by the mark. */
enum frame_kind frame_kind_of_text(const char *text, size_t *len);

#endif
