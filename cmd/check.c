/* descry check: trials, costs, facts of this machine, and its tunables. */
#define _GNU_SOURCE
#include "check.h"

#include <stdlib.h>

#include "base/term.h"
#include "check/hardware.h"
#include "check/journal.h"
#include "check/machine.h"
#include "commands.h"
#include "tool.h"

enum {
	OPT_TRIALS = 256,
	OPT_COST,
	OPT_MACHINE,
	OPT_TUNABLES,
	OPT_HARDWARE,
	OPT_COMPARE,
	OPT_ROOT,
	OPT_APPLY,
	OPT_UNDO,
	OPT_JOURNAL,
	OPT_JSON,
	OPT_LOOP
};

// clang-format off
const struct opt check_opts[] = {
	{ OPT_TRIALS, "trials", NULL, NULL, "engines, providers, stacks and names: each is tried out" },
	{ OPT_COST, "cost", NULL, NULL, "what a system call, a page fault, a probe cost, in nanoseconds" },
	{ OPT_MACHINE, "machine", NULL, NULL, "mitigations, audit, clock, huge pages, frequency, steal time" },
	{ OPT_TUNABLES, "tunables", NULL, NULL, "knobs, their values, what they do, the D program that measures whether a change helps" },
	{ OPT_APPLY, "apply", "NAME=VALUE", NULL, "sets a knob; the old value is kept" },
	{ OPT_UNDO, "undo", NULL, NULL, "puts back what --apply changed" },
	{ OPT_JOURNAL, "journal", "FILE", OPT_FILE, "where old values are kept (" JOURNAL_PATH ")" },
	{ OPT_HARDWARE, "hardware", NULL, NULL, "devices, their drivers, drivers they could have, firmware that is missing" },
	{ OPT_COMPARE, "compare", "FILE", OPT_FILE, "what differs from the list that --hardware --json printed on another machine" },
	{ OPT_ROOT, "root", "DIRECTORY", OPT_DIR, "the system mounted there instead of this one" },
	{ OPT_JSON, "json", NULL, NULL, "JSON" },
	{ OPT_LOOP, "loop", "NAME", "syscall function clock fault switch work idle", "what the trials and costs are tried on: syscall, function, clock, fault, switch, work or idle" },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry check [--trials] [--cost] [--machine] [--tunables] [--json]\n"
	"       descry check --hardware [--root DIR] [--compare FILE] [--json]\n"
	"       descry check --apply NAME=VALUE... | --undo [--journal FILE]\n"
	"\n"
	"Reports what this machine, this user and this container allow, the cost of tracing, the settings to tune, and the parts of the\n"
	"machine. Without options: --trials, --cost and --machine.\n"
	"\n";

struct check {
	bool trials, cost, machine, tunables, hardware, undo, json;
	const char *compare, *root, *journal;
	VEC(char *) changes;
};

enum { TABLES_MAX = 12 };

static int say_failed(struct err *e)
{
	int status = tool_failed(e);

	err_free(e);
	return status;
}

static void output(const struct check *c, const struct check_table *tables, uint32_t n)
{
	if (c->json)
		check_json(stdout, tables, n);
	else
		check_print(stdout, tables, n, term_is(stdout) && !getenv("NO_COLOR"));
}

/* Changes tunables, or restores them. Returns the exit status. */
static int change(const struct check *c)
{
	struct tunables t;
	struct err *e = NULL;
	unsigned left = 0;

	tunables_find(&t);
	for (uint32_t i = 0; i < c->changes.n && !e; i++) {
		char *value = strchr(c->changes.v[i], '=');

		*value++ = '\0';
		e = journal_apply(c->journal, &t, c->changes.v[i], value, stdout);
	}
	if (c->undo)
		e = journal_undo(c->journal, &t, stdout, stderr, &left);
	tunables_fini(&t);
	return e ? say_failed(e) : left ? 1 : 0;
}

static int list_hardware(const struct check *c)
{
	struct check_table t[2];
	struct err *e = NULL;

	hardware_list(c->root, &t[0]);
	if (c->compare) {
		e = hardware_compare(&t[0], c->compare, &t[1]);
		if (!e)
			output(c, &t[1], 1);
		check_table_fini(&t[1]);
	} else {
		output(c, t, 1);
	}
	check_table_fini(&t[0]);
	return e ? say_failed(e) : 0;
}

static int report(const struct check *c)
{
	struct check_table t[TABLES_MAX];
	uint32_t n = 0;

	if (c->trials) {
		machine_here(&t[n++]);
		check_trials(&t[n]);
		n += TRIAL_SUBJECTS;
	}
	if (c->cost)
		check_costs(&t[n++]);
	if (c->machine)
		machine_switches(&t[n++]);
	if (c->tunables) {
		struct tunables k;

		tunables_find(&k);
		tunables_table(&k, &t[n++]);
		tunables_fini(&k);
	}
	output(c, t, n);
	while (n)
		check_table_fini(&t[--n]);
	return 0;
}

/* Checks for options that exclude each other. Returns the exit status, 0 when there are none. */
static int contradiction(const struct check *c)
{
	bool sections = c->trials || c->cost || c->machine || c->tunables;
	bool changes = c->undo || c->changes.n;

	if (c->undo && c->changes.n)
		return tool_wrong("--apply and --undo exclude each other");
	if (changes && (sections || c->hardware || c->json))
		return tool_wrong("--apply and --undo can be combined with --journal only");
	if (c->hardware && sections)
		return tool_wrong("--hardware cannot be combined with other lists");
	if ((c->compare || *c->root) && !c->hardware)
		return tool_wrong("%s goes with --hardware", c->compare ? "--compare" : "--root");
	return 0;
}

static int parse(struct check *c, int argc, char **argv, bool *ret_done)
{
	struct opt_getopt g;
	int o;

	*ret_done = true;
	opt_getopt_init(&g, "", check_opts);
	while ((o = getopt_long(argc, argv, g.shorts, g.longs, NULL)) >= 0)
		switch (o) {
		case OPT_TRIALS: c->trials = true; break;
		case OPT_COST: c->cost = true; break;
		case OPT_MACHINE: c->machine = true; break;
		case OPT_TUNABLES: c->tunables = true; break;
		case OPT_HARDWARE: c->hardware = true; break;
		case OPT_COMPARE: c->compare = optarg; break;
		case OPT_ROOT: c->root = strcmp(optarg, "/") != 0 ? optarg : ""; break;
		case OPT_UNDO: c->undo = true; break;
		case OPT_JOURNAL: c->journal = optarg; break;
		case OPT_JSON: c->json = true; break;
		case OPT_LOOP: return check_loop(optarg);
		case OPT_APPLY:
			if (!strchr(optarg, '=') || *optarg == '=')
				return tool_wrong("--apply wants NAME=VALUE, not %s", optarg);
			vec_push(&c->changes, optarg);
			break;
		case 'h':
			fputs(help, stdout);
			opt_print(check_opts, stdout);
			return 0;
		default: return 2;
		}
	if (optind < argc)
		return tool_wrong(
			"%s: descry check takes options only; descry check --help lists them",
			argv[optind]);
	*ret_done = false;
	return contradiction(c);
}

int cmd_check(int argc, char **argv)
{
	struct check c = { .root = "", .journal = JOURNAL_PATH };
	bool done;
	int status = parse(&c, argc, argv, &done);

	if (!status && !done) {
		if (c.undo || c.changes.n) {
			status = change(&c);
		} else if (c.hardware) {
			status = list_hardware(&c);
		} else {
			if (!c.trials && !c.cost && !c.machine && !c.tunables)
				c.trials = c.cost = c.machine = true;
			status = report(&c);
		}
	}
	vec_fini(&c.changes);
	return status;
}
