/* Which engine runs a program when -x engine does not say. Why in this order:
 * doc/decisions/0012-inside-first.md. */
#ifndef DESCRY_CMD_CHOICE_H
#define DESCRY_CMD_CHOICE_H

#include "compile/bind/bind.h"
#include "compile/ir/gen.h"
#include "load/engine.h"
#include "target.h"

enum engine_kind {
	ENGINE_AUTO,
	ENGINE_KERNEL,
	ENGINE_INTERP,
	ENGINE_INPROC,       /* as options.def lists them */
	ENGINE_INPROC_ALL,   /* refuses what it could not do nearly in full */
	ENGINE_INPROC_EVERY, /* ... in full */
	ENGINE_SPLIT, /* what can be patched from inside, the other places by the kernel; after INPROC_EVERY */
	ENGINES_TRIED = 4
};

/* Those to be tried, in order; how many. */
uint32_t engines_choose(const struct bound *b, const struct target *targets, uint32_t ntargets,
			enum engine_kind ret[ENGINES_TRIED]);
/* Is one of them another user's, or does it have privileges that we have not? Such are not traced
 * from inside unasked: the program shares memory with descry. */
bool engines_are_strange(const struct target *targets, uint32_t ntargets);
/* Are there probes that the kernel's engine fires for other processes than those that are named,
 * and that can be had from inside? Then what a command starts is traced too. */
bool engines_reach_children(const struct bound *b);
/* Are there probes of system calls? */
bool engines_see_syscalls(const struct bound *b);
/* Does it trace named processes from inside, all or in part? */
bool engine_is_inside(enum engine_kind k);
/* What is compiled for it; of SPLIT the part that is inside. */
struct compile_target engine_compile_target(enum engine_kind k);

#endif
