/* BPF maps in this process's memory, for the interpreter's helpers: one CPU, no concurrency.
 *
 * In: struct image_map. Out: values with the kernel maps' addresses and errors (-errno).
 * Always true: every value is a permitted region of `mem` for the life of the map; the address of
 * an entry stays until it is deleted.
 */
#ifndef DESCRY_LOAD_INTERP_INTERP_MAPS_H
#define DESCRY_LOAD_INTERP_INTERP_MAPS_H

#include "base/hash.h"
#include "data/image.h"
#include "isa/interp.h"

/* A record between reserve and drain. */
struct ring_record {
	uint8_t *data;
	uint32_t size;
	enum { RING_BUSY, RING_READY, RING_DISCARDED } state;
};

struct interp_map {
	const struct image_map *def;
	uint32_t index;  /* in image.maps */
	uint32_t stride; /* of values: value_size in steps of 8 */
	uint32_t max_entries;
	/* arrays: all values; hashes: chunks of CHUNK_VALUES values, made as needed */
	VEC(uint8_t *) blocks;
	struct hash keys;             /* key -> value number */
	uint32_t evict_at;            /* position in keys, for hash_next() */
	VEC(uint32_t) free_values;    /* numbers of deleted entries' values */
	uint32_t used_values;         /* numbers given out so far */
	VEC(struct ring_record) ring; /* in order of reservation */
	uint64_t ring_used;           /* bytes of max_entries, headers included */
};

/* Makes a map. ncpus: for MAP_SCRATCH, whose max_entries counts for each CPU. */
struct err *interp_map_init(struct interp_map *m, const struct image_map *def, uint32_t index,
			    uint32_t ncpus, struct interp_mem *mem);
void interp_map_fini(struct interp_map *m, struct interp_mem *mem);

bool interp_map_is_array(const struct interp_map *m);
/* Returns the value's address; NULL: no such key. */
uint8_t *interp_map_lookup(struct interp_map *m, const void *key);
/* Writes a value. flags: BPF_ANY, BPF_NOEXIST, BPF_EXIST. value NULL: zeroes. Returns 0 or
 * -errno. */
int interp_map_update(struct interp_map *m, struct interp_mem *mem, const void *key,
		      const void *value, uint64_t flags);
int interp_map_delete(struct interp_map *m, const void *key);

/* Returns room for a record; NULL: the ring is full. */
void *interp_ring_reserve(struct interp_map *m, struct interp_mem *mem, uint64_t size);
/* Submits or discards a record. False: data is not a reserved record. */
bool interp_ring_finish(struct interp_map *m, struct interp_mem *mem, const void *data,
			bool discard);

#endif
