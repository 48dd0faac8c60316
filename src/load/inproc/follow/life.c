/* Processes that begin or change while they are traced: followed children, and processes that
 * execute another program, which removes all of descry's mappings. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/procstatus.h"
#include "load/inproc/attach/inproc_attach.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/memory/pace.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/identity.h"
#include "load/inproc/state/process_state.h"

enum {
	/* number of looks, some milliseconds apart, until the new program's libraries are mapped */
	EXEC_TRIES = 50,
	GLANCE_MS = 50,
	ANCESTORS = 256,
	SEARCHES = 32,
	ADOPT_SHARE = 2, /* pauses after an adoption, in times of its length */
};

/* Returns the process's number in its own pid namespace: the last number of the line. */
static uint32_t own_number(pid_t pid)
{
	return procstatus_of(pid, "NSpid", PROCSTATUS_LAST);
}

/* Returns the named process that this one descends from, by the ancestors that still exist. When
 * all of them have ended, returns the first named process. */
static pid_t root_of(const struct inproc_engine *e, pid_t pid)
{
	for (int n = 0; n < ANCESTORS && pid > 1; n++) {
		pid = (pid_t)procstatus_of(pid, "PPid", 0);
		for (uint32_t i = e->processes.n; i-- > 0;)
			if (e->processes.v[i].pid == pid && e->processes.v[i].root)
				return e->processes.v[i].root;
	}
	return e->named.ntargets ? e->named.targets[0].pid : 0;
}

static bool any_served(const struct inproc_engine *e)
{
	bool any = false;

	for (uint32_t i = 0; i < e->processes.n; i++)
		any |= e->processes.v[i].served;
	return any;
}

void process_remember(struct inproc_engine *e, pid_t pid)
{
	if (image_prints_user_addresses(e->base.image))
		symbols_remember(e->symbols, pid);
}

/* Writes the numbers in the tracer's namespace into the slots that threads of a child of another
 * pid namespace took before process_describe(). For later threads the agent's show_numbers() does
 * this. */
static void number_threads(struct inproc_engine *e, const struct inproc_process *p)
{
	const struct wire_process *w = &e->list[p->index];

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 1; w->pid != w->own_pid && i < e->room.nthreads; i++) {
		struct wire_thread *t = area_thread(e, i);
		uint32_t tid = __atomic_load_n(&t->own_tid, __ATOMIC_RELAXED);

		if (__atomic_load_n(&t->owner, __ATOMIC_SEQ_CST) != p->index + 1)
			continue;
		t->pid = w->pid;
		t->tid = tid == w->own_pid ? w->pid : tid;
	}
}

/* Adds a child that is traced together with its parents. ranges_look() and unwind_refresh() read
 * its mappings, because a child can have a long list of them. */
static void adopt(struct inproc_engine *e, uint32_t i, pid_t pid)
{
	struct inproc_process *p = vec_add(&e->processes);

	*p = inproc_process_of(pid);
	p->root = 0; /* 0 meanwhile, so that root_of() does not find this entry */
	p->index = i;
	p->attached = p->child = true;
	p->root = root_of(e, pid);
	p->served = any_served(e);
	p->quiet = e->said[i].quiet;
	process_open(p);
	process_describe(e, p);
	number_threads(e, p);
	p->ranges_new = p->unwind_new = true;
	process_remember(e, p->pid);
}

/* Adopts the process when it is not known yet and has the shared memory mapped. Only such a process
 * can be the child that wrote its own number into the list at `i`, because children get this memory
 * from their parents. (A process that shares descriptors with a traced one can copy those of an
 * attach and map the memory; it is then treated as a child.) */
static bool adopt_child(struct inproc_engine *e, uint32_t i, pid_t pid)
{
	const uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const bool is = !process_is_attached(e, pid) && process_has_area(e, pid);

	if (is)
		adopt(e, i, pid);
	e->family.adopt_took += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	return is;
}

/* A child that has given its number in its own pid namespace, and that is not found here by that
 * number. It is in another namespace, has ended, or executes another program. */
struct missing {
	uint32_t i, own; /* i: in wire_area.processes */
	bool found;
};
typedef VEC(struct missing) missing_vec;

/* One pass over /proc, for all of them. Returns how many were found; *ret_whole: false when the
 * processes with such numbers took more time than a round has. */
static uint32_t search(struct inproc_engine *e, missing_vec *missing, bool *ret_whole)
{
	cleanup_dir DIR *d = opendir("/proc");
	uint32_t n = 0;

	*ret_whole = true;
	for (pid_t pid; n < missing->n && *ret_whole && procdir_next(d, &pid);) {
		const uint32_t own = own_number(pid);

		for (uint32_t k = 0; k < missing->n && *ret_whole; k++) {
			struct missing *m = &missing->v[k];

			if (m->found || m->own != own)
				continue;
			*ret_whole = e->family.adopt_took < PACE_ROUND;
			m->found = *ret_whole && adopt_child(e, m->i, pid);
			n += m->found;
		}
	}
	return n;
}

static void give_up(struct inproc_engine *e, const struct missing *m)
{
	struct wire_process *w = &e->list[m->i];

	w->pid = w->own_pid = m->own;
	events_lost(e, m->i, (pid_t)m->own);
	__atomic_store_n(&w->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
}

/* Adopts those that are there; the others are over. Returns how many were adopted, or are left for
 * the next round because this one has made its searches or has no more time. */
static uint32_t adopt_missing(struct inproc_engine *e, missing_vec *missing)
{
	bool whole;
	uint32_t n;

	if (!missing->n || !e->family.searches)
		return missing->n;
	e->family.searches--;
	n = search(e, missing, &whole);
	for (uint32_t k = 0; k < missing->n && whole; k++)
		if (!missing->v[k].found)
			give_up(e, &missing->v[k]);
	return whole ? n : missing->n;
}

void processes_round(struct inproc_engine *e)
{
	e->family.searches = SEARCHES;
	hash_fini(e->family.looked);
}

static bool was_traced(const struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid)
			return true;
	return false;
}

/* Restores children that cannot report to the tracer, which finds them by their mappings: those
 * that are not followed and whose agent makes no system calls, and those that were to be followed
 * and began amid the detach, so that no probe is left in them. */
uint32_t processes_sweep(struct inproc_engine *e, uint64_t end)
{
	cleanup_dir DIR *d = (e->area->follow || processes_filtered(e->area)) && !any_served(e)
				     ? opendir("/proc")
				     : NULL;
	uint32_t n = 0;

	for (pid_t pid; procdir_next(d, &pid);) {
		struct err *err;

		if (now_ns() >= end)
			return n + 1;
		if (was_traced(e, pid) || procdir_start(pid) < e->family.oldest ||
		    !process_has_area(e, pid))
			continue;
		err = process_restore(e, pid);
		n += !err;
		if (err && err->code != ESRCH)
			inproc_note(e, "%s", err->text);
		err_free(err);
	}
	return n;
}

/* Looks for children that have numbered themselves. Those already handled have a pid. Children that
 * are not followed have no shared memory, so they have no number. */
static uint32_t adopt_listed(struct inproc_engine *e)
{
	uint32_t n = __atomic_load_n(&e->common->child_count, __ATOMIC_ACQUIRE), adopted = 0;
	missing_vec missing = { 0 };

	for (uint32_t i = WIRE_PROCESSES_MAX - 1; n && i >= e->area->process_count; i--, n--) {
		uint32_t own = __atomic_load_n(&e->said[i].own_pid, __ATOMIC_ACQUIRE);

		if (!own || e->list[i].pid)
			continue;
		if (e->family.adopt_took >= PACE_ROUND) {
			adopted++; /* left for the next round */
			break;
		}
		if (own <= INT32_MAX && own_number((pid_t)own) == own &&
		    adopt_child(e, i, (pid_t)own))
			adopted++;
		else
			vec_push(&missing, ((struct missing){ .i = i, .own = own }));
	}
	adopted += adopt_missing(e, &missing);
	vec_fini(&missing);
	return adopted;
}

uint32_t processes_adopt(struct inproc_engine *e)
{
	uint32_t adopted;

	if (!e->area->follow || (!e->area->closing && now_ns() < e->family.adopt_next))
		return 0;
	e->family.adopt_took = 0;
	adopted = adopt_listed(e);
	e->family.adopt_next = pace_next(now_ns(), e->family.adopt_took, ADOPT_SHARE);
	return adopted;
}

/* Returns true when the new program's dynamic linker has set up the identity words of its
 * threads. */
static bool has_begun(const struct inproc_engine *e, pid_t pid)
{
	struct control *c = NULL;
	bool begun = true;
	struct err *err = control_open(pid, &c) ?: control_stop(c, GLANCE_MS);
	uint32_t n = 0;
	struct control_thread *t = err ? NULL : control_threads(c, &n);

	for (uint32_t i = 0; i < n; i++)
		begun &= t[i].blocked || t[i].guest || identity_is_set(e, &t[i].regs);
	control_free(c);
	err_free(err); /* process_enter() gets the same error again */
	return begun;
}

/* Notes that the process has left its program, which removes everything of descry's. */
static void leave_program(struct inproc_engine *e, struct inproc_process *p)
{
	if (!p->attached)
		return;
	events_exec(e, p);
	__atomic_store_n(&e->list[p->index].state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
	p->attached = false;
	p->exec_tries = EXEC_TRIES;
}

/* Enables the same probes in the new program. */
static struct err *enter_next(struct inproc_engine *e, uint32_t i)
{
	struct inproc_process *p = &e->processes.v[i];
	struct inproc_process next = inproc_process_of(p->pid);

	next.root = p->root;
	next.execs = p->execs + 1;
	next.exec_tries = p->exec_tries;
	process_free(p);
	*p = next;
	unwind_add(e, p->pid);
	process_remember(e, p->pid);
	return process_enter(e, i);
}

/* Frees the data of a process that has ended, because the data of many would add up. Keeps the
 * facts that are still needed. */
static void ended(struct inproc_process *p)
{
	struct inproc_process gone = inproc_process_of(p->pid);

	gone.root = p->root;
	gone.index = p->index;
	gone.execs = p->execs;
	gone.ended = true;
	gone.waiting = p->waiting; /* kept, so that files that were never mapped are reported */
	p->waiting = NULL;
	process_free(p);
	*p = gone;
}

/* Gives a process that has left its program to the engine's caller. For this engine it has
 * ended. */
static void hand_over(struct inproc_engine *e, uint32_t i, struct control *c)
{
	ended(&e->processes.v[i]);
	e->named.executed(e->named.executed_arg, e->processes.v[i].pid, c);
}

/* Attaches to the new program when one of the files with probes is mapped. */
static void follow_exec(struct inproc_engine *e, uint32_t i)
{
	struct inproc_process *p = &e->processes.v[i];
	const uint32_t index = p->index;
	struct err *err;
	int tries;

	leave_program(e, p);
	if (p->served) {
		inproc_blind(
			e,
			"process %d executed another program, which is not traced: ptrace(2) is forbidden here",
			(int)p->pid);
		p->exec_tries = 0;
		return;
	}
	if (((!e->named.executed && !sites_any(e, p->pid)) || !has_begun(e, p->pid)) &&
	    --p->exec_tries)
		return;
	tries = p->exec_tries;
	inproc_blind(e, "process %d executed another program: probes were off while it started",
		     (int)p->pid);
	if (e->named.executed) {
		hand_over(e, i, NULL);
		return;
	}
	err = enter_next(e, i);
	p = &e->processes.v[i];
	if (err && err->code == ESRCH && tries > 1) {
		/* the process executes one program after the other */
		p->index = index;
		p->exec_tries = tries - 1;
	} else {
		p->exec_tries = 0;
		if (err)
			inproc_blind(e, "%s", err->text);
	}
	err_free(err);
}

/* Returns the process's index in e->processes, or e->processes.n when it is not there. */
static uint32_t find_number(const struct inproc_engine *e, pid_t pid)
{
	uint32_t i = 0;

	while (i < e->processes.n &&
	       (e->processes.v[i].pid != pid ||
		(!e->processes.v[i].attached && !e->processes.v[i].exec_tries)))
		i++;
	return i;
}

/* Adds a process that becomes known by executing a program. */
static void add_executed(struct inproc_engine *e, pid_t pid)
{
	vec_push(&e->processes, inproc_process_of(pid));
	/* 0 meanwhile, so that root_of() does not find this entry */
	vec_last(&e->processes)->root = 0;
	vec_last(&e->processes)->root = root_of(e, pid);
	events_exec_first(e, pid);
}

static struct err *check_room(const struct inproc_engine *e)
{
	if (e->area->process_count < WIRE_PROCESSES_MAX)
		return NULL;
	return err_new(ENOSPC,
		       "more than %d processes and executed programs: the others are not traced",
		       WIRE_PROCESSES_MAX - 1);
}

void process_executed(struct inproc_engine *e, pid_t pid, struct control *c)
{
	const uint32_t i = find_number(e, pid);
	struct inproc_process *p;
	struct err *err;

	if (!e->named.executed && (err = check_room(e))) {
		control_free(c);
		inproc_blind(e, "%s", err->text);
		err_free(err);
		return;
	}
	if (i == e->processes.n)
		add_executed(e, pid);
	else
		leave_program(e, &e->processes.v[i]);
	if (e->named.executed) {
		hand_over(e, i, c);
		return;
	}
	e->family.caught = c;
	err = enter_next(e, i);
	p = &e->processes.v[i];
	p->exec_tries = 0;
	if (err)
		inproc_blind(e, "%s", err->text);
	err_free(err);
}

/* Rules about shared memory were applied to one process (wire_area.together). */
static struct err *check_alone(const struct inproc_engine *e)
{
	for (uint32_t i = 0; i < e->processes.n && !e->area->together; i++)
		if (e->processes.v[i].attached)
			return err_new(EBUSY, "process %d is traced alone",
				       (int)e->processes.v[i].pid);
	return NULL;
}

struct err *process_take(struct inproc_engine *e, pid_t pid, pid_t like, struct control *c)
{
	const uint32_t i = e->processes.n;
	uint32_t execs = 1; /* as of a process that has executed programs here before */
	struct inproc_process *p;
	struct err *err = check_room(e) ?: check_alone(e);

	if (err) {
		control_free(c);
		return err;
	}
	for (uint32_t k = 0; k < i; k++)
		if (e->processes.v[k].pid == pid && e->processes.v[k].execs >= execs)
			execs = e->processes.v[k].execs + 1;
	vec_push(&e->processes, inproc_process_of(pid));
	p = vec_last(&e->processes);
	p->root = like;
	p->taken = true;
	p->execs = execs;
	e->family.caught = c;
	unwind_add(e, pid);
	process_remember(e, pid);
	return process_enter(e, i);
}

void process_slow(struct inproc_engine *e, pid_t pid)
{
	if (find_number(e, pid) < e->processes.n)
		return;
	add_executed(e, pid);
	vec_last(&e->processes)->exec_tries = EXEC_TRIES;
}

/* Drops a process from which `descry heal --force`, or the process itself, has removed the probes.
 * It is not traced again. */
static void leave(struct inproc_engine *e, struct inproc_process *p)
{
	__atomic_store_n(&e->list[p->index].state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
	p->attached = false;
	forging_left(e, p->pid);
	inproc_blind(e, "process %d is not traced any more, because its probes were removed",
		     (int)p->pid);
}

void processes_look(struct inproc_engine *e)
{
	uint32_t attached = 0;

	(void)processes_adopt(e);
	for (uint32_t i = 0; i < e->processes.n; i++)
		attached += e->processes.v[i].attached;
	for (uint32_t i = 0; i < e->processes.n; i++) {
		struct inproc_process *p = &e->processes.v[i];
		struct wire_process *w = &e->list[p->index];

		events_watch(e, p);
		if (p->attached)
			seccomp_look(e, p, attached);
		if ((!p->attached && !p->exec_tries) || execs_pending(e, p->pid))
			continue;
		if (kill(p->pid, 0) && errno == ESRCH) { /* frees its slots for other processes */
			events_watch(e, p); /* fires an end that came after the look above */
			if (p->index)
				__atomic_store_n(&w->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
			ended(p);
		} else if (!process_is_ours(e, p->pid)) {
			if (p->attached && process_was_undone(e, p))
				leave(e, p);
			else
				follow_exec(e, i);
		}
	}
}
