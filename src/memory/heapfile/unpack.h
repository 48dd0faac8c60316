/* A file that is read once from front to end, unpacked when it is gzip.
 *
 * In: a path. Out: bytes in pieces that lie next to each other.
 * Always true: `pos` to `end` are bytes of the file at `at`. The file may change or be cut short
 * meanwhile; that is an error like any other.
 */
#ifndef DESCRY_MEMORY_HEAPFILE_UNPACK_H
#define DESCRY_MEMORY_HEAPFILE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "memory/graph/graph.h"

enum { UNPACK_PIECE = 1 << 20 }; /* the most bytes that unpack_need() gives in one piece */

struct unpack {
	void *file; /* gzFile */
	uint8_t *buffer;
	const uint8_t *pos, *end;
	uint64_t at;  /* offset of `end`, in the unpacked file */
	bool failed;  /* reading failed; unpack_err() has the reason */
	bool starved; /* because there is no memory */
	struct graph *graph;
};

/* What a reader keeps grows with what it reads. So reading fails when the machine has little memory
 * left, by graph_room(). */
struct err *unpack_open(struct unpack *u, const char *path, struct graph *g);
void unpack_close(struct unpack *u);
/* Goes back to the first byte. */
struct err *unpack_rewind(struct unpack *u);
/* Returns whether the file's bytes are read as they are; then unpack_seek() goes to any of them. */
bool unpack_plain(const struct unpack *u);
struct err *unpack_seek(struct unpack *u, uint64_t offset);
/* Returns why reading failed, NULL when the file only ended. */
struct err *unpack_err(const struct unpack *u);

static inline uint64_t unpack_offset(const struct unpack *u)
{
	return u->at - (uint64_t)(u->end - u->pos);
}
bool unpack_more(struct unpack *u, size_t n);
/* Makes sure that at least n <= UNPACK_PIECE bytes are at u->pos. Returns false when fewer are
 * left. */
static inline bool unpack_need(struct unpack *u, size_t n)
{
	return (size_t)(u->end - u->pos) >= n || unpack_more(u, n);
}
/* Moves n bytes on. Returns false when fewer are left. */
bool unpack_skip(struct unpack *u, uint64_t n);

#endif
