/* Strings and arrays that have equal contents. */
#include "graph_private.h"

static int compare_duplicates(const void *x, const void *y)
{
	const struct graph_duplicate *a = x, *b = y;

	return COMPARE(b->bytes, a->bytes) ?: COMPARE(b->n, a->n) ?: COMPARE(a->example, b->example);
}

/* Returns where the hash is, or the free place for it. */
static uint32_t content_place(const struct graph *g, uint64_t hash)
{
	uint32_t mask = g->content_cap - 1, i = (uint32_t)(hash >> 32) & mask;

	while (g->content_hash[i] && g->content_hash[i] != hash)
		i = (i + 1) & mask;
	return i;
}

static bool contents_grow(struct graph *g)
{
	struct graph_duplicate *old = g->contents;
	uint64_t *hashes = g->content_hash;
	uint32_t cap = g->content_cap;

	if (cap >= 1u << 30 ||
	    !graph_room(g, 2ull * (cap ?: 1024) * (sizeof(*old) + sizeof(*hashes))))
		return false;
	g->content_cap = cap ? cap * 2 : 1024;
	g->contents = xcalloc(g->content_cap, sizeof(*g->contents));
	g->content_hash = xcalloc(g->content_cap, sizeof(*g->content_hash));
	for (uint32_t i = 0; i < cap; i++) {
		uint32_t place;

		if (!hashes[i])
			continue;
		place = content_place(g, hashes[i]);
		g->content_hash[place] = hashes[i];
		g->contents[place] = old[i];
	}
	free(old);
	free(hashes);
	return true;
}

void graph_content(struct graph *g, const void *p, size_t n)
{
	struct graph_duplicate *d;
	const struct graph_kind *kind;
	uint32_t place;
	uint64_t hash;

	if (!g->wanted.contents || g->failed || !g->nobjects)
		return;
	if (g->ncontents >= g->content_cap / 2 && !contents_grow(g))
		return;
	kind = graph_kind_at(g, g->made.kind[g->nobjects - 1]);
	hash = hash_pair(hash_bytes(p, n), kind->class) ?: 1;
	place = content_place(g, hash);
	d = &g->contents[place];
	if (!d->n) {
		g->content_hash[place] = hash;
		g->ncontents++;
		d->class = kind->class;
		d->example = g->made.addresses[g->nobjects - 1];
		d->length = n;
		d->head_n = (uint8_t)(n < sizeof(d->head) ? n : sizeof(d->head));
		memcpy(d->head, p, d->head_n);
	}
	d->n++;
	d->bytes += kind->size <= GRAPH_SIZE_MAX ? kind->size : 0;
}

size_t graph_duplicates(const struct graph *g, struct graph_duplicate **ret)
{
	size_t n = 0;

	*ret = xmalloc(((size_t)g->ncontents + 1) * sizeof(**ret));
	for (uint32_t i = 0; i < g->content_cap; i++)
		if (g->contents[i].n > 1)
			(*ret)[n++] = g->contents[i];
	qsort(*ret, n, sizeof(**ret), compare_duplicates);
	return n;
}

void graph_content_fini(struct graph *g)
{
	free(g->contents);
	free(g->content_hash);
}
