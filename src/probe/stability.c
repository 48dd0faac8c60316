#include "probe/stability.h"

/* Each list from the least to the most. */
enum level { PRIVATE, UNSTABLE, EVOLVING, STABLE };
static const char *const levels[] = { "Private", "Unstable", "Evolving", "Stable" };
enum class { UNKNOWN, CPU, ISA, COMMON };
static const char *const classes[] = { "Unknown", "CPU", "ISA", "Common" };

struct attributes {
	enum level names, data;
	enum class dependency;
};

// clang-format off
#define P_UNKNOWN { PRIVATE, PRIVATE, UNKNOWN }
#define P_ISA { PRIVATE, PRIVATE, ISA }
#define E_ISA { EVOLVING, EVOLVING, ISA }
#define E_COMMON { EVOLVING, EVOLVING, COMMON }
#define E_CPU { EVOLVING, EVOLVING, CPU }
#define S_COMMON { STABLE, STABLE, COMMON }
#define U_COMMON { UNSTABLE, UNSTABLE, COMMON }
// clang-format on

/* Providers not named: as io, proc and sched, which are described in the D library. */
static const struct {
	const struct provider *provider;
	struct attributes prov, mod, func, name, args;
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

static struct attributes least(struct attributes a, const char *text, struct attributes b)
{
	if (!*text)
		return a;
	return (struct attributes){ a.names < b.names ? a.names : b.names,
				    a.data < b.data ? a.data : b.data,
				    a.dependency < b.dependency ? a.dependency : b.dependency };
}

static struct stability words(struct attributes a)
{
	return (struct stability){ levels[a.names], levels[a.data], classes[a.dependency] };
}

void probe_stability(const struct probe *p, struct stability *ret_probe, struct stability *ret_args)
{
	struct attributes all = S_COMMON;
	size_t i = 0;

	while (table[i].provider && table[i].provider != p->provider)
		i++;
	all = least(all, p->prov, table[i].prov);
	all = least(all, p->mod, table[i].mod);
	all = least(all, p->func, table[i].func);
	all = least(all, p->name, table[i].name);
	*ret_probe = words(all);
	*ret_args = words(table[i].args);
}
