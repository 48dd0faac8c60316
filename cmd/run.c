/* One run: sources -> image -> engine -> consumer. The order of the calls is the way of a probe (DESIGN section 2). */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "budget.h"
#include "cmdline.h"
#include "choice.h"
#include "compile/bind/bind.h"
#include "compile/ir/gen.h"
#include "consume/consume.h"
#include "host.h"
#include "load/engine.h"
#include "target.h"
#include "tool.h"

/* Everything that lives as long as the run. */
struct run {
	struct cmdline *c;
	struct arena arena;
	struct diags diags;
	struct options options;
	struct type_graph *types;
	struct symbols *symbols;
	struct probe_set probes;
	struct macro_args macros;
	struct hash typedefs;
	struct parse_cx parse;
	struct bind_cx bind;
	VEC(struct node *) tops; /* of each source */
	VEC(struct target) targets;
	struct image *image;
	struct engine *engine;
	struct engine *inside; /* it, or the part of it that traces from inside; NULL */
	struct sink *sink;
	struct consumer *consumer;
	FILE *out;
	bool *outside; /* by probe: cannot be placed from inside */
	double budget; /* share of the machine, 0 any */
	bool names_user; /* user addresses are printed as names: mappings must be seen while they last */
};

static volatile sig_atomic_t interrupted;

/* The second ^C leaves out what is printed at the end. One that comes with the first is not a second one: timeout(1) sends
 * its signal to us and to our process group. */
static void on_signal(int sig)
{
	enum { APART_NS = 200000000 };
	static uint64_t last;
	uint64_t now;
	int before = errno;

	if (sig == SIGCHLD)
		return;
	now = clock_ns(CLOCK_MONOTONIC);
	if (!interrupted || now - last >= APART_NS)
		interrupted++;
	last = now;
	errno = before;
}

bool cmd_interrupted(void)
{
	return interrupted != 0;
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal }; /* no SA_RESTART: waiting ends */

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int fail(struct run *r, struct err *e)
{
	if (!tool_reader_gone(e))
		fprintf(stderr, "%s: %s\n", r->c->progname, e->text);
	err_free(e);
	return 1;
}

static int print_diags(struct run *r)
{
	struct diag_style style = {
		.color = !r->c->dtrace_name && isatty(STDERR_FILENO) && !getenv("NO_COLOR"),
		.dtrace = r->c->dtrace_name,
		.errtags = opt_on(&r->options, OPT_ERRTAGS),
		.progname = r->c->progname,
	};

	diags_print(&r->diags, &style, stderr);
	return r->diags.errors ? 1 : 0;
}

/* DTRACE_OPT_NAME and DESCRY_OPT_NAME in the environment, then -x in order. */
static int set_options(struct run *r)
{
	const char *why;

	for (int id = 0; id < OPT_COUNT; id++) {
		static const char *const prefixes[] = { "DTRACE_OPT_", "DESCRY_OPT_" };

		for (size_t p = 0; p < ARRAY_SIZE(prefixes); p++) {
			cleanup_free char *name =
				xasprintf("%s%s", prefixes[p], option_name((enum option_id)id));
			const char *value;

			for (char *s = name; *s; s++)
				if (*s >= 'a' && *s <= 'z')
					*s = (char)(*s - 'a' + 'A');
			value = getenv(name);
			if (value && !options_set(&r->options, option_name((enum option_id)id),
						  *value ? value : NULL,
						  WHEN_COMPILE | WHEN_RUN | WHEN_DYNAMIC, &why)) {
				fprintf(stderr, "%s: %s=%s: %s\n", r->c->progname, name, value,
					why);
				return 2;
			}
		}
	}
	for (uint32_t i = 0; i < r->c->sets.n; i++)
		if (!options_set_text(&r->options, r->c->sets.v[i].text,
				      WHEN_COMPILE | WHEN_RUN | WHEN_DYNAMIC, &why)) {
			fprintf(stderr, "%s: failed to set -x %s: %s\n", r->c->progname,
				r->c->sets.v[i].text, why);
			return 2;
		}
	if (r->c->json)
		(void)options_set(&r->options, "report", NULL, WHEN_RUN, &why);
	return 0;
}

static int find_targets(struct run *r)
{
	struct target t;
	struct err *e;

	for (uint32_t i = 0; i < r->c->pids.n; i++) {
		e = target_grab(r->c->pids.v[i], &t);
		if (e)
			return fail(r,
				    err_wrap(e, "failed to grab process %d", (int)r->c->pids.v[i]));
		vec_push(&r->targets, t);
	}
	for (uint32_t i = 0; i < r->c->commands.n; i++) {
		e = target_start(r->c->commands.v[i], &t);
		if (e)
			return fail(r, e);
		vec_push(&r->targets, t);
		if (opt_num(&r->options, OPT_EVALTIME) > 1)
			e = target_to_main(vec_last(&r->targets));
		else if (opt_num(&r->options, OPT_ENGINE) == ENGINE_INPROC ||
			 opt_num(&r->options, OPT_EVALTIME))
			e = target_to_entry(vec_last(&r->targets));
		if (e)
			return fail(r, e);
	}
	for (uint32_t i = 0; i < r->targets.n; i++) {
		vec_push(&r->probes.targets,
			 (struct probe_target){ r->targets.v[i].pid, r->targets.v[i].command });
		r->macros.target = r->targets.v[i].pid;
		type_use_process(r->types, r->targets.v[i].pid);
	}
	return 0;
}

static void init(struct run *r, struct cmdline *c)
{
	memset(r, 0, sizeof(*r));
	r->c = c;
	arena_init(&r->arena);
	diags_init(&r->diags);
	options_init(&r->options);
	r->types = type_graph_new();
	type_use_kernel(r->types, NULL);
	r->symbols = symbols_new();
	probe_set_init(&r->probes, r->types, r->symbols);
	r->probes.fentry_refusal = engine_kernel_fentry_refusal;
	r->macros = (struct macro_args){
		.argv = c->args.v,
		.argc = c->args.n,
		.used = xcalloc(c->args.n + 1, sizeof(bool)),
		.target = -1,
		.pid = getpid(),
		.ppid = getppid(),
		.pgid = getpgid(0),
		.sid = getsid(0),
		.uid = getuid(),
		.euid = geteuid(),
		.gid = getgid(),
		.egid = getegid(),
	};
	r->out = stdout;
}

static void init_compiler(struct run *r)
{
	r->macros.defaultargs = opt_on(&r->options, OPT_DEFAULTARGS);
	r->parse = (struct parse_cx){
		.arena = &r->arena,
		.diags = &r->diags,
		.macros = &r->macros,
		.is_type = bind_is_type,
		.is_type_arg = &r->bind,
		.pspec = opt_on(&r->options, OPT_PSPEC),
		.typedefs = &r->typedefs,
	};
	r->bind = (struct bind_cx){
		.arena = &r->arena,
		.diags = &r->diags,
		.types = r->types,
		.probes = &r->probes,
		.options = &r->options,
		.macros = &r->macros,
		.parse = &r->parse,
	};
	type_set_strsize(r->types, (uint32_t)opt_num(&r->options, OPT_STRSIZE));
	for (uint32_t i = 0; i < r->c->libdirs.n; i++)
		vec_push(&r->bind.libdirs, r->c->libdirs.v[i]);
	bind_init(&r->bind);
}

/* End in reverse order of birth: what is running first. */
static void fini(struct run *r)
{
	consumer_free(r->consumer);
	if (r->sink)
		r->sink->ops->free(r->sink);
	if (r->engine)
		r->engine->ops->free(r->engine);
	image_free(r->image);
	free(r->outside);
	for (uint32_t i = 0; i < r->targets.n; i++)
		target_drop(&r->targets.v[i], true);
	vec_fini(&r->targets);
	vec_fini(&r->tops);
	if (r->bind.state)
		bind_fini(&r->bind);
	vec_fini(&r->bind.libdirs);
	probe_set_fini(&r->probes);
	symbols_free(r->symbols);
	type_graph_free(r->types);
	hash_fini(&r->typedefs);
	free(r->macros.used);
	options_fini(&r->options);
	diags_fini(&r->diags);
	arena_fini(&r->arena);
	if (r->out && r->out != stdout)
		fclose(r->out);
}

static bool dumps(const struct run *r, const char *stage)
{
	const char *at = r->c->dump ? strstr(r->c->dump, stage) : NULL;
	size_t n = strlen(stage);

	return at && (at == r->c->dump || at[-1] == ',') && (at[n] == ',' || !at[n]);
}

/* -d: is `stage` the last one asked for? */
static bool ends_with(const struct run *r, const char *stage)
{
	static const char *const stages[] = { "parse", "bind", "ir", "ebpf", "jit" };
	bool last = false;

	for (size_t i = 0; i < ARRAY_SIZE(stages); i++)
		if (dumps(r, stages[i]))
			last = !strcmp(stages[i], stage);
	return r->c->dump_only && last;
}

static bool makes_files(const struct cmdline *c)
{
	return c->mode == CMD_HEADER || c->mode == CMD_OBJECT;
}

/* Reads and parses one -n, -s...; its top-level nodes go to the binder. */
static int add_source(struct run *r, const struct cmd_program *p)
{
	char *text = NULL;
	size_t len = 0;
	struct node *top;
	struct err *e;
	uint32_t errors;

	if (p->file) {
		e = io_read_file(p->text, &text, &len);
		if (e)
			return fail(r, e);
	} else {
		text = xstrdup(p->text);
		len = strlen(text);
	}
	if (r->c->use_cpp || opt_on(&r->options, OPT_CPP)) {
		char *after;

		e = cmd_preprocess(r->c, &r->options, p->file ? p->text : "<command line>", text,
				   len, &after, &len);
		free(text);
		if (e)
			return fail(r, e);
		text = after;
	}
	source_add(&r->diags, p->file ? SOURCE_FILE : SOURCE_ARG, p->text, text, len);
	free(text);
	errors = r->diags.errors;
	top = parse_source(&r->parse, r->diags.nsources - 1, p->form);
	if (dumps(r, "parse"))
		for (const struct node *n = top; n; n = n->next)
			ast_print(r->out, n, NULL);
	vec_push(&r->tops, top);
	if (r->diags.errors == errors && !ends_with(r, "parse") && !makes_files(r->c))
		bind_add(&r->bind, top);
	return 0;
}

/* "description 'X' matched N probes", for each program as DTrace says it. */
static void say_matched(struct run *r, const struct bound *b)
{
	if (opt_on(&r->options, OPT_QUIET) || r->c->json)
		return;
	for (uint32_t i = 0, src = 0; i < r->diags.nsources && src < r->c->programs.n; i++) {
		const struct source *s = &r->diags.sources[i];
		uint32_t n = 0;

		if (s->kind == SOURCE_LIB)
			continue;
		for (uint32_t k = 0; k < b->clauses.n; k++)
			if (b->clauses.v[k]->loc >= s->base &&
			    b->clauses.v[k]->loc <= s->base + s->len)
				n += b->clauses.v[k]->nprobes;
		fprintf(stderr, "%s: %s '%s' matched %u probe%s\n", r->c->progname,
			s->kind == SOURCE_FILE ? "script" : "description", s->name, n,
			n == 1 ? "" : "s");
		src++;
	}
}

/* Targets may end before their addresses are printed. */
static void remember_targets(struct run *r)
{
	for (uint32_t i = 0; r->names_user && i < r->targets.n; i++)
		symbols_remember(r->symbols, r->targets.v[i].pid);
}

/* What -x engine, -d and -S leave open is chosen. */
static uint32_t choose_engines(const struct run *r, const struct bound *b,
			       enum engine_kind ret[ENGINES_TRIED])
{
	int named = (int)opt_num(&r->options, OPT_ENGINE);

	if (named == ENGINE_AUTO && !r->c->dump)
		return engines_choose(b, r->targets.v, r->targets.n, ret);
	ret[0] = named != ENGINE_AUTO ? (enum engine_kind)named
		 : dumps(r, "jit")    ? ENGINE_INPROC
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

/* "pid 123 exited with status 2", as DTrace says it. */
static void say_end(struct run *r, const struct target *t)
{
	cleanup_free char *how = target_end(t);

	if (!opt_on(&r->options, OPT_QUIET) && !r->c->json)
		fprintf(stderr, "%s: pid %d %s\n", r->c->progname, (int)t->pid, how);
}

static bool targets_gone(struct run *r)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < r->targets.n; i++) {
		bool before = r->targets.v[i].gone;

		gone += target_gone(&r->targets.v[i]);
		if (r->targets.v[i].gone && !before)
			say_end(r, &r->targets.v[i]);
	}
	return r->targets.n && gone == r->targets.n;
}

static bool names_user_code(const struct field *f, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (f[i].kind == FIELD_USTACK || f[i].kind == FIELD_USTACKID ||
		    f[i].kind == FIELD_USYM || f[i].kind == FIELD_UMOD || f[i].kind == FIELD_UADDR)
			return true;
	return false;
}

/* The command, when only it, and what it forks, can be met; 0: anybody can. */
static pid_t only_command(const struct run *r)
{
	const pid_t pid = r->targets.n == 1 && r->targets.v[0].command ? r->targets.v[0].pid : 0;

	for (uint32_t i = 0; i < r->image->nprobes; i++) {
		const struct probe *p = r->image->probes[i].probe;

		if (p && p->pid != pid && p->kind != ATTACH_SELF && p->kind != ATTACH_TICK)
			return 0;
	}
	return pid;
}

/* Programs that print user addresses need the mappings of processes that are gone by then. */
static void watch_mappings(struct run *r)
{
	bool needed = false;

	for (uint32_t i = 0; i < r->image->nsegments; i++)
		needed |= names_user_code(r->image->segments[i].fields,
					  r->image->segments[i].nfields);
	for (uint32_t i = 0; i < r->image->naggs; i++)
		needed |= names_user_code(r->image->aggs[i].keys, r->image->aggs[i].nkeys);
	if (!needed)
		return;
	symbols_watch(r->symbols, only_command(r));
	for (uint32_t i = 0; i < r->targets.n; i++)
		symbols_remember(r->symbols, r->targets.v[i].pid);
}

/* What happened before the targets ended is seen before tracing does. */
static struct err *catch_up(struct run *r, uint64_t until)
{
	struct engine *e = r->engine;
	struct err *err = NULL;

	while (!err && e->ops->behind && !interrupted) {
		e->ops->poll(e, 0);
		err = consumer_pass(r->consumer);
		if (!e->ops->behind(e, until) || engine_exiting(e))
			break;
	}
	return err;
}

static struct err *loop(struct run *r, int *ret_status)
{
	struct engine *e = r->engine;
	struct err *err = NULL;
	struct budget budget;

	budget_init(&budget, r->budget, r->c->progname, opt_on(&r->options, OPT_DROPTAGS));
	while (!err && !interrupted && !(r->c->stop && *r->c->stop) &&
	       !consumer_exited(r->consumer, ret_status)) {
		remember_targets(r);
		if (targets_gone(r)) {
			err = catch_up(r, clock_ns(CLOCK_MONOTONIC));
			break;
		}
		e->ops->poll(e, (int)(consumer_interval(r->consumer) / 1000000));
		err = consumer_pass(r->consumer);
		symbols_watch_drain(r->symbols);
		if (!budget_holds(&budget, e))
			break;
		/* exit() was called: the last pass does what this one left for older records to come first. */
		if (engine_exiting(e))
			break;
	}
	budget_fini(&budget);
	return err;
}

/* Remarks: functions that cannot be probed, buffers made smaller. */
static void say_notes(struct run *r, char *const *notes, uint32_t n)
{
	for (uint32_t i = 0; i < n && !opt_on(&r->options, OPT_QUIET); i++)
		fprintf(stderr, "%s: %s\n", r->c->progname, notes[i]);
}

static struct err *trace(struct run *r, int *ret_status)
{
	struct engine *e = r->engine;
	struct err *err, *err2;
	struct wire_state who = {
		.self_pid = (uint32_t)getpid(),
		.boot_offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC),
	};
	uint32_t said;
	int caught;

	watch_mappings(r);
	err = e->ops->attach(e);
	if (err)
		return err;
	say_notes(r, r->probes.notes.v, r->probes.notes.n);
	say_notes(r, e->notes, e->nnotes);
	said = e->nnotes;
	err = consumer_begin(r->consumer);
	who.target_pid = r->targets.n ? (uint32_t)vec_last(&r->targets)->pid : 0;
	engine_introduce(e, &who);
	for (uint32_t i = 0; i < r->targets.n && e->ops->add_process; i++)
		e->ops->add_process(e, r->targets.v[i].pid);
	if (!r->targets.n && e->ops->add_process)
		e->ops->add_process(e, 0);
	if (!err && r->image->has_begin)
		err = e->ops->fire(e, r->image->begin_prog);
	engine_start(e);
	for (uint32_t i = 0; i < r->targets.n; i++)
		target_release(&r->targets.v[i]);
	if (!err)
		err = loop(r, ret_status);
	engine_stop(e);
	err2 = e->ops->detach(e);
	if (!err && r->image->has_end)
		err = e->ops->fire(e, r->image->end_prog);
	caught = interrupted;
	if (!err)
		err = consumer_finish(r->consumer, opt_on(&r->options, OPT_REPORT), caught > 1);
	(void)consumer_exited(r->consumer, ret_status);
	say_notes(r, e->notes + said, e->nnotes - said);
	if (!err)
		return err2;
	err_free(err2);
	return err;
}

static int run_loaded(struct run *r, const struct bound *b)
{
	struct err *e;
	int status = 0;

	r->sink = r->c->sink ? r->c->sink : r->c->json ? sink_json_new() : sink_text_new();
	r->c->sink = NULL;
	r->sink->out = r->out;
	r->sink->err = stderr;
	r->sink->progname = r->c->progname;
	r->sink->options = &r->options;
	r->sink->symbols = r->symbols;
	r->sink->types = r->types;
	r->names_user = image_prints_user_addresses(r->image);
	r->consumer = consumer_new(r->engine, r->sink, &r->options);
	catch_signals();
	say_matched(r, b);
	e = trace(r, &status);
	if (e)
		return fail(r, e);
	return status;
}

static struct image *make_image(struct run *r, const struct bound *b, enum engine_kind kind)
{
	struct compile_target target = engine_compile_target(kind);

	return compile_image(b, r->types, &r->diags, &r->options, &target,
			     dumps(r, "ir") ? r->out : NULL);
}

/* Puts another image beside the first, for the places that cannot be patched. False: diagnostics say why not. */
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
	if (r->image && dumps(r, "ebpf"))
		image_print(r->out, r->image);
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

/* The kernel's engine would have seen more. */
static void say_instead(const struct run *r, const struct err *why, enum engine_kind kind)
{
	fprintf(stderr, "%s: %s; tracing without the kernel's engine: %s\n", r->c->progname,
		why->text,
		kind == ENGINE_INTERP ? "probes of proc come from the process connector"
				      : "from inside the named processes, others are not seen");
}

/* What is asked of the program before anything is loaded. */
static bool may_run(struct run *r)
{
	if (r->image->destructive && !opt_on(&r->options, OPT_DESTRUCTIVE)) {
		fprintf(stderr,
			"%s: could not enable tracing: Destructive actions not allowed (use -w)\n",
			r->c->progname);
		return false;
	}
	if (!r->c->output)
		return true;
	r->out = fopen(r->c->output, "ae");
	if (r->out)
		return true;
	r->out = stdout;
	(void)fail(r, err_errno(errno, "cannot open %s", r->c->output));
	return false;
}

/* Values that are taken for others, and one that cannot be: said, for a string that is cut later says nothing. */
static bool check_limits(struct run *r)
{
	static const struct {
		enum option_id option;
		int64_t most;
	} limits[] = {
		{ OPT_STRSIZE, WIRE_STRING_MAX },
		{ OPT_NSPEC, 64 },
		{ OPT_MAXFRAMES, WIRE_STACK_FRAMES },
	};
	int64_t cpu = opt_num(&r->options, OPT_CPU);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (opt_num(&r->options, limits[i].option) > limits[i].most)
			fprintf(stderr, "%s: %s=%lld: %lld is the most there can be, and used\n",
				r->c->progname, option_name(limits[i].option),
				(long long)opt_num(&r->options, limits[i].option),
				(long long)limits[i].most);
	if (cpu < sysconf(_SC_NPROCESSORS_CONF))
		return true;
	fprintf(stderr, "%s: failed to set cpu=%lld: this machine has CPUs 0 to %ld\n",
		r->c->progname, (long long)cpu, sysconf(_SC_NPROCESSORS_CONF) - 1);
	return false;
}

/* Compiles and loads for the first engine that may run here. */
static int prepare(struct run *r, const struct bound *b)
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
		return 2;

	for (uint32_t i = 0; i < n; i++) {
		if (!compile_for(r, b, kinds[i]))
			return print_diags(r), 1;
		if (!i)
			(void)print_diags(r);
		if (dumps(r, "jit"))
			e = engine_inproc_print(r->out, r->image);
		if (e)
			return fail(r, e);
		if (r->c->dump_only || r->c->mode == CMD_COMPILE)
			return 0;
		if (!i && !may_run(r))
			return 1;
		e = load(r, kinds[i]);
		if (r->diags.errors) {
			err_free(e);
			return print_diags(r), 1;
		}
		if (!e || i + 1 == n || !is_for_another(e, kinds[i]))
			break;
		if ((!i ? kinds[i] == ENGINE_KERNEL : kinds[i] == ENGINE_INTERP) &&
		    !opt_on(&r->options, OPT_QUIET))
			say_instead(r, e, kinds[i + 1]);
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
	    opt_num(&r->options, OPT_ENGINE) == ENGINE_AUTO) {
		struct err *more = err_new(
			e->code,
			"%s; without it, pid and USDT probes, system calls, proc and samples of your own processes "
			"(-p, -c) work",
			e->text);

		err_free(e);
		e = more;
	}
	return e ? fail(r, e) : 0;
}

static int compile_and_run(struct run *r)
{
	struct bound *b;
	int status;

	for (uint32_t i = 0; i < r->c->programs.n; i++) {
		status = add_source(r, &r->c->programs.v[i]);
		if (status)
			return status;
	}
	if (makes_files(r->c))
		return r->diags.errors ? print_diags(r) : cmd_header(r->c, r->tops.v, r->tops.n);
	if (r->c->mode == CMD_LIST)
		return r->diags.errors ? print_diags(r) : cmd_list(r->c, &r->bind);
	if (ends_with(r, "parse"))
		return print_diags(r);
	b = r->diags.errors ? NULL : bind_finish(&r->bind);
	if (!b || r->diags.errors)
		return print_diags(r), 1;
	for (uint32_t i = 1; i < r->macros.argc && !opt_on(&r->options, OPT_ARGREF); i++)
		if (!r->macros.used[i]) {
			diag_error(&r->diags, 0, 0, "D_MACRO_UNUSED",
				   "extraneous argument '%s' ($%u is not referenced)",
				   r->macros.argv[i], i);
			return print_diags(r);
		}
	if (dumps(r, "bind"))
		bound_print(r->out, b, r->types);
	if (ends_with(r, "bind"))
		return print_diags(r);
	status = prepare(r, b);
	if (status || r->c->dump_only)
		return status;
	if (r->c->mode == CMD_COMPILE) {
		say_matched(r, b);
		return 0;
	}
	return run_loaded(r, b);
}

int cmd_run(struct cmdline *c)
{
	struct run r;
	int status;

	init(&r, c);
	status = set_options(&r);
	if (!status)
		status = find_targets(&r);
	if (!status) {
		init_compiler(&r);
		status = compile_and_run(&r);
	}
	fini(&r);
	return status;
}
