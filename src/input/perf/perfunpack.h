/* Unpacks the compressed records of perf.data: one Zstandard stream over all of them.
 *
 * Always true: a record that is cut off at the end of a block stands whole in the next one. A block
 * lives while it is filled, and as long as records in it are kept, which wait for their turn. */
#ifndef DESCRY_INPUT_PERF_PERFUNPACK_H
#define DESCRY_INPUT_PERF_PERFUNPACK_H

#include "base/bytes.h"
#include "base/mem.h"

enum {
	PERFUNPACK_BLOCK = 256 * 1024,    /* bytes; a record has less than 64 KB */
	PERFUNPACK_BLOCKS = (1 << 26) - 1 /* in all */
};

struct perfunpack_block {
	uint8_t *bytes; /* NULL: it is freed */
	uint32_t kept;  /* records */
};

/* Zero is empty. */
struct perfunpack {
	struct ZSTD_DCtx_s *zstd;
	VEC(struct perfunpack_block) blocks; /* the last is being filled */
	uint32_t live;                       /* blocks that are not freed */
	size_t taken, n; /* bytes of the last block: in front of a record that is cut off; all */
	uint64_t packed, unpacked;
};

/* Is there more to unpack of these bytes? */
bool perfunpack_more(const struct perfunpack *u, const struct bytes *from);
/* Unpacks some of the bytes. *ret begins where no record has been taken yet: the caller adds to
 * u->taken how many bytes it takes. E2BIG: they grow too much. */
struct err *perfunpack_next(struct perfunpack *u, struct bytes *from, struct bytes *ret);
/* Keeps the block that is filled now, for one record. Returns its number, from 1 to
 * PERFUNPACK_BLOCKS. */
uint32_t perfunpack_keep(struct perfunpack *u);
void perfunpack_drop(struct perfunpack *u, uint32_t block);
void perfunpack_fini(struct perfunpack *u);

#endif
