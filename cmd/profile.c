/* descry profile: samples running stacks. A D program counts the stacks in the kernel, a sink makes
 * a tree of them, a renderer writes the tree. */
#include "commands.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "run.h"
#include "tool.h"
#include "render/flame.h"
#include "render/folded.h"
#include "render/json.h"
#include "render/render.h"
#include "program/unwind/unwind.h"
#include "render/stacksink.h"
#include "render/writers.h"

enum profile_option {
	LONG_TEXT = 256,
	LONG_FOLDED,
	LONG_JSON,
	LONG_SVG,
	LONG_HTML,
	LONG_PPROF,
	LONG_SPEEDSCOPE,
	LONG_PID,
	LONG_TID,
	LONG_COMM,
	LONG_MODULE,
	LONG_ADDRS,
	LONG_KERNEL,
	LONG_USER,
	LONG_MARKS,
	LONG_INVERTED,
	LONG_REVERSE,
	LONG_TITLE,
	LONG_COLORS,
	LONG_MIN,
	LONG_LINES,
};

// clang-format off
const struct opt profile_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "this process; may be repeated" },
	{ 'c', NULL, "COMMAND", OPT_COMMAND, "runs it, and samples it and its children until it ends" },
	{ 'a', NULL, NULL, NULL, "everything that runs" },
	{ 'F', NULL, "HZ", NULL, "samples a second on each CPU, 1 to 5000 (997)" },
	{ 't', NULL, "SECONDS", NULL, "how long; otherwise until ^C or the end of the processes" },
	{ LONG_COMM, "comm", "NAME", NULL, "only threads of this name" },
	{ LONG_USER, "user", NULL, NULL, "only stacks of programs" },
	{ LONG_KERNEL, "kernel", NULL, NULL, "only stacks of the kernel" },
	{ 'x', NULL, "NAME[=VALUE]", OPT_SETTING, "an option of descry(1): srcline, engine, aggsize..." },
	{ 'q', "quiet", NULL, NULL, "no summary on standard error" },
	OPT_HELP,
	{ 0, NULL, NULL, NULL, "written at the end:" },
	{ LONG_TEXT, "text", NULL, NULL, "a tree as text (otherwise the name of -o decides, then text)" },
	{ LONG_FOLDED, "folded", NULL, NULL, "a line for each stack" },
	{ LONG_JSON, "json", NULL, NULL, "the tree as JSON" },
	{ LONG_SVG, "svg", NULL, NULL, "a flame graph" },
	{ LONG_HTML, "html", NULL, NULL, "a flame graph on a page: for very many stacks" },
	{ LONG_PPROF, "pprof", NULL, NULL, "a profile for pprof" },
	{ LONG_SPEEDSCOPE, "speedscope", NULL, NULL, "a profile for speedscope" },
	{ 'o', "output", "FILE", OPT_FILE,
	  "where to; its name tells the format: .txt .folded .json .svg .html .pb.gz\n.speedscope.json" },
	{ LONG_PID, "pid", NULL, NULL, "process numbers behind the command's name: each process by itself" },
	{ LONG_TID, "tid", NULL, NULL, "thread numbers behind the command's name: each thread by itself" },
	{ LONG_MODULE, "module", NULL, NULL, "names as MODULE`FUNCTION" },
	{ LONG_LINES, "lines", NULL, NULL, "names as FUNCTION:FILE:LINE, with inlined functions" },
	{ LONG_ADDRS, "addrs", NULL, NULL, "the address where there is no name" },
	{ LONG_MARKS, "marks", NULL, NULL, "_[k] behind the kernel's functions, _[j] behind a JIT's, in text too" },
	{ LONG_REVERSE, "reverse", NULL, NULL, "stacks from the leaf: the callers of each function" },
	{ LONG_MIN, "min", "PERCENT", NULL, "of --text: lighter frames are left out (0.5)" },
	{ LONG_TITLE, "title", "TEXT", NULL, "of the pictures" },
	{ LONG_COLORS, "colors", "NAME", "kind safe module hot mem io wakeup grey", "... as descry flame takes them" },
	{ LONG_INVERTED, "inverted", NULL, NULL, "... the root on top" },
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry profile [options] -p PID | -c COMMAND | -a\n"
	"\n"
	"Samples what runs on the CPUs, and where: stacks of the kernel and of programs, together.\n"
	"\n";

struct profile {
	const struct stack_writer *writer; /* NULL: chosen by the name of the file */
	const char *path;
	bool all, reverse, quiet, user, kernel, marks;
	uint64_t hz, ms;
	double min;
	const char *comm;
	struct flame_options picture;
	struct stacksink_options sink;
	struct stacksink_result result;
	struct stacktree tree;
	struct timespec began;
	uint64_t duration_ns;
};

static const struct stack_writer *writer_of(const struct profile *p)
{
	const struct stack_writer *w = p->writer ? p->writer : stack_writer_of(p->path);

	return w ? w : stack_writer_named("text");
}

static int add_pid(struct cmdline *c, const char *text)
{
	pid_t pid;
	int status = tool_pid("-p", text, &pid);

	if (!status)
		vec_push(&c->pids, pid);
	return status;
}

/* Takes one option. Returns the exit status of a wrong option, else 0. */
static int take(struct profile *p, struct cmdline *c, int o, const char *arg)
{
	double v = 0;
	int status;

	switch (o) {
	case 'p': return add_pid(c, arg);
	case 'c': vec_push(&c->commands, arg); return 0;
	case 'a': p->all = true; return 0;
	case 'F':
		status = tool_number("-F", arg, 1, 5000, &v);
		p->hz = (uint64_t)v;
		return status;
	case 't':
		status = tool_number("-t", arg, 0.01, 1e7, &v);
		p->ms = (uint64_t)(v * 1000);
		return status;
	case 'x': vec_push(&c->sets, (struct cmd_set){ arg }); return 0;
	case 'o': p->path = arg; return 0;
	case 'q': p->quiet = true; return 0;
	case LONG_TEXT ... LONG_SPEEDSCOPE:
		p->writer = stack_writer_named(opt_long_name(profile_opts, o));
		return 0;
	case LONG_PID: p->sink.pid = true; return 0;
	case LONG_TID: p->sink.tid = true; return 0;
	case LONG_COMM: p->comm = arg; return 0;
	case LONG_MODULE: p->sink.module = true; return 0;
	case LONG_ADDRS: p->sink.addrs = true; return 0;
	case LONG_KERNEL: p->kernel = true; return 0;
	case LONG_USER: p->user = true; return 0;
	case LONG_MARKS: p->marks = true; return 0;
	case LONG_LINES: p->sink.lines = true; return 0;
	case LONG_INVERTED: p->picture.inverted = true; return 0;
	case LONG_REVERSE: p->reverse = true; return 0;
	case LONG_TITLE: p->picture.title = arg; return 0;
	case LONG_COLORS:
		p->picture.palette = flame_palette_named(arg);
		return p->picture.palette < FLAME_NPALETTES
			       ? 0
			       : tool_wrong("there are no colors %s", arg);
	case LONG_MIN: return tool_number("--min", arg, 0, 100, &p->min);
	default: fputs("try descry profile --help\n", stderr); return 2;
	}
}

/* Checks for options that exclude each other. Returns the exit status, 0 when there are none. */
static int check(struct profile *p, const struct cmdline *c)
{
	int targets = (c->pids.n > 0) + (c->commands.n > 0) + p->all;

	if (!targets)
		return tool_wrong(
			"no process is named: give -p PID, -c COMMAND or -a; try descry profile --help");
	if (targets > 1 || c->commands.n > 1)
		return tool_wrong("give only one of -p, -c and -a, and only one command");
	if (p->comm && (strlen(p->comm) > 15 || strpbrk(p->comm, "\"\\\n")))
		return tool_wrong("--comm wants the name of a thread, at most 15 characters");
	return 0;
}

/* Makes the D program: it counts samples by command, process, thread and stacks. */
static char *make_program(const struct profile *p, const struct cmdline *c)
{
	struct out o;
	const char *and = "";
	char *text;

	out_init(&o, NULL);
	out_printf(&o, "profile-%lluhz /", (unsigned long long)p->hz);
	if (c->commands.n) {
		out_str(&o, "progenyof($target)");
	} else if (c->pids.n) {
		out_char(&o, '(');
		for (uint32_t i = 0; i < c->pids.n; i++)
			out_printf(&o, "%spid == %d", i ? " || " : "", (int)c->pids.v[i]);
		out_char(&o, ')');
	} else {
		out_str(&o, "pid"); /* leaves the idle thread out */
	}
	if (p->comm)
		out_printf(&o, " && execname == \"%s\"", p->comm);
	if (p->user && !p->kernel)
		and = " && arg1"; /* in user mode */
	out_printf(&o, "%s/ { @[execname, pid, %s", and, p->sink.tid ? "tid" : "0");
	out_str(&o, p->kernel && !p->user ? "" : ", ustack(127)");
	out_str(&o, p->user && !p->kernel ? "" : ", stack(127)");
	out_str(&o, "] = count(); }\n");
	if (p->ms)
		out_printf(&o, "tick-%llums { exit(0); }\n", (unsigned long long)p->ms);
	out_char(&o, '\0');
	text = xstrdup(o.v);
	out_fini(&o);
	return text;
}

static void put_ends(struct out *o, const struct run_report *r)
{
	out_char(o, '{');
	for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++)
		out_printf(o, "%s\"%s\":%llu", i ? "," : "",
			   unwind_end_name((enum wire_unwind_end)i),
			   (unsigned long long)r->ustacks[i]);
	out_char(o, '}');
}

/* Returns the peak memory of this process. */
static uint64_t peak_memory(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) ? 0 : (uint64_t)u.ru_maxrss * 1024;
}

static void write_json(const void *arg, const struct stacktree *t, struct out *o)
{
	const struct profile *p = arg;
	const struct run_report *r = &p->result.report;

	out_printf(o, "{\"type\":\"profile\",\"hz\":%llu,\"duration_ns\":%llu,\"samples\":%llu,",
		   (unsigned long long)p->hz, (unsigned long long)p->duration_ns,
		   (unsigned long long)p->result.samples);
	out_printf(o, "\"stacks\":%llu,\"lost\":%llu,\"user_stacks\":",
		   (unsigned long long)p->result.stacks, (unsigned long long)p->result.lost);
	put_ends(o, r);
	out_printf(o, ",\"consumer_cpu_ns\":%llu,\"probe_cpu_ns\":%llu",
		   (unsigned long long)r->consumer_cpu_ns, (unsigned long long)r->probe_cpu_ns);
	out_printf(o, ",\"table_bytes\":%llu,\"map_bytes\":%llu,\"peak_bytes\":%llu",
		   (unsigned long long)r->table_bytes, (unsigned long long)r->map_bytes,
		   (unsigned long long)peak_memory());
	out_str(o, ",\"tree\":\n");
	stacktree_json(t, o);
	out_str(o, "}\n");
}

static struct err *write_out(const struct profile *p, const struct stacktree *t)
{
	struct profile_about about = {
		.title = p->picture.title,
		.time_ns = (uint64_t)p->began.tv_sec * 1000000000 + (uint64_t)p->began.tv_nsec,
		.duration_ns = p->duration_ns,
		.period_type = "cpu",
		.period_unit = "nanoseconds",
		.period = 1000000000 / p->hz,
	};
	struct stack_output w = {
		.tree = t,
		.picture = &p->picture,
		.about = &about,
		.min = p->min,
		.json = write_json,
		.arg = p,
	};
	struct out o;
	FILE *file;
	struct err *e = tool_out_begin(&o, p->path, &file);

	if (e)
		return e;
	writer_of(p)->write(&w, &o);
	return tool_out_end(&o, p->path, file);
}

/* Prints "4985 samples in 5.0 s, 312 stacks; 12 user stacks not complete (...); 0 lost". */
static void summary(const struct profile *p)
{
	const struct run_report *r = &p->result.report;
	uint64_t cut = 0;

	fprintf(stderr, "descry profile: %llu samples in %.1f s at %llu Hz, %llu distinct stacks",
		(unsigned long long)p->result.samples, (double)p->duration_ns / 1e9,
		(unsigned long long)p->hz, (unsigned long long)p->result.stacks);
	fprintf(stderr,
		", %llu lost; %.1f%% of a CPU, %.0f MB of tables, %.0f MB of stacks, %.0f MB here\n",
		(unsigned long long)p->result.lost,
		r->elapsed_ns ? 100.0 * (double)(r->consumer_cpu_ns + r->probe_cpu_ns) /
					(double)r->elapsed_ns
			      : 0.0,
		(double)r->table_bytes / 1e6, (double)r->map_bytes / 1e6,
		(double)peak_memory() / 1e6);
	for (uint32_t i = 0; i < WIRE_UNWIND_END_COUNT; i++) {
		if (!r->ustacks[i] || i == WIRE_UNWIND_END_ROOT || i == WIRE_UNWIND_END_NO_USER)
			continue;
		cut += r->ustacks[i];
		fprintf(stderr, "descry profile: %llu user stacks not complete: %s\n",
			(unsigned long long)r->ustacks[i],
			i == WIRE_UNWIND_END_DEEP ? "deeper than 127 frames"
						  : unwind_end_text((enum wire_unwind_end)i));
	}
	if (!cut && !p->result.samples)
		fputs("descry profile: nothing ran on a CPU when a sample was taken\n", stderr);
}

static int run(struct profile *p, struct cmdline *c)
{
	cleanup_free char *text = make_program(p, c);
	cleanup_err struct err *e = NULL;
	struct stacktree reversed;
	struct run r = { .c = c };
	int status;

	e = tool_can_write(p->path);
	if (e)
		return tool_failed(e);
	vec_push(&c->programs, (struct cmd_program){ PDESC_NAME, false, text });
	run_init(&r);
	options_put(&r.session.options, OPT_QUIET, true);
	options_put(&r.session.options, OPT_REPORT, true);
	options_put(&r.session.options, OPT_AGGSIZE, 32 << 20);
	if (p->sink.lines)
		options_put(&r.session.options, OPT_SRCLINE, true);
	/* Nothing is printed before the end, so fewer wake-ups save CPU time. */
	options_put(&r.session.options, OPT_SWITCHRATE, 100000000);
	clock_gettime(CLOCK_REALTIME, &p->began);
	status = run_all(&r, stacksink_new(&p->sink, &p->tree, &p->result));
	if (status)
		return status;
	if (!p->result.complete) {
		e = err_new(EINTR, "interrupted a second time: no profile is written");
		return tool_failed(e);
	}
	p->duration_ns = p->result.report.elapsed_ns;
	stacktree_finish(&p->tree);
	stacktree_init(&reversed);
	if (p->reverse) {
		stacktree_reverse(&p->tree, &reversed);
		stacktree_finish(&reversed);
	}
	e = write_out(p, p->reverse ? &reversed : &p->tree);
	stacktree_fini(&reversed);
	if (e)
		return tool_failed(e);
	if (!p->quiet)
		summary(p);
	return 0;
}

int cmd_profile(int argc, char **argv)
{
	struct profile p = { .hz = 997, .min = 0.5 };
	struct cmdline c = { .progname = "descry profile" };
	struct opt_getopt g;
	int o, status = 0;

	opt_getopt_init(&g, "", profile_opts);
	vec_push(&c.args, argv[0]);
	while (!status && (o = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		if (o == 'h') {
			fputs(help, stdout);
			opt_print(profile_opts, stdout);
			goto out;
		}
		status = take(&p, &c, o, optarg);
	}
	if (!status && optind < argc)
		status = tool_wrong(
			"unexpected argument %s: -c takes the whole command as one argument",
			argv[optind]);
	if (!status)
		status = check(&p, &c);
	if (status)
		goto out;
	p.marks |= writer_of(&p)->colored;
	p.sink.module |= writer_of(&p)->module || p.picture.palette == FLAME_MODULE;
	p.sink.kernel = p.sink.jit = p.marks;
	p.sink.progress = !p.quiet && isatty(STDERR_FILENO) ? stderr : NULL;
	p.sink.seconds = (double)p.ms / 1000;
	stacktree_init(&p.tree);
	status = run(&p, &c);
	stacktree_fini(&p.tree);
out:
	cmdline_fini(&c);
	return status;
}
