/* Ranges of mapped memory, in a sorted array of blocks, so that an insertion moves few of them. */
#include <string.h>

#include "memory/alloc/mapped_ranges.h"

enum { BLOCK_RANGES = 512 };

struct mapped_block {
	uint32_t n;
	struct mapped_range v[BLOCK_RANGES];
};

/* Returns the number of blocks that end at or before an address. */
static uint32_t find_block(const struct mapped_ranges *m, uint64_t addr)
{
	uint32_t lo = 0, hi = m->blocks.n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		const struct mapped_block *b = m->blocks.v[mid];

		if (b->v[b->n - 1].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Returns the number of ranges of a block that end at or before an address. */
static uint32_t find_range(const struct mapped_block *b, uint64_t addr)
{
	uint32_t lo = 0, hi = b->n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (b->v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct mapped_block *insert_block(struct mapped_ranges *m, uint32_t at)
{
	struct mapped_block *b = xcalloc(1, sizeof(*b));

	vec_add(&m->blocks);
	memmove(&m->blocks.v[at + 1], &m->blocks.v[at],
		(m->blocks.n - 1 - at) * sizeof(m->blocks.v[0]));
	m->blocks.v[at] = b;
	return b;
}

static void remove_block(struct mapped_ranges *m, uint32_t at)
{
	free(m->blocks.v[at]);
	m->blocks.n--;
	memmove(&m->blocks.v[at], &m->blocks.v[at + 1],
		(m->blocks.n - at) * sizeof(m->blocks.v[0]));
}

static void insert_range(struct mapped_ranges *m, struct mapped_range r)
{
	uint32_t at = find_block(m, r.start), i;
	struct mapped_block *b, *behind;

	if (m->n >= MAPPED_MAX) {
		m->left_out++;
		return;
	}
	if (at == m->blocks.n && at)
		at--;
	b = m->blocks.n ? m->blocks.v[at] : insert_block(m, 0);
	if (b->n == BLOCK_RANGES) {
		behind = insert_block(m, at + 1);
		behind->n = BLOCK_RANGES / 2;
		b->n -= behind->n;
		memcpy(behind->v, b->v + b->n, behind->n * sizeof(r));
		if (r.start >= behind->v[0].start)
			b = behind;
	}
	i = find_range(b, r.start);
	memmove(b->v + i + 1, b->v + i, (b->n - i) * sizeof(r));
	b->v[i] = r;
	b->n++;
	m->n++;
	m->bytes[r.kind] += r.end - r.start;
}

static uint64_t end_of(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* Takes the whole ranges of block `at` out that begin with range i, and end at or before `end`. */
static void remove_ranges(struct mapped_ranges *m, uint32_t at, uint32_t i, uint64_t end)
{
	struct mapped_block *b = m->blocks.v[at];
	uint32_t gone = i;

	for (; gone < b->n && b->v[gone].end <= end; gone++)
		m->bytes[b->v[gone].kind] -= b->v[gone].end - b->v[gone].start;
	memmove(b->v + i, b->v + gone, (b->n - gone) * sizeof(b->v[0]));
	b->n -= gone - i;
	m->n -= gone - i;
	if (!b->n)
		remove_block(m, at);
}

void mapped_ranges_take(struct mapped_ranges *m, uint64_t start, uint64_t size)
{
	uint64_t end = end_of(start, size);

	for (;;) {
		uint32_t at = find_block(m, start), i;
		struct mapped_range *r, rest;

		if (at == m->blocks.n)
			return;
		i = find_range(m->blocks.v[at], start);
		r = &m->blocks.v[at]->v[i];
		if (r->start >= end)
			return;
		rest = *r;
		if (r->start < start) { /* its beginning stays */
			m->bytes[r->kind] -= r->end - start;
			r->end = start;
			if (rest.end <= end)
				continue;
			rest.start = end; /* so does its end */
			insert_range(m, rest);
			return;
		}
		if (r->end > end) {
			m->bytes[r->kind] -= end - r->start;
			r->start = end;
			return;
		}
		remove_ranges(m, at, i, end);
	}
}

/* Makes a range longer that ends where one of the same kind begins, as the kernel does. */
static bool extend(struct mapped_ranges *m, uint64_t start, uint64_t end, uint8_t kind)
{
	uint32_t at = start ? find_block(m, start - 1) : m->blocks.n;
	struct mapped_range *r;

	if (at == m->blocks.n)
		return false;
	r = &m->blocks.v[at]->v[find_range(m->blocks.v[at], start - 1)];
	if (r->end != start || r->kind != kind)
		return false;
	r->end = end;
	m->bytes[kind] += end - start;
	return true;
}

void mapped_ranges_put(struct mapped_ranges *m, uint64_t start, uint64_t size, uint8_t kind)
{
	struct mapped_range r = { start, end_of(start, size), kind };

	mapped_ranges_take(m, start, size);
	if (r.end == r.start || kind >= MAPPED_N || extend(m, start, r.end, kind))
		return;
	insert_range(m, r);
}

void mapped_ranges_each(const struct mapped_ranges *m,
			void (*fn)(void *arg, const struct mapped_range *r), void *arg)
{
	for (uint32_t i = 0; i < m->blocks.n; i++)
		for (uint32_t k = 0; k < m->blocks.v[i]->n; k++)
			fn(arg, &m->blocks.v[i]->v[k]);
}

void mapped_ranges_fini(struct mapped_ranges *m)
{
	for (uint32_t i = 0; i < m->blocks.n; i++)
		free(m->blocks.v[i]);
	vec_fini(&m->blocks);
}
