/* descry malloc record of a command, by a preloaded library: the loop of the tracer. */
#define _GNU_SOURCE
#include "malloc.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "memory/alloc/shim.h"
#include "tool.h"

enum {
	LINES = 20,         /* of processes; the report lists all */
	COMMAND_SHOWN = 80, /* bytes */
};

static volatile sig_atomic_t asked_to_end;

static void on_signal(int sig)
{
	if (sig != SIGCHLD)
		asked_to_end = 1;
}

static int by_events(const void *a, const void *b)
{
	const struct alloc_shim_sum *x = a, *y = b;

	if (!x->parent || !y->parent) /* the command's first program first */
		return (x->parent != 0) - (y->parent != 0);
	return x->events != y->events ? (x->events < y->events ? 1 : -1) : x->pid - y->pid;
}

/* Says what is in the files. */
static void say_files(const struct alloc_shims *s)
{
	uint64_t rest = 0;

	for (uint32_t i = 0; i < s->sums.n; i++) {
		const struct alloc_shim_sum *m = &s->sums.v[i];

		if (i >= LINES)
			rest += m->events;
		else if (m->parent)
			fprintf(stderr, "descry malloc: %s: %llu calls of %s%.*s%s\n", m->path,
				(unsigned long long)m->events, m->forked ? "a forked " : "",
				COMMAND_SHOWN, m->command,
				strlen(m->command) > COMMAND_SHOWN ? "..." : "");
		else
			fprintf(stderr, "descry malloc: %s: %llu calls\n", m->path,
				(unsigned long long)m->events);
	}
	if (s->sums.n > LINES)
		fprintf(stderr,
			"descry malloc: and %u processes with %llu calls, which descry malloc "
			"report %s lists\n",
			s->sums.n - LINES, (unsigned long long)rest, s->sums.v[0].path);
}

/* Says which processes are not recorded. */
static void say_missing(const struct alloc_shims *s)
{
	uint32_t forks = __atomic_load_n(&s->lobby->forks, __ATOMIC_RELAXED);
	uint32_t refused = alloc_shims_refused(s);

	if (s->alone && forks)
		fprintf(stderr,
			"descry malloc: the program has forked %u times; its children are not "
			"recorded\n",
			forks);
	if (refused)
		tool_wrong("%u forked children or executed programs are not recorded: they are "
			   "static or set-user-ID, have a filter of system calls, cannot reach "
			   "descry, or are more than 4,096",
			   refused);
}

/* Says what is wrong with a process's recording. */
static void say_wrong(const struct alloc_shim_sum *m, uint32_t n)
{
	cleanup_free char *of = n > 1 ? xasprintf("%s: ", m->path) : xstrdup("");

	if (m->own)
		tool_wrong("%sthe program has an allocator of its own: nothing was recorded", of);
	if (m->forbidden)
		tool_wrong("%sthe program has forbidden itself the processor's counter (seccomp's "
			   "strict mode, PR_SET_TSC): the recording ends there",
			   of);
	if (m->lost)
		tool_wrong("%s%llu calls were lost: the recording is not whole", of,
			   (unsigned long long)m->lost);
	if (m->no_stacks)
		tool_wrong("%sthe program has no memory for walks: there are no stacks", of);
	if (m->no_names)
		tool_wrong("%sstacks do not have all functions of the interpreter, whose variables "
			   "the library does not find; --probes records them",
			   of);
	if (m->late)
		tool_wrong("%snot all stacks of the process could be written before its end, or "
			   "before that of the recording: some calls are without theirs",
			   of);
	if (m->bare)
		tool_wrong("%s%llu calls are without their stacks: there are more than a recording "
			   "holds; -k N with a smaller N makes fewer",
			   of, (unsigned long long)m->bare);
	if (m->early)
		tool_wrong("%s%llu stacks end early, where no unwind table is; the report shows "
			   "where",
			   of, (unsigned long long)m->early);
}

/* Ends the files, and says what is in them. Returns the exit status. */
static int end(struct alloc_shims *s, const struct malloc_options *o)
{
	int status = 0;

	alloc_shims_end(s);
	if (!s->sums.n || s->sums.v[0].parent || !s->sums.v[0].runs) {
		tool_wrong(
			"%s did not load descry's library: nothing was recorded (--probes records "
			"without it)",
			o->words[0]);
		return 1;
	}
	qsort(s->sums.v, s->sums.n, sizeof(s->sums.v[0]), by_events);
	for (uint32_t i = 0; i < s->sums.n; i++)
		if (s->sums.v[i].error)
			status = tool_failed(s->sums.v[i].error);
	if (status)
		return status;
	say_files(s);
	say_missing(s);
	for (uint32_t i = 0; i < s->sums.n; i++)
		say_wrong(&s->sums.v[i], s->sums.n);
	return s->ended ? tool_command_status(s->status) : 0;
}

/* Says why the library is no way. */
static bool malloc_shim_refuse(struct err *e)
{
	tool_wrong("%s; recording by probes, which is slower", e->text);
	err_free(e);
	return false;
}

bool malloc_record_shim(struct malloc_options *o, int *ret_status)
{
	cleanup_free char *command = tool_quote(o->words);
	const struct alloc_shims_options how = { .path = o->path,
						 .command = command,
						 .depth = o->depth,
						 .sample = o->sample,
						 .alone = o->alone };
	struct alloc_shims *s = NULL;
	struct err *e = alloc_shim_check(o->words);
	bool told = false;

	if (e && e->code == ENOTSUP)
		return malloc_shim_refuse(e);
	tool_catch(on_signal);
	e = e ?: alloc_shims_start(o->words, &how, &s);
	if (e) {
		if (e->code == ENOTSUP)
			return malloc_shim_refuse(e);
		*ret_status = tool_failed(e);
		err_free(e);
		return true;
	}
	while (alloc_shims_pass(s) && !asked_to_end) {
		if (!s->ended || !s->live.n || told)
			continue;
		told = true;
		fprintf(stderr,
			"descry malloc: the command has ended; %u of its processes are still "
			"recorded until they end (^C ends the recording)\n",
			s->live.n);
	}
	if (!s->ended) /* as DTrace does */
		kill(s->pid, SIGTERM);
	*ret_status = end(s, o);
	alloc_shims_free(s);
	return true;
}
