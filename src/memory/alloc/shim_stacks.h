/* The stacks of a command that is recorded by a preloaded library: the tables for its walks, and
 * the names of their frames (wire/alloc.h).
 *
 * In: requests and nodes in the shared memory, which the command may have forged. Out: tables
 * there; frames and nodes in the file.
 * Always true: a node is written before each event that has it, as soon as its thread has filled
 * it. Nodes of the same frames become one stack.
 *
 *	shim_language.c  frames of Python and Ruby
 */
#ifndef DESCRY_MEMORY_ALLOC_SHIM_STACKS_H
#define DESCRY_MEMORY_ALLOC_SHIM_STACKS_H

#include <sys/types.h>

#include "memory/alloc/trace.h"
#include "wire/alloc.h"

struct shim_stacks;
struct symbols;
struct languages;

/* What all processes of a recording share, each of which may be hostile. */
struct shim_budget {
	uint64_t room;    /* bytes that names, frames and nodes may still take */
	uint64_t tables;  /* bytes that tables and pages of processes may still take */
	uint64_t next_ns; /* no process that has asked for tables often gets them again before */
	uint32_t numbers; /* of processes' programs */
};

/* symbols, languages: name the frames; may be those of several processes. shim_stacks_free() gives
 * its part of the budget back. */
struct shim_stacks *shim_stacks_new(struct wire_alloc *m, struct symbols *symbols,
				    struct languages *languages, struct shim_budget *budget);
void shim_stacks_free(struct shim_stacks *s);
/* Notes which program runs in process pid, which a process of user uid has named as its own. There
 * are tables of this program only. Without this call, or when the process has other rights, there
 * are none. The tables show where code lies, and others that have left the program may share the
 * memory. */
void shim_stacks_of(struct shim_stacks *s, pid_t pid, uid_t uid);
/* Returns the time at which this function first saw the request that the process makes now, or 0
 * when it makes none, or has made so many that it must wait. */
uint64_t shim_stacks_asked(struct shim_stacks *s, uint64_t now);
/* Answers requests for the names of functions of an interpreted language. Returns false when some
 * are left. */
bool shim_stacks_names(struct shim_stacks *s);
/* Makes the tables of process pid anew, when all nodes are written, which it does before. */
void shim_stacks_serve(struct shim_stacks *s, pid_t pid, struct alloc_writer *w);
/* Writes the nodes that are there, for 10 ms at most: a process can say that it has two million.
 * Returns false when some are left. Called between the reading of a ring's head and the writing of
 * its events, which wait for their nodes. */
bool shim_stacks_write(struct shim_stacks *s, struct alloc_writer *w);

#endif
