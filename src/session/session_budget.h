/* -x budget=N%: a limit on the CPU time of tracing, as a share of all CPUs of the machine.
 *
 * In: the engine's report of its programs' runs, this process's CPU time. Out: programs detached,
 * the most expensive first.
 * Always true: say() reports each detached program, and none is started again.
 */
#ifndef DESCRY_SESSION_SESSION_BUDGET_H
#define DESCRY_SESSION_SESSION_BUDGET_H

#include "load/engine.h"

struct budget {
	double share; /* 0: no limit */
	bool tags;
	void (*say)(void *arg, const char *text); /* a message, without its line feed */
	void *arg;
	uint64_t wall, own; /* ns, at the last check */
	VEC(uint64_t) last; /* cost of each program until that check, ns */
	VEC(struct engine_prog_report) now;
	VEC(bool) stopped;
};

/* Parses "5%" or "0.5", a share of the machine. "" means no limit. On false, *ret_why is the
 * reason. */
bool budget_parse(const char *text, double *ret_share, const char **ret_why);
void budget_init(struct budget *b, double share, bool tags,
		 void (*say)(void *arg, const char *text), void *arg);
void budget_fini(struct budget *b);
/* Checks the cost of tracing, when half a second has passed since the last check. Returns false
 * when the cost is still too high and no program is left to detach. */
bool budget_holds(struct budget *b, struct engine *e);

#endif
