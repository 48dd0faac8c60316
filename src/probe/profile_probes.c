/* Provider profile: profile-RATE on every CPU, tick-RATE on one CPU. The provider makes a probe of
 * any rate when a program names it. The table below has the rates that -l lists.
 *
 *	rate = number [ "hz" | "ns" | "us" | "ms" | "s" | "m" | "h" | "d" or a longer spelling ]      no unit: hz
 */
#include "probe/profile.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/glob.h"
#include "base/number.h"
#include "probe/provider.h"

static const uint64_t NSEC = 1000000000;
static const uint64_t MIN_PERIOD = 200000; /* 5000 a second, as in DTrace */

static const char *const listed[] = {
	"profile-97",   "profile-199",  "profile-499", "profile-997", "profile-1999",
	"profile-4001", "profile-4999", "tick-1",      "tick-10",     "tick-100",
	"tick-500",     "tick-1000",    "tick-5000",
};

struct rate {
	bool tick;
	uint64_t period;
};

/* Returns the text after "profile-" or "tick-"; NULL when name begins with neither. */
static const char *rate_text(const char *name, bool *ret_tick)
{
	*ret_tick = !strncmp(name, "tick-", 5);
	return *ret_tick ? name + 5 : strncmp(name, "profile-", 8) ? NULL : name + 8;
}

/* Parses name. Returns false and sets *ret_why (static text) when it is not a rate. */
static bool parse_rate(const char *name, struct rate *ret, const char **ret_why)
{
	const char *text = rate_text(name, &ret->tick);
	uint64_t value, unit;
	char *end;

	*ret_why = NULL;
	if (!text)
		return false;
	*ret_why = "a rate is a number and a unit: hz (or none), ns, us, ms, s, m, h, d";
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	unit = (uint64_t)number_time_unit(end);
	if (!unit && *end && strcasecmp(end, "hz") != 0)
		return false;
	*ret_why = "a rate must be more than 0";
	if (!value)
		return false;
	*ret_why = "the period is too long";
	if (errno || (unit && value > INT64_MAX / unit))
		return false;
	*ret_why = "the fastest rate is 5000 a second, a period of 200 us";
	if (unit ? value * unit < MIN_PERIOD : value > NSEC / MIN_PERIOD)
		return false;
	ret->period = unit ? value * unit : NSEC / value;
	return true;
}

static struct probe *add_rate(const struct provider *pv, struct probe_set *ps, const char *name)
{
	struct rate r;
	const char *why;
	struct probe *p;
	bool is_new;

	if (!parse_rate(name, &r, &why))
		return NULL;
	p = probe_add(ps, pv, pv->first_id + ps->nprofile, pv->name, "", "", name, &is_new);
	if (is_new) {
		ps->nprofile++;
		p->kind = r.tick ? ATTACH_TICK : ATTACH_PROFILE;
		p->period_ns = r.period;
	}
	return p;
}

void match_rates(const struct provider *pv, struct probe_set *ps, const struct probe_desc *pd,
		 struct probe *(*add)(const struct provider *pv, struct probe_set *ps,
				      const char *name),
		 probe_fn *found, void *arg)
{
	if (!glob_is_pattern(pd->name) && *pd->name) {
		struct probe *p = add(pv, ps, pd->name);

		if (p)
			found(arg, p);
		return;
	}
	for (uint32_t i = 0; i < ps->all.n; i++) {
		struct probe *p = ps->all.v[i];

		if (p->provider == pv && glob_match(pd->name, p->name))
			found(arg, p);
	}
}

static struct err *profile_match(const struct provider *pv, struct probe_set *ps,
				 const struct probe_desc *pd, probe_fn *found, void *arg)
{
	if (!glob_match(pd->mod, "") || !glob_match(pd->func, ""))
		return NULL;
	if (!ps->nprofile) {
		for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
			add_rate(pv, ps, listed[i]);
	}
	match_rates(pv, ps, pd, add_rate, found, arg);
	return NULL;
}

/* Describes arg0, the kernel's pc, and arg1, the user's pc. The pc of the part that did not run is
 * 0. */
struct err *profile_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	ret->arg[0] = (struct probe_arg){ .source = ARG_KERNEL_PC, .type = T_UINT64 };
	ret->arg[1] = (struct probe_arg){ .source = ARG_USER_PC, .type = T_UINT64 };
	return NULL;
}

char *profile_explain(const struct probe_desc *pd)
{
	struct rate r;
	const char *why;

	if (!glob_match(pd->prov, "profile") || glob_is_pattern(pd->name) ||
	    parse_rate(pd->name, &r, &why) || !why)
		return NULL;
	return xasprintf("%s: %s", pd->name, why);
}

const struct provider provider_profile = {
	.name = "profile",
	.doc = "timers: profile-RATE on every CPU, tick-RATE on one; 97, 10hz, 5ms, 1s, 1m",
	.first_id = 1000,
	.last_id = 9999,
	.stability = { E_COMMON, U_COMMON, P_UNKNOWN, E_COMMON, E_COMMON },
	.claims = provider_claims_name,
	.match = profile_match,
	.args = profile_args,
};
