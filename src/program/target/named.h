/* Processes named by -c and -p: started or found, watched, released. */
#ifndef DESCRY_PROGRAM_TARGET_NAMED_H
#define DESCRY_PROGRAM_TARGET_NAMED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct target {
	pid_t pid;
	bool command; /* of -c: stopped at its exec until target_release */
	bool stopped, gone;
	struct control *control; /* of a held command */
	bool at_entry;           /* held at its program's entry point or main() */
	int pidfd;               /* -p */
	int status;              /* status from waitpid(2) of a command that has ended */
};

/* Starts `command` (split at blanks outside quotes) and holds it at its first instruction. output:
 * the descriptor of its standard output; 0: this process's own. user: whose it is; NULL: this
 * user's. */
struct err *target_start(const char *command, int output, const char *user, struct target *ret);
/* Lets a held command's dynamic linker map its libraries, and holds the command at the program's
 * entry point. */
struct err *target_to_entry(struct target *t);
/* Runs a held command to main(), behind its initialisers. */
struct err *target_to_main(struct target *t);
struct err *target_grab(pid_t pid, struct target *ret);
/* Lets a held command run. */
void target_release(struct target *t);
/* Returns true when the process has ended. Reaps a command. */
bool target_gone(struct target *t);
/* Returns how an ended process ended: "has exited", "exited with status 2", "terminated by
 * SIGSEGV"; of a -p process only that it has. The caller frees it. */
char *target_end(const struct target *t);
/* Drops the process. `end`: ends a command that is held or runs (SIGTERM). Otherwise leaves it
 * alone. */
void target_drop(struct target *t, bool end);

#endif
