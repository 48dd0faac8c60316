/* Reads and writes small files of /proc and /sys. */
#define _GNU_SOURCE
#include "check/small.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>

#include "base/io.h"
#include "base/mem.h"

static char *path_of(const char *fmt, va_list ap)
{
	char *path;

	if (vasprintf(&path, fmt, ap) < 0)
		abort();
	return path;
}

char *small_read(const char *fmt, ...)
{
	cleanup_free char *path = NULL;
	char *text = NULL;
	size_t n;
	va_list ap;

	va_start(ap, fmt);
	path = path_of(fmt, ap);
	va_end(ap);
	if (err_drop(io_read_file(path, &text, &n)))
		return NULL;
	while (n && strchr(" \t\n", text[n - 1]))
		text[--n] = '\0';
	return text;
}

char *small_link(const char *fmt, ...)
{
	cleanup_free char *path = NULL;
	char to[PATH_MAX];
	const char *slash;
	ssize_t n;
	va_list ap;

	va_start(ap, fmt);
	path = path_of(fmt, ap);
	va_end(ap);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return NULL;
	to[n] = '\0';
	slash = strrchr(to, '/');
	return xstrdup(slash ? slash + 1 : to);
}

struct err *small_write(const char *path, const char *text)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);
	ssize_t done;

	if (fd < 0)
		return err_errno(errno, "%s: open", path);
	done = write(fd, text, n);
	if (done < 0)
		return err_errno(errno, "%s: write \"%s\"", path, text);
	return (size_t)done == n ? NULL : err_new(EIO, "%s: only a part was written", path);
}

char *small_chosen(const char *text)
{
	const char *from = strchr(text, '['), *to = from ? strchr(from, ']') : NULL;

	return to ? xstrndup(from + 1, (size_t)(to - from - 1)) : xstrdup(text);
}

static int is_name(const struct dirent *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

unsigned small_names(const char *dir, char ***ret)
{
	struct dirent **found;
	int n = scandir(dir, &found, is_name, alphasort);

	*ret = NULL;
	if (n <= 0) {
		if (!n)
			free(found);
		return 0;
	}
	*ret = xcalloc((size_t)n, sizeof(**ret));
	for (int i = 0; i < n; i++) {
		(*ret)[i] = xstrdup(found[i]->d_name);
		free(found[i]);
	}
	free(found);
	return (unsigned)n;
}

void small_names_free(char **names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(names[i]);
	free(names);
}
