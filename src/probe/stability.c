#include "probe/stability.h"

#include "base/glob.h"

const char *const stability_levels[LEVEL_COUNT] = {
	"Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"
};
const char *const stability_classes[CLASS_COUNT] = { "Unknown", "CPU", "Platform",
						     "Group",   "ISA", "Common" };

// clang-format off
#define P_UNKNOWN { LEVEL_PRIVATE, LEVEL_PRIVATE, CLASS_UNKNOWN }
#define P_ISA { LEVEL_PRIVATE, LEVEL_PRIVATE, CLASS_ISA }
#define E_ISA { LEVEL_EVOLVING, LEVEL_EVOLVING, CLASS_ISA }
#define E_COMMON { LEVEL_EVOLVING, LEVEL_EVOLVING, CLASS_COMMON }
#define E_CPU { LEVEL_EVOLVING, LEVEL_EVOLVING, CLASS_CPU }
#define S_COMMON { LEVEL_STABLE, LEVEL_STABLE, CLASS_COMMON }
#define U_COMMON { LEVEL_UNSTABLE, LEVEL_UNSTABLE, CLASS_COMMON }
// clang-format on

/* Providers not named: as io, proc and sched, which are described in the D library. */
static const struct {
	const struct provider *provider;
	struct stability prov, mod, func, name, args;
} table[] = {
	{ &provider_dtrace, S_COMMON, P_UNKNOWN, P_UNKNOWN, S_COMMON, S_COMMON },
	{ &provider_profile, E_COMMON, U_COMMON, P_UNKNOWN, E_COMMON, E_COMMON },
	{ &provider_lockstat, E_COMMON, P_UNKNOWN, P_UNKNOWN, E_COMMON, E_COMMON },
	{ &provider_syscall, E_COMMON, P_UNKNOWN, P_ISA, E_COMMON, P_ISA },
	{ &provider_fbt, E_COMMON, P_UNKNOWN, P_ISA, E_COMMON, P_ISA },
	{ &provider_sdt, E_ISA, P_UNKNOWN, P_UNKNOWN, P_ISA, P_ISA },
	{ &provider_rawtp, E_ISA, P_UNKNOWN, P_UNKNOWN, P_ISA, P_ISA },
	{ &provider_cpc, E_COMMON, P_UNKNOWN, P_UNKNOWN, E_CPU, E_COMMON },
	{ &provider_pid, E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, P_UNKNOWN },
	{ &provider_plt, E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, P_UNKNOWN },
	{ &provider_plockstat, E_COMMON, P_UNKNOWN, P_UNKNOWN, E_COMMON, E_COMMON },
	{ &provider_usdt, P_UNKNOWN, P_UNKNOWN, P_UNKNOWN, P_UNKNOWN, P_UNKNOWN },
	{ NULL, E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, E_ISA },
};

struct stability stability_min(struct stability a, struct stability b)
{
	return (struct stability){ a.names < b.names ? a.names : b.names,
				   a.data < b.data ? a.data : b.data,
				   a.dependency < b.dependency ? a.dependency : b.dependency };
}

static size_t row_of(const struct probe *p)
{
	size_t i = 0;

	while (table[i].provider && table[i].provider != p->provider)
		i++;
	return i;
}

void probe_stability(const struct probe *p, struct stability *ret_probe, struct stability *ret_args)
{
	const struct probe_desc whole = { p->prov, p->mod, p->func, p->name };

	*ret_probe = probe_desc_stability(&whole, p);
	*ret_args = table[row_of(p)].args;
}

struct stability probe_desc_stability(const struct probe_desc *pd, const struct probe *p)
{
	static const struct stability any = U_COMMON;
	const char *const text[] = { pd->mod, pd->func, pd->name };
	size_t row = row_of(p);
	const struct stability of[] = { table[row].mod, table[row].func, table[row].name };
	bool named = *pd->prov && !glob_is_pattern(pd->prov);
	struct stability all = named ? table[row].prov : any;

	for (size_t i = 0; i < ARRAY_SIZE(text) && named; i++)
		if (*text[i] && !glob_is_pattern(text[i]))
			all = stability_min(all, of[i]);
	return all;
}
