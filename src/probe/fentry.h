/* Which kernel functions a BPF trampoline (fentry, fexit) can take. */
#ifndef DESCRY_PROBE_FENTRY_H
#define DESCRY_PROBE_FENTRY_H

#include "probe/probe.h"

enum {
	FENTRY_REG_ARGS = 6, /* arguments that every kernel's trampolines pass; more from 6.6 */
	FENTRY_ARGS_MAX = 12,
};

struct fentry_target {
	uint32_t btf_id;    /* of the function */
	const char *module; /* the module whose BTF has it; NULL: vmlinux */
	uint32_t nargs;
};

/* Returns NULL and sets *ret when a trampoline can serve the kprobe p, else the reason why not.
 * Some refusals only the kernel knows, such as its lists of functions that trampolines need
 * themselves. The kernel reports them when it loads the program. */
const char *fentry_refusal(struct type_graph *g, const struct probe *p, struct fentry_target *ret);

#endif
