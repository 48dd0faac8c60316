/* descry heat: reads values from a D program, files or standard input, and writes heat maps. */
#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/characters.h"
#include "run.h"
#include "tool.h"
#include "input/heatin/heatin.h"
#include "render/picture_heat.h"
#include "render/heatsink.h"

enum output { OUTPUT_BY_NAME, OUTPUT_SVG, OUTPUT_HTML, OUTPUT_JSON, OUTPUT_TEXT, OUTPUT_TERMINAL };

enum heat_option {
	OPT_SVG = OPT_LONG + 1,
	OPT_HTML,
	OPT_JSON,
	OPT_TEXT,
	OPT_TERMINAL,
	OPT_PLAIN,
	OPT_FORMAT,
	OPT_FIELDS,
	OPT_UTILIZATION,
	OPT_SUBSECOND,
	OPT_COLORS,
	OPT_STEP,
	OPT_TIME,
	OPT_FROM,
	OPT_TO,
	OPT_LINEAR,
	OPT_MIN,
	OPT_MAX,
	OPT_ROWS,
	OPT_AGG,
	OPT_ISOLATE,
	OPT_EXCLUDE,
};

#define FORMAT(id, reader, name, of) ", " name of
static const char formats_help[] =
#include "input/heatin/formats.def"
	;
#undef FORMAT
#define FORMAT(id, reader, name, of) " " name
static const char formats[] =
#include "input/heatin/formats.def"
	;
#undef FORMAT

struct heat {
	enum output output;
	struct heatin_options in;
	struct heat_options picture;
	struct matrix_filter filter;
	VEC(const char *) only;
	VEC(const char *) without;
	const char *path;
	bool quiet, linear, plain, has_colors, has_min, has_max, has_program_options;
	double min, max, step, rows, seconds;
	struct cmdline program; /* a D program to run; none when program.programs is empty */
};
#define OPTS_OF struct heat

// clang-format off
const struct opt heat_opts[] = {
	{ OPT_SVG, "svg", NULL, NULL, "writes a picture (otherwise the name of -o decides, then a terminal shows it, then SVG)" },
	{ OPT_HTML, "html", NULL, NULL, "... a page to look into" },
	{ OPT_JSON, "json", NULL, NULL, "... rows, series and cells" },
	{ OPT_TEXT, "text", NULL, NULL, "... a line for each count" },
	{ OPT_TERMINAL, "terminal", NULL, NULL, "... a picture in 256 colours" },
	{ OPT_PLAIN, "plain", NULL, NULL, "... a picture in characters" },
	{ 'o', "output", "FILE", OPT_FILE, "where to; otherwise standard output", TEXT(path) },
	{ OPT_LONG, "title", "TEXT", NULL, "above the picture", TEXT(picture.title) },
	{ OPT_LONG, "subtitle", "TEXT", NULL, "below the title", TEXT(picture.subtitle) },
	{ OPT_LONG, "unit", "NAME", "ns us ms s bytes %", "of the values: ns, us, ms, s, bytes, %, or any text", TEXT(picture.unit) },
	{ OPT_LONG, "width", "PIXELS", NULL, "of the SVG; columns of the terminal", WHOLE(picture.width, 20, 100000) },
	{ OPT_COLORS, "colors", "NAME", "rank linear log",
	  "rank (cells with no more events; the default), linear (of utilization), log" },
	{ OPT_ISOLATE, "isolate", "SERIES", NULL, "only this one (may be repeated)" },
	{ OPT_EXCLUDE, "exclude", "SERIES", NULL, "all but this one (may be repeated)" },
	{ 'q', "quiet", NULL, NULL, "no remarks on standard error", FLAG(quiet) },
	OPT_HELP,
	{ 0, NULL, NULL, NULL, "what is drawn:" },
	{ OPT_UTILIZATION, "utilization", NULL, NULL,
	  "values are percent, or parts of --full N; a series without a value in a column has 0" },
	{ OPT_UTILIZATION, "utilisation", NULL, NULL, NULL },
	{ OPT_LONG, "full", "N", NULL, "the value that is 100%", REAL(in.full, 1e-9, 1e18) },
	{ OPT_SUBSECOND, "subsecond", NULL, NULL, "the time within the second against the second" },
	{ OPT_STEP, "step", "DURATION", NULL, "width of a column (1s)" },
	{ OPT_FROM, "from", "DURATION", NULL, "the first time that is drawn" },
	{ OPT_TO, "to", "DURATION", NULL, "the last time that is drawn" },
	{ OPT_LINEAR, "linear", "[=STEP]", NULL, "equal rows" },
	{ OPT_MIN, "min", "N", NULL, "lowest value of equal rows" },
	{ OPT_MAX, "max", "N", NULL, "highest value of equal rows" },
	{ OPT_ROWS, "rows", "N", NULL, "how many equal rows at most (50)" },
	{ 0, NULL, NULL, NULL, "the input:" },
	{ OPT_FORMAT, "format", "NAME", formats + 1, formats_help + 2 },
	{ OPT_FIELDS, "fields", "LIST", "time,value,series time,value,series,who time,series",
	  "columns of an event line: time,value,series,who or - for none of them" },
	{ OPT_TIME, "time", "DURATION", "ns us ms s", "the unit of the input's time: ns, us, ms, s, 100ms..." },
	{ OPT_LONG, "factor", "N", NULL, "values of events are multiplied by it", REAL(in.factor, 1e-18, 1e18) },
	{ OPT_LONG, "key", "N", NULL, "which key is the time (1)", WHOLE(in.time_key, 1, 1000) },
	{ OPT_LONG, "by", "N", NULL, "how many other keys are the series (1; utilization: 0)", WHOLE(in.by, 1, 1000) },
	{ OPT_AGG, "agg", "NAME", NULL, "only this aggregation" },
	{ 0, NULL, NULL, NULL, "a program:" },
	{ 't', NULL, "SECONDS", NULL, "ends it; otherwise exit() or ^C does", REAL(seconds, 0.001, 1e7) },
	OPTS_PROGRAM,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry heat [options] [file...]\n"
	"       descry heat [options] [-t seconds] -n 'D program' | -s script.d [-c command | -p pid] [argument...]\n"
	"\n"
	"Draws how values spread over time: distributions of a D program that it runs, of the output of descry and DTrace, or\n"
	"events, a line each: TIME VALUE [SERIES]. An aggregation has the second it was taken in as its first key:\n"
	"    @[timestamp / 1000000000, execname] = quantize(...)\n"
	"\n";

/* Parses "100ms", "ns" (one nanosecond) or "2.5" (seconds). */
static int duration(const char *option, const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 },  { "ns", 1 },   { "us", 1e3 },  { "ms", 1e6 },
		      { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	char *end;
	double v = strtod(text, &end);

	if (end == text)
		v = 1;
	for (size_t i = *text ? 0 : ARRAY_SIZE(units); i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].name) && v > 0 && v * units[i].ns >= 1 &&
		    v * units[i].ns < 0x1p63) {
			*ret = (uint64_t)(v * units[i].ns + 0.5);
			return 0;
		}
	return tool_wrong("%s wants a time such as 100ms, not %s", option, text);
}

static int fields(struct heat *h, const char *text)
{
	static const char *const names[] = { "-", "time", "value", "series", "who" };
	const char *end;

	h->in.nfields = 0;
	for (; *text; text = *end ? end + 1 : end) {
		size_t f = 0;

		end = strchrnul(text, ',');
		while (f < ARRAY_SIZE(names) && (strlen(names[f]) != (size_t)(end - text) ||
						 memcmp(names[f], text, (size_t)(end - text))))
			f++;
		if (f == ARRAY_SIZE(names) || h->in.nfields == HEATIN_FIELDS_MAX)
			return tool_wrong(
				"--fields wants at most %d of time, value, series, who and -, commas between them, not %s",
				HEATIN_FIELDS_MAX, text);
		h->in.fields[h->in.nfields++] = (enum heatin_field)f;
	}
	return h->in.nfields ? 0 : tool_wrong("--fields wants a list such as time,value,series");
}

static int mode(struct heat *h, enum heat_mode m)
{
	if (h->in.mode && h->in.mode != m)
		return tool_wrong("--utilization and --subsecond exclude each other");
	h->in.mode = m;
	return 0;
}

static int heat_take(void *into, const struct opt *o, const char *arg)
{
	struct heat *h = into;

	switch (o->id) {
	case OPT_SVG: h->output = OUTPUT_SVG; return 0;
	case OPT_HTML: h->output = OUTPUT_HTML; return 0;
	case OPT_JSON: h->output = OUTPUT_JSON; return 0;
	case OPT_TEXT: h->output = OUTPUT_TEXT; return 0;
	case OPT_PLAIN: h->plain = true; /* fallthrough */
	case OPT_TERMINAL: h->output = OUTPUT_TERMINAL; return 0;
	case OPT_FORMAT:
		h->in.format = heatin_format_named(arg);
		return h->in.format ? 0 : tool_wrong("there is no input format %s", arg);
	case OPT_FIELDS: return fields(h, arg);
	case OPT_UTILIZATION: return mode(h, HEAT_UTILIZATION);
	case OPT_SUBSECOND: return mode(h, HEAT_SUBSECOND);
	case OPT_COLORS:
		h->picture.scale = heat_scale_named(arg);
		h->has_colors = true;
		return h->picture.scale < HEAT_NSCALES
			       ? 0
			       : tool_wrong("there are no colors %s; they are rank, linear and log",
					    arg);
	case OPT_STEP: return duration("--step", arg, &h->in.step);
	case OPT_TIME: return duration("--time", arg, &h->in.time_unit);
	case OPT_FROM: return duration("--from", arg, &h->filter.from);
	case OPT_TO: return duration("--to", arg, &h->filter.to);
	case OPT_LINEAR:
		h->linear = true;
		return arg ? tool_number("--linear", arg, 1, 1e18, &h->step) : 0;
	case OPT_MIN:
		h->linear = h->has_min = true;
		return tool_number("--min", arg, -1e18, 1e18, &h->min);
	case OPT_MAX:
		h->linear = h->has_max = true;
		return tool_number("--max", arg, -1e18, 1e18, &h->max);
	case OPT_ROWS: h->linear = true; return tool_number("--rows", arg, 1, 1000, &h->rows);
	case OPT_AGG: h->in.agg = *arg == '@' ? arg + 1 : arg; return 0;
	case OPT_ISOLATE: vec_push(&h->only, arg); return 0;
	case OPT_EXCLUDE: vec_push(&h->without, arg); return 0;
	default: h->has_program_options |= o->id > 0; return -1;
	}
}

/* Returns the smallest of 1 2 5 10 20 ... that is not below v. */
static int64_t nice_step(double v)
{
	static const uint8_t parts[] = { 1, 2, 5 };
	int64_t ten = 1;

	for (int e = 0; e < 18; e++, ten *= 10)
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			if ((double)(parts[i] * ten) >= v)
				return parts[i] * ten;
	return ten;
}

static int set_axis(struct heat *h)
{
	struct matrix_axis *a = &h->in.axis;
	double rows = h->rows ? h->rows : 50;

	if (h->in.mode == HEAT_SUBSECOND) {
		*a = (struct matrix_axis){ MATRIX_FIXED, .limit = 1000000000,
					   .step = (int64_t)ceil(1e9 / rows) };
		return 0;
	}
	if (h->in.mode == HEAT_UTILIZATION && !h->has_min && !h->has_max) {
		*a = (struct matrix_axis){ MATRIX_FIXED, .limit = 100,
					   .step = h->step   ? (int64_t)h->step
						   : h->rows ? (int64_t)ceil(100 / rows)
							     : 5,
					   .whole = true };
		return 0;
	}
	if (!h->linear)
		return 0;
	if (!h->has_max && !h->has_min && !h->step) {
		*a = (struct matrix_axis){ MATRIX_LINEAR, .rows = (uint32_t)rows };
		return 0;
	}
	if (!h->has_max && !h->step)
		return tool_wrong("--min wants --max or --linear=STEP beside it");
	if (!h->has_max)
		h->max = h->min + h->step * rows;
	if (!(h->max > h->min))
		return tool_wrong("--max is not above --min");
	*a = (struct matrix_axis){ MATRIX_FIXED, .base = (int64_t)h->min, .limit = (int64_t)h->max,
				   .step = h->step ? (int64_t)h->step
						   : nice_step((h->max - h->min) / rows) };
	if ((h->max - h->min) / (double)a->step > 10000)
		return tool_wrong("--linear=%lld makes more than 10000 rows from --min to --max",
				  (long long)a->step);
	return 0;
}

static enum output output_of(const struct heat *h)
{
	static const struct {
		const char *end;
		enum output output;
	} names[] = { { ".html", OUTPUT_HTML },
		      { ".htm", OUTPUT_HTML },
		      { ".json", OUTPUT_JSON },
		      { ".txt", OUTPUT_TEXT } };
	const char *dot = h->path ? strrchr(h->path, '.') : NULL;

	if (h->output != OUTPUT_BY_NAME)
		return h->output;
	for (size_t i = 0; i < ARRAY_SIZE(names) && dot; i++)
		if (!strcmp(dot, names[i].end))
			return names[i].output;
	return !h->path && isatty(STDOUT_FILENO) ? OUTPUT_TERMINAL : OUTPUT_SVG;
}

/* Reports the lines that were skipped. */
static void remark(const struct heat *h, const struct heatin *in, const char *path)
{
	cleanup_free char *name = xstrdup(strcmp(path, "-") ? path : "standard input");

	if (h->quiet || !in->skipped)
		return;
	characters_show(name, strlen(name));
	fprintf(stderr,
		"descry heat: %s, read as %s: %llu of %llu lines are not events, the first is line %llu\n",
		name, heatin_format_name(in->format), (unsigned long long)in->skipped,
		(unsigned long long)in->lines, (unsigned long long)in->first_skipped);
}

static void remark_all(const struct heat *h, const struct heatin *in, const struct matrix_view *v)
{
	if (h->quiet)
		return;
	if (in->untimed)
		tool_wrong(
			"%llu rows of aggregations have no time as key %u: make the first key timestamp / 1000000000, or give --key",
			(unsigned long long)in->untimed,
			in->options.time_key ? in->options.time_key : 1);
	if (in->others)
		tool_wrong("%llu rows of other aggregations are left out",
			   (unsigned long long)in->others);
	if (in->mixed)
		tool_wrong(
			"%llu events or buckets are left out: one map holds distributions or events, not both",
			(unsigned long long)in->mixed);
	if (in->made && in->matrix.crowded)
		tool_wrong("%llu are left out: the map has no room for more than %u cells",
			   (unsigned long long)in->matrix.crowded, MATRIX_CELLS_MAX);
	if (in->drops)
		tool_wrong("the tracer reports that it lost %llu", (unsigned long long)in->drops);
	if (v->left_out && v->total)
		tool_wrong("%llu of %llu are left out by --isolate, --exclude, --from or --to",
			   (unsigned long long)v->left_out,
			   (unsigned long long)(v->left_out + v->total));
}

static struct err *read_all(const struct heat *h, char **files, int n, struct heatin *in)
{
	char *standard[] = { "-" };
	struct err *e = NULL;

	if (!n) {
		files = standard;
		n = 1;
	}
	for (int i = 0; i < n && !e; i++) {
		e = heatin_read(in, files[i]);
		if (!e)
			remark(h, in, files[i]);
	}
	return e;
}

static int trace(struct heat *h, char **args, int n, struct heatin *in)
{
	cleanup_free char *tick = xasprintf("tick-%llums { exit(0); }",
					    (unsigned long long)(h->seconds * 1000 + 0.5));
	/* The output of a -c command must not get into the picture. */
	struct run r = { .c = &h->program, .output = STDERR_FILENO };
	int status;

	if (h->seconds > 0)
		vec_push(&h->program.programs, (struct cmd_program){ PDESC_NAME, false, tick });
	for (int i = 0; i < n; i++)
		vec_push(&h->program.args, args[i]);
	cmdline_name_script(&h->program);
	in->options.format = HEATIN_EVENTS;
	run_init(&r);
	options_put(&r.session.options, OPT_QUIET, true);
	status = run_all(&r, heatsink_new(in));
	heatin_end(in);
	if (!status)
		remark(h, in, "what printf() printed");
	return status;
}

static void terminal_size(struct heat_options *o)
{
	struct winsize w = { 0 };
	const char *columns = getenv("COLUMNS"), *lines = getenv("LINES");

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
		w = (struct winsize){ 0 };
	if (!o->width)
		o->width = w.ws_col ? w.ws_col : columns ? (uint32_t)strtoul(columns, NULL, 10) : 0;
	o->height = w.ws_row ? w.ws_row : lines ? (uint32_t)strtoul(lines, NULL, 10) : 0;
	o->width = o->width < 20 || o->width > 10000 ? 80 : o->width;
	o->height = o->height < 10 || o->height > 10000 ? 32 : o->height;
}

static struct err *write_out(struct heat *h, const struct matrix_view *v)
{
	const char *term = getenv("TERM");
	struct heat_options *p = &h->picture;
	struct out o;
	FILE *file;
	struct err *e = tool_out_begin(&o, h->path, &file);

	if (e)
		return e;
	switch (output_of(h)) {
	case OUTPUT_HTML: heat_html(v, p, &o); break;
	case OUTPUT_JSON: heat_json(v, p, &o); break;
	case OUTPUT_TEXT: heat_text(v, p, &o); break;
	case OUTPUT_TERMINAL:
		terminal_size(p);
		p->color = !h->plain && !getenv("NO_COLOR") && !(term && !strcmp(term, "dumb"));
		o.raw = true; /* flame_shown() has escaped the names */
		heat_terminal(v, p, &o);
		break;
	default: heat_svg(v, p, &o);
	}
	return tool_out_end(&o, h->path, file);
}

/* Sets values for the options that the command line does not have. */
static void complete(struct heat *h, const struct heatin *in)
{
	static const char *const titles[HEAT_NMODES] = { "Heat map", "Utilization",
							 "Subsecond offset" };
	struct heat_options *p = &h->picture;

	p->mode = heat_mode_name(in->mode);
	p->title = p->title ? p->title : in->title ? in->title : titles[in->mode];
	p->lost = in->drops;
	if (!h->has_colors &&
	    in->mode == HEAT_UTILIZATION) /* most cells have one, so all would have the same rank */
		p->scale = HEAT_LINEAR;
	if (!p->unit)
		p->unit = in->unit                                             ? in->unit
			  : in->mode == HEAT_UTILIZATION                       ? "%"
			  : in->mode != HEAT_SUBSECOND                         ? ""
			  : in->made && in->matrix.axis.kind == MATRIX_BUCKETS ? "ms"
									       : "ns";
}

static struct err *draw(struct heat *h, struct heatin *in, bool *ret_empty)
{
	struct matrix_view v;
	struct err *e;

	if (!heatin_idle(in) && !h->quiet)
		tool_wrong("times without an event do not count as 0%%: there are too many");
	if (!in->made)
		matrix_init(&in->matrix, 1000000000, &h->in.axis);
	in->made = true;
	h->filter.only = h->only.v;
	h->filter.nonly = h->only.n;
	h->filter.without = h->without.v;
	h->filter.nwithout = h->without.n;
	e = matrix_view_make(&in->matrix, &h->filter, &v);
	if (e)
		return e;
	complete(h, in);
	remark_all(h, in, &v);
	*ret_empty = !v.total;
	e = write_out(h, &v);
	matrix_view_fini(&v);
	return e;
}

static int heat_run(struct heat *h, char **args, int n)
{
	cleanup_err struct err *e = NULL;
	struct heatin in;
	bool empty = false;
	int status = 0;

	e = tool_can_write(h->path);
	if (e)
		return tool_failed(e);
	heatin_init(&in, &h->in);
	if (h->program.programs.n)
		status = trace(h, args, n, &in);
	else
		e = read_all(h, args, n, &in);
	if (!e && !status)
		e = draw(h, &in, &empty);
	heatin_fini(&in);
	if (status)
		return status;
	if (e)
		return tool_failed(e);
	if (empty && !h->quiet)
		tool_wrong(h->only.n ? "there are no events of that series"
				     : "there are no events in the input");
	return empty ? 1 : 0;
}

int cmd_heat(int argc, char **argv)
{
	static char name[] = "descry";
	struct heat h = { 0 };
	struct opt_parse parse = { .table = heat_opts,
				   .help = help,
				   .into = &h,
				   .take = heat_take,
				   .program = &h.program };
	int status;

	cmdline_init(&h.program, name);
	status = opts_take(&parse, argc, argv);
	status = status ?: set_axis(&h);
	if (!status && !h.program.programs.n && h.has_program_options)
		status = tool_wrong("a program is missing: -n or -s");
	if (!status && !h.program.programs.n && optind == argc && isatty(STDIN_FILENO))
		status = tool_wrong(
			"no file, and standard input is a terminal; try descry heat --help");
	status = status ?: heat_run(&h, argv + optind, argc - optind);
	cmdline_fini(&h.program);
	vec_fini(&h.only);
	vec_fini(&h.without);
	return status;
}
