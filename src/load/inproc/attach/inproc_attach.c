/* Attaches to a process: maps the engine's memory into it and patches its text. The process is
 * stopped once, for a short time, and everything that does not need the stop happens before it.
 * Order: stubs, then program counters that stand in displaced bytes, then text. The undo log is
 * written before the text. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/procstatus.h"
#include "load/inproc/attach/inproc_attach.h"
#include "load/inproc/attach/watchdog.h"
#include "load/inproc/memory/owner.h"
#include "load/inproc/memory/remote.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/islands.h"
#include "load/inproc/patch/records.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/identity.h"
#include "load/inproc/state/process_state.h"
#include "load/inproc/undo/undo.h"

enum {
	PAGE = 4096,
	STOP_MS = 2000,
	LEAVE_MS = 10000,
	WIPEONFORK = 18, /* MADV_ */
	DONTDUMP = 16,
	DONTFORK = 10,
};

/* --- the process's entry in the area --- */

struct err *process_ranges(struct inproc_engine *e, struct inproc_process *p)
{
	struct wire_process *w = &e->list[p->index];
	struct wire_range *out = e->ranges + (uint64_t)p->index * WIRE_RANGES_MAX;
	struct ranges r = { 0 };
	uint64_t now = now_ns();
	struct err *err = ranges_read(p->pid, &r);
	uint32_t n = 0;

	__atomic_add_fetch(&w->version, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < r.list.n; i++) {
		if (!r.list.v[i].readable)
			continue;
		if (n && out[n - 1].hi == r.list.v[i].lo)
			out[n - 1].hi = r.list.v[i].hi;
		else if (n < WIRE_RANGES_MAX)
			out[n++] = (struct wire_range){ r.list.v[i].lo, r.list.v[i].hi };
	}
	w->nranges = n;
	e->said[p->index].ranges_wanted = 0;
	__atomic_add_fetch(&w->version, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&w->ranges_time, now, __ATOMIC_RELEASE);
	ranges_fini(&r);
	return err;
}

void process_describe(struct inproc_engine *e, const struct inproc_process *p)
{
	cleanup_free char *status = procstatus_read(p->pid);
	struct wire_process *w = &e->list[p->index];

	w->pid = (uint32_t)p->pid;
	w->own_pid = procstatus_count(status, "NSpid", PROCSTATUS_LAST);
	w->uid = procstatus_count(status, "Uid", 0);
	w->gid = procstatus_count(status, "Gid", 0);
	w->ppid = procstatus_count(status, "PPid", 0);
	w->started = procdir_start(p->pid);
	w->task = area_task(e, p->pid);
	e->trust.contained |= owner_is_contained(p->pid);
	process_walk(e, p);
	__atomic_store_n(&w->state, WIRE_PROCESS_TRACED, __ATOMIC_RELEASE);
}

static struct err *inproc_attach_enter(struct inproc_engine *e, struct inproc_process *p)
{
	p->index = e->area->process_count;
	/* children number themselves from the other end of the list */
	if (p->index >= WIRE_PROCESSES_MAX || e->said[p->index].own_pid) {
		p->index = 0; /* it has no entry */
		return err_new(E2BIG, "at most %d processes can be traced in-process",
			       WIRE_PROCESSES_MAX - 1);
	}
	__atomic_store_n(&e->area->process_count, p->index + 1, __ATOMIC_SEQ_CST);
	process_describe(e, p);
	return process_ranges(e, p);
}

/* --- while it is stopped --- */

static struct err *map_area(struct inproc_engine *e, struct inproc_process *p, struct control *c)
{
	const int fds[] = { e->files.code.fd, e->files.facts.fd, e->files.shared.fd, p->island_fd };
	uint64_t head = round_up(sizeof(struct wire_private), PAGE);
	const struct wire_private prefix = { .ready = 1, .process = p->index };
	struct wire_kept kept;
	int theirs[4] = { -1, -1, -1, -1 };
	struct err *err = attach_check_suits(c, e->addr + WIRE_MAIL, &p->no_counter), *barrier;

	err = err ?: remote_send_files(c, e->addr + WIRE_MAIL, fds, 4, theirs);
	err = err ?: remote_map(c, e->addr, WIRE_CODE_SIZE, PROT_READ | PROT_EXEC, theirs[0], 0);
	err = err ?: remote_map(c, e->addr + WIRE_FACTS, WIRE_FACTS_SIZE, PROT_READ, theirs[1], 0);
	if (!err)
		err = remote_map(c, e->addr + WIRE_SHARED, e->room.shared_size,
				 PROT_READ | PROT_WRITE, theirs[2], 0);
	if (!err)
		err = remote_map(c, e->addr + WIRE_PRIVATE, area_private_size(),
				 PROT_READ | PROT_WRITE, -1, 0);
	if (!err)
		err = remote_call(c, "madvise", SYS_madvise, e->addr + WIRE_PRIVATE, head,
				  WIPEONFORK, NULL);
	if (!err)
		err = remote_call(c, "madvise", SYS_madvise, e->addr + WIRE_FACTS,
				  WIRE_FACTS_SIZE + e->room.shared_size, DONTDUMP, NULL);
	/* a child that is not followed must not write memory that this process relies on */
	if (!err && !e->area->follow)
		err = remote_call(c, "madvise", SYS_madvise, e->addr + WIRE_SHARED,
				  e->room.shared_size, DONTFORK, NULL);
	for (uint32_t i = 0; i < p->modules.n && !err; i++)
		if (p->modules.v[i].island_mem)
			err = remote_map(c, p->modules.v[i].island, p->modules.v[i].island_size,
					 PROT_READ | PROT_EXEC, theirs[3],
					 p->modules.v[i].island_at);
	for (int i = 4; i-- > 0;) /* closes the code's file last: see undo_strays() */
		if (theirs[i] >= 0)
			err_free(remote_call(c, "close", SYS_close, (uint64_t)theirs[i], 0, 0,
					     NULL));
	/* lets the tracer's fast barrier reach the process; a slower one works without this */
	barrier = remote_call(c, "membarrier", SYS_membarrier,
			      MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0, NULL);
	e->aggs.slow_barrier |= barrier != NULL;
	err_free(barrier);
	kept = seccomp_kept(p);
	if (!err)
		err = control_write(c, e->addr + WIRE_PRIVATE, &prefix,
				    offsetof(struct wire_private, threads));
	err = err ?: control_write(c, e->addr + WIRE_PRIVATE + WIRE_KEPT, &kept, sizeof(kept));
	err = err ?: watchdog_permit(c, e->area);
	return err;
}

static struct err *not_together(const struct owner *a, const struct owner *b)
{
	return err_new(
		EPERM,
		"processes of different users (%u, %u), or with different privileges, name spaces or limits (seccomp, no_new_privs), are not traced together",
		a->uids[1], b->uids[1]);
}

/* Returns true when two processes with different rights may share memory. A process that a traced
 * one started in another mount or pid namespace already had its parent's memory. */
static bool may_share(const struct inproc_process *p, struct owner a, const struct owner *b)
{
	if (!p->taken && (p->root != p->pid || p->execs)) {
		a.mounts = b->mounts;
		a.pids = b->pids;
	}
	return owner_may_share(&a, b);
}

/* Compares with the traced processes, which may have changed their rights since. Each process
 * writes memory that the other's programs rely on. */
static struct err *check_others(const struct inproc_engine *e, const struct inproc_process *p,
				const struct owner *u)
{
	for (uint32_t i = 0; i < e->processes.n; i++) {
		const struct inproc_process *other = &e->processes.v[i];
		struct owner o;

		if (other == p || !other->attached)
			continue;
		o = owner_of(other->pid);
		if (o.known && !o.ended && (!may_share(p, o, u) || !may_share(p, *u, &o)))
			return not_together(&o, u);
	}
	return NULL;
}

/* Compares the rights of a new process with those of the traced ones, because all of them share
 * memory: each can change what descry does to the others. */
static struct err *check_user(struct inproc_engine *e, const struct inproc_process *p)
{
	const struct owner u = owner_of(p->pid);
	struct err *err = e->trust.any_user && !may_share(p, e->trust.user, &u)
				  ? not_together(&e->trust.user, &u)
				  : check_others(e, p, &u);

	if (err)
		return err;
	/* its number stands for the first thread where descry takes over descriptors and compares
	 * namespaces (pidfd_getfd(2), ns/) */
	if (u.known && procdir_living_thread(p->pid) != p->pid)
		return err_new(
			ENOTSUP,
			"its first thread has ended while others run (pthread_exit(3) in main()): use -x engine=kernel");
	if (e->files.unsealed && owner_is_stranger(p->pid))
		return err_new(
			EPERM,
			"it is another user's, and this kernel cannot seal memory (Linux 5.1 can): use -x engine=kernel");
	e->trust.any_user = true;
	e->trust.user = u;
	return NULL;
}

static struct control *held_control(const struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->named.held.n; i++)
		if (control_pid(e->named.held.v[i]) == pid)
			return e->named.held.v[i];
	return NULL;
}

static struct inproc_process *add_process(struct inproc_engine *e, pid_t pid)
{
	const struct control *c = held_control(e, pid);
	struct inproc_process *p;
	int socket, theirs;

	vec_push(&e->processes, inproc_process_of(pid));
	p = vec_last(&e->processes);
	p->served = c && control_is_served(c, &socket, &theirs);
	return p;
}

static struct inproc_program program_of(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/exe", (int)pid);
	struct inproc_program program = { .started = procdir_start(pid) };
	struct stat st;

	if (!stat(path, &st)) {
		program.exe_dev = st.st_dev;
		program.exe_inode = st.st_ino;
	}
	return program;
}

static struct err *plan(struct inproc_engine *e, struct inproc_process *p)
{
	p->program = program_of(p->pid);
	return sites_plan(e, p);
}

/* Checks again while the process is stopped: since the first check it may have changed its user, or
 * executed a program with privileges. */
static struct err *check_same(struct inproc_engine *e, const struct inproc_process *p)
{
	const struct inproc_program now = program_of(p->pid);
	const struct owner u = owner_of(p->pid);

	if (!owner_is_like(&e->trust.user, &u))
		return not_together(&e->trust.user, &u);
	if (memcmp(&now, &p->program, sizeof(now)))
		return err_new(ESRCH, "it executed another program while it was attached to");
	if (owner_may_share(&u, &e->trust.user))
		return NULL;
	e->trust.user = u; /* it has installed a seccomp filter */
	return check_others(e, p, &u);
}

struct err *process_plan(struct inproc_engine *e, pid_t pid)
{
	struct inproc_process *p;
	struct control *c = NULL;
	bool no_counter;
	struct err *err = held_control(e, pid) ? NULL : control_open(pid, &c);

	/* another engine may trace it, so this is found out before the process is entered */
	if (!err && c)
		err = attach_check_alone(pid);
	if (!err && c && procstatus_of(pid, "VmLck", 0))
		err = control_stop_to_call(c, STOP_MS) ?:
			      attach_check_suits(c, e->addr + WIRE_MAIL, &no_counter) ?:
			      control_resume(c);
	control_free(c);
	p = add_process(e, pid);
	err = err ?: seccomp_plan(e, p);
	err = err ?: plan(e, p);
	p->planned = !err;
	return err;
}

struct err *process_attach(struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid && e->processes.v[i].planned)
			return process_enter(e, i);
	(void)add_process(e, pid);
	return process_enter(e, e->processes.n - 1);
}

/* Removes this tracer's area from a process. At its base there may be another tracer's area, which
 * was mapped first, or after another program had removed this one. */
static struct err *take_out(struct inproc_engine *e, struct control *c, struct undo_report *r)
{
	struct undo_log log = { 0 };
	struct err *err = undo_log_own(c, e->area, &log);

	if (!err && undo_is(&log, e->files.facts.inode, e->files.code.inode))
		err = undo_restore(c, &log, STOP_MS, r);
	undo_log_fini(&log);
	return err;
}

/* Undoes an attach that failed half way, and drops its records, because the next attach may patch
 * the same places with other jumps. Returns false when a part had to stay; its records stay too,
 * and the watchdog removes the part. */
static bool take_back(struct inproc_engine *e, struct inproc_process *p, struct control *c)
{
	struct wire_process *w = &e->list[p->index];
	struct undo_report report = { 0 };
	struct err *err = control_resume(c);

	err = err ?: undo_strays(c, e->files.code.inode, e->addr, STOP_MS, &report);
	err = err ?: take_out(e, c, &report);
	if (err || report.busy ||
	    undo_left(p->pid, e->addr, e->files.facts.inode, e->files.code.inode)) {
		err_free(err);
		return false;
	}
	for (uint32_t i = 0; i < p->modules.n; i++)
		process_forget(e, p, i);
	__atomic_store_n(&w->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
	return true;
}

/* Returns true when the tracer of the area at `base` has ended. Its watchdog is then at work. */
static bool tracer_ended(struct control *c, uint64_t base)
{
	uint32_t pid = 0;
	struct err *err = control_read(
		c, base + WIRE_FACTS + offsetof(struct wire_area, tracer_pid), &pid, sizeof(pid));
	bool ended = !err && pid && pid <= INT_MAX && kill((pid_t)pid, 0) && errno == ESRCH;

	err_free(err);
	return ended;
}

/* Waits until no other tracer is in the process. The watchdog of a killed tracer needs time to
 * detach the process, and more time on a busy machine. The last check happens while the process is
 * stopped. */
static struct err *check_alone(struct control *c, int timeout_ms)
{
	enum { ENDED = 6 /* factor for the longer wait */ };
	const uint64_t ns = (uint64_t)timeout_ms * 1000000, begun = now_ns();
	uint64_t bases[WIRE_BASES];
	struct err *err;
	uint32_t n = 0;

	while (!(err = undo_areas(c, bases, &n)) && n &&
	       (now_ns() - begun < ns ||
		(now_ns() - begun < ENDED * ns && tracer_ended(c, bases[0]))))
		nap_ns(5000000);
	return err ?: n ? err_new(EBUSY, "another descry traces it from inside") : NULL;
}

static struct err *try_enter(struct inproc_engine *e, uint32_t i)
{
	struct inproc_process *p = &e->processes.v[i];
	struct control *c = e->family.caught, *const held = held_control(e, p->pid);
	const bool caught = c;
	struct undo_log log = { 0 };
	uint64_t stopped = 0;
	struct err *err = p->planned ? NULL : plan(e, p);

	e->family.caught = NULL;
	err = err ?: seccomp_check(e, p);
	err = err ?: check_user(e, p);
	if (!err && p->execs)
		err = identity_check(e, p->pid);
	if (!err && !held && !caught)
		err = attach_check_alone(p->pid);
	if (!err && e->watchdog < 0 && !p->served)
		err = watchdog_start(e->area, &e->watchdog);
	err = err ?: inproc_attach_enter(e, p);
	err = err ?: islands_prepare(e, p);
	err = err ?: records_write(e, p, &log);
	if (held)
		c = held;
	if (!err && !held && !caught)
		err = control_open(p->pid, &c);
	if (!err)
		/* otherwise a process that executes programs could make the tracer wait again and
		 * again */
		err = check_alone(c, p->execs ? 0 : 5000);
	stopped = now_ns();
	if (!err && !held && !caught)
		err = control_stop_to_call(c, STOP_MS);
	if (!err)
		err = check_alone(c, 0) ?: check_same(e, p) ?: identity_check_threads(e, c);
	err = err ?: seccomp_check_again(e, p, c);
	err = err ?: map_area(e, p, c);
	if (!err && (p->guarded || p->strict || p->no_counter))
		err = guard_install(e, p, c);
	err = err ?: records_patch(e, p, c, &log);
	if (!err) {
		p->attached = true;
		process_open(p);
		p->looked = false;
		e->family.loads_next = 0;
		records_enabled(p);
		err = held ? NULL : control_resume(c);
	}
	stopped = now_ns() - stopped;
	if (!err && e->measure)
		inproc_note(e, "process %d was stopped for %.3f ms (%u places, %u mappings)",
			    (int)p->pid, (double)stopped / 1e6, p->sites.n, p->modules.n + 4);
	if (err && c && !held && p->index && !take_back(e, p, c)) {
		err->code = EBUSY;
		p->stays = true;
	}
	if (!held)
		control_free(c);
	undo_log_fini(&log);
	return err ? err_wrap(err, "tracing process %d in-process", (int)p->pid) : NULL;
}

static void drop_islands(struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++) {
		struct inproc_module *m = &p->modules.v[i];

		if (m->island_mem)
			munmap(m->island_mem, m->island_size);
		m->island_mem = NULL;
		m->island = 0;
	}
	if (p->island_fd >= 0)
		close(p->island_fd);
	p->island_fd = -1;
	p->island_used = 0;
}

/* Starts again when the process has executed another program while its places were planned, because
 * the new program has other places. */
static bool begin_anew(struct inproc_engine *e, struct inproc_process *p)
{
	struct inproc_process again = inproc_process_of(p->pid);

	if (kill(p->pid, 0))
		return false;
	for (uint32_t i = 0; i < p->modules.n; i++)
		process_forget(e, p, i);
	again.root = p->root;
	again.taken = p->taken;
	again.served = p->served;
	again.execs = p->execs;
	process_free(p);
	*p = again;
	nap_ns(20000000);
	return true;
}

/* When the process is stopped, a gap for an island may be taken that was free when the stubs were
 * written (threads get their stacks beside libraries). Then this function chooses another gap. */
struct err *process_enter(struct inproc_engine *e, uint32_t i)
{
	enum { TRIES = 8, PROGRAMS = 3 };
	struct err *err = NULL;

	for (int n = 0, programs = 0; n < TRIES; n++) {
		err_free(err);
		err = try_enter(e, i);
		if (err && err->code == ESRCH && ++programs < PROGRAMS &&
		    begin_anew(e, &e->processes.v[i]))
			continue;
		if (!err || err->code != EEXIST)
			break;
		drop_islands(&e->processes.v[i]);
		e->processes.v[i].planned = true;
	}
	return err;
}

/* Detaches, and tries again while another tracer holds the process, or while the machine is too
 * busy to stop it. */
static struct err *take_out_at_last(struct inproc_engine *e, pid_t pid, struct undo_report *ret)
{
	const uint64_t end = now_ns() + (uint64_t)LEAVE_MS * 1000000;
	struct err *err = NULL;

	do {
		struct control *c = NULL;

		err_free(err);
		*ret = (struct undo_report){ 0 };
		err = control_open(pid, &c) ?: take_out(e, c, ret);
		control_free(c);
		if (!err || (err->code != EBUSY && err->code != ETIMEDOUT))
			break;
		nap_ns(10000000);
	} while (now_ns() < end);
	return err;
}

struct err *process_restore(struct inproc_engine *e, pid_t pid)
{
	struct undo_report report = { 0 };
	struct err *err = take_out_at_last(e, pid, &report);

	if (!err && report.filtered && !report.busy)
		err = err_new(
			EPERM,
			"its text is restored, but its seccomp filter does not permit unmapping descry's memory: run descry heal %d as root",
			(int)pid);
	if (!err && report.kept)
		inproc_note(
			e,
			"process %d hooked functions while they were probed, so its code may lead to descry's stubs: %u mapping%s of stubs stay%s until it ends, without probes",
			(int)pid, report.kept, report.kept == 1 ? "" : "s",
			report.kept == 1 ? "s" : "");
	/* memory that could not be read may still be mapped */
	if (!err && !report.busy &&
	    undo_left(pid, e->addr, e->files.facts.inode, e->files.code.inode))
		err = err_new(
			EBUSY,
			"a part of descry's memory is still mapped; descry heal %d removes it",
			(int)pid);
	if (!err && report.busy)
		err = err_new(
			EBUSY,
			"thread %d is still in a probe, so mappings stay (its text is restored); "
			"descry heal %d removes them",
			(int)report.busy, (int)pid);
	if (err && (err->code == ESRCH || (kill(pid, 0) && errno == ESRCH)) &&
	    !undo_left(pid, e->addr, e->files.facts.inode,
		       e->files.code.inode)) { /* nothing is left to restore */
		err_free(err);
		err = NULL;
	}
	return err ? err_wrap(err, "removing the probes from process %d", (int)pid) : NULL;
}

struct err *process_detach(struct inproc_engine *e, struct inproc_process *p)
{
	uint64_t started;

	if (!p->attached && !p->stays)
		return NULL;
	p->attached = p->stays = false;
	started = procdir_start(p->pid);
	if (started && started != e->list[p->index].started)
		return NULL; /* its number belongs to another process by now */
	if (p->served) {
		if (procstatus_of(p->pid, "VmSize", 0)) /* it has not ended */
			inproc_note(
				e,
				"process %d keeps descry's jumps until it ends, because ptrace(2) is forbidden here",
				(int)p->pid);
		return NULL;
	}
	if (!process_is_ours(e, p->pid) && procstatus_of(p->pid, "VmSize", 0) &&
	    !process_was_undone(e, p))
		inproc_blind(
			e,
			"process %d executed another program at the end, and was not traced there",
			(int)p->pid);
	return process_restore(e, p->pid);
}

void process_free(struct inproc_process *p)
{
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (p->modules.v[i].island_mem)
			munmap(p->modules.v[i].island_mem, p->modules.v[i].island_size);
	sites_free(p);
	vec_fini(&p->left);
	if (p->island_fd >= 0)
		close(p->island_fd);
	if (p->mem >= 0)
		close(p->mem);
}
