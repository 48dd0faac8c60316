/* descry profile: samples running stacks. A D program counts the stacks in the kernel, a sink makes
 * a tree of them, a renderer writes the tree. */
#include "commands.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

#include "run.h"
#include "stack_file.h"
#include "tool.h"
#include "render/picture_flame.h"
#include "render/folded.h"
#include "render/render.h"
#include "program/unwind/unwind.h"
#include "render/stacksink.h"
#include "render/writers.h"

enum profile_option { OPT_WRITER = OPT_LONG + 1, OPT_COLORS };

struct profile {
	const struct stack_writer *writer; /* NULL: chosen by the name of the file */
	const char *path;
	bool all, reverse, quiet, user, kernel, marks;
	uint32_t hz;
	uint64_t ms;
	struct cmdline c;
	double min;
	const char *comm;
	struct flame_options picture;
	struct stacksink_options sink;
	struct stacksink_result result;
	struct stacktree tree;
	struct timespec began;
	uint64_t duration_ns;
};
#define OPTS_OF struct profile

// clang-format off
const struct opt profile_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "this process; may be repeated" },
	{ 'c', NULL, "COMMAND", OPT_COMMAND, "runs it, and samples it and its children until it ends" },
	{ 'a', NULL, NULL, NULL, "everything that runs", FLAG(all) },
	{ 'F', NULL, "HZ", NULL, "samples a second on each CPU, 1 to 5000 (997)", WHOLE(hz, 1, 5000) },
	{ 't', NULL, "SECONDS", NULL, "how long; otherwise until ^C or the end of the processes" },
	{ OPT_LONG, "comm", "NAME", NULL, "only threads of this name", TEXT(comm) },
	{ OPT_LONG, "user", NULL, NULL, "only stacks of programs", FLAG(user) },
	{ OPT_LONG, "kernel", NULL, NULL, "only stacks of the kernel", FLAG(kernel) },
	{ 'x', NULL, "NAME[=VALUE]", OPT_SETTING, "an option of descry(1): srcline, engine, aggsize..." },
	{ 'q', "quiet", NULL, NULL, "no summary on standard error", FLAG(quiet) },
	OPT_HELP,
	{ 0, NULL, NULL, NULL, "written at the end:" },
	{ OPT_WRITER, "text", NULL, NULL, "a tree as text (otherwise the name of -o decides, then text)" },
	{ OPT_WRITER, "folded", NULL, NULL, "a line for each stack" },
	{ OPT_WRITER, "json", NULL, NULL, "the tree as JSON" },
	{ OPT_WRITER, "svg", NULL, NULL, "a flame graph" },
	{ OPT_WRITER, "html", NULL, NULL, "a flame graph on a page: for very many stacks" },
	{ OPT_WRITER, "pprof", NULL, NULL, "a profile for pprof" },
	{ OPT_WRITER, "speedscope", NULL, NULL, "a profile for speedscope" },
	{ 'o', "output", "FILE", OPT_FILE, "where to; its name tells the format: .txt .folded .json .svg .html .pb.gz\n.speedscope.json", TEXT(path) },
	{ OPT_LONG, "pid", NULL, NULL, "process numbers behind the command's name: each process by itself", FLAG(sink.pid) },
	{ OPT_LONG, "tid", NULL, NULL, "thread numbers behind the command's name: each thread by itself", FLAG(sink.tid) },
	{ OPT_LONG, "module", NULL, NULL, "names as MODULE`FUNCTION", FLAG(sink.module) },
	{ OPT_LONG, "lines", NULL, NULL, "names as FUNCTION:FILE:LINE, with inlined functions", FLAG(sink.lines) },
	{ OPT_LONG, "addrs", NULL, NULL, "the address where there is no name", FLAG(sink.addrs) },
	{ OPT_LONG, "marks", NULL, NULL, "_[k] behind the kernel's functions, _[j] behind a JIT's, in text too", FLAG(marks) },
	{ OPT_LONG, "reverse", NULL, NULL, "stacks from the leaf: the callers of each function", FLAG(reverse) },
	{ OPT_LONG, "min", "PERCENT", NULL, "of --text: lighter frames are left out (0.5)", REAL(min, 0, 100) },
	{ OPT_LONG, "title", "TEXT", NULL, "of the pictures", TEXT(picture.title) },
	{ OPT_COLORS, "colors", "NAME", "kind safe module hot mem io wakeup grey", "... as descry flame takes them" },
	{ OPT_LONG, "inverted", NULL, NULL, "... the root on top", FLAG(picture.inverted) },
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry profile [options] -p PID | -c COMMAND | -a\n"
	"\n"
	"Samples what runs on the CPUs, and where: stacks of the kernel and of programs, together.\n"
	"\n";

static const struct stack_writer *writer_of(const struct profile *p)
{
	const struct stack_writer *w = p->writer ? p->writer : stack_writer_of(p->path);

	return w ? w : stack_writer_named("text");
}

static int profile_take(void *into, const struct opt *o, const char *arg)
{
	struct profile *p = into;
	double seconds = 0;
	int status;

	switch (o->id) {
	case 't':
		status = tool_number("-t", arg, 0.01, 1e7, &seconds);
		p->ms = (uint64_t)(seconds * 1000);
		return status;
	case OPT_WRITER: p->writer = stack_writer_named(o->name); return 0;
	case OPT_COLORS:
		p->picture.palette = flame_palette_named(arg);
		return p->picture.palette < FLAME_NPALETTES
			       ? 0
			       : tool_wrong("there are no colors %s", arg);
	default: return -1;
	}
}

/* Checks for options that exclude each other. Returns the exit status, 0 when there are none. */
static int check(const struct profile *p)
{
	const struct cmdline *c = &p->c;
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
static char *make_program(const struct profile *p)
{
	const struct cmdline *c = &p->c;
	struct out o;
	const char *and = "";

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
	return out_take(&o);
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

	return stack_file_write(p->path, false, writer_of(p), &w);
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

static int profile_run(struct profile *p)
{
	cleanup_free char *text = make_program(p);
	cleanup_err struct err *e = NULL;
	struct stacktree reversed;
	struct run r = { .c = &p->c };
	int status;

	e = tool_can_write(p->path);
	if (e)
		return tool_failed(e);
	vec_push(&p->c.programs, (struct cmd_program){ PDESC_NAME, false, text });
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
	struct profile p = { .hz = 997, .min = 0.5, .c = { .progname = "descry profile" } };
	struct opt_parse parse = { .table = profile_opts,
				   .help = help,
				   .into = &p,
				   .take = profile_take,
				   .program = &p.c };
	int status;

	vec_push(&p.c.args, argv[0]);
	status = opts_take(&parse, argc, argv);
	if (!status && optind < argc)
		status = tool_wrong(
			"unexpected argument %s: -c takes the whole command as one argument",
			argv[optind]);
	status = status ?: check(&p);
	if (!status) {
		p.marks |= writer_of(&p)->colored;
		p.sink.module |= writer_of(&p)->module || p.picture.palette == FLAME_MODULE;
		p.sink.kernel = p.sink.jit = p.marks;
		p.sink.progress = !p.quiet && isatty(STDERR_FILENO) ? stderr : NULL;
		p.sink.seconds = (double)p.ms / 1000;
		stacktree_init(&p.tree);
		status = profile_run(&p);
		stacktree_fini(&p.tree);
	}
	cmdline_fini(&p.c);
	return status;
}
