/* A program's allocations as one D program, and the sink that writes its records to a file
 * (`descry malloc record`).
 *
 * In: a process. Out: a D program on the functions of each object that defines malloc(3); a sink
 * for its records.
 * Always true: only the outermost of calls within calls counts, so that a realloc() that calls
 * malloc() is one event. An address that is freed is stamped before the call, one that is allocated
 * after it, so that the order of events is an order in which they could have happened.
 */
#ifndef DESCRY_MEMORY_ALLOC_ALLOC_RECORD_H
#define DESCRY_MEMORY_ALLOC_ALLOC_RECORD_H

#include "consume/sink.h"
#include "memory/alloc/alloc_before.h"
#include "memory/alloc/record_files.h"
#include "memory/alloc/trace.h"
#include "probe/probe.h"

/* A function that allocates or frees. */
struct alloc_function {
	const char *name;
	enum alloc_op op;
	int8_t size, count; /* its arguments: bytes; how many of these; -1: none */
	int8_t align, addr; /* -1: none */
	bool by_pointer;    /* posix_memalign(): argument 0 points to where the address goes */
	bool operator_new;  /* a form of C++: its own only when the object defines malloc(), too */
};

/* The meaning of a clause of the program, by its number there. */
struct alloc_clause {
	enum { ALLOC_NOTHING, ALLOC_EVENT, ALLOC_AT_STACK, ALLOC_LEFT_OUT } what;
	const struct alloc_function *function;
};

struct alloc_record {
	struct arena arena;
	uint32_t depth; /* frames of stacks; 0: no stacks */
	VEC(struct alloc_clause) clauses;
	VEC(const char *) objects; /* that define malloc() */
	bool follow;               /* processes are followed: each record says whose it is */
	bool later;                /* also allocators that the process may load later */
	bool no_addresses; /* the program may not read memory at an address that it has kept */
	struct record_files *files; /* of all programs of the recording */
};

void alloc_record_init(struct alloc_record *r);
void alloc_record_fini(struct alloc_record *r);
/* alloc_record.c: makes the D program for process pid of the set, malloc()ed. ENOENT: nothing in
 * the process defines malloc(). */
struct err *alloc_record_program(struct alloc_record *r, struct probe_set *ps, pid_t pid,
				 char **ret);
/* record_sink.c */
struct sink *alloc_record_sink(struct alloc_record *r);

#endif
