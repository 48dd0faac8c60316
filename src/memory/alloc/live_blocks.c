/* Open addressing with linear probing. A removal moves the blocks behind it, so that no marks of
 * removed blocks are needed. */
#include "memory/alloc/live_blocks.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"

enum { FIRST = 1024 };

static uint32_t home(const struct live *l, uint64_t addr)
{
	return (uint32_t)hash_word(addr) & (l->cap - 1);
}

static struct live_block *slot_of(const struct live *l, uint64_t addr)
{
	uint32_t i = home(l, addr);

	while (l->slots[i].addr && l->slots[i].addr != addr)
		i = (i + 1) & (l->cap - 1);
	return &l->slots[i];
}

static void grow(struct live *l)
{
	struct live old = *l;

	assert(old.cap <= LIVE_GROWN_MAX); /* the caller has asked live_growth() */
	l->cap = old.cap ? old.cap * 2 : FIRST;
	l->slots = xcalloc_table(l->cap, sizeof(*l->slots));
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.slots[i].addr)
			*slot_of(l, old.slots[i].addr) = old.slots[i];
	free(old.slots);
}

void live_fini(struct live *l)
{
	free(l->slots);
	*l = (struct live){ 0 };
}

void live_fetch(const struct live *l, uint64_t addr)
{
	const struct live_block *s;

	if (!l->cap)
		return;
	/* a slot is half a cache line, and the next ones are looked at, too */
	s = &l->slots[home(l, addr)];
	__builtin_prefetch(s, 1);
	__builtin_prefetch(s + 2, 1);
}

bool live_put(struct live *l, const struct live_block *b, struct live_block *ret_old)
{
	struct live_block *s;
	bool was_empty;

	if ((uint64_t)l->n * 4 >= (uint64_t)l->cap * 3)
		grow(l);
	s = slot_of(l, b->addr);
	was_empty = !s->addr;
	if (!was_empty)
		*ret_old = *s;
	*s = *b;
	l->n += was_empty;
	return was_empty;
}

bool live_take(struct live *l, uint64_t addr, struct live_block *ret)
{
	struct live_block *s = l->cap ? slot_of(l, addr) : NULL;
	uint32_t hole, i;

	if (!s || !s->addr)
		return false;
	*ret = *s;
	l->n--;
	hole = i = (uint32_t)(s - l->slots);
	for (;;) {
		uint32_t want;

		i = (i + 1) & (l->cap - 1);
		if (!l->slots[i].addr)
			break;
		/* A block may move to the hole when its home is not behind the hole. */
		want = home(l, l->slots[i].addr);
		if (((i - want) & (l->cap - 1)) >= ((i - hole) & (l->cap - 1))) {
			l->slots[hole] = l->slots[i];
			hole = i;
		}
	}
	l->slots[hole].addr = 0;
	return true;
}
