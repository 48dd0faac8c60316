/* descry malloc record: runs the D program of the allocations, whose sink writes the file. */
#define _GNU_SOURCE
#include "malloc.h"

#include <errno.h>
#include <signal.h>

#include "memory/alloc/alloc_record.h"
#include "memory/alloc/shim.h"
#include "run.h"
#include "tool.h"

struct recorder {
	struct malloc_options *o;
	struct alloc_record record;
	struct run run;
	char *program, *command;
};

/* Called by run_all() when the process is there. */
static struct err *prepare(struct run *r, bool *ret_end)
{
	struct recorder *k = (struct recorder *)((char *)r - offsetof(struct recorder, run));
	struct probe_set *ps = &r->session.probes;
	char pid[16];
	struct err *e;

	if (!ps->targets.n)
		return err_new(ESRCH, "there is no process");
	e = alloc_record_program(&k->record, ps, ps->targets.v[0].pid, &k->program);
	if (e)
		return e;
	if (k->o->show_d) {
		fputs(k->program, stdout);
		tool_check_output();
		*ret_end = true;
		return NULL;
	}
	e = alloc_writer_new(k->o->path, &k->record.writer);
	if (e)
		return e;
	snprintf(pid, sizeof(pid), "%d", (int)ps->targets.v[0].pid);
	alloc_writer_info(k->record.writer, "pid", pid);
	if (k->command)
		alloc_writer_info(k->record.writer, "command", k->command);
	alloc_writer_info(k->record.writer, "attached", k->command ? "no" : "yes");
	k->record.attached = k->command ? 0 : ps->targets.v[0].pid;
	for (uint32_t i = 0; i < k->record.objects.n; i++)
		alloc_writer_info(k->record.writer, "allocator", k->record.objects.v[i]);
	vec_push(&k->o->c.programs, (struct cmd_program){ PDESC_NAME, false, k->program });
	return NULL;
}

static void set_options(struct recorder *k)
{
	enum { RATE_NS = 1000000 };
	struct options *o = &k->run.session.options;

	options_put(o, OPT_QUIET, true);
	options_put(o, OPT_BUFSIZE, 16 << 20);
	options_put(o, OPT_SWITCHRATE, RATE_NS);
	options_put(o, OPT_EVALTIME, 1); /* preinit: the constructors' allocations, too */
}

/* Ends the file, and says what is in it. */
static int end(struct recorder *k, int status)
{
	struct alloc_writer *w = k->record.writer;
	uint64_t events;
	struct err *e;

	if (!w)
		return status;
	events = alloc_writer_events(w) - k->record.before;
	e = alloc_writer_end(w);
	if (e) {
		status = tool_failed(e);
		err_free(e);
		return status;
	}
	fprintf(stderr, "descry malloc: %s: %llu calls\n", k->o->path, (unsigned long long)events);
	if (k->record.before)
		fprintf(stderr,
			"descry malloc: and %llu blocks that were allocated before the recording\n",
			(unsigned long long)k->record.before);
	if (k->record.not_before)
		tool_wrong("blocks that were allocated before the recording are not known: %s",
			   k->record.not_before->text);
	if (k->record.lost)
		tool_wrong("%llu records were lost: the recording is not whole; -X bufsize=SIZE "
			   "makes the buffers larger",
			   (unsigned long long)k->record.lost);
	if (k->record.unstacked)
		tool_wrong(
			"%llu calls are without their stacks: there are more than a recording holds; "
			"-k N with a smaller N makes fewer",
			(unsigned long long)k->record.unstacked);
	if (k->record.faults)
		tool_wrong("%llu calls were left out: memory that they point to could not be read",
			   (unsigned long long)k->record.faults);
	return status;
}

int malloc_record(struct malloc_options *o)
{
	struct recorder k = { .o = o };
	int status;

	if ((o->nwords > 0) == (o->c.pids.n > 0) || o->c.pids.n > 1)
		return tool_wrong("whose allocations? a command or -p PID");
	if (!o->path && !o->show_d)
		return tool_wrong("where to? -o FILE");
	if (o->sample && !o->depth)
		return tool_wrong("stacks of how many frames? --sample goes with -k N");
	if (o->nwords && !o->probes && !o->show_d && malloc_record_shim(o, &status))
		return status;
	if (o->sample)
		return tool_wrong("only a command that is recorded by the library has --sample");
	if (o->nwords) {
		k.command = tool_quote(o->words);
		vec_push(&o->c.commands, k.command);
	}
	alloc_record_init(&k.record);
	k.record.depth = o->depth;
	k.run.c = &o->c;
	k.run.to = stderr;
	k.run.prepare = prepare;
	run_init(&k.run);
	set_options(&k);
	status = run_all(&k.run, alloc_record_sink(&k.record));
	status = end(&k, status);
	if (!status && k.run.command_status >= 0)
		status = tool_command_status(k.run.command_status);
	alloc_record_fini(&k.record);
	free(k.program);
	free(k.command);
	return status;
}
