/* Image and engine of a run: which engine, compiled for it, loaded; and for the next one when it
 * may not run here. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/term.h"
#include "budget.h"
#include "run.h"

/* What -x engine, -d and -S leave open is chosen. */
static uint32_t choose_engines(const struct run *r, const struct bound *b,
			       enum engine_kind ret[ENGINES_TRIED])
{
	int named = (int)opt_num(&r->options, OPT_ENGINE);

	if (named == ENGINE_AUTO && !r->c->dump)
		return engines_choose(b, r->targets.v, r->targets.n, ret);
	ret[0] = named != ENGINE_AUTO  ? (enum engine_kind)named
		 : run_dumps(r, "jit") ? ENGINE_INPROC
				       : ENGINE_KERNEL;
	return 1;
}

static struct engine *new_inproc(struct run *r, enum inproc_scope scope)
{
	return engine_inproc_new(r->probes.targets.v, r->probes.targets.n, r->symbols, scope);
}

static struct engine *new_engine(struct run *r, enum engine_kind kind)
{
	switch (kind) {
	case ENGINE_INTERP: return engine_interp_new();
	case ENGINE_INPROC: return new_inproc(r, INPROC_WHAT_CAN_BE);
	case ENGINE_INPROC_ALL:
	case ENGINE_SPLIT: return new_inproc(r, INPROC_NEARLY_ALL);
	case ENGINE_INPROC_EVERY: return new_inproc(r, INPROC_EVERY_ONE);
	default: return engine_kernel_new();
	}
}

/* Are children of the named processes traced from inside? With -x follow; and those of a command
 * where this engine stands in for the kernel's, which sees everybody. */
static bool is_family(const struct run *r, const struct bound *b, enum engine_kind kind)
{
	return opt_on(&r->options, OPT_FOLLOW) ||
	       (kind == ENGINE_INPROC && opt_num(&r->options, OPT_ENGINE) == ENGINE_AUTO &&
		r->c->commands.n && engines_reach_children(b));
}

static struct image *make_image(struct run *r, const struct bound *b, enum engine_kind kind)
{
	struct compile_target target = engine_compile_target(kind);

	target.family = engine_is_inside(kind) && is_family(r, b, kind);
	return compile_image(b, r->types, &r->diags, &r->options, &target,
			     run_dumps(r, "ir") ? r->out : NULL);
}

/* Puts another image beside the first, for the places that cannot be patched. False: diagnostics
 * say why not. */
static bool split(struct run *r, const struct bound *b)
{
	struct image *outer = make_image(r, b, ENGINE_KERNEL);

	if (outer && image_is_alike(r->image, outer))
		r->engine = engine_split_new(r->engine, engine_kernel_new(), r->image, outer,
					     r->outside);
	else
		image_free(outer);
	return outer != NULL;
}

/* Compiles for one engine. False: diagnostics say why not. */
static bool compile_for(struct run *r, const struct bound *b, enum engine_kind kind)
{
	r->engine = new_engine(r, kind);
	r->inside = engine_is_inside(kind) ? r->engine : NULL;
	r->image = make_image(r, b, kind);
	if (r->image && run_dumps(r, "ebpf"))
		(r->c->dtrace_name ? image_list : image_print)(r->out, r->image);
	return r->image && (kind != ENGINE_SPLIT || split(r, b));
}

/* What a failed attempt tells the next one. False: there is no use in it. */
static bool may_be_split(struct run *r)
{
	free(r->outside);
	r->outside = xcalloc(r->image->nprobes + 1, sizeof(*r->outside));
	return engine_inproc_left_out(r->engine, r->outside);
}

static struct err *load(struct run *r, enum engine_kind kind)
{
	bool inside = engine_is_inside(kind);
	struct err *e = NULL;

	for (uint32_t i = 0; i < r->targets.n && inside && !e; i++)
		e = target_to_entry(&r->targets.v[i]);
	for (uint32_t i = 0; i < r->targets.n && inside; i++)
		if (r->targets.v[i].control)
			engine_inproc_hold(r->inside, r->targets.v[i].control);
	if (!e && kind == ENGINE_KERNEL)
		e = engine_inproc_conflict(r->image);
	if (!e && kind == ENGINE_INTERP && r->targets.n)
		e = engine_interp_hears(r->image);
	return e ? e
		 : r->engine->ops->load(r->engine, r->image,
					opt_on(&r->options, OPT_REPORT) || r->budget > 0);
}

/* Is it worth trying another engine? */
static bool is_for_another(const struct err *e, enum engine_kind kind)
{
	return (engine_is_inside(kind) && kind != ENGINE_INPROC) || kind == ENGINE_INTERP ||
	       e->code == EPERM || e->code == EACCES || e->code == ENOSYS;
}

/* The kernel's engine would have seen more: said with -q, too, for an answer that lacks something
 * does not show it. */
static void say_instead(const struct run *r, const struct bound *b, const struct err *why,
			enum engine_kind kind)
{
	const char *seen = "probes of proc come from the process connector", *begun = "";

	if (kind != ENGINE_INTERP) {
		seen = is_family(r, b, kind)
			       ? r->c->pids.n
					 ? "from inside the named processes and what these start from now on, others are not seen"
					 : "from inside the command and what it starts, others are not seen"
			       : "from inside the named processes, others are not seen, nor what these start "
				 "(-x follow: what they start from now on)";
		if (engines_see_syscalls(b) && is_family(r, b, kind))
			begun = "; system calls of a program's dynamic linker, before it has loaded the libraries, are not seen";
	}
	fprintf(stderr, "%s: %s; tracing without the kernel's engine: %s%s\n", r->c->progname,
		why->text, seen, begun);
}

/* The kernel's engine was refused, and no other was tried. */
static struct err *say_what_works(const struct run *r, struct err *e)
{
	const char *what =
		engines_are_strange(r->targets.v, r->targets.n)
			? "another user's process is traced from inside only when -x engine=inproc says so"
			: "without it, pid and USDT probes, system calls, proc and samples of your own processes "
			  "(-p, -c) work";
	struct err *more = err_new(e->code, "%s; %s", e->text, what);

	err_free(e);
	return more;
}

/* Can each buffer and array hold one record, one element? */
static bool buffers_suffice(const struct run *r)
{
	enum { LEAST = 64 }; /* bytes of any record, with its header in the buffer */
	int64_t need = LEAST;

	for (uint32_t i = 0; i < r->image->nsegments; i++)
		if (need < (int64_t)r->image->segments[i].size)
			need = (int64_t)r->image->segments[i].size;
	if (opt_num(&r->options, OPT_BUFSIZE) < need)
		return false;
	for (uint32_t i = 0; i < r->image->nmaps; i++) {
		const struct image_map *m = &r->image->maps[i];

		if (m->role == MAP_ASSOC &&
		    opt_num(&r->options, OPT_DYNVARSIZE) < (int64_t)m->key_size + m->value_size)
			return false;
	}
	return true;
}

/* What is asked of the program before anything is loaded. */
static bool may_run(struct run *r)
{
	if (r->image->destructive && !opt_on(&r->options, OPT_DESTRUCTIVE)) {
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
		r->engine->ops->name, r->image->nprogs, r->image->nmaps, r->image->nprobes);
}

/* Compiles and loads for the first engine that may run here. */
int run_prepare(struct run *r, const struct bound *b)
{
	const char *budget = r->options.v[OPT_BUDGET].text, *why;
	struct err *e = NULL;
	enum engine_kind kinds[ENGINES_TRIED];
	uint32_t n = choose_engines(r, b, kinds);

	if (!budget_parse(budget ? budget : "", &r->budget, &why)) {
		fprintf(stderr, "%s: failed to set budget=%s: %s\n", r->c->progname, budget, why);
		return 2;
	}
	if (!check_limits(r))
		return 1;

	for (uint32_t i = 0; i < n; i++) {
		if (!compile_for(r, b, kinds[i]))
			return run_print_diags(r), 1;
		if (!i)
			(void)run_print_diags(r);
		if (run_dumps(r, "jit"))
			e = engine_inproc_print(r->out, r->image);
		if (e)
			return run_failed(r, e);
		if (r->c->dump_only || r->c->mode == CMD_COMPILE)
			return 0;
		if (!i && !may_run(r))
			return 1;
		e = load(r, kinds[i]);
		if (r->diags.errors) {
			err_free(e);
			return run_print_diags(r), 1;
		}
		if (!e || i + 1 == n || !is_for_another(e, kinds[i]))
			break;
		if (!i ? kinds[i] == ENGINE_KERNEL : kinds[i] == ENGINE_INTERP)
			say_instead(r, b, e, kinds[i + 1]);
		err_free(e);
		e = NULL;
		if (kinds[i + 1] == ENGINE_SPLIT && !may_be_split(r))
			i++;
		r->engine->ops->free(r->engine);
		image_free(r->image);
		r->engine = NULL;
		r->image = NULL;
	}
	if (e && is_for_another(e, ENGINE_KERNEL) && n == 1 &&
	    opt_num(&r->options, OPT_ENGINE) == ENGINE_AUTO)
		e = say_what_works(r, e);
	if (!e && opt_on(&r->options, OPT_DEBUG))
		say_debug(r);
	return e ? run_failed(r, e) : 0;
}
