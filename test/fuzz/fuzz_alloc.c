/* A file of allocations of any bytes (the first byte is even), a whole block around any entries
 * (odd), and whole chunks of two threads with any bytes (CHUNKS or more). Reading and the report
 * come to an end. */
#include <assert.h>
#include <zstd.h>

#include "base/hash.h"
#include "memory/alloc/alloc_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 16, CHUNKS = 0x80 };

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

/* Appends a block to the file at *n. */
static void put_block(uint8_t *file, size_t *n, uint32_t kind, const void *p, size_t size)
{
	uint8_t *at = file + *n;
	size_t packed = ZSTD_compress(at + HEAD, ZSTD_compressBound(size), p, size, 1);

	put_u32(at, kind);
	put_u32(at + 4, size);
	put_u32(at + 8, packed);
	put_u32(at + 12, hash_fixed(p, size));
	*n += HEAD + packed;
}

/* Puts the bytes into chunks of up to PART bytes, of two rings in turn. */
static void put_chunks(uint8_t *file, size_t *n, const uint8_t *p, size_t size)
{
	enum { PART = 50 };
	static const char clock[] = "\x08\x09"
				    "clock=0,9";
	uint64_t at[2] = { 0 };

	put_block(file, n, ALLOC_BLOCK, clock, sizeof(clock) - 1);
	for (uint32_t i = 0; size; i++) {
		size_t part = size < PART ? size : PART;
		uint8_t raw[ALLOC_CHUNK_HEAD + PART] = { 0 };

		put_u32(raw, i & 1);
		put_u32(raw + 8, at[i & 1]);
		put_u32(raw + 16, i * 20); /* sync */
		memcpy(raw + ALLOC_CHUNK_HEAD, p, part);
		put_block(file, n, ALLOC_CHUNK, raw, ALLOC_CHUNK_HEAD + part);
		at[i & 1] += part;
		p += part;
		size -= part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file;
	size_t n = HEAD;

	if (!size)
		return 0;
	if (data[0] < CHUNKS && !(data[0] & 1)) {
		read_it(data + 1, size - 1);
		return 0;
	}
	file = xcalloc(1, 1024 + 8 * ZSTD_compressBound(size));
	memcpy(file, "DESCRYMA", 8);
	put_u32(file + 8, ALLOC_VERSION);
	if (data[0] < CHUNKS)
		put_block(file, &n, ALLOC_BLOCK, data + 1, size - 1);
	else
		put_chunks(file, &n, data + 1, size - 1);
	read_it(file, n);
	free(file);
	return 0;
}
