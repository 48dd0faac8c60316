/* Escapes output to terminals: streams with a filter behind them. */
#define _GNU_SOURCE
#include "base/term.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { ESCAPED = 4 /* "\033" */, CHARACTER = 4 /* bytes */ };

struct filter {
	struct filter *next;
	FILE *stream;
	int fd;
	bool owned; /* close fd with the stream */
	bool raw;
	/* Up to three bytes of an incomplete character at the end of a write. */
	char rest[CHARACTER];
	size_t nrest;
};

static struct filter *filters;

static bool passes(uint32_t c)
{
	return c == '\n' || c == '\t' || !utf8_is_unseen(c);
}

static size_t put_octal(char *to, uint8_t c)
{
	to[0] = '\\';
	to[1] = (char)('0' + (c >> 6));
	to[2] = (char)('0' + (c >> 3 & 7));
	to[3] = (char)('0' + (c & 7));
	return ESCAPED;
}

/* Escapes n bytes into `to`, which has room for ESCAPED times n. Returns the bytes written. */
static size_t escape(const char *p, size_t n, char *to)
{
	size_t len = 0;
	uint32_t c, step;

	for (size_t i = 0; i < n; i += step) {
		step = utf8_decode(p + i, n - i, &c);
		if (step && passes(c)) {
			memcpy(to + len, p + i, step);
			len += step;
			continue;
		}
		if (!step)
			step = 1;
		for (uint32_t k = 0; k < step; k++)
			len += put_octal(to + len, (uint8_t)p[i + k]);
	}
	return len;
}

static bool write_escaped(struct filter *f, const char *p, size_t n)
{
	cleanup_free char *to = xmalloc(n * ESCAPED + 1);

	return io_write(f->fd, to, escape(p, n, to));
}

/* Writes the kept bytes of a character that was never completed. */
static bool write_rest(struct filter *f)
{
	size_t n = f->nrest;

	f->nrest = 0;
	return write_escaped(f, f->rest, n);
}

/* Returns the length of the whole characters at the front of n bytes. */
static size_t whole(const char *p, size_t n)
{
	for (size_t back = 1; back < CHARACTER && back <= n; back++)
		if (utf8_is_cut(p + n - back, back))
			return n - back;
	return n;
}

static ssize_t filter_write(void *cookie, const char *buf, size_t n)
{
	struct filter *f = cookie;
	cleanup_free char *joined = NULL;
	size_t len = n, keep;

	if (f->raw)
		return write_rest(f) && io_write(f->fd, buf, n) ? (ssize_t)n : 0;
	if (f->nrest) {
		joined = xmalloc(f->nrest + n);
		memcpy(joined, f->rest, f->nrest);
		memcpy(joined + f->nrest, buf, n);
		len += f->nrest;
		buf = joined;
		f->nrest = 0;
	}
	keep = len - whole(buf, len);
	memcpy(f->rest, buf + len - keep, keep);
	f->nrest = keep;
	return write_escaped(f, buf, len - keep) ? (ssize_t)n : 0;
}

static int filter_close(void *cookie)
{
	struct filter *f = cookie, **at = &filters;
	bool good = write_rest(f);

	if (f->owned && close(f->fd))
		good = false;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	free(f);
	return good ? 0 : EOF;
}

static FILE *filter_new(int fd, bool owned, int buffering)
{
	struct filter *f = xcalloc(1, sizeof(*f));

	f->fd = fd;
	f->owned = owned;
	f->next = filters;
	filters = f;
	f->stream = fopencookie(
		f, "w", (cookie_io_functions_t){ .write = filter_write, .close = filter_close });
	if (!f->stream) {
		filters = f->next;
		free(f);
		return NULL;
	}
	setvbuf(f->stream, NULL, buffering, BUFSIZ);
	return f->stream;
}

/* Ends all filters at exit, because the C library flushes streams then but does not close them. */
static void term_end(void)
{
	for (struct filter *f = filters; f; f = f->next) {
		fflush(f->stream);
		write_rest(f);
	}
}

void term_begin(void)
{
	FILE *f;

	if (isatty(STDOUT_FILENO) && (f = filter_new(STDOUT_FILENO, false, _IOLBF)))
		stdout = f; /* GNU's C library permits this */
	if (isatty(STDERR_FILENO) && (f = filter_new(STDERR_FILENO, false, _IONBF)))
		stderr = f;
	if (filters)
		atexit(term_end);
}

FILE *term_file(int fd)
{
	FILE *f;
	int error;

	if (fd < 0)
		return NULL;
	f = isatty(fd) ? filter_new(fd, true, _IOLBF)
		       : fdopen(fd, fcntl(fd, F_GETFL) & O_APPEND ? "a" : "w");
	if (!f) {
		error = errno;
		close(fd);
		errno = error;
	}
	return f;
}

static struct filter *filter_of(const FILE *stream)
{
	struct filter *f = filters;

	while (f && f->stream != stream)
		f = f->next;
	return f;
}

bool term_is(const FILE *f)
{
	return filter_of(f) != NULL;
}

void term_raw(FILE *stream, const char *p, size_t n)
{
	struct filter *f = filter_of(stream);

	if (f) {
		fflush(stream);
		f->raw = true;
	}
	fwrite(p, 1, n, stream);
	if (f) {
		fflush(stream);
		f->raw = false;
	}
}

bool term_changes(const char *p, size_t n)
{
	uint32_t c, step;

	for (size_t i = 0; i < n; i += step) {
		step = utf8_decode(p + i, n - i, &c);
		if (!step || !passes(c))
			return true;
	}
	return false;
}

char *term_text(const char *p, size_t n)
{
	char *to = xmalloc(n * ESCAPED + 1);

	to[escape(p, n, to)] = '\0';
	return to;
}
