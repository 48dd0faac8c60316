/* A stack frame as a value.
 *
 * Symbol look-ups and readers of profiles make frames. Stack trees hold them. Only writers turn a
 * frame into text with marks. */
#ifndef DESCRY_DATA_FRAME_H
#define DESCRY_DATA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/symbol/symbol.h"

/* The kind of code that runs in a frame: native kinds and those of interpreters. */
enum frame_kind {
	FRAME_NATIVE, /* compiled before the program started, or kind not known */
	FRAME_KERNEL,
	FRAME_INLINED,    /* has no frame of its own on the stack: the next one is its caller's */
	FRAME_JIT,        /* compiled while the program ran */
	FRAME_PYTHON,     /* a function of Python that the interpreter runs */
	FRAME_RUBY,       /* of Ruby, also a method written in C */
	FRAME_JAVA,       /* a function of Java, interpreted or compiled */
	FRAME_JAVASCRIPT, /* of JavaScript, interpreted, compiled, or built into its engine */
	FRAME_WAKER,      /* of the thread that ended the wait of the sampled thread */
	FRAME_END,        /* no code: `end` gives the reason why the stack ends here */
};

struct frame {
	enum frame_kind kind;
	uint64_t address; /* as recorded: a return address but for the innermost; 0: not known */
	struct place
		place; /* module and function of the call, offset of `address`. Zeroed: not known */
	const char *file; /* base name of the source file; NULL: not known */
	uint32_t line;    /* in file, from 1 */
	const char *end;  /* FRAME_END: the reason; no other field is set */
};

/* Returns "native", "kernel", "inlined", "jit", "python", "ruby", "java", "javascript", "waker" or
 * "end". */
const char *frame_kind_name(enum frame_kind kind);
/* Returns true for the kinds of a language's functions, which have a file and line of their own. */
bool frame_is_language(enum frame_kind kind);
/* Returns the kind of an interpreter's frames by the name of its language, or FRAME_NATIVE. */
enum frame_kind frame_kind_of_language(const char *language);
/* Returns the mark that folded text has behind a name of this kind, as FlameGraph's stackcollapse
 * programs write it, or "". */
const char *frame_mark(enum frame_kind kind);
/* Returns the kind for the mark at the end of text. Shortens *len by the mark. */
enum frame_kind frame_kind_of_text(const char *text, size_t *len);

#endif
