/* Computes how stable probes and descriptions of probes are. */
#include "base/glob.h"
#include "probe/probe.h"

const char *const stability_levels[LEVEL_COUNT] = {
	"Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"
};
const char *const stability_classes[CLASS_COUNT] = { "Unknown", "CPU", "Platform",
						     "Group",   "ISA", "Common" };

struct stability stability_min(struct stability a, struct stability b)
{
	return (struct stability){ a.names < b.names ? a.names : b.names,
				   a.data < b.data ? a.data : b.data,
				   a.dependency < b.dependency ? a.dependency : b.dependency };
}

void probe_stability(const struct probe *p, struct stability *ret_probe, struct stability *ret_args)
{
	const struct probe_desc whole = { p->prov, p->mod, p->func, p->name };

	*ret_probe = probe_desc_stability(&whole, p);
	*ret_args = p->provider->stability.args;
}

struct stability probe_desc_stability(const struct probe_desc *pd, const struct probe *p)
{
	static const struct stability any = U_COMMON;
	const struct provider_stability *s = &p->provider->stability;
	const char *const text[] = { pd->mod, pd->func, pd->name };
	const struct stability of[] = { s->mod, s->func, s->name };
	bool named = *pd->prov && !glob_is_pattern(pd->prov);
	struct stability all = named ? s->prov : any;

	for (size_t i = 0; i < ARRAY_SIZE(text) && named; i++)
		if (*text[i] && !glob_is_pattern(text[i]))
			all = stability_min(all, of[i]);
	return all;
}
