#include "program/unwind/space.h"

#include <stdbool.h>

void space_fini(struct space *s)
{
	vec_fini(&s->free);
	vec_fini(&s->pending);
}

void space_give(struct space *s, uint32_t at, uint32_t n, uint64_t now_ns)
{
	if (n)
		vec_push(&s->pending, (struct space_range){ at, n, now_ns });
}

/* The first range behind an address. */
static uint32_t range_behind(const struct space *s, uint32_t at)
{
	uint32_t lo = 0, hi = s->free.n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->free.v[mid].at <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void remove_range(struct space *s, uint32_t i)
{
	s->free.n--;
	memmove(&s->free.v[i], &s->free.v[i + 1], (s->free.n - i) * sizeof(*s->free.v));
}

static void insert_range(struct space *s, uint32_t i, struct space_range r)
{
	(void)vec_add(&s->free);
	memmove(&s->free.v[i + 1], &s->free.v[i], (s->free.n - 1 - i) * sizeof(*s->free.v));
	s->free.v[i] = r;
}

static bool touch(const struct space_range *a, const struct space_range *b)
{
	return a->at + a->n == b->at && a->at >> 16 == b->at >> 16;
}

static void add_free(struct space *s, struct space_range r)
{
	uint32_t i = range_behind(s, r.at);

	if (i < s->free.n && touch(&r, &s->free.v[i])) {
		r.n += s->free.v[i].n;
		remove_range(s, i);
	}
	if (i && touch(&s->free.v[i - 1], &r))
		s->free.v[i - 1].n += r.n;
	else
		insert_range(s, i, r);
}

void space_settle(struct space *s, uint64_t until_ns)
{
	uint32_t n = 0;

	while (n < s->pending.n && s->pending.v[n].time_ns <= until_ns)
		add_free(s, s->pending.v[n++]);
	s->pending.n -= n;
	if (n)
		memmove(s->pending.v, s->pending.v + n, s->pending.n * sizeof(*s->pending.v));
}

uint32_t space_take(struct space *s, uint32_t n, uint32_t align)
{
	if (!n)
		return 0;
	for (uint32_t i = 0; i < s->free.n; i++) {
		struct space_range r = s->free.v[i];
		uint32_t at = (r.at + align - 1) & ~(align - 1), front = at - r.at;

		if (front > r.n || r.n - front < n)
			continue;
		remove_range(s, i);
		if (front + n < r.n)
			insert_range(s, i,
				     (struct space_range){ .at = at + n, .n = r.n - front - n });
		if (front)
			insert_range(s, i, (struct space_range){ .at = r.at, .n = front });
		return at;
	}
	return 0;
}
