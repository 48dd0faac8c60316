/* Writes the file of a program's allocations, a block at a time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/hash.h"
#include "base/out.h"
#include "base/outfile.h"
#include "memory/alloc/trace.h"

enum { LEVEL = 1, HEAD = 16, VARINT_MAX = 10 };

struct alloc_writer {
	FILE *file;
	char *path;
	struct err *error;
	struct out block;
	uint8_t *packed;
	size_t room;
	uint64_t time, addr;
	uint32_t node, frame; /* the block's last, and its frame; 0: none */
	size_t run;           /* where its op is, if that is a run's and the block's last entry */
	VEC(uint32_t) follow; /* by frame: that of the last NODE above one with this frame */
	char *text;           /* of the last FRAME */
	size_t len;
	uint32_t thread, nthreads, nframes, nstacks;
	uint64_t events, bytes;
	uint64_t written; /* of the events: those in blocks that are in the file */
	uint64_t whole;   /* of the bytes: up to the last whole block */
	ZSTD_CCtx *zstd;
};

static void put(struct alloc_writer *w, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		out_char(&w->block, (char)(v | 128));
	out_char(&w->block, (char)v);
}

static void put_signed(struct alloc_writer *w, int64_t v)
{
	put(w, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void put_address(struct alloc_writer *w, uint64_t addr)
{
	int64_t d = (int64_t)(addr - w->addr);

	w->addr = addr;
	if (d % 16 == 0) {
		d /= 16;
		put(w, ((uint64_t)d << 1 ^ (uint64_t)(d >> 63)) << 1);
	} else {
		/* 63 bits: addresses of user space differ by less */
		put(w, ((uint64_t)d << 1 ^ (uint64_t)(d >> 63)) << 1 | 1);
	}
}

static void put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void put_u64(uint8_t *p, uint64_t v)
{
	put_u32(p, (uint32_t)v);
	put_u32(p + 4, (uint32_t)(v >> 32));
}

static void write_bytes(struct alloc_writer *w, const void *p, size_t n)
{
	if (!w->error && fwrite(p, 1, n, w->file) != n)
		w->error = err_errno(errno, "%s", w->path);
	if (!w->error)
		w->bytes += n;
}

/* Packs a block and writes it. */
static void write_block(struct alloc_writer *w, uint32_t kind, const void *p, size_t bytes)
{
	uint8_t head[HEAD];
	size_t n = ZSTD_compressBound(bytes);

	if (n > w->room) {
		w->packed = xrealloc(w->packed, n);
		w->room = n;
	}
	n = ZSTD_compressCCtx(w->zstd, w->packed, w->room, p, bytes, LEVEL);
	if (ZSTD_isError(n)) {
		if (!w->error)
			w->error = err_new(EIO, "%s: zstd: %s", w->path, ZSTD_getErrorName(n));
		n = 0;
	}
	put_u32(head, kind);
	put_u32(head + 4, (uint32_t)bytes);
	put_u32(head + 8, (uint32_t)n);
	put_u32(head + 12, (uint32_t)hash_fixed(p, bytes));
	write_bytes(w, head, sizeof(head));
	write_bytes(w, w->packed, n);
}

/* Writes the entries that are held back, as a block. */
static void write_entries(struct alloc_writer *w)
{
	if (!w->block.n)
		return;
	write_block(w, ALLOC_BLOCK, w->block.v, w->block.n);
	w->block.n = 0;
	w->time = w->addr = w->thread = w->node = w->frame = 0;
	w->run = 0;
}

void alloc_writer_flush(struct alloc_writer *w)
{
	write_entries(w);
	if (!w->error && fflush(w->file))
		w->error = err_errno(errno, "%s", w->path);
	if (!w->error) {
		w->written = w->events;
		w->whole = w->bytes;
	}
}

void alloc_writer_chunk(struct alloc_writer *w, const struct alloc_chunk *c, uint32_t events)
{
	struct out o;

	write_entries(w);
	out_init(&o, NULL);
	out_room(&o, ALLOC_CHUNK_HEAD + c->n);
	put_u32((uint8_t *)o.v, c->ring);
	put_u32((uint8_t *)o.v + 4, 0);
	put_u64((uint8_t *)o.v + 8, c->position);
	put_u64((uint8_t *)o.v + 16, c->sync);
	memcpy(o.v + ALLOC_CHUNK_HEAD, c->bytes, c->n);
	write_block(w, ALLOC_CHUNK, o.v, ALLOC_CHUNK_HEAD + c->n);
	out_fini(&o);
	w->events += events;
	alloc_writer_flush(w);
}

bool alloc_writer_failed(const struct alloc_writer *w)
{
	return w->error != NULL;
}

static void begin(struct alloc_writer *w, uint8_t op)
{
	if (w->block.n >= ALLOC_BLOCK_BYTES)
		alloc_writer_flush(w);
	out_char(&w->block, (char)op);
	w->run = 0;
}

static void put_text(struct alloc_writer *w, const char *text, size_t len)
{
	len = len < ALLOC_TEXT_MAX ? len : ALLOC_TEXT_MAX;
	put(w, len);
	out_mem(&w->block, text, len);
}

void alloc_writer_info(struct alloc_writer *w, const char *name, const char *value)
{
	cleanup_free char *text = xasprintf("%s=%s", name, value);

	begin(w, ALLOC_INFO);
	put_text(w, text, strlen(text));
}

uint32_t alloc_writer_thread(struct alloc_writer *w, uint32_t tid)
{
	begin(w, ALLOC_NEW_THREAD);
	put(w, tid);
	return ++w->nthreads;
}

uint32_t alloc_writer_frame(struct alloc_writer *w, const char *text, size_t len)
{
	size_t same = 0;

	len = strnlen(text, len < ALLOC_TEXT_MAX ? len : ALLOC_TEXT_MAX);
	while (same < w->len && same < len && w->text[same] == text[same])
		same++;
	begin(w, ALLOC_FRAME);
	put(w, len - same);
	put(w, same);
	out_mem(&w->block, text + same, len - same);
	w->text = xrealloc(w->text, len + 1);
	memcpy(w->text, text, len);
	w->len = len;
	return ++w->nframes;
}

uint32_t alloc_writer_stack(struct alloc_writer *w, const uint32_t *frames, uint32_t n)
{
	n = n < ALLOC_FRAMES_MAX ? n : ALLOC_FRAMES_MAX;
	begin(w, ALLOC_NEW_STACK);
	put(w, n);
	for (uint32_t i = 0; i < n; i++)
		put(w, frames[i]);
	return ++w->nstacks;
}

/* Writes a NODE above the last one as a part of a run. Returns false when its frame is another than
 * a reader would expect. */
static bool put_in_run(struct alloc_writer *w, uint32_t frame)
{
	uint32_t expected = w->frame < w->follow.n ? w->follow.v[w->frame] : 0;

	if (!frame || !w->frame)
		return false;
	if (expected != frame) {
		while (w->follow.n <= w->frame)
			vec_push(&w->follow, 0);
		w->follow.v[w->frame] = frame;
		return false;
	}
	if (w->run && (uint8_t)w->block.v[w->run] < ALLOC_RUN + ALLOC_RUN_MAX - 1) {
		w->block.v[w->run]++;
		return true;
	}
	begin(w, ALLOC_RUN);
	w->run = w->block.n - 1;
	return true;
}

void alloc_writer_node(struct alloc_writer *w, uint32_t stack, uint32_t parent, uint32_t frame)
{
	uint8_t op = ALLOC_NODE;

	if (w->block.n >= ALLOC_BLOCK_BYTES)
		alloc_writer_flush(w);
	if (stack == w->node + 1)
		op |= ALLOC_NEXT;
	if (parent == w->node)
		op |= ALLOC_ABOVE;
	if (op != (ALLOC_NODE | ALLOC_NEXT | ALLOC_ABOVE) || !put_in_run(w, frame)) {
		begin(w, op);
		if (!(op & ALLOC_NEXT))
			put(w, stack);
		if (!(op & ALLOC_ABOVE))
			put_signed(w, (int64_t)stack - parent);
		put(w, frame);
	}
	w->node = stack;
	w->frame = frame;
}

void alloc_write(struct alloc_writer *w, const struct alloc_event *e)
{
	uint8_t op = (uint8_t)e->op;

	if (w->block.n >= ALLOC_BLOCK_BYTES)
		alloc_writer_flush(w);
	if (e->thread != w->thread)
		op |= ALLOC_THREAD;
	if (e->stack)
		op |= ALLOC_STACK;
	begin(w, op);
	if (op & ALLOC_THREAD)
		put(w, w->thread = e->thread);
	if (op & ALLOC_STACK)
		put(w, e->stack);
	put_signed(w, (int64_t)(e->time - w->time));
	w->time = e->time;
	if (e->op == ALLOC_ALIGNED)
		put(w, e->align);
	if (e->op != ALLOC_FREE && e->op != ALLOC_REALLOC_FROM)
		put(w, e->size);
	if (e->op < ALLOC_LOST) {
		put_address(w, e->addr);
		w->events++;
	}
}

uint64_t alloc_writer_events(const struct alloc_writer *w)
{
	return w->events;
}

uint64_t alloc_writer_bytes(const struct alloc_writer *w)
{
	return w->bytes;
}

struct err *alloc_writer_new(const char *path, struct alloc_writer **ret)
{
	const int fd = outfile_open(path, OUTFILE_PRIVATE);

	return fd < 0 ? err_errno(errno, "%s", path) : alloc_writer_new_at(fd, path, ret);
}

int alloc_writer_device(const struct alloc_writer *w)
{
	struct stat st;

	if (fstat(fileno(w->file), &st) || S_ISREG(st.st_mode))
		return -1;
	return fcntl(fileno(w->file), F_DUPFD_CLOEXEC, 0);
}

struct err *alloc_writer_new_at(int fd, const char *path, struct alloc_writer **ret)
{
	struct alloc_writer *w;
	uint8_t head[HEAD] = "DESCRYMA";
	FILE *file = fdopen(fd, "w");
	ZSTD_CCtx *zstd = file ? ZSTD_createCCtx() : NULL;

	if (!zstd) {
		struct err *e = err_errno(file ? ENOMEM : errno, "%s", path);

		if (file)
			fclose(file);
		else
			close(fd);
		return e;
	}
	w = xcalloc(1, sizeof(*w));
	w->zstd = zstd;
	w->file = file;
	w->path = xstrdup(path);
	out_init(&w->block, NULL);
	put_u32(head + 8, ALLOC_VERSION);
	put_u32(head + 12, ALLOC_UNFINISHED);
	write_bytes(w, head, sizeof(head));
	alloc_writer_flush(w); /* it is a recording from now on, whenever this process is killed */
	*ret = w;
	return NULL;
}

struct err *alloc_writer_end(struct alloc_writer *w)
{
	struct alloc_event end = { .op = ALLOC_END, .thread = w->thread, .time = w->time };
	struct err *e;
	int fd;

	end.size = w->events;
	alloc_write(w, &end);
	alloc_writer_flush(w);
	e = w->error;
	if (!e && pwrite(fileno(w->file), "\0\0\0", 4, 12) != 4)
		e = err_errno(errno, "%s", w->path);
	fd = e ? dup(fileno(w->file)) : -1;
	if (fclose(w->file) && !e)
		e = err_errno(errno, "%s", w->path);
	/* Cuts off the block that is not whole. A reader takes the file as a recording that did not
	 * end. */
	if (fd >= 0 && ftruncate(fd, (off_t)w->whole))
		e = err_wrap(e, "the file ends in the middle of a block");
	if (fd >= 0)
		close(fd);
	if (e)
		e = err_wrap(e, "%llu of %llu calls are in the file",
			     (unsigned long long)w->written, (unsigned long long)w->events);
	out_fini(&w->block);
	ZSTD_freeCCtx(w->zstd);
	vec_fini(&w->follow);
	free(w->text);
	free(w->packed);
	free(w->path);
	free(w);
	return e;
}
