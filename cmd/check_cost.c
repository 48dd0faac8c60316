/* descry check --cost: measures the cost of a firing. */
#define _GNU_SOURCE
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "probe/process.h"

/* The turns of a measurement. Each turn runs the loop alone, then traced; the cost is the
 * difference of the medians. */
enum { TURNS = 5 };

static const struct cost {
	const char *name, *loop;
	const char *engine, *program; /* NULL: nothing is traced, and the loop itself is measured */
	const char *what;
} costs[] = {
	{ "a system call", "syscall", NULL, NULL,
	  "getppid(2): entering the kernel and leaving it, with the mitigations there are" },
	{ "a page fault", "fault", NULL, NULL, "the first write to a page of 4 kB" },
	{ "a switch of threads", "switch", NULL, NULL, "through a pipe, on one CPU" },
	{ "reading the clock", "clock", NULL, NULL, "clock_gettime(CLOCK_MONOTONIC)" },
	{ "a raw tracepoint", "syscall", "engine=kernel", "syscall::getppid:entry { @ = count(); }",
	  "@ = count() at each entry of a system call, by the kernel" },
	{ "a uprobe", "function", "engine=kernel",
	  "pid$target:libc.so.6:rand_r:entry { @ = count(); }",
	  "@ = count() at the entry of a function, by the kernel" },
	{ "a patched jump", "function", "engine=inproc",
	  "pid$target:libc.so.6:rand_r:entry { @ = count(); }",
	  "@ = count() at the entry of a function, from inside the process" },
	{ "a system call, in-process", "syscall", "engine=inproc",
	  "syscall::getppid:entry { @ = count(); }",
	  "@ = count() at each entry of a system call, from inside the process" },
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return COMPARE(x, y);
}

/* Runs the loop once. Returns NAN and sets *ret_reason when the loop prints no number. */
static double turn(const struct cost *c, bool traced, char **ret_reason)
{
	cleanup_free char *command = xasprintf("%s check --loop %s", check_self(), c->loop);
	const char *const alone[] = { "check", "--loop", c->loop, NULL };
	const char *const with[] = { "-q", "-x", c->engine, "-n", c->program, "-c", command, NULL };
	struct check_run r;
	double ns = NAN;

	check_run(traced ? with : alone, 30, &r);
	if (r.status || !r.out || sscanf(r.out, "%lf", &ns) != 1) {
		free(*ret_reason);
		*ret_reason = check_reason(&r);
	}
	check_run_fini(&r);
	return ns;
}

static void measure(const struct cost *c, struct check_table *t)
{
	double alone[TURNS], with[TURNS];
	cleanup_free char *reason = NULL, *before = NULL, *after = NULL, *added = NULL,
			  *ratio = NULL, *spread = NULL;

	for (int i = 0; i < TURNS && !reason; i++) {
		alone[i] = turn(c, false, &reason);
		with[i] = c->program && !reason ? turn(c, true, &reason) : NAN;
	}
	if (reason) {
		check_row(t, (const char *const[]){ c->name, NULL, NULL, NULL, NULL, c->what,
						    reason, NULL });
		return;
	}
	qsort(alone, TURNS, sizeof(*alone), by_size);
	before = xasprintf("%.1f", alone[TURNS / 2]);
	if (c->program) {
		qsort(with, TURNS, sizeof(*with), by_size);
		after = xasprintf("%.1f", with[TURNS / 2]);
		added = xasprintf("%.1f", with[TURNS / 2] - alone[TURNS / 2]);
		/* Other work or other tracers have disturbed the turns. */
		if (fabs(with[TURNS / 2] - alone[TURNS / 2]) < alone[TURNS - 1] - alone[0])
			spread = xasprintf(
				"single rounds differ by more than the probe adds: %.1f to %.1f ns",
				alone[0], alone[TURNS - 1]);
		ratio = xasprintf("%.2f", with[TURNS / 2] / alone[TURNS / 2]);
	}
	check_row(t, (const char *const[]){ c->name, before, after, added, ratio, c->what, NULL,
					    spread });
}

void check_costs(struct check_table *ret)
{
	static const struct check_column columns[] = {
		{ "name", CHECK_COLUMN },        { "ns alone", CHECK_COLUMN },
		{ "ns traced", CHECK_COLUMN },   { "ns added", CHECK_COLUMN },
		{ "ratio", CHECK_COLUMN },       { "what", CHECK_BELOW },
		{ "not measured", CHECK_BELOW }, { "uncertain", CHECK_BELOW }
	};

	const char *reason;
	uint32_t len;

	check_table_init(ret, "costs", "What tracing costs here", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
		measure(&costs[i], ret);
	/* The kernel's cost depends on the instruction under the uprobe. */
	check_note(ret, "the function is libc's rand_r(); typical of its first instruction: %s",
		   process_price(uprobe_classify((const uint8_t *)rand_r, 16, &len, &reason),
				 ATTACH_UPROBE));
	check_note(
		ret,
		"medians of %d turns, alone and traced by turns, each of 21 batches of 2 ms of CPU time; other work on the machine makes all larger",
		TURNS);
}
