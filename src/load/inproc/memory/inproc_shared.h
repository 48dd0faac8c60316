/* Reads memory that traced processes write (wire/inproc.h, the shared file).
 *
 * In: addresses in the shared mapping, sizes and places from struct wire_map (which only the tracer
 * writes), the tracer's own positions. Out: copies. Only shared_hash_find() returns an address in
 * shared memory. Always true: each word is read once and checked before it is used. Callbacks and
 * results get copies in the tracer's own memory. Each call ends after a number of steps that the
 * tracer's own sizes bound, whatever a process writes meanwhile.
 */
#ifndef DESCRY_LOAD_INPROC_SHARED_H
#define DESCRY_LOAD_INPROC_SHARED_H

#include <stdbool.h>

#include "base/mem.h"
#include "wire/inproc.h"

/* The copy that a reader passes on. It is valid until the next call with it. Zero is empty. */
struct shared_copy {
	VEC(uint64_t) words;
};
void shared_copy_fini(struct shared_copy *c);

/* Passes on the finished records of a ring with `size` bytes of data: at most `size` bytes in one
 * call. *tail is the tracer's own position, which starts as 0. The tracer only writes the ring's
 * copy of it. Skips a ring whose words make no sense. */
void shared_ring_take(struct wire_ring *r, uint32_t size, uint64_t *tail, struct shared_copy *c,
		      void (*fn)(void *arg, const void *record, uint32_t n), void *arg);

/* The shared file and its mapping here. A process may set a count beyond its own writes.
 * shared_agg_take() does not read pages of the file that no process has touched, because a read
 * would allocate them. NULL: the memory is the tracer's own, not the file's. */
struct shared_file {
	int fd;
	const uint8_t *at;
};

/* Passes on the entries of an aggregation's table at `table`, of a map of kind WIRE_MAP_AGG_HASH,
 * and clears it. key: m->key_size bytes; value: m->value_size bytes. */
void shared_agg_take(const struct wire_map *m, const struct shared_file *f, void *table,
		     struct shared_copy *c,
		     void (*fn)(void *arg, const void *key, const uint64_t *value), void *arg);
/* Passes on the elements of an array whose first word is not 0, of a map of kind
 * WIRE_MAP_AGG_ARRAY, and clears them. */
void shared_array_take(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg);
/* Passes them on without clearing them. */
void shared_array_read(const struct wire_map *m, const struct shared_file *f, void *array,
		       struct shared_copy *c,
		       void (*fn)(void *arg, uint32_t index, const uint64_t *value), void *arg);

/* Returns the address of a key's value in a WIRE_MAP_HASH, or NULL when the key is absent. This is
 * no copy: the value lies in shared memory, and any traced process may change it at any time. The
 * caller reads each word of it once and trusts none. */
const void *shared_hash_find(const struct wire_map *m, const void *key);

#endif
