/* The in-process engine's operations, made of its parts. Its interface is engine_inproc in
 * load/engine.h.
 *
 *	inproc_area.c    maps the shared memory here, and lays it out for an image
 *	inproc_progs.c   links and compiles programs, writes them to the code mapping; runs timers
 *	inproc_aggs.c    flips the generations of aggregations, and adds up the threads' tables
 *	inproc_reclaim.c removes pages of the shared memory that nobody needs any more
 *	inproc_bells.c   waits for bells, timers and events
 *	inproc_engine.c  has the operations
 */
#ifndef DESCRY_LOAD_INPROC_PRIVATE_H
#define DESCRY_LOAD_INPROC_PRIVATE_H

#include <stdio.h>

#include "load/inproc/state/inproc_state.h"

/* inproc_area.c */
struct err *area_create(struct inproc_engine *e, const struct image *img);
void area_free(struct inproc_engine *e);

/* inproc_progs.c */
struct err *progs_compile(struct inproc_engine *e);
struct err *progs_print(FILE *out, const struct image *img); /* engine_type.print */
void progs_free(struct inproc_engine *e);
struct err *inproc_start_timers(struct inproc_engine *e);
void inproc_run_timers(struct inproc_engine *e); /* that are due */

/* inproc_aggs.c */
void aggs_flip(struct inproc_engine *e);
struct err *aggs_read(struct inproc_engine *e, uint32_t agg, agg_fn *fn, void *arg);
struct err *aggs_delete(struct inproc_engine *e, uint32_t agg, const void *key,
			uint64_t *ret_values);
void aggs_store_free(struct inproc_engine *e);

/* inproc_reclaim.c: once a second, when the shared memory is large. The rings have been read. */
void reclaim_look(struct inproc_engine *e);

/* inproc_bells.c */
/* Waits as poll() would, but also returns when a bell of one of the n engines rings. */
void bell_wait(struct inproc_engine *const *e, uint32_t n, int timeout_ms);
/* Passes the requests of bells to loads_look() and execs_asked(). The caller calls bell_answer()
 * afterwards. */
void bell_take(struct inproc_engine *e);

#endif
