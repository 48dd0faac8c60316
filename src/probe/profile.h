#ifndef DESCRY_PROBE_PROFILE_H
#define DESCRY_PROBE_PROFILE_H

#include "probe/probe.h"

/* What is wrong with a rate such as profile-10000 or tick-5x; malloc()ed, NULL when pd names no rate or a good one. */
char *profile_explain(const struct probe_desc *pd);

#endif
