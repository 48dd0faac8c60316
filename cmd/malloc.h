/* The parts of `descry malloc`. */
#ifndef DESCRY_CMD_MALLOC_H
#define DESCRY_CMD_MALLOC_H

#include "cmdline.h"

struct malloc_options {
	const char *path; /* -o */
	uint32_t depth;   /* -k */
	uint32_t sample;  /* record: stacks of one allocation in so many; 0: of all */
	bool show_d, json, salvage;
	bool probes;      /* record: by the D program, not by a preloaded library */
	bool alone;       /* record: children and executed programs are left out */
	bool follow;      /* by probes: they are recorded, too */
	uint32_t most;    /* -n */
	const char *of;   /* --of: which bytes or blocks stacks are drawn of */
	const char *with; /* --with: allocators */
	uint32_t runs;    /* --runs */
	bool touch;       /* --touch */
	uint32_t memory;  /* --memory: MB; 0: not given */
	const char *threads, *speed, *picture; /* --threads, --speed, --picture */
	struct cmdline c;                      /* of the run: processes and settings */
	char *const *words;                    /* what follows the options */
	uint32_t nwords;
};

int malloc_record(struct malloc_options *o);
/* malloc_shim.c: records a command by a preloaded library. Returns false when it cannot, after a
 * message with the reason. */
bool malloc_record_shim(struct malloc_options *o, int *ret_status);
int malloc_report(struct malloc_options *o);
int malloc_diff(struct malloc_options *o);
int malloc_replay(struct malloc_options *o);
int malloc_compare(struct malloc_options *o);
/* A process of replay: descry malloc play FD MODE. Writes a struct replay_result. */
int malloc_play(struct malloc_options *o);

#endif
