/* How threads of the targets are told apart: wire_area.identity and id_disp. */
#ifndef DESCRY_LOAD_INPROC_IDENTITY_H
#define DESCRY_LOAD_INPROC_IDENTITY_H

#include <sys/user.h>

#include "load/inproc/state/inproc_state.h"

void identity_find(struct inproc_engine *e);
/* musl's library and dynamic linker are one file, which need not have a name of its own. */
bool identity_is_musl(struct object *o);
/* Does a program that was executed later tell its threads apart that way too? */
struct err *identity_check(struct inproc_engine *e, pid_t pid);
/* Can this thread be told yet? Before the dynamic linker has set up its word, a probe would end the
 * program. */
bool identity_is_set(const struct inproc_engine *e, const struct user_regs_struct *regs);

#endif
