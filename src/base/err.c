/* Makes, wraps and frees errors of the world. */
#define _GNU_SOURCE
#include "base/err.h"

#include "base/mem.h"

static char *vformat(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		return xstrdup(fmt);
	return text;
}

/* Shows line feeds as "\\012". A file's name with one would make a line of its own. */
static char *one_line(char *text)
{
	char *shown, *to;

	if (!strchr(text, '\n'))
		return text;
	shown = to = xmalloc(4 * strlen(text) + 1);
	for (const char *p = text; *p; p++)
		if (*p == '\n')
			to = stpcpy(to, "\\012");
		else
			*to++ = *p;
	*to = '\0';
	free(text);
	return shown;
}

static struct err *make(int code, char *text)
{
	struct err *e = xmalloc(sizeof(*e));

	e->code = code;
	e->text = text;
	return e;
}

struct err *err_new(int code, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = vformat(fmt, ap);
	va_end(ap);
	return make(code, one_line(text));
}

struct err *err_lines(int code, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = vformat(fmt, ap);
	va_end(ap);
	return make(code, text);
}

struct err *err_errno(int errno_value, const char *fmt, ...)
{
	char *what, *text, buf[128];
	va_list ap;

	va_start(ap, fmt);
	what = one_line(vformat(fmt, ap));
	va_end(ap);
	text = xasprintf("%s: %s", what, strerror_r(errno_value, buf, sizeof(buf)));
	free(what);
	return make(errno_value, text);
}

struct err *err_wrap(struct err *e, const char *fmt, ...)
{
	char *what, *text;
	va_list ap;

	va_start(ap, fmt);
	what = one_line(vformat(fmt, ap));
	va_end(ap);
	text = xasprintf("%s: %s", what, e->text);
	free(what);
	free(e->text);
	e->text = text;
	return e;
}

void err_free(struct err *e)
{
	if (!e)
		return;
	free(e->text);
	free(e);
}

bool err_drop(struct err *e)
{
	bool failed = e;

	err_free(e);
	return failed;
}
