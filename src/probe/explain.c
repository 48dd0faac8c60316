/* Explains why a probe description matches nothing: gives the provider's own reason, or else names
 * the field that matches nothing and the nearest existing name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/nearest.h"
#include "probe/fbt.h"
#include "probe/process.h"
#include "probe/tracepoint.h"
#include "probe/profile.h"
#include "probe/probe.h"

enum { FIELD_PROV, FIELD_MOD, FIELD_FUNC, FIELD_NAME, FIELD_COUNT };

static const char *const field_names[FIELD_COUNT] = { "provider", "module", "function", "name" };

/* The best name found so far for one field, and a probe that has this name. */
struct candidate {
	struct nearest nearest;
	int field;
	const struct probe *probe;
};

static const char *field_of(const struct probe *p, int field)
{
	const char *const fields[FIELD_COUNT] = { p->prov, p->mod, p->func, p->name };

	return fields[field];
}

/* Offers "libfoo" for libfoo.so.6, because the user may have misspelt a name without its
 * version. */
static void offer_stem(struct candidate *c, struct probe *p)
{
	const char *end = strstr(p->mod, ".so");
	struct nearest n = { .word = c->nearest.word };
	char stem[64];

	if (c->field != FIELD_MOD || !end || (size_t)(end - p->mod) >= sizeof(stem))
		return;
	memcpy(stem, p->mod, (size_t)(end - p->mod));
	stem[end - p->mod] = 0;
	nearest_offer(&n, stem);
	if (n.name && (!c->nearest.name || n.distance < c->nearest.distance)) {
		c->nearest.name = p->mod;
		c->nearest.distance = n.distance;
	}
}

static void consider(void *arg, struct probe *p)
{
	struct candidate *c = arg;
	const char *before = c->nearest.name;

	if (*field_of(p, c->field))
		nearest_offer(&c->nearest, field_of(p, c->field));
	offer_stem(c, p);
	if (c->nearest.name != before)
		c->probe = p;
}

static bool provider_exists(const struct probe_desc *pd)
{
	for (const struct provider *const *pv = providers; *pv; pv++) {
		if ((*pv)->claims(*pv, pd->prov))
			return true;
	}
	return false;
}

static char *explain_provider(const struct probe_desc *pd)
{
	struct nearest n = { .word = pd->prov };

	if (!strcmp(pd->prov, "rawfbt") || !strcmp(pd->prov, "kprobe"))
		return xasprintf(
			"provider %s is not built into descry; fbt::: are the kernel's functions, sdt::: its tracepoints",
			pd->prov);
	if (!strncmp(pd->prov, "pid", 3) && !pd->prov[3])
		return xstrdup("provider pid needs a process: pid123, or pid$target with -p or -c");
	for (const struct provider *const *pv = providers; *pv; pv++)
		nearest_offer(&n, (*pv)->name);
	if (n.name)
		return xasprintf("no provider is called %s; did you mean %s?", pd->prov, n.name);
	return xasprintf("no provider is called %s, and no process has USDT probes of that name",
			 pd->prov);
}

/* Finds the field without which the description would match. Tries the last fields first, because
 * users write the earlier fields to narrow the search. Sets *ret_field to -1 when no single field
 * is the cause. */
static struct err *find_culprit(struct probe_set *ps, const struct probe_desc *pd, int *ret_field,
				struct candidate *ret)
{
	static const int order[] = { FIELD_NAME, FIELD_FUNC, FIELD_MOD, FIELD_PROV };

	*ret_field = -1;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const char *fields[FIELD_COUNT] = { pd->prov, pd->mod, pd->func, pd->name };
		struct candidate c = { .nearest.word = fields[order[i]], .field = order[i] };
		struct probe_desc relaxed;
		struct err *e;
		uint32_t count;

		if (!*c.nearest.word)
			continue;
		fields[order[i]] = "";
		relaxed = (struct probe_desc){ fields[0], fields[1], fields[2], fields[3] };
		e = probe_match(ps, &relaxed, consider, &c, &count);
		if (e)
			return e;
		if (!count)
			continue;
		*ret_field = order[i];
		*ret = c;
		return NULL;
	}
	return NULL;
}

/* Explains "syscall::read", where a provider's name stands in another field because fields count
 * from the right. Returns NULL when no field holds a provider's name. */
static char *explain_shift(const struct probe_desc *pd)
{
	if (*pd->prov || (!*pd->mod && !*pd->func))
		return NULL;
	for (const struct provider *const *pv = providers; *pv; pv++) {
		if (*pd->mod && !strcmp((*pv)->name, pd->mod))
			return xasprintf("fields count from the right, so %s is a module here; "
					 "did you mean %s:%s:%s:?",
					 pd->mod, pd->mod, pd->func, pd->name);
		if (!*pd->mod && !strcmp((*pv)->name, pd->func))
			return xasprintf("fields count from the right, so %s is a function here; "
					 "did you mean %s::%s: or %s:::%s?",
					 pd->func, pd->func, pd->name, pd->func, pd->name);
	}
	return NULL;
}

/* Lists the modules of the process that the description names. Returns NULL when it names no
 * process, or the process has no modules. */
static char *explain_module(struct probe_set *ps, const struct probe_desc *pd)
{
	enum { NAMED = 12 };
	const struct process_objects *objects;
	size_t digits = strcspn(pd->prov, "0123456789");
	long pid = strtol(pd->prov + digits, NULL, 10);
	struct err *e = pid > 0 && pid <= INT32_MAX ? process_objects(ps, (pid_t)pid, &objects)
						    : err_new(ESRCH, "no process");
	char *why;

	if (e || !objects->n) {
		err_free(e);
		return NULL;
	}
	for (uint32_t i = 0; i < objects->n; i++)
		if (process_object_matches(&objects->v[i], pd->mod))
			return xasprintf("no function of %s has a name: its symbols were stripped",
					 objects->v[i].name);
	why = xasprintf("no module of process %ld matches %s; it has ", pid, pd->mod);
	for (uint32_t i = 0; i < objects->n && i <= NAMED; i++) {
		char *before = why;

		why = i < NAMED ? xasprintf("%s%s%s", before, i ? ", " : "", objects->v[i].name)
				: xasprintf("%s and %u more", before, objects->n - NAMED);
		free(before);
	}
	return why;
}

char *probe_explain(struct probe_set *ps, const struct probe_desc *pd)
{
	cleanup_err struct err *e = NULL;
	const char *kernel_err;
	struct candidate c = { 0 };
	char *why;
	int field;

	if (probe_missing(pd))
		return xstrdup(probe_missing(pd));
	if (*pd->prov && !glob_is_pattern(pd->prov) && !provider_exists(pd))
		return explain_provider(pd);
	why = explain_shift(pd);
	if (!why)
		why = profile_explain(pd);
	if (!why)
		why = cpc_explain(pd);
	if (!why)
		why = fbt_explain(ps, pd);
	if (why)
		return why;
	why = tracepoints_explain(ps, pd);
	if (why)
		return why;
	e = find_culprit(ps, pd, &field, &c);
	if (e)
		return xstrdup(e->text);
	kernel_err = type_kernel_err(ps->types);
	if (kernel_err && (!strcmp(pd->prov, "sdt") || !strcmp(pd->prov, "rawtp") || !*pd->prov))
		return xasprintf("the kernel's tracepoints are unknown here: %s", kernel_err);
	/* The object is not there: no other function of it matches either. */
	if ((field < 0 || field == FIELD_MOD) && !strncmp(pd->prov, "pid", 3) &&
	    strstr(pd->mod, ".so") && !glob_is_pattern(pd->mod))
		return xasprintf(
			"the process has not loaded %s, and no file of that name with such a function is where it "
			"would be looked for; LD_LIBRARY_PATH can name its directory",
			pd->mod);
	if (field < 0)
		return NULL;
	if (field == FIELD_NAME && !strncmp(pd->prov, "pid", 3) && !glob_is_pattern(pd->name))
		return xasprintf(
			"of a function there are entry, return and the offsets of its instructions in hex, as in 1f; not %s",
			pd->name);
	if (field == FIELD_FUNC && !*pd->prov && !c.probe)
		return xasprintf(
			"no function matches %s; those of a program are pid123::%s:entry, or pid$target "
			"with -p or -c",
			c.nearest.word, c.nearest.word);
	if (field == FIELD_MOD && (!c.probe || glob_is_pattern(c.nearest.word))) {
		why = explain_module(ps, pd);
		if (why)
			return why;
	}
	if (glob_is_pattern(c.nearest.word) || !c.probe)
		return xasprintf("no %s matches %s there", field_names[field], c.nearest.word);
	return xasprintf("no %s is called %s there; did you mean %s:%s:%s:%s?", field_names[field],
			 c.nearest.word, c.probe->prov, c.probe->mod, c.probe->func, c.probe->name);
}
