/* descry malloc: records the allocations of a program, and reports on such a recording. */
#include "commands.h"

#include <string.h>

#include "malloc.h"
#include "memory/alloc/trace.h"
#include "tool.h"

#define OPTS_OF struct malloc_options

// clang-format off
const struct opt malloc_opts[] = {
	{ 0, NULL, NULL, NULL, "of record:" },
	{ 'o', "output", "FILE", OPT_FILE, "where to; of report: a page of all (.html), or with --of, or another ending, the stacks", TEXT(path) },
	{ 'p', NULL, "PID", OPT_PROCESS, "this process; else a command is run" },
	{ 'k', "stacks", "N", NULL, "records N frames of the stack of each call, 1 to 127; else none", INTEGER(depth, 1, 127) },
	{ OPT_LONG, "sample", "M", NULL, "with -k, records the stack of one allocation in M, at random (by the library)", INTEGER(sample, 2, 1000000) },
	{ 'X', NULL, "NAME[=VALUE]", OPT_SETTING, "an option of descry(1): bufsize, switchrate..." },
	{ OPT_LONG, "probes", NULL, NULL, "records a command by probes, too, and not by a preloaded library, which is faster", FLAG(probes) },
	{ 'f', NULL, NULL, NULL, "with -p or --probes, also records what the process forks and executes; each has a file of its own", FLAG(follow) },
	{ OPT_LONG, "alone", NULL, NULL, "records the command's first program alone, and neither its forked children nor the programs that they execute", FLAG(alone) },
	{ OPT_LONG, "show-d", NULL, NULL, "prints the D program instead of running it", FLAG(show_d) },
	{ 0, NULL, NULL, NULL, "of report and diff:" },
	{ 'n', NULL, "N", NULL, "lists at most N stacks (10)", INTEGER(most, 1, UINT32_MAX) },
	{ OPT_LONG, "of", "WHAT", "bytes count peak end temporary mapped", "stacks by what: bytes, count, peak, end, temporary or mapped (bytes)", TEXT(of) },
	{ 0, NULL, NULL, NULL, "of replay and compare:" },
	{ OPT_LONG, "with", "NAMES", "glibc jemalloc tcmalloc mimalloc", "allocators, with commas between: glibc, jemalloc, tcmalloc, mimalloc, or files of libraries; else those that are installed", TEXT(with) },
	{ OPT_LONG, "threads", "WHICH", "same 1", "the threads of the recording (same), or one for all calls (1, if not given)", TEXT(threads) },
	{ OPT_LONG, "speed", "HOW", "max recorded", "without pauses (max, if not given), or no call before its time in the recording (recorded)", TEXT(speed) },
	{ OPT_LONG, "touch", NULL, NULL, "also writes to every page of each block in the runs that measure the time", FLAG(touch) },
	{ OPT_LONG, "memory", "MB", NULL, "ends an allocator that keeps more than MB megabytes (seven eighths of the free memory, if not given)", INTEGER(memory, 1, UINT32_MAX) },
	{ OPT_LONG, "picture", "FILE", OPT_FILE, "draws the resident memory over time (SVG)", TEXT(picture) },
	{ OPT_LONG, "runs", "N", NULL, "measures the time N times (5)", INTEGER(runs, 1, 1000) },
	{ 0, NULL, NULL, NULL, "of both:" },
	{ OPT_LONG, "salvage", NULL, NULL, "reads a damaged file up to the damage", FLAG(salvage) },
	{ OPT_LONG, "json", NULL, NULL, "JSON", FLAG(json) },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry malloc record -o FILE [options] COMMAND [ARGUMENT...]\n"
	"       descry malloc record -o FILE [options] -p PID\n"
	"       descry malloc report [options] FILE\n"
	"       descry malloc diff [options] FILE FILE\n"
	"       descry malloc replay [options] FILE\n"
	"       descry malloc compare [options] COMMAND [ARGUMENT...]\n"
	"\n"
	"Records each call of malloc(3) and its like that a program makes; reports sizes, lifetimes, the peak, and what is alive\n"
	"at the end; makes the same calls with other allocators, and measures their time and memory.\n"
	"diff shows what differs between two recordings; compare records and replays.\n"
	"\n";

static int malloc_take(void *into, const struct opt *o, const char *arg)
{
	struct malloc_options *m = into;

	if (o->id != 'X')
		return -1;
	m->probes = true; /* whose options they are */
	return cmdline_take(&m->c, 'x', arg);
}

static const struct {
	const char *name;
	int (*run)(struct malloc_options *m);
} verbs[] = { { "record", malloc_record }, { "report", malloc_report },   { "diff", malloc_diff },
	      { "replay", malloc_replay }, { "compare", malloc_compare }, { "play", malloc_play } };

int cmd_malloc(int argc, char **argv)
{
	struct malloc_options m = { .c = { .progname = "descry malloc",
					   .not_destructive = "descry malloc only records" },
				    .most = 10,
				    .runs = 5 };
	int (*run)(struct malloc_options *) = NULL;
	struct opt_parse parse = { .prefix = "+",
				   .table = malloc_opts,
				   .help = help,
				   .into = &m,
				   .take = malloc_take,
				   .program = &m.c };
	int status;

	for (uint32_t i = 0; i < ARRAY_SIZE(verbs) && argc > 1 && !run; i++)
		if (!strcmp(argv[1], verbs[i].name))
			run = verbs[i].run;
	vec_push(&m.c.args, argv[0]);
	if (run) {
		argc--;
		argv++;
	}
	status = opts_take(&parse, argc, argv);
	if (!status && !run)
		status = tool_wrong(
			"record, report, diff, replay or compare? try descry malloc --help");
	m.words = argv + optind;
	m.nwords = (uint32_t)(argc - optind);
	if (!status)
		status = run(&m);
	cmdline_fini(&m.c);
	return status;
}
