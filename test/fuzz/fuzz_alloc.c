/* A file of allocations of any bytes, and a whole block around any entries: an odd first byte
 * chooses the block. Reading and the report come to an end. */
#include <assert.h>
#include <zstd.h>

#include "base/hash.h"
#include "memory/alloc/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 16 };

static void put_u32(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void read_it(const void *p, size_t n)
{
	for (int salvage = 0; salvage < 2; salvage++) {
		struct alloc_trace *t = NULL;
		struct alloc_report *r = NULL;
		struct err *e = alloc_open_memory(p, n, "fuzz", salvage, &t);

		e = e ?: alloc_report_make(t, &r);
		assert(!salvage || !e || !t);
		if (!e) {
			struct stacktree tree;
			struct out o;

			out_init(&o, NULL);
			alloc_report_print(r, t, "fuzz", 5, &o);
			alloc_report_json(r, t, "fuzz", 5, &o);
			out_fini(&o);
			stacktree_init(&tree);
			alloc_report_tree(r, t, REPORT_BYTES, &tree);
			stacktree_fini(&tree);
		}
		err_free(e);
		alloc_report_free(r);
		alloc_close(t);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file;
	size_t n;

	if (!size)
		return 0;
	if (!(data[0] & 1)) {
		read_it(data + 1, size - 1);
		return 0;
	}
	file = xcalloc(1, 2 * HEAD + ZSTD_compressBound(size));
	n = ZSTD_compress(file + 2 * HEAD, ZSTD_compressBound(size), data + 1, size - 1, 1);
	memcpy(file, "DESCRYMA", 8);
	put_u32(file + 8, ALLOC_VERSION);
	put_u32(file + 16, ALLOC_BLOCK);
	put_u32(file + 20, size - 1);
	put_u32(file + 24, n);
	put_u32(file + 28, hash_bytes(data + 1, size - 1));
	read_it(file, 2 * HEAD + n);
	free(file);
	return 0;
}
