/* Unwind tables for d_ustack, in the facts: the same words as in the kernel's maps. The list of a
 * process's tables stands at the process's number (wire_area.unwinds), and not in the map that the
 * kernel engine has. So no process writes the data by which another one's stack is walked. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/process_state.h"
#include "program/runtime/languages.h"
#include "program/unwind/unwind.h"

enum {
	/* Reading the mappings of a process that asks again and again takes one part of this of
	 * the time. */
	AGAIN_SHARE = 4,
};

/* A process in which an interpreter seems to begin, and the time to look at it again. */
struct later {
	pid_t pid;
	uint64_t at_ns;
};
typedef VEC(struct later) later_vec;

struct inproc_unwind {
	struct unwind_store *store;
	struct inproc_engine *e;
	struct wire_map *chunks;        /* the tracer's copy */
	VEC(uint64_t) bases;            /* of each chunk's value, 0 none */
	struct hash languages;          /* pid -> address of its struct wire_language */
	uint32_t language;              /* of the process that is being added */
	uint64_t tails[INPROC_THREADS]; /* of MAP_UNWIND_WANTED's rings: how far they were read */
	bool any;                       /* a name was asked for */
	later_vec later;
};

/* Changes the version before and after tables are written, so that walks drop the rules that they
 * remember. */
static void change(struct inproc_engine *e)
{
	__atomic_add_fetch(&e->area->unwind_version, 1, __ATOMIC_SEQ_CST);
}

/* Writes a chunk, which is a map of its own with one value for d_ustack. */
static struct err *put_chunk(void *arg, uint32_t chunk, const uint32_t *words)
{
	struct inproc_unwind *u = arg;
	uint64_t *inner = (uint64_t *)u->chunks->base;
	uint32_t size = WIRE_UNWIND_CHUNK_WORDS * 4;
	struct wire_map *m = NULL;

	if (chunk >= u->chunks->max_entries)
		return err_new(ENOSPC, "unwind tables: %u chunks are too many", chunk + 1);
	while (u->bases.n <= chunk)
		vec_push(&u->bases, 0);
	if (!u->bases.v[chunk]) {
		uint64_t value = area_alloc(u->e, size);

		m = (struct wire_map *)area_alloc(u->e, sizeof(*m));
		if (!m || !value)
			return err_new(ENOSPC, "unwind tables do not fit into shared memory");
		*m = (struct wire_map){ .kind = WIRE_MAP_ARRAY,
					.role = MAP_OTHER,
					.key_size = 4,
					.value_size = size,
					.stride = size,
					.max_entries = 1,
					.base = value,
					.index = UINT32_MAX };
		u->bases.v[chunk] = value;
	}
	change(u->e);
	memcpy((void *)u->bases.v[chunk], words, size);
	change(u->e);
	if (m)
		__atomic_store_n(&inner[chunk], (uintptr_t)m, __ATOMIC_RELEASE);
	return NULL;
}

static void walk_all(struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid && e->processes.v[i].attached)
			process_walk(e, &e->processes.v[i]);
}

static struct err *put_process(void *arg, uint32_t pid, const struct wire_unwind_process *p)
{
	const struct inproc_unwind *u = arg;
	struct inproc_engine *e = u->e;
	uint32_t i = 0;

	while (i < e->walks.n && e->walks.v[i].pid != (pid_t)pid)
		i++;
	if (i == e->walks.n)
		vec_push(&e->walks, ((struct inproc_walk){ .pid = (pid_t)pid }));
	e->walks.v[i].how = *p;
	e->walks.v[i].how.language = u->language;
	change(e);
	walk_all(e, (pid_t)pid);
	change(e);
	return NULL;
}

static void del_process(void *arg, uint32_t pid)
{
	struct inproc_engine *e = ((struct inproc_unwind *)arg)->e;

	for (uint32_t i = 0; i < e->walks.n; i++) {
		if (e->walks.v[i].pid != (pid_t)pid)
			continue;
		e->walks.v[i].how = (struct wire_unwind_process){ 0 };
		walk_all(e, (pid_t)pid);
		e->walks.v[i] = e->walks.v[--e->walks.n];
		return;
	}
}

static const struct unwind_store_ops ops = { put_chunk, put_process, del_process };

struct err *unwind_start(struct inproc_engine *e)
{
	int chunks = image_find_map(e->base.image, MAP_UNWIND);
	cleanup_free uint32_t *none = xcalloc(WIRE_UNWIND_CHUNK_WORDS, 4);

	if (chunks < 0)
		return NULL;
	e->area->unwinds = area_alloc(e, sizeof(struct wire_unwind_process) * WIRE_PROCESSES_MAX);
	if (!e->area->unwinds)
		return err_new(ENOSPC, "unwind tables do not fit into shared memory");
	e->unwind = xcalloc(1, sizeof(*e->unwind));
	*e->unwind = (struct inproc_unwind){ .e = e, .chunks = &e->maps[chunks] };
	e->unwind->store = unwind_store_new(&ops, e->unwind);
	/* Every walk needs the chunk of rules. */
	return put_chunk(e->unwind, 0, none);
}

/* Returns a number for the process's address space. It changes with each execve(2). */
static uint32_t space_number(const struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid)
			return e->processes.v[i].execs | 1u << 31;
	return 1u << 31;
}

/* Looks for an interpreter in the process, for the next put_process(). */
static void find_language(struct inproc_engine *e, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct wire_language l;
	uint64_t *at;
	uint32_t ms;

	e->unwind->language = 0;
	if (!e->languages)
		return;
	if (!languages_find(e->languages, pid, space_number(e, pid), &l, &ms)) {
		if (ms)
			vec_push(&e->unwind->later,
				 (struct later){ pid, now_ns() + ms * 1000000ull });
		return;
	}
	at = hash_put(&e->unwind->languages, &key, sizeof(key), NULL);
	*at = unwind_store_words_at(e->unwind->store, (uint32_t)*at, &l, WIRE_LANGUAGE_WORDS,
				    WIRE_LANGUAGE_WORDS);
	e->unwind->language = (uint32_t)*at;
}

void unwind_add(struct inproc_engine *e, pid_t pid)
{
	/* One that may not be looked into is walked by frame pointer. */
	if (!e->unwind)
		return;
	find_language(e, pid);
	err_free(unwind_store_add(e->unwind->store, pid));
}

/* Handles a process's request for the name of a code object. Reads the request once and checks it:
 * it may name only traced processes, and the name counts only if the object has the id. */
static void asked(void *arg, const void *record, uint32_t n)
{
	struct inproc_engine *e = arg;
	struct wire_unwind_ask ask;

	if (n != sizeof(ask))
		return;
	memcpy(&ask, record, sizeof(ask));
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (ask.what & WIRE_UNWIND_ASK_CODE && e->processes.v[i].attached &&
		    e->processes.v[i].pid == (pid_t)ask.pid) {
			languages_learn(e->languages, (pid_t)ask.pid, &ask);
			e->unwind->any = true;
			return;
		}
}

bool unwind_learn(struct inproc_engine *e)
{
	const uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const int map = image_find_map(e->base.image, MAP_UNWIND_WANTED);
	const uint32_t n = e->room.nthreads;

	if (!e->unwind || !e->languages || map < 0)
		return false;
	e->unwind->any = false;
	for (uint32_t k = 1; k < n && clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun < PACE_ROUND; k++) {
		const uint32_t i = 1 + e->family.learn_at++ % (n - 1);
		uint8_t *t = (uint8_t *)area_thread(e, i);

		if (__atomic_load_n(&((struct wire_thread *)t)->owner, __ATOMIC_ACQUIRE))
			shared_ring_take((struct wire_ring *)(t + e->maps[map].base),
					 e->maps[map].max_entries, &e->unwind->tails[i],
					 &e->aggs.copy, asked, e);
	}
	/* The processes forget which names they have requested. */
	if (languages_ask_again(e->languages, now_ns()))
		__atomic_add_fetch(&e->area->codes_version, 1, __ATOMIC_RELAXED);
	return e->unwind->any;
}

static void look_again(struct inproc_engine *e)
{
	later_vec planned = e->unwind->later;
	uint64_t now = now_ns();

	e->unwind->later = (later_vec){ 0 }; /* unwind_add() may plan again */
	for (uint32_t i = 0; i < planned.n; i++)
		if (planned.v[i].at_ns <= now)
			unwind_add(e, planned.v[i].pid);
		else
			vec_push(&e->unwind->later, planned.v[i]);
	vec_fini(&planned);
}

/* Reads the mappings again of processes in which a walk has met an address outside its known
 * mappings. */
void unwind_refresh(struct inproc_engine *e)
{
	const uint64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint32_t n = e->processes.n;
	uint64_t from = begun;

	if (e->unwind && e->unwind->later.n)
		look_again(e);
	for (uint32_t k = 0; e->unwind && k < n && from - begun < PACE_ROUND; k++) {
		struct inproc_process *p = &e->processes.v[e->family.unwind_at++ % n];
		uint64_t to;

		if (!p->attached || now_ns() < p->unwind_next ||
		    (!p->unwind_new &&
		     !(__atomic_load_n(&e->said[p->index].unwind_asked, __ATOMIC_ACQUIRE) &
		       WIRE_UNWIND_ASK_LIST)))
			continue;
		p->unwind_new = false;
		unwind_add(e, p->pid);
		to = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		p->unwind_next = pace_next(now_ns(), to - from, AGAIN_SHARE);
		from = to;
	}
	if (e->unwind)
		err_free(unwind_store_tidy(e->unwind->store, NULL, now_ns()));
}

void unwind_stop(struct inproc_engine *e)
{
	if (!e->unwind)
		return;
	unwind_store_free(e->unwind->store);
	vec_fini(&e->unwind->bases);
	vec_fini(&e->unwind->later);
	hash_fini(&e->unwind->languages);
	free(e->unwind);
	e->unwind = NULL;
}
