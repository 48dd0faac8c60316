/* Copies records from the rings and puts them in order of time. */
#include "base/sorted.h"
#include "consume/consume_private.h"

enum {
	LATE_KEPT = 1000000000, /* ns; a late string that no record uses is dropped after 1 s */
	LATE_MAX = 1 << 16,
};

void batch_fini(struct batch *b)
{
	free(b->bytes);
	vec_fini(&b->ring[0]);
	vec_fini(&b->ring[1]);
	vec_fini(&b->late);
	vec_fini(&b->late_seen);
	hash_fini(&b->late_by_number);
	free(b->late_next);
	*b = (struct batch){ 0 };
}

static bool add_late(struct batch *b, const struct wire_record *r, uint32_t size)
{
	struct wire_late *l;
	uint64_t *last;

	if (b->late.n >= LATE_MAX)
		return false;
	l = vec_add(&b->late);
	vec_push(&b->late_seen, 0);
	memcpy(l, r, size < sizeof(*l) ? size : sizeof(*l));
	l->text[sizeof(l->text) - 1] = 0;
	if (b->late.n > b->late_next_cap) {
		b->late_next_cap = b->late.cap;
		b->late_next = xrealloc(b->late_next, b->late_next_cap * sizeof(*b->late_next));
	}
	last = hash_put(&b->late_by_number, &l->head.late, sizeof(l->head.late), NULL);
	b->late_next[b->late.n - 1] = (uint32_t)*last;
	*last = b->late.n;
	return true;
}

bool batch_add(struct batch *b, const struct wire_record *r, uint32_t size, bool control)
{
	item_vec *v = &b->ring[control];
	struct item it = { .time = r->time, .size = size };

	if (r->segment == WIRE_SEG_LATE)
		return add_late(b, r, size);
	if (b->n + size + 8 > b->cap) {
		b->cap = b->cap ? b->cap * 2 : 1 << 16;
		while (b->n + size + 8 > b->cap)
			b->cap *= 2;
		b->bytes = xrealloc(b->bytes, b->cap);
	}
	it.offset = (uint32_t)(b->n / 8);
	memcpy(b->bytes + b->n, r, size);
	b->n = (b->n + size + 7) & ~(size_t)7;
	if (v->n > b->at[control] && vec_last(v)->time > it.time)
		b->sorted[control] = false;
	vec_push(v, it);
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	/* the offset is the order of draining */
	return COMPARE(x->time, y->time) ?: COMPARE(x->offset, y->offset);
}

void batch_sort(struct batch *b)
{
	for (int i = 0; i < 2; i++) {
		if (b->sorted[i] || b->ring[i].n - b->at[i] < 2)
			continue;
		qsort(b->ring[i].v + b->at[i], b->ring[i].n - b->at[i], sizeof(struct item),
		      compare);
		b->sorted[i] = true;
	}
}

static struct wire_record *record_at(const struct batch *b, const struct item *it)
{
	return (struct wire_record *)(b->bytes + (size_t)it->offset * 8);
}

/* Returns a record's position within its firing. Segments are numbered in program order. A fault
 * comes behind the last segment of its clause. */
static uint64_t position(const struct image *img, const struct wire_record *r)
{
	uint32_t n;

	if (r->segment < img->nsegments)
		return (uint64_t)r->segment * 2;
	if (r->segment != WIRE_SEG_FAULT)
		return UINT64_MAX;
	n = partition_point(img->nsegments, i,
			    img->segments[i].clause <= ((const struct wire_fault *)r)->clause);
	return n ? (uint64_t)(n - 1) * 2 + 1 : 0;
}

struct wire_record *batch_peek(struct batch *b, const struct image *img, uint32_t *ret_size,
			       int *ret_ring)
{
	struct item *it[2];
	int ring;

	for (int i = 0; i < 2; i++)
		it[i] = b->at[i] < b->ring[i].n ? &b->ring[i].v[b->at[i]] : NULL;
	if (!it[0] && !it[1])
		return NULL;
	if (!it[0] || !it[1]) {
		ring = !it[0];
	} else if (it[0]->time != it[1]->time) {
		ring = it[1]->time < it[0]->time;
	} else {
		const struct wire_record *d = record_at(b, it[0]), *c = record_at(b, it[1]);

		ring = d->cpu == c->cpu && position(img, c) < position(img, d);
	}
	*ret_ring = ring;
	*ret_size = it[ring]->size;
	return record_at(b, it[ring]);
}

void batch_take(struct batch *b, int ring)
{
	b->at[ring]++;
}

uint64_t batch_held(const struct batch *b)
{
	uint64_t held = 0;

	for (int i = 0; i < 2; i++)
		for (uint32_t k = b->at[i]; k < b->ring[i].n; k++)
			held += b->ring[i].v[k].size;
	return held;
}

/* Drops late strings that were used or that came long ago. Measures their age by `now`, because a
 * traced process may have forged the times in them. */
static void compact_late(struct batch *b, uint64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->late.n; i++) {
		uint64_t seen = b->late_seen.v[i] ? b->late_seen.v[i] : now;

		if (!b->late.v[i].head.late || (seen && seen + LATE_KEPT <= now))
			continue;
		b->late_seen.v[n] = seen;
		b->late.v[n++] = b->late.v[i];
	}
	if (n == b->late.n)
		return;
	b->late.n = b->late_seen.n = n;
	hash_fini(&b->late_by_number);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t *last = hash_put(&b->late_by_number, &b->late.v[i].head.late,
					  sizeof(uint32_t), NULL);

		b->late_next[i] = (uint32_t)*last;
		*last = i + 1;
	}
}

void batch_compact(struct batch *b, uint64_t now)
{
	uint32_t left = 0;
	uint8_t *bytes;
	size_t n = 0;

	if (b->late.n)
		compact_late(b, now);
	for (int i = 0; i < 2; i++) {
		b->ring[i].n -= b->at[i];
		if (b->ring[i].n && b->at[i])
			memmove(b->ring[i].v, b->ring[i].v + b->at[i],
				b->ring[i].n * sizeof(struct item));
		b->at[i] = 0;
		left += b->ring[i].n;
	}
	if (!left) {
		b->n = 0;
		return;
	}
	if (b->n < 1 << 16) /* the unused bytes cost less than a copy */
		return;
	bytes = xmalloc(b->cap);
	for (int i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < b->ring[i].n; k++) {
			struct item *it = &b->ring[i].v[k];

			memcpy(bytes + n, record_at(b, it), it->size);
			it->offset = (uint32_t)(n / 8);
			n = (n + it->size + 7) & ~(size_t)7;
		}
	}
	free(b->bytes);
	b->bytes = bytes;
	b->n = n;
}

static void patch(const struct segment *seg, struct wire_record *r, const struct wire_late *l)
{
	for (uint32_t i = 0; i < seg->nfields; i++) {
		const struct field *f = &seg->fields[i];
		char *to = (char *)r + f->offset;
		size_t n;

		if (f->kind != FIELD_STRING || f->offset != l->offset || l->error || !f->size)
			continue;
		n = strlen(l->text);
		if (n > f->size - 1)
			n = f->size - 1;
		memcpy(to, l->text, n);
		memset(to + n, 0, f->size - n);
	}
}

bool batch_late(struct batch *b, const struct segment *seg, struct wire_record *r, uint64_t before)
{
	uint64_t *last = hash_get(&b->late_by_number, &r->late, sizeof(r->late));

	if (!last || b->late.v[*last - 1].head.time >= before)
		return false;
	for (uint32_t i = (uint32_t)*last; i; i = b->late_next[i - 1]) {
		patch(seg, r, &b->late.v[i - 1]);
		b->late.v[i - 1].head.late = 0; /* used */
	}
	hash_del(&b->late_by_number, &r->late, sizeof(r->late));
	return true;
}
