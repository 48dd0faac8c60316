/* The places where a program asks whether a probe is enabled, by the probe's name: one list for an
 * object, of which each probe has a part. */
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "probe/usdt.h"

struct usdt_questions {
	struct hash by_object; /* address of the object -> struct questions */
};

/* Those of an object. */
struct questions {
	const struct object_question **v; /* sorted by name; those of a name in the file's order */
	uint32_t n;
};

static int compare_names(const struct object_question *q, const char *provider, const char *name)
{
	return strcmp(q->provider, provider) ?: strcmp(q->name, name);
}

static int compare_questions(const void *x, const void *y)
{
	const struct object_question *a = *(const struct object_question *const *)x;
	const struct object_question *b = *(const struct object_question *const *)y;

	return compare_names(a, b->provider, b->name) ?: COMPARE(a, b);
}

static struct questions *questions_read(struct arena *arena, struct object *o)
{
	struct questions *l = arena_new(arena, struct questions);
	const struct object_question *q = object_questions(o, &l->n);

	l->v = arena_array(arena, const struct object_question *, l->n + 1);
	for (uint32_t i = 0; i < l->n; i++)
		l->v[i] = &q[i];
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), compare_questions);
	return l;
}

const struct object_question *const *usdt_questions(struct probe_set *ps, struct object *o,
						    const struct object_usdt *u, uint32_t *ret_n)
{
	const struct questions *l;
	uint32_t from, to;
	uint64_t *known;

	if (!ps->questions)
		ps->questions = xcalloc(1, sizeof(*ps->questions));
	known = hash_put(&ps->questions->by_object, &o, sizeof(o), NULL);
	if (!*known)
		*known = (uintptr_t)questions_read(&ps->arena, o);
	l = (const struct questions *)(uintptr_t)*known;
	from = partition_point(l->n, i, compare_names(l->v[i], u->provider, u->name) < 0);
	to = partition_point(l->n, i, compare_names(l->v[i], u->provider, u->name) <= 0);
	*ret_n = to - from;
	return l->v + from;
}

void usdt_questions_free(struct usdt_questions *q)
{
	if (q)
		hash_fini(&q->by_object);
	free(q);
}
