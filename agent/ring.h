/* A thread's ring (wire/inproc.h): the producer's side, for the thread, and the consumer's side,
 * for the tracer.
 *
 * In: a struct wire_ring with `size` bytes of data behind it, a power of two >= 64. Out: records.
 * Always true: one producer and one consumer, in any processes, and neither waits for the other.
 * The producer writes each header before it moves `head`, so every header below `head` is whole.
 * The consumer checks all that it reads. It skips a ring whose words make no sense, and reports it.
 */
#ifndef DESCRY_AGENT_RING_H
#define DESCRY_AGENT_RING_H

#include "agent/memory.h"
#include "wire/inproc.h"

typedef uint32_t __attribute__((may_alias)) ring_word; /* the first field of a record's head */

static inline uint8_t *ring_data(struct wire_ring *r)
{
	return (uint8_t *)(r + 1);
}
static inline uint64_t ring_room(uint64_t n) /* Returns the bytes that a record of n bytes takes. */
{
	return (n + 7 + WIRE_RING_HEAD) & ~7ull;
}

/* Returns n bytes for a record, or NULL: the ring is full, or n is larger than the ring. */
static inline void *ring_reserve(struct wire_ring *r, uint64_t size, uint64_t n)
{
	uint64_t head = r->head, tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE), need, at, end;
	ring_word *word;

	if (n > size - WIRE_RING_HEAD)
		return NULL;
	need = ring_room(n);
	at = head & (size - 8); /* other processes may have written it */
	end = size - at;        /* > 0, a multiple of 8 */
	if (need > end) {
		if (head - tail > size || size - (head - tail) < end + need)
			return NULL;
		word = (ring_word *)(ring_data(r) + at);
		word[1] = 0;
		__atomic_store_n(word, WIRE_RING_PAD | (uint32_t)(end - WIRE_RING_HEAD),
				 __ATOMIC_RELAXED);
		head += end;
		at = 0;
	} else if (head - tail > size || size - (head - tail) < need) {
		return NULL;
	}
	word = (ring_word *)(ring_data(r) + at);
	word[1] = 0;
	__atomic_store_n(word, WIRE_RING_BUSY | (uint32_t)n, __ATOMIC_RELAXED);
	__atomic_store_n(&r->head, head + need, __ATOMIC_RELEASE);
	return word + 2;
}

/* data: the result of ring_reserve(). Returns false when it is no open record. */
static inline bool ring_finish(void *data, bool discard)
{
	ring_word *word = (ring_word *)data - 2;
	uint32_t v = *word;

	if (!(v & WIRE_RING_BUSY))
		return false;
	__atomic_store_n(word, (v & ~(uint32_t)WIRE_RING_BUSY) | (discard ? WIRE_RING_DISCARD : 0),
			 __ATOMIC_RELEASE);
	return true;
}

/* On the producer's side: discards the open records of an abandoned firing. Returns their
 * number. */
static inline uint32_t ring_abandon(struct wire_ring *r, uint64_t size)
{
	uint64_t at = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE), head = r->head;
	uint32_t n = 0;

	if (head - at > size || at & 7)
		return 0;
	while (at < head) {
		ring_word *word = (ring_word *)(ring_data(r) + (at & (size - 1)));

		if (*word & WIRE_RING_BUSY) {
			ring_finish(word + 2, true);
			n++;
		}
		at += ring_room(*word & WIRE_RING_SIZE);
	}
	return n;
}

enum ring_next {
	RING_EMPTY,  /* empty, or the next record is still being written */
	RING_RECORD, /* *ret_data, *ret_n: valid until ring_consume() */
	RING_BROKEN, /* the ring's words made no sense, and its contents were dropped */
};

/* Reads the consumer's next record. `tail` is the consumer's own copy of its position, because the
 * producer may change the ring's copy. dead: the producer has ended, so records that it left open
 * are skipped. */
static inline enum ring_next ring_next(struct wire_ring *r, uint64_t size, uint64_t *tail,
				       bool dead, const void **ret_data, uint32_t *ret_n)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);

	if (head != *tail && (head - *tail > size || (head | *tail) & 7))
		goto broken;
	while (*tail != head) {
		uint64_t at = *tail & (size - 1), n;
		uint32_t v = __atomic_load_n((ring_word *)(ring_data(r) + at), __ATOMIC_ACQUIRE);

		n = v & WIRE_RING_SIZE;
		if (ring_room(n) > size - at || ring_room(n) > head - *tail)
			goto broken;
		if (v & WIRE_RING_BUSY && !dead)
			return RING_EMPTY;
		if (!(v & (WIRE_RING_BUSY | WIRE_RING_DISCARD | WIRE_RING_PAD))) {
			*ret_data = ring_data(r) + at + WIRE_RING_HEAD;
			*ret_n = (uint32_t)n;
			return RING_RECORD;
		}
		*tail += ring_room(n);
		__atomic_store_n(&r->tail, *tail, __ATOMIC_RELEASE);
	}
	return RING_EMPTY;
broken:
	*tail = head;
	__atomic_store_n(&r->tail, *tail, __ATOMIC_RELEASE);
	return RING_BROKEN;
}

/* Frees the record of n bytes that ring_next() returned. */
static inline void ring_consume(struct wire_ring *r, uint64_t *tail, uint32_t n)
{
	*tail += ring_room(n);
	__atomic_store_n(&r->tail, *tail, __ATOMIC_RELEASE);
}

#endif
