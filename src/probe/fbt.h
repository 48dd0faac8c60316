#ifndef DESCRY_PROBE_FBT_H
#define DESCRY_PROBE_FBT_H

#include "probe/probe.h"

/* Explains why a description of fbt matches nothing. malloc()ed; NULL when pd is not of fbt. */
char *fbt_explain(struct probe_set *ps, const struct probe_desc *pd);
void fbt_free(struct fbt *f);

#endif
