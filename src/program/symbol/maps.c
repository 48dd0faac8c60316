/* /proc/PID/maps, and paths that open the mapped files from here. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "base/mem.h"
#include "program/symbol/cache.h"

/* A newline in a path is written as \012; nothing else is escaped. */
static char *unescape(const char *s, size_t n)
{
	char *out = xmalloc(n + 1), *p = out;

	for (size_t i = 0; i < n;) {
		if (n - i >= 4 && !memcmp(s + i, "\\012", 4)) {
			*p++ = '\n';
			i += 4;
		} else {
			*p++ = s[i++];
		}
	}
	*p = 0;
	return out;
}

/* One character of a line, moved behind it. */
static bool take_char(const char **p, const char *end, char c)
{
	if (*p == end || **p != c)
		return false;
	++*p;
	return true;
}

/* 7f12a000-7f12c000 r-xp 00001000 fe:01 1234      /usr/lib/libx.so */
static bool parse_line(const char *p, const char *end, struct mapping *ret)
{
	uint64_t major, minor;
	struct mapping m = { 0 };

	if (!take_hex(&p, end, &m.start) || !take_char(&p, end, '-') ||
	    !take_hex(&p, end, &m.end) || !take_char(&p, end, ' ') || end - p < 5)
		return false;
	m.exec = p[2] == 'x';
	p += 4;
	if (!take_char(&p, end, ' ') || !take_hex(&p, end, &m.offset) || !take_char(&p, end, ' ') ||
	    !take_hex(&p, end, &major) || !take_char(&p, end, ':') || !take_hex(&p, end, &minor) ||
	    !take_char(&p, end, ' ') || m.end <= m.start)
		return false;
	m.dev_major = (uint32_t)major;
	m.dev_minor = (uint32_t)minor;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		m.inode = m.inode * 10 + (uint64_t)(*p - '0');
	while (p < end && *p == ' ')
		p++;
	m.path = unescape(p, (size_t)(end - p));
	*ret = m;
	return true;
}

uint32_t mappings_parse(const char *text, size_t len, struct mapping **ret)
{
	VEC(struct mapping) maps = { 0 };

	for (const char *line = text, *end = text + len; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		const char *stop = nl ? nl : end;
		struct mapping m;

		if (parse_line(line, stop, &m))
			vec_push(&maps, m);
		line = stop + 1;
	}
	*ret = maps.v;
	return maps.n;
}

struct err *mappings_read(pid_t pid, struct mapping **ret, uint32_t *ret_n)
{
	cleanup_free char *text = NULL;
	char path[64];
	size_t len;
	struct err *e;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	e = io_read_file(path, &text, &len);
	if (e)
		return e->code == ENOENT || e->code == ESRCH
			       ? err_wrap(e, "no process %d", (int)pid)
			       : e;
	*ret_n = mappings_parse(text, len, ret);
	return NULL;
}

void mappings_free(struct mapping *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(m[i].path);
	free(m);
}

/* Is the file at path the mapped one? Some filesystems (btrfs, overlayfs) give stat() another device than maps shows, one that
 * is no disk's: `loose` lets those pass. */
static bool is_mapped_file(const char *path, const struct mapping *m, bool loose)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != m->inode)
		return false;
	return (loose && !major(st.st_dev)) ||
	       (major(st.st_dev) == m->dev_major && minor(st.st_dev) == m->dev_minor);
}

static char *open_path(pid_t pid, const struct mapping *m, bool gone)
{
	cleanup_free char *root = NULL, *file = NULL;
	struct stat st;

	if (m->path[0] != '/')
		return NULL;
	/* The plain path outlives the process and reads best. */
	if (is_mapped_file(m->path, m, false))
		return xstrdup(m->path);
	root = xasprintf("/proc/%d/root%s", (int)pid, m->path);
	if (is_mapped_file(root, m, false))
		return xstrdup(root);
	file = xasprintf("/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)m->start,
			 (unsigned long long)m->end);
	if (!gone && !stat(file, &st) && S_ISREG(st.st_mode))
		return xstrdup(file);
	if (is_mapped_file(root, m, true))
		return xstrdup(root);
	if (is_mapped_file(m->path, m, true))
		return xstrdup(m->path);
	return NULL;
}

char *mapping_open_path(pid_t pid, const struct mapping *m)
{
	return open_path(pid, m, false);
}

char *mapping_open_path_gone(pid_t pid, const struct mapping *m)
{
	return open_path(pid, m, true);
}
