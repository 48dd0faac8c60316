/* Which kernel functions a BPF trampoline (fentry, fexit) can take. */
#ifndef DESCRY_PROBE_FENTRY_H
#define DESCRY_PROBE_FENTRY_H

#include "probe/probe.h"

enum {
	FENTRY_REG_ARGS = 6, /* more than these every kernel's trampolines do not pass (6.6) */
	FENTRY_ARGS_MAX = 12,
};

struct fentry_target {
	uint32_t btf_id;    /* of the function */
	const char *module; /* in whose BTF; NULL: vmlinux */
	uint32_t nargs;
};

/* NULL and where the function of a kprobe stands, else the reason why no trampoline takes it. What
 * only the kernel knows (its lists of functions that trampolines themselves need) it says when a
 * program is loaded. */
const char *fentry_refusal(struct type_graph *g, const struct probe *p, struct fentry_target *ret);

#endif
