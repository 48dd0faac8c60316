/* A command whose allocations are recorded by a preloaded library (agent/alloc_private.h), the fast
 * way of `descry malloc record`.
 *
 * In: a command. Out: chunks of its threads' events in the file.
 * Always true: the command runs without a stop, and does not need this process: when it ends, the
 * command goes on. The command can write anything to the shared memory, so each number there is
 * read once and checked. Order of calls: alloc_shim_check(), alloc_shim_start(),
 * alloc_shim_pass() while it is true, alloc_shim_end().
 */
#ifndef DESCRY_MEMORY_ALLOC_SHIM_H
#define DESCRY_MEMORY_ALLOC_SHIM_H

#include <sys/types.h>

#include "base/ticks.h"
#include "memory/alloc/shim_stacks.h"
#include "memory/alloc/trace.h"
#include "wire/alloc.h"

struct alloc_shim {
	struct wire_alloc *memory;
	const uint8_t *data;        /* of the rings */
	size_t bytes;               /* of the memory */
	struct shim_stacks *stacks; /* NULL: none are taken */
	struct ticks_clock clock;
	pid_t pid;
	bool ended; /* the command; status: from waitpid(2) */
	int status;
	struct alloc_writer *writer;
	uint64_t lost, early, bare; /* calls; stacks as in wire_alloc_ring */
	bool told;                  /* the file has what is known only once the library runs */
	/* Private. */
	struct alloc_shim_ring {
		uint64_t head, tail, lost; /* head: of the pass at hand */
		uint32_t count;
		bool broken; /* has impossible numbers: is not read any more */
	} rings[WIRE_ALLOC_RINGS];
	uint64_t sync;             /* ticks: all events before are in the file */
	uint64_t passed, reviewed; /* ns: the last pass, and look for threads that have ended */
	uint64_t flushed;
	uint64_t unheard;
	uint32_t bell;
	uint8_t buffer[WIRE_ALLOC_RING];
};

/* ENOTSUP: this command cannot be recorded so; the message has the reason. */
struct err *alloc_shim_check(const char *command);
/* Returns the language of the interpreter that the command is, whose functions the library cannot
 * name, or NULL. */
const char *alloc_shim_language(const char *command);
/* depth: most frames of stacks; 0: no stacks. */
struct err *alloc_shim_start(char *const argv[], uint32_t depth, struct alloc_shim **ret);
/* Waits a while for events and writes them. Returns false when the command has ended and all is
 * written. */
bool alloc_shim_pass(struct alloc_shim *s);
/* Returns true when the library was loaded and runs. */
bool alloc_shim_runs(const struct alloc_shim *s);
/* Ends the recording, whether or not the command has ended. Writes what is left. */
void alloc_shim_end(struct alloc_shim *s);
void alloc_shim_free(struct alloc_shim *s);

#endif
