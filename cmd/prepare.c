/* Image and engine of a run: which engine, compiled for it, loaded; and for the next one when it
 * may not run here. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/term.h"
#include "budget.h"
#include "run.h"

/* What -d and -S show when no engine is named; NULL: the engine is chosen. */
static const struct engine_type *engine_shown(const struct run *r)
{
	return run_dumps(r, "jit") ? &engine_inproc : r->c->dump ? &engine_kernel : NULL;
}

/* Can each buffer and array hold one record, one element? */
static bool buffers_suffice(const struct run *r)
{
	enum { LEAST = 64 }; /* bytes of any record, with its header in the buffer */
	int64_t need = LEAST;

	for (uint32_t i = 0; i < r->plan.image->nsegments; i++)
		if (need < (int64_t)r->plan.image->segments[i].size)
			need = (int64_t)r->plan.image->segments[i].size;
	if (opt_num(&r->options, OPT_BUFSIZE) < need)
		return false;
	for (uint32_t i = 0; i < r->plan.image->nmaps; i++) {
		const struct image_map *m = &r->plan.image->maps[i];

		if (m->role == MAP_ASSOC &&
		    opt_num(&r->options, OPT_DYNVARSIZE) < (int64_t)m->key_size + m->value_size)
			return false;
	}
	return true;
}

/* What is asked of the program before anything is loaded. */
static bool may_run(struct run *r)
{
	if (r->plan.image->destructive && !opt_on(&r->options, OPT_DESTRUCTIVE)) {
		fprintf(stderr,
			"%s: could not enable tracing: Destructive actions not allowed (%s)\n",
			r->c->progname, r->c->not_destructive ? r->c->not_destructive : "use -w");
		return false;
	}
	if (!buffers_suffice(r)) {
		fprintf(stderr,
			"%s: could not enable tracing: Enabling exceeds size of buffer (-x bufsize, "
			"dynvarsize)\n",
			r->c->progname);
		return false;
	}
	if (!r->c->output)
		return true;
	r->out = term_fopen(r->c->output, "ae");
	if (r->out)
		return true;
	r->out = stdout;
	(void)run_failed(r, err_errno(errno, "cannot open %s", r->c->output));
	return false;
}

/* Values that are taken for others, and those that cannot be: said, for a string that is cut later
 * says nothing. Behind this every value fits into 32 bits where the engines keep it in 32. */
static bool check_limits(struct run *r)
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
	int64_t cpu = opt_num(&r->options, OPT_CPU);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct option_value *v = &r->options.v[limits[i].option];
		const char *name = option_name(limits[i].option);

		if (v->num < limits[i].least) {
			fprintf(stderr, "%s: failed to set %s=%lld: %lld is the least\n",
				r->c->progname, name, (long long)v->num,
				(long long)limits[i].least);
			return false;
		}
		if (v->num <= limits[i].most)
			continue;
		if (r->c->mode != CMD_COMPILE)
			fprintf(stderr, "%s: %s=%lld: %lld is the most there can be, and used\n",
				r->c->progname, name, (long long)v->num, (long long)limits[i].most);
		v->num = limits[i].most;
	}
	if (cpu < sysconf(_SC_NPROCESSORS_CONF))
		return true;
	fprintf(stderr, "%s: failed to set cpu=%lld: this machine has CPUs 0 to %ld\n",
		r->c->progname, (long long)cpu, sysconf(_SC_NPROCESSORS_CONF) - 1);
	return false;
}

/* -x debug: what the run is made of. */
static void say_debug(const struct run *r)
{
	long long now = (long long)time(NULL);

	for (uint32_t i = 0; i < r->diags.nsources; i++)
		if (r->diags.sources[i].kind == SOURCE_LIB)
			fprintf(stderr, "descry DEBUG %lld: library %s read\n", now,
				r->diags.sources[i].name);
	fprintf(stderr, "descry DEBUG %lld: engine %s: %u programs, %u maps, %u probes\n", now,
		r->plan.engine->ops->name, r->plan.image->nprogs, r->plan.image->nmaps,
		r->plan.image->nprobes);
}

/* -d ebpf, jit and -S. */
static struct err *print_code(const struct run *r)
{
	if (run_dumps(r, "ebpf"))
		(r->c->dtrace_name ? image_list : image_print)(r->out, r->plan.image);
	return run_dumps(r, "jit") ? engine_inproc.print(r->out, r->plan.image) : NULL;
}

/* Compiles and loads for the first engine that may run here. */
int run_prepare(struct run *r, const struct bound *b)
{
	const char *budget = r->options.v[OPT_BUDGET].text, *why;
	bool first = true;
	struct err *e;
	char *said;

	if (!budget_parse(budget ? budget : "", &r->budget, &why)) {
		fprintf(stderr, "%s: failed to set budget=%s: %s\n", r->c->progname, budget, why);
		return 2;
	}
	if (!check_limits(r))
		return 1;

	r->plan = (struct engine_plan){
		.bound = b,
		.types = r->types,
		.symbols = r->symbols,
		.diags = &r->diags,
		.options = &r->options,
		.named = r->probes.targets.v,
		.targets = r->targets.v,
		.ntargets = r->targets.n,
		.ir_out = run_dumps(r, "ir") ? r->out : NULL,
	};
	plan_begin(&r->plan, engine_shown(r));
	do {
		if (!plan_compile(&r->plan))
			return run_print_diags(r), 1;
		if (first)
			(void)run_print_diags(r);
		e = print_code(r);
		if (e)
			return run_failed(r, e);
		if (r->c->dump_only || r->c->mode == CMD_COMPILE)
			return 0;
		if (first && !may_run(r))
			return 1;
		first = false;
		e = plan_load(&r->plan, opt_on(&r->options, OPT_REPORT) || r->budget > 0);
		if (r->diags.errors) {
			err_free(e);
			return run_print_diags(r), 1;
		}
		if (!e)
			break;
		if (!plan_next(&r->plan, &e, &said))
			return run_failed(r, e);
		if (said)
			fprintf(stderr, "%s: %s\n", r->c->progname, said);
		free(said);
	} while (true);
	if (opt_on(&r->options, OPT_DEBUG))
		say_debug(r);
	return 0;
}
