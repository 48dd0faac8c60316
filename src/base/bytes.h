/* Untrusted bytes, read within bounds. A read past the end returns 0 and makes the error sticky:
 * the caller reads a whole record and then calls bytes_err() once. Numbers are little-endian.
 * `name` appears in the error. */
#ifndef DESCRY_BASE_BYTES_H
#define DESCRY_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct bytes {
	const uint8_t *start, *end, *pos;
	const char *name; /* not owned */
	size_t bad_at;    /* offset of the first bad read + 1; 0 = none */
};

struct bytes bytes_of(const void *p, size_t n, const char *name);
/* Returns a window [off, off + n) of b, empty and bad when it does not fit. Does not move b. */
struct bytes bytes_slice(struct bytes *b, size_t off, size_t n);
static inline bool bytes_ok(const struct bytes *b)
{
	return !b->bad_at;
}
static inline size_t bytes_left(const struct bytes *b)
{
	return (size_t)(b->end - b->pos);
}
uint8_t bytes_u8(struct bytes *b);
uint16_t bytes_u16(struct bytes *b);
uint32_t bytes_u32(struct bytes *b);
uint64_t bytes_u64(struct bytes *b);
uint64_t bytes_uleb(struct bytes *b);
int64_t bytes_sleb(struct bytes *b);
bool bytes_skip(struct bytes *b, size_t n);
bool bytes_seek(struct bytes *b, size_t off);
/* Returns n bytes at the cursor and moves past them. Returns NULL (and b is bad) when fewer are
 * left. */
const void *bytes_take(struct bytes *b, size_t n);
/* Returns the NUL-terminated string at the cursor and moves past it. Returns NULL (and b is bad)
 * when it does not end. */
const char *bytes_cstr(struct bytes *b);
/* Returns the NUL-terminated string at offset off, or NULL when it does not end within max bytes.
 * Does not move the cursor or make b bad. */
const char *bytes_cstr_at(const struct bytes *b, size_t off, size_t max);
/* Returns the sticky error as "NAME: truncated at byte N", or NULL when all reads were good. */
struct err *bytes_err(const struct bytes *b);

#endif
