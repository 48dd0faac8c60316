#ifndef DESCRY_PROBE_PROFILE_H
#define DESCRY_PROBE_PROFILE_H

#include "probe/probe.h"

/* What is wrong with a rate such as profile-10000 or tick-5x; malloc()ed, NULL when pd names no
 * rate or a good one. */
char *profile_explain(const struct probe_desc *pd);
/* The same for cpc. */
char *cpc_explain(const struct probe_desc *pd);
/* Both have more probes than can be listed: a plain name is made by `add` (NULL: no such rate), a
 * pattern finds what was made. */
void match_rates(const struct provider *pv, struct probe_set *ps, const struct probe_desc *pd,
		 struct probe *(*add)(const struct provider *pv, struct probe_set *ps,
				      const char *name),
		 void (*found)(void *arg, struct probe *p), void *arg);
/* Arguments of both: arg0 the kernel's pc, arg1 the user's; the one that was not running is 0. */
struct err *profile_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);

#endif
