/* The commands: `descry NAME ...`. The table is in main.c. */
#ifndef DESCRY_CMD_COMMANDS_H
#define DESCRY_CMD_COMMANDS_H

#include <stddef.h>

#include "opts.h"

struct command {
	const char *name;
	const char *doc; /* one line for `descry help` */
	int (*run)(int argc, char **argv);
	const struct opt *opts; /* NULL: takes none */
};

extern const struct command commands[]; /* ended by a name that is NULL */
/* The command called `name`; NULL: none is. */
const struct command *command_find(const char *name);

/* help.c: `descry help [TOPIC]`, and what `descry` alone prints. */
int cmd_help(int argc, char **argv);
void help_overview(FILE *f);
/* For completion: the topics, one call each. */
void help_topics(void (*each)(void *arg, const char *name, const char *doc), void *arg);

/* list.c */
int cmd_list_command(int argc, char **argv);
/* complete.c: `descry complete N WORD...`, which the completion of the shells calls. */
int cmd_complete(int argc, char **argv);

/* The options of descry itself, without a command: cmdline.c. */
extern const struct opt trace_opts[];
extern const struct opt check_opts[], flame_opts[], heal_opts[], heat_opts[], profile_opts[],
	serve_opts[], list_opts[], stack_opts[];

#endif
