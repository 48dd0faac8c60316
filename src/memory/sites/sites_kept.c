/* The samples of a JVM's objects that descry's library there keeps by weak references
 * (agent/jvm_sampling.c): finds in a copy of the JVM's memory which of them live. */
#include "memory/sites/sites.h"

#include <math.h>
#include <string.h>

#include "program/space/space.h"
#include "wire/jvm_samples.h"

static const uint64_t SIZE_MOST = 1ull << 47; /* no process has a larger object */

/* Returns for how many objects of its size a sample stands: the inverse of its chance to be one. */
static double weight_of(const struct sites *s, uint64_t size)
{
	return size ? -1 / expm1(-(double)size / (double)s->interval) : 1;
}

void sites_kept_add(struct sites *s, uint32_t place, const char *text, size_t n,
		    const uint64_t *numbers)
{
	const uint64_t entry = numbers[1], serial = numbers[2],
		       size = numbers[3] < SIZE_MOST ? numbers[3] : SIZE_MOST;
	uint32_t sample;

	/* "Ljava/lang/String;" */
	if (n > 1 && text[0] == 'L' && text[n - 1] == ';') {
		text++;
		n -= 2;
	}
	sample = sites_sample_add(s, place, text, n, size,
				  (uint64_t)((double)size * weight_of(s, size)));
	if (entry >= WIRE_JVM_SAMPLES) {
		s->left_out++;
		return;
	}
	s->kept_at = numbers[0];
	while (s->kept.n <= entry)
		vec_push(&s->kept, ((struct sites_kept){ 0 }));
	s->kept.v[entry] = (struct sites_kept){ serial, size, sample };
}

/* The word of an object that has died is 0, or has no more than ZGC's bits (from 21 on). */
enum { ZGC_BITS = 16 };

/* Returns true when the object of an entry lives. */
static bool is_alive(struct sites *s, struct space *copied, struct graph *g, bool garbage,
		     const struct wire_jvm_sample *e)
{
	uint64_t object;
	graph_id id;

	if (e->reference <= WIRE_JVM_SAMPLE_BUSY ||
	    space_read_some(copied, e->reference & ~(uint64_t)WIRE_JVM_REFERENCE_TAG, &object,
			    sizeof(object)) != sizeof(object) ||
	    !(object >> ZGC_BITS))
		return false;
	if (!g)
		return true;
	id = graph_find_reference(g, object);
	return id != GRAPH_NONE && (garbage || graph_reachable(g, id));
}

void sites_kept_look(struct sites *s, struct space *copied, struct graph *g, bool garbage)
{
	for (uint32_t i = 0; i < s->samples.n; i++) {
		struct sites_sample *m = &s->samples.v[i];

		m->live = 0;
		m->live_bytes = m->live_objects = 0;
	}
	s->live = !g || garbage ? SITES_UNCOLLECTED : SITES_REACHABLE;
	for (uint32_t i = 0; i < s->kept.n; i++) {
		const struct sites_kept *k = &s->kept.v[i];
		struct wire_jvm_sample e;
		struct sites_sample *m;

		/* another serial: the record of what the entry has now was lost, or comes later */
		if (!k->serial || k->sample >= s->samples.n ||
		    space_read_some(copied, s->kept_at + i * sizeof(e), &e, sizeof(e)) !=
			    sizeof(e) ||
		    e.serial != k->serial || !is_alive(s, copied, g, garbage, &e))
			continue;
		m = &s->samples.v[k->sample];
		m->live++;
		m->live_objects += weight_of(s, k->size);
		m->live_bytes += (double)k->size * weight_of(s, k->size);
	}
}
