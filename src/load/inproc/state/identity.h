/* Finds the word that distinguishes the threads of the targets: wire_area.identity and id_disp. */
#ifndef DESCRY_LOAD_INPROC_IDENTITY_H
#define DESCRY_LOAD_INPROC_IDENTITY_H

#include <sys/user.h>

#include "load/inproc/state/inproc_state.h"

void identity_find(struct inproc_engine *e);
/* Returns true for musl. Its library and dynamic linker are one file, which need not have a name of
 * its own. */
bool identity_is_musl(struct object *o);
/* Returns an error when the threads of a program that was executed later have another identity
 * word. */
struct err *identity_check(struct inproc_engine *e, pid_t pid);
/* Returns true when the thread has its identity word. Before the dynamic linker has set it, a probe
 * would end the program. */
bool identity_is_set(const struct inproc_engine *e, const struct user_regs_struct *regs);
/* Refuses a stopped process with threads that have equal words, or none that can be read. Such
 * threads are not the C library's: two of them would use one slot, or a firing would fault. */
struct err *identity_check_threads(const struct inproc_engine *e, struct control *c);

#endif
