/* One run: sources -> image -> engine -> consumer. The order of the calls is the way of a probe
 * (DESIGN section 2): prepare.c has image and engine, trace.c the rest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/io.h"
#include "base/nofile.h"
#include "base/term.h"
#include "load/kernel/names.h"
#include "run.h"
#include "tool.h"

int run_failed(struct run *r, struct err *e)
{
	if (!tool_reader_gone(e))
		fprintf(stderr, "%s: %s\n", r->c->progname, e->text);
	err_free(e);
	return 1;
}

int run_print_diags(struct run *r)
{
	struct diag_style style = {
		.color = !r->c->dtrace_name && term_is(stderr) && !getenv("NO_COLOR"),
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
			const char *text = r->c->sets.v[i].text;
			bool brief = r->c->dtrace_name; /* DTrace names the option only */

			fprintf(stderr, "%s: failed to set -x %.*s: %.*s\n", r->c->progname,
				(int)(brief ? strcspn(text, "=") : strlen(text)), text,
				(int)(brief ? strcspn(why, ":") : strlen(why)), why);
			return 1;
		}
	if (r->c->json)
		(void)options_set(&r->options, "report", NULL, WHEN_RUN, &why);
	options_lock(&r->options, OPT_DESTRUCTIVE, r->c->not_destructive);
	return 0;
}

static int find_targets(struct run *r)
{
	const struct engine_type *engine = plan_engine_named(&r->options);
	struct target t;
	struct err *e;

	for (uint32_t i = 0; i < r->c->pids.n; i++) {
		e = target_grab(r->c->pids.v[i], &t);
		if (e && e->code == ESRCH && r->c->dtrace_name) {
			err_free(e);
			return run_failed(r, err_new(ESRCH, "%s", strerror(ESRCH)));
		}
		if (e)
			return run_failed(r, err_wrap(e, "failed to grab process %d",
						      (int)r->c->pids.v[i]));
		vec_push(&r->targets, t);
	}
	for (uint32_t i = 0; i < r->c->commands.n; i++) {
		e = target_start(r->c->commands.v[i], &t);
		if (e)
			return run_failed(r, e);
		vec_push(&r->targets, t);
		if (opt_num(&r->options, OPT_EVALTIME) > 1)
			e = target_to_main(vec_last(&r->targets));
		else if ((engine && engine->target.inside) || opt_num(&r->options, OPT_EVALTIME))
			e = target_to_entry(vec_last(&r->targets));
		if (e)
			return run_failed(r, e);
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
	r->kernel_names = kernel_names_new();
	symbols_ask_kernel(r->symbols, kernel_names_ask, r->kernel_names);
	probe_set_init(&r->probes, r->types, r->symbols);
	plan_advise(&r->probes);
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
	type_set_strsize(r->types, opt_num(&r->options, OPT_STRSIZE));
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
	plan_fini(&r->plan);
	for (uint32_t i = 0; i < r->targets.n; i++)
		target_drop(&r->targets.v[i], true);
	vec_fini(&r->targets);
	vec_fini(&r->tops);
	if (r->bind.state)
		bind_fini(&r->bind);
	vec_fini(&r->bind.libdirs);
	probe_set_fini(&r->probes);
	symbols_free(r->symbols);
	kernel_names_free(r->kernel_names);
	type_graph_free(r->types);
	hash_fini(&r->typedefs);
	free(r->macros.used);
	options_fini(&r->options);
	diags_fini(&r->diags);
	arena_fini(&r->arena);
}

/* Some file systems tell that a file could not be written only when it is closed. */
static int close_output(struct run *r, int status)
{
	FILE *f = r->out;

	r->out = NULL;
	if (f == stdout || !fclose(f))
		return status;
	return run_failed(r, err_errno(errno, "%s: close", r->c->output));
}

bool run_dumps(const struct run *r, const char *stage)
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
		if (run_dumps(r, stages[i]))
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
		if (e) {
			fprintf(stderr, "%s: failed to open %s: %s\n", r->c->progname, p->text,
				e->code ? strerror(e->code) : e->text);
			err_free(e);
			return 1;
		}
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
			return run_failed(r, e);
		text = after;
	}
	source_add(&r->diags, p->file ? SOURCE_FILE : SOURCE_ARG, p->text, text, len);
	free(text);
	errors = r->diags.errors;
	top = parse_source(&r->parse, r->diags.nsources - 1, p->form);
	if (run_dumps(r, "parse"))
		for (const struct node *n = top; n; n = n->next)
			ast_print(r->out, n, NULL);
	vec_push(&r->tops, top);
	if (r->diags.errors == errors && !ends_with(r, "parse") && !makes_files(r->c))
		bind_add(&r->bind, top);
	return 0;
}

static int make_files(struct run *r)
{
	int status;

	if (r->diags.errors)
		return run_print_diags(r);
	if (r->c->mode == CMD_HEADER)
		return cmd_header(r->c, r->tops.v, r->tops.n);
	status = cmd_object(r->c, &r->bind, r->tops.v, r->tops.n);
	return run_print_diags(r) || status;
}

/* Each argument has a use: sources are read whole before probes are looked for. */
static void check_arguments(struct run *r)
{
	for (uint32_t i = 1; i < r->macros.argc && !opt_on(&r->options, OPT_ARGREF); i++)
		if (!r->macros.used[i] && !r->diags.errors)
			diag_error(&r->diags, 0, 0, "D_MACRO_UNUSED",
				   "extraneous argument '%s' ($%u is not referenced)",
				   r->macros.argv[i], i);
}

/* Nothing would ever happen. */
static bool enables_nothing(const struct run *r, const struct bound *b)
{
	for (uint32_t i = 0; i < b->clauses.n; i++)
		if (b->clauses.v[i]->nprobes)
			return false;
	return !opt_on(&r->options, OPT_ZDEFS);
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
		return make_files(r);
	if (r->c->mode == CMD_LIST)
		return r->diags.errors ? run_print_diags(r) : cmd_list(r->c, &r->bind);
	if (ends_with(r, "parse"))
		return run_print_diags(r);
	check_arguments(r);
	b = r->diags.errors ? NULL : bind_finish(&r->bind);
	if (!b || r->diags.errors)
		return run_print_diags(r), 1;
	if (r->c->mode == CMD_TRACE && !r->c->dump_only && enables_nothing(r, b)) {
		fprintf(stderr, "%s: no probes %s\n", r->c->progname,
			r->c->programs.n ? "matched" : "specified");
		return 1;
	}
	if (run_dumps(r, "bind"))
		bound_print(r->out, b, r->types);
	if (ends_with(r, "bind"))
		return run_print_diags(r);
	status = run_prepare(r, b);
	if (status || r->c->dump_only)
		return status;
	if (r->c->mode == CMD_COMPILE) {
		run_say_matched(r, b);
		return 0;
	}
	return run_trace(r, b);
}

/* -x core */
static void dump_core(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	fflush(NULL);
	if (setrlimit(RLIMIT_CORE, &all))
		perror("descry: -x core: the limit of core files stays");
	abort();
}

int cmd_run(struct cmdline *c)
{
	struct run r;
	int status;
	bool dump;

	nofile_raise();
	init(&r, c);
	status = set_options(&r);
	if (!status)
		status = find_targets(&r);
	if (!status) {
		init_compiler(&r);
		status = compile_and_run(&r);
	}
	status = close_output(&r, status);
	dump = opt_on(&r.options, OPT_CORE);
	fini(&r);
	if (dump)
		dump_core();
	return status;
}
