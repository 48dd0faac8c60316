/* Reading of a file from front to end by zlib, which passes on what is not gzip. */
#include "memory/heapfile/unpack.h"

#include <errno.h>
#include <zlib.h>

#include "base/mem.h"

enum {
	BUFFER = 2 * UNPACK_PIECE,
	ZLIB_BUFFER = 128 << 10,
	READ_AT_ONCE = 256 << 10, /* so that the bytes are still in the processor's cache */
	ASKED_EACH = 26,          /* log2 of the bytes after which memory is asked for */
	MEMORY_LEFT = 256 << 20,
};

struct err *unpack_open(struct unpack *u, const char *path, struct graph *g)
{
	*u = (struct unpack){ .file = gzopen(path, "rbe"), .graph = g };
	if (!u->file)
		return err_errno(errno ?: ENOMEM, "open");
	gzbuffer(u->file, ZLIB_BUFFER);
	u->buffer = xmalloc(BUFFER);
	u->pos = u->end = u->buffer;
	return NULL;
}

void unpack_close(struct unpack *u)
{
	if (u->file)
		gzclose_r(u->file);
	free(u->buffer);
	*u = (struct unpack){ 0 };
}

struct err *unpack_rewind(struct unpack *u)
{
	if (gzrewind(u->file))
		return err_new(ESPIPE, "a heap dump is read twice, and so not from a pipe");
	u->pos = u->end = u->buffer;
	u->at = 0;
	return NULL;
}

bool unpack_plain(const struct unpack *u)
{
	return gzdirect(u->file);
}

struct err *unpack_seek(struct unpack *u, uint64_t offset)
{
	if (gzseek(u->file, (z_off_t)offset, SEEK_SET) < 0)
		return err_new(ESPIPE, "byte %llu cannot be reached", (unsigned long long)offset);
	u->pos = u->end = u->buffer;
	u->at = offset;
	return NULL;
}

struct err *unpack_err(const struct unpack *u)
{
	int code = 0;
	const char *text = gzerror(u->file, &code);

	if (u->starved)
		return err_new(
			ENOMEM,
			"the heap is too large for the memory of this machine: it has less than "
			"256 MB left after %llu bytes",
			(unsigned long long)u->at);
	if (code == Z_ERRNO)
		return err_errno(errno, "read");
	if (code == Z_OK || code == Z_STREAM_END)
		return NULL;
	return err_new(EBADMSG, "gzip: %s, after %llu bytes",
		       code == Z_BUF_ERROR ? "the file ends too early" : text,
		       (unsigned long long)u->at);
}

bool unpack_more(struct unpack *u, size_t n)
{
	size_t left = (size_t)(u->end - u->pos);

	memmove(u->buffer, u->pos, left);
	u->pos = u->buffer;
	u->end = u->buffer + left;
	while (left < n && !u->failed) {
		size_t more = n - left > READ_AT_ONCE ? n - left : READ_AT_ONCE;
		int got = gzread(u->file, u->buffer + left,
				 (unsigned)(more < BUFFER - left ? more : BUFFER - left));

		u->failed = got < 0;
		if (got <= 0)
			break;
		if (u->at >> ASKED_EACH != (u->at + (uint64_t)got) >> ASKED_EACH)
			u->failed = u->starved = !graph_room(u->graph, MEMORY_LEFT);
		left += (size_t)got;
		u->end += got;
		u->at += (uint64_t)got;
	}
	return left >= n;
}

bool unpack_skip(struct unpack *u, uint64_t n)
{
	while (n) {
		size_t left = (size_t)(u->end - u->pos), step = left < n ? left : (size_t)n;

		u->pos += step;
		n -= step;
		if (n && !unpack_more(u, 1))
			return false;
	}
	return true;
}
