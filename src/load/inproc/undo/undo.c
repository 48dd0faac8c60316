/* Finds the undo log of a process, and removes the patches and mappings that it lists. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/inproc/undo/undo_private.h"

static const int signals[WIRE_SIGNALS] = { SIGSEGV, SIGBUS, SIGTRAP };

/* --- signal actions --- */

/* Restores the program's own actions where descry's are installed. */
static struct err *restore_signals(struct control *c, const struct undo_log *log,
				   struct undo_report *r)
{
	uint64_t at = log->base + WIRE_PRIVATE;
	struct wire_sigaction now;
	struct wire_private p;
	struct err *e = NULL;
	uint32_t off = 1;
	int64_t got;

	e = control_read(c, at, &p, offsetof(struct wire_private, threads));
	e = e ?: control_write(c, at + offsetof(struct wire_private, off), &off, sizeof(off));
	if (e) { /* a forked child that has unmapped it, or an attach that was cut short */
		err_free(e);
		return NULL;
	}
	for (int i = 0; !e && i < WIRE_SIGNALS; i++) {
		uint64_t scratch = at + offsetof(struct wire_private, spare);
		uint64_t own = at + offsetof(struct wire_private, action) +
			       (uint64_t)i * sizeof(struct wire_sigaction);

		if (!(p.signals >> i & 1))
			continue;
		e = control_syscall(c, SYS_rt_sigaction,
				    (uint64_t[6]){ (uint64_t)signals[i], 0, scratch, 8 }, &got);
		if (!e && got == 0)
			e = control_read(c, scratch, &now, sizeof(now));
		if (e || got || now.handler < log->base ||
		    now.handler >= log->base + WIRE_CODE_SIZE)
			continue;
		e = control_syscall(c, SYS_rt_sigaction,
				    (uint64_t[6]){ (uint64_t)signals[i], own, 0, 8 }, &got);
		r->signals += !e && got == 0;
	}
	return e;
}

/* --- mappings --- */

/* Mappings to be removed, in this order: private, islands, code, shared, facts. */
struct ours {
	undo_ranges v;
	uint32_t code;    /* more than this cannot be just data */
	undo_ranges kept; /* islands that are not removed */
};

/* Finds the mappings of the memory files of that name. base 0: of any area. */
static void add_memfds(struct ours *ret, const struct mappings *maps, const char *name,
		       uint64_t base)
{
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (mapping_is_memfd(m, name) && (!base || undo_base_of(m->start) == base))
			vec_push(&ret->v, (struct control_range){ m->start, m->end });
	}
}

static struct err *find_ours(struct control *c, const struct undo_log *log, struct ours *ret)
{
	const uint64_t private = log->base + WIRE_PRIVATE;
	const struct mappings *maps;
	const struct mapping *m;
	char island[UNDO_NAME];
	struct err *e = control_maps(c, &maps);

	if (e)
		return e;
	m = mappings_find(maps, private);
	/* exactly the mapped range: the program may have memory of its own behind it, even in the
	 * same mapping */
	if (log->private_size && m && !m->inode && m->start == private)
		vec_push(&ret->v, (struct control_range){ private, private + log->private_size });
	/* also those of an attach that was cut short, and of libraries that are gone */
	undo_island_name(log->base, island);
	add_memfds(ret, maps, island, 0);
	add_memfds(ret, maps, WIRE_MEMFD_CODE, log->base);
	ret->code = ret->v.n;
	add_memfds(ret, maps, WIRE_MEMFD_SHARED, log->base);
	/* a forked child's own memory (agent/fork.c) */
	m = mappings_find(maps, log->base + WIRE_SHARED);
	if (log->private_size && m && !m->inode && m->start == log->base + WIRE_SHARED)
		vec_push(&ret->v, (struct control_range){ m->start, m->end });
	/* the last one, because it holds the log */
	add_memfds(ret, maps, WIRE_MEMFD_FACTS, log->base);
	return NULL;
}

/* Moves the islands that stay to ours->kept. Threads may be in their stubs, but not in the bells in
 * front of these, which wait for the tracer. */
static struct err *set_kept_aside(struct control *c, struct undo_log *log, struct ours *ours)
{
	struct err *e = undo_find_kept(c, log, &ours->kept);

	for (uint32_t i = 0; i < ours->code && !e; i++) {
		struct control_range *r = &ours->v.v[i];
		uint64_t stubs;

		if (!undo_is_kept(&ours->kept, r->lo))
			continue;
		stubs = undo_first_stub(log, r->lo);
		if (stubs < r->hi)
			r->hi = stubs;
	}
	return e;
}

static struct err *keep(struct control *c, const struct ours *m, struct undo_report *r)
{
	uint64_t left = UNDO_KEPT_MAX;
	struct err *e = NULL;

	for (uint32_t i = 0; i < m->kept.n && !e; i++)
		e = undo_keep(c, m->kept.v[i], &left);
	if (!e)
		r->kept += m->kept.n;
	if (!e || e->code == EPERM)
		return e;
	err_free(e); /* so everything stays, and the process runs on */
	r->busy = control_pid(c);
	return NULL;
}

static struct err *unmap(struct control *c, const struct ours *m, struct undo_report *r)
{
	struct err *e = NULL;
	int64_t got;

	for (uint32_t i = 0; !e && i < m->v.n; i++) {
		/* the beginnings of islands that stay are not unmapped */
		if (undo_is_kept(&m->kept, m->v.v[i].lo))
			continue;
		e = control_syscall(c, SYS_munmap,
				    (uint64_t[6]){ m->v.v[i].lo, m->v.v[i].hi - m->v.v[i].lo },
				    &got);
		if (!e && got)
			e = err_errno((int)-got, "munmap in process %d", control_pid(c));
		r->unmapped += !e;
	}
	return e;
}

/* --- the whole restoration --- */

/* Skips the steps that need system calls where the process can make none. Only signals reach the
 * code that stays, and this code works without a tracer. */
static struct err *or_filtered(struct err *e, struct undo_report *r)
{
	if (!e || e->code != EPERM)
		return e;
	r->filtered = true;
	err_free(e);
	return NULL;
}

/* Returns true when the log's area is still the one at this base. */
static bool is_there(struct control *c, const struct undo_log *log)
{
	const struct mappings *maps;
	uint64_t facts = 0, code = 0;

	if (err_drop(control_maps(c, &maps)))
		return false;
	undo_find_inodes(maps, log->base, &facts, &code);
	return facts == log->inode && code == log->code_inode;
}

/* Reads the log in the stop. Since the first reading, a living tracer may have mapped the rest of
 * its area, or patched the text of a library. */
static struct err *read_again(struct control *c, struct undo_log *log)
{
	struct undo_log now = { 0 };
	struct err *e = log->own ? NULL : undo_log_read(c, log->base, &now);

	if (e || log->own)
		return e;
	undo_log_fini(log);
	*log = now;
	return NULL;
}

/* Restores text: for this tracer's own log in the first stop only, and for another tracer's in each
 * stop, because that tracer may patch more. The report's other counts are those of the first
 * stop. */
static struct err *restore_text(struct control *c, struct undo_log *log, bool again,
				struct undo_report *r)
{
	const struct undo_report first = *r;
	struct err *e;

	if (again && log->own)
		return NULL;
	e = undo_restore_text(c, log, r);
	if (again) {
		r->clean = first.clean;
		r->foreign = first.foreign;
		r->gone = first.gone;
	}
	return e;
}

/* Other processes that run in the process's memory. The engine detaches when a traced process makes
 * one (agent/agent_clone.c), but some are only found later, in text that has jumps. */
struct sharers {
	VEC(struct control *) v;
};

static void let_go(struct sharers *s)
{
	for (uint32_t i = 0; i < s->v.n; i++)
		control_free(s->v.v[i]);
	vec_fini(&s->v);
}

static bool is_among(const struct sharers *s, pid_t pid)
{
	for (uint32_t i = 0; i < s->v.n; i++)
		if (control_pid(s->v.v[i]) == pid)
			return true;
	return false;
}

/* Stops them too, when the process itself is stopped. A sharer may make another one meanwhile. */
static struct err *stop_sharers(struct control *c, int timeout_ms, struct sharers *ret)
{
	enum { MOST = 64, ROUNDS = 4 };
	pid_t pids[MOST];
	struct err *e = NULL;
	bool more = true;

	for (int round = 0; more && round < ROUNDS && !e; round++) {
		const uint32_t n = control_memory_sharers(control_pid(c), pids, MOST);

		more = false;
		for (uint32_t i = 0; i < n && !e; i++) {
			struct control *one = NULL;

			if (is_among(ret, pids[i]))
				continue;
			more = true;
			e = control_open(pids[i], &one) ?: control_stop(one, timeout_ms);
			if (e && e->code == ESRCH) {
				err_free(e);
				e = NULL;
				control_free(one);
			} else if (one) {
				vec_push(&ret->v, one);
			}
		}
	}
	if (!e && more)
		e = err_new(
			EBUSY,
			"processes in the memory of process %d start others faster than they can be stopped",
			(int)control_pid(c));
	return e;
}

/* Does for the sharers what restore_once() does for the process. A sharer that was made without
 * CLONE_SIGHAND has signal actions of its own. */
static struct err *move_sharers_out(const struct sharers *s, pid_t pid, const struct undo_log *log,
				    const struct ours *ours, struct undo_report *r)
{
	struct err *e = NULL;

	for (uint32_t i = 0; i < s->v.n && !e; i++) {
		struct control *c = s->v.v[i];
		pid_t busy = 0;

		e = undo_move_out(c, log, &r->moved) ?: undo_move_leaving(c, log, &r->moved);
		e = e ?: control_refers(c, ours->v.v, ours->code, false, &busy);
		r->busy = r->busy ?: busy;
	}
	for (uint32_t i = 0; i < s->v.n && !e && !r->busy; i++)
		if (syscall(SYS_kcmp, pid, control_pid(s->v.v[i]), KCMP_SIGHAND, 0, 0))
			e = or_filtered(restore_signals(s->v.v[i], log, r), r);
	return e;
}

/* Makes one stop: restores text and program counters. Also restores the signal actions and removes
 * the mappings, when no thread can return to them. */
static struct err *restore_once(struct control *c, struct undo_log *log, int timeout_ms,
				bool *again, struct undo_report *r)
{
	struct ours ours = { 0 };
	struct sharers sharers = { 0 };
	struct err *e = control_stop(c, timeout_ms);

	r->busy = 0;
	r->filtered = false;
	if (e)
		return e;
	e = read_again(c, log);
	/* another program has restored the process, and perhaps a tracer has begun anew */
	if (!e && !is_there(c, log))
		return control_resume(c);
	e = e ?: stop_sharers(c, timeout_ms, &sharers);
	e = e ?: restore_text(c, log, *again, r);
	*again |= !e;
	e = e ?: undo_move_out(c, log, &r->moved);
	e = e ?: undo_move_leaving(c, log, &r->moved);
	e = e ?: find_ours(c, log, &ours) ?: set_kept_aside(c, log, &ours);
	/* A return address into a stub is on the stack only while the thread is in the thunk that
	 * the stub called, or in a handler that interrupted it there. So checking program counters
	 * is enough. Shared memory and facts are data. */
	e = e ?: control_refers(c, ours.v.v, ours.code, false, &r->busy);
	e = e ?: move_sharers_out(&sharers, control_pid(c), log, &ours, r);
	if (!e && !r->busy)
		e = or_filtered(keep(c, &ours, r), r);
	/* a thread that is in descry's code may need the handlers to leave it */
	if (!e && !r->busy && !r->filtered)
		e = or_filtered(restore_signals(c, log, r) ?: unmap(c, &ours, r), r);
	vec_fini(&ours.v);
	vec_fini(&ours.kept);
	let_go(&sharers);
	if (e && e->code == EBUSY) { /* the only thread waits for its vfork child */
		err_free(e);
		e = NULL;
		r->busy = control_pid(c);
	}
	if (e)
		err_free(control_resume(c));
	else
		e = control_resume(c);
	return e;
}

struct err *undo_restore(struct control *c, struct undo_log *log, int timeout_ms,
			 struct undo_report *ret)
{
	uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000;
	long pause = 200000;
	bool again = false;
	struct err *e;

	do {
		e = restore_once(c, log, timeout_ms, &again, ret);
		if (e || !ret->busy)
			return e;
		nap_ns(pause);
		if (pause < 50000000)
			pause *= 2;
	} while (now_ns() < end);
	return NULL;
}

struct err *undo_quiet(struct control *c, int timeout_ms)
{
	return control_stop(c, timeout_ms) ?: control_resume(c);
}

struct err *undo_all(struct control *c, int timeout_ms, struct undo_report *ret)
{
	uint64_t bases[WIRE_BASES];
	struct err *e;
	uint32_t n;

	*ret = (struct undo_report){ 0 };
	e = undo_quiet(c, timeout_ms) ?: undo_strays(c, 0, 0, timeout_ms, ret) ?: undo_areas(c, bases, &n);
	for (uint32_t i = 0; !e && i < n; i++) {
		struct undo_log log;
		pid_t busy = ret->busy;

		e = undo_log_read(c, bases[i], &log);
		if (e)
			break;
		e = undo_restore(c, &log, timeout_ms, ret);
		ret->busy = ret->busy ?: busy;
		undo_log_fini(&log);
	}
	return e;
}
