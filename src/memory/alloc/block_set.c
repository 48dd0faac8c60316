/* Open addressing with linear probing. Pages stay when their last block goes: programs use the same
 * ones again. */
#include "memory/alloc/block_set.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"

enum { FIRST = 256, PAGE_BITS = 12, BLOCK_BITS = 3, WORD_BITS = 6 };

/* Returns the slot that the page has, or would have. */
static uint32_t slot_of_page(const struct block_set *s, uint64_t number)
{
	uint32_t i = s->last;

	if (s->pages[i].number == number)
		return i;
	i = (uint32_t)hash_word(number) & (s->cap - 1);
	while (s->pages[i].number && s->pages[i].number != number)
		i = (i + 1) & (s->cap - 1);
	return i;
}

static void enlarge(struct block_set *s)
{
	struct block_set old = *s;

	assert(old.cap <= BLOCK_SET_GROWN_MAX); /* the caller has asked block_set_growth() */
	s->cap = old.cap ? old.cap * 2 : FIRST;
	s->last = 0;
	s->pages = xcalloc(s->cap, sizeof(*s->pages));
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.pages[i].number)
			s->pages[slot_of_page(s, old.pages[i].number)] = old.pages[i];
	free(old.pages);
}

void block_set_fini(struct block_set *s)
{
	free(s->pages);
	*s = (struct block_set){ 0 };
}

static uint64_t *word_of_block(struct block_page *p, uint64_t addr, uint64_t *ret_bit)
{
	*ret_bit = 1ull << (addr >> BLOCK_BITS & 63);
	return &p->bits[addr >> (BLOCK_BITS + WORD_BITS) & 7];
}

bool block_set_put(struct block_set *s, uint64_t addr)
{
	uint64_t number = (addr >> PAGE_BITS) + 1, bit, *word;
	bool was;

	if (block_set_growth(s) || !s->cap)
		enlarge(s);
	s->last = slot_of_page(s, number);
	s->n += !s->pages[s->last].number;
	s->pages[s->last].number = number;
	word = word_of_block(&s->pages[s->last], addr, &bit);
	was = *word & bit;
	*word |= bit;
	return !was;
}

bool block_set_take(struct block_set *s, uint64_t addr)
{
	uint64_t bit, *word;
	uint32_t i;
	bool was;

	if (!s->cap)
		return false;
	i = slot_of_page(s, (addr >> PAGE_BITS) + 1);
	if (!s->pages[i].number)
		return false;
	s->last = i;
	word = word_of_block(&s->pages[i], addr, &bit);
	was = *word & bit;
	*word &= ~bit;
	return was;
}
