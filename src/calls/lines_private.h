/* Shared by the files that write lines of calls: call_lines.c is the sink, lines_args.c writes
 * arguments and results, lines_json.c objects. */
#ifndef DESCRY_CALLS_LINES_PRIVATE_H
#define DESCRY_CALLS_LINES_PRIVATE_H

#include "calls/calls.h"

enum { MAX_DEPTH = 256, MAX_ARGS = CALLS_REGISTERS, TEXT_CUT = 1 << 30 };

/* A call that has not returned. */
struct call {
	const struct calls_function *function;
	const struct image_probe *probe; /* of its entry */
	struct thread *thread;
	struct lines *of; /* the sink that has seen it */
	uint64_t began, sp;
	uint64_t regs[MAX_ARGS];
	uint32_t nregs;
	uint64_t vectors[CALLS_VECTORS];
	uint32_t nvectors;
	uint64_t address; /* to which it returns (-i) */
	char *text;       /* of a call that is held: its line up to here; else NULL */
	char *stack;      /* -w: lines; NULL: none */
	char *later;  /* parameters behind an output parameter, each with LATER_END; NULL: none */
	size_t bytes; /* of text, stack and later */
};

struct thread {
	uint32_t tid;
	uint64_t last;    /* time of its last record */
	struct lines *of; /* the sink of its program's library calls; NULL: there are none */
	/* Texts of registers, for the next entry. */
	struct format_text {
		char *text;
		uint32_t n;
	} texts[CALLS_REGISTERS];
	/* Memory that may be a text of wide characters, likewise. Owns the bytes. */
	struct prototype_memory wides[CALLS_REGISTERS];
	/* Vector registers of a variadic function, likewise. */
	uint64_t vectors[CALLS_VECTORS];
	uint32_t nvectors;
	/* Memory behind pointers in memory, for the next entry or return. Owns the bytes. */
	struct prototype_memory inner[CALLS_INNER_MAX];
	uint32_t ninner;
	VEC(struct call) calls;
};

/* The values of a record. */
struct event {
	/* of an entry: stack pointer, return address, registers, vector registers */
	uint64_t numbers[MAX_ARGS + 2 + CALLS_VECTORS];
	uint32_t nnumbers;
	struct prototype_memory texts[PROTOTYPE_PARAMS + 1], memory[PROTOTYPE_PARAMS + 1];
	uint32_t ntexts, nmemory;
	struct out stack; /* -w */
	uint32_t nframes;
};

/* Stands between the arguments of a call that is held for JSON. Texts never have it, because it is
 * escaped there. */
enum { BETWEEN = 0x1f, LATER_END = 0x1e };
/* bytes of texts and stacks of calls that have not returned */
enum { LINES_HELD_MAX = 128 << 20 };

/* What the sinks of one output share. */
struct calls_page {
	struct out o, held, kept;
	struct hash threads;       /* tid -> struct thread */
	uint32_t look_at;          /* how many threads there are when ended ones are looked for */
	size_t bytes;              /* of all calls' texts and stacks */
	uint32_t open;             /* the thread whose line is not complete; 0: none */
	size_t column;             /* where that line began in o */
	uint64_t previous, offset; /* time of the line before; from boot to 1970 */
	uint64_t lost;
	uint32_t nsinks; /* that have not ended */
};

struct lines {
	struct sink s;
	const struct calls *c;
	struct calls_page *p;
	struct event event;
	bool whole; /* of the record */
	bool ended;
};

/* Prints the parameters from the first output parameter on (late), or those before it. */
void lines_params(struct lines *l, struct call *call, bool whole, bool late);
void lines_result(struct lines *l, const struct call *call, bool whole);
/* Returns true when the call failed and its errno is known. */
bool lines_failed(const struct lines *l, const struct call *call);
/* Returns the errno of a call that has failed. */
int lines_errno(const struct lines *l);
/* Keeps the record's text for the thread's next entry. */
void lines_take_text(struct lines *l, const struct record_view *r, struct thread *t);
void lines_take_wide(struct lines *l, struct thread *t); /* the same for its memory */
/* Keeps the record's numbers for the thread's next entry. */
void lines_take_vectors(struct lines *l, struct thread *t);
/* Keeps the record's memory, likewise, or for its next return. */
void lines_take_inner(struct lines *l, const struct calls_inner *in, struct thread *t);
void lines_forget_texts(struct thread *t); /* and vectors, and inner memory */
/* Writes a call that was held as a line of JSON. ended: it has returned, after ns. */
void lines_json(struct lines *l, const struct thread *t, struct call *call, uint32_t depth,
		bool ended, uint64_t ns);

#endif
