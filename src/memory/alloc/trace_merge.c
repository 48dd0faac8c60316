/* Decodes the events of rings (wire/alloc.h) and merges them by a heap of streams.
 *
 * A processor may read the counter before loads of earlier instructions are done. The ticks of a
 * free are read behind them. But an allocation can have earlier ticks than another thread's free of
 * the block that was there before. Such an event is held, and with it its stream, until the free
 * was given out. A free of a block that is not allocated is held in the same way. A processor reads
 * ahead by the instructions that it has in work at one time, which are done within a few
 * microseconds. When nothing comes within DISORDER_NS, the other event was not recorded, and the
 * held one is given out as it is. */
#include <string.h>

#include "memory/alloc/block_set.h"
#include "memory/alloc/trace_merge.h"
#include "wire/alloc.h"

enum {
	MERGE_BYTES_MAX = 256 << 20,
	THREADS_MAX = 1 << 23,
	DISORDER_NS = 20000,
	DECODED = 16, /* events of a stream, for which the processor fetches what they need */
};

struct stream {
	uint8_t *v;
	size_t at, n, cap;
	uint64_t position; /* in the ring, of v[0] */
	uint64_t time, addr;
	uint32_t thread; /* 0: none has begun */
	bool stacks;     /* its events have stacks: */
	uint32_t stack;  /* that of the last */
	/* Those that are decoded: the first is next. */
	struct alloc_event decoded[DECODED];
	uint32_t first, count;
	const char *wrong; /* what comes behind them; NULL: nothing is known to be wrong */
	bool late;         /* the next was held in vain */
	uint64_t moved;    /* the block that a realloc() has, which has not returned; 0: none */
};

struct merge {
	struct alloc_trace *trace;
	struct merge_clock clock;
	struct stream *streams[WIRE_ALLOC_RINGS]; /* NULL: not seen yet */
	struct stream *heap[WIRE_ALLOC_RINGS];    /* those that have an event; the first is next */
	uint32_t n;
	size_t bytes; /* that streams have */
	/* Of recordings whose ticks may be out of order. */
	bool disorder;
	uint64_t bound; /* DISORDER_NS in ticks */
	struct block_set blocks;
	uint64_t changed;                      /* the block of the event that was given out last */
	struct stream *held[WIRE_ALLOC_RINGS]; /* those that wait for another's event */
	uint32_t nheld;
};

/* --- one stream --- */

/* Reads a number. Returns false when it is cut off. */
static inline bool trace_merge_take_number(struct stream *s, uint64_t *ret)
{
	const uint8_t *p = s->v + s->at;
	const size_t left = s->n - s->at;
	uint64_t v = 0;
	uint32_t n;

	if (left > sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		if (*p) {
			n = (uint32_t)__builtin_ctzll(v) + 1;
			*ret = v << (64 - 8 * n) >> (64 - 7 * n);
			s->at += n;
			return true;
		}
	}
	n = left && *p ? (uint32_t)__builtin_ctz(*p) + 1 : 9;
	if (n > left)
		return false;
	if (n == 9) {
		memcpy(&v, p + 1, sizeof(v));
	} else {
		v = 0;
		memcpy(&v, p, n);
		v >>= n;
	}
	s->at += n;
	*ret = v;
	return true;
}

static bool take_address(struct stream *s, uint64_t *ret)
{
	uint64_t v, d;

	if (!trace_merge_take_number(s, &v))
		return false;
	d = v >> 1;
	d = d >> 1 ^ -(d & 1);
	*ret = s->addr += v & 1 ? d : d << 4;
	return true;
}

static bool take_stack(struct stream *s, uint32_t *ret)
{
	uint64_t v;

	if (!trace_merge_take_number(s, &v))
		return false;
	*ret = s->stack += (uint32_t)(v >> 1 ^ -(v & 1));
	return true;
}

/* Reads an entry that is no event. Returns the reason when it is wrong, else NULL. */
static const char *take_other(struct merge *m, struct stream *s)
{
	static const char cut[] = "a thread's entry is cut off";
	uint64_t kind, tid, left;

	if (!trace_merge_take_number(s, &kind))
		return cut;
	switch (kind) {
	case WIRE_ALLOC_SKIP:
		left = WIRE_ALLOC_SEGMENT - (s->position + s->at) % WIRE_ALLOC_SEGMENT;
		if (left > s->n - s->at)
			return cut;
		s->at += left;
		return NULL;
	case WIRE_ALLOC_OPEN:
	case WIRE_ALLOC_STACKS:
		if (!trace_merge_take_number(s, &tid) || !trace_merge_take_number(s, &s->time))
			return cut;
		/* Readers have more for each thread. alloc_next() says when there is no room. */
		m->trace->defined += ALLOC_DEFINED_THREAD;
		if (m->trace->threads.n > THREADS_MAX ||
		    (m->trace->room && m->trace->defined > m->trace->room))
			return "there are too many threads";
		s->thread = m->trace->threads.n;
		s->addr = s->stack = s->moved = 0;
		s->stacks = kind == WIRE_ALLOC_STACKS;
		vec_push(&m->trace->threads, (uint32_t)tid);
		return NULL;
	default: return "a thread's entry is of no known kind";
	}
}

/* Reads the next event to *e. Sets *ret_has to false at the end of the bytes. Returns the reason
 * when they are wrong, else NULL. */
static const char *take_event(struct merge *m, struct stream *s, struct alloc_event *e,
			      bool *ret_has)
{
	static const enum alloc_op ops[] = {
		[WIRE_ALLOC_MALLOC] = ALLOC_MALLOC,
		[WIRE_ALLOC_FREE] = ALLOC_FREE,
		[WIRE_ALLOC_CALLOC] = ALLOC_CALLOC,
		[WIRE_ALLOC_REALLOC_FROM] = ALLOC_REALLOC_FROM,
		[WIRE_ALLOC_REALLOC] = ALLOC_REALLOC,
		[WIRE_ALLOC_ALIGNED] = ALLOC_ALIGNED,
		[WIRE_ALLOC_MAP] = ALLOC_MAP,
	};

	while (s->at < s->n) {
		const char *wrong;
		uint64_t v;

		if (!trace_merge_take_number(s, &v))
			return "an event of a thread is cut off";
		s->time += v >> 3;
		if ((v & 7) == WIRE_ALLOC_OTHER) {
			wrong = take_other(m, s);
			if (wrong)
				return wrong;
			continue;
		}
		if (!s->thread)
			return "an event has a thread that has not begun";
		*e = (struct alloc_event){ .op = ops[v & 7], .thread = s->thread };
		if (((e->op == ALLOC_ALIGNED || e->op == ALLOC_MAP) &&
		     !trace_merge_take_number(s, &e->align)) ||
		    (e->op != ALLOC_FREE && e->op != ALLOC_REALLOC_FROM &&
		     !trace_merge_take_number(s, &e->size)) ||
		    !take_address(s, &e->addr) ||
		    (s->stacks && e->op != ALLOC_FREE && e->op != ALLOC_REALLOC_FROM &&
		     !take_stack(s, &e->stack)))
			return "an event of a thread is cut off";
		if (e->op == ALLOC_MAP) {
			if (e->align >= WIRE_ALLOC_NMAPS)
				return "an event of a thread is of no known kind";
			e->op = e->align == WIRE_ALLOC_UNMAPPED ? ALLOC_UNMAP : ALLOC_MAP;
		}
		e->time = s->time; /* in ticks until it is given out */
		*ret_has = true;
		return NULL;
	}
	*ret_has = false;
	return NULL;
}

/* Decodes events when none is left. Returns the reason when the next is wrong, else NULL. */
static const char *decode(struct merge *m, struct stream *s)
{
	bool has = true;

	s->first = 0;
	while (!s->wrong && s->count < DECODED && has) {
		s->wrong = take_event(m, s, &s->decoded[s->count], &has);
		has &= !s->wrong;
		if (has && m->disorder)
			block_set_fetch(&m->blocks, s->decoded[s->count].addr);
		s->count += has;
	}
	return s->count ? NULL : s->wrong;
}

static const struct alloc_event *next_of(const struct stream *s)
{
	return &s->decoded[s->first];
}

/* --- all of them --- */

static void sift_down(struct merge *m, uint32_t i)
{
	struct stream *s = m->heap[i];

	for (uint32_t k; (k = 2 * i + 1) < m->n; i = k) {
		if (k + 1 < m->n && next_of(m->heap[k + 1])->time < next_of(m->heap[k])->time)
			k++;
		if (next_of(s)->time <= next_of(m->heap[k])->time)
			break;
		m->heap[i] = m->heap[k];
	}
	m->heap[i] = s;
}

static void sift_up(struct merge *m, uint32_t i)
{
	struct stream *s = m->heap[i];

	for (; i && next_of(m->heap[(i - 1) / 2])->time > next_of(s)->time; i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = s;
}

static void push(struct merge *m, struct stream *s)
{
	m->heap[m->n++] = s;
	sift_up(m, m->n - 1);
}

/* Takes the first stream out. */
static void drop_first(struct merge *m)
{
	m->heap[0] = m->heap[--m->n];
	if (m->n)
		sift_down(m, 0);
}

const char *merge_add(struct merge *m, const struct alloc_chunk *c)
{
	struct stream *s;
	const char *wrong;

	if (c->ring >= WIRE_ALLOC_RINGS)
		return "a chunk is of no ring";
	s = m->streams[c->ring];
	if (!s) {
		s = m->streams[c->ring] = xcalloc(1, sizeof(*s));
		s->position = c->position;
	}
	if (s->position + s->n != c->position)
		return "a chunk does not follow the one before it in its ring";
	if (m->bytes + c->n > MERGE_BYTES_MAX)
		return "threads are too far apart";
	if (s->at > s->n / 2) { /* so that each byte moves once */
		memmove(s->v, s->v + s->at, s->n - s->at);
		m->bytes -= s->at;
		s->position += s->at;
		s->n -= s->at;
		s->at = 0;
	}
	if (s->n + c->n > s->cap) {
		s->cap = (s->n + c->n) * 2;
		s->v = xrealloc(s->v, s->cap);
	}
	memcpy(s->v + s->n, c->bytes, c->n);
	s->n += c->n;
	m->bytes += c->n;
	if (s->count)
		return NULL;
	wrong = decode(m, s);
	if (s->count)
		push(m, s);
	return wrong;
}

/* --- ticks out of order --- */

/* Returns the reason when the table cannot take one more block, else NULL. */
static const char *check_blocks(struct merge *m)
{
	const uint64_t needs = block_set_growth(&m->blocks);
	struct alloc_trace *t = m->trace;

	if (!needs || !t->room || t->defined + needs <= t->room)
		return NULL;
	t->defined += needs; /* alloc_next() says when there is no room */
	return "there are too many blocks";
}

/* Notes what an event does to the blocks that are allocated. Returns false when it can only come
 * after another event. */
static bool try_event(struct merge *m, struct stream *s)
{
	const struct alloc_event *e = next_of(s);
	const bool frees = e->op == ALLOC_FREE || e->op == ALLOC_REALLOC_FROM;
	bool can = true;

	m->changed = 0;
	if (e->op == ALLOC_MAP || e->op == ALLOC_UNMAP)
		return true;
	m->changed = e->addr;
	if (frees) {
		can = block_set_take(&m->blocks, e->addr);
	} else if (e->addr) {
		can = block_set_put(&m->blocks, e->addr);
	} else if (e->op == ALLOC_REALLOC && e->size && s->moved) {
		block_set_put(&m->blocks, s->moved); /* it failed: the block stays */
		m->changed = s->moved;
	}
	if (!can && !s->late)
		return false;
	s->late = false;
	if (e->op == ALLOC_REALLOC_FROM || e->op == ALLOC_REALLOC)
		s->moved = frees && can ? e->addr : 0;
	return true;
}

/* Returns the earliest of the streams that wait for an event of a block; addr 0: of any. Returns
 * m->nheld when there is none. */
static uint32_t first_held(const struct merge *m, uint64_t addr)
{
	uint32_t first = m->nheld;

	for (uint32_t i = 0; i < m->nheld; i++)
		if ((!addr || next_of(m->held[i])->addr == addr) &&
		    (first == m->nheld ||
		     next_of(m->held[i])->time < next_of(m->held[first])->time))
			first = i;
	return first;
}

static void release(struct merge *m, uint32_t i, bool late)
{
	struct stream *s = m->held[i];

	s->late = late;
	m->held[i] = m->held[--m->nheld];
	push(m, s);
}

/* An event was given out. One that waits for it tries again: of those that wait for the same
 * block, only one can go on. */
static void release_waiting(struct merge *m)
{
	const uint32_t i = m->changed ? first_held(m, m->changed) : m->nheld;

	if (i < m->nheld)
		release(m, i, false);
}

/* Releases the stream with the earliest event when it has waited in vain: all events up to `now`
 * were given out. last: so were all that there are. */
static void release_late(struct merge *m, uint64_t now, bool last)
{
	const uint32_t first = first_held(m, 0);
	const uint64_t time = next_of(m->held[first])->time;

	if (last || (now > time && now - time > m->bound))
		release(m, first, true);
}

/* Finds the stream whose event is next. Returns NULL when there is none up to `until`. */
static struct stream *next_stream(struct merge *m, uint64_t until, const char **ret_wrong)
{
	for (;;) {
		const uint64_t next = m->n ? next_of(m->heap[0])->time : UINT64_MAX;
		struct stream *s;

		if (m->nheld)
			release_late(m, next < until ? next : until, !m->n && until == UINT64_MAX);
		s = m->n ? m->heap[0] : NULL;
		if (!s || next_of(s)->time > until)
			return NULL;
		if (!m->disorder)
			return s;
		*ret_wrong = check_blocks(m);
		if (*ret_wrong)
			return NULL;
		if (try_event(m, s))
			return s;
		m->held[m->nheld++] = s;
		drop_first(m);
	}
}

bool merge_next(struct merge *m, uint64_t until, struct alloc_event *ret, const char **ret_wrong)
{
	struct stream *s;
	uint64_t t;

	*ret_wrong = NULL;
	s = next_stream(m, until, ret_wrong);
	if (!s)
		return false;
	*ret = *next_of(s);
	t = ret->time << m->clock.tick;
	t = t > m->clock.ticks ? t - m->clock.ticks : 0;
	ret->time = (uint64_t)((unsigned __int128)t * m->clock.factor >> 64);
	s->first++;
	if (!--s->count)
		*ret_wrong = decode(m, s);
	if (*ret_wrong) {
		m->n = m->nheld = 0;
		return false;
	}
	if (s->count)
		sift_down(m, 0);
	else
		drop_first(m);
	if (m->nheld)
		release_waiting(m);
	return true;
}

static uint64_t ticks_of(uint64_t ns, uint64_t factor)
{
	const unsigned __int128 t = factor ? ((unsigned __int128)ns << 64) / factor : 0;

	return factor && t < UINT64_MAX ? (uint64_t)t : UINT64_MAX;
}

struct merge *merge_new(struct alloc_trace *t, const struct merge_clock *clock, bool disorder)
{
	struct merge *m = xcalloc(1, sizeof(*m));

	m->trace = t;
	m->clock = *clock;
	m->disorder = disorder;
	m->bound = ticks_of(DISORDER_NS, clock->factor) >> clock->tick;
	return m;
}

void merge_free(struct merge *m)
{
	for (uint32_t i = 0; m && i < WIRE_ALLOC_RINGS; i++) {
		if (!m->streams[i])
			continue;
		free(m->streams[i]->v);
		free(m->streams[i]);
	}
	if (m)
		block_set_fini(&m->blocks);
	free(m);
}
