/* Unpacks the compressed records of perf.data: one Zstandard stream over all of them.
 *
 * Always true: a record that is cut off at the end of a block stands whole in the next one. All
 * unpacked bytes live until perfunpack_fini(), because records wait for their turn. */
#ifndef DESCRY_INPUT_PERF_PERFUNPACK_H
#define DESCRY_INPUT_PERF_PERFUNPACK_H

#include "base/bytes.h"
#include "base/mem.h"

/* Zero is empty. */
struct perfunpack {
	struct ZSTD_DCtx_s *zstd;
	VEC(uint8_t *) blocks;
	size_t taken, n; /* bytes of the last block: in front of a record that is cut off; all */
	uint64_t packed, unpacked;
};

/* Is there more to unpack of these bytes? */
bool perfunpack_more(const struct perfunpack *u, const struct bytes *from);
/* Unpacks some of the bytes. *ret begins where no record has been taken yet: the caller adds to
 * u->taken how many bytes it takes. E2BIG: they grow too much. */
struct err *perfunpack_next(struct perfunpack *u, struct bytes *from, struct bytes *ret);
void perfunpack_fini(struct perfunpack *u);

#endif
