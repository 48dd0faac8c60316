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

enum { OPT_ROOT = OPT_LONG + 1, OPT_APPLY };

struct check {
	bool trials, cost, machine, tunables, hardware, undo, json;
	const char *compare, *root, *journal, *loop;
	VEC(char *) changes;
};
#define OPTS_OF struct check

// clang-format off
const struct opt check_opts[] = {
	{ OPT_LONG, "trials", NULL, NULL, "engines, providers, stacks and names: each is tried out", FLAG(trials) },
	{ OPT_LONG, "cost", NULL, NULL, "what a system call, a page fault, a probe cost, in nanoseconds", FLAG(cost) },
	{ OPT_LONG, "machine", NULL, NULL, "mitigations, audit, clock, huge pages, frequency, steal time", FLAG(machine) },
	{ OPT_LONG, "tunables", NULL, NULL, "knobs, their values, what they do, the D program that measures whether a change helps", FLAG(tunables) },
	{ OPT_APPLY, "apply", "NAME=VALUE", NULL, "sets a knob; the old value is kept" },
	{ OPT_LONG, "undo", NULL, NULL, "puts back what --apply changed", FLAG(undo) },
	{ OPT_LONG, "journal", "FILE", OPT_FILE, "where old values are kept (" JOURNAL_PATH ")", TEXT(journal) },
	{ OPT_LONG, "hardware", NULL, NULL, "devices, their drivers, drivers they could have, firmware that is missing", FLAG(hardware) },
	{ OPT_LONG, "compare", "FILE", OPT_FILE, "what differs from the list that --hardware --json printed on another machine", TEXT(compare) },
	{ OPT_ROOT, "root", "DIRECTORY", OPT_DIR, "the system mounted there instead of this one" },
	{ OPT_LONG, "json", NULL, NULL, "JSON", FLAG(json) },
	{ OPT_LONG, "loop", "NAME", "syscall function clock fault switch work idle", "what the trials and costs are tried on: syscall, function, clock, fault, switch, work or idle", TEXT(loop) },
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

static int check_take(void *into, const struct opt *o, const char *arg)
{
	struct check *c = into;

	switch (o->id) {
	case OPT_ROOT: c->root = strcmp(arg, "/") != 0 ? arg : ""; return 0;
	case OPT_APPLY:
		if (!strchr(arg, '=') || *arg == '=')
			return tool_wrong("--apply wants NAME=VALUE, not %s", arg);
		vec_push(&c->changes, (char *)arg);
		return 0;
	default: return -1;
	}
}

static int cmd_check_run(struct check *c)
{
	if (c->undo || c->changes.n)
		return change(c);
	if (c->hardware)
		return list_hardware(c);
	if (!c->trials && !c->cost && !c->machine && !c->tunables)
		c->trials = c->cost = c->machine = true;
	return report(c);
}

int cmd_check(int argc, char **argv)
{
	struct check c = { .root = "", .journal = JOURNAL_PATH };
	struct opt_parse parse = {
		.table = check_opts, .help = help, .into = &c, .take = check_take
	};
	int status = opts_take(&parse, argc, argv);

	if (!status && c.loop)
		return check_loop(c.loop);
	if (!status && optind < argc)
		status = tool_wrong(
			"%s: descry check takes options only; descry check --help lists them",
			argv[optind]);
	status = status ?: contradiction(&c);
	status = status ?: cmd_check_run(&c);
	vec_fini(&c.changes);
	return status;
}
