/* Tracing: from the moment all is loaded to the last record printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "budget.h"
#include "run.h"
#include "stability.h"
#include "tool.h"

static volatile sig_atomic_t interrupted, at_end;

/* The second ^C leaves out what is printed at the end. One that comes with the first is not a
 * second one: timeout(1) sends its signal to us and to our process group. */
static void on_signal(int sig)
{
	enum { APART_NS = 200000000 };
	static uint64_t last;
	uint64_t now;
	int before = errno;

	if (sig == SIGCHLD)
		return;
	now = clock_ns(CLOCK_MONOTONIC);
	if (!interrupted || now - last >= APART_NS) {
		/* Nothing is traced any more; naming what was gathered may take long, and ends like
		 * any other program. */
		if (at_end) {
			signal(sig, SIG_DFL);
			raise(sig);
		}
		interrupted++;
	}
	last = now;
	errno = before;
}

bool cmd_interrupted(void)
{
	return interrupted != 0;
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal }; /* no SA_RESTART: waiting ends */

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	tool_ignore(SIGPIPE);
}

const char *run_source_kind(const struct source *s)
{
	return s->kind == SOURCE_FILE ? "script" : "description";
}

/* Under DTrace's name a description is shown as far as its predicate or body. */
size_t run_source_shown(const struct run *r, const struct source *s)
{
	size_t shown = (size_t)diag_shown(s->name);

	return r->c->dtrace_name && s->kind != SOURCE_FILE && strcspn(s->name, "{/;") < shown
		       ? strcspn(s->name, "{/;")
		       : shown;
}

static void say_matched(const struct run *r, const struct bound *b, const struct source *s)
{
	size_t shown = run_source_shown(r, s);
	uint32_t n = 0;

	for (uint32_t k = 0; k < b->clauses.n; k++)
		if (b->clauses.v[k]->loc >= s->base && b->clauses.v[k]->loc <= s->base + s->len)
			n += b->clauses.v[k]->nprobes;
	fprintf(stderr, "%s: %s '%.*s%s' matched %u probe%s\n", r->c->progname, run_source_kind(s),
		(int)shown, s->name, shown == (size_t)diag_shown(s->name) ? DIAG_CUT(s->name) : "",
		n, n == 1 ? "" : "s");
}

void run_say_matched(struct run *r, const struct bound *b)
{
	bool dtrace = r->c->dtrace_name, traces = r->c->mode != CMD_COMPILE;

	if (r->c->json)
		return;
	for (uint32_t i = 0, src = 0; i < r->diags.nsources && src < r->c->programs.n; i++) {
		const struct source *s = &r->diags.sources[i];

		if (s->kind == SOURCE_LIB)
			continue;
		if (!opt_on(&r->options, OPT_QUIET) && (traces || !dtrace))
			say_matched(r, b, s);
		if (dtrace && r->c->verbose)
			run_say_stability(r, b, s);
		src++;
	}
}

/* Targets may end before their addresses are printed. */
static void remember_targets(struct run *r)
{
	for (uint32_t i = 0; r->names_user && i < r->targets.n; i++)
		symbols_remember(r->symbols, r->targets.v[i].pid);
}

/* "pid 123 exited with status 2", as DTrace says it. */
static void say_end(struct run *r, const struct target *t)
{
	cleanup_free char *how = target_end(t);

	if (!opt_on(&r->options, OPT_QUIET) && !r->c->json)
		fprintf(stderr, "%s: pid %d %s\n", r->c->progname, (int)t->pid, how);
}

static bool targets_gone(struct run *r)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < r->targets.n; i++) {
		bool before = r->targets.v[i].gone;

		gone += target_gone(&r->targets.v[i]);
		if (r->targets.v[i].gone && !before)
			say_end(r, &r->targets.v[i]);
	}
	return r->targets.n && gone == r->targets.n;
}

/* The command, when only it, and what it forks, can be met; 0: anybody can. */
static pid_t only_command(const struct run *r)
{
	const pid_t pid = r->targets.n == 1 && r->targets.v[0].command ? r->targets.v[0].pid : 0;

	if (r->plan.inside_only)
		return pid;
	for (uint32_t i = 0; i < r->plan.image->nprobes; i++) {
		const struct probe *p = r->plan.image->probes[i].probe;

		if (p && p->pid != pid && p->kind != ATTACH_SELF && p->kind != ATTACH_TICK)
			return 0;
	}
	return pid;
}

/* Programs that print user addresses need the mappings of processes that are gone by then. */
static void watch_mappings(struct run *r)
{
	if (!r->names_user)
		return;
	symbols_watch(r->symbols, only_command(r));
	remember_targets(r);
}

/* What happened before the targets ended is seen before tracing does. */
static struct err *catch_up(struct run *r, uint64_t until)
{
	struct engine *e = r->plan.engine;
	struct err *err = NULL;

	while (!err && e->ops->behind && !interrupted) {
		e->ops->poll(e, 0);
		err = consumer_pass(r->consumer);
		if (!e->ops->behind(e, until) || engine_exiting(e))
			break;
	}
	return err;
}

/* Who asked for buffers to be taken every so often gets the end of tracing at one of these times,
 * too, as in DTrace. */
static void wait_for_switch(struct run *r, uint64_t began)
{
	int64_t rate = opt_num(&r->options, OPT_SWITCHRATE);
	uint64_t every = (uint64_t)rate, now = clock_ns(CLOCK_MONOTONIC), rest;

	if (!r->options.v[OPT_SWITCHRATE].set || rate <= 0)
		return;
	for (uint64_t end = began + (now - began + every - 1) / every * every;
	     now < end && !interrupted; now = clock_ns(CLOCK_MONOTONIC)) {
		struct timespec ts;

		rest = end - now;
		ts.tv_sec = (time_t)(rest / 1000000000);
		ts.tv_nsec = (long)(rest % 1000000000);
		nanosleep(&ts, NULL);
	}
}

static struct err *loop(struct run *r, int *ret_status)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct engine *e = r->plan.engine;
	struct err *err = NULL;
	struct budget budget;

	budget_init(&budget, r->budget, r->c->progname, opt_on(&r->options, OPT_DROPTAGS));
	while (!err && !interrupted && !(r->c->stop && *r->c->stop) &&
	       !consumer_exited(r->consumer, ret_status)) {
		remember_targets(r);
		if (targets_gone(r)) {
			err = catch_up(r, clock_ns(CLOCK_MONOTONIC));
			break;
		}
		e->ops->poll(e, (int)(consumer_interval(r->consumer) / 1000000));
		engine_tell_machine(e);
		err = consumer_pass(r->consumer);
		symbols_watch_drain(r->symbols);
		if (!budget_holds(&budget, e))
			break;
		/* exit() was called: the last pass does what this one left for older records to
		 * come first. */
		if (engine_exiting(e))
			break;
	}
	budget_fini(&budget);
	if (!err && (engine_exiting(e) || consumer_exited(r->consumer, ret_status)))
		wait_for_switch(r, began);
	return err;
}

static void say_probe_notes(struct run *r)
{
	for (uint32_t i = 0; i < r->probes.notes.n && !opt_on(&r->options, OPT_QUIET); i++)
		fprintf(stderr, "%s: %s\n", r->c->progname, r->probes.notes.v[i]);
}

/* Remarks of the engine from number `from` on: probes that are left out, buffers made smaller. With
 * -q one line tells of processes that are not seen, or not all of them. */
static void say_notes(struct run *r, uint32_t from)
{
	const struct engine *e = r->plan.engine;
	bool quiet = opt_on(&r->options, OPT_QUIET);
	const char *first = NULL;
	uint32_t blind = 0;

	for (uint32_t i = from; i < e->nnotes; i++) {
		if (!quiet)
			fprintf(stderr, "%s: %s\n", r->c->progname, e->notes[i].text);
		else if (e->notes[i].blind && !blind++)
			first = e->notes[i].text;
	}
	if (blind > 1)
		fprintf(stderr, "%s: %s (and %u more such remarks, shown without -q)\n",
			r->c->progname, first, blind - 1);
	else if (blind)
		fprintf(stderr, "%s: %s\n", r->c->progname, first);
}

/* BEGIN or END: with -x cpu on that CPU, as everything else that is traced. */
static struct err *fire(struct run *r, uint32_t prog)
{
	int64_t cpu = opt_num(&r->options, OPT_CPU);
	cpu_set_t before, one;
	bool moved = false;
	struct err *err;

	if (cpu >= 0 && cpu < CPU_SETSIZE && !sched_getaffinity(0, sizeof(before), &before)) {
		CPU_ZERO(&one);
		CPU_SET((size_t)cpu, &one);
		moved = !sched_setaffinity(0, sizeof(one), &one);
	}
	err = r->plan.engine->ops->fire(r->plan.engine, prog);
	if (moved)
		(void)sched_setaffinity(0, sizeof(before), &before);
	return err;
}

/* Tells the user, with -q too, that the output has addresses because this user may not look names
 * up. */
static void say_unnamed(struct run *r)
{
	struct symbols_losses l;

	symbols_losses(r->symbols, &l);
	if (l.kernel)
		fprintf(stderr, "%s: addresses of the kernel have no names: %s\n", r->c->progname,
			l.kernel);
	if (l.denied)
		fprintf(stderr,
			"%s: addresses of %llu process%s have no names: reading /proc/PID/maps of others needs "
			"CAP_SYS_PTRACE, or to be their user\n",
			r->c->progname, (unsigned long long)l.denied, l.denied == 1 ? "" : "es");
}

static struct err *trace(struct run *r, int *ret_status)
{
	struct engine *e = r->plan.engine;
	struct err *err, *err2;
	struct wire_state who = {
		.self_pid = (uint32_t)getpid(),
		.boot_offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC),
	};
	uint32_t said;
	int caught;

	watch_mappings(r);
	err = e->ops->attach(e);
	if (err)
		return err;
	say_probe_notes(r);
	say_notes(r, 0);
	said = e->nnotes;
	err = consumer_begin(r->consumer);
	who.target_pid = r->targets.n ? (uint32_t)vec_last(&r->targets)->pid : 0;
	engine_introduce(e, &who);
	engine_tell_machine(e);
	for (uint32_t i = 0; i < r->targets.n && e->ops->add_process; i++)
		e->ops->add_process(e, r->targets.v[i].pid, r->targets.v[i].command);
	if (!r->targets.n && e->ops->add_process)
		e->ops->add_process(e, 0, false);
	if (!err && r->plan.image->has_begin)
		err = fire(r, r->plan.image->begin_prog);
	engine_start(e);
	for (uint32_t i = 0; i < r->targets.n; i++)
		target_release(&r->targets.v[i]);
	if (!err)
		err = loop(r, ret_status);
	engine_stop(e);
	err2 = e->ops->detach(e);
	if (!err && r->plan.image->has_end)
		err = fire(r, r->plan.image->end_prog);
	caught = interrupted;
	at_end = true;
	if (!err)
		err = consumer_finish(r->consumer, opt_on(&r->options, OPT_REPORT), caught > 1);
	at_end = false; /* `descry serve` runs the next one */
	(void)consumer_exited(r->consumer, ret_status);
	say_notes(r, said);
	say_unnamed(r);
	if (!err)
		return err2;
	err_free(err2);
	return err;
}

int run_trace(struct run *r, const struct bound *b)
{
	struct err *e;
	int status = 0;

	r->sink = r->c->sink ? r->c->sink : r->c->json ? sink_json_new() : sink_text_new();
	r->c->sink = NULL;
	r->sink->out = r->out;
	r->sink->err = stderr;
	r->sink->progname = r->c->progname;
	r->sink->options = &r->options;
	r->sink->symbols = r->symbols;
	r->sink->types = r->types;
	r->names_user = image_prints_user_addresses(r->plan.image);
	r->consumer = consumer_new(r->plan.engine, r->sink, &r->options);
	catch_signals();
	run_say_matched(r, b);
	if (r->c->dtrace_name && !r->c->json && opt_on(&r->options, OPT_DESTRUCTIVE) &&
	    !opt_on(&r->options, OPT_QUIET))
		fprintf(stderr, "dtrace: allowing destructive actions\n");
	e = trace(r, &status);
	if (e)
		return run_failed(r, e);
	return status;
}
