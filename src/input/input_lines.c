/* Cuts an input that comes in pieces into whole lines. */
#define _GNU_SOURCE
#include "input/input_lines.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* bytes of a read, few enough to stay in the cache while they are parsed */
enum { BLOCK = 512 * 1024 };

static void lines_keep(struct lines *l, const struct lines_ops *ops, void *arg, const char *text,
		       size_t len)
{
	if (len > (l->longest ? l->longest : LINES_LONGEST) - l->rest.n) {
		ops->too_long(arg);
		l->rest.n = 0;
		l->dropping = true;
		return;
	}
	vec_reserve(&l->rest, len);
	if (len)
		memcpy(l->rest.v + l->rest.n, text, len);
	l->rest.n += (uint32_t)len;
}

static void input_lines_begin(struct lines *l, const struct lines_ops *ops, void *arg,
			      const char *text, size_t len)
{
	ops->begin(arg, text, len);
	l->begun = true;
}

void lines_feed(struct lines *l, const struct lines_ops *ops, void *arg, const char *text,
		size_t len)
{
	const char *nl;

	if (!l->begun) {
		if (l->rest.n + len < LINES_BEGINNING) {
			lines_keep(l, ops, arg, text, len);
			return;
		}
		if (l->rest.n) {
			size_t more = LINES_BEGINNING - l->rest.n;

			lines_keep(l, ops, arg, text, more);
			input_lines_begin(l, ops, arg, l->rest.v, l->rest.n);
			text += more;
			len -= more;
		} else {
			input_lines_begin(l, ops, arg, text, LINES_BEGINNING);
		}
	}
	if (l->dropping) {
		nl = memchr(text, '\n', len);
		if (!nl)
			return;
		l->dropping = false;
		len -= (size_t)(nl + 1 - text);
		text = nl + 1;
	}
	if (l->rest.n) {
		nl = memchr(text, '\n', len);
		if (!nl) {
			lines_keep(l, ops, arg, text, len);
			return;
		}
		lines_keep(l, ops, arg, text, (size_t)(nl + 1 - text));
		if (l->rest.n)
			ops->lines(arg, l->rest.v, l->rest.n);
		l->rest.n = 0;
		l->dropping = false;
		len -= (size_t)(nl + 1 - text);
		text = nl + 1;
	}
	nl = memrchr(text, '\n', len);
	if (nl) {
		ops->lines(arg, text, (size_t)(nl + 1 - text));
		len -= (size_t)(nl + 1 - text);
		text = nl + 1;
	}
	lines_keep(l, ops, arg, text, len);
}

void lines_end(struct lines *l, const struct lines_ops *ops, void *arg)
{
	if (l->rest.n && l->rest.v[l->rest.n - 1] != '\n')
		lines_keep(l, ops, arg, "\n", 1);
	if (!l->begun)
		input_lines_begin(l, ops, arg, l->rest.v, l->rest.n);
	if (l->rest.n)
		ops->lines(arg, l->rest.v, l->rest.n);
	l->rest.n = 0;
	l->begun = l->dropping = false;
}

void lines_fini(struct lines *l)
{
	vec_fini(&l->rest);
}

struct err *lines_read(int fd, const char *name,
		       void (*feed)(void *arg, const char *text, size_t len), void *arg)
{
	cleanup_free char *buf = xmalloc(BLOCK);
	ssize_t n;

	while ((n = read(fd, buf, BLOCK)) != 0) {
		if (n > 0)
			feed(arg, buf, (size_t)n);
		else if (errno != EINTR)
			return err_errno(errno, "%s: read", name);
	}
	return NULL;
}
