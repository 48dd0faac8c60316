/* Makes the probes of a table of struct event: chooses the mechanism of each probe that this kernel
 * has, and describes its arguments. */
#include "probe/event.h"

#include <string.h>

#include "base/glob.h"
#include "probe/provider.h"
#include "probe/tracepoint.h"

/* Fills p from the row. Returns false and sets *ret_why when this kernel lacks the row's
 * mechanism. */
static bool plan(struct probe_set *ps, const struct event *ev, struct probe *p,
		 const char **ret_why)
{
	uint32_t nparams;

	type_id of;
	int64_t value;

	p->priv = ev;
	p->note = ev->note;
	if (ev->kind == ATTACH_PROFILE) {
		p->kind = ev->kind;
		p->period_ns = 1; /* events */
		p->perf = (struct probe_perf){ .event = ev->software };
		p->thread_arg = -1;
		return true;
	}
	if (!ev->tracepoint) {
		p->never = ev->never;
		*ret_why = ev->why;
		return false;
	}
	if (!tracepoint_exists(ps, ev->tracepoint, &nparams)) {
		*ret_why = type_kernel_err(ps->types);
		if (!*ret_why)
			*ret_why = arena_printf(&ps->arena, "this kernel has no tracepoint %s",
						ev->tracepoint);
		return false;
	}
	if (ev->enumerator && !type_enumerator(ps->types, ev->enumerator, &value, &of)) {
		*ret_why =
			arena_printf(&ps->arena, "this kernel's types have no %s", ev->enumerator);
		return false;
	}
	if (nparams < ev->min_params) {
		*ret_why = arena_printf(&ps->arena,
					"this kernel's tracepoint %s has too few arguments",
					ev->tracepoint);
		return false;
	}
	p->filter = ev->filter;
	if (ev->make_filter) {
		p->filter = ev->make_filter(ps, ret_why);
		if (!p->filter)
			return false;
	}
	p->kind = ev->kind;
	p->object = ev->tracepoint;
	p->number = ev->number;
	p->thread_arg = ev->by_next ? 2 : -1;
	return true;
}

struct err *events_match(const struct provider *pv, struct probe_set *ps,
			 const struct probe_desc *pd, probe_fn *found, void *arg)
{
	const struct event *events = pv->events;
	uint32_t n = pv->nevents, slot = 0;

	if (!glob_match(pd->mod, "vmlinux") || !glob_match(pd->func, ""))
		return NULL;
	for (uint32_t i = 0, next; i < n; i = next, slot++) {
		struct probe *p;
		bool is_new;

		for (next = i + 1; next < n && !strcmp(events[next].name, events[i].name); next++)
			;
		if (!glob_match(pd->name, events[i].name))
			continue;
		p = probe_add(ps, pv, pv->first_id + slot, pv->name, "vmlinux", "", events[i].name,
			      &is_new);
		if (is_new) {
			const char *why = NULL;
			uint32_t row = i;

			while (row < next && !plan(ps, &events[row], p, &why))
				row++;
			p->unavailable = row == next ? why : NULL;
			p->never &= row == next;
		}
		found(arg, p);
	}
	return NULL;
}

/* Reads an argument's expression that is a plain number, which the binder need not parse. */
static bool is_number(const char *expr, int64_t *ret)
{
	char *end;

	*ret = strtoll(expr, &end, 10);
	return end != expr && !*end;
}

static struct probe_arg make_arg(const struct event_arg *ea, type_id type)
{
	struct probe_arg a = { .type = type, .xlate = ea->xlate };

	if (!ea->expr) {
		a.source = ARG_CTX;
		a.value = 8 * ea->word;
	} else if (is_number(ea->expr, &a.value)) {
		a.source = ARG_CONST;
	} else {
		a.source = ARG_EXPR;
		a.value = 0;
		a.expr = ea->expr;
	}
	return a;
}

struct err *events_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	const struct event *ev = p->priv;

	ret->known = true;
	for (uint32_t i = 0; i < ev->nargs; i++) {
		const struct event_arg *ea = &ev->args[i];
		struct probe_arg a = make_arg(ea, provider_type(ps, ea->type));

		provider_set_arg(ps, ret, i, &a);
		if (ea->raw)
			ret->arg[i] = (struct probe_arg){ .source = ARG_EXPR,
							  .type = T_INT64,
							  .expr = ea->raw };
	}
	return NULL;
}
