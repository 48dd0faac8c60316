#include "stack.h"

#include <string.h>

#include "commands.h"
#include "consume/sink.h"
#include "program/symbol/symbol.h"
#include "program/target/target.h"
#include "program/unwind/unwind.h"
#include "render/render.h"
#include "tool.h"

// clang-format off
const struct opt stack_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "of this process, which is stopped for a moment" },
	{ 'a', "addresses", NULL, NULL, "the address of each frame in front of its name" },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry stack [-a] CORE...\n"
	"       descry stack [-a] -p PID\n"
	"\n"
	"Prints the stacks of all threads of a process, or of one that has ended and left a core file, in which the thread that\n"
	"got the signal stands first.\n"
	"\n";

enum { FRAMES_MAX = 1 << 20, /* more than fit into 8 MB of stack */ STOP_MS = 2000 };

struct walked {
	pid_t tid;
	uint32_t signal, first, n; /* of stacks.pcs */
	enum wire_unwind_end end;
};

struct stacks {
	struct symbols *symbols;
	struct unwind_images *images;
	VEC(struct walked) threads;
	VEC(uint64_t) pcs;
	bool addresses;
};

static struct err *walk(struct stacks *st, struct space *space)
{
	const struct space_thread *t = NULL;
	struct unwind_process *p = NULL;
	uint32_t n = 0;
	struct err *e = space_threads(space, &t, &n);

	e = e ?: unwind_process_read(st->images, space, 0, &p);
	st->threads.n = st->pcs.n = 0;
	for (uint32_t i = 0; !e && i < n; i++) {
		struct walked w = { .tid = t[i].tid, .signal = t[i].signal, .first = st->pcs.n };

		vec_reserve(&st->pcs, FRAMES_MAX);
		w.n = unwind_thread(p, space, &t[i], st->pcs.v + w.first, FRAMES_MAX, &w.end);
		st->pcs.n += w.n;
		vec_push(&st->threads, w);
	}
	unwind_process_free(p);
	return e;
}

static struct err *print(struct stacks *st, const struct space *space)
{
	struct sink sink = { .symbols = st->symbols };
	struct err *e;
	struct out o;

	out_init(&o, stdout);
	out_printf(&o, "%s: %u thread%s\n", space->name, st->threads.n,
		   st->threads.n == 1 ? "" : "s");
	for (uint32_t i = 0; i < st->threads.n; i++) {
		const struct walked *w = &st->threads.v[i];

		out_printf(&o, "  thread %d", (int)w->tid);
		if (w->signal)
			out_printf(&o, ", signal %u (%s)", w->signal, strsignal((int)w->signal));
		out_char(&o, '\n');
		stack_print_walk(&sink, &o, (uint32_t)space->pid, st->pcs.v + w->first, w->n,
				 w->end + 1, st->addresses);
	}
	e = out_flush(&o);
	out_fini(&o);
	return e;
}

/* It is stopped only while its stacks are walked: tables are made before, and names found
 * afterwards. */
static struct err *print_process(struct stacks *st, pid_t pid)
{
	struct unwind_process *tables = NULL;
	struct space *space = NULL;
	struct control *c = NULL;
	struct err *e = control_open(pid, &c);

	e = e ?: control_space(c, &space);
	e = e ?: unwind_process_read(st->images, space, 0, &tables);
	unwind_process_free(tables);
	e = e ?: control_stop(c, STOP_MS);
	e = e ?: walk(st, space);
	if (!e) {
		symbols_remember(st->symbols, pid);
		e = control_resume(c);
	}
	e = e ?: print(st, space);
	space_free(space);
	control_free(c);
	return e;
}

static struct err *print_core(struct stacks *st, const char *path)
{
	struct space *space;
	const char *remark;
	struct err *e = space_core(path, &space);

	if (e)
		return e;
	symbols_space(st->symbols, space);
	e = walk(st, space) ?: print(st, space);
	for (uint32_t i = 0; (remark = space_core_remark(space, i)); i++)
		tool_wrong("%s: %s", space->name, remark);
	symbols_space_gone(st->symbols, space);
	space_free(space);
	return e;
}

int cmd_stack(int argc, char **argv)
{
	struct stacks st = { 0 };
	struct opt_getopt g;
	struct err *e = NULL;
	int c, failed = 0;
	pid_t pid = 0;

	opt_getopt_init(&g, "", stack_opts);
	while ((c = getopt_long(argc, argv, g.shorts, g.longs, NULL)) >= 0)
		switch (c) {
		case 'h':
			fputs(help, stdout);
			opt_print(stack_opts, stdout);
			return 0;
		case 'a': st.addresses = true; break;
		case 'p':
			if (tool_pid("-p", optarg, &pid))
				return 2;
			break;
		default: return 2;
		}
	if (!pid == (optind == argc))
		return tool_wrong("%s", pid ? "-p and core files exclude each other"
					    : "of what? descry stack CORE, or -p PID");
	st.symbols = symbols_new();
	st.images = unwind_images_new();
	do {
		e = pid ? print_process(&st, pid) : print_core(&st, argv[optind]);
		if (e)
			failed = tool_failed(e);
		err_free(e);
	} while (!pid && ++optind < argc);
	symbols_free(st.symbols);
	unwind_images_free(st.images);
	vec_fini(&st.threads);
	vec_fini(&st.pcs);
	return failed;
}
