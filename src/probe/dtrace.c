/* Provider dtrace: BEGIN, END and ERROR, which descry runs itself. */
#include <string.h>

#include "probe/probe.h"
#include "probe/provider.h"

static const char *const names[] = { "BEGIN", "END", "ERROR" };

static struct err *dtrace_match(const struct provider *pv, struct probe_set *ps,
				const struct probe_desc *pd, probe_fn *found, void *arg)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct probe *p;

		if (!probe_desc_matches(pd, pv->name, "", "", names[i]))
			continue;
		p = probe_add(ps, pv, 1 + i, pv->name, "", "", names[i], NULL);
		p->kind = ATTACH_SELF;
		found(arg, p);
	}
	return NULL;
}

/* Describes ERROR's arguments: arg1 is the id of the probe that fired, arg2 the clause, arg3 the
 * place in the program, arg4 the fault, arg5 the fault's value. */
static struct err *dtrace_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	if (!strcmp(p->name, "ERROR")) {
		for (int i = 1; i <= 5; i++)
			ret->arg[i] = (struct probe_arg){ .source = ARG_FAULT,
							  .value = i,
							  .type = T_INT64 };
	}
	return NULL;
}

const struct provider provider_dtrace = {
	.name = "dtrace",
	.doc = "start, end and errors of the tracing itself",
	.first_id = 1,
	.last_id = 3,
	.stability = { S_COMMON, P_UNKNOWN, P_UNKNOWN, S_COMMON, S_COMMON },
	.claims = provider_claims_name,
	.match = dtrace_match,
	.args = dtrace_args,
};
