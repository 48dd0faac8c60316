/* Compares and reduces two images of one program, made for two engines. Each engine runs a part of
 * the probes. */
#include "data/image.h"

static bool same_fields(const struct field *a, uint32_t na, const struct field *b, uint32_t nb)
{
	for (uint32_t i = 0; i < na && na == nb; i++)
		if (a[i].kind != b[i].kind || a[i].offset != b[i].offset || a[i].size != b[i].size)
			return false;
	return na == nb;
}

static bool same_segments(const struct image *a, const struct image *b)
{
	for (uint32_t i = 0; i < a->nsegments; i++) {
		const struct segment *s = &a->segments[i], *t = &b->segments[i];

		if (s->clause != t->clause || s->size != t->size || s->nactions != t->nactions ||
		    !same_fields(s->fields, s->nfields, t->fields, t->nfields))
			return false;
	}
	return true;
}

static bool same_aggs(const struct image *a, const struct image *b)
{
	for (uint32_t i = 0; i < a->naggs; i++) {
		const struct agg *s = &a->aggs[i], *t = &b->aggs[i];

		if (s->func != t->func || s->nwords != t->nwords || s->key_size != t->key_size ||
		    !same_fields(s->keys, s->nkeys, t->keys, t->nkeys))
			return false;
	}
	return true;
}

bool image_is_alike(const struct image *a, const struct image *b)
{
	if (a->nprobes != b->nprobes || a->nstrings != b->nstrings || a->naggs != b->naggs ||
	    a->nsegments != b->nsegments)
		return false;
	for (uint32_t i = 0; i < a->nprobes; i++)
		if (a->probes[i].probe != b->probes[i].probe)
			return false;
	for (uint32_t i = 0; i < a->nstrings; i++)
		if (strcmp(a->strings[i], b->strings[i]))
			return false;
	return same_segments(a, b) && same_aggs(a, b);
}

void image_keep(struct image *img, const bool *keep)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < img->nprogs; i++) {
		struct image_prog *p = &img->progs[i];
		bool helps = !p->nprobes;
		uint32_t n = 0;

		for (uint32_t k = 0; k < p->nprobes; k++)
			if (keep[p->probes[k]])
				p->probes[n++] = p->probes[k];
		p->nprobes = n;
		p->fentry = 0;
		if (img->has_begin && img->begin_prog == i) {
			img->begin_prog = kept;
			img->has_begin = n;
		}
		if (img->has_end && img->end_prog == i) {
			img->end_prog = kept;
			img->has_end = n;
		}
		if (n || helps)
			img->progs[kept++] = *p;
	}
	img->nprogs = kept;
}
