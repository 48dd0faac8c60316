/* Takes a session from its options to a bound program. */
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
#include "program/object/dwarf.h"
#include "program/runtime/languages.h"
#include "program/target/target.h"

void session_message(void *session, const char *text, size_t n)
{
	const struct session *s = session;

	if (s->o.message && n)
		s->o.message(s->o.arg, text, n);
}

void session_say(const struct session *s, const char *fmt, ...)
{
	cleanup_free char *what = NULL, *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	what = xvasprintf(fmt, ap);
	va_end(ap);
	line = xasprintf("%s: %s\n", s->o.progname, what);
	session_message((void *)s, line, strlen(line));
}

void session_say_debug(struct session *s)
{
	if (!s->untrusted_said && dwarf_untrusted())
		session_say(
			s,
			"%s is another user's or a container's: its debugging information is not read, and "
			"its types and lines are unknown (-x foreigndebug reads it)",
			dwarf_untrusted());
	s->untrusted_said |= dwarf_untrusted() != NULL;
	if (!s->types_said && type_user_is_cut(s->types))
		session_say(s,
			    "the debugging information of the traced programs has more than %d MB "
			    "of names and types: some of them are unknown",
			    TYPE_USER_MB);
	s->types_said |= type_user_is_cut(s->types);
}

bool session_diagnose(struct session *s)
{
	struct diag_style style = {
		.color = s->o.color,
		.dtrace = s->o.dtrace,
		.errtags = opt_on(&s->options, OPT_ERRTAGS),
		.progname = s->o.progname,
	};
	cleanup_free char *text = NULL;
	size_t n = 0;
	FILE *out = s->o.diagnostics ? s->o.diagnostics : open_memstream(&text, &n);

	assert(out);
	session_say_debug(s);
	diags_print(&s->diags, &style, out);
	fflush(out);
	if (out != s->o.diagnostics) {
		fclose(out);
		session_message(s, text, n);
	}
	return s->diags.errors > 0;
}

void session_init(struct session *s, const struct session_setting *o)
{
	memset(s, 0, sizeof(*s));
	s->o = *o;
	s->o.progname = o->progname ? o->progname : "descry";
	arena_init(&s->arena);
	diags_init(&s->diags);
	options_init(&s->options);
	s->types = type_graph_new();
	type_use_kernel(s->types, NULL);
	s->symbols = o->symbols ? symbols_share(o->symbols) : symbols_new();
	s->languages = languages_new();
	s->kernel_names = kernel_names_new();
	if (!o->symbols)
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

/* Frees the parts in reverse order of creation, so that the running parts go first. */
void session_fini(struct session *s)
{
	budget_fini(&s->budget);
	consumer_free(s->consumer);
	if (s->sink)
		s->sink->ops->free(s->sink);
	for (uint32_t i = 0; i < s->executed.n; i++)
		control_free(s->executed.v[i].control);
	vec_fini(&s->executed);
	plan_fini(&s->plan);
	java_switches_off(&s->java);
	ruby_watch_end(&s->ruby);
	for (uint32_t i = 0; i < s->targets.n; i++)
		target_drop(&s->targets.v[i], !s->o.leaves_commands);
	vec_fini(&s->targets);
	vec_fini(&s->tops);
	if (s->bind.state)
		bind_fini(&s->bind);
	vec_fini(&s->bind.libdirs);
	probe_set_fini(&s->probes);
	symbols_free(s->symbols);
	languages_free(s->languages);
	kernel_names_free(s->kernel_names);
	type_graph_free(s->types);
	hash_fini(&s->typedefs);
	free(s->macros.used);
	options_fini(&s->options);
	diags_fini(&s->diags);
	arena_fini(&s->arena);
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

struct err *session_hold(struct session *s, const struct executed *x)
{
	struct target t;
	struct err *e = target_grab(x->pid, &t);

	if (e) {
		control_free(x->control);
		return err_wrap(e, "failed to grab process %d", (int)x->pid);
	}
	t.control = x->control;
	t.stopped = t.at_entry = x->control != NULL;
	add_target(s, &t);
	return NULL;
}

/* DTrace's default is preinit: the dynamic linker's work is not traced. */
static int64_t evaltime(const struct session *s)
{
	enum { EXEC, PREINIT };

	if (s->options.v[OPT_EVALTIME].set)
		return opt_num(&s->options, OPT_EVALTIME);
	return !strcmp(s->o.progname, "dtrace") ? PREINIT : EXEC;
}

struct err *session_command(struct session *s, const char *command)
{
	const struct engine_type *engine = plan_engine_named(&s->options);
	struct target t;
	struct err *e = target_start(command, s->o.output, s->o.user, &t);

	if (e)
		return e;
	if (evaltime(s) > 1)
		e = target_to_main(&t);
	else if ((engine && engine->target.inside) || evaltime(s))
		e = target_to_entry(&t);
	add_target(s, &t);
	return e;
}

static void choose_sdt_args(struct session *s)
{
	enum { AUTO, KERNEL, FIELDS };
	int64_t choice = opt_num(&s->options, OPT_SDTARGS);

	s->probes.sdt_fields = choice == FIELDS ||
			       (choice == AUTO && !strcmp(s->o.progname, "dtrace"));
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
	dwarf_trust_all(opt_on(&s->options, OPT_FOREIGNDEBUG));
	type_set_strsize(s->types, opt_num(&s->options, OPT_STRSIZE));
	choose_sdt_args(s);
	for (uint32_t i = 0; i < s->o.nlibdirs; i++)
		vec_push(&s->bind.libdirs, s->o.libdirs[i]);
	options_lock(&s->options, OPT_DESTRUCTIVE, s->o.not_destructive);
	options_lock(&s->options, OPT_ENGINE, s->o.not_engine);
	options_lock(&s->options, OPT_CORE, s->o.not_terminal);
	options_lock(&s->options, OPT_BPFLOG, s->o.not_terminal);
	options_lock(&s->options, OPT_DEBUG, s->o.not_terminal);
	options_lock(&s->options, OPT_FOREIGNDEBUG, s->o.not_terminal);
	options_lock(&s->options, OPT_TREE, s->o.not_terminal);
	options_lock(&s->options, OPT_VERBOSE, s->o.not_terminal);
	bind_init(&s->bind);
}

/* Reads the text of a source, and preprocesses it with -C. */
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

/* Reports the last argument when no source uses it, as DTrace does, so that a script may leave out
 * an argument before it. All sources have been read by now, before any probe is matched. */
static void check_arguments(struct session *s)
{
	uint32_t last = s->macros.argc - 1;

	if (s->macros.argc < 2 || opt_on(&s->options, OPT_ARGREF) || s->macros.used[last] ||
	    s->diags.errors)
		return;
	diag_error(&s->diags, 0, 0, "D_MACRO_UNUSED",
		   "extraneous argument '%s' ($%u is not referenced)", s->macros.argv[last], last);
}

struct err *session_bind(struct session *s)
{
	session_ready(s);
	choose_sdt_args(s);
	check_arguments(s);
	s->bound = s->diags.errors ? NULL : bind_finish(&s->bind);
	if (s->bound && !s->diags.errors)
		return NULL;
	session_diagnose(s);
	s->failure = SESSION_WRONG_D;
	return err_new(EINVAL, "the program is wrong");
}

bool session_enables(const struct session *s)
{
	for (uint32_t i = 0; i < s->bound->clauses.n; i++)
		if (s->bound->clauses.v[i]->nprobes)
			return true;
	return opt_on(&s->options, OPT_ZDEFS);
}
