/* The copy of a process with V8: what it can write, and the memory that it has made and cannot
 * write: objects that never change, and code. */
#include "base/sorted.h"
#include "memory/heaplive/live_copy.h"
#include "memory/heaplive/v8_heap.h"

#define STILL_MAX (256ull << 20) /* bytes of such memory; V8's code has at most 128 MB */

static bool is_still(const struct mapping *m)
{
	return m->read && !m->write && !m->shared && !*m->path && m->end > m->start;
}

/* Reads the pages of a mapping that the process has made, and leaves zeros between them. */
static void still_read(struct v8_copied *c, struct space *s, const struct mapping *m,
		       const space_range_vec *runs)
{
	const uint64_t start = m->start, n = m->end - start;
	struct v8_still *still;

	if (n > STILL_MAX - c->still_bytes) {
		c->left_out += n;
		return;
	}
	c->still_bytes += n;
	still = vec_add(&c->still);
	*still = (struct v8_still){ start, start + n, xcalloc(1, n) };
	for (uint32_t i = 0; i < runs->n; i++)
		for (uint64_t at = runs->v[i].start; at < runs->v[i].end; at += MEMORY_PAGE)
			space_read_some(s, at, still->bytes + (at - start), MEMORY_PAGE);
}

struct err *v8_copy_new(struct space *s, struct memory_room *room, void **ret)
{
	struct v8_copied *c = xcalloc(1, sizeof(*c));
	const struct mappings *maps = NULL;
	struct err *e = memory_copy_into(s, room, &c->copy);

	e = e ?: space_mappings(s, 0, &maps);
	for (uint32_t i = 0; !e && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		space_range_vec runs = { 0 };

		if (!is_still(m))
			continue;
		e = space_resident(s, (struct space_range){ m->start, m->end }, &runs);
		if (!e && runs.n)
			still_read(c, s, m, &runs);
		vec_fini(&runs);
	}
	if (e)
		v8_copy_free(c);
	else
		*ret = c;
	return e;
}

void v8_copy_free(void *copied)
{
	struct v8_copied *c = copied;

	if (!c)
		return;
	memory_copy_free(c->copy);
	for (uint32_t i = 0; i < c->still.n; i++)
		free(c->still.v[i].bytes);
	vec_fini(&c->still);
	free(c);
}
