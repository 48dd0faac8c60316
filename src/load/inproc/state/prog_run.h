/* Runs programs in the tracer. */
#ifndef DESCRY_LOAD_INPROC_PROG_RUN_H
#define DESCRY_LOAD_INPROC_PROG_RUN_H

#include "load/inproc/state/inproc_state.h"

struct err *prog_run(struct inproc_engine *e, uint32_t prog, uint64_t cookie);
enum { INPROC_CONTEXT = 21 }; /* words: the size of struct pt_regs */
void prog_run_with(struct inproc_engine *e, uint32_t prog, uint64_t cookie,
		   const uint64_t context[INPROC_CONTEXT]);

#endif
