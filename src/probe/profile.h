#ifndef DESCRY_PROBE_PROFILE_H
#define DESCRY_PROBE_PROFILE_H

#include "probe/probe.h"

/* Explains an invalid rate such as profile-10000 or tick-5x. malloc()ed; NULL when pd names no
 * rate, or a valid one. */
char *profile_explain(const struct probe_desc *pd);
/* Explains an invalid count of the provider cpc in the same way. */
char *cpc_explain(const struct probe_desc *pd);
/* Matches for profile and cpc, which have more probes than a list can hold. `add` makes the probe
 * of a plain name (it returns NULL for an invalid rate). A pattern finds only probes that were
 * made. */
void match_rates(const struct provider *pv, struct probe_set *ps, const struct probe_desc *pd,
		 struct probe *(*add)(const struct provider *pv, struct probe_set *ps,
				      const char *name),
		 probe_fn *found, void *arg);
/* Describes the arguments for profile and cpc: arg0 is the kernel's pc, arg1 the user's. The pc of
 * the part that did not run is 0. */
struct err *profile_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
