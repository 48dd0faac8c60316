/* The ticks of an event. A processor may read its counter before loads of earlier instructions are
 * done, and one of these may have brought the block over from another thread. The reader of the
 * file restores the order of an allocation and a free of one block
 * (src/memory/alloc/trace_merge.c), but not that of two frees: between them the block was allocated
 * again. An lfence before the counter keeps them in order, and takes 8 ns or more. With one thread
 * none is needed, and with several a block that the thread has allocated itself needs none, when no
 * other thread has freed it since then.
 *
 * struct alloc_own has the blocks that a thread has allocated last. A free that does not find its
 * block there waits for loads, and leaves its ticks in alloc_crossed. Ticks are those of one clock
 * on all processors, so a thread's own allocation counts when it is later than that. */
#ifndef DESCRY_AGENT_ALLOC_ORDER_H
#define DESCRY_AGENT_ALLOC_ORDER_H

#include "agent/alloc_private.h"

enum {
	ALLOC_OWN = 512,      /* blocks of a thread */
	ALLOC_CROSSED = 4096, /* ticks, by the block's address */
};

struct alloc_own {
	uint64_t addr, time; /* addr 0: none */
};

extern uint64_t alloc_crossed[ALLOC_CROSSED] HIDDEN;

static inline uint64_t ticks_behind_loads(void)
{
	__asm__ volatile("lfence" : : : "memory");
	return ticks();
}

static inline struct alloc_own *own_of(const struct thread *t, uint64_t addr)
{
	return &t->own[(addr >> 4 ^ addr >> 13) % ALLOC_OWN];
}

static inline uint64_t *crossed_of(uint64_t addr)
{
	return &alloc_crossed[(addr >> 4 ^ addr >> 16) % ALLOC_CROSSED];
}

/* Returns true when the thread has allocated the block, and no other has freed it since then. */
static inline int own_take(const struct thread *t, uint64_t addr)
{
	struct alloc_own *o;

	if (UNLIKELY(!t->own))
		return 0;
	o = own_of(t, addr);
	if (o->addr != addr)
		return 0;
	o->addr = 0;
	return o->time > __atomic_load_n(crossed_of(addr), __ATOMIC_RELAXED);
}

static NOINLINE uint64_t cross(uint64_t addr)
{
	uint64_t now = ticks_behind_loads(), *last = crossed_of(addr);
	uint64_t old = __atomic_load_n(last, __ATOMIC_RELAXED);

	/* before the block can be allocated again */
	while (old < now &&
	       !__atomic_compare_exchange_n(last, &old, now, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return now;
}

/* Returns the ticks of an event of a block. */
static inline __attribute__((always_inline)) uint64_t ticks_of(const struct thread *t,
							       enum wire_alloc_op op, uint64_t addr)
{
	uint64_t now;

	if (LIKELY(!state.several))
		return ticks();
	if (op == WIRE_ALLOC_MAP)
		return ticks_behind_loads();
	if (op == WIRE_ALLOC_FREE || op == WIRE_ALLOC_REALLOC_FROM)
		return LIKELY(own_take(t, addr)) ? ticks() : cross(addr);
	now = ticks();
	if (LIKELY(t->own != 0))
		*own_of(t, addr) = (struct alloc_own){ addr, now };
	return now;
}

#endif
