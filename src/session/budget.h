/* -x budget=N%: what tracing may cost, as a share of all CPUs of the machine.
 *
 * In: what the engine says of its programs' runs, this process's CPU time. Out: programs detached,
 * the dearest first.
 * Always true: whatever is stopped is said to err, and nothing is started again.
 */
#ifndef DESCRY_SESSION_BUDGET_H
#define DESCRY_SESSION_BUDGET_H

#include "load/engine.h"

struct budget {
	double share; /* 0: none */
	const char *progname;
	bool tags;
	FILE *err;
	uint64_t wall, own; /* ns, when it was last looked at */
	VEC(uint64_t) last; /* cost of each program until then, ns */
	VEC(struct engine_prog_report) now;
	VEC(bool) stopped;
};

/* "5%" or "0.5": a share of the machine. False with the reason. "" is none. */
bool budget_parse(const char *text, double *ret_share, const char **ret_why);
void budget_init(struct budget *b, double share, const char *progname, bool tags, FILE *err);
void budget_fini(struct budget *b);
/* Looks, when half a second has passed, at what tracing has cost since. False: it still costs too
 * much, and nothing is left to be stopped. */
bool budget_holds(struct budget *b, struct engine *e);

#endif
