/* Aggregations. Each thread adds to its own table of the current generation. The tracer switches to
 * the other generation, waits until no thread uses the old one, adds up the old tables and clears
 * them. Nothing is locked and nothing is lost:
 *
 *	thread    do gen = area.gen; while (gen != area.gen); ... add ...; gen = 0
 *	tracer    area.gen: the other one; membarrier; for each thread: gen is the old one? wait
 *
 * A thread that was stopped in a probe keeps its old table until it has moved on. The tracer looks
 * at it again before the next switch. A thread that was killed in a probe never changes `gen`; its
 * table is taken when its process has ended. At the end of the run the tracer waits longer, because
 * there is no next switch, and reports the threads that stay in their probes.
 *
 * count() with known keys has one generation (gen_stride 0). The words only grow, and each addition
 * is one instruction. The tracer reads them, and adds what has come since it read them last.
 */
#define _GNU_SOURCE
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "data/agg.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/memory/inproc_shared.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/process_state.h"

enum {
	WAIT_NS = 50000,
	GONE_ROUNDS = 10,    /* looks between two questions whether the processes have ended */
	FLIP_NS = 20000000,  /* waiting in one switch while the program is traced */
	END_NS = 1000000000, /* ... in all switches after the detach */
	END_FLIPS = 2,       /* switches after the detach; they take both generations' tables */
	ENTRY_COST = 64      /* bytes, of tables and of malloc(3) */
};

/* --- the store --- */

static void merge(const struct agg *a, uint64_t *into, const uint64_t *add)
{
	unsigned __int128 sq;

	if (!add[0])
		return;
	switch (a->func) {
	case AGG_MIN:
	case AGG_MAX:
		if (!into[0] || (a->func == AGG_MIN ? (int64_t)add[1] < (int64_t)into[1]
						    : (int64_t)add[1] > (int64_t)into[1]))
			into[1] = add[1];
		into[0] += add[0];
		return;
	case AGG_STDDEV:
		sq = (unsigned __int128)into[3] << 64 | into[2];
		sq += (unsigned __int128)add[3] << 64 | add[2];
		into[0] += add[0];
		into[1] += add[1];
		into[2] = (uint64_t)sq;
		into[3] = (uint64_t)(sq >> 64);
		return;
	default:
		for (uint32_t i = 0; i < a->nwords; i++)
			into[i] += add[i];
	}
}

static uint64_t entry_bytes(const struct agg *a)
{
	return a->key_size + (uint64_t)a->nwords * 8 + ENTRY_COST;
}

/* Returns the values of a key. NULL: the key is new and there is no room for it. */
static uint64_t *store_words(struct inproc_engine *e, uint32_t agg, const void *key)
{
	const struct agg *a = &e->base.image->aggs[agg];
	struct inproc_store *s = &e->aggs.stores[agg];
	uint64_t *at = hash_get(&s->index, key ? key : "", key ? a->key_size : 0);
	struct inproc_entry *en;

	if (at)
		return s->entries.v[*at - 1].words;
	if (key && e->aggs.bytes + entry_bytes(a) > e->aggs.bytes_max)
		return NULL;
	e->aggs.bytes += entry_bytes(a);
	at = hash_put(&s->index, key ? key : "", key ? a->key_size : 0, NULL);
	if (s->unused.n) {
		*at = s->unused.v[--s->unused.n] + 1;
	} else {
		vec_add(&s->entries);
		*at = s->entries.n;
	}
	en = &s->entries.v[*at - 1];
	en->words = xcalloc(a->nwords, 8);
	en->key = key ? xmemdup(key, a->key_size) : NULL;
	return en->words;
}

void aggs_store_free(struct inproc_engine *e)
{
	for (uint32_t i = 0; e->aggs.stores && i < e->base.image->naggs; i++) {
		struct inproc_store *s = &e->aggs.stores[i];

		for (uint32_t j = 0; j < s->entries.n; j++) {
			free(s->entries.v[j].key);
			free(s->entries.v[j].words);
		}
		vec_fini(&s->entries);
		vec_fini(&s->unused);
		free(s->seen);
		hash_fini(&s->index);
	}
	free(e->aggs.stores);
	e->aggs.stores = NULL;
}

/* --- taking a generation --- */

struct taking {
	struct inproc_engine *e;
	uint32_t agg;
};

static void take_entry(void *arg, const void *key, const uint64_t *words)
{
	struct taking *t = arg;
	uint64_t *into = store_words(t->e, t->agg, key);

	if (into)
		merge(&t->e->base.image->aggs[t->agg], into, words);
	else
		t->e->aggs.unstored += words[0];
}

static void take_element(void *arg, uint32_t index, const uint64_t *words)
{
	const struct taking *t = arg;
	const struct agg *a = &t->e->base.image->aggs[t->agg];

	take_entry(arg, a->nslots ? agg_slot_key(a, index) : NULL, words);
}

static void inproc_aggs_take(struct inproc_engine *e, struct wire_thread *t, uint32_t gen)
{
	const struct shared_file shared = { e->files.shared.fd, (const uint8_t *)e->common },
				 *f = t == e->self ? NULL : &shared;

	for (uint32_t i = 0; i < e->base.image->naggs; i++) {
		const struct wire_map *m = &e->maps[e->base.image->aggs[i].map];
		struct taking to = { e, i };
		void *at = (uint8_t *)t + m->base + gen * m->gen_stride;

		if (!wire_map_is_flipped(m))
			continue;
		if (m->kind == WIRE_MAP_AGG_ARRAY)
			shared_array_take(m, f, at, &e->aggs.copy, take_element, &to);
		else
			shared_agg_take(m, f, at, &e->aggs.copy, take_entry, &to);
	}
}

struct counting {
	struct taking to;
	uint64_t *seen; /* of the slot's words, at the last look */
};

static void take_growth(void *arg, uint32_t index, const uint64_t *words)
{
	struct counting *c = arg;
	const uint64_t more = *words - c->seen[index];

	c->seen[index] = *words;
	if (more)
		take_element(&c->to, index, &more);
}

/* Takes what the counters of all threads have grown by. */
static void take_counts(struct inproc_engine *e)
{
	const struct shared_file shared = { e->files.shared.fd, (const uint8_t *)e->common };

	for (uint32_t i = 0; i < e->base.image->naggs; i++) {
		const struct wire_map *m = &e->maps[e->base.image->aggs[i].map];
		uint64_t **seen = &e->aggs.stores[i].seen;

		if (wire_map_is_flipped(m))
			continue;
		if (!*seen)
			*seen = xcalloc((size_t)e->room.nthreads * m->max_entries, sizeof(**seen));
		for (uint32_t k = 0; k < e->room.nthreads; k++) {
			struct wire_thread *t = area_thread(e, k);
			struct counting c = { { e, i }, *seen + (size_t)k * m->max_entries };

			if (__atomic_load_n(&t->owner, __ATOMIC_ACQUIRE))
				shared_array_read(m, t == e->self ? NULL : &shared,
						  (uint8_t *)t + m->base, &e->aggs.copy,
						  take_growth, &c);
		}
	}
}

/* Returns true when the thread's process has ended, or executes another program. */
static bool owner_gone(const struct inproc_engine *e, uint32_t owner)
{
	const struct wire_process *p;
	uint64_t started;
	pid_t pid;

	if (!owner || owner > WIRE_PROCESSES_MAX)
		return true;
	p = &e->list[owner - 1];
	pid = (pid_t)p->pid;
	if (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == WIRE_PROCESS_GONE)
		return true;
	if (!pid) /* a child that the tracer has not found yet */
		return false;
	if (procdir_ended(pid) || !process_is_ours(e, pid))
		return true;
	started = procdir_start(pid);
	return started && p->started && started != p->started; /* its number has a new owner */
}

/* Returns true when the thread has left generation gen for good (see WIRE_GEN_RUNS). */
static bool has_left(const struct inproc_engine *e, const struct wire_thread *t, uint32_t gen)
{
	const uint64_t now = __atomic_load_n(&t->gen, __ATOMIC_ACQUIRE);

	return !now || (now % WIRE_GEN_TURN) == (WIRE_GEN_RUNS | (gen ^ 1)) || t == e->self;
}

/* Takes the tables of generation gen of the waiting threads that have left it, and ends their
 * waiting. ended: also those of threads whose process has ended. Returns how many still wait. */
static uint32_t take_left(struct inproc_engine *e, uint32_t gen, bool *waits, bool ended)
{
	uint32_t n = 0, known = 0; /* known: the last owner that was found to be living */

	for (uint32_t i = 0; i < e->room.nthreads; i++) {
		struct wire_thread *t = area_thread(e, i);
		uint32_t owner;

		if (!waits[i])
			continue;
		owner = __atomic_load_n(&t->owner, __ATOMIC_ACQUIRE);
		if (has_left(e, t, gen) ||
		    (ended && (!known || owner != known) && owner_gone(e, owner))) {
			inproc_aggs_take(e, t, gen);
			waits[i] = false;
		} else {
			known = ended ? owner : known;
			n++;
		}
	}
	return n;
}

static void wait_for_leaving(struct inproc_engine *e, uint32_t gen, bool *waits, uint64_t end)
{
	for (uint32_t round = 0;; round++) {
		const bool over = now_ns() >= end;

		if (!take_left(e, gen, waits, over || round % GONE_ROUNDS == GONE_ROUNDS - 1) ||
		    over)
			return;
		if (round)
			nap_ns(WAIT_NS);
	}
}

/* Reports the threads whose last values are missing. */
static void report_late(struct inproc_engine *e)
{
	const struct wire_thread *first = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->room.nthreads; i++) {
		if (e->aggs.late[i] && !first)
			first = area_thread(e, i);
		n += e->aggs.late[i];
	}
	if (!n || e->aggs.reported)
		return;
	e->aggs.reported = true;
	if (n == 1)
		inproc_blind(
			e,
			"thread %u has not left its probe, so aggregations may lack its last values",
			first->tid);
	else
		inproc_blind(
			e,
			"%u threads (the first is %u) have not left their probes, so aggregations may lack their last values",
			n, first->tid);
}

void aggs_flip(struct inproc_engine *e)
{
	const bool last = e->area->closing;
	const uint32_t old = e->aggs.gen, new = old ^ 1;
	uint64_t end = now_ns();

	if (!e->base.image->naggs)
		return;
	/* No thread is in a probe any more. bufpolicy=ring has thousands of records that read an
	 * aggregation run now, and a process can claim all slots, which are looked through. */
	if (last && e->aggs.end_flips >= END_FLIPS)
		return;
	e->aggs.end_flips += last;
	if (last && !e->aggs.end)
		e->aggs.end = end + END_NS;
	/* limits the waiting for threads that claim to be in a probe */
	end = last ? e->aggs.end : end + FLIP_NS;
	/* Takes the tables of threads that were late when `new` was the old generation. No thread
	 * writes to them any more. */
	wait_for_leaving(e, new, e->aggs.late, last ? end : 0);
	e->aggs.gen = new;
	__atomic_store_n(&e->area->gen,
			 (e->area->gen & ~(WIRE_GEN_TURN - 1u)) + WIRE_GEN_TURN +
				 (WIRE_GEN_RUNS | new),
			 __ATOMIC_SEQ_CST);
	/* Every thread of the machine passes a barrier. So the tracer sees a probe that began
	 * before it, and a probe that begins now uses the new generation. */
	if (e->aggs.slow_barrier || syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	for (uint32_t i = 0; i < e->room.nthreads; i++)
		e->aggs.late[i] = area_thread(e, i)->owner != 0;
	wait_for_leaving(e, old, e->aggs.late, end);
	take_counts(e);
	if (last)
		report_late(e);
}

/* --- the engine's operations --- */

struct err *aggs_read(struct inproc_engine *e, uint32_t agg, agg_fn *fn, void *arg)
{
	const struct agg *a = &e->base.image->aggs[agg];
	struct inproc_store *s = &e->aggs.stores[agg];

	aggs_flip(e);
	if (!a->key_size) {
		fn(arg, NULL, store_words(e, agg, NULL), 1);
		return NULL;
	}
	for (uint32_t i = 0; i < s->entries.n; i++)
		if (s->entries.v[i].words)
			fn(arg, s->entries.v[i].key, s->entries.v[i].words, 1);
	return NULL;
}

struct err *aggs_delete(struct inproc_engine *e, uint32_t agg, const void *key,
			uint64_t *ret_values)
{
	const struct agg *a = &e->base.image->aggs[agg];
	struct inproc_store *s = &e->aggs.stores[agg];
	uint64_t *at = hash_get(&s->index, key ? key : "", key ? a->key_size : 0);
	struct inproc_entry *en = at ? &s->entries.v[*at - 1] : NULL;

	if (ret_values && en)
		memcpy(ret_values, en->words, (size_t)a->nwords * 8);
	else if (ret_values)
		memset(ret_values, 0, (size_t)a->nwords * 8);
	if (!en)
		return NULL;
	if (!a->key_size) {
		memset(en->words, 0, (size_t)a->nwords * 8);
		return NULL;
	}
	vec_push(&s->unused, (uint32_t)*at - 1);
	hash_del(&s->index, key, a->key_size);
	e->aggs.bytes -= entry_bytes(a);
	free(en->key);
	free(en->words);
	*en = (struct inproc_entry){ 0 };
	return NULL;
}
