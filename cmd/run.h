/* One run of D programs for a command: a session with settings from the command line, which signals
 * end.
 *
 * Order of calls: run_init(), the command's own options (options_put() on session.options),
 * run_all(). In: a command line. Out: an exit status; messages on standard error, in order.
 */
#ifndef DESCRY_CMD_RUN_H
#define DESCRY_CMD_RUN_H

#include "cmdline.h"
#include "session/session.h"

struct run {
	/* Set by the caller; the rest is zeroes. */
	struct cmdline *c;
	void (*message)(void *arg, const char *text, size_t n); /* NULL: standard error */
	void *arg;
	const volatile bool *stop; /* true: the run ends; NULL: never */
	int output;                /* descriptor of started programs' standard output; 0: its own */
	const char *user;          /* whose started programs are; NULL: this user's */
	FILE *to;                  /* takes the results; NULL: standard output, or the file of -o */
	/* Called when the targets are there; adds programs to c. Sets *ret_end when nothing is to
	 * be run. NULL: none. */
	struct err *(*prepare)(struct run *r, bool *ret_end);
	/* Called in place of session_poll(). NULL: session_poll() is. */
	bool (*poll)(struct run *r, struct err **ret_err);
	/* Called after each round of the run, and when it ends, while the probes are still there.
	 * NULL: nothing is. */
	struct err *(*round)(struct run *r, bool ends);
	/* A command that still runs when tracing ends is left alone. After ^C, which it may handle
	 * as it likes, run_all() waits for it. */
	bool leaves_commands;
	/* Set by run_all(): status from waitpid(2) of the command, if it has ended; else -1. */
	int command_status;
	/* Private to run.c. */
	struct session session;
	FILE *out;
	int status; /* of run_init() */
};

void run_init(struct run *r);
/* Runs all that the command line requests, with the sink (takes ownership; NULL: text or JSON).
 * Frees the run. Returns the exit status. */
int run_all(struct run *r, struct sink *sink);
/* Does the same for `descry` itself: without a command's options or sink. */
int cmd_run(struct cmdline *c);
/* Returns true when a signal has requested the end. */
bool cmd_interrupted(void);

/* Returns "script" or "description"; run_source_shown(): the number of its name's bytes that
 * messages show. */
const char *run_source_kind(const struct source *s);
size_t run_source_shown(const struct run *r, const struct source *s);

#endif
