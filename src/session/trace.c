/* Tracing: from a loaded engine to the last printed record. */
#define _GNU_SOURCE
#include "session/session.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "program/runtime/languages.h"
#include "session/session_private.h"

/* Returns 1 when the user has requested the end, 2 when twice. */
static int asked(const struct session *s)
{
	return s->o.stop ? s->o.stop(s->o.arg) : 0;
}

/* Reads the targets' mappings now, because targets may end before their addresses are printed. */
static void remember_targets(struct session *s)
{
	for (uint32_t i = 0; s->names_user && i < s->targets.n; i++)
		symbols_remember(s->symbols, s->targets.v[i].pid);
}

/* Reports "pid 123 exited with status 2" in DTrace's words. */
static void say_end(struct session *s, const struct target *t)
{
	cleanup_free char *how = target_end(t);

	if (!opt_on(&s->options, OPT_QUIET) && !s->o.silent_ends)
		session_say(s, "pid %d %s", (int)t->pid, how);
}

static bool targets_gone(struct session *s)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < s->targets.n; i++) {
		bool before = s->targets.v[i].gone;

		gone += target_gone(&s->targets.v[i]);
		if (s->targets.v[i].gone && !before)
			say_end(s, &s->targets.v[i]);
	}
	return s->targets.n && gone == s->targets.n;
}

bool session_outlived(struct session *s)
{
	for (uint32_t i = 0; i < s->targets.n; i++)
		if (s->targets.v[i].command)
			return false;
	return targets_gone(s);
}

/* Returns the command's pid when only the command and its children can reach the probes; 0: any
 * process can. */
static pid_t only_command(const struct session *s)
{
	const pid_t pid = s->targets.n == 1 && s->targets.v[0].command ? s->targets.v[0].pid : 0;

	if (s->plan.inside_only)
		return pid;
	for (uint32_t i = 0; i < s->plan.image->nprobes; i++) {
		const struct probe *p = s->plan.image->probes[i].probe;

		if (p && p->pid != pid && p->kind != ATTACH_SELF && p->kind != ATTACH_TICK)
			return 0;
	}
	return pid;
}

/* Watches mappings for programs that print user addresses, because processes may have ended by
 * then. */
static void watch_mappings(struct session *s)
{
	if (!s->names_user)
		return;
	symbols_watch(s->symbols, only_command(s));
	remember_targets(s);
}

static bool any_behind(struct session *const *s, uint32_t n, uint64_t until)
{
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		struct engine *e = s[i]->plan.engine;

		any |= e->ops->behind && e->ops->behind(e, until) && !engine_exiting(e);
	}
	return any;
}

struct err *session_catch_up_all(struct session *const *s, uint32_t n, uint64_t until)
{
	const int before = asked(s[0]);
	struct err *err = NULL;

	/* An engine without behind() takes all records that are there in one pass. */
	do {
		sessions_wait(s, n, 0);
		err = sessions_pass(s, n);
	} while (!err && any_behind(s, n, until) && asked(s[0]) == before);
	return err;
}

struct err *session_catch_up(struct session *s, uint64_t until)
{
	return session_catch_up_all(&s, 1, until);
}

/* Waits until the next multiple of the switch rate, when the user has set -x switchrate. DTrace
 * ends tracing at such a time too. */
static void wait_for_switch(const struct session *s)
{
	int64_t rate = opt_num(&s->options, OPT_SWITCHRATE);
	uint64_t every = (uint64_t)rate, now = clock_ns(CLOCK_MONOTONIC), rest;

	if (!s->options.v[OPT_SWITCHRATE].set || rate <= 0)
		return;
	for (uint64_t end = s->began + (now - s->began + every - 1) / every * every;
	     now < end && !asked(s); now = clock_ns(CLOCK_MONOTONIC)) {
		struct timespec ts;

		rest = end - now;
		ts.tv_sec = (time_t)(rest / 1000000000);
		ts.tv_nsec = (long)(rest % 1000000000);
		nanosleep(&ts, NULL);
	}
}

static void say_left_out(struct session *s, uint32_t n)
{
	if (n && !opt_on(&s->options, OPT_QUIET))
		session_say(s, "%u more remarks are left out", n);
}

static void say_probe_notes(struct session *s)
{
	for (uint32_t i = 0; i < s->probes.notes.n && !opt_on(&s->options, OPT_QUIET); i++)
		session_say(s, "%s", s->probes.notes.v[i]);
	say_left_out(s, s->probes.remarks.left_out);
}

/* Prints the engine's new remarks: probes left out, buffers made smaller. With -q prints only one
 * line, about processes that are not traced or not completely. */
static void say_notes(struct session *s)
{
	const struct engine *e = s->plan.engine;
	bool quiet = opt_on(&s->options, OPT_QUIET);
	const char *first = NULL;
	uint32_t blind = 0;

	for (uint32_t i = s->remarks; i < e->nnotes; i++) {
		if (!quiet)
			session_say(s, "%s", e->notes[i].text);
		else if (e->notes[i].blind && !blind++)
			first = e->notes[i].text;
	}
	s->remarks = e->nnotes;
	if (blind > 1)
		session_say(s, "%s (and %u more such remarks, shown without -q)", first, blind - 1);
	else if (blind)
		session_say(s, "%s", first);
}

/* Runs BEGIN or END. With -x cpu, moves this process to that CPU, because all tracing happens
 * there. */
static struct err *fire(struct session *s, uint32_t prog)
{
	int64_t cpu = opt_num(&s->options, OPT_CPU);
	cpu_set_t before, one;
	bool moved = false;
	struct err *err;

	if (cpu >= 0 && cpu < CPU_SETSIZE && !sched_getaffinity(0, sizeof(before), &before)) {
		CPU_ZERO(&one);
		CPU_SET((size_t)cpu, &one);
		moved = !sched_setaffinity(0, sizeof(one), &one);
	}
	err = s->plan.engine->ops->fire(s->plan.engine, prog);
	if (moved)
		(void)sched_setaffinity(0, sizeof(before), &before);
	return err;
}

/* Reports, even with -q, that addresses have no names because this user may not look them up. */
static void say_unnamed(struct session *s)
{
	struct symbols_losses l;

	symbols_losses(s->symbols, &l);
	if (l.kernel)
		session_say(s, "addresses of the kernel have no names: %s", l.kernel);
	if (l.denied)
		session_say(
			s,
			"addresses of %llu process%s have no names (the first is process %d): reading "
			"/proc/PID/maps of others needs CAP_SYS_PTRACE, or to be their user",
			(unsigned long long)l.denied, l.denied == 1 ? "" : "es", (int)l.denied_pid);
	if (l.numberless)
		session_say(
			s,
			"%llu user address%s no names: their processes are of another pid namespace, and descry had not "
			"looked up their pids yet",
			(unsigned long long)l.numberless, l.numberless == 1 ? " has" : "es have");
}

/* Says that functions of interpreters have no names because of limits. */
static void say_unlearned(struct session *s)
{
	const uint64_t n = languages_left_out(s->languages);

	if (n)
		session_say(
			s,
			"%llu interpreter%s or function%s of traced processes could not be read: it "
			"takes too long, or there are too many",
			(unsigned long long)n, n == 1 ? "" : "s", n == 1 ? "" : "s");
}

/* Says which probes of JVMs do not fire any more. */
static void say_switched_off(struct session *s)
{
	struct java_switched f;

	while (java_switches_lost(&s->java, &f))
		session_say(
			s,
			"another tracer has reset the flag by which process %d passes the probes of %s: "
			"they have not fired since then",
			(int)f.pid, f.what);
}

enum { COMPILED_SAID = 8 }; /* processes that get a line of their own */

/* Says in which processes calls of methods are missed from now on. */
static void say_compiled(struct session *s)
{
	pid_t pid;

	while (ruby_watch_next(&s->ruby, &pid))
		if (++s->ncompiled <= COMPILED_SAID)
			session_say(
				s,
				"process %d: Ruby's own compiler (YJIT) has made code since the tracing began; calls of "
				"methods there pass no place that descry knows, and method-entry and method-return miss "
				"them",
				(int)pid);
}

/* The same at the end. */
static void say_compiled_more(struct session *s)
{
	say_compiled(s);
	if (s->ncompiled > COMPILED_SAID)
		session_say(s, "so has that of %u more processes", s->ncompiled - COMPILED_SAID);
}

static void say_budget(void *arg, const char *text)
{
	session_say(arg, "%s", text);
}

struct err *session_start(struct session *s, struct sink *sink)
{
	struct engine *e = s->plan.engine;
	struct wire_state who = {
		.self_pid = (uint32_t)getpid(),
		.boot_offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC),
		.target_pid = s->targets.n ? (uint32_t)vec_last(&s->targets)->pid : 0,
	};
	struct err *err;

	s->sink = sink;
	sink->message = session_message;
	sink->message_arg = s;
	sink->output = s->o.output;
	sink->progname = s->o.progname;
	sink->dtrace = s->o.dtrace;
	sink->options = &s->options;
	sink->symbols = s->symbols;
	sink->languages = s->languages;
	sink->types = s->types;
	s->names_user = image_prints_user_addresses(s->plan.image);
	s->consumer = consumer_new(e, sink, &s->options);
	watch_mappings(s);
	err = java_switches_on(s->plan.image, s->plan.inside_only, &s->java);
	err = err ?: e->ops->attach(e);
	if (err)
		return err;
	ruby_watch_begin(s->plan.image, opt_on(&s->options, OPT_FOLLOW), &s->ruby);
	say_probe_notes(s);
	say_notes(s);
	err = consumer_begin(s->consumer);
	engine_introduce(e, &who);
	engine_tell_machine(e);
	for (uint32_t i = 0; i < s->targets.n && e->ops->add_process; i++)
		e->ops->add_process(e, s->targets.v[i].pid, s->targets.v[i].command);
	if (!s->targets.n && e->ops->add_process)
		e->ops->add_process(e, 0, false);
	if (!err && s->plan.image->has_begin)
		err = fire(s, s->plan.image->begin_prog);
	engine_start(e);
	for (uint32_t i = 0; i < s->targets.n; i++)
		target_release(&s->targets.v[i]);
	budget_init(&s->budget, s->share, opt_on(&s->options, OPT_DROPTAGS), say_budget, s);
	s->began = clock_ns(CLOCK_MONOTONIC);
	return err;
}

/* Frees what a session does not need any more. */
static void tidy(struct session *s)
{
	symbols_watch_drain(s->symbols);
	symbols_tidy(s->symbols);
	languages_tidy(s->languages, clock_ns(CLOCK_MONOTONIC));
	symbols_close_idle(s->symbols, clock_ns(CLOCK_MONOTONIC));
	mem_give_back(clock_ns(CLOCK_MONOTONIC));
}

bool session_poll_all(struct session *const *s, uint32_t n, int timeout_ms, struct err **ret_err)
{
	struct session *first = s[0];
	struct engine *e = first->plan.engine;

	if (asked(first) || consumer_exited(first->consumer, &first->status))
		return false;
	for (uint32_t i = 0; i < n; i++)
		remember_targets(s[i]);
	if (targets_gone(first)) {
		*ret_err = session_catch_up_all(s, n, clock_ns(CLOCK_MONOTONIC));
		return false;
	}
	if (timeout_ms < 0)
		timeout_ms = (int)(consumer_interval(first->consumer) / 1000000);
	sessions_wait(s, n, timeout_ms);
	for (uint32_t i = 0; i < n; i++)
		engine_tell_machine(s[i]->plan.engine);
	*ret_err = sessions_pass(s, n);
	for (uint32_t i = 0; i < n; i++) {
		say_switched_off(s[i]);
		say_compiled(s[i]);
		tidy(s[i]);
	}
	/* After exit(), the last pass handles the records that this pass kept back to wait for
	 * older ones. */
	return budget_holds(&first->budget, e) && !engine_exiting(e) && !*ret_err;
}

bool session_poll(struct session *s, int timeout_ms, struct err **ret_err)
{
	return session_poll_all(&s, 1, timeout_ms, ret_err);
}

struct err *session_show(struct session *s)
{
	return consumer_show(s->consumer);
}

struct err *session_stop(struct session *s, struct err *e)
{
	struct engine *engine = s->plan.engine;
	struct err *detached;
	int caught;

	if (!e && (engine_exiting(engine) || consumer_exited(s->consumer, &s->status)))
		wait_for_switch(s);
	say_switched_off(s);
	say_compiled_more(s);
	engine_stop(engine);
	detached = engine->ops->detach(engine);
	java_switches_off(&s->java);
	ruby_watch_end(&s->ruby);
	if (!e && s->plan.image->has_end)
		e = fire(s, s->plan.image->end_prog);
	caught = asked(s);
	s->finishing = true;
	e = e ?: consumer_finish(s->consumer, opt_on(&s->options, OPT_REPORT), caught > 1);
	s->finishing = false;
	(void)consumer_exited(s->consumer, &s->status);
	say_notes(s);
	say_left_out(s, engine->remarks.left_out);
	session_say_debug(s);
	say_unnamed(s);
	say_unlearned(s);
	if (!e)
		return detached;
	err_free(detached);
	return e;
}
