/* Memory for the arrays of a graph that grow with its objects. Private to this folder.
 *
 * Always true: an array for which there is no room in memory is in a file without a name, in
 * $TMPDIR or /var/tmp, which goes when the process ends, however it ends. When the file cannot be
 * made, the process ends with a message, as without memory. One thread at a time uses a struct
 * graph_memory. */
#ifndef DESCRY_MEMORY_GRAPH_GRAPH_MEMORY_H
#define DESCRY_MEMORY_GRAPH_GRAPH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRAPH_SPARES = 16 };
struct graph_memory {
	uint64_t limit; /* bytes of arrays in memory; 0: as many as the machine has room for */
	uint64_t used;  /* bytes of arrays in memory */
	uint64_t filed; /* bytes of those in files */
	/* Pages of arrays that were released, for the next arrays. */
	struct graph_spare {
		char *at;
		size_t bytes;
		bool pieces; /* several mappings */
	} spare[GRAPH_SPARES];
	uint32_t nspare;
	uint64_t spared; /* bytes of them */
};

/* Returns n bytes of zeros. */
void *graph_alloc(struct graph_memory *m, size_t n);
/* Returns n bytes of any value. */
void *graph_alloc_unset(struct graph_memory *m, size_t n);
/* p NULL: as graph_alloc(). New bytes have any value. */
void *graph_realloc(struct graph_memory *m, void *p, size_t n);
/* Makes an array of another graph_memory one of this. NULL is fine. */
void graph_adopt(struct graph_memory *m, void *p);
/* Frees an array; NULL is fine. */
void graph_release(void *p);
/* Gives the spare pages back. */
void graph_spare_free(struct graph_memory *m);

#endif
