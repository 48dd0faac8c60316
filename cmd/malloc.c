/* descry malloc: records the allocations of a program, and reports on such a recording. */
#include "commands.h"

#include <string.h>

#include "malloc.h"
#include "memory/alloc/trace.h"
#include "tool.h"

enum { OPT_SHOW_D = 256, OPT_JSON, OPT_SALVAGE, OPT_OF, OPT_WITH, OPT_RUNS };

// clang-format off
const struct opt malloc_opts[] = {
	{ 0, NULL, NULL, NULL, "of record:" },
	{ 'o', "output", "FILE", OPT_FILE, "where to; of report: stacks as a picture or another form, by the file's name" },
	{ 'p', NULL, "PID", OPT_PROCESS, "this process; else a command is run" },
	{ 'k', "stacks", "N", NULL, "records N frames of the stack of each call, 1 to 127; else none" },
	{ 'X', NULL, "NAME[=VALUE]", OPT_SETTING, "an option of descry(1): bufsize, switchrate..." },
	{ OPT_SHOW_D, "show-d", NULL, NULL, "prints the D program instead of running it" },
	{ 0, NULL, NULL, NULL, "of report:" },
	{ 'n', NULL, "N", NULL, "lists at most N stacks (10)" },
	{ OPT_OF, "of", "WHAT", "bytes count peak end", "stacks by what: bytes, count, peak or end (bytes)" },
	{ 0, NULL, NULL, NULL, "of replay:" },
	{ OPT_WITH, "with", "NAMES", "glibc jemalloc tcmalloc mimalloc", "allocators, with commas between: glibc, jemalloc, tcmalloc, mimalloc, or files of libraries" },
	{ OPT_RUNS, "runs", "N", NULL, "measures the time N times (5)" },
	{ 0, NULL, NULL, NULL, "of both:" },
	{ OPT_SALVAGE, "salvage", NULL, NULL, "reads a damaged file up to the damage" },
	{ OPT_JSON, "json", NULL, NULL, "JSON" },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry malloc record -o FILE [options] COMMAND [ARGUMENT...]\n"
	"       descry malloc record -o FILE [options] -p PID\n"
	"       descry malloc report [options] FILE\n"
	"       descry malloc replay [options] FILE\n"
	"       descry malloc compare [options] COMMAND [ARGUMENT...]\n"
	"\n"
	"Records each call of malloc(3) and its like that a program makes; reports sizes, lifetimes, the peak, and what is alive\n"
	"at the end; makes the same calls with other allocators, and measures their time and memory.\n"
	"compare records and replays.\n"
	"\n";

/* Takes one option. Returns the exit status of a wrong option, else 0. */
static int take(struct malloc_options *m, int o, const char *arg)
{
	int64_t v = 0;
	pid_t pid;
	int status;

	switch (o) {
	case 'o': m->path = arg; return 0;
	case 'p':
		status = tool_pid("-p", arg, &pid);
		if (!status)
			vec_push(&m->c.pids, pid);
		return status;
	case 'k':
		status = tool_integer("-k", arg, 1, 127, &v);
		m->depth = (uint32_t)v;
		return status;
	case 'n':
		status = tool_integer("-n", arg, 1, UINT32_MAX, &v);
		m->most = (uint32_t)v;
		return status;
	case 'X': vec_push(&m->c.sets, (struct cmd_set){ arg }); return 0;
	case OPT_SHOW_D: m->show_d = true; return 0;
	case OPT_JSON: m->json = true; return 0;
	case OPT_SALVAGE: m->salvage = true; return 0;
	case OPT_OF: m->of = arg; return 0;
	case OPT_WITH: m->with = arg; return 0;
	case OPT_RUNS:
		status = tool_integer("--runs", arg, 1, 1000, &v);
		m->runs = (uint32_t)v;
		return status;
	default: fputs("try descry malloc --help\n", stderr); return 2;
	}
}

static const struct {
	const char *name;
	int (*run)(struct malloc_options *m);
} verbs[] = { { "record", malloc_record },
	      { "report", malloc_report },
	      { "replay", malloc_replay },
	      { "compare", malloc_compare },
	      { "play", malloc_play } };

int cmd_malloc(int argc, char **argv)
{
	struct malloc_options m = { .c = { .progname = "descry malloc" }, .most = 10, .runs = 5 };
	int (*run)(struct malloc_options *) = NULL;
	struct opt_getopt g;
	int o, status = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(verbs) && argc > 1 && !run; i++)
		if (!strcmp(argv[1], verbs[i].name))
			run = verbs[i].run;
	opt_getopt_init(&g, "+", malloc_opts);
	vec_push(&m.c.args, argv[0]);
	if (run) {
		argc--;
		argv++;
	}
	while (!status && (o = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		if (o == 'h') {
			fputs(help, stdout);
			opt_print(malloc_opts, stdout);
			goto out;
		}
		status = take(&m, o, optarg);
	}
	if (!status && !run)
		status = tool_wrong("record, report, replay or compare? try descry malloc --help");
	m.words = argv + optind;
	m.nwords = (uint32_t)(argc - optind);
	if (!status)
		status = run(&m);
out:
	cmdline_fini(&m.c);
	return status;
}
