/* descry malloc record: runs the D program of the allocations, whose sink writes the file. */
#define _GNU_SOURCE
#include "malloc.h"

#include <errno.h>
#include <signal.h>

#include "load/inproc/memory/owner.h"
#include "memory/alloc/alloc_record.h"
#include "memory/alloc/shim.h"
#include "run.h"
#include "session/family.h"
#include "tool.h"

enum { COMMAND_SHOWN = 80 }; /* bytes */

struct recorder {
	struct malloc_options *o;
	struct alloc_record record;
	struct record_files files;
	struct run run;
	struct family *family;
	char *program, *command;
};

/* Returns true when the session refuses programs that read memory at an address which they have
 * kept: a process that shares the memory could have changed it. */
static bool may_not_keep(const struct recorder *k, const struct session *s)
{
	bool any = false;

	for (uint32_t i = 0; i < s->targets.n; i++)
		any |= owner_has_privileges(s->targets.v[i].pid);
	return any && k->o->follow && plan_engine_named(&s->options) != &engine_kernel;
}

static void record_as(struct alloc_record *r, struct recorder *k, const struct session *s)
{
	alloc_record_init(r);
	r->depth = k->o->depth;
	r->follow = k->o->follow;
	r->no_addresses = may_not_keep(k, s);
	r->files = &k->files;
}

/* --- programs that traced processes execute --- */

static struct err *next_prepare(void *arg, struct session *s, void **ret_own)
{
	enum { BUFFER = 4 << 20 }; /* there may be many sessions */
	struct recorder *k = arg;
	struct alloc_record *r = xcalloc(1, sizeof(*r));
	cleanup_free char *program = NULL;
	struct err *e;

	*ret_own = r;
	record_as(r, k, s);
	e = alloc_record_program(r, &s->probes, s->targets.v[0].pid, &program);
	if (e)
		return e;
	options_put(&s->options, OPT_BUFSIZE, BUFFER);
	return session_source(s, PDESC_NAME, false, program);
}

static struct sink *next_sink(void *arg, void *own)
{
	return alloc_record_sink(own);
}

static void next_drop(void *arg, void *own)
{
	if (own)
		alloc_record_fini(own);
	free(own);
}

static void note_executed(void *arg, pid_t pid)
{
	struct recorder *k = arg;

	record_files_executed(&k->files, pid);
}

/* --- the first program --- */

static struct recorder *recorder_of(struct run *r)
{
	return (struct recorder *)((char *)r - offsetof(struct recorder, run));
}

static bool poll_family(struct run *r, struct err **ret_err)
{
	return family_poll(recorder_of(r)->family, -1, ret_err);
}

static struct err *end_family(struct run *r, bool ends)
{
	if (ends)
		family_end(recorder_of(r)->family);
	return NULL;
}

/* Called by run_all() when the process is there. */
static struct err *prepare(struct run *r, bool *ret_end)
{
	struct recorder *k = recorder_of(r);
	const struct family_setting family = {
		.first = &r->session,
		.prepare = next_prepare,
		.sink = next_sink,
		.executed = note_executed,
		.drop = next_drop,
		.arg = k,
	};
	struct probe_set *ps = &r->session.probes;
	struct alloc_writer *w;
	char pid[16];
	struct err *e;

	if (!ps->targets.n)
		return err_new(ESRCH, "there is no process");
	if (k->o->follow)
		k->family = family_new(&family);
	k->record.no_addresses = may_not_keep(k, &r->session);
	k->record.later = true;
	e = alloc_record_program(&k->record, ps, ps->targets.v[0].pid, &k->program);
	if (e)
		return e;
	if (k->o->show_d) {
		fputs(k->program, stdout);
		tool_check_output();
		*ret_end = true;
		return NULL;
	}
	e = alloc_writer_new(k->o->path, &w);
	if (e)
		return e;
	record_files_begin(&k->files, ps->targets.v[0].pid, w);
	snprintf(pid, sizeof(pid), "%d", (int)ps->targets.v[0].pid);
	alloc_writer_info(w, "pid", pid);
	if (k->command)
		alloc_writer_info(w, "command", k->command);
	alloc_writer_info(w, "attached", k->command ? "no" : "yes");
	k->files.attached = k->command ? 0 : ps->targets.v[0].pid;
	for (uint32_t i = 0; i < k->record.objects.n; i++)
		alloc_writer_info(w, "allocator", k->record.objects.v[i]);
	vec_push(&k->o->c.programs, (struct cmd_program){ PDESC_NAME, false, k->program });
	return NULL;
}

static void set_options(struct recorder *k)
{
	enum { RATE_NS = 1000000 };
	struct options *o = &k->run.session.options;

	options_put(o, OPT_QUIET, true);
	options_put(o, OPT_FOLLOW, k->o->follow);
	options_put(o, OPT_BUFSIZE, 16 << 20);
	options_put(o, OPT_SWITCHRATE, RATE_NS);
	options_put(o, OPT_EVALTIME, 1); /* preinit: the constructors' allocations, too */
}

/* Ends the files, and says what is in them. */
static int end(struct recorder *k, int status)
{
	struct record_files *f = &k->files;
	uint64_t events;
	struct err *e;

	if (!f->first)
		return status;
	events = alloc_writer_events(f->first->writer) - f->before;
	e = record_files_end(f);
	if (e) {
		status = tool_failed(e);
		err_free(e);
		return status;
	}
	fprintf(stderr, "descry malloc: %s: %llu calls\n", k->o->path, (unsigned long long)events);
	for (uint32_t i = 0; i < f->done.n; i++)
		fprintf(stderr, "descry malloc: %s: %llu calls of %.*s\n", f->done.v[i]->path,
			(unsigned long long)f->events.v[i], COMMAND_SHOWN, f->done.v[i]->command);
	if (f->before)
		fprintf(stderr,
			"descry malloc: and %llu blocks that were allocated before the recording\n",
			(unsigned long long)f->before);
	if (f->not_before)
		tool_wrong("blocks that were allocated before the recording are not known: %s",
			   f->not_before->text);
	if (f->lost)
		tool_wrong("%llu records were lost: the recording is not whole; -X bufsize=SIZE "
			   "makes the buffers larger",
			   (unsigned long long)f->lost);
	if (f->unstacked)
		tool_wrong(
			"%llu calls are without their stacks: there are more than a recording holds; "
			"-k N with a smaller N makes fewer",
			(unsigned long long)f->unstacked);
	if (f->faults)
		tool_wrong("%llu calls were left out: memory that they point to could not be read",
			   (unsigned long long)f->faults);
	if (f->refused)
		tool_wrong("%llu calls were left out: their processes have no file",
			   (unsigned long long)f->refused);
	if (f->error)
		status = tool_failed(f->error);
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
	if (o->follow && o->alone)
		return tool_wrong("-f or --alone?");
	record_files_init(&k.files, o->path);
	record_as(&k.record, &k, &k.run.session);
	k.run.c = &o->c;
	k.run.to = stderr;
	k.run.prepare = prepare;
	if (o->follow) {
		k.run.poll = poll_family;
		k.run.round = end_family;
	}
	run_init(&k.run);
	k.run.session.o.hands_over = o->follow;
	set_options(&k);
	status = run_all(&k.run, alloc_record_sink(&k.record));
	family_free(k.family);
	status = end(&k, status);
	if (!status && k.run.command_status >= 0)
		status = tool_command_status(k.run.command_status);
	alloc_record_fini(&k.record);
	record_files_fini(&k.files);
	free(k.program);
	free(k.command);
	return status;
}
