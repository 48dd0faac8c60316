/* A session from its options to a bound program. */
#define _GNU_SOURCE
#include "session/session.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "load/kernel/names.h"

static ssize_t take_message(void *cookie, const char *text, size_t n)
{
	struct session *s = cookie;

	if (s->o.message)
		s->o.message(s->o.arg, text, n);
	return (ssize_t)n;
}

void session_say(const struct session *s, const char *fmt, ...)
{
	va_list ap;

	fprintf(s->err, "%s: ", s->o.progname);
	va_start(ap, fmt);
	vfprintf(s->err, fmt, ap);
	va_end(ap);
	fputc('\n', s->err);
}

bool session_diagnose(struct session *s)
{
	struct diag_style style = {
		.color = s->o.color,
		.dtrace = s->o.dtrace,
		.errtags = opt_on(&s->options, OPT_ERRTAGS),
		.progname = s->o.progname,
	};
	FILE *out = s->o.diagnostics ? s->o.diagnostics : s->err;

	diags_print(&s->diags, &style, out);
	fflush(out);
	return s->diags.errors > 0;
}

void session_init(struct session *s, const struct session_setting *o)
{
	memset(s, 0, sizeof(*s));
	s->o = *o;
	s->o.progname = o->progname ? o->progname : "descry";
	s->err = fopencookie(s, "w", (cookie_io_functions_t){ .write = take_message });
	assert(s->err);
	setvbuf(s->err, NULL, _IOLBF, BUFSIZ);
	arena_init(&s->arena);
	diags_init(&s->diags);
	options_init(&s->options);
	s->types = type_graph_new();
	type_use_kernel(s->types, NULL);
	s->symbols = symbols_new();
	s->kernel_names = kernel_names_new();
	symbols_ask_kernel(s->symbols, kernel_names_ask, s->kernel_names);
	probe_set_init(&s->probes, s->types, s->symbols);
	plan_advise(&s->probes);
	s->macros = (struct macro_args){
		.argv = s->o.args,
		.argc = s->o.nargs,
		.used = xcalloc(s->o.nargs + 1, sizeof(bool)),
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
}

/* End in reverse order of birth: what is running first. */
void session_fini(struct session *s)
{
	budget_fini(&s->budget);
	consumer_free(s->consumer);
	if (s->sink)
		s->sink->ops->free(s->sink);
	plan_fini(&s->plan);
	for (uint32_t i = 0; i < s->targets.n; i++)
		target_drop(&s->targets.v[i], true);
	vec_fini(&s->targets);
	vec_fini(&s->tops);
	if (s->bind.state)
		bind_fini(&s->bind);
	vec_fini(&s->bind.libdirs);
	probe_set_fini(&s->probes);
	symbols_free(s->symbols);
	kernel_names_free(s->kernel_names);
	type_graph_free(s->types);
	hash_fini(&s->typedefs);
	free(s->macros.used);
	options_fini(&s->options);
	diags_fini(&s->diags);
	arena_fini(&s->arena);
	fclose(s->err);
}

static void add_target(struct session *s, const struct target *t)
{
	vec_push(&s->targets, *t);
	vec_push(&s->probes.targets, (struct probe_target){ t->pid, t->command });
	s->macros.target = t->pid;
	type_use_process(s->types, t->pid);
}

struct err *session_grab(struct session *s, pid_t pid)
{
	struct target t;
	struct err *e = target_grab(pid, &t);

	if (!e)
		add_target(s, &t);
	return e ? err_wrap(e, "failed to grab process %d", (int)pid) : NULL;
}

struct err *session_command(struct session *s, const char *command)
{
	const struct engine_type *engine = plan_engine_named(&s->options);
	struct target t;
	struct err *e = target_start(command, &t);

	if (e)
		return e;
	if (opt_num(&s->options, OPT_EVALTIME) > 1)
		e = target_to_main(&t);
	else if ((engine && engine->target.inside) || opt_num(&s->options, OPT_EVALTIME))
		e = target_to_entry(&t);
	add_target(s, &t);
	return e;
}

void session_ready(struct session *s)
{
	if (s->bind.state)
		return;
	s->macros.defaultargs = opt_on(&s->options, OPT_DEFAULTARGS);
	s->parse = (struct parse_cx){
		.arena = &s->arena,
		.diags = &s->diags,
		.macros = &s->macros,
		.is_type = bind_is_type,
		.is_type_arg = &s->bind,
		.pspec = opt_on(&s->options, OPT_PSPEC),
		.typedefs = &s->typedefs,
	};
	s->bind = (struct bind_cx){
		.arena = &s->arena,
		.diags = &s->diags,
		.types = s->types,
		.probes = &s->probes,
		.options = &s->options,
		.macros = &s->macros,
		.parse = &s->parse,
	};
	type_set_strsize(s->types, opt_num(&s->options, OPT_STRSIZE));
	for (uint32_t i = 0; i < s->o.nlibdirs; i++)
		vec_push(&s->bind.libdirs, s->o.libdirs[i]);
	options_lock(&s->options, OPT_DESTRUCTIVE, s->o.not_destructive);
	options_lock(&s->options, OPT_ENGINE, s->o.not_engine);
	bind_init(&s->bind);
}

/* The text of a source, after the preprocessor if it is wanted. */
static struct err *read_source(const struct session *s, bool file, const char *name, char **ret,
			       size_t *ret_len)
{
	char *text;
	struct err *e;

	if (file) {
		e = io_read_file(name, ret, ret_len);
		if (e) {
			struct err *shown = err_new(e->code, "failed to open %s: %s", name,
						    e->code ? strerror(e->code) : e->text);

			err_free(e);
			return shown;
		}
	} else {
		*ret = xstrdup(name);
		*ret_len = strlen(name);
	}
	if (!opt_on(&s->options, OPT_CPP))
		return NULL;
	text = *ret;
	e = session_preprocess(s, file ? name : "<command line>", text, *ret_len, ret, ret_len);
	free(text);
	return e;
}

struct err *session_source(struct session *s, enum pdesc_form form, bool file, const char *text)
{
	uint32_t errors = s->diags.errors;
	char *read;
	size_t len;
	struct node *top;
	struct err *e;

	session_ready(s);
	e = read_source(s, file, text, &read, &len);
	if (e)
		return e;
	source_add(&s->diags, file ? SOURCE_FILE : SOURCE_ARG, text, read, len);
	free(read);
	top = parse_source(&s->parse, s->diags.nsources - 1, form);
	vec_push(&s->tops, top);
	if (s->diags.errors == errors && !s->o.parse_only)
		bind_add(&s->bind, top);
	return NULL;
}

/* Each argument has a use: sources are read whole before probes are looked for. */
static void check_arguments(struct session *s)
{
	for (uint32_t i = 1; i < s->macros.argc && !opt_on(&s->options, OPT_ARGREF); i++)
		if (!s->macros.used[i] && !s->diags.errors)
			diag_error(&s->diags, 0, 0, "D_MACRO_UNUSED",
				   "extraneous argument '%s' ($%u is not referenced)",
				   s->macros.argv[i], i);
}

struct err *session_bind(struct session *s)
{
	session_ready(s);
	check_arguments(s);
	s->bound = s->diags.errors ? NULL : bind_finish(&s->bind);
	if (s->bound && !s->diags.errors)
		return NULL;
	session_diagnose(s);
	return err_new(EINVAL, "the program is wrong");
}

bool session_enables(const struct session *s)
{
	for (uint32_t i = 0; i < s->bound->clauses.n; i++)
		if (s->bound->clauses.v[i]->nprobes)
			return true;
	return opt_on(&s->options, OPT_ZDEFS);
}
