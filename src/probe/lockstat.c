#include "probe/provider.h"
static struct err *lockstat_match(const struct provider *pv, struct probe_set *ps, const struct probe_desc *pd, void (*found)(void *arg, struct probe *p), void *arg) { return NULL; }
static struct err *lockstat_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret) { return NULL; }
const struct provider provider_lockstat = { .name = "lockstat", .doc = "", .claims = provider_claims_name, .match = lockstat_match, .args = lockstat_args };
