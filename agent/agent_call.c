/* Helpers. Each takes eBPF's r1..r5 and the thread slot, and returns the result of the kernel's
 * helper. */
#include "agent/agent.h"
#include "agent/map.h"
#include "agent/ring.h"

enum {
	CLOCK_MONOTONIC = 1,
	CLOCK_THREAD_CPUTIME_ID = 3,
	PR_GET_NAME = 16,
	COMM_NS = 1000000,   /* age at which a thread's name is read again */
	CPU_SELECTOR = 0x7b, /* a segment whose limit is node << 12 | cpu */
	SIGNALS = 64,
};

/* --- time and identity --- */

uint64_t now_ns(void)
{
	const struct wire_clock *c = &area()->clock;
	uint64_t t[2] = { 0 };
	uint32_t lo, hi;

	if (UNLIKELY(!c->mult || __atomic_load_n(&kept()->no_counter, __ATOMIC_RELAXED))) {
		if (quiet()) /* the tracer's last heartbeat */
			return __atomic_load_n(&area()->heartbeat, __ATOMIC_RELAXED);
		sys2(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, (uintptr_t)t);
		return t[0] * 1000000000 + t[1];
	}
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return c->base_ns +
	       (uint64_t)((unsigned __int128)((uint64_t)hi << 32 | lo) * c->mult >> 64);
}

ENTRY uint64_t agent_ktime(void)
{
	return now_ns();
}

/* 0 stands for "not yet" in vtimestamp */
ENTRY uint64_t agent_thread_time(void)
{
	uint64_t t[2] = { 0 };

	try2(SYS_CLOCK_GETTIME, CLOCK_THREAD_CPUTIME_ID, (uintptr_t)t);
	return t[0] * 1000000000 + t[1] + 1;
}

/* xorshift64* (Marsaglia 2003, Vigna 2016). */
ENTRY uint64_t agent_prandom(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			     struct wire_thread *t)
{
	uint64_t x = t->random ? t->random : 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	t->random = x;
	return x * 0x2545f4914f6cdd1dull >> 32;
}

ENTRY uint64_t agent_cpu(void)
{
	uint32_t v, cpu = 0;
	bool ok;

	__asm__ volatile("lsl %2, %0" : "=r"(v), "=@ccz"(ok) : "r"((uint32_t)CPU_SELECTOR));
	if (LIKELY(ok))
		return v & 0xfff;
	try2(SYS_GETCPU, (uintptr_t)&cpu, 0);
	return cpu;
}

ENTRY uint64_t agent_pid_tgid(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			      struct wire_thread *t)
{
	return (uint64_t)t->pid << 32 | t->tid;
}

ENTRY uint64_t agent_uid_gid(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			     struct wire_thread *t)
{
	return (uint64_t)t->gid << 32 | t->uid;
}

ENTRY int64_t agent_comm(uint64_t dst, uint64_t size, uint64_t r3, uint64_t r4, uint64_t r5,
			 struct wire_thread *t)
{
	uint64_t now, n;

	size = (uint32_t)size;
	if (UNLIKELY(!is_own(t, dst, size)))
		return refuse(t);
	if (!size)
		return E_INVAL;
	now = now_ns();
	if ((int64_t)(now - t->comm_time) > COMM_NS) {
		/* otherwise the tracer's memory */
		try2(SYS_PRCTL, PR_GET_NAME, (uintptr_t)t->comm);
		t->comm[sizeof(t->comm) - 1] = 0;
		t->comm_time = now;
	}
	n = size < sizeof(t->comm) ? size : sizeof(t->comm);
	mem_copy((void *)dst, t->comm, n);
	mem_zero((uint8_t *)dst + n, size - n);
	((uint8_t *)dst)[size - 1] = 0;
	return 0;
}

ENTRY uint64_t agent_current_task(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
				  struct wire_thread *t)
{
	return own_words(t)->task;
}

ENTRY uint64_t agent_task_pt_regs(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
				  struct wire_thread *t)
{
	return own_words(t)->regs;
}

/* Sends the signal to the process of an event that the tracer fires. */
static int64_t signal_other(const struct wire_own *o, uint64_t sig)
{
	return o->pidfd < 0 ? E_SRCH : sys4(SYS_PIDFD_SEND_SIGNAL, o->pidfd, (uint32_t)sig, 0, 0);
}

/* The kernel too sends the signal of a program when the program has ended. */
ENTRY int64_t agent_send_signal(uint64_t sig, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
				struct wire_thread *t)
{
	struct wire_own *o = own_words(t);
	const uint32_t n = (uint32_t)sig - 1;

	if (is_tracer(t))
		return o->other ? signal_other(o, sig) : try2(SYS_KILL, o->pid, (uint32_t)sig);
	if (quiet())
		return E_PERM;
	if (n >= SIGNALS)
		return (uint32_t)sig ? E_INVAL : 0;
	o->signals |= 1ull << n;
	return 0;
}

/* Thunks call it behind the end of a firing. A handler that never returns leaves the other signals
 * to the next firing. */
ENTRY void agent_signals(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			 struct wire_thread *t)
{
	struct wire_own *o = own_words(t);

	while (o->signals) {
		const uint64_t lowest = o->signals & -o->signals;

		o->signals &= ~lowest;
		(void)try2(SYS_KILL, o->pid, (uint64_t)__builtin_ctzll(lowest) + 1);
	}
}

/* D programs do not call this one, which sends at once. */

ENTRY int64_t agent_send_signal_thread(uint64_t sig, uint64_t r2, uint64_t r3, uint64_t r4,
				       uint64_t r5, struct wire_thread *t)
{
	const struct wire_own *o = own_words(t);

	if (is_tracer(t) && o->other)
		return signal_other(o, sig);
	return try4(SYS_TGKILL, o->pid, o->holder, (uint32_t)sig, 0);
}

ENTRY int64_t agent_violation(uint64_t insn, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			      struct wire_thread *t)
{
	t->violations++;
	t->violation = insn;
	return E_FAULT;
}

/* --- maps --- */

/* Returns true for a map behind a WIRE_MAP_TABLES map, as the tracer makes it: all of it lies in
 * the facts. */
static NOINLINE const struct wire_map *inner_map(uint64_t r)
{
	const struct wire_area *a = area();
	const uint64_t off = r - (uintptr_t)a;
	const struct wire_map *m = (const struct wire_map *)r;
	uint64_t at, bytes;

	if (off & 7 || off >= WIRE_FACTS_SIZE || WIRE_FACTS_SIZE - off < sizeof(*m))
		return NULL;
	at = m->base - (uintptr_t)a;
	bytes = (uint64_t)m->stride * m->max_entries;
	return m->kind == WIRE_MAP_ARRAY && m->key_size == 4 && m->value_size <= m->stride &&
			       at < WIRE_FACTS_SIZE && bytes <= WIRE_FACTS_SIZE - at
		       ? m
		       : NULL;
}

static inline const struct wire_map *map_arg(uint64_t r)
{
	const struct wire_area *a = area();
	const struct wire_map *m = (const struct wire_map *)r;

	if (LIKELY(r - a->maps < (uint64_t)a->nmaps * sizeof(*m) &&
		   a->maps + (uint64_t)m->index * sizeof(*m) == r))
		return m;
	return inner_map(r);
}

/* Once, because it is long. */
NOINLINE void *map_value(const struct wire_map *m, struct wire_thread *t, const void *key)
{
	return map_lookup(m, t, key);
}

ENTRY void *agent_map_lookup(uint64_t map, uint64_t key, uint64_t r3, uint64_t r4, uint64_t r5,
			     struct wire_thread *t)
{
	const struct wire_map *m = map_arg(map);

	if (UNLIKELY(!m || !is_own(t, key, m->key_size))) {
		refuse(t);
		return NULL;
	}
	return map_value(m, t, (void *)key);
}

/* Frees a key's home when the thread that holds it has ended. Returns 1 when it was freed. */
static NOINLINE bool break_dead_lock(const struct wire_map *m, uint64_t key)
{
	struct wire_hash_entry *home = map_hash_at(m, map_hash_key(m, (void *)key));
	uint32_t holder = __atomic_load_n(&home->owner, __ATOMIC_RELAXED) & 0xffff;

	if (holder && !slot_is_dead(holder - 1))
		return false;
	if (holder)
		map_hash_break(home, holder - 1);
	return true;
}

ENTRY int64_t agent_map_update(uint64_t map, uint64_t key, uint64_t value, uint64_t flags,
			       uint64_t r5, struct wire_thread *t)
{
	const struct wire_map *m = map_arg(map);
	int64_t r;

	if (UNLIKELY(!m || !is_own(t, key, m->key_size) || !is_own(t, value, m->value_size)))
		return refuse(t);
	r = map_update(m, t, slot_number(t), (void *)key, (void *)value, flags);
	if (UNLIKELY(r == E_BUSY) && break_dead_lock(m, key))
		r = map_update(m, t, slot_number(t), (void *)key, (void *)value, flags);
	return r;
}

ENTRY int64_t agent_map_delete(uint64_t map, uint64_t key, uint64_t r3, uint64_t r4, uint64_t r5,
			       struct wire_thread *t)
{
	const struct wire_map *m = map_arg(map);
	int64_t r;

	if (UNLIKELY(!m || !is_own(t, key, m->key_size)))
		return refuse(t);
	r = map_delete(m, slot_number(t), (void *)key);
	if (UNLIKELY(r == E_BUSY) && break_dead_lock(m, key))
		r = map_delete(m, slot_number(t), (void *)key);
	return r;
}

/* A thread's storage always exists, and is zero at first. */
ENTRY void *agent_task_storage_get(uint64_t map, uint64_t task, uint64_t value, uint64_t flags,
				   uint64_t r5, struct wire_thread *t)
{
	const struct wire_map *m = map_arg(map);
	uint8_t *v = m ? task_value(t, m) : NULL;

	if (UNLIKELY(!v))
		refuse(t);
	return task ? v : NULL;
}

ENTRY int64_t agent_task_storage_delete(uint64_t map, uint64_t task, uint64_t r3, uint64_t r4,
					uint64_t r5, struct wire_thread *t)
{
	const struct wire_map *m = map_arg(map);
	uint8_t *v = m ? task_value(t, m) : NULL;

	if (UNLIKELY(!v))
		return refuse(t);
	if (!task)
		return E_INVAL;
	mem_zero(v, m->value_size);
	return 0;
}

/* --- rings --- */

static inline struct wire_ring *ring_arg(uint64_t r, struct wire_thread *t, uint64_t *ret_size)
{
	const struct wire_map *m = map_arg(r);

	if (UNLIKELY(!m || m->kind != WIRE_MAP_RING)) {
		refuse(t);
		return NULL;
	}
	*ret_size = m->max_entries;
	return (struct wire_ring *)((uint8_t *)t + m->base);
}

ENTRY void *agent_ring_reserve(uint64_t map, uint64_t n, uint64_t flags, uint64_t r4, uint64_t r5,
			       struct wire_thread *t)
{
	uint64_t size;
	struct wire_ring *r = ring_arg(map, t, &size);
	void *p;

	if (!r || flags)
		return NULL;
	p = ring_reserve(r, size, n);
	if (UNLIKELY(!p))
		check_heartbeat();
	return p;
}

static int64_t finish(struct wire_thread *t, uint64_t data, bool discard)
{
	if (data & 7 || !is_own(t, data - WIRE_RING_HEAD, WIRE_RING_HEAD) ||
	    !ring_finish((void *)data, discard))
		return refuse(t);
	return 0;
}

ENTRY int64_t agent_ring_submit(uint64_t data, uint64_t flags, uint64_t r3, uint64_t r4,
				uint64_t r5, struct wire_thread *t)
{
	return finish(t, data, false);
}

ENTRY int64_t agent_ring_discard(uint64_t data, uint64_t flags, uint64_t r3, uint64_t r4,
				 uint64_t r5, struct wire_thread *t)
{
	return finish(t, data, true);
}

ENTRY int64_t agent_ring_output(uint64_t map, uint64_t data, uint64_t n, uint64_t flags,
				uint64_t r5, struct wire_thread *t)
{
	uint64_t size;
	struct wire_ring *r = ring_arg(map, t, &size);
	void *p;

	if (!r)
		return E_INVAL;
	if (UNLIKELY(!is_own(t, data, n)))
		return refuse(t);
	p = ring_reserve(r, size, n);
	if (UNLIKELY(!p)) {
		check_heartbeat();
		return E_AGAIN;
	}
	mem_copy(p, (void *)data, n);
	ring_finish(p, false);
	return 0;
}

enum { RING_QUERY_DATA, RING_QUERY_SIZE, RING_QUERY_CONSUMER, RING_QUERY_PRODUCER };

ENTRY uint64_t agent_ring_query(uint64_t map, uint64_t what, uint64_t r3, uint64_t r4, uint64_t r5,
				struct wire_thread *t)
{
	uint64_t size;
	struct wire_ring *r = ring_arg(map, t, &size);

	if (!r)
		return 0;
	switch (what) {
	case RING_QUERY_DATA: return r->head - __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
	case RING_QUERY_SIZE: return size;
	case RING_QUERY_CONSUMER: return __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
	case RING_QUERY_PRODUCER: return r->head;
	}
	return 0;
}

/* --- text --- */

/* Compares n bytes of a. b ends with a NUL, or is as long. */
ENTRY int64_t agent_strncmp(uint64_t a, uint64_t n, uint64_t b, uint64_t r4, uint64_t r5,
			    struct wire_thread *t)
{
	const any8 *x = (const any8 *)a, *y = (const any8 *)b;
	bool all;

	n = (uint32_t)n;
	all = is_own(t, b, n);
	if (UNLIKELY(!is_own(t, a, n)))
		return refuse(t);
	for (uint64_t i = 0; i < n; i++) {
		if (UNLIKELY(!all) && !is_own(t, b + i, 1))
			return refuse(t);
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
		if (!x[i])
			break;
	}
	return 0;
}
