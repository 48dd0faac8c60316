/* Speculations: keeps records until commit() or discard(). A program that commits frees the id
 * at once. The next user's records are younger than the commit, and therefore come after it here
 * too. */
#include "consume/consume_private.h"

bool spec_add(struct consumer *c, const struct wire_record *r, uint32_t size)
{
	size_t need = 8 + (((size_t)size + 7) & ~(size_t)7);
	struct speculation *s;

	if (r->spec > ARRAY_SIZE(c->specs))
		return false;
	s = &c->specs[r->spec - 1];
	if (s->n + need > (size_t)opt_num(c->options, OPT_SPECSIZE)) {
		c->spec_drops++;
		return false;
	}
	if (s->n + need > s->cap) {
		s->cap = s->cap ? s->cap * 2 : 4096;
		while (s->n + need > s->cap)
			s->cap *= 2;
		s->bytes = xrealloc(s->bytes, s->cap);
	}
	memcpy(s->bytes + s->n, &size, sizeof(size));
	memcpy(s->bytes + s->n + 8, r, size);
	s->n += need;
	return true;
}

struct err *spec_end(struct consumer *c, uint64_t id, bool commit)
{
	struct speculation s;
	struct err *e = NULL;

	if (!id || id > ARRAY_SIZE(c->specs)) /* commit(0): speculation() failed before */
		return NULL;
	s = c->specs[id - 1];
	c->specs[id - 1] = (struct speculation){ 0 };
	for (size_t at = 0; commit && !e && at < s.n;) {
		const struct wire_record *r = (const struct wire_record *)(s.bytes + at + 8),
					 *next = NULL;
		uint32_t size = read_u32(s.bytes + at);

		at += 8 + (((size_t)size + 7) & ~(size_t)7);
		if (at < s.n)
			next = (const struct wire_record *)(s.bytes + at + 8);
		e = record_run(c, r, size,
			       next && next->time == r->time && next->cpu == r->cpu &&
				       next->probe == r->probe);
	}
	free(s.bytes);
	return e;
}

void spec_fini(struct consumer *c)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(c->specs); i++) {
		free(c->specs[i].bytes);
		c->specs[i] = (struct speculation){ 0 };
	}
}
