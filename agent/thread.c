/* Thread slots: finds this thread's slot. Also handles forked children, who have no slots. */
#include "agent/agent.h"
#include "agent/ring.h"

#define KEY_BUSY ~0ull /* an entry being written */
#define KEY_DELETED (~0ull - 1)
#define CLAIMING (1u << 31) /* in wire_thread.owner and wire_own.holder: the slot changes hands */

enum {
	NO_SLOT_NS = 1000000, /* time without a new search when no slot was free */
	PR_GET_NAME = 16,
	ARCH_GET_FS = 0x1003,
	/* nested firings until the next check whether the running firing's thread is dead */
	RENEW_EVERY = 64,
	SHORT_LOOK = 16,
	SIG_SETMASK = 2,
	SS_DISABLE = 2,
	CLAIM_SPINS = 1000000,
};

/* Work during which a signal handler's probe in the same thread must not run. */
struct hold {
	uint64_t mask;
	bool blocked;    /* signals are */
	uint64_t *claim; /* this thread's entry of wire_private.claims; NULL: none */
};

/* Claims the key, so that a thread does this work once at a time. Returns false when the thread is
 * already in it, further down the stack. */
static bool claim_key(uint64_t key, uint64_t **ret)
{
	uint64_t *c = private()->claims;

	for (int n = 0; n < CLAIM_SPINS; n++) {
		for (int i = 0; i < WIRE_CLAIMS; i++)
			if (__atomic_load_n(&c[i], __ATOMIC_RELAXED) == key)
				return false;
		for (int i = 0; i < WIRE_CLAIMS; i++) {
			uint64_t none = 0;

			if (!__atomic_compare_exchange_n(&c[i], &none, key, false, __ATOMIC_ACQUIRE,
							 __ATOMIC_RELAXED))
				continue;
			*ret = &c[i];
			return true;
		}
		__asm__ volatile("pause");
	}
	return false;
}

/* Raises `busy` before it reads `quiet`: the thread that installs a filter writes `quiet` and then
 * waits for `busy`. */
static bool begin_alone(struct hold *h, uint64_t key)
{
	const uint64_t all = ~0ull;

	h->claim = NULL;
	__atomic_fetch_add(&kept()->busy, 1, __ATOMIC_SEQ_CST);
	h->blocked = !quiet();
	if (h->blocked) {
		sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK, (uintptr_t)&all, (uintptr_t)&h->mask, 8);
		return true;
	}
	__atomic_fetch_sub(&kept()->busy, 1, __ATOMIC_RELEASE);
	return claim_key(key, &h->claim);
}
static void end_alone(struct hold *h)
{
	if (h->claim)
		__atomic_store_n(h->claim, 0, __ATOMIC_RELEASE);
	if (!h->blocked)
		return;
	sys4(SYS_RT_SIGPROCMASK, SIG_SETMASK, (uintptr_t)&h->mask, 0, 8);
	__atomic_fetch_sub(&kept()->busy, 1, __ATOMIC_RELEASE);
}

/* Returns the thread id, when the identity word is the C library's copy of it. */
uint32_t quiet_tid(uint64_t key)
{
	return area()->identity == WIRE_ID_FS32 ? (uint32_t)key : 0;
}

/* Returns the thread's id, 0: not known. */
static uint32_t own_tid(uint64_t key)
{
	return quiet() ? quiet_tid(key) : (uint32_t)sys2(SYS_GETTID, 0, 0);
}

/* Returns the tracer's facts about a thread of this process that has the slot, NULL: there are
 * none. */
static const struct wire_told *told_of(const struct wire_thread *t, uint32_t tid)
{
	const struct wire_told *w = (const struct wire_told *)area()->told + slot_number(t);

	return tid && __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) == tid && w->process == self() + 1
		       ? w
		       : NULL;
}

bool is_masked(const struct wire_thread *t)
{
	const struct wire_told *w = told_of(t, own_words(t)->holder);

	return w && w->masked;
}

/* Returns true when the thread of this process that has the slot has ended. Where the agent makes
 * no system calls, the tracer's list decides. */
static bool is_dead(const struct wire_thread *t, uint32_t tid)
{
	const struct wire_told *w;

	if (!quiet())
		return sys4(SYS_TGKILL, own_pid(), tid, 0, 0) == E_SRCH;
	w = told_of(t, tid);
	return w && w->gone;
}

/* Returns true when the process with this owner number is gone. */
static bool is_gone(uint32_t owner)
{
	return owner <= WIRE_PROCESSES_MAX && process(owner - 1)->state == WIRE_PROCESS_GONE;
}

/* Switches programs off when the tracer has had no heartbeat for too long. */
void check_heartbeat(void)
{
	const struct wire_area *a = area();
	uint64_t now = now_ns(), beat = __atomic_load_n(&a->heartbeat, __ATOMIC_RELAXED);
	struct wire_state *s = (struct wire_state *)a->state;

	if (a->heartbeat_max && s && now > beat && now - beat > a->heartbeat_max)
		__atomic_store_n(&s->active, WIRE_OFF, __ATOMIC_RELAXED);
}

bool slot_is_dead(uint32_t i)
{
	const struct wire_thread *t = slot(i);
	uint32_t owner = i < area()->nthreads ? __atomic_load_n(&t->owner, __ATOMIC_ACQUIRE) : 0,
		 tid;

	if (!owner)
		return true;
	if (owner - 1 != self())
		return is_gone(owner);
	tid = __atomic_load_n(&own_words(t)->holder, __ATOMIC_ACQUIRE);
	return !(tid & CLAIMING) && (!tid || is_dead(t, tid));
}

/* --- the process's table --- */

struct wire_thread *find(uint64_t key)
{
	struct wire_thread_entry *e = private()->threads;
	uint32_t at = wire_thread_hash(key, area()->identity);

	for (uint32_t i = 0; i < WIRE_THREAD_HASH; i++, at = (at + 1) % WIRE_THREAD_HASH) {
		uint64_t k = __atomic_load_n(&e[at].key, __ATOMIC_ACQUIRE);

		if (k == key)
			return (struct wire_thread *)e[at].thread;
		if (!k)
			return NULL;
	}
	return NULL;
}

static bool enter(uint64_t key, struct wire_thread *t)
{
	struct wire_thread_entry *e = private()->threads;
	uint32_t at = wire_thread_hash(key, area()->identity);

	for (uint32_t i = 0; i < WIRE_THREAD_HASH; i++, at = (at + 1) % WIRE_THREAD_HASH) {
		uint64_t k = __atomic_load_n(&e[at].key, __ATOMIC_RELAXED);

		if ((!k || k == KEY_DELETED) &&
		    __atomic_compare_exchange_n(&e[at].key, &k, KEY_BUSY, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			e[at].thread = (uintptr_t)t;
			own_words(t)->entry = (uintptr_t)&e[at];
			__atomic_store_n(&e[at].key, key, __ATOMIC_RELEASE);
			__atomic_store_n(&e[at].rsp, WIRE_IDLE, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}

/* Removes the entry of a dead thread, because its key may come back as another thread's. */
static void forget(struct wire_own *o)
{
	struct wire_thread_entry *e = (struct wire_thread_entry *)o->entry;

	if (!e)
		return;
	o->entry = 0;
	e->retired = 0;
	__atomic_store_n(&e->rsp, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&e->key, KEY_DELETED, __ATOMIC_RELEASE);
}

/* --- slots --- */

/* Returns true when no thread has the slot whose holder was tid. Where the tracer's list decides, a
 * new thread with the same id may have found the entry since the tracer's look. So removes the key
 * first, and then waits for two more looks that find no thread of this id: one may have begun
 * before. */
static bool is_left(const struct wire_thread *t, uint32_t tid)
{
	const struct wire_own *o = own_words(t);
	struct wire_thread_entry *e = (struct wire_thread_entry *)o->entry;
	const struct wire_told *w;
	uint64_t gone, key = o->key;

	if (!quiet())
		return is_dead(t, tid);
	w = told_of(t, tid);
	gone = w ? __atomic_load_n(&w->gone, __ATOMIC_ACQUIRE) : 0;
	if (!gone || !e)
		return gone;
	if (e->retired > gone + 1) /* it has lived again */
		e->retired = gone + 1;
	if (e->retired)
		return gone + 1 - e->retired >= 2;
	/* another thread may have given the entry away meanwhile */
	if (__atomic_compare_exchange_n(&e->key, &key, KEY_BUSY, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED))
		e->retired = (uint64_t)__atomic_load_n(&w->gone, __ATOMIC_SEQ_CST) + 1;
	return false;
}

bool in_vfork(uint32_t pid)
{
	uint32_t own = private()->ready ? own_pid() : 0;

	return own && own != pid;
}

/* Returns true in a vfork() child. This is not known where the agent makes no system calls; the
 * child then counts as its parent. */
static bool is_vfork_child(void)
{
	return !quiet() && in_vfork((uint32_t)sys2(SYS_GETPID, 0, 0));
}

/* Writes the numbers that the tracer has for the thread. Comes after the store of `owner`, because
 * number_threads() of follow/life.c writes wire_process.pid first and then looks for owners. */
static void show_numbers(struct wire_thread *t, const struct wire_own *o, uint32_t tid)
{
	const uint32_t pid = __atomic_load_n(&process(self())->pid, __ATOMIC_SEQ_CST);

	if (!pid && kept()->apart) {
		t->pid = t->tid = 0;
		return;
	}
	t->pid = pid ?: o->pid;
	t->tid = tid == o->pid ? t->pid : tid;
}

/* Makes the slot this thread's. From now on it is not taken for a dead thread's. */
static void own_slot(struct wire_thread *t, uint64_t key, uint32_t tid)
{
	struct wire_own *o = own_words(t);

	o->key = key;
	o->pid = own_pid() ?: (uint32_t)try2(SYS_GETPID, 0, 0);
	t->own_tid = tid;
	__atomic_store_n(&o->holder, tid, __ATOMIC_RELEASE);
	__atomic_store_n(&t->owner, self() + 1, __ATOMIC_SEQ_CST);
	show_numbers(t, o, tid);
}

/* Takes a slot that is free, or whose thread of this process is dead, or whose process is gone. Two
 * threads of a process never get the same slot, whatever other processes write into it, because
 * wire_own.holder decides. */
static bool take(struct wire_thread *t, uint64_t key, uint32_t tid)
{
	struct wire_own *o = own_words(t);
	uint32_t owner = __atomic_load_n(&t->owner, __ATOMIC_ACQUIRE),
		 holder = __atomic_load_n(&o->holder, __ATOMIC_ACQUIRE), was = holder;

	/* Threads of another living process have entries in that process's table, which only that
	 * process can change. */
	if (is_tracer(t) || (owner && owner != self() + 1 && !is_gone(owner)) ||
	    holder & CLAIMING || (holder && !is_left(t, holder)) ||
	    !__atomic_compare_exchange_n(&o->holder, &was, tid | CLAIMING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	/* a thread with the same number may have taken it meanwhile: the holder looks the same */
	if ((holder && !is_left(t, holder)) ||
	    !__atomic_compare_exchange_n(&t->owner, &owner, (self() + 1) | CLAIMING, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		__atomic_store_n(&o->holder, holder, __ATOMIC_RELEASE);
		return false;
	}
	if (holder)
		forget(o);
	own_slot(t, key, tid);
	return true;
}

static bool rings_are_empty(const struct wire_thread *t)
{
	const struct wire_map *m = (const struct wire_map *)area()->maps;

	for (uint32_t i = 0; i < area()->nmaps; i++) {
		const struct wire_ring *r = (const struct wire_ring *)((uintptr_t)t + m[i].base);

		if (m[i].kind == WIRE_MAP_RING &&
		    r->head != __atomic_load_n(&r->tail, __ATOMIC_RELAXED))
			return false;
	}
	return true;
}

/* Takes a slot that a thread of this process has left, if a short search finds one. So threads that
 * come and go leave slots to other processes. Otherwise takes a free slot, or any whose thread is
 * dead. */
static struct wire_thread *take_slot(uint64_t key, uint32_t tid)
{
	uint32_t n = area()->nthreads;

	for (uint32_t i = 0; i < SHORT_LOOK; i++) {
		uint32_t at = __atomic_fetch_add(&private()->next_slot, 1, __ATOMIC_RELAXED) % n;
		struct wire_thread *t = slot(at);

		if (__atomic_load_n(&t->owner, __ATOMIC_RELAXED) == self() + 1 &&
		    rings_are_empty(t) && take(t, key, tid))
			return t;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct wire_thread *t = slot((tid + i) % n);

		if (!__atomic_load_n(&t->owner, __ATOMIC_RELAXED) && take(t, key, tid))
			return t;
	}
	for (uint32_t i = 0; i < n; i++)
		if (take(slot(i), key, tid))
			return slot(i);
	return NULL;
}

/* Clears the remains of a firing that never ended: scratch in use, unfinished records. */
static void clean_up(struct wire_thread *t)
{
	const struct wire_map *m = (const struct wire_map *)area()->maps;

	for (uint32_t i = 0; i < area()->nmaps; i++) {
		uint8_t *at = (uint8_t *)t + m[i].base;

		if (m[i].kind == WIRE_MAP_RING)
			ring_abandon((struct wire_ring *)at, m[i].max_entries);
		for (uint32_t k = 0; m[i].flags & WIRE_MAP_BUSY_WORD &&
				     m[i].kind == WIRE_MAP_THREAD_ARRAY && k < m[i].max_entries;
		     k++)
			*(uint64_t *)(at + (uint64_t)k * m[i].stride) = 0;
	}
}

/* Clears the data of the slot's previous thread. Keeps its records, aggregations and counters,
 * which the tracer takes. */
static void set_up(struct wire_thread *t, uint32_t tid, uint64_t rsp)
{
	const struct wire_map *m = (const struct wire_map *)area()->maps;
	const struct wire_process *p = process(self());
	const struct wire_said *s = said(self());
	struct wire_own *o = own_words(t);

	clean_up(t);
	for (uint32_t i = 0; i < area()->nmaps; i++)
		if (task_value(t, &m[i]))
			mem_zero(task_value(t, &m[i]), m[i].value_size);
	t->uid = p->own_pid ? p->uid : s->uid;
	t->gid = p->own_pid ? p->gid : s->gid;
	t->gen = 0;
	o->regs = o->signals = 0;
	o->range_lo = o->range_hi = 0;
	o->range_version = 1; /* no list has an odd one: the others count no more */
	o->checks = o->named = o->unsafe = o->nested = 0;
	t->vforked = t->ended = 0;
	mem_zero(t->calls, sizeof(t->calls));
	t->random = (now_ns() ^ (uint64_t)tid * WIRE_THREAD_MIX) | 1;
	if (quiet()) { /* it is not known whether the thread has a signal stack */
		o->alt_lo = 0;
		o->alt_hi = WIRE_ALT_UNKNOWN;
	}
	ask_name(t);
	own_task(t);
	look_around(t, rsp);
}

void ask_name(struct wire_thread *t)
{
	mem_zero(t->comm, sizeof(t->comm));
	if (try2(SYS_PRCTL, PR_GET_NAME, (uintptr_t)t->comm))
		mem_copy(t->comm, kept()->comm, sizeof(t->comm));
	t->comm_time = now_ns();
}

/* Finds the thread's signal stack, where a system call is possible. Otherwise keeps the old one. */
static void look_for_signal_stack(struct wire_thread *t)
{
	struct {
		uint64_t at;
		int32_t flags, pad;
		uint64_t size;
	} alt;
	struct wire_own *o = own_words(t);

	if (quiet())
		return;
	o->alt_lo = o->alt_hi = 0;
	if (sys2(SYS_SIGALTSTACK, 0, (uintptr_t)&alt) || alt.flags & SS_DISABLE)
		return;
	o->alt_lo = alt.at;
	o->alt_hi = alt.at + alt.size;
}

uint64_t thread_pointer(void)
{
	uint64_t fs = 0;

	if (kept()->fsgsbase)
		__asm__ volatile("rdfsbase %0" : "=r"(fs));
	else if (try2(SYS_ARCH_PRCTL, ARCH_GET_FS, (uintptr_t)&fs))
		fs = 0;
	return fs;
}

/* Finds the thread's stacks. On its signal stack, the thread has no known stack. */
void look_around(struct wire_thread *t, uint64_t rsp)
{
	const struct wire_process *p = process(self());
	struct wire_own *o = own_words(t);
	struct wire_range r;
	uint64_t fs;

	o->stack_lo = o->stack_hi = 0;
	if (!rsp)
		o->alt_lo = o->alt_hi = 0;
	else
		look_for_signal_stack(t);
	if (!rsp || !area()->reads_guarded ||
	    (o->alt_hi != WIRE_ALT_UNKNOWN && rsp - o->alt_lo < o->alt_hi - o->alt_lo))
		return;
	if (!find_range(p, rsp, &r)) {
		said(self())->ranges_wanted = 1;
		r.lo = rsp & ~(uint64_t)(PAGE - 1);
		r.hi = r.lo + PAGE;
	}
	/* A C library puts the thread's block on top of the thread's stack. The memory above may be
	 * unmapped earlier. */
	fs = thread_pointer();
	if (fs > rsp && fs < r.hi)
		r.hi = fs;
	o->stack_lo = r.lo;
	o->stack_hi = r.hi;
}

static NOINLINE struct wire_thread *claim(uint64_t key, uint64_t rsp)
{
	struct wire_private *p = private();
	uint32_t tid = own_tid(key);
	bool child = is_vfork_child();
	uint64_t now = now_ns();
	struct wire_thread *t = NULL;
	struct hold h;

	if (!tid || now < __atomic_load_n(&p->no_slot, __ATOMIC_RELAXED))
		goto none;
	/* The word is the parent's, and the parent uses the slot after the child. */
	if (child) {
		if (area()->identity != WIRE_ID_FS32)
			goto none;
		tid = (uint32_t)key;
		rsp = 0;
	}
	check_heartbeat();
	if (!begin_alone(&h, key)) /* a handler's probe would claim a second slot */
		goto none;
	keep_actions();
	t = find(key);
	if (!t) {
		t = take_slot(key, tid);
		if (t) {
			set_up(t, tid, rsp);
			t->vforked = child;
			if (!enter(key, t)) {
				__atomic_store_n(&t->owner, 0, __ATOMIC_RELEASE);
				__atomic_store_n(&own_words(t)->holder, 0, __ATOMIC_RELEASE);
				t = NULL;
			}
		} else {
			__atomic_store_n(&p->no_slot, now + NO_SLOT_NS, __ATOMIC_RELAXED);
		}
	}
	end_alone(&h);
none:
	if (!t)
		__atomic_fetch_add(&common()->no_thread, 1, __ATOMIC_RELAXED);
	return t;
}

/* --- forked children --- */

/* Fills in the child's facts, without system calls, from those of its parent. Returns the process's
 * number. */
static uint32_t describe_quiet(struct wire_said *s, uint64_t key)
{
	const uint32_t parent = kept()->process;

	s->uid = process(parent)->pid ? process(parent)->uid : said(parent)->uid;
	s->gid = process(parent)->pid ? process(parent)->gid : said(parent)->gid;
	s->ppid = process(parent)->own_pid ?: said(parent)->own_pid;
	s->quiet = 1;
	return quiet_tid(key); /* of its only thread */
}
static uint32_t describe(struct wire_said *s)
{
	s->uid = (uint32_t)sys2(SYS_GETUID, 0, 0);
	s->gid = (uint32_t)sys2(SYS_GETGID, 0, 0);
	s->ppid = (uint32_t)sys2(SYS_GETPPID, 0, 0);
	return (uint32_t)sys2(SYS_GETPID, 0, 0);
}

/* Returns true when the process, which the tracer knows, is in another pid namespace. */
static bool is_apart(uint32_t i)
{
	return process(i)->pid && process(i)->pid != process(i)->own_pid;
}

/* Adds the child to the list of processes. Writes own_pid last, because the tracer ignores the
 * entry until then. */
static bool enlist(uint64_t key)
{
	uint32_t n = __atomic_fetch_add(&common()->child_count, 1, __ATOMIC_RELAXED),
		 i = WIRE_PROCESSES_MAX - 1 - n, own;
	struct wire_said *s = said(i);

	if (n >= WIRE_PROCESSES_MAX || i <= area()->process_count) {
		__atomic_fetch_sub(&common()->child_count, 1, __ATOMIC_RELAXED);
		return false;
	}
	own = quiet() ? describe_quiet(s, key) : describe(s);
	/* the first process of a namespace is number 1; a parent of another namespace is 0 */
	kept()->apart |= own == 1 || !s->ppid || is_apart(kept()->process);
	s->ranges_wanted = 1;
	private()->process = kept()->process = i;
	private()->pid = own;
	__atomic_store_n(&s->own_pid, own, __ATOMIC_RELEASE);
	return true;
}

/* Leaves a child that is not traced. Where the agent makes no system calls, the probes stay and run
 * no program; the tracer removes them at its end. A child that is not followed has no shared
 * memory. */
static void leave_child(void)
{
	if (!quiet()) {
		agent_heal();
		restore_handlers();
	}
	private()->off = 1;
}

/* Returns true when this child is to be traced. While the tracer detaches, children restore
 * themselves, because the tracer would meet new ones without end. A child whose agent makes no
 * system calls needs the tracer for that. */
static bool is_followed(void)
{
	return area()->follow && (quiet() || !__atomic_load_n(&area()->closing, __ATOMIC_RELAXED));
}

/* Runs in a child of fork(), whose private mapping is empty. The child is traced like its parent,
 * or its text is restored before it goes on. */
NOINLINE bool forked(uint64_t key)
{
	struct wire_private *p = private();
	struct hold h;
	bool on;

	kept()->busy = 0; /* the parent's threads are not in the child */
	if (!begin_alone(&h, key))
		return false;
	if (!p->ready) {
		mem_copy(p->action, kept()->action, sizeof(p->action));
		p->signals = kept()->signals;
		if (!is_followed() || !enlist(key))
			leave_child();
		__atomic_store_n(&p->ready, 1, __ATOMIC_RELEASE);
	}
	on = !p->off;
	end_alone(&h);
	return on;
}

static void end_firing(struct wire_own *o)
{
	__atomic_store_n(&((struct wire_thread_entry *)o->entry)->rsp, WIRE_IDLE, __ATOMIC_RELEASE);
}

/* Takes over the slot of a thread that has died and whose key this thread has now. pthread_create()
 * uses the memory of dead threads again. */
static NOINLINE bool renew(struct wire_thread *t, uint64_t rsp)
{
	struct wire_own *o = own_words(t);
	uint32_t holder = __atomic_load_n(&o->holder, __ATOMIC_ACQUIRE);
	const uint64_t key = o->key;
	uint32_t tid = own_tid(key);
	struct hold h;
	bool got;

	/* a vfork() child has the key of its parent, which lives */
	if (!tid || tid == holder || holder & CLAIMING || !is_dead(t, holder) || is_vfork_child())
		return false;
	if (!begin_alone(&h, key))
		return false;
	/* a thread without a slot may take it at the same time */
	got = __atomic_compare_exchange_n(&o->holder, &holder, holder | CLAIMING, false,
					  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	if (got) {
		own_slot(t, key, tid);
		set_up(t, tid, rsp);
		end_firing(o);
	}
	end_alone(&h);
	return got;
}

ENTRY struct wire_thread *agent_thread(uint64_t key)
{
	struct wire_private *p = private();
	struct wire_thread *t;

	if ((UNLIKELY(!p->ready) && !forked(key)) || UNLIKELY(p->off))
		return NULL;
	if (!key || key >= KEY_DELETED) {
		__atomic_fetch_add(&common()->no_thread, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t = find(key);
	if (!t)
		return claim(key, (uintptr_t)__builtin_frame_address(0));
	if (UNLIKELY(area()->identity != WIRE_ID_FS32)) {
		/* otherwise the word is the thread's id */
		renew(t, (uintptr_t)__builtin_frame_address(0));
		/* the dead thread's slot, which another thread has taken meanwhile */
		if (own_words(t)->key != key ||
		    __atomic_load_n(&own_words(t)->holder, __ATOMIC_ACQUIRE) & CLAIMING)
			return claim(key, (uintptr_t)__builtin_frame_address(0));
	}
	return t;
}

/* --- a firing during another one --- */

/* A signal handler runs on the probe stack, on its own stack, or further down the thread's stack. A
 * firing at or above the place where the running firing began shows that longjmp() has left the
 * running one. */
ENTRY uint64_t agent_nested(struct wire_thread *t, uint64_t rsp)
{
	struct wire_own *o = own_words(t);
	const uint64_t running = fired_at(o);
	bool known = rsp - o->stack_lo < o->stack_hi - o->stack_lo &&
		     running - o->stack_lo < o->stack_hi - o->stack_lo;
	bool alt = o->alt_hi != WIRE_ALT_UNKNOWN && rsp - o->alt_lo < o->alt_hi - o->alt_lo;

	if (!known || alt || rsp < running) {
		/* the running firing's thread may be dead */
		if (++o->nested % RENEW_EVERY || !renew(t, rsp)) {
			t->skipped_nested++;
			return 0;
		}
	}
	clean_up(t);
	t->gen = 0;
	o->nested = 0;
	o->regs = 0;
	end_firing(o);
	return 1;
}
