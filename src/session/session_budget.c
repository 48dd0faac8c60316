/* Measures the cost of tracing and detaches the most expensive programs above -x budget. */
#include "session/session_budget.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { PERIOD_NS = 500000000, PROGS_MAX = 4096 };

static const char tag[] = "[DRT_BUDGET] ";

/* Returns the kernel's measured cost around a run of a program, ns (doc/providers.md). The kernel
 * itself counts the run. A uprobe has the price of an emulated instruction, because the engine does
 * not know here which uprobes are single-stepped. */
static uint64_t price_around(enum attach_kind k)
{
	switch (k) {
	case ATTACH_UPROBE: return 520;
	case ATTACH_URETPROBE: return 830;
	case ATTACH_KPROBE:
	case ATTACH_KRETPROBE: return 200;
	case ATTACH_FENTRY:
	case ATTACH_FEXIT: return 100; /* half of a kprobe's instructions: bench/fbt */
	case ATTACH_SYSCALL_ENTRY:
	case ATTACH_SYSCALL_RETURN: return 60;
	case ATTACH_PROFILE:
	case ATTACH_TICK: return 1000;
	default: return 30;
	}
}

bool budget_parse(const char *text, double *ret_share, const char **ret_why)
{
	char *end;
	double v;

	if (!*text) {
		*ret_share = 0;
		return true;
	}
	v = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "%") != 0) || !(v > 0 && v <= 100)) {
		*ret_why = "a budget is a share of the machine's CPU time, as in 5% or 0.5%";
		return false;
	}
	*ret_share = v / 100;
	return true;
}

static uint64_t own_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

void budget_init(struct budget *b, double share, bool tags,
		 void (*say)(void *arg, const char *text), void *arg)
{
	*b = (struct budget){ .share = share, .tags = tags, .say = say, .arg = arg };
	b->wall = now_ns();
	b->own = own_ns();
}

void budget_fini(struct budget *b)
{
	vec_fini(&b->last);
	vec_fini(&b->now);
	vec_fini(&b->stopped);
}

static uint64_t cost_of(const struct engine *e, const struct engine_prog_report *r)
{
	return r->run_ns + r->runs * price_around(e->image->progs[r->prog].attach);
}

static void say_stopped(const struct budget *b, const struct engine *e,
			const struct engine_prog_report *r, double used, double mine)
{
	const struct image_prog *p = &e->image->progs[r->prog];
	const struct image_probe *ip = &e->image->probes[p->probes[0]];
	cleanup_free char *more =
		p->nprobes > 1 ? xasprintf(" and %u more of the same kind", p->nprobes - 1) : NULL;
	cleanup_free char *text = xasprintf(
		"%stracing takes %.1f%% of the machine, %.3g%% is allowed: stopped %s:%s:%s:%s%s (%.1f%%)",
		b->tags ? tag : "", used * 100, b->share * 100, ip->prov, ip->mod, ip->func,
		ip->name, more ? more : "", mine * 100);

	b->say(b->arg, text);
}

static void say_end(const struct budget *b, double used)
{
	cleanup_free char *text =
		xasprintf("%stracing takes %.1f%% of the machine, %.3g%% is allowed: it ends",
			  b->tags ? tag : "", used * 100, b->share * 100);

	b->say(b->arg, text);
}

bool budget_holds(struct budget *b, struct engine *e)
{
	uint64_t wall = now_ns(), own, most = 0, spent;
	uint32_t n, dearest = UINT32_MAX;
	double whole;

	if (b->share <= 0 || wall - b->wall < PERIOD_NS)
		return true;
	own = own_ns();
	vec_reserve(&b->now, PROGS_MAX);
	n = e->ops->report(e, b->now.v, PROGS_MAX);
	while (b->last.n < n) {
		vec_push(&b->last, 0);
		vec_push(&b->stopped, false);
	}
	whole = (double)(wall - b->wall) * (double)sysconf(_SC_NPROCESSORS_ONLN);
	spent = own - b->own;
	for (uint32_t i = 0; i < n; i++) {
		const struct image_prog *p = &e->image->progs[b->now.v[i].prog];
		uint64_t cost = cost_of(e, &b->now.v[i]), since = cost - b->last.v[i];

		b->last.v[i] = cost;
		spent += since;
		if (b->stopped.v[i] || !p->nprobes || p->attach == ATTACH_SELF ||
		    p->attach == ATTACH_TICK || since < most)
			continue;
		most = since;
		dearest = i;
	}
	b->wall = wall;
	b->own = own;
	if ((double)spent <= b->share * whole)
		return true;
	if (dearest != UINT32_MAX && e->ops->stop && e->ops->stop(e, dearest)) {
		b->stopped.v[dearest] = true;
		say_stopped(b, e, &b->now.v[dearest], (double)spent / whole, (double)most / whole);
		return true;
	}
	say_end(b, (double)spent / whole);
	return false;
}
