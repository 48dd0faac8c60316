/* descry calls: the library calls of a program. A D program is made from the filters and the
 * prototypes; a sink writes its records as lines, or its counts as a table. */
#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/outfile.h"
#include "base/regular.h"
#include "base/term.h"
#include "calls/calls.h"
#include "load/inproc/memory/owner.h"
#include "cmd/version.h"
#include "run.h"
#include "session/family.h"
#include "tool.h"

struct import {
	dev_t dev;
	ino_t inode;
};

struct caller {
	struct calls_options o;
	struct calls calls; /* of the first session */
	/* What the kernel's engine sees in a session beside it. */
	struct calls_options around;
	bool beside; /* there is such a session */
	struct calls_page *page;
	struct calls_table *table;
	struct family *family;
	struct prototypes prototypes;
	struct arena arena;
	struct run run;
	struct cmdline c;
	VEC(const char *) files; /* -F */
	VEC(struct import) imported;
	uint32_t import_depth;
	bool found; /* the file at hand is one that nobody has named */
	int import_status;
	const char *path;
	bool show_d, version;
	bool any;           /* function, in any of the programs */
	uint32_t min_usecs; /* --min-time */
	char *program, *command;
};
#define OPTS_OF struct caller

enum { LINES_BUFFER = 16 << 20, MAX_FRAMES = 127, IMPORTS_MAX = 256, IMPORT_DEPTH = 16 };

// clang-format off
const struct opt calls_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "this process; may be repeated" },
	{ 'e', NULL, "FILTER", NULL, "which calls from one object into another: [+-][FUNCTION][@CALLER]...,\npatterns; @MAIN is the program (all its calls)" },
	{ 'l', NULL, "LIBRARY", NULL, "only calls of functions that these libraries define" },
	{ 'x', NULL, "FILTER", NULL, "every call of these functions: [+-][FUNCTION][@LIBRARY]...; of libraries\nloaded later too" },
	{ 'S', NULL, NULL, NULL, "system calls, too", FLAG(o.syscalls) },
	{ 'L', NULL, NULL, NULL, "no calls through tables of linkage: only those of -x, and -S", FLAG(o.no_library) },
	{ 'c', NULL, NULL, NULL, "no lines: a table of counts and times at the end", FLAG(o.count) },
	{ 'f', NULL, NULL, NULL, "traces what the program forks and executes, too", FLAG(o.threads) },
	{ OPT_LONG, "histogram", NULL, NULL, "with -c, the distribution of each function's times", FLAG(o.histograms) },
	{ OPT_LONG, "time-all", NULL, NULL, "with -c, times every call; else a function that is called very often is timed\nonly now and then", FLAG(o.time_all) },
	{ OPT_LONG, "json", NULL, NULL, "an object a line for each call, or with -c for each function", FLAG(o.json) },
	{ OPT_LONG, "min-time", "USECS", NULL, "only calls that take at least as many microseconds", INTEGER(min_usecs, 0, INT32_MAX) },
	{ 'F', NULL, "FILE", OPT_FILE, "reads prototypes, in the language of ltrace.conf(5); FILE:FILE...; of a\ndirectory its *.conf" },
	{ 'o', "output", "FILE", OPT_FILE, "where to (standard error)", TEXT(path) },
	{ 'V', "version", NULL, NULL, "prints the version", FLAG(version) },
	OPT_HELP,
	{ 0, NULL, NULL, NULL, "what a line shows:" },
	{ 'T', NULL, NULL, NULL, "the time in the call", FLAG(o.durations) },
	{ 'r', NULL, NULL, NULL, "the time since the line before", FLAG(o.relative) },
	{ 'i', NULL, NULL, NULL, "the address to which the call returns", FLAG(o.addresses) },
	{ 'w', "where", "N", NULL, "the N innermost callers behind the call", INTEGER(o.frames, 1, MAX_FRAMES) },
	{ 'k', NULL, NULL, NULL, "all callers" },
	{ 'C', "demangle", NULL, NULL, "names of C++ and Rust as in the source", FLAG(o.demangled) },
	{ 't', NULL, NULL, NULL, "the time of day; -tt microseconds too; -ttt seconds since 1970" },
	{ 'n', "indent", "N", NULL, "N blanks for each call around it", INTEGER(o.indent, 0, 100) },
	{ 's', NULL, "N", NULL, "at most N bytes of a text, 1 to 4000 (32)", INTEGER(o.text_max, 1, 4000) },
	{ 'A', NULL, "N", NULL, "at most N elements of an array (4)", INTEGER(o.elements_max, 1, 256) },
	{ 'a', "align", "COLUMN", NULL, "where results begin (5/8 of the width, or 50)", INTEGER(o.align, 0, 1000) },
	{ 0, NULL, NULL, NULL, "how it is traced:" },
	{ 'u', NULL, "USER", NULL, "runs the command as this user", TEXT(run.user) },
	{ 'b', "no-signals", NULL, NULL, "signals are not shown", FLAG(o.no_signals) },
	{ 'D', "debug", "MASK", NULL, "what descry does, as -X report (0: nothing)" },
	{ 'X', NULL, "NAME[=VALUE]", OPT_SETTING, "an option of descry(1): engine, bufsize..." },
	{ OPT_LONG, "show-d", NULL, NULL, "prints the D program instead of running it", FLAG(show_d) },
	{ 0 },
};
// clang-format on

static const char help[] = "usage: descry calls [options] COMMAND [ARGUMENT...]\n"
			   "       descry calls [options] -p PID\n"
			   "\n"
			   "Shows the calls that a program makes into its libraries.\n"
			   "\n";

static int take_filter(struct caller *k, struct calls_filter *f, char option, const char *arg)
{
	return calls_filter_read(&k->arena, f, arg)
		       ? 0
		       : tool_wrong("-%c wants [+-][FUNCTION][@LIBRARY]..., not %s", option, arg);
}

static int calls_take(void *into, const struct opt *o, const char *arg)
{
	struct caller *k = into;

	switch (o->id) {
	case 'e': return take_filter(k, &k->o.plt, 'e', arg);
	case 'x': return take_filter(k, &k->o.entries, 'x', arg);
	case 'l':
		return calls_filter_add_library(&k->arena, &k->o.libraries, arg)
			       ? 0
			       : tool_wrong("-l wants a library, not %s", arg);
	case 'F': vec_push(&k->files, arg); return 0;
	case 't': k->o.clock += k->o.clock < 3; return 0;
	case 'k': k->o.frames = MAX_FRAMES; return 0;
	case 'D': return strtoul(arg, NULL, 0) ? cmdline_take(&k->c, 'x', "report") : 0;
	case 'X': return cmdline_take(&k->c, 'x', arg);
	default: return -1;
	}
}

/* arg: the number of messages so far. */
static void say_wrong(void *arg, const char *message)
{
	enum { MAX_MESSAGES = 10 };
	uint32_t *n = arg;

	if ((*n)++ < MAX_MESSAGES)
		tool_wrong("%s", message);
}

static int read_file(struct caller *k, const char *path)
{
	cleanup_free char *text = NULL;
	cleanup_err struct err *e = NULL;
	uint32_t said = 0;
	size_t n;

	e = io_read_file(path, &text, &n);
	if (e)
		return tool_failed(e);
	if (prototypes_read(&k->prototypes, path, text, n, say_wrong, &said))
		return tool_wrong("%s: %u wrong line%s", path, said, said == 1 ? "" : "s");
	return 0;
}

enum { FOUND_MAX = 16 << 20 };

/* Reads a file that nobody has named: it may be anything, and descry runs without it. */
static void read_found(struct caller *k, const char *path)
{
	cleanup_free char *text = NULL, *opened = NULL;
	int fd = regular_open(path);
	uint32_t said = 0;
	struct stat st;
	size_t n;

	if (fd < 0 || fstat(fd, &st) || st.st_size > FOUND_MAX) {
		tool_wrong("%s is left out: no regular file, or too large", path);
	} else {
		const bool outer = k->found;

		opened = xasprintf("/proc/self/fd/%d", fd);
		k->found = true;
		if (!err_drop(io_read_file(opened, &text, &n)))
			(void)prototypes_read(&k->prototypes, path, text, n, say_wrong, &said);
		k->found = outer;
	}
	if (fd >= 0)
		close(fd);
}

/* Reads a file, or all files named *.conf of a directory. */
static int read_path(struct caller *k, const char *path, bool is_named)
{
	cleanup_free char *pattern = NULL;
	struct stat st;
	glob_t all = { .gl_pathc = 0 };
	const bool is_directory = !stat(path, &st) && S_ISDIR(st.st_mode);
	char *one[] = { (char *)path };
	char **files = one;
	size_t n = 1;
	int status = 0;

	if (is_directory) {
		pattern = xasprintf("%s/*.conf", path);
		if (glob(pattern, 0, NULL, &all))
			return 0;
		files = all.gl_pathv;
		n = all.gl_pathc;
	}
	for (size_t i = 0; i < n && !status; i++) {
		if (is_named)
			status = read_file(k, files[i]);
		else
			read_found(k, files[i]);
	}
	if (is_directory)
		globfree(&all);
	return status;
}

/* Reads DIRECTORY/NAME if it is there. */
static void read_own(struct caller *k, const char *directory, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", directory, name);

	/* The XDG Base Directory Specification ignores relative paths. */
	if (*directory == '/' && !access(path, F_OK))
		(void)read_path(k, path, false);
}

/* Reads the files of the machine and of the user, where ltrace looks for them. A later file counts
 * more. */
static void read_own_files(struct caller *k)
{
	const char *home = getenv("HOME"), *own = getenv("XDG_CONFIG_HOME"),
		   *all = getenv("XDG_CONFIG_DIRS");
	cleanup_free char *dirs = xstrdup(all && *all ? all : "/etc/xdg");
	cleanup_free char *config = xasprintf("%s/.config", home ? home : "");
	char *colon;

	do { /* the first directory counts most */
		colon = strrchr(dirs, ':');
		read_own(k, colon ? colon + 1 : dirs, "ltrace");
		if (colon)
			*colon = '\0';
	} while (colon);
	read_own(k, own && *own ? own : config, "ltrace");
	read_own(k, home ? home : "", ".ltrace.conf");
}

/* Reads NAME.conf in the directory of the file that imports it, each file once. A file that is not
 * there imports nothing: the types may be in another file of a directory. Another user may have
 * written a file that was found, so what it imports is read as it is. */
static void import(void *arg, const char *from, const char *name)
{
	const char *slash = strrchr(from, '/');
	struct caller *k = arg;
	cleanup_free char *path =
		xasprintf("%.*s%s.conf", slash ? (int)(slash + 1 - from) : 0, from, name);
	struct stat st;

	if (stat(path, &st))
		return;
	for (uint32_t i = 0; i < k->imported.n; i++)
		if (k->imported.v[i].dev == st.st_dev && k->imported.v[i].inode == st.st_ino)
			return;
	if (k->import_depth == IMPORT_DEPTH || k->imported.n == IMPORTS_MAX) {
		tool_wrong(
			"%s is not imported: there are more than %d imports, or %d in one another",
			path, IMPORTS_MAX, IMPORT_DEPTH);
		if (!k->found)
			k->import_status = 2;
		return;
	}
	vec_push(&k->imported, ((struct import){ st.st_dev, st.st_ino }));
	k->import_depth++;
	if (k->found)
		read_found(k, path);
	else
		k->import_status = read_file(k, path) ?: k->import_status;
	k->import_depth--;
}

static int read_prototypes(struct caller *k)
{
	k->prototypes.import = import;
	k->prototypes.import_arg = k;

	/* Whoever has ltrace has this file. It knows libraries that the shipped prototypes leave
	 * out, and less of the others. */
	read_own(k, "/etc", "ltrace.conf");
	for (const struct embedded_file *d = prototype_files; d->name; d++)
		(void)prototypes_read(&k->prototypes, d->name, d->text, d->len, NULL, NULL);
	read_own_files(k);
	for (uint32_t i = 0; i < k->files.n; i++) {
		cleanup_free char *list = xstrdup(k->files.v[i]);
		char *rest = list;

		while (rest) {
			const char *path = strsep(&rest, ":");

			int status = *path ? read_path(k, path, true) : 0;

			if (status)
				return status;
		}
	}
	return k->import_status;
}

/* Reports the functions that are left out. */
static void say_found(const struct session *s, const struct calls *c)
{
	if (c->nleft_out)
		session_say(s,
			    "left out %u function%s or object%s whose names D cannot hold, the "
			    "first: '%.64s'",
			    c->nleft_out, &"s"[c->nleft_out == 1], &"s"[c->nleft_out == 1],
			    c -> left_out);
	if (c->ntoo_many)
		session_say(
			s,
			"left out %u function%s: there are more than %d; choose some with -e, -x or -l",
			c->ntoo_many, &"s"[c->ntoo_many == 1], CALLS_FUNCTIONS_MAX);
	if (c->without_returns)
		session_say(s,
			    "%u functions have no results and no times: their returns are too many "
			    "together, or too much work to find (-e with fewer functions has them)",
			    c->without_returns);
}

static void say_unread(const struct session *s)
{
	session_say(
		s,
		"the processes may have root's rights, and the program may call many functions, so "
		"output arguments are shown as addresses (-e with fewer functions reads them)");
}

static struct sink *new_sink(const struct caller *k, const struct calls *c)
{
	return k->o.count ? calls_summary_new(c, k->table) : calls_lines_new(c, k->page);
}

/* --- programs that traced processes execute --- */

static struct err *next_prepare(void *arg, struct session *s, void **ret_own)
{
	enum { BUFFER = 4 << 20 }; /* there may be many sessions */
	struct caller *k = arg;
	struct calls *c = xcalloc(1, sizeof(*c));
	cleanup_free char *program = NULL;
	struct err *e;

	*ret_own = c;
	calls_init(c, &k->o, &k->prototypes);
	c->inside = true;
	c->sees.syscalls = k->o.syscalls && !k->beside;
	e = calls_find(c, &s->probes);
	if (e)
		return e;
	k->any |= c->functions.n;
	c->main_thread = k->calls.main_thread;
	say_found(s, c);
	if (opt_num(&s->options, OPT_BUFSIZE) == LINES_BUFFER)
		options_put(&s->options, OPT_BUFSIZE, BUFFER);
	program = calls_program(c);
	return session_source(s, PDESC_NAME, false, program);
}

static struct sink *next_sink(void *arg, void *own)
{
	const struct caller *k = arg;
	struct sink *s = new_sink(k, own);

	s->out = k->run.to;
	return s;
}

static void next_drop(void *arg, void *own)
{
	if (own)
		calls_fini(own);
	free(own);
}

static void note_executed(void *arg, pid_t pid)
{
	const struct caller *k = arg;

	if (!k->o.count)
		calls_executed(k->run.session.sink, (uint32_t)pid);
}

/* --- system calls and signals --- */

/* -L without -x */
static bool traces_no_library(const struct caller *k)
{
	return k->o.no_library && !k->o.entries.rules.n;
}

static struct calls_around wanted(const struct caller *k)
{
	const bool lines = !k->o.count && !calls_held(&k->o);

	return (struct calls_around){ k->o.syscalls, lines && !k->o.no_signals };
}

static struct err *prepare_beside(void *arg, struct session *s, void **ret_own)
{
	struct caller *k = arg;
	struct calls *c = xcalloc(1, sizeof(*c));
	cleanup_free char *program = NULL;
	struct err *e;

	*ret_own = c;
	calls_init(c, &k->around, &k->prototypes);
	c->around = true;
	c->sees = wanted(k);
	e = calls_find_around(c, &s->probes, &k->run.session.probes);
	if (e)
		return e;
	program = calls_program(c);
	return session_source(s, PDESC_NAME, false, program);
}

/* Only the kernel knows of signals, and it sees the system calls of all programs. Library calls are
 * cheaper from inside. So both are in a session of the kernel's engine, beside the first one, when
 * the user has chosen no engine. */
static void look_around(struct caller *k)
{
	const struct engine_type *named = plan_engine_named(&k->run.session.options);
	struct calls_around all = wanted(k);
	struct err *e;

	all.signals &= named == &engine_kernel || (!named && engine_kernel.permitted());
	k->calls.sees = all;
	if (named || traces_no_library(k) || k->show_d || !(all.syscalls || all.signals) ||
	    !engine_kernel.permitted())
		return;
	k->around = k->o;
	e = family_beside(k->family, &engine_kernel, prepare_beside);
	k->beside = !e;
	k->calls.sees = (struct calls_around){ all.syscalls && e };
	if (e)
		session_say(&k->run.session, "%s: signals are not shown", e->text);
	err_free(e);
}

static const char no_function[] =
	"the filters match no function that is called: -e '*@*' matches the calls of all "
	"libraries, -x FUNCTION those of one function";

static struct caller *caller_of(struct run *r)
{
	return (struct caller *)((char *)r - offsetof(struct caller, run));
}

static bool poll_family(struct run *r, struct err **ret_err)
{
	struct caller *k = caller_of(r);

	return traces_no_library(k) ? session_poll(&r->session, -1, ret_err)
				    : family_poll(k->family, -1, ret_err);
}

static struct err *end_family(struct run *r, bool ends)
{
	struct caller *k = caller_of(r);

	if (!ends)
		return NULL;
	family_end(k->family);
	if (!k->any && !k->o.no_library)
		session_say(&r->session, "%s", no_function);
	return NULL;
}

/* Returns true when the in-process engine would refuse a program that takes addresses from
 * variables. */
static bool must_own_addresses(const struct session *s)
{
	bool any = false;

	for (uint32_t i = 0; i < s->targets.n; i++)
		any |= owner_has_privileges(s->targets.v[i].pid);
	return any && opt_on(&s->options, OPT_FOLLOW) &&
	       plan_engine_named(&s->options) != &engine_kernel;
}

/* Returns true when programs that are executed later may have functions for the filters. */
static bool looks_on(const struct caller *k)
{
	return k->o.threads && plan_engine_named(&k->run.session.options) != &engine_kernel;
}

/* Called by run_all() when the processes are there. */
static struct err *prepare(struct run *r, bool *ret_end)
{
	struct caller *k = caller_of(r);
	const struct family_setting family = {
		.first = &r->session,
		.prepare = next_prepare,
		.sink = next_sink,
		.executed = note_executed,
		.drop = next_drop,
		.arg = k,
	};
	struct err *e;

	k->family = family_new(&family);
	look_around(k);
	e = calls_find(&k->calls, &r->session.probes);
	if (e)
		return e;
	k->o.own_addresses = must_own_addresses(&r->session);
	say_found(&r->session, &k->calls);
	if (!k->calls.functions.n && !k->o.no_library && !looks_on(k))
		return err_new(ENOENT, "%s", no_function);
	k->any = k->calls.functions.n;
	k->program = calls_program(&k->calls);
	if (k->calls.outputs_unread && !k->show_d)
		say_unread(&r->session);
	if (k->show_d) {
		fputs(k->program, stdout);
		tool_check_output();
	}
	*ret_end = k->show_d;
	vec_push(&k->c.programs, (struct cmd_program){ PDESC_NAME, false, k->program });
	return NULL;
}

static char *ended(void *arg)
{
	const struct caller *k = arg;
	const struct session *s = &k->run.session;

	for (uint32_t i = 0; i < s->targets.n; i++) {
		int status = s->targets.v[i].status;

		if (!s->targets.v[i].command || !s->targets.v[i].gone)
			continue;
		if (WIFSIGNALED(status))
			return xasprintf("killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
		return xasprintf("exited (status %d)", WEXITSTATUS(status));
	}
	return NULL;
}

/* Sets the options of the run: a long list of small clauses, short texts. */
static void set_options(struct caller *k)
{
	struct options *o = &k->run.session.options;

	options_put(o, OPT_QUIET, true);
	options_put(o, OPT_ZDEFS, true);
	options_put(o, OPT_FOLLOW, k->o.threads);
	options_put(o, OPT_STRSIZE, k->o.text_max + 2);
	if (!k->o.count) { /* lines fill the buffers fast */
		options_put(o, OPT_SWITCHRATE, 1000000);
		options_put(o, OPT_BUFSIZE, LINES_BUFFER);
	}
	options_put(o, OPT_EVALTIME, 1); /* preinit: the dynamic linker's own calls are not shown */
}

static int calls_run(struct caller *k)
{
	FILE *file = NULL;
	int status = read_prototypes(k);

	if (status)
		return status;
	if (k->path) {
		file = term_file(outfile_open(k->path, OUTFILE_PRIVATE));
		if (!file)
			return tool_wrong("cannot open %s: %s", k->path, strerror(errno)) - 1;
	}
	k->o.coloured = term_is(file ? file : stderr) && !getenv("NO_COLOR");
	k->o.progress = k->o.count && term_is(stderr);
	k->run.c = &k->c;
	k->run.to = file ? file : stderr;
	k->run.prepare = prepare;
	k->run.poll = poll_family;
	k->run.round = end_family;
	k->run.leaves_commands = true;
	run_init(&k->run);
	k->run.session.o.hands_over = !traces_no_library(k);
	set_options(k);
	calls_init(&k->calls, &k->o, &k->prototypes);
	k->page = calls_page_new();
	k->table = calls_table_new();
	status = run_all(&k->run, new_sink(k, &k->calls));
	family_free(k->family);
	calls_page_free(k->page);
	calls_table_free(k->table);
	if (!status && k->run.command_status >= 0)
		status = tool_command_status(k->run.command_status);
	calls_fini(&k->calls);
	if (file && fclose(file) && !status)
		status = tool_wrong("%s: %s", k->path, strerror(errno)) - 1;
	return status;
}

static void cmd_calls_fini(struct caller *k)
{
	prototypes_fini(&k->prototypes);
	arena_fini(&k->arena);
	calls_filter_fini(&k->o.plt);
	calls_filter_fini(&k->o.entries);
	calls_filter_fini(&k->o.libraries);
	vec_fini(&k->files);
	vec_fini(&k->imported);
	cmdline_fini(&k->c);
	free(k->program);
	free(k->command);
}

/* Returns 5/8 of the terminal's width, or of COLUMNS; 50 where there is neither. */
static uint32_t default_align(void)
{
	enum { DEFAULT_ALIGN = 50, WIDEST = 1600 };
	const char *columns = getenv("COLUMNS");
	struct winsize size = { 0 };
	unsigned long n = columns ? strtoul(columns, NULL, 10) : 0;

	if (!n && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		n = size.ws_col;
	if (!n && !ioctl(STDERR_FILENO, TIOCGWINSZ, &size))
		n = size.ws_col;
	return n && n <= WIDEST ? (uint32_t)n * 5 / 8 : DEFAULT_ALIGN;
}

int cmd_calls(int argc, char **argv)
{
	struct caller k = {
		.o = { .text_max = 32, .elements_max = 4, .align = default_align(), .ended = ended },
		.c = { .progname = "descry calls", .not_destructive = "descry calls only looks" },
	};
	struct opt_parse parse = { .prefix = "+",
				   .table = calls_opts,
				   .help = help,
				   .into = &k,
				   .take = calls_take,
				   .program = &k.c };
	int status;

	k.o.arg = &k;
	arena_init(&k.arena);
	prototypes_init(&k.prototypes);
	vec_push(&k.c.args, argv[0]);
	status = opts_take(&parse, argc, argv);
	if (!status && k.version) {
		printf("descry calls: descry %s\n", DESCRY_VERSION);
		goto out;
	}
	k.o.min_ns = (uint64_t)k.min_usecs * 1000;
	if (!status && optind == argc && !k.c.pids.n)
		status = tool_wrong(
			"no process is named: give a command or -p PID; try descry calls --help");
	if (status)
		goto out;
	if (optind < argc) {
		k.command = tool_quote(argv + optind);
		vec_push(&k.c.commands, k.command);
	}
	/* Without -x alone, the calls of the program itself. */
	k.o.callers = k.o.plt.rules.n || k.o.libraries.rules.n;
	k.o.to_file = k.path;
	k.o.numbered = k.path && k.c.pids.n;
	/* With -l alone, the calls of all objects into these libraries. */
	if (!k.o.plt.rules.n && (!k.o.entries.rules.n || k.o.libraries.rules.n))
		calls_filter_read(&k.arena, &k.o.plt, k.o.libraries.rules.n ? "*" : "@MAIN");
	status = calls_run(&k);
out:
	cmd_calls_fini(&k);
	return status;
}
