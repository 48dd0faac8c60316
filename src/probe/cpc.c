/* Provider cpc: EVENT-MODE-COUNT fires each time that EVENT has happened COUNT times on a CPU.
 *
 *	MODE = "user" | "kernel" | "all"
 *
 * EVENT is a software event, or a hardware event for which perf_event_open(2) has a generic number,
 * or "pmc0" to "pmc5". The provider makes a probe of any COUNT when a program names it. The table
 * below has the probes that -l lists.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "base/glob.h"
#include "probe/profile.h"
#include "probe/provider.h"

static const uint64_t MIN_CLOCK = 200000; /* 5000 a second, the limit of the provider profile */

static const struct counter {
	const char *name;
	uint32_t type, config;
	uint32_t listed; /* count */
} counters[] = {
	{ "cpu_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000 },
	{ "task_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000000 },
	{ "page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 100 },
	{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 100 },
	{ "minor_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 100 },
	{ "major_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1 },
	{ "context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 100 },
	{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 100 },
	{ "cpu_migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 10 },
	{ "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 10 },
	{ "alignment_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, 1 },
	{ "emulation_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, 1 },
	{ "cpu_cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000000 },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000000 },
	{ "cache_references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 10000 },
	{ "cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 10000 },
	{ "branch_instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100000 },
	{ "branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 10000 },
	/* as libpfm and DTrace call them */
	{ "perf_count_sw_cpu_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000 },
	{ "perf_count_sw_task_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000000 },
	{ "perf_count_sw_page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 100 },
	{ "perf_count_sw_page_faults_min", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 100 },
	{ "perf_count_sw_page_faults_maj", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1 },
	{ "perf_count_sw_context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  100 },
	{ "perf_count_sw_cpu_migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 10 },
	{ "perf_count_sw_alignment_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, 1 },
	{ "perf_count_sw_emulation_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, 1 },
};

struct overflow {
	const struct counter *counter;
	bool no_user, no_kernel;
	uint64_t count;
};

static bool is_word(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(s, word, n);
}

/* Parses name. Returns false and sets *ret_why (static text) when name is not EVENT-MODE-COUNT. */
static bool parse_overflow(const char *name, struct overflow *ret, const char **ret_why)
{
	const char *mode = strchr(name, '-'), *count = mode ? strchr(mode + 1, '-') : NULL;
	char *end;

	*ret = (struct overflow){ 0 };
	*ret_why = "a name is EVENT-MODE-COUNT: page_faults-all-100";
	if (!count)
		return false;
	*ret_why = "no such event: descry -l -P cpc lists them";
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		if (is_word(name, (size_t)(mode - name), counters[i].name))
			ret->counter = &counters[i];
	}
	if (!ret->counter)
		return false;
	*ret_why = "the mode is user, kernel or all";
	mode++;
	ret->no_user = is_word(mode, (size_t)(count - mode), "kernel");
	ret->no_kernel = is_word(mode, (size_t)(count - mode), "user");
	if (!ret->no_user && !ret->no_kernel && !is_word(mode, (size_t)(count - mode), "all"))
		return false;
	*ret_why = "the count is a number of 1 or more";
	if (count[1] < '0' || count[1] > '9')
		return false;
	errno = 0;
	ret->count = strtoull(count + 1, &end, 10);
	if (*end || errno || !ret->count || ret->count > INT64_MAX)
		return false;
	*ret_why = "a clock counts nanoseconds: 200000 is the least";
	return ret->count >= MIN_CLOCK || !strstr(ret->counter->name, "_clock");
}

static struct probe *add_overflow(const struct provider *pv, struct probe_set *ps, const char *name)
{
	struct overflow o;
	const char *why;
	struct probe *p;
	bool is_new;

	if (!parse_overflow(name, &o, &why))
		return NULL;
	p = probe_add(ps, pv, pv->first_id + ps->ncpc, pv->name, "", "", name, &is_new);
	if (!is_new)
		return p;
	ps->ncpc++;
	if (o.counter->type == PERF_TYPE_HARDWARE &&
	    access("/sys/bus/event_source/devices/cpu", F_OK)) {
		p->unavailable = "this machine gives no hardware counters";
		return p;
	}
	p->kind = ATTACH_PROFILE;
	p->period_ns = o.count;
	p->perf = (struct probe_perf){ .hardware = o.counter->type == PERF_TYPE_HARDWARE,
				       .event = (uint8_t)o.counter->config,
				       .no_user = o.no_user,
				       .no_kernel = o.no_kernel };
	return p;
}

static void list(const struct provider *pv, struct probe_set *ps)
{
	static const char *const modes[] = { "user", "kernel", "all" };

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		for (size_t m = 0; m < ARRAY_SIZE(modes); m++)
			add_overflow(pv, ps,
				     arena_printf(&ps->arena, "%s-%s-%u", counters[i].name,
						  modes[m], counters[i].listed));
	}
}

static struct err *cpc_match(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, probe_fn *found, void *arg)
{
	if (!glob_match(pd->mod, "") || !glob_match(pd->func, ""))
		return NULL;
	if (!ps->ncpc)
		list(pv, ps);
	match_rates(pv, ps, pd, add_overflow, found, arg);
	return NULL;
}

char *cpc_explain(const struct probe_desc *pd)
{
	struct overflow o;
	const char *why;

	if (strcmp(pd->prov, "cpc") || glob_is_pattern(pd->name) ||
	    parse_overflow(pd->name, &o, &why))
		return NULL;
	return xasprintf("%s: %s", pd->name, why);
}

const struct provider provider_cpc = {
	.name = "cpc",
	.doc = "counted events: EVENT-MODE-COUNT, page_faults-all-100; MODE is user, kernel or all",
	.first_id = 20900,
	.last_id = 29899,
	.stability = { E_COMMON, P_UNKNOWN, P_UNKNOWN, E_CPU, E_COMMON },
	.claims = provider_claims_name,
	.match = cpc_match,
	.args = profile_args,
};
