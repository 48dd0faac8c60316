/* descry flame: reads stacks from files, standard input or a D program, and writes pictures of
 * them. */
#define _GNU_SOURCE
#include "commands.h"

#include <string.h>

#include "base/characters.h"
#include "run.h"
#include "stack_file.h"
#include "tool.h"

#include "input/stackin/stackin.h"
#include "render/picture_flame.h"
#include "render/flamesink.h"
#include "render/render.h"
#include "render/writers.h"

enum flame_option {
	OPT_WRITER = OPT_LONG + 1, /* --svg and so on, by the name of the writer */
	OPT_OFFCPU,
	OPT_WAKEUP,
	OPT_CHAIN,
	OPT_FORMAT,
	OPT_MINWIDTH,
	OPT_COLORS,
	OPT_ALL,
};

#define INPUT "the input, one of:"
#define FORMAT(id, reader, name) " " name
static const char formats[] = INPUT
#include "input/stackin/formats.def"
	;
#undef FORMAT

#define PALETTES "kind safe module hot mem io wakeup chain grey"

struct flame {
	const struct stack_writer *writer; /* NULL: chosen by the name of the file */
	struct stackin_options in;
	struct flame_options picture;
	const char *path;
	bool reverse, diff, normalize, quiet;
	uint64_t given;         /* bytes of the inputs */
	char *unit;             /* of the input; owned */
	struct cmdline program; /* a D program to run, if program.programs is not empty */
};
#define OPTS_OF struct flame

// clang-format off
const struct opt flame_opts[] = {
	{ OPT_WRITER, "svg", NULL, NULL, "writes an interactive picture (otherwise the name of -o decides, then SVG)" },
	{ OPT_WRITER, "html", NULL, NULL, "... a page that draws on a canvas: for very many stacks" },
	{ OPT_WRITER, "folded", NULL, NULL, "... text, a line for each stack" },
	{ OPT_WRITER, "json", NULL, NULL, "... the tree as JSON" },
	{ OPT_WRITER, "pprof", NULL, NULL, "... a profile for pprof" },
	{ OPT_WRITER, "speedscope", NULL, NULL, "... a profile for speedscope" },
	{ 'o', "output", "FILE", OPT_FILE, "where to; otherwise standard output", TEXT(path) },
	{ OPT_FORMAT, "format", "NAME", formats + sizeof(INPUT), formats },
	{ OPT_LONG, "title", "TEXT", NULL, "above the picture", TEXT(picture.title) },
	{ OPT_LONG, "subtitle", "TEXT", NULL, "below the title", TEXT(picture.subtitle) },
	{ OPT_LONG, "countname", "TEXT", NULL, "what is counted (samples)", TEXT(picture.count_name) },
	{ OPT_COLORS, "colors", "NAME", PALETTES, "kind, safe, module, hot, mem, io, wakeup, chain, grey" },
	{ OPT_OFFCPU, "offcpu", NULL, NULL, "title, colours and unit (microseconds) of a graph of waiting" },
	{ OPT_WAKEUP, "wakeup", NULL, NULL, "... of wakers" },
	{ OPT_CHAIN, "chain", NULL, NULL, "... of both" },
	{ OPT_LONG, "width", "PIXELS", NULL, "of the picture (1200)", WHOLE(picture.width, 100, 100000) },
	{ OPT_LONG, "height", "PIXELS", NULL, "of a frame (16)", WHOLE(picture.frame_height, 4, 200) },
	{ OPT_MINWIDTH, "minwidth", "PIXELS|N%", NULL, "narrower frames are left out (0.1); SVG only" },
	{ OPT_LONG, "inverted", NULL, NULL, "the root on top", FLAG(picture.inverted) },
	{ OPT_LONG, "reverse", NULL, NULL, "stacks from the leaf: the callers of each function", FLAG(reverse) },
	{ OPT_LONG, "diff", NULL, NULL, "two files, coloured by change", FLAG(diff) },
	{ OPT_LONG, "normalize", NULL, NULL, "of --diff: as if both had counted alike", FLAG(normalize) },
	{ OPT_LONG, "negate", NULL, NULL, "of --diff: colours the other way round", FLAG(picture.negate) },
	{ OPT_LONG, "factor", "N", NULL, "counts are multiplied by N", REAL(in.factor, 1e-12, 1e12) },
	{ OPT_LONG, "event-filter", "NAME", NULL, "samples of this event, type or profile; otherwise of the first", TEXT(in.event) },
	{ 'q', "quiet", NULL, NULL, "no remarks on standard error", FLAG(quiet) },
	OPT_HELP,
	{ 0, NULL, NULL, NULL, "of perf script and perf.data:" },
	{ OPT_LONG, "pid", NULL, NULL, "the process number behind the command's name", FLAG(in.pid) },
	{ OPT_LONG, "tid", NULL, NULL, "the thread number behind the command's name", FLAG(in.tid) },
	{ OPT_LONG, "kernel", NULL, NULL, "marks functions of the kernel _[k], in text too", FLAG(in.kernel) },
	{ OPT_LONG, "jit", NULL, NULL, "marks functions of a JIT _[j], in text too", FLAG(in.jit) },
	{ OPT_ALL, "all", NULL, NULL, "both marks" },
	{ OPT_LONG, "module", NULL, NULL, "names as MODULE`FUNCTION", FLAG(in.module) },
	{ OPT_LONG, "addrs", NULL, NULL, "the address where there is no name", FLAG(in.addrs) },
	{ OPT_LONG, "no-symbols", NULL, NULL, "perf.data: no other file is opened for names", FLAG(in.no_symbols) },
	{ 0, NULL, NULL, NULL, "a program that counts stacks:" },
	{ 'n', NULL, "PROGRAM", OPT_PROBE, "a D program" },
	{ 's', NULL, "FILE", OPT_FILE, "a D script" },
	{ 'c', NULL, "COMMAND", OPT_COMMAND, "runs a command and traces it" },
	{ 'p', NULL, "PID", OPT_PROCESS, "traces a process" },
	{ 'x', NULL, "NAME[=VALUE]", OPT_SETTING, "sets an option; descry help options lists them" },
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry flame [options] [file...]\n"
	"       descry flame --diff [options] BEFORE AFTER\n"
	"       descry flame [options] {-n PROGRAM | -s FILE} [-p PID | -c COMMAND] [-x NAME=VALUE]\n"
	"\n"
	"Reads stacks (perf.data, perf script, folded text, pprof, speedscope, bpftrace, SystemTap, DTrace, descry itself;\n"
	"gzipped or not), or runs a D program that counts them, and draws them.\n"
	"\n";

static int minwidth(struct flame *f, const char *text)
{
	size_t n = strlen(text);
	cleanup_free char *percent = n && text[n - 1] == '%' ? xstrndup(text, n - 1) : NULL;

	return percent ? tool_number("--minwidth", percent, 0, 100, &f->picture.min_percent)
		       : tool_number("--minwidth", text, 0, 1e6, &f->picture.min_width);
}

static const struct stack_writer *writer_of(const struct flame *f)
{
	const struct stack_writer *w = f->writer ? f->writer : stack_writer_of(f->path);

	return w ? w : stack_writer_named("svg");
}

/* Sets the title and colours of a kind of graph; options on the command line win. */
static int present(struct flame *f, const char *title, enum flame_palette palette)
{
	if (!f->picture.title)
		f->picture.title = title;
	if (!f->picture.count_name)
		f->picture.count_name = "us";
	if (!f->picture.palette)
		f->picture.palette = palette;
	return 0;
}

static int flame_take(void *into, const struct opt *o, const char *arg)
{
	struct flame *f = into;

	switch (o->id) {
	case OPT_WRITER: f->writer = stack_writer_named(o->name); return 0;
	case OPT_OFFCPU: return present(f, "Off-CPU Time Flame Graph", FLAME_IO);
	case OPT_WAKEUP: return present(f, "Wakeup Time Flame Graph", FLAME_WAKEUP);
	case OPT_CHAIN: return present(f, "Off-CPU Chain Graph", FLAME_CHAIN);
	case OPT_FORMAT:
		f->in.format = stackin_format_named(arg);
		return f->in.format ? 0 : tool_wrong("there is no input format %s", arg);
	case OPT_MINWIDTH: return minwidth(f, arg);
	case OPT_COLORS:
		f->picture.palette = flame_palette_named(arg);
		return f->picture.palette < FLAME_NPALETTES
			       ? 0
			       : tool_wrong("there are no colors %s", arg);
	case OPT_ALL: f->in.kernel = f->in.jit = true; return 0;
	default: return -1;
	}
}

/* Returns true when the reader has skipped one line above the first stack. Many programs print a
 * heading there: "microseconds off CPU". */
static bool is_heading(const struct stackin *in)
{
	return in->skipped == 1 && in->skipped_above && !stackin_is_document(in->format);
}

/* Reports the lines that were skipped. */
static void remark(const struct flame *f, const struct stackin *in, const char *path)
{
	cleanup_free char *name = xstrdup(strcmp(path, "-") ? path : "standard input");

	if (f->quiet)
		return;
	characters_show(name, strlen(name));
	if (in->skipped && !is_heading(in))
		fprintf(stderr, "descry flame: %s, read as %s: %llu of %llu %s %llu\n", name,
			stackin_format_name(in->format), (unsigned long long)in->skipped,
			(unsigned long long)in->lines,
			stackin_is_document(in->format)
				? "samples are not understood, the first is number"
				: "lines are not stacks, the first is line",
			(unsigned long long)in->first_skipped);
	for (uint32_t i = 0; i < in->notes.n; i++)
		fprintf(stderr, "descry flame: %s: %s\n", name, in->notes.v[i]);
	if (in->filtered)
		fprintf(stderr,
			"descry flame: %s: only samples of %s; %llu of other events are left out\n",
			name, in->options.event ? in->options.event : in->event,
			(unsigned long long)in->filtered);
}

static struct err *read_into(struct flame *f, const char *path, struct stacktree *t)
{
	struct stackin in;
	struct err *e;

	stackin_init(&in, t, &f->in);
	e = stackin_read(&in, path);
	f->given += in.given;
	if (!e)
		remark(f, &in, path);
	if (!f->unit && in.unit) {
		f->unit = in.unit;
		in.unit = NULL;
	}
	stackin_fini(&in);
	return e;
}

static struct err *run_program(struct flame *f, struct stacktree *t, int *ret_status)
{
	struct run r = { .c = &f->program };
	struct err *e = NULL;
	struct stackin in;

	stackin_init(&in, t, &f->in);
	run_init(&r);
	options_put(&r.session.options, OPT_QUIET, true);
	*ret_status = run_all(&r, flamesink_new(&in));
	if (!*ret_status)
		e = stackin_end(&in);
	if (!e && !*ret_status)
		remark(f, &in, "the program's output");
	stackin_fini(&in);
	return e;
}

static struct err *read_all(struct flame *f, char **files, int n, struct stacktree *t)
{
	struct err *e = NULL;

	if (!n)
		return read_into(f, "-", t);
	for (int i = 0; i < n && !e; i++)
		e = read_into(f, files[i], t);
	return e;
}

static struct err *read_both(struct flame *f, char **files, struct stacktree *t)
{
	struct stacktree before, after;
	struct err *e;

	stacktree_init(&before);
	stacktree_init(&after);
	e = read_into(f, files[0], &before);
	e = e ?: read_into(f, files[1], &after);
	if (!e) {
		stacktree_finish(&before);
		stacktree_finish(&after);
		stacktree_diff(&before, &after, f->normalize, t);
	}
	stacktree_fini(&before);
	stacktree_fini(&after);
	return e;
}

static struct err *write_out(const struct flame *f, const struct stacktree *t)
{
	const char *unit = f->picture.count_name ? f->picture.count_name : f->unit;
	bool us = unit && !strcmp(unit, "us");
	struct profile_about about = {
		.title = f->picture.title,
		.type = us ? "time" : unit,
		.unit = us                                  ? "microseconds"
			: f->unit && !f->picture.count_name ? f->unit
							    : NULL,
	};
	struct flame_options picture = f->picture;
	struct stack_output w = {
		.tree = t, .picture = &picture, .about = &about, .given = f->given
	};

	picture.count_name = unit;
	return stack_file_write(f->path, false, writer_of(f), &w);
}

static struct err *flame_run(struct flame *f, char **files, int n, bool *ret_empty, int *ret_status)
{
	struct stacktree t, reversed;
	struct err *e;

	stacktree_init(&t);
	stacktree_init(&reversed);
	if (f->program.programs.n)
		e = run_program(f, &t, ret_status);
	else
		e = f->diff ? read_both(f, files, &t) : read_all(f, files, n, &t);
	if (!e && !*ret_status) {
		struct stacktree *shown = &t;

		stacktree_finish(&t);
		if (f->reverse) {
			stacktree_reverse(&t, &reversed);
			stacktree_finish(&reversed);
			shown = &reversed;
		}
		*ret_empty = !t.nodes.v[STACKTREE_ROOT].total;
		if (!*ret_empty)
			e = write_out(f, shown);
	}
	stacktree_fini(&t);
	stacktree_fini(&reversed);
	return e;
}

static int draw(struct flame *f, int argc, char **argv)
{
	cleanup_err struct err *e = NULL;
	bool empty = false;
	int status = 0, n = argc - optind;

	if (f->program.programs.n && (n || f->diff))
		return tool_wrong("a program or files, not both");
	if (!f->program.programs.n && (f->program.pids.n || f->program.commands.n))
		return tool_wrong("-p and -c want a program (-n or -s); or see descry profile");
	if (f->diff && n != 2)
		return tool_wrong("--diff wants two files: before and after");
	if (!f->diff && !n && !f->program.programs.n && isatty(STDIN_FILENO))
		return tool_wrong(
			"no file, and standard input is a terminal; try descry flame --help");
	/* Pictures strip the marks and show them as colours. */
	if (writer_of(f)->colored || (!writer_of(f)->lines && !f->program.programs.n))
		f->in.kernel = f->in.jit = true;
	f->in.module |= writer_of(f)->module || f->picture.palette == FLAME_MODULE;
	e = tool_can_write(f->path);
	e = e ?: flame_run(f, argv + optind, n, &empty, &status);
	if (e)
		return tool_failed(e);
	if (status)
		return status;
	if (empty)
		tool_wrong("there are no stacks in the input: nothing is written");
	return empty ? 1 : 0;
}

int cmd_flame(int argc, char **argv)
{
	struct flame f = { .program = { .progname = "descry flame" } };
	struct opt_parse parse = { .table = flame_opts,
				   .help = help,
				   .into = &f,
				   .take = flame_take,
				   .program = &f.program };
	int status;

	vec_push(&f.program.args, argv[0]);
	status = opts_take(&parse, argc, argv);
	status = status ?: draw(&f, argc, argv);
	free(f.unit);
	cmdline_fini(&f.program);
	return status;
}
