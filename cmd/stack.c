/* descry stack: prints the stacks of all threads of a process or a core file. */
#include "commands.h"

#include <string.h>

#include "base/clock.h"
#include "consume/sink.h"
#include "print_tasks.h"
#include "program/runtime/runtime.h"
#include "program/symbol/symbol.h"
#include "program/target/target.h"
#include "program/unwind/unwind.h"
#include "render/render.h"
#include "tool.h"

struct walked {
	pid_t tid;
	uint32_t signal, first, n;    /* of stacks.pcs and stacks.sps */
	uint32_t language, nlanguage; /* of stacks.frames */
	uint64_t fs_base;
	enum wire_unwind_end end;
};

struct stacks {
	struct symbols *symbols;
	struct unwind_images *images;
	VEC(struct walked) threads;
	VEC(uint64_t) pcs;
	VEC(uint64_t) sps;
	struct runtime *runtime; /* of the walked space; NULL: none */
	runtime_frame_vec frames;
	struct runtime_tasks tasks;
	pid_t pid; /* 0: core files */
	bool addresses, native, async;
	bool spent; /* the walk reached READS_MAX or its time */
};
#define OPTS_OF struct stacks

// clang-format off
const struct opt stack_opts[] = {
	{ 'p', NULL, "PID", OPT_PROCESS, "of this process, which is stopped for a moment" },
	{ 'a', "addresses", NULL, NULL, "the address of each frame in front of its name", FLAG(addresses) },
	{ 'n', "native", NULL, NULL, "also the frames of an interpreter's own loop, and of the code that Java and Node.js make", FLAG(native) },
	{ OPT_LONG, "async", NULL, NULL, "also the tasks of each thread's asyncio loop, with the functions that they await", FLAG(async) },
	OPT_HELP,
	{ 0 },
};
// clang-format on

static const char help[] =
	"usage: descry stack [-an] [--async] CORE...\n"
	"       descry stack [-an] [--async] -p PID\n"
	"\n"
	"Prints the stacks of all threads of a process, or of one that has ended and left a core file, in which the thread that\n"
	"got the signal stands first. In the place of the loop of a Python or Ruby interpreter stand the functions that it\n"
	"executes; the functions of Java and of Node.js's JavaScript are shown by their names and lines.\n"
	"\n";

/* The process may be hostile: its threads may share an endless stack, and its lists may be endless.
 * So all threads share these budgets. */
enum {
	FRAMES_MAX = 1 << 20,  /* of all threads; more than fit into 8 MB of stack */
	FRAMES_LEAST = 64,     /* of a thread, whatever the others have */
	READS_MAX = 100 << 20, /* of the process's memory */
	WALK_MS = 5000,        /* as long may a process be stopped for the walk */
	CORE_WALK_MS = 60000,
	STOP_MS = 2000,
};

/* Finds the tasks of event loops. The threads' stacks are printed without them when they cannot be
 * read. */
static void walk_tasks(struct stacks *st, struct space *space)
{
	struct err *e = NULL;

	if (!st->async)
		return;
	if (st->runtime)
		e = runtime_tasks(st->runtime, &st->tasks);
	else
		e = err_new(0, "%s: it runs no Python, so there are no tasks", space->name);
	if (e)
		tool_wrong("%s", e->text);
	err_free(e);
}

static struct err *stack_walk(struct stacks *st, struct space *space)
{
	const uint64_t most = space->record ? CORE_WALK_MS : WALK_MS;
	const struct space_thread *t = NULL;
	struct unwind_process *p = NULL;
	uint32_t n = 0;
	struct err *e = space_threads(space, &t, &n);

	e = e ?: unwind_process_read(st->images, space, 0, &p);
	st->threads.n = st->pcs.n = st->sps.n = st->frames.n = 0;
	space_limit(space, READS_MAX, now_ns() + most * 1000000);
	for (uint32_t i = 0; !e && i < n; i++) {
		struct walked w = { .tid = t[i].tid,
				    .signal = t[i].signal,
				    .fs_base = t[i].regs.fs_base,
				    .first = st->pcs.n,
				    .language = st->frames.n };
		uint32_t left = st->pcs.n < FRAMES_MAX ? FRAMES_MAX - st->pcs.n : 0;
		uint32_t room = left > FRAMES_LEAST ? left : FRAMES_LEAST;
		bool full = st->frames.n >= FRAMES_MAX;
		struct runtime_walk code = { .runtime = st->runtime,
					     .thread = &t[i],
					     .ret = &st->frames };

		p->code = full ? (struct unwind_code){ 0 } : runtime_code(&code);
		vec_reserve(&st->pcs, room);
		vec_reserve(&st->sps, room);
		w.n = unwind_thread(p, space, &t[i], st->pcs.v + w.first, st->sps.v + w.first, room,
				    &w.end);
		st->pcs.n += w.n;
		st->sps.n += w.n;
		if (st->runtime && !full)
			runtime_frames(st->runtime, &t[i], &st->frames);
		w.nlanguage = st->frames.n - w.language;
		vec_push(&st->threads, w);
	}
	if (!e)
		walk_tasks(st, space);
	st->spent = space_is_spent(space);
	space_limit(space, UINT64_MAX, UINT64_MAX); /* names may be read as before */
	unwind_process_free(p);
	return e;
}

/* Reports that stacks are not complete because of the budgets. */
static void tell_limits(const struct stacks *st, const struct space *space)
{
	const uint32_t files = unwind_images_left_out(st->images);

	if (files)
		tool_wrong("%s: its stacks may not be complete: the tables of %u of its files are "
			   "not read, because those of the others are too large",
			   space->name, files);
	if (st->spent)
		tool_wrong("%s: its stacks are not complete: reading them takes too long, its "
			   "lists or stacks may be endless",
			   space->name);
	if (st->pcs.n >= FRAMES_MAX || st->frames.n >= FRAMES_MAX)
		tool_wrong("%s: its stacks are not complete: its threads have more than %u frames "
			   "together",
			   space->name, FRAMES_MAX);
}

static void print_thread(struct stacks *st, struct sink *sink, struct out *o, pid_t pid,
			 const struct walked *w)
{
	runtime_merged_vec merged = { 0 };
	const struct runtime_stack stack = {
		.pcs = st->pcs.v + w->first,
		.sps = st->sps.v + w->first,
		.n = w->n,
		.frames = st->frames.v + w->language,
		.nframes = w->nlanguage,
		.language = st->runtime ? st->runtime->type->name : NULL,
		.is_loop = runtime_is_loop,
		.is_part = runtime_is_part,
		.arg = st->runtime,
	};

	if (st->runtime)
		runtime_merge(&stack, st->native, &merged);
	stack_print_walk(sink, o, (uint32_t)pid, &stack, &merged, w->end + 1, st->addresses);
	vec_fini(&merged);
}

static struct err *cmd_stack_print(struct stacks *st, const struct space *space)
{
	struct sink sink = { .symbols = st->symbols };
	struct err *e;
	struct out o;
	struct print_tasks how = { .sink = &sink,
				   .out = &o,
				   .pid = (uint32_t)space->pid,
				   .language = st->runtime ? st->runtime->type->name : NULL };

	out_init(&o, stdout);
	out_printf(&o, "%s: %u thread%s\n", space->name, st->threads.n,
		   st->threads.n == 1 ? "" : "s");
	for (uint32_t i = 0; i < st->threads.n; i++) {
		const struct walked *w = &st->threads.v[i];

		out_printf(&o, "  thread %d", (int)w->tid);
		if (w->signal)
			out_printf(&o, ", signal %u (%s)", w->signal, strsignal((int)w->signal));
		out_char(&o, '\n');
		print_thread(st, &sink, &o, space->pid, w);
		print_tasks(&st->tasks, w->fs_base, &how);
	}
	print_tasks_left(&st->tasks, &how);
	e = out_flush(&o);
	out_fini(&o);
	return e;
}

/* Finds the interpreter of the space. When it cannot be read, its language's functions have no
 * names. */
static void find_runtime(struct stacks *st, struct space *space)
{
	struct err *e = runtime_find(space, &st->runtime);

	if (e)
		tool_wrong("%s: %s", space->name, e->text);
	err_free(e);
}

static void drop_runtime(struct stacks *st)
{
	runtime_tasks_fini(&st->tasks);
	runtime_free(st->runtime);
	st->runtime = NULL;
}

/* Prints the stacks of a process. Makes the tables before and finds the names afterwards, so that
 * the process is stopped only during the walks. */
static struct err *print_process(struct stacks *st, pid_t pid)
{
	struct unwind_process *tables = NULL;
	struct space *space = NULL;
	struct control *c = NULL;
	struct err *e = control_open(pid, &c);

	e = e ?: control_space(c, &space);
	e = e ?: unwind_process_read(st->images, space, 0, &tables);
	unwind_process_free(tables);
	if (!e)
		find_runtime(st, space);
	e = e ?: control_stop(c, STOP_MS);
	e = e ?: stack_walk(st, space);
	if (!e) {
		symbols_remember(st->symbols, pid);
		e = control_resume(c);
	}
	e = e ?: cmd_stack_print(st, space);
	if (!e)
		tell_limits(st, space);
	drop_runtime(st);
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
	find_runtime(st, space);
	e = stack_walk(st, space) ?: cmd_stack_print(st, space);
	if (!e)
		tell_limits(st, space);
	for (uint32_t i = 0; (remark = space_core_remark(space, i)); i++)
		tool_wrong("%s: %s", space->name, remark);
	drop_runtime(st);
	symbols_space_gone(st->symbols, space);
	space_free(space);
	return e;
}

static int stack_take(void *into, const struct opt *o, const char *arg)
{
	struct stacks *st = into;

	return o->id == 'p' ? tool_pid("-p", arg, &st->pid) : -1;
}

int cmd_stack(int argc, char **argv)
{
	struct stacks st = { 0 };
	struct opt_parse parse = {
		.table = stack_opts, .help = help, .into = &st, .take = stack_take
	};
	struct err *e = NULL;
	int failed = opts_take(&parse, argc, argv);

	if (failed)
		return failed;
	if (!st.pid == (optind == argc))
		return tool_wrong("%s",
				  st.pid ? "-p and core files exclude each other"
					 : "no process is named: give -p PID, or a core file");
	st.symbols = symbols_new();
	st.images = unwind_images_new();
	do {
		e = st.pid ? print_process(&st, st.pid) : print_core(&st, argv[optind]);
		if (e)
			failed = tool_failed(e);
		err_free(e);
	} while (!st.pid && ++optind < argc);
	symbols_free(st.symbols);
	unwind_images_free(st.images);
	vec_fini(&st.threads);
	vec_fini(&st.pcs);
	vec_fini(&st.sps);
	vec_fini(&st.frames);
	return failed;
}
