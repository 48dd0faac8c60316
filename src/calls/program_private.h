/* Shared by the files that write the D program of `descry calls`. */
#ifndef DESCRY_CALLS_PROGRAM_PRIVATE_H
#define DESCRY_CALLS_PROGRAM_PRIVATE_H

#include "calls/calls.h"

struct writer {
	struct calls *c;
	struct out o;
	const struct calls_function *fn;
	uint32_t number;
};

/* Writes the descriptions of a clause's probes. */
void program_put_probes(struct out *o, const char *const *v, uint32_t n);
/* Notes the meaning of the clause that was just written. */
void program_clause(struct writer *w, enum calls_event event, bool whole);
/* Writes the head of a clause at a system call. more: a further condition; "": none. */
void program_put_syscall_head(struct writer *w, const char *place, const char *more);

/* program_count.c: the clauses of a function for the table of -c. */
void program_count(struct writer *w);
void program_count_syscall(struct writer *w);
/* The variables of windows, which stand before all clauses; the clauses that open and close
 * windows, which stand behind all others. */
void program_put_clock(struct writer *w);
void program_put_windows(struct writer *w);

#endif
