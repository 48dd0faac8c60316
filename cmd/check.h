/* `descry check`: what this machine allows, what tracing costs here, what can be tuned, what it is
 * made of. Its files share: */
#ifndef DESCRY_CMD_CHECK_H
#define DESCRY_CMD_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "check/table.h"

int cmd_check(int argc, char **argv);

/* check_print.c */
/* Each table as text, or all as one JSON object, subject by subject. color: headings and
 * answers. */
void check_print(FILE *out, const struct check_table *tables, uint32_t n, bool color);
void check_json(FILE *out, const struct check_table *tables, uint32_t n);

/* check_trial.c */
enum { TRIAL_SUBJECTS = 4 };
/* Runs every trial: tables "engines", "providers", "stacks" and "names". */
void check_trials(struct check_table ret[TRIAL_SUBJECTS]);

/* check_cost.c */
void check_costs(struct check_table *ret);

/* check_run.c: descry run as a person would run it */
struct check_run {
	int status; /* exit status; 128 + signal; -1 not started, or ended for want of time */
	char *out, *errors;
};
/* Runs this program with these arguments (NULL-terminated, without its name) for at most
 * `seconds`. */
void check_run(const char *const *args, unsigned seconds, struct check_run *ret);
void check_run_fini(struct check_run *r);
/* How this program is called in a -c option: its path. Valid for ever. */
const char *check_self(void);
/* The message of a run that failed, in one line without the program's name; free() it. */
char *check_reason(const struct check_run *r);

/* check_loop.c: what trials and costs are tried on. */
/* `--loop NAME`: prints nanoseconds a call, for costs; "work": does a little of everything that has
 * a probe. */
int check_loop(const char *name);

#endif
