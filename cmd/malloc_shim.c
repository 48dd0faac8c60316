/* descry malloc record of a command, by a preloaded library: the loop of the tracer. */
#define _GNU_SOURCE
#include "malloc.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "memory/alloc/shim.h"
#include "tool.h"

static volatile sig_atomic_t asked_to_end;

static void on_signal(int sig)
{
	if (sig != SIGCHLD)
		asked_to_end = 1;
}

static void put_infos(struct alloc_shim *s, const struct malloc_options *o)
{
	cleanup_free char *command = tool_quote(o->words);
	char text[64];

	snprintf(text, sizeof(text), "%d", (int)s->pid);
	alloc_writer_info(s->writer, "pid", text);
	alloc_writer_info(s->writer, "command", command);
	alloc_writer_info(s->writer, "attached", "no");
	snprintf(text, sizeof(text), "%llu,%llu", (unsigned long long)s->clock.ticks,
		 (unsigned long long)s->clock.factor);
	alloc_writer_info(s->writer, "clock", text);
}

/* Ends the file, and says what is in it. Returns the exit status. */
static int end(struct alloc_shim *s, const struct malloc_options *o)
{
	uint64_t events;
	struct err *e;
	int status;

	alloc_shim_end(s);
	events = alloc_writer_events(s->writer);
	e = alloc_writer_end(s->writer);
	if (e) {
		status = tool_failed(e);
		err_free(e);
		return status;
	}
	if (!alloc_shim_runs(s)) {
		tool_wrong(
			"%s did not load descry's library: nothing was recorded (--probes records "
			"without it)",
			o->words[0]);
		return 1;
	}
	fprintf(stderr, "descry malloc: %s: %llu calls\n", o->path, (unsigned long long)events);
	if (__atomic_load_n(&s->memory->forks, __ATOMIC_RELAXED))
		fprintf(stderr,
			"descry malloc: the program has forked %u times; its children are not "
			"recorded\n",
			__atomic_load_n(&s->memory->forks, __ATOMIC_RELAXED));
	if (__atomic_load_n(&s->memory->forbidden, __ATOMIC_RELAXED))
		tool_wrong("the program has forbidden itself the processor's counter (seccomp's "
			   "strict mode, PR_SET_TSC): the recording ends there");
	if (s->lost)
		tool_wrong("%llu calls were lost: the recording is not whole",
			   (unsigned long long)s->lost);
	if (__atomic_load_n(&s->memory->no_stacks, __ATOMIC_RELAXED))
		tool_wrong("the program has no memory for walks: there are no stacks");
	if (s->bare)
		tool_wrong("%llu calls are without their stacks: there are more than a recording "
			   "holds; -k N with a smaller N makes fewer",
			   (unsigned long long)s->bare);
	if (s->early)
		tool_wrong(
			"%llu stacks end early, where no unwind table is; the report shows where",
			(unsigned long long)s->early);
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
	struct alloc_writer *writer = NULL;
	struct alloc_shim *s = NULL;
	struct err *e = alloc_shim_check(o->words[0]);

	if (e && e->code == ENOTSUP)
		return malloc_shim_refuse(e);
	tool_catch(on_signal);
	e = e ?: alloc_writer_new(o->path, &writer);
	e = e ?: alloc_shim_start(o->words, o->depth, &s);
	if (e) {
		if (writer)
			err_free(alloc_writer_end(writer));
		if (e->code == ENOTSUP)
			return malloc_shim_refuse(e);
		*ret_status = tool_failed(e);
		err_free(e);
		return true;
	}
	s->writer = writer;
	put_infos(s, o);
	while (alloc_shim_pass(s) && !asked_to_end)
		;
	if (!s->ended) /* as DTrace does */
		kill(s->pid, SIGTERM);
	*ret_status = end(s, o);
	alloc_shim_free(s);
	return true;
}
