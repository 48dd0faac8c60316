/* A file of allocations of any bytes (the first byte is even), a whole block around any entries
 * (odd), and whole chunks of three threads with any bytes (CHUNKS or more); at STACKS or more, the
 * second byte is the number of bytes of entries before them. Reading, the report, a comparison and
 * the making of a replay come to an end. */
#include <assert.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "memory/alloc/alloc_report.h"
#include "memory/alloc/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 16, CHUNKS = 0x80, STACKS = 0xc0, RINGS = 3 };

static void put_u32(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void play_it(struct alloc_trace *t, bool same_threads)
{
	struct replay_head head;
	struct err *e;
	int fd = -1;

	alloc_rewind(t);
	e = replay_make(t, same_threads, &head, &fd);
	if (!e) {
		assert(lseek(fd, 0, SEEK_END) ==
		       (off_t)(sizeof(head) +
			       head.nchunks * REPLAY_CHUNK * sizeof(struct replay_op)));
		close(fd);
	}
	err_free(e);
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
			const struct report_side sides[2] = { { r, t, "a" }, { r, t, "b" } };
			struct stacktree tree;
			struct out o;

			out_init(&o, NULL);
			alloc_report_print(r, t, "fuzz", 5, &o);
			alloc_report_json(r, t, "fuzz", 5, &o);
			alloc_diff_json(sides, REPORT_BYTES, 5, &o);
			out_fini(&o);
			stacktree_init(&tree);
			alloc_report_tree(r, t, REPORT_BYTES, &tree);
			stacktree_fini(&tree);
			play_it(t, salvage);
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

/* Puts the bytes into chunks of up to PART bytes, of the rings in turn. */
static void put_chunks(uint8_t *file, size_t *n, const uint8_t *p, size_t size, size_t before)
{
	enum { PART = 50 };
	/* 40,000 ticks are DISORDER_NS of trace_merge.c */
	static const char clock[] = "\x08\x1b"
				    "clock=0,9223372036854775808";
	uint64_t at[RINGS] = { 0 };

	put_block(file, n, ALLOC_BLOCK, clock, sizeof(clock) - 1);
	if (before) {
		put_block(file, n, ALLOC_BLOCK, p, before);
		p += before;
		size -= before;
	}
	for (uint32_t i = 0; size; i++) {
		size_t part = size < PART ? size : PART;
		uint8_t raw[ALLOC_CHUNK_HEAD + PART] = { 0 };

		put_u32(raw, i % RINGS);
		put_u32(raw + 8, at[i % RINGS]);
		put_u32(raw + 16, (uint64_t)p[0] * i * 500); /* sync */
		memcpy(raw + ALLOC_CHUNK_HEAD, p, part);
		put_block(file, n, ALLOC_CHUNK, raw, ALLOC_CHUNK_HEAD + part);
		at[i % RINGS] += part;
		p += part;
		size -= part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t has = size > 2 && data[0] >= STACKS;
	uint8_t *file;
	size_t n = HEAD;

	if (!size)
		return 0;
	if (data[0] < CHUNKS && !(data[0] & 1)) {
		read_it(data + 1, size - 1);
		return 0;
	}
	file = xcalloc(1, 2048 + 8 * ZSTD_compressBound(size));
	memcpy(file, "DESCRYMA", 8);
	put_u32(file + 8, ALLOC_VERSION);
	if (data[0] < CHUNKS)
		put_block(file, &n, ALLOC_BLOCK, data + 1, size - 1);
	else
		put_chunks(file, &n, data + 1 + has, size - 1 - has,
			   has && data[1] < size - 2 ? data[1] : 0);
	read_it(file, n);
	free(file);
	return 0;
}
