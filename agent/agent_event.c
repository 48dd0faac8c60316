/* Makes contexts of the kernel's tracepoints for events of this process. A task_struct is a copy of
 * the tracer's stand-in for the process, changed where a thread or a child differs. */
#include "agent/agent.h"

enum { RAX = 10, RDX = 12, RSI, RDI, ORIG_RAX, R10 = 7 }; /* words of struct pt_regs */
enum {
	PR_GET_NAME = 16,
	MEMORY_FLAG = 0x100,   /* CLONE_VM */
	THREAD_FLAG = 0x10000, /* CLONE_THREAD */
	SIGNALS = 64,
	FUTEX_WAIT = 0,
	FUTEX_WAKE = 1,
	ASK_TIMES = 10,
	ASK_NS = 20000000,
	NLINK = 2, /* word of struct stat */
	COMM_SIZE = 16,
	ANCESTORS = 16,
};

static inline void put32(uint64_t at, uint32_t off, uint32_t v)
{
	*(any32 *)(at + off) = v;
}
static inline any64 *word_at(uint64_t at, uint32_t off)
{
	return (any64 *)(at + off);
}

/* Returns the place of the thread's own task_struct, or of another's. */
static uint64_t room(const struct wire_thread *t, bool other)
{
	const struct wire_task_layout *l = &area()->task;

	return (uintptr_t)(event_of(t) + 1) +
	       (other ? l->task_size + l->signal_size + l->mm_size : 0);
}

/* Returns the signal_struct of a stand-in. Those of the thread stand behind their task_structs. */
static uint64_t signal_of(const struct wire_thread *t, uint64_t task)
{
	const struct wire_task_layout *l = &area()->task;

	return task == room(t, false) || task == room(t, true) ? task + l->task_size
							       : *word_at(task, l->signal);
}

/* Copies a stand-in with other numbers, and with a signal_struct of its own. */
static uint64_t copy(const struct wire_thread *t, bool other, uint64_t from, uint32_t pid,
		     uint32_t tgid)
{
	const struct wire_task_layout *l = &area()->task;
	uint64_t to = room(t, other), signal = signal_of(t, to);

	mem_copy((void *)to, (void *)from, l->task_size);
	mem_copy((void *)signal, (void *)signal_of(t, from), l->signal_size);
	*word_at(to, l->signal) = signal;
	put32(to, l->pid, pid);
	put32(to, l->tgid, tgid);
	return to;
}

/* Returns the stand-in of the nearest ancestor that the tracer has seen, beginning with this
 * number. When the line of ancestors is broken, returns that of the first traced process, as
 * root_of() in the tracer does. */
static uint64_t parents_task(uint32_t pid)
{
	for (int hops = 0; hops < ANCESTORS && pid; hops++) {
		uint32_t next = 0;

		for (uint32_t i = 1; i < WIRE_PROCESSES_MAX; i++) {
			if (process(i)->own_pid == pid && process(i)->task)
				return process(i)->task;
			if (said(i)->own_pid == pid)
				next = said(i)->ppid;
		}
		pid = next;
	}
	return process(1)->task;
}

/* Makes the thread's stand-in. A followed child has none until the tracer has found it, and uses
 * its parent's until then. */
void own_task(struct wire_thread *t)
{
	const struct wire_process *p = process(self());
	/* the tracer may write it at any time */
	uint64_t from = *(volatile const uint64_t *)&p->task;
	uint32_t ppid = p->own_pid ? p->ppid : said(self())->ppid;
	struct wire_own *o = own_words(t);
	bool known = from;

	t->task = o->task = from;
	if (!area()->task.task_size)
		return;
	if (!from)
		from = parents_task(ppid);
	if (!from)
		return;
	t->task = o->task = copy(t, false, from, t->tid, t->pid);
	if (!known)
		*word_at(o->task, area()->task.real_parent) = from;
	mem_copy((void *)(o->task + area()->task.comm), t->comm, COMM_SIZE);
}

/* Returns true when the agent may make system calls. Under a seccomp filter it makes none that the
 * program does not make itself. */
static bool may_ask(void)
{
	return !kept()->no_vm_read && !quiet();
}

/* Returns the number of threads of this process, itself included, 0: not known. */
static uint32_t threads(void)
{
	uint64_t st[18];

	return may_ask() && !try2(SYS_STAT, (uintptr_t) "/proc/self/task", (uintptr_t)st)
		       ? (uint32_t)st[NLINK] - 2
		       : 0;
}

static void put_threads(const struct wire_thread *t, uint64_t task, uint32_t n, uint32_t live)
{
	uint64_t signal = signal_of(t, task);

	put32(signal, area()->task.nr_threads, n);
	put32(signal, area()->task.live, live);
}

/* Returns true when n bytes lie in facts or shared memory. */
static bool is_told(uint64_t at, uint64_t n)
{
	uint64_t off = at - (uintptr_t)area();

	return off < area()->span && n <= area()->span - off;
}

/* Makes the stand-in of a child with this number. n: number of threads that the process has now. A
 * new thread counts, even if it has ended already. */
static uint64_t child(struct wire_thread *t, const uint64_t *regs, uint32_t nr, uint32_t number,
		      uint32_t n)
{
	const struct wire_task_layout *l = &area()->task;
	uint64_t flags = nr == SYS_CLONE   ? regs[RDI]
			 : nr == SYS_VFORK ? MEMORY_FLAG
					   : 0,
		 c, mm, from;
	const uint64_t task = room(t, false);

	if (nr == SYS_CLONE3)
		agent_probe_read((uintptr_t)&flags, sizeof(flags), regs[RDI], 0, 0, t);
	if (flags & THREAD_FLAG) {
		if (n == 1)
			put_threads(t, task, 2, 2);
		return copy(t, true, task, number, t->pid);
	}
	c = copy(t, true, task, number, number);
	if (!(flags & MEMORY_FLAG)) {
		mm = c + l->task_size + l->signal_size;
		from = *(volatile any64 *)word_at(c, l->mm);
		if (is_told(from, l->mm_size)) {
			mem_copy((void *)mm, (void *)from, l->mm_size);
			*word_at(c, l->mm) = mm;
		}
	}
	*word_at(c, l->real_parent) = task;
	put_threads(t, c, 1, 1);
	return c;
}

/* Returns the tracer's answer, 0: it is not valid. Other processes may write there, so only the
 * address of one of the tracer's rooms is valid. */
static uint64_t answer_of(const struct wire_wanted *w)
{
	const uint64_t task = __atomic_load_n(&w->answer, __ATOMIC_RELAXED),
		       off = task - area()->rooms, size = area()->room_size;

	return size && off % size == 0 && off / size < area()->nrooms ? task : 0;
}

/* Requests the stand-in of a thread from the tracer. Returns 0 when the tracer does not answer, or
 * knows no such thread. */
static uint64_t ask(const struct wire_thread *t, uint32_t tid)
{
	struct wire_wanted *w = (struct wire_wanted *)((uintptr_t)t + area()->wanted);
	struct wire_ask *a = &common()->ask;
	const uint64_t time[2] = { 0, ASK_NS };
	uint32_t mine, have;

	if (quiet() || !area()->wanted)
		return 0;
	w->answer = 0;
	__atomic_store_n(&w->tid, tid, __ATOMIC_RELEASE);
	mine = __atomic_add_fetch(&a->asked, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&a->on, __ATOMIC_SEQ_CST))
		return 0;
	try4(SYS_FUTEX, (uintptr_t)&a->asked, FUTEX_WAKE, 1, 0);
	for (int i = 0; i < ASK_TIMES; i++) {
		if (quiet())
			return 0;
		have = __atomic_load_n(&a->answered, __ATOMIC_ACQUIRE);
		if ((int32_t)(have - mine) >= 0)
			return answer_of(w);
		try4(SYS_FUTEX, (uintptr_t)&a->answered, FUTEX_WAIT, have, (uintptr_t)time);
	}
	__atomic_store_n(&a->on, 0, __ATOMIC_RELAXED);
	return 0;
}

/* Fires a signal that is about to be sent. The same call without a signal shows whether it may be
 * sent. */
static bool sends(struct wire_thread *t, struct wire_event *ev, const uint64_t *regs, uint32_t nr)
{
	bool group = nr == SYS_KILL || nr == SYS_RT_SIGQUEUEINFO, last = group || nr == SYS_TKILL;
	uint64_t tid = last ? regs[RDI] : regs[RSI], sig = last ? regs[RSI] : regs[RDX],
		 task = room(t, false);

	if (!last && nr != SYS_TGKILL && nr != SYS_RT_TGSIGQUEUEINFO)
		return false;
	if ((uint32_t)sig - 1 >= SIGNALS || (may_ask() && try4(nr, regs[RDI], last ? 0 : regs[RSI],
							       last ? regs[RDX] : 0, regs[R10])))
		return false;
	if ((uint32_t)tid != t->own_tid) {
		task = (int32_t)tid > 0 ? ask(t, (uint32_t)tid) : 0;
		if (!task) {
			task = room(t, true);
			mem_zero((void *)task, area()->task.task_size);
			put32(task, area()->task.pid, (uint32_t)tid);
			put32(task, area()->task.tgid, (uint32_t)tid);
		}
	}
	ev->word[0] = (uint32_t)sig;
	ev->word[1] = ev->word[4] = 0;
	ev->word[2] = task;
	ev->word[3] = group;
	return true;
}

/* Returns true for the thread that ends the process. The first thread that claims this is the
 * one. */
static bool is_last(struct wire_thread *t, uint32_t nr, uint32_t nthreads)
{
	uint32_t *tid = &said(self())->exit_tid, none = 0;

	if (nr != SYS_EXIT_GROUP && nthreads != 1)
		return false;
	return __atomic_compare_exchange_n(tid, &none, t->own_tid, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED) ||
	       none == t->own_tid;
}

ENTRY uint64_t agent_event(const uint64_t *regs, const struct wire_stub *stub,
			   struct wire_thread *t)
{
	struct wire_event *ev = event_of(t);
	uint32_t kind = (uint16_t)stub->kind, nr = (uint32_t)regs[ORIG_RAX], n;
	uint32_t result = (uint32_t)regs[RAX];
	uint64_t task;
	bool forks = nr - SYS_CLONE < 3 || nr == SYS_CLONE3, last;

	ev->word[0] = (uintptr_t)regs;
	ev->word[1] = regs[RAX];
	if (kind == WIRE_STUB_LEAVES)
		return (uintptr_t)ev;
	if (!own_words(t)->task)
		own_task(t);
	if (!own_words(t)->task)
		return 0;
	task = room(t, false); /* own_task() has put it there */
	try2(SYS_PRCTL, PR_GET_NAME, (uintptr_t)t->comm);
	t->comm_time = now_ns();
	mem_copy((void *)(task + area()->task.comm), t->comm, COMM_SIZE);
	if (kind == WIRE_STUB_ENTERS) {
		ev->word[1] = nr;
		return (uintptr_t)ev;
	}
	n = threads();
	if (n)
		put_threads(t, task, n, n);
	ev->word[0] = task;
	switch (kind) {
	case WIRE_STUB_EXECS:
	case WIRE_STUB_STAYS:
		if (nr != SYS_EXECVE && nr != SYS_EXECVEAT)
			return 0;
		__atomic_fetch_add(&said(self())->execs, kind == WIRE_STUB_EXECS ? 1 : ~0u,
				   __ATOMIC_SEQ_CST);
		if (kind == WIRE_STUB_EXECS)
			ask(t, ~0u); /* makes the tracer watch for the new program */
		return 0;
	case WIRE_STUB_FORKS:
		if (!forks || (int32_t)result <= 0)
			return 0;
		ev->word[1] = child(t, regs, nr, result, n);
		break;
	case WIRE_STUB_STARTS:
		if (!forks || result)
			return 0;
		ev->word[1] = ev->word[2] = task;
		break;
	case WIRE_STUB_EXITS:
		if (nr != SYS_EXIT && nr != SYS_EXIT_GROUP)
			return 0;
		last = is_last(t, nr, n);
		put32(task, area()->task.exit_code, (uint32_t)(regs[RDI] & 0xff) << 8);
		if (n)
			put_threads(t, task, n, last ? 0 : n);
		t->ended = t->own_tid;
		ev->word[1] = last;
		break;
	default: return sends(t, ev, regs, nr) ? (uintptr_t)ev : 0;
	}
	return (uintptr_t)ev;
}
