/* Open addressing with linear probing. Pages stay when their last block goes: programs use the same
 * ones again. */
#include "memory/alloc/block_set.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"

enum { FIRST = 256, PAGE_BITS = 12, BLOCK_BITS = 3, WORD_BITS = 6 };

static uint32_t home_of_page(const struct block_set *s, uint64_t number)
{
	return (uint32_t)hash_word(number) & (s->cap - 1);
}

/* Returns the slot that the page has, or would have. */
static uint32_t slot_of_page(const struct block_set *s, uint64_t number)
{
	uint32_t i = s->last;

	if (s->pages[i] == number)
		return i;
	i = home_of_page(s, number);
	while (s->pages[i] && s->pages[i] != number)
		i = (i + 1) & (s->cap - 1);
	return i;
}

static void enlarge(struct block_set *s)
{
	struct block_set old = *s;

	assert(old.cap <= BLOCK_SET_GROWN_MAX); /* the caller has asked block_set_growth() */
	s->cap = old.cap ? old.cap * 2 : FIRST;
	s->last = 0;
	s->pages = xcalloc_table(s->cap, sizeof(*s->pages));
	s->bits = xcalloc_table(s->cap, sizeof(*s->bits));
	for (uint32_t i = 0; i < old.cap; i++) {
		uint32_t to;

		if (!old.pages[i])
			continue;
		to = slot_of_page(s, old.pages[i]);
		s->pages[to] = old.pages[i];
		s->bits[to] = old.bits[i];
	}
	block_set_fini(&old);
}

void block_set_fini(struct block_set *s)
{
	free(s->pages);
	free(s->bits);
	*s = (struct block_set){ 0 };
}

static uint64_t number_of_page(uint64_t addr)
{
	return (addr >> PAGE_BITS) + 1;
}

static uint64_t *word_of_block(struct block_set *s, uint64_t addr, uint64_t *ret_bit)
{
	*ret_bit = 1ull << (addr >> BLOCK_BITS & 63);
	return &s->bits[s->last].v[addr >> (BLOCK_BITS + WORD_BITS) & 7];
}

void block_set_fetch(const struct block_set *s, uint64_t addr)
{
	uint32_t i;

	if (!s->cap)
		return;
	i = home_of_page(s, number_of_page(addr));
	__builtin_prefetch(&s->pages[i]);
	__builtin_prefetch(&s->bits[i], 1);
}

bool block_set_put(struct block_set *s, uint64_t addr)
{
	uint64_t number = number_of_page(addr), bit, *word;
	bool was;

	if (block_set_growth(s) || !s->cap)
		enlarge(s);
	s->last = slot_of_page(s, number);
	s->n += !s->pages[s->last];
	s->pages[s->last] = number;
	word = word_of_block(s, addr, &bit);
	was = *word & bit;
	*word |= bit;
	return !was;
}

bool block_set_take(struct block_set *s, uint64_t addr)
{
	uint64_t number = number_of_page(addr), bit, *word;
	uint32_t i;
	bool was;

	if (!s->cap)
		return false;
	i = slot_of_page(s, number);
	if (!s->pages[i])
		return false;
	s->last = i;
	word = word_of_block(s, addr, &bit);
	was = *word & bit;
	*word &= ~bit;
	return was;
}
