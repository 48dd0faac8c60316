/* The commands: `descry NAME ...`, one file each and a row of commands.def.
 *
 * cmd_NAME(): argv[0] is the command's name. Returns the exit status. NAME_opts[]: its options, of
 * which help and completion are made.
 */
#ifndef DESCRY_CMD_COMMANDS_H
#define DESCRY_CMD_COMMANDS_H

#include <stddef.h>

#include "opts.h"

#define COMMAND(name, doc) \
	int cmd_##name(int argc, char **argv); \
	extern const struct opt name##_opts[];
#include "commands.def"
#undef COMMAND

struct command {
	const char *name;
	const char *doc; /* one line for `descry help`; NULL: hidden */
	int (*run)(int argc, char **argv);
	const struct opt *opts;
};

extern const struct command commands[]; /* ends at a NULL name */
/* Returns the command of this name; NULL: none. */
const struct command *command_find(const char *name);

/* help.c: the output of `descry` without arguments. */
void help_overview(FILE *f);
/* For completion: calls each() for every topic. */
void help_topics(void (*each)(void *arg, const char *name, const char *doc), void *arg);

/* cmdline.c: the options of descry without a command. */
extern const struct opt trace_opts[];

#endif
