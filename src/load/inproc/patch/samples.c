/* profile-N of the traced processes: makes a thread fire that has run for a period.
 *
 * descry puts no timer and no signal into the process. The tracer reads the CPU time of each
 * thread. It stops a thread alone, for about ten microseconds (control_glance()), when the thread
 * is running and due. When the thread stands in its program's own code, it continues at an entry in
 * descry's code. The entry runs the probe, as a probe in the middle of a function does, and returns
 * to the place:
 *
 *	struct wire_stub                     site: the thread's place
 *	lea -128(%rsp),%rsp                  the red zone
 *	call *slot(%rip)                     the thunk
 *	push orig(%rip)
 *	push %rax; mov $0,%eax; mov %eax,busy; pop %rax     the entry may be used again: the stack holds the rest
 *	ret $128
 *	slot, orig
 *
 * When the tracer is killed at any instant, the thread returns by itself. A signal that its own
 * instruction has raised is delivered first, because the handler may look at the instruction
 * (control_wait_interrupt()). The tracer does not divert threads in system calls, in descry's code,
 * in restartable sequences (the kernel must notice their interruption), and those that are still in
 * an entry.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/plan_private.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/identity.h"
#include "load/inproc/state/process_state.h"

enum {
	ENTRIES = 4096,
	/* an entry that is busy for longer was left by longjmp(), and is not used again */
	LOST_NS = 1000000000,
	CREDIT_MAX = 8, /* largest number of samples that a thread may be late by */
	GLANCE_MS = 50,
	STACK_ROOM = 4096, /* more than a sample takes */
	LOOK_NS = 100000000,
};

struct entry {
	struct wire_stub stub;
	uint8_t code[48];
	uint64_t slot, orig;
};
_Static_assert(sizeof(struct entry) == 80, "slot and orig are found from the code");

/* A thread and one probe. */
struct thread {
	pid_t pid, tid;
	uint32_t probe;
	uint32_t entry;    /* number + 1; 0: none yet */
	uint64_t since;    /* ns: when the thread was sent there */
	uint64_t ran, due; /* ns of CPU time: at the last reading; at the next sample */
	uint64_t seen;     /* ns */
	uint64_t fs_base, stack_lo, stack_hi; /* its stack, 0: not known */
	uint64_t looked;                      /* ns: when it was looked for */
};
struct inproc_samples {
	struct entry *entries; /* the tracer's view */
	uint64_t addr;         /* their address in the process */
	uint32_t *busy;        /* in shared memory, as entries */
	uint32_t used;
	uint64_t now; /* ns */
	VEC(struct thread) threads;
	bool complained; /* about stacks */
};

struct err *samples_start(struct inproc_engine *e)
{
	const uint64_t size = sizeof(struct entry) * ENTRIES;
	struct inproc_samples *s;
	bool wanted = false;

	for (uint32_t i = 0; i < e->base.image->nprogs; i++)
		wanted |= e->base.image->progs[i].attach == ATTACH_PROFILE;
	if (!wanted)
		return NULL;
	e->samples = s = xcalloc(1, sizeof(*s));
	s->busy = (uint32_t *)area_alloc_shared(e, sizeof(*s->busy) * ENTRIES);
	if (!s->busy || e->room.code_used + size > WIRE_CODE_SIZE)
		return err_new(ENOMEM, "profile: no room for its code");
	s->addr = e->addr + e->room.code_used;
	s->entries = (struct entry *)(void *)(e->code + e->room.code_used);
	e->room.code_used += size;
	return NULL;
}

void samples_stop(struct inproc_engine *e)
{
	if (!e->samples)
		return;
	vec_fini(&e->samples->threads);
	free(e->samples);
	e->samples = NULL;
}

/* Does not sample Go programs: a goroutine may use its stack up to the last byte, and the end of
 * its stack is not known. */
void samples_plan(struct inproc_engine *e, struct inproc_process *p, const struct mappings *maps)
{
	if (p->served && e->samples && !p->unsampled) {
		p->unsampled = true;
		inproc_note(e, "process %d is not sampled: ptrace(2) is forbidden here",
			    (int)p->pid);
	}
	for (uint32_t i = 0; i < maps->n && e->samples && !p->unsampled; i++) {
		const struct mapping *m = &maps->v[i];
		struct object *o = m->exec ? symbols_object(e->symbols, p->pid, m) : NULL;
		struct text *text = NULL;

		if (!o || !object_is_executable(o))
			continue;
		err_free(sites_text(e, o, &text));
		p->unsampled = text && text_refused(text) == TEXT_GO;
		if (p->unsampled)
			inproc_note(e, "process %d runs Go's code: it is not sampled", (int)p->pid);
	}
}

static void write_entry(const struct inproc_engine *e, uint32_t i, uint32_t prog, uint32_t probe,
			uint64_t pc)
{
	struct inproc_samples *s = e->samples;
	struct entry *x = &s->entries[i];
	const struct inproc_prog *p = &e->progs[prog];
	const uint64_t busy = (uintptr_t)&s->busy[i];
	const int32_t to_slot =
		(int32_t)(offsetof(struct entry, slot) - offsetof(struct entry, code) - 11);
	const int32_t to_orig =
		(int32_t)(offsetof(struct entry, orig) - offsetof(struct entry, code) - 17);

	x->stub = (struct wire_stub){ .site = pc, .probe = probe, .kind = WIRE_STUB_MID };
	memcpy(x->code, "\x48\x8d\x64\x24\x80\xff\x15", 7);
	memcpy(x->code + 7, &to_slot, 4);
	memcpy(x->code + 11, "\xff\x35", 2);
	memcpy(x->code + 13, &to_orig, 4);
	memcpy(x->code + 17, "\x50\xb8\0\0\0\0\xa3", 7);
	memcpy(x->code + 24, &busy, 8);
	memcpy(x->code + 32, "\x58\xc2\x80\x00\xcc", 5);
	x->slot = p->addr + p->code.thunk[WIRE_STUB_MID];
	x->orig = pc;
}

/* --- one thread --- */

struct glance {
	struct inproc_engine *e;
	const struct inproc_process *p;
	const struct thread *t;
	uint32_t entry, prog, probe;
	bool astray; /* its stack pointer is not in its stack */
	uint64_t fs_base, sp;
};

/* Returns true when the address lies in descry's code, or in a stub, from which the thread returns
 * in another way. */
static bool is_ours(const struct glance *g, uint64_t pc)
{
	if (pc >= g->e->addr && pc - g->e->addr < WIRE_BASE_STEP)
		return true;
	for (uint32_t i = 0; i < g->p->modules.n; i++)
		if (pc - g->p->modules.v[i].island < g->p->modules.v[i].island_size)
			return true;
	return false;
}

static bool divert(void *arg, struct user_regs_struct *regs)
{
	struct glance *g = arg;
	struct inproc_samples *s = g->e->samples;

	g->fs_base = regs->fs_base;
	g->sp = regs->rsp;
	if (!control_is_64bit(regs) || is_ours(g, regs->rip) || is_ours(g, regs->rsp) ||
	    !identity_is_set(g->e, regs) || !process_holds(g->e, g->t->tid))
		return false;
	g->astray = g->t->fs_base != g->fs_base || g->sp < g->t->stack_lo + STACK_ROOM ||
		    g->sp > g->t->stack_hi;
	if (g->astray)
		return false;
	write_entry(g->e, g->entry, g->prog, g->probe, regs->rip);
	__atomic_store_n(&s->busy[g->entry], 1, __ATOMIC_SEQ_CST);
	regs->rip = s->addr + g->entry * sizeof(struct entry) + offsetof(struct entry, code);
	return true;
}

/* Chooses an entry for the thread. Returns false when the thread is still in its last one, or there
 * is none. */
static bool choose_entry(struct inproc_samples *s, struct thread *t, uint64_t now)
{
	if (t->entry && __atomic_load_n(&s->busy[t->entry - 1], __ATOMIC_ACQUIRE)) {
		if (now - t->since < LOST_NS)
			return false;
		t->entry = 0;
	}
	if (!t->entry && s->used < ENTRIES)
		t->entry = ++s->used;
	return t->entry;
}

/* Finds the thread's stack, at times. Returns true when the stack pointer was in it. */
static bool look_for_stack(const struct glance *g, struct thread *t, uint64_t now)
{
	struct mappings maps = { 0 };
	bool found;

	if (t->looked && now - t->looked < LOOK_NS)
		return false;
	t->looked = now;
	t->fs_base = g->fs_base;
	err_free(mappings_read_whole(g->p->pid, &maps));
	found = control_find_stack(&maps, t->tid == g->p->pid, g->fs_base, g->sp, &t->stack_lo,
				   &t->stack_hi);
	mappings_free(&maps);
	if (!found)
		t->stack_lo = t->stack_hi = 0;
	if (!found && !g->e->samples->complained) {
		g->e->samples->complained = true;
		inproc_note(
			g->e,
			"process %d has threads on stacks of their own making: they are not sampled there",
			(int)g->p->pid);
	}
	return found;
}

static void sample(struct inproc_engine *e, const struct inproc_process *p, struct thread *t,
		   uint32_t prog, uint32_t probe)
{
	struct glance g = { .e = e, .p = p, .t = t, .prog = prog, .probe = probe };
	uint64_t now = now_ns();

	if (!choose_entry(e->samples, t, now))
		return;
	g.entry = t->entry - 1;
	for (int i = 0; i < 2; i++) {
		g.astray = false;
		if (control_glance(p->pid, t->tid, GLANCE_MS, divert, &g))
			t->since = now;
		if (!g.astray || !look_for_stack(&g, t, now))
			break;
	}
}

/* --- which threads --- */

static struct thread *find_thread(struct inproc_samples *s, pid_t pid, pid_t tid, uint32_t probe)
{
	struct thread *free = NULL;

	for (uint32_t i = 0; i < s->threads.n; i++) {
		struct thread *t = &s->threads.v[i];

		if (t->tid == tid && t->pid == pid && t->probe == probe)
			return t;
		/* not seen for long, so it has ended */
		if (!free && s->now - t->seen > LOST_NS)
			free = t;
	}
	if (!free)
		free = vec_add(&s->threads);
	/* an entry that a thread was in when it ended is not used again */
	if (free->entry && __atomic_load_n(&s->busy[free->entry - 1], __ATOMIC_ACQUIRE))
		free->entry = 0;
	*free = (struct thread){
		.pid = pid, .tid = tid, .probe = probe, .entry = free->entry, .ran = UINT64_MAX
	};
	return free;
}

static bool read_task(pid_t pid, pid_t tid, const char *file, char *buf, size_t size)
{
	char path[96];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool is_running(pid_t pid, pid_t tid)
{
	char text[512], *p;

	p = read_task(pid, tid, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
	return p && p[1] == ' ' && p[2] == 'R';
}

/* Makes a thread fire once for each period of its CPU time. */
static void look_at_task(struct inproc_engine *e, const struct inproc_process *p, pid_t tid,
			 uint32_t prog, uint32_t probe, uint64_t period)
{
	struct inproc_samples *s = e->samples;
	struct thread *t = find_thread(s, p->pid, tid, probe);
	char text[128];

	t->seen = s->now;
	if (!read_task(p->pid, tid, "schedstat", text, sizeof(text)))
		return;
	if (t->ran == UINT64_MAX)
		t->due = strtoull(text, NULL, 10) + period;
	t->ran = strtoull(text, NULL, 10);
	if (t->ran < t->due || !is_running(p->pid, tid))
		return;
	t->due += period;
	if (t->due + period * CREDIT_MAX < t->ran)
		t->due = t->ran - period * CREDIT_MAX;
	sample(e, p, t, prog, probe);
}

void samples_take(struct inproc_engine *e, uint32_t prog, uint32_t probe, uint64_t period)
{
	if (!e->samples)
		return;
	e->samples->now = now_ns();
	for (uint32_t i = 0; i < e->processes.n; i++) {
		const struct inproc_process *p = &e->processes.v[i];
		cleanup_dir DIR *d = p->attached && !p->unsampled ? procdir_threads(p->pid) : NULL;

		for (pid_t tid; procdir_next(d, &tid);)
			look_at_task(e, p, tid, prog, probe, period);
	}
	control_settle();
}

bool samples_quiet(const struct inproc_engine *e, struct control *c)
{
	const struct inproc_samples *s = e->samples;
	struct control_thread *t;
	uint32_t n;

	if (!s)
		return true;
	t = control_threads(c, &n);
	for (uint32_t i = 0; i < n; i++)
		if (t[i].regs.rip - s->addr < ENTRIES * sizeof(struct entry))
			return false;
	for (uint32_t i = 0; i < s->threads.n; i++)
		if (s->threads.v[i].pid == control_pid(c) && s->threads.v[i].entry &&
		    __atomic_load_n(&s->busy[s->threads.v[i].entry - 1], __ATOMIC_ACQUIRE))
			return false;
	return true;
}

/* Returns true when the probe counts time and nothing else. */
bool samples_can(const struct probe *p)
{
	return !p->perf.hardware && (!p->perf.event || p->perf.event == PERF_COUNT_SW_CPU_CLOCK) &&
	       !p->perf.no_user;
}
