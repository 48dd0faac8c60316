/* How large Java's objects are in memory. A file does not have it: neither the size of references
 * nor of headers, nor the padding. Addresses of neighbours tell.
 */
#include "memory/heapfile/hprof.h"

enum { ALIGN = 8, ARRAY_HEADER_MIN = 12, ARRAY_HEADER_MAX = 24 };

static void array_note(struct hprof *h, uint64_t distance)
{
	uint64_t n = h->last_length, bytes = n * h->last_element;

	if (n >= UINT32_MAX || distance < ALIGN)
		return;
	if (!h->last_element) {
		/* The elements are references: of 4 bytes when those of 8 would not fit. */
		if (n < 2)
			return;
		if (distance < ARRAY_HEADER_MIN + n * 8)
			h->narrow++;
		else
			h->wide++;
		return;
	}
	if (distance < bytes + ARRAY_HEADER_MIN || distance > bytes + ARRAY_HEADER_MAX + ALIGN)
		return;
	if (!h->array_header || distance - bytes < h->array_header)
		h->array_header = (unsigned)(distance - bytes);
}

void hprof_size_note(struct hprof *h, uint64_t id)
{
	uint64_t distance = id - h->last_id;

	if (h->last_id && id > h->last_id) {
		if (!h->last_number) {
			if (h->skim)
				array_note(h, distance);
		} else {
			struct hprof_class *c = &h->classes.v[h->last_number - 1];

			if (!c->least || distance < c->least)
				c->least = distance;
		}
	}
	if (!h->first_id)
		h->first_id = id;
	h->last_id = id;
}

void hprof_size_decide(struct hprof *h)
{
	h->ref_size = h->id_size == 8 && !h->narrow && h->wide ? 8 : 4;
	if (h->array_header < ARRAY_HEADER_MIN || h->array_header > ARRAY_HEADER_MAX)
		h->array_header = h->id_size == 8 ? 16 : 12;
	/* An array's header has the length behind it: 4 bytes, and 4 of padding behind 16. */
	h->header = h->array_header >= 20 ? 16 : h->array_header - 4;
}

uint64_t hprof_array_size(const struct hprof *h, uint64_t n, unsigned element)
{
	return round_up(h->array_header + n * element, ALIGN);
}

uint64_t hprof_instance_size(const struct hprof *h, const struct hprof_class *c)
{
	uint64_t packed =
		c->bytes - (uint64_t)c->nrefs * h->id_size + (uint64_t)c->nrefs * h->ref_size;
	uint64_t size = round_up(h->header + packed, ALIGN);

	/* No object has 8 bytes, so that such a distance is padding, or a field that the runtime
	 * adds. */
	return c->least == size + ALIGN ? c->least : size;
}
