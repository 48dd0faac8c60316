/* Runs programs in this process: BEGIN, END, timers, and events that the tracer fires. */
#include "load/inproc/state/prog_run.h"

_Static_assert(sizeof(((struct wire_private *)0)->spare) >= INPROC_CONTEXT * 8,
	       "room for a context");

/* Copies the context, because its address stands in the slot. */
void prog_run_with(struct inproc_engine *e, uint32_t prog, uint64_t cookie,
		   const uint64_t context[INPROC_CONTEXT])
{
	uint64_t (*run)(struct wire_thread *, const void *, uint64_t);
	struct inproc_prog *p = &e->progs[prog];
	uintptr_t at = p->addr + p->code.host;

	memcpy(&run, &at, sizeof(run));
	memcpy(e->private->spare, context, INPROC_CONTEXT * sizeof(*context));
	run(e->self, e->private->spare, cookie);
	p->runs++;
	e->aggs.end_flips = 0; /* it may have counted */
}

struct err *prog_run(struct inproc_engine *e, uint32_t prog, uint64_t cookie)
{
	const uint64_t context[INPROC_CONTEXT] = { 0 };

	prog_run_with(e, prog, cookie, context);
	return NULL;
}
