/* What the tracer reads in memory that traced processes write (wire/inproc.h, the shared file).
 *
 * In: addresses in the shared mapping, sizes and places from struct wire_map (tracer-written), the
 * tracer's own positions. Out: copies; shared_hash_find() alone gives an address in shared memory.
 * Always true: every word is read once and checked before it is used; what is handed to a callback
 * or returned as a copy lies in the tracer's own memory; each call ends after a number of steps
 * that sizes of the tracer's bound, whatever a process writes meanwhile.
 */
#ifndef DESCRY_LOAD_INPROC_SHARED_H
#define DESCRY_LOAD_INPROC_SHARED_H

#include <stdbool.h>

#include "base/mem.h"
#include "wire/inproc.h"

/* The copy that a reader hands out: valid until the next call with it. Zero is empty. */
struct shared_copy {
	VEC(uint64_t) words;
};
void shared_copy_fini(struct shared_copy *c);

/* Hands out the records of a ring with `size` bytes of data, as far as they are finished: at most
 * `size` bytes in one call. *tail: the tracer's own position, which starts as 0; the ring's copy of
 * it is only written. A ring that makes no sense is skipped. */
void shared_ring_take(struct wire_ring *r, uint32_t size, uint64_t *tail, struct shared_copy *c,
		      void (*fn)(void *arg, const void *record, uint32_t n), void *arg);

/* The shared file and where it is mapped. A process may set a count beyond what it wrote: pages of
 * the file that nobody has touched are not read, since reading one allocates it. NULL: the memory
 * is the tracer's own, not the file's. */
struct shared_file {
	int fd;
	const uint8_t *at;
};

/* Hands out the entries of an aggregation's table at `table`, of a map of kind WIRE_MAP_AGG_HASH,
 * and clears it. key: m->key_size bytes; value: m->value_size bytes. */
void shared_agg_take(const struct wire_map *m, const struct shared_file *f, void *table,
		     struct shared_copy *c,
		     void (*fn)(void *arg, const void *key, const uint64_t *value), void *arg);
/* Hands out the elements of an array, of a map of kind WIRE_MAP_AGG_ARRAY, whose first word is not
 * 0, and clears them. */
void shared_array_take(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg);

/* The address of a key's value in a WIRE_MAP_HASH; NULL: it is not there. This is no copy: the
 * value lies in shared memory, and any traced process may change it at any time. The caller reads
 * each word of it once and trusts none. */
const void *shared_hash_find(const struct wire_map *m, const void *key);

#endif
