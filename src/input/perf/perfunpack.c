/* Unpacks Zstandard into blocks. Each block is filled before the next one is made, so that tiny
 * compressed records take no more memory than their bytes. */
#include "input/perf/perfunpack.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

/* Samples shrink to about a tenth. */
enum { UNPACKED_FREE = 64 << 20, UNPACKED_TIMES = 100 };
enum { BLOCK = PERFUNPACK_BLOCK };

bool perfunpack_more(const struct perfunpack *u, const struct bytes *from)
{
	return bytes_left(from) || u->n == BLOCK;
}

static void free_unkept(struct perfunpack *u, struct perfunpack_block *b)
{
	if (b->kept)
		return;
	free(b->bytes);
	b->bytes = NULL;
	u->live--;
}

/* Makes a block that begins with the record that the last one cuts off. */
static void block_add(struct perfunpack *u)
{
	uint8_t *block = xmalloc(BLOCK);

	u->n -= u->taken;
	if (u->n)
		memcpy(block, vec_last(&u->blocks)->bytes + u->taken, u->n);
	u->taken = 0;
	if (u->blocks.n)
		free_unkept(u, vec_last(&u->blocks));
	vec_push(&u->blocks, ((struct perfunpack_block){ .bytes = block }));
	u->live++;
}

uint32_t perfunpack_keep(struct perfunpack *u)
{
	vec_last(&u->blocks)->kept++;
	return u->blocks.n;
}

void perfunpack_drop(struct perfunpack *u, uint32_t block)
{
	struct perfunpack_block *b = &u->blocks.v[block - 1];

	b->kept--;
	if (block < u->blocks.n)
		free_unkept(u, b);
}

struct err *perfunpack_next(struct perfunpack *u, struct bytes *from, struct bytes *ret)
{
	ZSTD_inBuffer in = { from->pos, bytes_left(from), 0 };
	ZSTD_outBuffer to;
	size_t rc;

	if (!u->zstd)
		u->zstd = ZSTD_createDCtx();
	if (!u->zstd)
		return err_new(0, "perf.data: no memory to decompress");
	if (u->blocks.n == PERFUNPACK_BLOCKS)
		return err_new(E2BIG, "perf.data: more than %llu GB of compressed records",
			       (unsigned long long)PERFUNPACK_BLOCKS * BLOCK >> 30);
	if (!u->blocks.n || u->n == BLOCK)
		block_add(u);
	to = (ZSTD_outBuffer){ vec_last(&u->blocks)->bytes, BLOCK, u->n };
	rc = ZSTD_decompressStream(u->zstd, &to, &in);
	if (ZSTD_isError(rc))
		return err_new(0, "perf.data: compressed records: %s", ZSTD_getErrorName(rc));
	bytes_skip(from, in.pos);
	u->packed += in.pos;
	u->unpacked += to.pos - u->n;
	u->n = to.pos;
	if (u->unpacked > UNPACKED_FREE + u->packed * UNPACKED_TIMES)
		return err_new(E2BIG,
			       "perf.data: the compressed records are more than %d times larger "
			       "than their bytes in the file",
			       UNPACKED_TIMES);
	*ret = bytes_of(vec_last(&u->blocks)->bytes + u->taken, u->n - u->taken, "perf.data");
	return NULL;
}

void perfunpack_fini(struct perfunpack *u)
{
	for (uint32_t i = 0; i < u->blocks.n; i++)
		free(u->blocks.v[i].bytes);
	vec_fini(&u->blocks);
	ZSTD_freeDCtx(u->zstd);
}
