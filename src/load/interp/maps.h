/* BPF maps in this process' memory, as the interpreter's helpers see them: one CPU, no concurrency.
 *
 * In: struct image_map. Out: values with the addresses and the errors (-errno) the kernel's maps
 * would give.
 * Always true: every value is a permitted region of `mem` for as long as the map is there; the
 * address of an entry stays until it is deleted.
 */
#ifndef DESCRY_LOAD_INTERP_MAPS_H
#define DESCRY_LOAD_INTERP_MAPS_H

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
	VEC(uint32_t) free_values;    /* numbers of deleted entries' values */
	uint32_t used_values;         /* numbers given out so far */
	VEC(struct ring_record) ring; /* in order of reservation */
	uint64_t ring_used;           /* bytes of max_entries, headers included */
};

/* ncpus: for MAP_SCRATCH, whose max_entries is for each CPU. */
struct err *interp_map_init(struct interp_map *m, const struct image_map *def, uint32_t index,
			    uint32_t ncpus, struct interp_mem *mem);
void interp_map_fini(struct interp_map *m, struct interp_mem *mem);

bool interp_map_is_array(const struct interp_map *m);
/* The value's address, NULL when absent. */
uint8_t *interp_map_lookup(struct interp_map *m, const void *key);
/* flags BPF_ANY, BPF_NOEXIST, BPF_EXIST. 0 or -errno. value NULL: zeroes. */
int interp_map_update(struct interp_map *m, struct interp_mem *mem, const void *key,
		      const void *value, uint64_t flags);
int interp_map_delete(struct interp_map *m, const void *key);

/* NULL: the ring is full. */
void *interp_ring_reserve(struct interp_map *m, struct interp_mem *mem, uint64_t size);
/* False: data is no reserved record. */
bool interp_ring_finish(struct interp_map *m, struct interp_mem *mem, const void *data,
			bool discard);

#endif
