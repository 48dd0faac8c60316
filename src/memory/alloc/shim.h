/* A command whose allocations are recorded by a preloaded library (agent/alloc_private.h), the fast
 * way of `descry malloc record`.
 *
 * In: a command. Out: a file for each of its processes, with chunks of its threads' events. The
 * first process has the file that was named, FILE.dma, and the others have FILE.PID.dma; a program
 * that process PID executes later has FILE.PID-2.dma, and so on.
 * Always true: the command runs without a stop, and does not need this process: when it ends, the
 * command goes on. The command can write anything to the shared memory, so each number there is
 * read once and checked. Order of calls: alloc_shim_check(), alloc_shims_start(),
 * alloc_shims_pass() while it is true, alloc_shims_end(), alloc_shims_free().
 *
 *	shim_start.c   the command is started, and its processes get memory
 *	shim_set.c     all processes: their hellos, files and ends
 *	shim_drain.c   one process: its events are put into its file
 *	shim_stacks.c  the stacks of a process
 */
#ifndef DESCRY_MEMORY_ALLOC_SHIM_H
#define DESCRY_MEMORY_ALLOC_SHIM_H

#include <sys/types.h>

#include "base/hash.h"
#include "base/ticks.h"
#include "memory/alloc/shim_stacks.h"
#include "memory/alloc/trace.h"
#include "wire/alloc.h"

/* What is known of a process, or of one program that it has executed. */
struct alloc_shim_sum {
	pid_t pid, parent; /* parent 0: the command itself */
	bool forked;       /* it was forked, and runs the program of its parent */
	bool runs;         /* the library was loaded */
	bool own;          /* the program has an allocator of its own: nothing was recorded */
	bool forbidden, no_stacks, no_names; /* as in struct wire_alloc */
	bool late;                           /* not all of its stacks were written in time */
	char *command, *path;
	uint64_t events, lost, early, bare;
	struct err *error; /* of the file */
};

/* A process. */
struct alloc_shim {
	struct alloc_shim_sum sum;
	struct wire_alloc *memory;
	int memory_fd;              /* its file */
	size_t bytes;               /* of the memory */
	struct shim_stacks *stacks; /* NULL: none are taken */
	uint32_t user;              /* of struct alloc_shims */
	struct ticks_clock clock;
	int pidfd;
	uint64_t ended_ns; /* when its end was first seen; 0: it has not ended */
	struct alloc_writer *writer;
	/* Private. */
	struct alloc_shim_ring {
		uint64_t head, tail, lost; /* head: of the pass at hand */
		uint32_t count;
		bool broken; /* has impossible numbers: is not read any more */
	} rings[WIRE_ALLOC_RINGS];
	/* Of the pass at hand: the ring that is next (0: the pass has not begun), and its first
	 * ticks. Some was taken. */
	uint32_t next;
	uint64_t began;
	bool any;
	uint64_t sync;             /* ticks: all events before are in the file */
	uint64_t passed, reviewed; /* ns: the last pass, and look for threads that have ended */
	uint64_t flushed;
	uint64_t unheard;
	uint8_t buffer[WIRE_ALLOC_RING];
};

enum { ALLOC_SHIM_USERS = 64 };

struct alloc_shims {
	struct wire_alloc_lobby *lobby;
	struct wire_alloc_life *life;
	struct ticks_clock clock;
	pid_t pid;  /* of the command */
	bool ended; /* the command; status: from waitpid(2) */
	int status;
	VEC(struct alloc_shim *) live;
	VEC(struct alloc_shim_sum)
	sums; /* of all that have ended; the command's first program first */
	/* Private. */
	struct hash numbers; /* pid -> the number of its last file */
	uint32_t depth, sample;
	struct shim_budget budget;
	/* Whose processes are recorded, and when one of them was last given tables. All that do not
	 * fit share the last one. */
	struct alloc_shim_user {
		uid_t uid;
		uint64_t served_ns;
	} users[ALLOC_SHIM_USERS];
	uint32_t nusers;
	bool alone;
	int folder; /* of the files */
	int device; /* where all processes write when the path leads to no file, else -1 */
	const char *path, *command;
	struct symbols *symbols; /* of all processes, because most have the same files */
	struct languages *languages;
	uint64_t quiet; /* ns: since when no process is known; 0: there is one */
	int lobby_fd, life_fd, object, socket;
	uint32_t name, bell;
	bool behind;                 /* the last pass has left requests for tables */
	uint64_t secret, proof;      /* of hellos, of answers */
	struct alloc_writer *writer; /* of the command's first program; its file ends last */
	uint32_t begun;              /* hellos of programs that begin */
	uint32_t refused;
};

/* ENOTSUP: this command cannot be recorded so; the message has the reason. */
struct err *alloc_shim_check(char *const argv[]);

/* --- shim_start.c --- */
struct alloc_shims_options {
	const char *path;    /* of the first file */
	const char *command; /* for the file */
	uint32_t depth;      /* most frames of stacks; 0: no stacks */
	uint32_t sample;     /* stacks of one allocation in so many; 0: of all */
	bool alone;          /* children and executed programs are not recorded */
};
struct err *alloc_shims_start(char *const argv[], const struct alloc_shims_options *o,
			      struct alloc_shims **ret);
void alloc_shims_free(struct alloc_shims *s);
/* Makes the memory of a process. */
struct err *alloc_shim_new(struct alloc_shims *of, struct alloc_shim **ret);
void alloc_shim_free(struct alloc_shim *s);

/* --- shim_set.c --- */
/* Waits a while for events and writes them. Returns false when all processes have ended and all is
 * written. */
bool alloc_shims_pass(struct alloc_shims *s);
/* Ends the recording, whether or not the processes have ended. Writes what is left. */
void alloc_shims_end(struct alloc_shims *s);
/* Children and programs that were not recorded, of which it is known. */
uint32_t alloc_shims_refused(const struct alloc_shims *s);

/* --- shim_drain.c --- */
/* Writes what a process has, 16 MB at most; rung: the bell was rung. Returns false when there is
 * more. */
bool alloc_shim_pass(struct alloc_shim *s, bool rung);
/* Ends the recording of a process. Writes what is left; behind the time `until` 1 MB at most, and
 * counts the rest as lost. */
void alloc_shim_end(struct alloc_shim *s, uint64_t until);

#endif
