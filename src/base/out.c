/* Builds text in a buffer and writes it to a file. */
#define _GNU_SOURCE /* memrchr */
#include "base/out.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/term.h"

void out_init(struct out *o, FILE *file)
{
	*o = (struct out){ .file = file };
}

void out_fini(struct out *o)
{
	free(o->v);
	*o = (struct out){ 0 };
}

char *out_take(struct out *o)
{
	char *text;

	out_char(o, '\0');
	text = o->v;
	out_init(o, NULL);
	return text;
}

static void fail(struct out *o)
{
	if (!o->error)
		o->error = errno ? errno : EIO;
}

/* Writes n bytes, past stdio if the file has a descriptor. A signal (the command's end) may
 * interrupt a write to a full pipe, and then stdio does not know how much was written. */
static void out_put(struct out *o, const char *p, size_t n)
{
	int fd = fileno(o->file);

	if (fd < 0) {
		if (o->raw)
			term_raw(o->file, p, n);
		else
			fwrite(p, 1, n, o->file);
		if (ferror(o->file) || fflush(o->file))
			fail(o);
		return;
	}
	if (fflush(o->file))
		fail(o);
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			fail(o);
			return;
		}
		p += done;
		n -= (size_t)done;
	}
}

static bool is_pipe(FILE *f)
{
	struct stat st;

	return fileno(f) >= 0 && !fstat(fileno(f), &st) && S_ISFIFO(st.st_mode);
}

/* Writes the buffer. The traced command may write to the same pipe, so a pipe gets whole lines, in
 * pieces that the kernel keeps together (PIPE_BUF). */
static void drain(struct out *o)
{
	size_t at = 0;

	while (o->n - at > PIPE_BUF && is_pipe(o->file)) {
		const char *end = memrchr(o->v + at, '\n', PIPE_BUF);
		size_t n = end ? (size_t)(end + 1 - (o->v + at)) : PIPE_BUF;

		out_put(o, o->v + at, n);
		at += n;
	}
	if (o->n > at)
		out_put(o, o->v + at, o->n - at);
	o->n = 0;
}

/* Writes the whole lines in the buffer, and keeps the rest. Without any newline writes all. */
static void drain_lines(struct out *o)
{
	char *end = memrchr(o->v, '\n', o->n);
	size_t left = end ? o->n - (size_t)(end + 1 - o->v) : 0;

	o->n -= left;
	drain(o);
	if (left) {
		memmove(o->v, end + 1, left);
		o->n = left;
	}
}

void out_room_(struct out *o, size_t more)
{
	if (o->file && o->n >= OUT_BUFFER / 2)
		drain_lines(o);
	if (o->n + more > o->cap) {
		size_t cap = o->cap ? o->cap : o->file ? OUT_BUFFER : 256;

		while (cap < o->n + more)
			cap *= 2;
		o->v = xrealloc(o->v, cap);
		o->cap = cap;
	}
}

struct err *out_flush(struct out *o)
{
	int error;

	if (!o->file)
		return NULL;
	drain(o);
	if (fflush(o->file) && !o->error)
		o->error = errno;
	error = o->error;
	o->error = 0;
	if (error)
		clearerr(o->file);
	return error ? err_errno(error, "writing the output") : NULL;
}

void out_fill(struct out *o, char c, size_t n)
{
	out_room(o, n);
	if (n)
		memset(o->v + o->n, c, n);
	o->n += n;
}

void out_printf(struct out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	out_room(o, 128);
	va_start(ap, fmt);
	n = vsnprintf(o->v + o->n, o->cap - o->n, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= o->cap - o->n) {
		out_room(o, (size_t)n + 1);
		va_start(ap, fmt);
		vsnprintf(o->v + o->n, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	o->n += (size_t)n;
}

void out_padded(struct out *o, const char *s, size_t n, int width)
{
	size_t w = width < 0 ? -(size_t)width : (size_t)width;

	out_room(o, n > w ? n : w);
	if (width > 0 && n < w) {
		memset(o->v + o->n, ' ', w - n);
		o->n += w - n;
	}
	out_mem(o, s, n);
	if (width < 0 && n < w)
		out_fill(o, ' ', w - n);
}

char *dec_text(char *end, uint64_t v)
{
	static const char pairs[201] =
		"00010203040506070809101112131415161718192021222324252627282930313233343536"
		"37383940414243444546474849505152535455565758596061626364656667686970717273"
		"7475767778798081828384858687888990919293949596979899";

	while (v >= 100) {
		end -= 2;
		memcpy(end, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		end -= 2;
		memcpy(end, pairs + v * 2, 2);
		return end;
	}
	*--end = (char)('0' + v);
	return end;
}

static char *hex_text(char *end, uint64_t v, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";

	do {
		*--end = digits[v & 15];
		v >>= 4;
	} while (v);
	return end;
}

void out_unsigned(struct out *o, uint64_t v, int width)
{
	char buf[24], *end = buf + sizeof(buf), *s = dec_text(end, v);

	out_padded(o, s, (size_t)(end - s), width);
}

void out_signed(struct out *o, int64_t v, int width)
{
	char buf[24], *end = buf + sizeof(buf),
		      *s = dec_text(end, v < 0 ? -(uint64_t)v : (uint64_t)v);

	if (v < 0)
		*--s = '-';
	out_padded(o, s, (size_t)(end - s), width);
}

void out_size(struct out *o, uint64_t bytes)
{
	if (bytes < 10000)
		out_printf(o, "%llu bytes", (unsigned long long)bytes);
	else if (bytes < 10000000)
		out_printf(o, "%.1f kB", (double)bytes / 1e3);
	else
		out_printf(o, "%.1f MB", (double)bytes / 1e6);
}

void out_hex(struct out *o, uint64_t v, bool upper, int width)
{
	char buf[24], *end = buf + sizeof(buf), *s = hex_text(end, v, upper);

	out_padded(o, s, (size_t)(end - s), width);
}

void out_literal(struct out *o, const char *s, size_t n)
{
	if (!o->file || !term_is(o->file) || !term_changes(s, n)) {
		out_mem(o, s, n);
		return;
	}
	drain(o);
	o->raw = true;
	out_put(o, s, n);
	o->raw = false;
}

void out_escaped(struct out *o, const char *s, size_t n)
{
	static const char from[] = "\a\b\f\n\r\t\v\"\\", to[] = "abfnrtv\"\\";

	for (size_t i = 0; i < n; i++) {
		const char *p = s[i] ? strchr(from, s[i]) : NULL;

		if (!s[i]) {
			out_str(o, "\\0");
		} else if (p) {
			out_char(o, '\\');
			out_char(o, to[p - from]);
		} else if (s[i] < ' ' || s[i] > '~') {
			out_printf(o, "\\%03o", (unsigned char)s[i]);
		} else {
			out_char(o, s[i]);
		}
	}
}
