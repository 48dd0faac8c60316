/* Processes named by -c and -p: started or found, watched, let go. */
#ifndef DESCRY_PROGRAM_TARGET_NAMED_H
#define DESCRY_PROGRAM_TARGET_NAMED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct target {
	pid_t pid;
	bool command; /* ours: stopped at its exec until target_release */
	bool stopped, gone;
	struct control *control; /* of a command that is held */
	bool at_entry;           /* ... at its program's entry point or main() */
	int pidfd;               /* -p */
	int status;              /* of a command that is gone: waitpid(2)'s */
};

/* Starts `command` (split at blanks, quotes kept) and holds it at its first instruction. */
struct err *target_start(const char *command, struct target *ret);
/* Lets a held command's dynamic linker map its libraries and holds it again at the program's entry
 * point. */
struct err *target_to_entry(struct target *t);
/* The same, at main(): initialisers have run. */
struct err *target_to_main(struct target *t);
struct err *target_grab(pid_t pid, struct target *ret);
/* Lets a held command run. */
void target_release(struct target *t);
/* Looks whether it has ended; true when it has. A command is reaped. */
bool target_gone(struct target *t);
/* How one that is gone has ended: "has exited", "exited with status 2", "terminated by SIGSEGV"; of
 * -p only that it has. malloc()ed. */
char *target_end(const struct target *t);
/* Lets go: a command still held or running is ended (SIGTERM) when `end`, else left alone. */
void target_drop(struct target *t, bool end);

#endif
