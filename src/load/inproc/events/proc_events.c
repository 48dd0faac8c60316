/* Provider proc: runs programs for the kernel's tracepoints at events of the traced processes.
 *
 * For an event that is a system call of a thread, the program runs in the thread, at the call. The
 * agent makes up the tracepoint's arguments (agent/agent_event.c) from stand-ins of task_structs.
 * For other events the program runs here, in the tracer, because the thread cannot run it: the
 * process has executed another program, or the thread was killed, or it ended with its process. No
 * thread writes the `self->` variables of such a thread any more, so they are copied into the
 * tracer's slot.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/procdir.h"
#include "base/procmem.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/memory/owner.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/process_state.h"
#include "load/inproc/state/prog_run.h"
#include "load/task.h"

enum {
	/* stand-ins of requested threads, used in turn, and one for events that fire here */
	ROOMS = 8,
	ARGS_MAX = 4096, /* bytes of a command line */
	ARGS_TRIES = 20,
	OBJECTS = 5, /* mm_struct, cred, signal_struct, two struct pid */
	OBJECT_MAX = 8192,
	HURRY_NS = 5000000,
	HURRY_FOR_NS = 100000000,
	NAMES = 16,
	LOOKUPS = 64,     /* in one round; for more threads the answer is "not known" */
	KILLED = SIGKILL, /* exit code of a process whose end is not known */
};

struct inproc_events {
	uint64_t rooms;
	uint32_t room_size, next_room;
	uint64_t at, end; /* of the room that is being filled */
	struct task_layout layout;
	uint32_t seen; /* wire_ask.asked */
	bool ends, execs, asks;
	bool hides; /* /proc hides other users' processes */
	/* CLOCK_MONOTONIC ns: until then processes that are about to execute another program are
	 * watched closely */
	uint64_t hurry_until;
};

/* A thread at the last look. */
struct seen {
	pid_t tid;
	bool there;
	bool old;       /* it existed before the attach, and has not had a slot so far */
	uint64_t named; /* CLOCK_MONOTONIC ns when its name was read */
	char comm[16];
};
struct inproc_watch {
	struct task_facts facts;
	VEC(struct seen) threads;
	uint32_t next; /* index of the thread whose name is read next */
	bool traced;   /* it is patched, so new threads have slots */
	int pidfd;
	bool sure; /* the pidfd refers to the process that was attached to */
};

/* --- rows of probes --- */

#define EXEC "sched_process_exec"
#define EXIT "sched_process_exit"

static const struct row {
	const char *tracepoint;
	enum wire_stub_kind kind;
	int16_t calls[6];
} rows[] = {
	{ "sys_enter", WIRE_STUB_ENTERS, { SYS_execve, SYS_execveat, -1 } },
	{ "sys_exit", WIRE_STUB_LEAVES, { SYS_execve, SYS_execveat, -1 } },
	{ EXIT, WIRE_STUB_EXITS, { SYS_exit, SYS_exit_group, -1 } },
	{ "sched_process_fork",
	  WIRE_STUB_FORKS,
	  { SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, -1 } },
	{ "sched_switch", WIRE_STUB_STARTS, { SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, -1 } },
	{ "signal_generate",
	  WIRE_STUB_SENDS,
	  { SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, -1 } },
	{ EXEC, WIRE_STUB_EXECS, { SYS_execve, SYS_execveat, -1 } },
	{ EXEC, WIRE_STUB_STAYS, { SYS_execve, SYS_execveat, -1 } },
};

/* Returns the nth row of the probe, NULL: it has no more. */
static const struct row *row_of(const struct probe *p, uint32_t n)
{
	if ((p->kind != ATTACH_RAW_TP && p->kind != ATTACH_TP_BTF) || !p->object ||
	    strcmp(p->prov, "proc") || !strcmp(p->name, "signal-discard"))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].tracepoint, p->object) && !n--)
			return &rows[i];
	return NULL;
}

bool events_can(const struct probe *p)
{
	return row_of(p, 0) != NULL;
}

bool events_calls(const struct probe *p, uint32_t n, enum wire_stub_kind *ret_kind,
		  uint64_t ret_bits[WIRE_SYSCALL_MAX / 64])
{
	const struct row *r = row_of(p, n);

	if (!r)
		return false;
	*ret_kind = r->kind;
	for (int i = 0; r->calls[i] >= 0; i++)
		ret_bits[r->calls[i] / 64] |= 1ull << r->calls[i] % 64;
	return true;
}

bool events_is_errno(const struct image_prog *p)
{
	return !p->nprobes && p->tracepoint && !strcmp(p->tracepoint, "sys_exit") &&
	       !strcmp(p->name, "errno");
}

/* Returns the kinds of all tracepoints of a program, which may have several. */
uint32_t events_of(const struct image *img, uint32_t prog)
{
	const struct image_prog *p = &img->progs[prog];
	const struct row *r;
	uint32_t bits = events_is_errno(p) ? 1u << (WIRE_STUB_LEAVES - WIRE_STUB_EVENTS) : 0;

	for (uint32_t k = 0; k < p->nprobes; k++)
		for (uint32_t n = 0; (r = row_of(img->probes[p->probes[k]].probe, n)); n++)
			bits |= 1u << (r->kind - WIRE_STUB_EVENTS);
	return bits;
}

static bool any_tracepoint(const struct image *img, const char *tracepoint)
{
	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct row *r = img->probes[i].probe ? row_of(img->probes[i].probe, 0) : NULL;

		if (r && (!tracepoint || !strcmp(r->tracepoint, tracepoint)))
			return true;
	}
	return false;
}

/* Returns true when programs use the running thread's task_struct. */
static bool any_task(const struct image *img)
{
	enum { CURRENT_TASK = 35, CURRENT_TASK_BTF = 158 };

	for (uint32_t i = 0; i < img->nprogs; i++) {
		for (uint32_t k = 0; k < img->progs[i].nrelocs; k++)
			if (img->progs[i].relocs[k].kind == RELOC_ROUTINE &&
			    !strcmp(img->progs[i].relocs[k].name, "d_progenyof"))
				return true;
		for (uint32_t k = 0; k < img->progs[i].ninsns; k++) {
			const struct bpf_insn *ins = &img->progs[i].insns[k];

			if (ins->code == (BPF_JMP | BPF_CALL) && !ins->src_reg &&
			    (ins->imm == CURRENT_TASK || ins->imm == CURRENT_TASK_BTF))
				return true;
		}
	}
	return false;
}

/* --- memory --- */

static bool size_of(struct type_graph *types, const char *tag, type_id *ret_type, uint32_t *ret)
{
	if (!types || !type_lookup(types, NULL, TYPE_STRUCT, tag, ret_type))
		return false;
	*ret = (uint32_t)(type_size(types, *ret_type) + 7) & ~7u;
	return *ret && *ret < 1 << 16;
}

static bool offset_of(struct type_graph *types, type_id t, const char *member, uint32_t *ret)
{
	struct type_member m;

	if (!type_find_member(types, t, member, &m))
		return false;
	*ret = (uint32_t)(m.bit_offset / 8);
	return true;
}

static bool find_layout(struct type_graph *types, struct wire_task_layout *ret)
{
	struct wire_task_layout l = { 0 };
	type_id task, signal, mm;

	if (!size_of(types, "task_struct", &task, &l.task_size) ||
	    !size_of(types, "signal_struct", &signal, &l.signal_size) ||
	    !size_of(types, "mm_struct", &mm, &l.mm_size) ||
	    !offset_of(types, task, "pid", &l.pid) || !offset_of(types, task, "tgid", &l.tgid) ||
	    !offset_of(types, task, "comm", &l.comm) || !offset_of(types, task, "mm", &l.mm) ||
	    !offset_of(types, task, "signal", &l.signal) ||
	    !offset_of(types, task, "real_parent", &l.real_parent) ||
	    !offset_of(types, task, "exit_code", &l.exit_code) ||
	    !offset_of(types, signal, "nr_threads", &l.nr_threads) ||
	    !offset_of(types, signal, "live", &l.live))
		return false;
	*ret = l;
	return true;
}

struct err *events_lay_out(struct inproc_engine *e, const struct image *img)
{
	bool any = any_tracepoint(img, NULL), own = false;
	struct wire_task_layout *l = &e->area->task;
	struct inproc_events *ev;
	uint64_t size;

	for (uint32_t i = 0; i < img->nprogs; i++)
		own |= events_is_errno(&img->progs[i]);
	if (!any && !own && !any_task(img))
		return NULL;
	if (!find_layout(img->types, l) && any)
		return err_new(ENOTSUP,
			       "proc probes need the kernel's types (/sys/kernel/btf/vmlinux)");
	size = sizeof(struct wire_event) + 2ull * (l->task_size + l->signal_size + l->mm_size);
	if (e->area->together && size > WIRE_EVENT_MAX)
		return err_new(ENOTSUP, "stand-ins for the kernel's structures take %llu bytes",
			       (unsigned long long)size);
	e->area->event = size;
	if (!e->area->together)
		e->area->event_at = area_in_slot(e, size);
	e->area->wanted = e->wanted_at = area_in_slot(e, sizeof(struct wire_wanted));
	if (!any)
		return NULL;
	ev = e->events = xcalloc(1, sizeof(*ev));
	ev->ends = any_tracepoint(img, EXIT);
	ev->execs = any_tracepoint(img, EXEC);
	ev->asks = ev->execs || any_tracepoint(img, "signal_generate");
	ev->hides = procdir_hides();
	e->common->ask.on = ev->asks; /* the tracer looks soon */
	ev->room_size = l->task_size + OBJECTS * OBJECT_MAX + ARGS_MAX;
	ev->rooms = area_alloc(e, (uint64_t)ev->room_size * (ROOMS + 1));
	e->area->rooms = ev->rooms;
	e->area->room_size = ev->room_size;
	e->area->nrooms = ROOMS;
	return ev->rooms ? NULL : err_new(ENOMEM, "the program's maps leave no room for events");
}

void events_free(struct inproc_engine *e)
{
	free(e->events);
	e->events = NULL;
}

static uint8_t *alloc(void *arg, uint64_t size)
{
	struct inproc_events *ev = arg;
	uint64_t at = ev->at;

	assert(size <= ev->end - at);
	ev->at += (size + 63) & ~63ull;
	memset((void *)at, 0, size);
	return (uint8_t *)at;
}

static void use_room(struct inproc_events *ev, uint32_t n)
{
	ev->at = ev->rooms + (uint64_t)n * ev->room_size;
	ev->end = ev->at + ev->room_size;
}

static uint64_t stand_in(struct inproc_engine *e, const struct task_facts *f)
{
	struct task_memory mem = { alloc, e->events, &e->events->layout };

	return task_from_facts(e->base.image->types, f, area_parent(e, f->ppid), &mem);
}

/* --- threads that request stand-ins --- */

/* Fills in the facts, also for a process that cannot be read. */
static bool is_undumpable(pid_t pid)
{
	const struct owner u = owner_of(pid);

	return !u.known || u.hidden;
}

static uint64_t look_up(struct inproc_engine *e, uint32_t tid)
{
	struct inproc_events *ev = e->events;
	struct task_facts f = { 0 };

	/* Does not use the slot of the requesting thread: a process in a container could name
	 * another's slot, and it can read every answer. */
	if (e->trust.contained || !task_facts_read((pid_t)tid, &f))
		return 0;
	/* Refuses other users' processes where /proc hides them. */
	if (ev->hides && e->trust.user.uids[0] && (uint32_t)f.uid != e->trust.user.uids[0])
		return 0;
	/* Leaves out the facts of /proc/PID/stat that the kernel shows only to root, for processes
	 * of other users and those that are not dumpable. */
	if ((uint32_t)f.uid != e->trust.user.uids[0] || (uint32_t)f.euid != e->trust.user.uids[1] ||
	    is_undumpable((pid_t)tid))
		f.start_stack = f.arg_start = f.arg_end = 0;
	use_room(ev, ev->next_room++ % ROOMS);
	return stand_in(e, &f);
}

void events_answer(struct inproc_engine *e)
{
	struct wire_ask *a = e->events && e->events->asks ? &e->common->ask : NULL;
	uint32_t asked = a ? __atomic_load_n(&a->asked, __ATOMIC_SEQ_CST) : 0, looked = 0;

	if (!a || asked == e->events->seen)
		return;
	e->events->seen = asked;
	for (uint32_t i = 1; i < e->room.nthreads; i++) {
		struct wire_thread *t = area_thread(e, i);
		struct wire_wanted *w = (struct wire_wanted *)((uint8_t *)t + e->wanted_at);
		uint32_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);

		if (!tid)
			continue;
		if (tid == ~0u)
			e->events->hurry_until = now_ns() + HURRY_FOR_NS;
		w->answer = tid == ~0u || ++looked > LOOKUPS ? 0 : look_up(e, tid);
		__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&a->answered, asked, __ATOMIC_RELEASE);
	syscall(SYS_futex, &a->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t *events_bell(struct inproc_engine *e, uint32_t *ret_seen)
{
	if (!e->events || !e->events->asks)
		return NULL;
	__atomic_store_n(&e->common->ask.on, 1, __ATOMIC_SEQ_CST);
	*ret_seen = e->events->seen;
	return &e->common->ask.asked;
}

void events_stop(struct inproc_engine *e)
{
	if (!e->events)
		return;
	__atomic_store_n(&e->common->ask.on, 0, __ATOMIC_SEQ_CST);
	events_answer(e);
}

/* --- events that fire in the tracer --- */

/* Returns the slot of the thread with that number in its own pid namespace, NULL: it has not
 * fired. */
static struct wire_thread *slot_of(const struct inproc_engine *e, const struct inproc_process *p,
				   uint32_t tid)
{
	for (uint32_t i = 1; i < e->room.nthreads; i++) {
		struct wire_thread *t = area_thread(e, i);

		if (__atomic_load_n(&t->owner, __ATOMIC_ACQUIRE) == p->index + 1 &&
		    t->own_tid == tid)
			return t;
	}
	return NULL;
}

/* Copies the `self->` variables of `from` into the tracer's slot. Sets them to 0 when `from` is
 * NULL, or when they are in the process's private memory. */
static void copy_self(struct inproc_engine *e, const struct wire_thread *from)
{
	for (uint32_t i = 0; i < e->base.image->nmaps; i++) {
		const struct wire_map *m = &e->maps[i];
		uint8_t *to = m->kind == WIRE_MAP_OWN_TASK ? area_own_value(e, m)
							   : (uint8_t *)e->self + m->base;

		if (m->kind != WIRE_MAP_TASK && m->kind != WIRE_MAP_OWN_TASK)
			continue;
		if (from && m->kind == WIRE_MAP_TASK)
			memcpy(to, (const uint8_t *)from + m->base, m->value_size);
		else
			memset(to, 0, m->value_size);
	}
}

/* Runs every program for the tracepoint, as if the thread ran it. only: runs it for probes of that
 * name; NULL: for all. pidfd receives the signals of raise() and stop(); -1: no process does. */
static void fire(struct inproc_engine *e, const char *tracepoint, const char *only,
		 const struct task_facts *f, int pidfd, const struct wire_thread *from,
		 const uint64_t words[2])
{
	const uint64_t context[INPROC_CONTEXT] = { words[0], words[1] };
	const struct image *img = e->base.image;
	struct wire_thread *t = e->self, before = *t;

	copy_self(e, from);
	t->pid = e->own->pid = (uint32_t)f->tgid;
	t->tid = e->own->holder = (uint32_t)f->pid;
	e->own->other = true;
	e->own->pidfd = pidfd;
	t->task = e->own->task = context[0];
	t->comm_time = INT64_MAX; /* the agent does not read it again */
	memcpy(t->comm, f->comm, sizeof(t->comm));
	t->uid = (uint32_t)f->uid;
	t->gid = (uint32_t)f->gid;
	for (uint32_t i = 0; i < img->nprogs; i++)
		for (uint32_t k = 0; k < img->progs[i].nprobes; k++) {
			uint32_t probe = img->progs[i].probes[k];
			const struct row *r = row_of(img->probes[probe].probe, 0);

			if (r && !strcmp(r->tracepoint, tracepoint) &&
			    (!only || !strcmp(only, img->probes[probe].name)))
				prog_run_with(e, i, probe, context);
		}
	t->pid = e->own->pid = before.pid;
	t->tid = e->own->holder = before.tid;
	e->own->other = false;
	t->task = e->own->task = before.task;
	t->comm_time = before.comm_time;
	memcpy(t->comm, before.comm, sizeof(t->comm));
	t->uid = before.uid;
	t->gid = before.gid;
	copy_self(e, NULL);
}

/* Reads the process's command line to the place that the stand-in has for it. The kernel knows it
 * only a moment after the program has begun. */
static void read_args(struct inproc_events *ev, struct task_facts *f)
{
	cleanup_free char *path = xasprintf("/proc/%d/cmdline", f->tgid), *text = NULL;
	uint8_t *room;
	size_t n = 0;

	for (int i = 0; i < ARGS_TRIES && !n; i++) {
		if (i)
			nap_ns(HURRY_NS / 50);
		free(text);
		text = NULL;
		err_free(procmem_file(f->tgid, path, &text, &n));
	}
	n = n < ARGS_MAX ? n : ARGS_MAX;
	room = alloc(ev, ARGS_MAX);
	if (text)
		memcpy(room, text, n);
	f->arg_start = (uintptr_t)room;
	f->arg_end = f->arg_start + n;
	f->start_stack = 0;
}

static void end_threads(struct inproc_engine *e, struct inproc_process *p, bool exec, int code);

static int sure_pidfd(const struct inproc_process *p)
{
	return p->watch && p->watch->sure ? p->watch->pidfd : -1;
}

static void fire_exec(struct inproc_engine *e, struct task_facts *f, int pidfd,
		      const struct wire_thread *from)
{
	uint64_t context[2] = { 0 };

	read_args(e->events, f);
	context[0] = stand_in(e, f);
	context[1] = (uint32_t)f->pid;
	fire(e, EXEC, NULL, f, pidfd, from, context);
}

void events_exec(struct inproc_engine *e, struct inproc_process *p)
{
	struct task_facts f = { 0 };

	if (!e->events)
		return;
	end_threads(e, p, true, 0);
	use_room(e->events, ROOMS);
	if (!task_facts_read(p->pid, &f) && p->watch) {
		f = p->watch->facts;
		snprintf(f.comm, sizeof(f.comm), "<gone>");
	}
	fire_exec(e, &f, sure_pidfd(p), slot_of(e, p, e->list[p->index].own_pid));
}

void events_exec_first(struct inproc_engine *e, pid_t pid)
{
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct task_facts f = { 0 };

	if (!e->events || !e->events->execs || !task_facts_read(pid, &f))
		return;
	use_room(e->events, ROOMS);
	fire_exec(e, &f, pidfd, NULL);
}

/* --- threads that end --- */

static void watch(struct inproc_process *p)
{
	p->watch = xcalloc(1, sizeof(*p->watch));
	p->watch->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
}

/* Checks that the pidfd refers to the process that was attached to. A process keeps its number
 * until it is reaped. So when the process of this number has the known start time, and the pidfd
 * still accepts a signal afterwards, both are the same process. */
static void make_sure(const struct inproc_engine *e, struct inproc_process *p)
{
	const uint64_t started = e->list[p->index].started;
	struct inproc_watch *w = p->watch;

	if (!w->sure && w->pidfd >= 0 && started && procdir_start(p->pid) == started)
		w->sure = !syscall(SYS_pidfd_send_signal, w->pidfd, 0, NULL, 0);
}

void events_forget(struct inproc_process *p)
{
	if (!p->watch)
		return;
	if (p->watch->pidfd >= 0)
		close(p->watch->pidfd);
	vec_fini(&p->watch->threads);
	free(p->watch);
	p->watch = NULL;
}

static void read_name(struct seen *s, pid_t pid)
{
	char path[64], comm[sizeof(s->comm) + 1] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)s->tid);
	f = fopen(path, "re");
	if (f && fgets(comm, sizeof(comm), f)) {
		s->named = now_ns();
		comm[strcspn(comm, "\n")] = '\0';
		memcpy(s->comm, comm, sizeof(s->comm));
	}
	if (f)
		fclose(f);
}

static struct seen *see(struct inproc_watch *w, pid_t pid, pid_t tid)
{
	for (uint32_t i = 0; i < w->threads.n; i++)
		if (w->threads.v[i].tid == tid)
			return &w->threads.v[i];
	vec_push(&w->threads, (struct seen){ .tid = tid, .old = !w->traced });
	read_name(vec_last(&w->threads), pid);
	return vec_last(&w->threads);
}

/* Returns true when the end of the thread has fired. A slot that has another owner by now counts as
 * fired, because the thread had ended before its process did. */
static bool has_told(const struct inproc_engine *e, const struct inproc_process *p,
		     const struct seen *s)
{
	const struct wire_thread *t = slot_of(e, p, (uint32_t)s->tid);

	return t ? t->ended == (uint32_t)s->tid : !s->old;
}

/* Drops threads that have ended and whose end has fired. Reads some of the names again, because
 * names change. */
static void look_at_threads(const struct inproc_engine *e, struct inproc_process *p)
{
	struct inproc_watch *w = p->watch;
	cleanup_dir DIR *d = procdir_threads(p->pid);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->threads.n; i++)
		w->threads.v[i].there = false;
	for (pid_t tid; procdir_next(d, &tid);)
		see(w, p->pid, tid)->there = true;
	if (!d)
		return;
	for (uint32_t i = 0; i < w->threads.n; i++)
		/* else its end fires together with those of the other threads, a moment later */
		if (w->threads.v[i].there || !has_told(e, p, &w->threads.v[i]))
			w->threads.v[kept++] = w->threads.v[i];
	w->threads.n = kept;
	for (uint32_t i = 0; i < NAMES && i < kept; i++) {
		struct seen *s = &w->threads.v[w->next++ % kept];

		read_name(s, p->pid);
		s->old = s->old && !slot_of(e, p, (uint32_t)s->tid);
	}
}

static void end_thread(struct inproc_engine *e, struct inproc_process *p, const struct seen *s,
		       bool last, const char *only, int code)
{
	uint64_t context[2] = { 0 };
	const struct wire_thread *t = slot_of(e, p, (uint32_t)s->tid);
	struct task_facts f = p->watch->facts;

	f.pid = s->tid;
	f.dead = last;
	f.exit_code = code;
	memcpy(f.comm, t && t->comm_time > s->named ? t->comm : s->comm, sizeof(f.comm));
	f.comm[sizeof(f.comm) - 1] = '\0';
	use_room(e->events, ROOMS);
	context[0] = stand_in(e, &f);
	context[1] = last;
	fire(e, EXIT, only, &f, sure_pidfd(p), t, context);
}

/* Fires the ends of threads of a process that has ended, if they have not fired. The process's
 * first thread is the last. */
static void end_threads(struct inproc_engine *e, struct inproc_process *p, bool exec, int code)
{
	struct inproc_watch *w = p->watch;
	bool same_space = e->list[p->index].pid == e->list[p->index].own_pid;
	bool told = e->said[p->index].exit_tid != 0, leader_told;
	struct seen leader = { .tid = p->pid, .old = true };

	if (!e->events->ends || !w)
		return;
	memcpy(leader.comm, w->facts.comm, sizeof(leader.comm));
	/* adds threads that look_at_threads() has not seen yet */
	for (uint32_t i = 1; same_space && i < e->room.nthreads; i++) {
		const struct wire_thread *t = area_thread(e, i);

		if (t->owner == p->index + 1 && t->own_tid && t->own_tid <= INT_MAX)
			(void)see(w, p->pid, (pid_t)t->own_tid);
	}
	for (uint32_t i = 0; i < w->threads.n; i++) {
		const struct seen *s = &w->threads.v[i];

		if (s->tid == p->pid)
			leader = *s;
		else if (!same_space || !has_told(e, p, s))
			end_thread(e, p, s, false, NULL, code);
	}
	w->threads.n = 0;
	leader_told = same_space && has_told(e, p, &leader);
	if (!exec && (!told || !leader_told))
		end_thread(e, p, &leader, !told, leader_told ? "exit" : NULL, code);
}

/* Returns the process's exit code, -1: not known. */
static int exit_code(const struct inproc_process *p)
{
	/* <linux/pidfd.h> as of Linux 6.15 */
	struct {
		uint64_t mask, cgroupid;
		uint32_t pid, tgid, ppid, ids[8];
		int32_t exit_code;
	} info = { .mask = 1 << 3 /* PIDFD_INFO_EXIT */ };

	_Static_assert(sizeof(info) == 64, "PIDFD_INFO_SIZE_VER0");
	if (p->watch->pidfd >= 0 && !ioctl(p->watch->pidfd, _IOWR(0xff, 11, info), &info) &&
	    info.mask & 1 << 3)
		return info.exit_code;
	return -1;
}

/* Returns the exit code of a process that has ended, or, with `ending`, whose threads are all
 * ending, if /proc still has it. -1: it has not ended. */
static int end_code(pid_t pid, bool ending)
{
	cleanup_free char *path = xasprintf("/proc/%d/stat", (int)pid), *text = NULL;
	char *p, state = 0;
	int threads = 0, code = -1;

	err_free(io_read_file(path, &text, NULL));
	p = text ? strrchr(text, ')') : NULL;
	for (int field = 3; p && (p = strchr(p, ' ')); field++) {
		p++;
		if (field == 3)
			state = *p;
		else if (field == 20)
			threads = atoi(p);
		else if (field == 52)
			code = atoi(p);
	}
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return code;
	return ending && text && procdir_ended(pid) ? code : -1;
}

static void proc_events_look(struct inproc_engine *e, struct inproc_process *p)
{
	make_sure(e, p);
	(void)task_facts_read(p->pid, &p->watch->facts);
	if (e->events->ends)
		look_at_threads(e, p);
}

void events_begin(struct inproc_engine *e, struct inproc_process *p)
{
	if (!e->events || (!e->events->ends && !e->events->execs))
		return;
	if (!p->watch)
		watch(p);
	proc_events_look(e, p);
	p->watch->traced = true;
}

void events_watch(struct inproc_engine *e, struct inproc_process *p)
{
	uint32_t *execs = &e->said[p->index].execs;
	int code;
	bool gone;

	if (!e->events || (!e->events->ends && !e->events->execs) ||
	    (!p->attached && !p->exec_tries) || p->ended)
		return;
	if (!p->watch) { /* a child, whose threads have slots */
		watch(p);
		p->watch->traced = true;
	}
	gone = kill(p->pid, 0) && errno == ESRCH;
	code = gone ? exit_code(p) : end_code(p->pid, false);
	if (gone || code >= 0) {
		/* it has executed another program, which ended before the tracer saw it */
		if (p->attached && __atomic_load_n(execs, __ATOMIC_SEQ_CST))
			events_exec(e, p);
		end_threads(e, p, false, code >= 0 ? code : KILLED);
		p->ended = true;
		return;
	}
	proc_events_look(e, p);
}

void events_hurry(struct inproc_engine *e)
{
	uint64_t end = now_ns() + HURRY_NS;
	bool any = e->events && end < e->events->hurry_until;

	while (any && now_ns() < end) {
		any = false;
		for (uint32_t i = 0; i < e->processes.n; i++) {
			struct inproc_process *p = &e->processes.v[i];

			if (!p->attached ||
			    !__atomic_load_n(&e->said[p->index].execs, __ATOMIC_SEQ_CST))
				continue;
			if (!process_is_ours(e, p->pid) || kill(p->pid, 0))
				return; /* processes_look() finds it too */
			any = true;
		}
		if (any)
			nap_ns(HURRY_NS / 100);
	}
}

void events_lost(struct inproc_engine *e, uint32_t index, pid_t pid)
{
	const struct wire_process *w = &e->list[index];
	struct inproc_process p = { .pid = pid, .index = index, .child = true };
	struct wire_thread *t = slot_of(e, &p, (uint32_t)pid);
	bool gone = kill(pid, 0) && errno == ESRCH;
	/* a killed process has no mappings any more before it becomes a zombie */
	int code = gone ? -1 : end_code(pid, true);

	/* in another pid namespace its number differs from this one */
	if (!e->events || !e->events->ends || !t || (!gone && code < 0) || e->trust.contained)
		return;
	watch(&p);
	p.watch->facts = (struct task_facts){ .pid = pid,
					      .tgid = pid,
					      .ppid = (int)w->ppid,
					      .uid = (int)w->uid,
					      .euid = (int)w->uid,
					      .gid = (int)w->gid,
					      .egid = (int)w->gid,
					      .threads = 1 };
	memcpy(p.watch->facts.comm, t->comm, sizeof(t->comm));
	end_threads(e, &p, false, code >= 0 ? code : KILLED);
	events_forget(&p);
}
