/* Processes that filter their system calls (seccomp(2)). Such a filter may end the process at an
 * unexpected system call. So the agent makes no system calls there (wire_kept.quiet), and the
 * tracer writes the facts that the agent needs into the area. A filter may come at any time. The
 * agent announces filters that the C library's prctl(2) and seccomp(2) install
 * (agent/agent_seccomp.c). This file finds all others a moment later.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/procdir.h"
#include "base/procmem.h"
#include "base/procstatus.h"
#include "load/inproc/attach/inproc_attach.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/process_state.h"

enum {
	LOOK_NS = 20000000, /* between two checks of a process's threads */
	SHARE = 50,         /* the checks take at most one part in so many of the time */
	FEW = 8,            /* with more processes than this, each is checked less often */
	HWCAP2_RDFSBASE = 1 << 1,
};

/* --- programs that need system calls --- */

/* Helpers that need a system call: bpf_probe_write_user(), bpf_send_signal(),
 * bpf_send_signal_thread(). */
enum { PROBE_WRITE = 36, SEND_SIGNAL = 109, SEND_SIGNAL_THREAD = 117 };

static const char *needs_calls(const struct inproc_engine *e)
{
	for (uint32_t i = 0; i < e->base.image->nprogs; i++) {
		const struct linked *l = &e->progs[i].linked;

		if (e->base.image->progs[i].attach == ATTACH_SELF ||
		    e->base.image->progs[i].attach == ATTACH_TICK)
			continue;
		for (uint32_t k = 0; k < l->ninsns; k++) {
			if (l->insns[k].code != (BPF_JMP | BPF_CALL) || l->insns[k].src_reg)
				continue;
			switch (l->insns[k].imm) {
			case WIRE_HELPER_THREAD_TIME: return "vtimestamp";
			case PROBE_WRITE: return "copyout()";
			case SEND_SIGNAL:
			case SEND_SIGNAL_THREAD: return "raise()";
			}
		}
	}
	return NULL;
}

/* --- attaching --- */

/* Traces the process without system calls of the agent's. how: "seccomp" */
static struct err *without_calls(const struct inproc_engine *e, struct inproc_process *p,
				 const char *how)
{
	const char *needs = needs_calls(e);

	p->quiet = true;
	e->area->filtered = 1;
	p->hooked = false; /* bells do not ring in it, so loads_look() reads its mappings */
	if (needs)
		return err_new(
			EPERM,
			"process %d filters its system calls (%s), and %s needs one: use -x engine=kernel",
			(int)p->pid, how, needs);
	if (e->area->identity != WIRE_ID_FS32)
		return err_new(
			EPERM,
			"process %d filters its system calls (%s), and its C library has no word that distinguishes its threads without a system call: use -x engine=kernel",
			(int)p->pid, how);
	return NULL;
}

struct err *seccomp_check(const struct inproc_engine *e, struct inproc_process *p)
{
	enum { STRICT = 1 };
	uint32_t mode = procstatus_of(p->pid, "Seccomp", 0);

	p->filtered = mode != 0;
	p->strict = mode == STRICT;
	p->quiet = control_any_filtered(p->pid);
	return p->quiet ? without_calls(e, p, "seccomp") ?: control_check_calls(p->pid) : NULL;
}

struct err *seccomp_check_again(const struct inproc_engine *e, struct inproc_process *p,
				const struct control *c)
{
	if (p->quiet)
		return NULL;
	/* a check of every thread would make the stop long */
	if (control_filtered(p->pid, p->pid))
		return seccomp_check(e, p);
	return control_any_dispatches(c) ? without_calls(e, p, "Syscall User Dispatch") : NULL;
}

struct err *seccomp_plan(const struct inproc_engine *e, struct inproc_process *p)
{
	struct err *err = seccomp_check(e, p);

	if (!err && p->quiet && e->named.scope != ENGINE_WHAT_CAN_BE)
		err = err_new(EPERM, "process %d filters its system calls (seccomp)", (int)p->pid);
	return err;
}

struct wire_kept seccomp_kept(const struct inproc_process *p)
{
	struct wire_kept kept = { .pid = (uint32_t)inproc_undo_id(p),
				  .no_vm_read = p->filtered,
				  .quiet = p->quiet,
				  .no_counter = p->no_counter,
				  .process = p->index,
				  .fsgsbase = getauxval(AT_HWCAP2) & HWCAP2_RDFSBASE };
	cleanup_free char *path = xasprintf("/proc/%d/comm", (int)p->pid), *comm = NULL;

	err_free(io_read_file(path, &comm, NULL));
	if (comm)
		snprintf(kept.comm, sizeof(kept.comm), "%.*s", (int)strcspn(comm, "\n"), comm);
	return kept;
}

/* --- while it is traced --- */

/* Facts about one thread, from /proc/PID/task/TID/status. */
struct facts {
	uint32_t tid; /* in its own pid namespace */
	bool masked;  /* SIGSEGV or SIGBUS is blocked */
	/* its blocked signals do not change: in strict mode only the agent's own handler blocks
	 * signals */
	bool constant;
	char comm[16];
};

static bool read_facts(pid_t pid, pid_t tid, struct facts *ret)
{
	cleanup_free char *text = procstatus_read_thread(pid, tid);
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
	int64_t own = procstatus_number(text, "NSpid", PROCSTATUS_LAST);

	if (!text)
		return false;
	*ret = (struct facts){ .tid = (uint32_t)(own < 0 ? tid : own) };
	if (sscanf(text, "Name:\t%15[^\n]", ret->comm) != 1)
		ret->comm[0] = '\0';
	ret->masked = procstatus_mask(text, "SigBlk") & faults;
	ret->constant = procstatus_number(text, "Seccomp", 0) == 1;
	return true;
}

/* Writes the facts about the thread in a slot. constant: keeps the old value of `masked`. */
static void tell(struct inproc_engine *e, uint32_t slot, uint32_t process,
		 const struct wire_told *w, bool constant)
{
	struct wire_told *to = (struct wire_told *)e->area->told + slot;

	if (to->tid != w->tid || to->process != process) {
		__atomic_store_n(&to->tid, 0, __ATOMIC_SEQ_CST);
		to->process = process;
		to->masked = 0;
		to->gone = 0;
	}
	if (!w->gone || to->gone != UINT32_MAX)
		__atomic_store_n(&to->gone, w->gone ? to->gone + 1 : 0, __ATOMIC_RELEASE);
	if (!constant)
		to->masked = w->masked;
	__atomic_store_n(&to->tid, w->tid, __ATOMIC_RELEASE);
}

/* Writes the facts about a process's threads into the area. Reads the slots before /proc, so that a
 * thread that is new in both is not missed. */
static void publish(struct inproc_engine *e, const struct inproc_process *p)
{
	VEC(struct facts) facts = { 0 };
	uint32_t tids[INPROC_THREADS] = { 0 };
	cleanup_dir DIR *d = NULL;
	struct facts f;

	for (uint32_t i = 1; i < e->room.nthreads; i++) {
		const struct wire_thread *t = area_thread(e, i);

		if (__atomic_load_n(&t->owner, __ATOMIC_ACQUIRE) == p->index + 1)
			tids[i] = __atomic_load_n(&t->own_tid, __ATOMIC_RELAXED);
	}
	d = procdir_threads(p->pid);
	for (pid_t tid; procdir_next(d, &tid);)
		if (read_facts(p->pid, tid, &f))
			vec_push(&facts, f);
	for (uint32_t i = 1; i < e->room.nthreads && d; i++) {
		struct wire_thread *t = area_thread(e, i);
		const struct facts *of = NULL;

		for (uint32_t k = 0; k < facts.n && tids[i] && !of; k++)
			of = facts.v[k].tid == tids[i] ? &facts.v[k] : NULL;
		if (of) {
			memcpy(t->comm, of->comm, sizeof(t->comm));
			tell(e, i, p->index + 1,
			     &(struct wire_told){ .tid = tids[i], .masked = of->masked },
			     of->constant);
		} else if (tids[i]) {
			tell(e, i, p->index + 1, &(struct wire_told){ .tid = tids[i], .gone = 1 },
			     true);
		}
	}
	vec_fini(&facts);
}

/* Sets wire_kept.quiet for a filter that the agent has not seen. */
static void set_quiet(struct inproc_engine *e, const struct inproc_process *p)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", (int)p->pid);
	cleanup_close int mem = open(path, O_RDWR | O_CLOEXEC);
	const uint32_t on = 1;
	const uint64_t at = e->addr + WIRE_PRIVATE + WIRE_KEPT + offsetof(struct wire_kept, quiet);

	if (mem >= 0 && process_is_ours(e, p->pid) &&
	    procmem_pwrite(p->pid, mem, &on, sizeof(on), at) != sizeof(on) && errno != ESRCH)
		inproc_note(e, "process %d: cannot write to its memory: %s", (int)p->pid,
			    strerror(errno));
}

static void become_quiet(struct inproc_engine *e, struct inproc_process *p)
{
	const char *needs = needs_calls(e);

	p->quiet = true;
	e->area->filtered = 1;
	p->hooked = false; /* no bell reports libraries from now on */
	e->family.loads_next = 0;
	set_quiet(e, p);
	if (needs)
		inproc_note(
			e,
			"process %d has begun to filter its system calls (seccomp, Syscall User Dispatch): %s needs a system call and no longer works there",
			(int)p->pid, needs);
}

/* Checks the first thread, and one of the others in each call. */
static bool is_filtered(struct inproc_process *p)
{
	cleanup_dir DIR *d = NULL;
	uint32_t i = 0;

	if (control_filtered(p->pid, p->pid))
		return true;
	d = procdir_threads(p->pid);
	for (pid_t tid; procdir_next(d, &tid); i++)
		if (i == p->filter_next) {
			p->filter_next++;
			return control_filtered(p->pid, tid);
		}
	p->filter_next = 0;
	return false;
}

void seccomp_look(struct inproc_engine *e, struct inproc_process *p, uint32_t attached)
{
	uint64_t begun = now_ns();
	bool told = __atomic_load_n(&e->said[p->index].quiet, __ATOMIC_ACQUIRE) && !p->quiet;

	if (!told && begun < p->filter_look)
		return;
	if (!p->quiet && (told || is_filtered(p)))
		become_quiet(e, p);
	if (p->quiet)
		publish(e, p);
	p->filter_look = begun + (LOOK_NS + (now_ns() - begun) * SHARE) * (1 + attached / FEW);
}

bool seccomp_any(const struct inproc_engine *e)
{
	bool any = false;

	for (uint32_t i = 0; i < e->processes.n; i++)
		any |= e->processes.v[i].attached && e->processes.v[i].quiet;
	return any;
}
