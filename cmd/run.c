/* A run of descry (doc/overview.md, step 0): options, targets, sources, and then the work of the
 * mode. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/limits.h"
#include "base/outfile.h"
#include "base/procdir.h"
#include "base/term.h"
#include "show_stability.h"
#include "tool.h"

enum { AWAIT_MS = 100 }; /* a signal may come just before poll(2) */

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t interrupted_by; /* the first signal */
static struct session *volatile traced;      /* the session that this thread traces now */

/* The second ^C skips the output at the end. */
static void on_signal(int sig)
{
	if (sig == SIGCHLD)
		return;
	if (!interrupted)
		interrupted_by = sig;
	/* Tracing has ended. Naming the collected addresses may take long, so the signal ends
	 * descry as any other program. */
	if (traced && traced->finishing) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	interrupted++;
}

bool cmd_interrupted(void)
{
	return interrupted != 0;
}

const char *run_source_kind(const struct source *s)
{
	return s->kind == SOURCE_FILE ? "script" : "description";
}

/* Under DTrace's name, messages show a description up to its predicate or body. */
size_t run_source_shown(const struct run *r, const struct source *s)
{
	size_t shown = (size_t)diag_shown(s->name);

	return r->c->dtrace_name && s->kind != SOURCE_FILE && strcspn(s->name, "{/;") < shown
		       ? strcspn(s->name, "{/;")
		       : shown;
}

static void say_matched(const struct run *r, const struct source *s)
{
	const struct bound *b = r->session.bound;
	size_t shown = run_source_shown(r, s);
	uint32_t n = 0;

	for (uint32_t k = 0; k < b->clauses.n; k++)
		if (b->clauses.v[k]->loc >= s->base && b->clauses.v[k]->loc <= s->base + s->len)
			n += b->clauses.v[k]->nprobes;
	session_say(&r->session, "%s '%.*s%s' matched %u probe%s", run_source_kind(s), (int)shown,
		    s->name, shown == (size_t)diag_shown(s->name) ? DIAG_CUT(s->name) : "", n,
		    n == 1 ? "" : "s");
}

/* Prints "description 'X' matched N probes" for each program, as DTrace does. */
static void say_all_matched(struct run *r)
{
	bool dtrace = r->c->dtrace_name, traces = r->c->mode != CMD_COMPILE;
	const struct diags *d = &r->session.diags;

	if (r->c->json)
		return;
	for (uint32_t i = 0, src = 0; i < d->nsources && src < r->c->programs.n; i++) {
		const struct source *s = &d->sources[i];

		if (s->kind == SOURCE_LIB)
			continue;
		if (!opt_on(&r->session.options, OPT_QUIET) && (traces || !dtrace))
			say_matched(r, s);
		if (dtrace && r->c->verbose)
			run_say_stability(r, r->session.bound, s);
		src++;
	}
	if (dtrace && opt_on(&r->session.options, OPT_DESTRUCTIVE) &&
	    !opt_on(&r->session.options, OPT_QUIET))
		session_say(&r->session, "allowing destructive actions");
}

static int asked(void *arg)
{
	const struct run *r = arg;

	return interrupted ? interrupted : r->stop && *r->stop;
}

static void run_message(void *arg, const char *text, size_t n)
{
	const struct run *r = arg;

	if (r->message) {
		r->message(r->arg, text, n);
		return;
	}
	fwrite(text, 1, n, stderr);
	fflush(stderr);
}

/* Prints the message of e, or all diagnostics of wrong D, and frees e. Returns the exit status: 2
 * for an option's wrong value, else 1. */
static int run_failed(struct run *r, struct err *e)
{
	int status = r->session.failure == SESSION_WRONG_OPTION ? 2 : 1;

	if (r->session.failure != SESSION_WRONG_D && !tool_reader_gone(e))
		session_say(&r->session, "%s", e->text);
	err_free(e);
	return status;
}

/* Reports that a program could not be started. A process may end while it is examined; then it
 * counts as ended before any event. */
static int run_not_begun(struct run *r, struct err *e)
{
	if (!session_outlived(&r->session))
		return run_failed(r, e);
	err_free(e);
	return 0;
}

/* Sets options by DTRACE_OPT_NAME and DESCRY_OPT_NAME of the environment, then by -x in order. */
static int set_by_environment(struct run *r)
{
	struct options *o = &r->session.options;
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
			if (value &&
			    !options_set(o, option_name((enum option_id)id), *value ? value : NULL,
					 WHEN_COMPILE | WHEN_RUN | WHEN_DYNAMIC, &why)) {
				session_say(&r->session, "%s=%s: %s", name, value, why);
				return 2;
			}
		}
	}
	return 0;
}

static int set_options(struct run *r)
{
	struct options *o = &r->session.options;
	const char *why;

	for (uint32_t i = 0; i < r->c->sets.n; i++)
		if (!options_set_text(o, r->c->sets.v[i].text,
				      WHEN_COMPILE | WHEN_RUN | WHEN_DYNAMIC, &why)) {
			const char *text = r->c->sets.v[i].text;
			bool brief = r->c->dtrace_name; /* DTrace prints the option's name only */

			session_say(&r->session, "failed to set -x %.*s: %.*s",
				    (int)(brief ? strcspn(text, "=") : strlen(text)), text,
				    (int)(brief ? strcspn(why, ":") : strlen(why)), why);
			return 1;
		}
	if (r->c->json)
		(void)options_set(o, "report", NULL, WHEN_RUN, &why);
	return 0;
}

static int find_targets(struct run *r)
{
	struct err *e = NULL;

	for (uint32_t i = 0; i < r->c->pids.n && !e; i++) {
		e = session_grab(&r->session, r->c->pids.v[i]);
		/* A server may run programs when the process has long ended. */
		if (!e && r->c->starts.v[i] && procdir_start(r->c->pids.v[i]) != r->c->starts.v[i])
			e = err_new(ESRCH, "process %d has ended, and another one has its number",
				    (int)r->c->pids.v[i]);
		if (e && e->code == ESRCH && r->c->dtrace_name) {
			err_free(e);
			e = err_new(ESRCH, "%s", strerror(ESRCH));
		}
	}
	for (uint32_t i = 0; i < r->c->commands.n && !e; i++)
		e = session_command(&r->session, r->c->commands.v[i]);
	return e ? run_failed(r, e) : 0;
}

/* Closes the output. Some file systems report a failed write only at close. */
static int close_output(struct run *r, int status)
{
	if (r->out == stdout || r->out == r->to || !fclose(r->out))
		return status;
	return run_failed(r, err_errno(errno, "%s: close", r->c->output));
}

/* Returns true when -d or -S requests `stage`. */
static bool run_dumps(const struct run *r, const char *stage)
{
	const char *at = r->c->dump ? strstr(r->c->dump, stage) : NULL;
	size_t n = strlen(stage);

	return at && (at == r->c->dump || at[-1] == ',') && (at[n] == ',' || !at[n]);
}

/* -d: is `stage` the last one requested? */
static bool ends_with(const struct run *r, const char *stage)
{
	static const char *const stages[] = { "parse", "bind", "ir", "ebpf", "jit" };
	bool last = false;

	for (size_t i = 0; i < ARRAY_SIZE(stages); i++)
		if (run_dumps(r, stages[i]))
			last = !strcmp(stages[i], stage);
	return r->c->dump_only && last;
}

/* -x tree: does it request the listing after that pass? */
static bool lists_tree(const struct session *s, int pass)
{
	return s->options.v[OPT_TREE].num >> (pass - 1) & 1;
}

static bool debugs(void)
{
	const char *own = getenv("DESCRY_DEBUG"), *dtrace = getenv("DTRACE_DEBUG");

	return (own && *own) || (dtrace && *dtrace);
}

static bool makes_files(const struct cmdline *c)
{
	return c->mode == CMD_HEADER || c->mode == CMD_OBJECT;
}

static int make_files(struct run *r)
{
	struct session *s = &r->session;
	int status;

	if (s->diags.errors)
		return session_diagnose(s);
	if (r->c->mode == CMD_HEADER)
		return cmd_header(r->c, s->tops.v, s->tops.n);
	status = cmd_object(r->c, &s->bind, s->tops.v, s->tops.n);
	return session_diagnose(s) || status;
}

/* Runs between compiling and loading: prints for -d, -S, -o. */
static struct err *print_code(struct run *r)
{
	const struct image *img = r->session.plan.image;

	if (run_dumps(r, "ebpf"))
		(r->c->dtrace_name ? image_list : image_print)(r->out, img);
	return run_dumps(r, "jit") ? engine_inproc.print(r->out, img) : NULL;
}

static struct err *open_output(struct run *r)
{
	FILE *f = r->c->output ? term_file(outfile_append(r->c->output, OUTFILE_SHARED)) : r->out;

	if (!f)
		return err_errno(errno, "cannot open %s", r->c->output);
	r->out = f;
	return NULL;
}

static int trace(struct run *r, struct sink **sink)
{
	struct sink *taken = *sink ? *sink : r->c->json ? sink_json_new() : sink_text_new();
	struct session *s = &r->session;
	struct err *e;

	*sink = NULL;
	taken->out = r->out;
	tool_catch(on_signal);
	say_all_matched(r);
	e = session_start(s, taken);
	if (e)
		return run_not_begun(r, e);
	traced = s;
	while ((r->poll ? r->poll(r, &e) : session_poll(s, -1, &e)) && !e)
		if (r->round)
			e = r->round(r, false);
	if (r->round && !e)
		e = r->round(r, true);
	e = session_stop(s, e);
	traced = NULL;
	return e ? run_failed(r, e) : s->status;
}

static int compile_and_run(struct run *r, struct sink **sink)
{
	struct session *s = &r->session;
	struct err *e = NULL;

	session_ready(s);
	for (uint32_t i = 0; i < r->c->programs.n; i++) {
		const struct cmd_program *p = &r->c->programs.v[i];

		e = session_source(s, p->form, p->file, p->text);
		if (e)
			return run_failed(r, e);
		for (const struct node *n = s->tops.v[s->tops.n - 1]; n && run_dumps(r, "parse");
		     n = n->next)
			ast_print(r->out, n, NULL);
		if (lists_tree(s, 1))
			tree_list_parsed(stderr, s->tops.v[s->tops.n - 1]);
	}
	if (makes_files(r->c))
		return make_files(r);
	if (r->c->mode == CMD_LIST)
		return s->diags.errors ? session_diagnose(s) : cmdline_list(r->c, &s->bind);
	if (ends_with(r, "parse"))
		return session_diagnose(s);
	e = session_bind(s);
	if (debugs())
		libraries_print(stderr, &s->bind);
	if (e)
		return run_failed(r, e);
	if (r->c->mode == CMD_TRACE && !r->c->dump_only && !session_enables(s)) {
		session_say(s, "no probes %s", r->c->programs.n ? "matched" : "specified");
		return 1;
	}
	if (run_dumps(r, "bind"))
		bound_print(r->out, s->bound, s->types);
	if (lists_tree(s, 2))
		tree_list_bound(stderr, s->bound, s->types, 2);
	if (ends_with(r, "bind"))
		return session_diagnose(s);
	e = session_compile(s);
	e = e ?: print_code(r);
	if (e)
		return run_failed(r, e);
	if (lists_tree(s, 3))
		tree_list_bound(stderr, s->bound, s->types, 3);
	if (r->c->mode == CMD_COMPILE && !r->c->dump_only)
		say_all_matched(r);
	if (r->c->mode == CMD_COMPILE || r->c->dump_only)
		return 0;
	e = session_allowed(s);
	e = e ?: open_output(r);
	e = e ?: session_load(s);
	return e ? run_not_begun(r, e) : trace(r, sink);
}

/* -x core: writes a core file. */
static void dump_core(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	fflush(NULL);
	if (setrlimit(RLIMIT_CORE, &all))
		perror("descry: -x core: cannot raise the limit of core files");
	abort();
}

void run_init(struct run *r)
{
	struct cmdline *c = r->c;
	const struct session_setting o = {
		.progname = c->progname,
		.dtrace = c->dtrace_name,
		/* term_raw() lets colours pass the terminal's guard */
		.diagnostics = r->message ? NULL : stderr,
		.color = !c->dtrace_name && term_is(stderr) && !getenv("NO_COLOR"),
		.message = run_message,
		.stop = asked,
		.arg = r,
		.output = r->output,
		.user = r->user,
		.args = c->args.v,
		.nargs = c->args.n,
		.libdirs = c->libdirs.v,
		.nlibdirs = c->libdirs.n,
		.cpp_args = c->cpp_args.v,
		.ncpp_args = c->cpp_args.n,
		.not_destructive = c->not_destructive,
		.not_engine = c->not_engine,
		.not_terminal = c->not_terminal,
		.silent_ends = c->json,
		.leaves_commands = r->leaves_commands,
		.brief = c->mode == CMD_COMPILE,
	};

	r->out = r->to ? r->to : stdout;
	r->command_status = -1;
	limits_raise_files();
	session_init(&r->session, &o);
	/* -d and -S without -x engine use this engine; otherwise plan.c chooses. */
	if (c->dump)
		r->session.o.engine = run_dumps(r, "jit") ? &engine_inproc : &engine_kernel;
	r->session.o.ir_out = run_dumps(r, "ir") ? r->out : NULL;
	r->session.o.parse_only = makes_files(c) || ends_with(r, "parse");
	r->status = set_by_environment(r);
}

static int prepare_programs(struct run *r, bool *ret_end)
{
	struct err *e = r->prepare ? r->prepare(r, ret_end) : NULL;

	return e ? run_failed(r, e) : 0;
}

static bool wants_end(void)
{
	return interrupted_by != SIGINT || interrupted > 1;
}

/* Waits for a command that is left alone, as a shell does: the terminal's ^C went to both. Another
 * signal than ^C ends this. */
static void await_commands(struct run *r)
{
	const struct session *s = &r->session;

	if (!r->leaves_commands || !interrupted || wants_end())
		return;
	fflush(r->out);
	tool_ignore(SIGINT);
	/* another user's command has no terminal, and has got no ^C */
	for (uint32_t i = 0; r->user && i < s->targets.n; i++)
		if (s->targets.v[i].command && !target_gone(&s->targets.v[i]))
			kill(s->targets.v[i].pid, SIGINT);
	for (uint32_t i = 0; i < s->targets.n; i++)
		while (s->targets.v[i].command && !wants_end() && !target_gone(&s->targets.v[i]))
			poll(&(struct pollfd){ s->targets.v[i].pidfd, POLLIN, 0 }, 1, AWAIT_MS);
}

static void keep_command_status(struct run *r)
{
	const struct session *s = &r->session;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->targets.n; i++) {
		if (!s->targets.v[i].command)
			continue;
		r->command_status = !n++ && s->targets.v[i].gone ? s->targets.v[i].status : -1;
	}
}

int run_all(struct run *r, struct sink *sink)
{
	int status = r->status;
	bool dump, end = false;

	status = status ?: set_options(r);
	status = status ?: find_targets(r);
	status = status ?: prepare_programs(r, &end);
	if (!status && !end)
		status = compile_and_run(r, &sink);
	await_commands(r);
	keep_command_status(r);
	status = close_output(r, status);
	dump = opt_on(&r->session.options, OPT_CORE);
	if (sink) /* the run failed before it used the sink */
		sink->ops->free(sink);
	session_fini(&r->session);
	if (dump)
		dump_core();
	return status;
}

int cmd_run(struct cmdline *c)
{
	struct run r = { .c = c };

	run_init(&r);
	return run_all(&r, NULL);
}
