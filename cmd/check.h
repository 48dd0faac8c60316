/* `descry check`: what descry can do on this machine, what tracing costs here, what can be tuned,
 * and the machine's parts. This header is shared by its files. */
#ifndef DESCRY_CMD_CHECK_H
#define DESCRY_CMD_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "check/table.h"

/* check_print.c */
/* Prints each table as text, or all tables as one JSON object with a member for each subject.
 * color: headings and answers have colours. */
void check_print(FILE *out, const struct check_table *tables, uint32_t n, bool color);
void check_json(FILE *out, const struct check_table *tables, uint32_t n);

/* check_trial.c */
enum { TRIAL_SUBJECTS = 4 };
/* Runs every trial: tables "engines", "providers", "stacks" and "names". */
void check_trials(struct check_table ret[TRIAL_SUBJECTS]);

/* check_cost.c */
void check_costs(struct check_table *ret);

/* check_run.c: runs descry as a person would run it */
struct check_run {
	int status; /* exit status; 128 + signal; -1: not started, or stopped after too much time */
	char *out, *errors;
};
/* Runs this program with these arguments (NULL-terminated, without the program's name) for at most
 * `seconds`. */
void check_run(const char *const *args, unsigned seconds, struct check_run *ret);
void check_run_fini(struct check_run *r);
/* Returns this program's path for a -c option. The text stays valid. */
const char *check_self(void);
/* Returns the message of a failed run, in one line without the program's name; free() it. */
char *check_reason(const struct check_run *r);

/* check_loop.c: the work that trials and costs trace. */
/* Runs `--loop NAME`. For costs, prints the nanoseconds of a call. "work" does a little of
 * everything that has a probe. */
int check_loop(const char *name);

#endif
