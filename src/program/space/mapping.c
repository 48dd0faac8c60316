/* /proc/PID/maps, and paths that open the mapped files from here. */
#include "program/space/mapping.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/procdir.h"
#include "base/sorted.h"

/* Ends the path [p, end) with a NUL. A newline in it is written as \012; nothing else is
 * escaped. */
static void unescape(char *p, char *end)
{
	char *out = p;

	while (p < end)
		if (end - p >= 4 && !memcmp(p, "\\012", 4)) {
			*out++ = '\n';
			p += 4;
		} else {
			*out++ = *p++;
		}
	*out = '\0';
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
static bool parse_line(char *line, char *end, struct mapping *ret)
{
	const char *p = line;
	uint64_t major, minor;
	struct mapping m = { 0 };

	if (!number_take_hex(&p, end, &m.start) || !take_char(&p, end, '-') ||
	    !number_take_hex(&p, end, &m.end) || !take_char(&p, end, ' ') || end - p < 5)
		return false;
	m.read = p[0] == 'r';
	m.write = p[1] == 'w';
	m.exec = p[2] == 'x';
	m.shared = p[3] == 's';
	p += 4;
	if (!take_char(&p, end, ' ') || !number_take_hex(&p, end, &m.offset) ||
	    !take_char(&p, end, ' ') || !number_take_hex(&p, end, &major) ||
	    !take_char(&p, end, ':') || !number_take_hex(&p, end, &minor) ||
	    !take_char(&p, end, ' ') || m.end <= m.start)
		return false;
	m.dev_major = (uint32_t)major;
	m.dev_minor = (uint32_t)minor;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		m.inode = m.inode * 10 + (uint64_t)(*p - '0');
	while (p < end && *p == ' ')
		p++;
	m.path = p;
	unescape(line + (p - line), end);
	*ret = m;
	return true;
}

void mappings_parse(char *text, size_t len, struct mappings *ret)
{
	struct mappings list = { .text = text };

	for (char *line = text, *end = text + len; line < end;) {
		char *nl = memchr(line, '\n', (size_t)(end - line));
		char *stop = nl ? nl : end;
		struct mapping m;

		if (parse_line(line, stop, &m))
			vec_push(&list, m);
		line = stop + 1;
	}
	*ret = list;
}

/* What a thread that has ended shows is empty, also of the main one while others run on. */
static void read_of_other_thread(pid_t pid, char **text, size_t *len)
{
	cleanup_free char *tasks = xasprintf("/proc/%d/task", (int)pid);
	cleanup_dir DIR *d = opendir(tasks);

	for (pid_t tid; !*len && procdir_next(d, &tid);) {
		cleanup_free char *path = xasprintf("%s/%d/maps", tasks, (int)tid);

		free(*text);
		*text = NULL;
		err_free(io_read_file(path, text, len));
	}
}

struct err *mappings_read(pid_t pid, struct mappings *ret)
{
	char path[64], *text = NULL;
	size_t len = 0;
	struct err *e;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	e = io_read_file(path, &text, &len);
	if (e)
		return e->code == ENOENT || e->code == ESRCH
			       ? err_wrap(e, "no process %d", (int)pid)
			       : e;
	if (!len)
		read_of_other_thread(pid, &text, &len);
	mappings_parse(text, len, ret);
	return NULL;
}

void mappings_free(struct mappings *m)
{
	free(m->text);
	m->text = NULL;
	vec_fini(m);
}

uint32_t mappings_from(const struct mappings *m, uint64_t addr)
{
	return partition_point(m->n, i, m->v[i].end <= addr);
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t addr)
{
	uint32_t i = mappings_from(m, addr);

	return i < m->n && addr >= m->v[i].start ? &m->v[i] : NULL;
}

/* Of the mappings from an index on, n give way to others. */
static void splice(struct mappings *list, uint32_t at, uint32_t n, const struct mapping *new,
		   uint32_t count)
{
	vec_reserve(list, count);
	memmove(list->v + at + count, list->v + at + n, (list->n - at - n) * sizeof(*list->v));
	memcpy(list->v + at, new, count * sizeof(*new));
	list->n = list->n - n + count;
}

void mappings_put(struct mappings *list, const struct mapping *m)
{
	const uint32_t from = mappings_from(list, m->start);
	uint32_t to = from, n = 0;
	struct mapping new[3];

	while (to < list->n && list->v[to].start < m->end)
		to++;
	if (to > from && list->v[from].start < m->start) {
		new[n] = list->v[from];
		new[n++].end = m->start;
	}
	new[n++] = *m;
	if (to > from && list->v[to - 1].end > m->end) {
		new[n] = list->v[to - 1];
		new[n].offset += m->end - new[n].start;
		new[n++].start = m->end;
	}
	splice(list, from, to - from, new, n);
}

bool mappings_any(pid_t pid, const char *front)
{
	struct mappings m = { 0 };
	bool any = false;

	err_free(mappings_read(pid, &m));
	for (uint32_t i = 0; i < m.n && !any; i++)
		any = !strncmp(m.v[i].path, front, strlen(front));
	mappings_free(&m);
	return any;
}

bool mapping_is_memfd(const struct mapping *m, const char *name)
{
	size_t n = strlen(name);

	/* "/memfd:NAME (deleted)" */
	return !strncmp(m->path, "/memfd:", 7) && !strncmp(m->path + 7, name, n) &&
	       (!m->path[7 + n] || m->path[7 + n] == ' ');
}

/* Is the file at path the mapped one? Some filesystems (btrfs, overlayfs) give stat() another
 * device than maps shows, one that is no disk's: `loose` lets those pass. */
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
