/* Text being built: a growing buffer that is written to a file when it is large or when it is asked
 * to.
 *
 * In: bytes, numbers. Out: the same on `file`, in order; with file NULL the text stays in the
 * buffer.
 * Always true: a failed write is kept in `error` (errno value) until out_flush() reports it.
 */
#ifndef DESCRY_RENDER_OUT_H
#define DESCRY_RENDER_OUT_H

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
	bool raw; /* a terminal gets it as it is: what is added is free of others' control characters */
};

void out_init(struct out *o, FILE *file);
void out_fini(struct out *o);
struct err *out_flush(struct out *o);
void out_room_(struct out *o, size_t more);

/* At least `more` bytes can be stored at o->v + o->n. */
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
/* At least `width` columns, to the right; negative: to the left. */
void out_padded(struct out *o, const char *s, size_t n, int width);
void out_unsigned(struct out *o, uint64_t v, int width);
void out_signed(struct out *o, int64_t v, int width);
void out_hex(struct out *o, uint64_t v, bool upper, int width);
/* Text of the D program itself: control characters in it work on a terminal, too (base/term.h). */
void out_literal(struct out *o, const char *s, size_t n);
/* C escapes: \n \t \" \\ ... and \ooo for what is not printable ASCII, as %S and %C print. */
void out_escaped(struct out *o, const char *s, size_t n);

/* Number to text at the end of buf (20 bytes suffice for decimal, 16 for hex); the first byte of
 * it. */
char *dec_text(char *end, uint64_t v);
char *hex_text(char *end, uint64_t v, bool upper);

#endif
