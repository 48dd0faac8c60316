/* descry heal: removes the memory and patches of a killed tracer from processes. */
#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <signal.h>

#include "base/procdir.h"
#include "load/inproc/undo/undo.h"
#include "program/space/mapping.h"
#include "tool.h"

struct heal {
	bool all, force, quiet;
	int timeout_ms;
	int failed, healed;
};
#define OPTS_OF struct heal

// clang-format off
const struct opt heal_opts[] = {
	{ OPT_LONG, "all", NULL, NULL, "every process that has descry's memory mapped and may be traced by this user", FLAG(all) },
	{ OPT_LONG, "force", NULL, NULL, "also when the descry that traces it is alive", FLAG(force) },
	{ 't', "timeout", "SECONDS", NULL, "how long to wait for threads to leave probe code (2)" },
	{ 'q', "quiet", NULL, NULL, "prints nothing about processes that were healed", FLAG(quiet) },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry heal [options] PID...\n"
	"       descry heal [options] --all\n"
	"\n"
	"Removes the patches and memory that an in-process trace left in a process when descry and its watchdog were killed: restores\n"
	"patched code, signal actions and program counters, and unmaps descry's memory.\n"
	"\n";

static void complain(struct heal *h, struct err *e)
{
	tool_wrong("%s", e->text);
	err_free(e);
	h->failed++;
}

/* Returns true when the living process `pid` has mapped this memory file, or when its mappings
 * cannot be read. */
static bool has_mapped(uint32_t pid, uint64_t inode)
{
	struct mappings maps = { 0 };
	struct err *e;
	bool is = false;

	if (!pid || (kill((pid_t)pid, 0) < 0 && errno == ESRCH))
		return false;
	e = mappings_read_whole((pid_t)pid, &maps);
	if (e)
		is = e->code == EACCES || e->code == EPERM;
	err_free(e);
	for (uint32_t i = 0; i < maps.n && !is; i++)
		is = maps.v[i].inode == inode && mapping_is_memfd(&maps.v[i], WIRE_MEMFD_FACTS);
	mappings_free(&maps);
	return is;
}

/* Finds the living tracer of one of the process's areas; 0: none. *ret_self: the process is the
 * tracer or its watchdog. */
static struct err *living_tracer(struct control *c, uint32_t *ret_tracer, bool *ret_self,
				 uint32_t *ret_areas)
{
	uint64_t bases[WIRE_BASES];
	struct err *e = undo_is_tracer(c, ret_self) ?: undo_areas(c, bases, ret_areas);

	*ret_tracer = 0;
	for (uint32_t i = 0; !e && !*ret_self && i < *ret_areas; i++) {
		struct undo_log log;

		e = undo_log_read(c, bases[i], &log);
		if (e)
			break;
		if (log.inode && has_mapped(log.tracer_pid, log.inode))
			*ret_tracer = log.tracer_pid;
		undo_log_fini(&log);
	}
	return e;
}

static void tell(const struct heal *h, pid_t pid, const struct undo_report *r)
{
	if (h->quiet)
		return;
	printf("process %d: %u sites restored", pid, r->restored);
	if (r->clean)
		printf(", %u held the original already", r->clean);
	if (r->foreign)
		printf(", %u hold other bytes and were left alone", r->foreign);
	if (r->gone)
		printf(", %u are no longer mapped", r->gone);
	if (r->kept)
		printf(", %u mapping%s of stubs stay, because its code leads there", r->kept,
		       r->kept == 1 ? "" : "s");
	if (r->moved)
		printf(", %u program counters moved", r->moved);
	if (r->signals)
		printf(", %u signal actions restored", r->signals);
	if (r->closed)
		printf(", %u descriptors closed", r->closed);
	printf(", %u mappings removed\n", r->unmapped);
}

static void heal_process(struct heal *h, pid_t pid)
{
	struct undo_report r;
	struct control *c;
	struct err *e = control_open(pid, &c);
	uint32_t tracer, areas;
	bool self;

	if (e) {
		complain(h, e);
		return;
	}
	e = living_tracer(c, &tracer, &self, &areas);
	if (e) {
		complain(h, e);
	} else if (self) {
		if (!h->all) {
			tool_wrong("process %d is descry itself", pid);
			h->failed++;
		}
	} else if (!areas) {
		/* Undoes an attach that ended before it mapped anything. */
		e = undo_all(c, h->timeout_ms, &r);
		if (e) {
			complain(h, e);
		} else if (r.closed || r.unmapped) {
			tell(h, pid, &r);
			h->healed++;
		} else if (!h->quiet) {
			printf("process %d: it has no memory of descry\n", pid);
		}
	} else if (tracer && !h->force) {
		tool_wrong(
			"process %d is being traced by descry, process %u, which is alive: end that one, or use --force",
			pid, tracer);
		h->failed++;
	} else {
		e = undo_all(c, h->timeout_ms, &r);
		if (e) {
			complain(h, e);
		} else {
			tell(h, pid, &r);
			h->healed++;
			if (r.filtered && !r.busy) {
				tool_wrong(
					"process %d: its seccomp filter permits no system call of descry, so the memory stays mapped; the code is restored. Try again as root (CAP_SYS_ADMIN)",
					pid);
				h->failed++;
			}
			if (r.busy) {
				tool_wrong(
					"process %d: thread %d stays in probe code, so the memory stays mapped; the code is restored. Try again later",
					pid, r.busy);
				h->failed++;
			}
		}
	}
	control_free(c);
}

/* Heals every process with a mapping of descry that this user may read. */
static void heal_all(struct heal *h)
{
	cleanup_dir DIR *d = opendir("/proc");

	for (pid_t pid; procdir_next(d, &pid);)
		if (pid != getpid() && mappings_any(pid, "/memfd:" WIRE_MEMFD_PREFIX))
			heal_process(h, pid);
	if (!h->healed && !h->failed && !h->quiet)
		printf("no process has memory of descry\n");
}

static int heal_take(void *into, const struct opt *o, const char *arg)
{
	struct heal *h = into;
	double secs = 0;
	int status = o->id == 't' ? tool_number("--timeout", arg, 0, 3600, &secs) : -1;

	if (!status)
		h->timeout_ms = (int)(secs * 1000);
	return status;
}

int cmd_heal(int argc, char **argv)
{
	struct heal h = { .timeout_ms = 2000 };
	struct opt_parse parse = { .table = heal_opts, .help = help, .into = &h, .take = heal_take };
	int status = opts_take(&parse, argc, argv);
	pid_t pid;

	if (status)
		return status;
	if (h.all == (optind < argc))
		return tool_wrong("%s", h.all ? "--all and process ids exclude each other"
					      : "no process is named: give a PID, or --all");
	if (h.all)
		heal_all(&h);
	/* Checks all arguments before it changes the first process. */
	for (int i = optind; i < argc; i++)
		if (tool_pid("descry heal", argv[i], &pid))
			return 2;
	for (; optind < argc; optind++)
		if (!tool_pid("descry heal", argv[optind], &pid))
			heal_process(&h, pid);
	return h.failed ? 1 : 0;
}
