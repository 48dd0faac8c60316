/* A process as the in-process engine lays it out, with the agent's blob in it, for tests and
 * bench/agent. */
#ifndef DESCRY_TEST_AGENT_WORLD_H
#define DESCRY_TEST_AGENT_WORLD_H

#include "wire/inproc.h"

enum world_map {
	WORLD_ARRAY,            /* 4 x uint64_t */
	WORLD_SCRATCH,          /* 4 per thread, busy words, 512 bytes */
	WORLD_COUNTERS,         /* 64 x uint64_t per thread */
	WORLD_AGG,              /* 8 -> 16 bytes, 256 keys, 1024 buckets */
	WORLD_AGG_TEXT,         /* 32 -> 16 bytes */
	WORLD_AGG_LONG,         /* 256 -> 8 bytes, 64 keys */
	WORLD_HASH,             /* 24 -> 40 bytes, 1024 keys */
	WORLD_RING,             /* 4096 bytes */
	WORLD_TASK,             /* 64 bytes */
	WORLD_STACKS,           /* 8 -> struct wire_stack, 64 keys */
	WORLD_UNWIND,           /* 128 chunks of unwind tables, none there */
	WORLD_UNWIND_PROCESSES, /* 4 -> struct wire_unwind_process, 16 keys */
	WORLD_UNWIND_WANTED,    /* 4096 bytes */
	WORLD_MAPS
};
enum { WORLD_THREADS = 8, WORLD_UNDO = 16, WORLD_ROOM = 24 << 20 };

struct world {
	uint64_t base;
	struct wire_area *area;
	struct wire_common *common;
	struct wire_private *private;
	struct wire_kept *kept;
	struct wire_map *maps;
	struct wire_process *process; /* number 1: this one */
	struct wire_said *said;       /* likewise */
	uint64_t facts;               /* where the next piece of facts is taken */
	const struct wire_agent_head *head;
	uint8_t *room;         /* WORLD_ROOM bytes of shared memory, nobody's */
	struct wire_thread *t; /* this thread's slot, when asked for */
};

/* Once in a process: at another base each time. */
void world_make(struct world *w);
/* A piece of the facts; its address. */
uint64_t world_facts(struct world *w, uint64_t size);
/* Publishes the ranges of this process that can be read now (wire_process.ranges). */
void world_ranges(struct world *w);
uint64_t world_call(const struct world *w, enum wire_agent_entry entry, uint64_t r1, uint64_t r2,
		    uint64_t r3, uint64_t r4);
/* The words of a slot that only its process writes. */
struct wire_own *world_own(const struct world *w, const struct wire_thread *t);
/* Returns the entry that leads to a thread's slot. */
struct wire_thread_entry *world_entry(const struct world *w, const struct wire_thread *t);
/* The calling thread's slot, as a thunk that fires at the caller would have it. */
struct wire_thread *world_thread(struct world *w, uint64_t key);
/* Children have no shared memory: wire_area.follow is 0. */
void world_share_nothing(const struct world *w);
uint64_t world_map(const struct world *w, enum world_map map); /* address of its descriptor */

#endif
