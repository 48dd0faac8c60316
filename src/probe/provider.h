/* Functions that several providers share. Private to src/probe/. */
#ifndef DESCRY_PROBE_PROVIDER_H
#define DESCRY_PROBE_PROVIDER_H

#include "probe/probe.h"

/* Returns true when prov_pattern matches the provider's name. For providers with one fixed name. */
bool provider_claims_name(const struct provider *pv, const char *prov_pattern);

/* Returns the type of a C text; void * or int64_t when this kernel has no such type. */
type_id provider_type(struct probe_set *ps, const char *text);

/* Describes the same value as arg<n> and, with its type, as args[n]. */
void provider_set_arg(struct probe_set *ps, struct probe_args *args, uint32_t n,
		      const struct probe_arg *a);

#endif
