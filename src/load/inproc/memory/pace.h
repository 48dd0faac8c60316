/* Limits the share of the tracer's time that bells of traced processes take: a leaky bucket. The
 * time of a round that a bell began runs into the bucket. Half of the passing time runs out. A bell
 * waits while the bucket is full. So a process that rings all the time gets half of a processor,
 * and a process that rings now and then gets its answer at once. */
#ifndef DESCRY_LOAD_INPROC_PACE_H
#define DESCRY_LOAD_INPROC_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	PACE_ROOM = 100000000, /* ns of work that delay no bell */
	/* longest wait of a bell in ns, because a thread waits for the answer */
	PACE_MAX = 20000000,
	PACE_CHEAP = 10000000, /* ns of work that a process may ask for again at once */
	/* ns of work of one kind that the processes together may cause in a round; the rest of it
	 * is done in the next rounds */
	PACE_ROUND = 20000000,
};

struct pace {
	uint64_t level; /* ns of work in the bucket */
	uint64_t since; /* CLOCK_MONOTONIC ns at the start of the round; 0: there was none */
	bool rung;      /* a bell began it */
};

/* Begins a round. */
static inline void pace_begin(struct pace *p, uint64_t now, bool rung)
{
	const uint64_t out = p->since ? (now - p->since) / 2 : 0;

	p->level -= out < p->level ? out : p->level;
	p->since = now;
	p->rung = rung;
}

/* Ends the round. Returns the ns for which a bell must wait before it begins the next one. */
static inline uint64_t pace_end(struct pace *p, uint64_t now)
{
	const uint64_t most = PACE_ROOM + PACE_MAX / 2;

	if (p->rung)
		p->level += now - p->since;
	if (p->level > most)
		p->level = most;
	p->rung = false;
	return p->level > PACE_ROOM ? (p->level - PACE_ROOM) * 2 : 0;
}

/* Returns when work that a process asks for may be done again, after it took `took` ns of the
 * processor's time: not before it is one part of `share` parts of the time. 0: at once. */
static inline uint64_t pace_next(uint64_t now, uint64_t took, uint64_t share)
{
	return took > PACE_CHEAP ? now + took * share : 0;
}

#endif
