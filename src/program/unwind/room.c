/* Keeps the free ranges of chunks. */
#include "program/unwind/room.h"
#include "base/sorted.h"

void room_fini(struct room *s)
{
	vec_fini(&s->free);
	vec_fini(&s->pending);
}

void room_give(struct room *s, uint32_t at, uint32_t n, uint64_t now_ns)
{
	if (n)
		vec_push(&s->pending, (struct room_range){ at, n, now_ns });
}

/* Returns the index of the first range behind an address. */
static uint32_t range_behind(const struct room *s, uint32_t at)
{
	return partition_point(s->free.n, i, s->free.v[i].at <= at);
}

static void remove_range(struct room *s, uint32_t i)
{
	s->free.n--;
	memmove(&s->free.v[i], &s->free.v[i + 1], (s->free.n - i) * sizeof(*s->free.v));
}

static void insert_range(struct room *s, uint32_t i, struct room_range r)
{
	(void)vec_add(&s->free);
	memmove(&s->free.v[i + 1], &s->free.v[i], (s->free.n - 1 - i) * sizeof(*s->free.v));
	s->free.v[i] = r;
}

static bool touch(const struct room_range *a, const struct room_range *b)
{
	return a->at + a->n == b->at && a->at >> 16 == b->at >> 16;
}

static void add_free(struct room *s, struct room_range r)
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

void room_settle(struct room *s, uint64_t until_ns)
{
	uint32_t n = 0;

	while (n < s->pending.n && s->pending.v[n].time_ns <= until_ns)
		add_free(s, s->pending.v[n++]);
	s->pending.n -= n;
	if (n)
		memmove(s->pending.v, s->pending.v + n, s->pending.n * sizeof(*s->pending.v));
}

uint32_t room_take(struct room *s, uint32_t n, uint32_t align)
{
	if (!n)
		return 0;
	for (uint32_t i = 0; i < s->free.n; i++) {
		struct room_range r = s->free.v[i];
		uint32_t at = (r.at + align - 1) & ~(align - 1), front = at - r.at;

		if (front > r.n || r.n - front < n)
			continue;
		remove_range(s, i);
		if (front + n < r.n)
			insert_range(s, i,
				     (struct room_range){ .at = at + n, .n = r.n - front - n });
		if (front)
			insert_range(s, i, (struct room_range){ .at = r.at, .n = front });
		return at;
	}
	return 0;
}

bool room_ends_with(struct room *s, uint32_t at, uint32_t n)
{
	if (!s->free.n || vec_last(&s->free)->at != at || vec_last(&s->free)->n != n)
		return false;
	s->free.n--;
	return true;
}
