/* Text being built: a growing buffer, which is written to a file when it is large or by
 * out_flush().
 *
 * In: bytes, numbers. Out: the same on `file`, in order. With file NULL the text stays in the
 * buffer.
 * Always true: a failed write is kept in `error` (errno value) until out_flush() reports it. */
#ifndef DESCRY_BASE_OUT_H
#define DESCRY_BASE_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"

enum { OUT_BUFFER = 512 * 1024 };

struct out {
	char *v;
	size_t n, cap;
	FILE *file;
	int error;
	bool raw; /* a terminal gets it unescaped: it has no control characters of others */
};

void out_init(struct out *o, FILE *file);
void out_fini(struct out *o);
struct err *out_flush(struct out *o);
void out_room_(struct out *o, size_t more);

/* Makes room for at least `more` bytes at o->v + o->n. */
static inline void out_room(struct out *o, size_t more)
{
	if (o->n + more > o->cap)
		out_room_(o, more);
}

static inline void out_char(struct out *o, char c)
{
	out_room(o, 1);
	o->v[o->n++] = c;
}

static inline void out_mem(struct out *o, const void *p, size_t n)
{
	if (!n)
		return;
	out_room(o, n);
	memcpy(o->v + o->n, p, n);
	o->n += n;
}

static inline void out_str(struct out *o, const char *s)
{
	out_mem(o, s, strlen(s));
}

void out_fill(struct out *o, char c, size_t n);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends the text in the buffer with a NUL and gives it to the caller, which frees it. Empties o. */
char *out_take(struct out *o);
/* Adds text in at least `width` columns, to the right; negative: to the left. */
void out_padded(struct out *o, const char *s, size_t n, int width);
void out_unsigned(struct out *o, uint64_t v, int width);
void out_signed(struct out *o, int64_t v, int width);
/* A number of bytes for people: 9999 bytes, 10.0 kB, 12.3 MB. */
void out_size(struct out *o, uint64_t bytes);
void out_hex(struct out *o, uint64_t v, bool upper, int width);
/* Adds text of the D program itself. Its control characters work on a terminal too
 * (base/term.h). */
void out_literal(struct out *o, const char *s, size_t n);
/* Adds text with C escapes, as %S and %C print it: \n \t \" \\ ..., and \ooo for other bytes than
 * printable ASCII. */
void out_escaped(struct out *o, const char *s, size_t n);

/* Write a number at the end of buf (20 bytes suffice for decimal, 16 for hex). Return the first
 * byte of the text. */
char *dec_text(char *end, uint64_t v);

#endif
