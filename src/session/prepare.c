/* Image and engine of a session: compiles for an engine and loads, then tries the next engine when
 * the first may not run here. */
#include "session/session_private.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/out.h"

/* Returns true when each buffer can hold one record, and each array one element. */
static bool buffers_suffice(const struct session *s)
{
	enum { LEAST = 64 }; /* bytes of any record, with its header in the buffer */
	int64_t need = LEAST;

	for (uint32_t i = 0; i < s->plan.image->nsegments; i++)
		if (need < (int64_t)s->plan.image->segments[i].size)
			need = (int64_t)s->plan.image->segments[i].size;
	if (opt_num(&s->options, OPT_BUFSIZE) < need)
		return false;
	for (uint32_t i = 0; i < s->plan.image->nmaps; i++) {
		const struct image_map *m = &s->plan.image->maps[i];

		if (m->role == MAP_ASSOC &&
		    opt_num(&s->options, OPT_DYNVARSIZE) < (int64_t)m->key_size + m->value_size)
			return false;
	}
	return true;
}

struct err *session_allowed(const struct session *s)
{
	if (s->plan.image->destructive && !opt_on(&s->options, OPT_DESTRUCTIVE))
		return err_new(EPERM,
			       "could not enable tracing: Destructive actions not allowed (%s)",
			       s->o.not_destructive ? s->o.not_destructive : "use -w");
	if (!buffers_suffice(s))
		return err_new(ENOSPC, "could not enable tracing: Enabling exceeds size of buffer "
				       "(-x bufsize, dynvarsize)");
	return NULL;
}

/* Checks the limits of options. Reports each value that is replaced by another and each invalid
 * value, because a string that is cut later gives no message. Afterwards every value fits into 32
 * bits where the engines store 32. */
static struct err *check_limits(struct session *s)
{
	static const struct {
		enum option_id option;
		int64_t least, most;
	} limits[] = {
		{ OPT_STRSIZE, 0, WIRE_STRING_MAX },
		{ OPT_NSPEC, 0, 64 },
		{ OPT_MAXFRAMES, 0, WIRE_STACK_FRAMES },
		{ OPT_STACKFRAMES, 0, WIRE_STACK_FRAMES },
		{ OPT_USTACKFRAMES, 0, WIRE_STACK_FRAMES },
		{ OPT_STACKINDENT, 0, 1000 },
		{ OPT_SCRATCHSIZE, 0, 1 << 20 },
		{ OPT_BUFSIZE, 0, 1 << 30 },
		{ OPT_PCAPSIZE, 0, 1 << 20 },
		{ OPT_PRINTSIZE, 0, 1 << 20 },
		{ OPT_AGGSORTKEYPOS, 0, INT32_MAX },
		{ OPT_AGGSORTPOS, 0, INT32_MAX },
		{ OPT_LOOPLIMIT, 0, INT32_MAX },
	};
	int64_t cpu = opt_num(&s->options, OPT_CPU);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct option_value *v = &s->options.v[limits[i].option];
		const char *name = option_name(limits[i].option);

		if (v->num < limits[i].least)
			return err_new(EINVAL, "failed to set %s=%lld: %lld is the least", name,
				       (long long)v->num, (long long)limits[i].least);
		if (v->num <= limits[i].most)
			continue;
		if (!s->o.brief)
			session_say(s, "%s=%lld: %lld is the maximum, which is used", name,
				    (long long)v->num, (long long)limits[i].most);
		v->num = limits[i].most;
	}
	if (cpu >= -1 && cpu < sysconf(_SC_NPROCESSORS_CONF))
		return NULL;
	return err_new(EINVAL, "failed to set cpu=%lld: this machine has CPUs 0 to %ld (-1: all)",
		       (long long)cpu, sysconf(_SC_NPROCESSORS_CONF) - 1);
}

/* -x debug: prints the parts of the run. */
static void say_debug(struct session *s)
{
	struct out o = { 0 };
	long long now = (long long)time(NULL);

	for (uint32_t i = 0; i < s->diags.nsources; i++)
		if (s->diags.sources[i].kind == SOURCE_LIB)
			out_printf(&o, "descry DEBUG %lld: library %s read\n", now,
				   s->diags.sources[i].name);
	out_printf(&o, "descry DEBUG %lld: engine %s: %u programs, %u maps, %u probes\n", now,
		   s->plan.engine->ops->name, s->plan.image->nprogs, s->plan.image->nmaps,
		   s->plan.image->nprobes);
	session_message(s, o.v, o.n);
	out_fini(&o);
}

static struct err *wrong(struct session *s, struct err *e)
{
	err_free(e);
	session_diagnose(s);
	s->failure = SESSION_WRONG_D;
	return err_new(EINVAL, "the program is wrong");
}

struct err *session_compile(struct session *s)
{
	const char *budget = s->options.v[OPT_BUDGET].text, *why;
	struct err *e;

	if (!budget_parse(budget ? budget : "", &s->share, &why)) {
		s->failure = SESSION_WRONG_OPTION;
		return err_new(EINVAL, "failed to set budget=%s: %s", budget, why);
	}
	e = check_limits(s);
	if (e)
		return e;
	s->plan = (struct engine_plan){
		.bound = s->bound,
		.types = s->types,
		.symbols = s->symbols,
		.languages = s->languages,
		.diags = &s->diags,
		.options = &s->options,
		.named = s->probes.targets.v,
		.targets = s->targets.v,
		.ntargets = s->targets.n,
		.ir_out = s->o.ir_out,
		.executed = s->o.hands_over ? session_take_executed : NULL,
		.executed_arg = s,
	};
	plan_begin(&s->plan, s->o.engine);
	if (!plan_compile(&s->plan))
		return wrong(s, NULL);
	session_diagnose(s);
	return NULL;
}

struct err *session_load(struct session *s)
{
	struct err *e;
	char *said;

	while (true) {
		e = plan_load(&s->plan, opt_on(&s->options, OPT_REPORT) || s->share > 0);
		if (s->diags.errors)
			return wrong(s, e);
		if (!e || !plan_next(&s->plan, &e, &said))
			break;
		if (said)
			session_say(s, "%s", said);
		free(said);
		if (!plan_compile(&s->plan))
			return wrong(s, NULL);
	}
	if (!e && opt_on(&s->options, OPT_DEBUG))
		say_debug(s);
	return e;
}
