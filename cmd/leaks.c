/* descry leaks: finds memory that a process, or one that left a core file, can no longer reach. */
#include "commands.h"

#include <errno.h>
#include <time.h>

#include "memory/alloc/leak_stacks.h"
#include "memory/leaks/leaks.h"
#include "program/target/target.h"
#include "tool.h"

struct finder {
	struct leaks_shown shown;
	struct symbols *symbols;
	struct memory_stop stop;
	const char *recording;
	bool json, copy;
	pid_t pid;
};
#define OPTS_OF struct finder

// clang-format off
const struct opt leaks_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "in this process, which is stopped for a moment" },
	{ 'n', NULL, "N", NULL, "lists at most N kinds of leaks (50)", INTEGER(shown.most, 1, UINT32_MAX) },
	{ 'r', "recording", "FILE", OPT_FILE, "groups them by the stacks in this recording of the process (descry malloc record -k)", TEXT(recording) },
	{ 'v', "verbose", NULL, NULL, "each leaked block, too", FLAG(shown.blocks) },
	{ OPT_LONG, "json", NULL, NULL, "JSON lines", FLAG(json) },
	{ OPT_LONG, "fork", NULL, NULL, "copies the process by clone(2), for a short stop, also one of 128 MB or less; the program can see this", FLAG(stop.fork) },
	{ OPT_LONG, "copy", NULL, NULL, "reads the process while it is stopped, also a large one", FLAG(copy) },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry leaks [options] CORE...\n"
	"       descry leaks [options] -p PID\n"
	"\n"
	"Lists the memory of malloc(3) that a running process, or one that has left a core file, can no longer reach: no word of\n"
	"its data, stacks, registers or other blocks holds its address. It needs nothing in the program; the allocator is glibc's, jemalloc, mimalloc or tcmalloc.\n"
	"\n";

enum {
	TRIES = 5,
	WAIT_MS = 20,
	READ_STOPPED = 128 << 20, /* bytes; takes about 20 ms */
};

static struct err *show(struct finder *f, struct leaks *l, const struct memory_copy *c,
			struct space *s)
{
	struct err *e = f->recording ? leak_stacks(f->recording, s->pid, l) : NULL;
	struct out o;

	if (e)
		return e;
	f->shown.name = s->name;
	leaks_group(l, c, s, f->symbols);
	for (uint32_t i = 0; i < l->remarks.n && !f->json; i++)
		tool_wrong("%s: %s", s->name, l->remarks.v[i]);
	out_init(&o, stdout);
	if (f->json)
		leaks_json(l, &f->shown, &o);
	else
		leaks_print(l, c, &f->shown, &o);
	e = out_flush(&o);
	out_fini(&o);
	return e;
}

static void free_both(struct leaks *l, struct memory_copy *copy)
{
	leaks_free(l);
	memory_copy_free(copy);
}

/* A thread may be stopped in the middle of malloc(3), whose chunks are then not whole: tries it
 * again a moment later. */
static struct err *find_in_process(struct finder *f, pid_t pid)
{
	struct memory_copy *copy = NULL;
	struct space *space = NULL;
	struct control *c = NULL;
	struct leaks *l = NULL;
	struct err *e = control_open(pid, &c);

	f->stop.control = c;
	f->stop.fork_above = f->copy ? 0 : READ_STOPPED;
	e = e ?: control_space(c, &space);
	for (int i = 0; !e && i < TRIES; i++) {
		struct timespec wait = { 0, WAIT_MS * 1000000L };

		if (i) {
			free_both(l, copy);
			l = NULL;
			copy = NULL;
			nanosleep(&wait, NULL);
		}
		e = memory_copy_stopped(&f->stop, space, false, &copy);
		e = e ?: leaks_find(copy, &l);
		if (!e && !l->torn)
			break;
	}
	if (e && space && e->code == ENOENT)
		e = err_wrap(e, "%s", space->name);
	f->shown.pause_ns = f->stop.ns;
	f->shown.whole = f->stop.fork ? f->stop.whole : NULL;
	e = e ?: show(f, l, copy, space);
	free_both(l, copy);
	space_free(space);
	control_free(c);
	return e;
}

static struct err *find_in_core(struct finder *f, const char *path)
{
	struct memory_copy *copy = NULL;
	struct leaks *l = NULL;
	struct space *s;
	const char *remark;
	struct err *e = space_core(path, &s);

	if (e)
		return e;
	e = memory_copy(s, &copy);
	e = e ?: leaks_find(copy, &l);
	e = e ? err_wrap(e, "%s", s->name) : show(f, l, copy, s);
	for (uint32_t i = 0; (remark = space_core_remark(s, i)); i++)
		tool_wrong("%s: %s", s->name, remark);
	free_both(l, copy);
	space_free(s);
	return e;
}

static int leaks_take(void *into, const struct opt *o, const char *arg)
{
	struct finder *f = into;

	return o->id == 'p' ? tool_pid("-p", arg, &f->pid) : -1;
}

int cmd_leaks(int argc, char **argv)
{
	struct finder f = { .shown = { .most = 50 } };
	struct opt_parse parse = {
		.table = leaks_opts, .help = help, .into = &f, .take = leaks_take
	};
	int failed = opts_take(&parse, argc, argv);

	if (failed)
		return failed;
	if (f.copy && f.stop.fork)
		return tool_wrong("--copy and --fork exclude each other");
	if (!f.pid == (optind == argc))
		return tool_wrong("%s", f.pid ? "-p and core files exclude each other"
					      : "no process is named: give -p PID, or a core file");
	f.symbols = symbols_new();
	do {
		struct err *e = f.pid ? find_in_process(&f, f.pid) : find_in_core(&f, argv[optind]);

		if (e)
			failed = tool_failed(e);
		err_free(e);
	} while (!f.pid && ++optind < argc);
	symbols_free(f.symbols);
	return failed;
}
