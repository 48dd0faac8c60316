/* Providers sdt and rawtp: every tracepoint of the kernel, with its own typed parameters. With
 * sdt_fields, sdt has the fields of the event's text form, as in Oracle's DTrace. */
#include <string.h>

#include "base/glob.h"
#include "probe/fields.h"
#include "probe/provider.h"
#include "probe/tracepoint.h"

/* Returns true when pattern can match a tracepoint. For BEGIN, on-cpu or tick-1s, the provider need
 * not read the kernel's BTF. */
static bool may_be_tracepoint(const char *pattern)
{
	return !strchr(pattern, '-') && strcmp(pattern, "BEGIN") && strcmp(pattern, "END") &&
	       strcmp(pattern, "ERROR");
}

static struct err *sdt_match(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, probe_fn *found, void *arg)
{
	struct tracepoint *tps;
	uint32_t n;

	if (!glob_match(pd->func, "") ||
	    (!glob_is_pattern(pd->name) && !may_be_tracepoint(pd->name)))
		return NULL;
	tps = tracepoints_all(ps, &n);
	for (uint32_t i = 0; i < n; i++) {
		const char *system;
		struct probe *p;

		if (!glob_match(pd->name, tps[i].name))
			continue;
		system = tracepoint_system(ps, &tps[i]);
		if (!glob_match(pd->mod, system))
			continue;
		p = probe_add(ps, pv, pv->first_id + i, pv->name, system, "", tps[i].name, NULL);
		p->object = p->name;
		if (p->kind != ATTACH_TRACEPOINT)
			p->kind = ATTACH_RAW_TP;
		found(arg, p);
	}
	return NULL;
}

/* Changes the probe to the event's text form when its arguments are used. Other probes stay raw
 * tracepoints, which are cheaper and detach together. */
void probe_use_fields(struct probe_set *ps, struct probe *p)
{
	if (ps->sdt_fields && p->provider == &provider_sdt &&
	    fields_event_number(ps, p, &p->number))
		p->kind = ATTACH_TRACEPOINT;
}

static struct err *sdt_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	const struct type_param *params;
	bool varargs;
	uint32_t n;
	type_id func;

	if (p->kind == ATTACH_TRACEPOINT)
		return fields_args(ps, p, ret);
	if (!type_kernel_tracepoint(ps->types, p->object, &func))
		return err_new(0, "tracepoint %s has gone from the kernel's BTF", p->object);
	params = type_params(ps->types, func, &n, &varargs);
	ret->known = true;
	for (uint32_t i = 0; i < n; i++) {
		struct probe_arg a = { .source = ARG_CTX, .value = 8 * i, .type = params[i].type };

		provider_set_arg(ps, ret, i, &a);
	}
	return NULL;
}

const struct provider provider_sdt = {
	.name = "sdt",
	.doc = "every tracepoint of the kernel, sdt:SUBSYSTEM::NAME, args[] as the kernel passes them",
	.first_id = 30000,
	.last_id = 38999,
	.stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, P_ISA, P_ISA },
	.claims = provider_claims_name,
	.match = sdt_match,
	.args = sdt_args,
};

const struct provider provider_rawtp = {
	.name = "rawtp",
	.doc = "the same tracepoints under the name Oracle's DTrace gives them",
	.first_id = 40000,
	.last_id = 49999,
	.stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, P_ISA, P_ISA },
	.claims = provider_claims_name,
	.match = sdt_match,
	.args = sdt_args,
};
