/* One run of D programs for a command: a session, its settings by the command line, its end by
 * signals.
 *
 * Order of calls: run_init(), the command's own options (options_put() on session.options),
 * run_all(). In: a command line. Out: an exit status; messages on standard error, where they arise.
 */
#ifndef DESCRY_CMD_RUN_H
#define DESCRY_CMD_RUN_H

#include "cmdline.h"
#include "session/session.h"

struct run {
	/* Given; the rest is zeroes. */
	struct cmdline *c;
	void (*message)(void *arg, const char *text, size_t n); /* NULL: standard error */
	void *arg;
	const volatile bool *stop; /* true: the run ends; NULL: never */
	/* run.c's. */
	struct session session;
	FILE *out;
	int status; /* of run_init() */
};

void run_init(struct run *r);
/* All that the command line asks for, with the sink (taken; NULL: text or JSON). Frees the run. The
 * exit status. */
int run_all(struct run *r, struct sink *sink);
/* The same of `descry` itself: without options or a sink of a command's own. */
int cmd_run(struct cmdline *c);
/* A signal asked for the end. */
bool cmd_interrupted(void);

/* "script" or "description", and the bytes of its name that are shown. */
const char *run_source_kind(const struct source *s);
size_t run_source_shown(const struct run *r, const struct source *s);

#endif
