/* Decodes the events of rings (wire/alloc.h) and merges them by a heap of streams. */
#include <string.h>

#include "memory/alloc/trace_merge.h"
#include "wire/alloc.h"

enum { MERGE_BYTES_MAX = 256 << 20, THREADS_MAX = 1 << 23 };

struct stream {
	uint8_t *v;
	size_t at, n, cap;
	uint64_t position; /* in the ring, of v[0] */
	uint64_t time, addr;
	uint32_t thread; /* 0: none has begun */
	bool stacks;     /* its events have stacks: */
	uint32_t stack;  /* that of the last */
	struct alloc_event next;
};

struct merge {
	struct alloc_trace *trace;
	uint64_t ticks, factor;
	struct stream *streams[WIRE_ALLOC_RINGS]; /* NULL: not seen yet */
	struct stream *heap[WIRE_ALLOC_RINGS];    /* those that have an event; the first is next */
	uint32_t n;
	size_t held;
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
		s->addr = s->stack = 0;
		s->stacks = kind == WIRE_ALLOC_STACKS;
		vec_push(&m->trace->threads, (uint32_t)tid);
		return NULL;
	default: return "a thread's entry is of no known kind";
	}
}

/* Reads the next event to s->next. Sets *ret_has to false at the end of the bytes. Returns the
 * reason when they are wrong, else NULL. */
static const char *take_event(struct merge *m, struct stream *s, bool *ret_has)
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
	struct alloc_event *e = &s->next;

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

/* --- all of them --- */

static void sift_down(struct merge *m, uint32_t i)
{
	struct stream *s = m->heap[i];

	for (uint32_t k; (k = 2 * i + 1) < m->n; i = k) {
		if (k + 1 < m->n && m->heap[k + 1]->next.time < m->heap[k]->next.time)
			k++;
		if (s->next.time <= m->heap[k]->next.time)
			break;
		m->heap[i] = m->heap[k];
	}
	m->heap[i] = s;
}

static void sift_up(struct merge *m, uint32_t i)
{
	struct stream *s = m->heap[i];

	for (; i && m->heap[(i - 1) / 2]->next.time > s->next.time; i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = s;
}

const char *merge_add(struct merge *m, const struct alloc_chunk *c)
{
	struct stream *s;
	const char *wrong;
	bool had, has;

	if (c->ring >= WIRE_ALLOC_RINGS)
		return "a chunk is of no ring";
	s = m->streams[c->ring];
	if (!s) {
		s = m->streams[c->ring] = xcalloc(1, sizeof(*s));
		s->position = c->position;
	}
	had = s->next.thread != 0;
	if (s->position + s->n != c->position)
		return "a chunk does not follow the one before it in its ring";
	if (m->held + c->n > MERGE_BYTES_MAX)
		return "threads are too far apart";
	if (s->at > s->n / 2) { /* so that each byte moves once */
		memmove(s->v, s->v + s->at, s->n - s->at);
		m->held -= s->at;
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
	m->held += c->n;
	if (had)
		return NULL;
	wrong = take_event(m, s, &has);
	if (!wrong && has) {
		m->heap[m->n++] = s;
		sift_up(m, m->n - 1);
	}
	return wrong;
}

bool merge_next(struct merge *m, uint64_t until, struct alloc_event *ret, const char **ret_wrong)
{
	struct stream *s = m->n ? m->heap[0] : NULL;
	uint64_t t;
	bool has;

	*ret_wrong = NULL;
	if (!s || s->next.time > until)
		return false;
	*ret = s->next;
	t = ret->time > m->ticks ? ret->time - m->ticks : 0;
	ret->time = (uint64_t)((unsigned __int128)t * m->factor >> 64);
	*ret_wrong = take_event(m, s, &has);
	if (*ret_wrong) {
		m->n = 0;
		return false;
	}
	if (!has) {
		s->next.thread = 0;
		m->heap[0] = m->heap[--m->n];
	}
	if (m->n)
		sift_down(m, 0);
	return true;
}

struct merge *merge_new(struct alloc_trace *t, uint64_t ticks, uint64_t factor)
{
	struct merge *m = xcalloc(1, sizeof(*m));

	m->trace = t;
	m->ticks = ticks;
	m->factor = factor;
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
	free(m);
}
