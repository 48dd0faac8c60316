/* Reads numbers and strings from untrusted bytes within bounds. */
#include "base/bytes.h"

#include <endian.h>
#include <string.h>

struct bytes bytes_of(const void *p, size_t n, const char *name)
{
	static const uint8_t none[1];
	const uint8_t *start = p ? p : none;

	return (struct bytes){
		.start = start, .end = start + (p ? n : 0), .pos = start, .name = name
	};
}

static void set_bad(struct bytes *b, size_t at)
{
	if (!b->bad_at)
		b->bad_at = at == SIZE_MAX ? at : at + 1;
}

static void set_bad_here(struct bytes *b)
{
	set_bad(b, (size_t)(b->pos - b->start));
}

struct bytes bytes_slice(struct bytes *b, size_t off, size_t n)
{
	size_t size = (size_t)(b->end - b->start);
	struct bytes w = { .start = b->end, .end = b->end, .pos = b->end, .name = b->name };

	if (off > size || n > size - off) {
		set_bad(&w, off);
		return w;
	}
	w.start = w.pos = b->start + off;
	w.end = w.start + n;
	return w;
}

const void *bytes_take(struct bytes *b, size_t n)
{
	const uint8_t *p = b->pos;

	if (b->bad_at || bytes_left(b) < n) {
		set_bad_here(b);
		return NULL;
	}
	b->pos += n;
	return p;
}

/* Reads n <= 8 bytes, little-endian. Inline, because it becomes a load where n is constant. */
static inline uint64_t read_le(struct bytes *b, size_t n)
{
	const uint8_t *p = bytes_take(b, n);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, n);
	return le64toh(v);
}

uint8_t bytes_u8(struct bytes *b)
{
	return (uint8_t)read_le(b, 1);
}

uint16_t bytes_u16(struct bytes *b)
{
	return (uint16_t)read_le(b, 2);
}

uint32_t bytes_u32(struct bytes *b)
{
	return (uint32_t)read_le(b, 4);
}

uint64_t bytes_u64(struct bytes *b)
{
	return read_le(b, 8);
}

/* Reads the groups of seven bits of a LEB128 number. Drops bits beyond 64. */
static uint64_t leb(struct bytes *b, unsigned *ret_shift, uint8_t *ret_last)
{
	const uint8_t *p;
	unsigned shift = 0;
	uint64_t v = 0;

	do {
		p = bytes_take(b, 1);
		if (!p) {
			*ret_shift = 64;
			*ret_last = 0;
			return 0;
		}
		if (shift < 64)
			v |= (uint64_t)(*p & 0x7f) << shift;
		shift = shift < 64 ? shift + 7 : 64;
	} while (*p & 0x80);
	*ret_shift = shift;
	*ret_last = *p;
	return v;
}

uint64_t bytes_uleb(struct bytes *b)
{
	unsigned shift;
	uint8_t last;

	return leb(b, &shift, &last);
}

int64_t bytes_sleb(struct bytes *b)
{
	unsigned shift;
	uint8_t last;
	uint64_t v = leb(b, &shift, &last);

	if (shift < 64 && (last & 0x40))
		v |= ~(uint64_t)0 << shift;
	return (int64_t)v;
}

bool bytes_skip(struct bytes *b, size_t n)
{
	return bytes_take(b, n) != NULL;
}

bool bytes_seek(struct bytes *b, size_t off)
{
	if (b->bad_at)
		return false;
	if (off > (size_t)(b->end - b->start)) {
		set_bad(b, off);
		return false;
	}
	b->pos = b->start + off;
	return true;
}

const char *bytes_cstr(struct bytes *b)
{
	const uint8_t *p = b->pos, *nul;

	nul = b->bad_at || p == b->end ? NULL : memchr(p, 0, bytes_left(b));
	if (!nul) {
		set_bad_here(b);
		return NULL;
	}
	b->pos = nul + 1;
	return (const char *)p;
}

const char *bytes_cstr_at(const struct bytes *b, size_t off, size_t max)
{
	size_t size = (size_t)(b->end - b->start);

	if (off >= size || !memchr(b->start + off, 0, size - off < max ? size - off : max))
		return NULL;
	return (const char *)b->start + off;
}

struct err *bytes_err(const struct bytes *b)
{
	if (bytes_ok(b))
		return NULL;
	return err_new(0, "%s: truncated at byte %zu", b->name, b->bad_at - 1);
}
