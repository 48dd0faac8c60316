/* Parses /proc/PID/maps, and finds paths that open the mapped files from this process. */
#include "program/space/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/procdir.h"
#include "base/sorted.h"

/* Ends the path [p, end) with a NUL. Unescapes a newline, which is written as \012. Nothing else is
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

/* Moves *p behind c if c is there. */
static bool take_char(const char **p, const char *end, char c)
{
	if (*p == end || **p != c)
		return false;
	++*p;
	return true;
}

/* Parses 7f12a000-7f12c000 r-xp 00001000 fe:01 1234      /usr/lib/libx.so */
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

	for (char *line = text, *end = len ? text + len : text; line < end;) {
		char *nl = memchr(line, '\n', (size_t)(end - line));
		char *stop = nl ? nl : end;
		struct mapping m;

		if (parse_line(line, stop, &m))
			vec_push(&list, m);
		line = stop + 1;
	}
	*ret = list;
}

void mappings_order(struct mappings *list)
{
	uint64_t end = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->n; i++) {
		struct mapping m = list->v[i];

		if (m.end <= end)
			continue;
		if (m.start < end) {
			m.offset += m.inode ? end - m.start : 0;
			m.start = end;
		}
		end = m.end;
		list->v[n++] = m;
	}
	list->n = n;
}

/* Reads a whole list. E2BIG: it is longer than MAPPINGS_TEXT_MAX. */
static struct err *read_text(int fd, const char *path, struct mappings *ret)
{
	cleanup_free char *text = NULL;
	size_t len = 0, cap = 16384;
	ssize_t n;

	text = xmalloc(cap + 1);
	while ((n = read(fd, text + len, cap - len)) > 0) {
		len += (size_t)n;
		if (len > MAPPINGS_TEXT_MAX)
			return err_new(E2BIG, "%s is longer than %d MB", path,
				       MAPPINGS_TEXT_MAX >> 20);
		if (len == cap)
			text = xrealloc(text, (cap *= 2) + 1);
	}
	if (n < 0)
		return err_errno(errno, "%s: read", path);
	text[len] = '\0';
	mappings_parse(text, len, ret);
	mappings_order(ret);
	text = NULL;
	return NULL;
}

static const char MEMFD[] = "/memfd:";

/* A list that is read piece by piece. */
struct long_list {
	struct mappings list;
	VEC(size_t) at; /* where each mapping's path is in `text`; 0: none */
	VEC(char) text;
};

/* Returns where the path is in l->text. Neighbours of one file share it. */
static size_t keep_path(struct long_list *l, const struct mapping *m)
{
	const uint32_t n = l->list.n;
	const struct mapping *last = n ? &l->list.v[n - 1] : NULL;
	const size_t len = strlen(m->path) + 1, at = l->text.n;

	if (len == 1)
		return 0;
	if (last && m->inode && last->inode == m->inode && last->dev_major == m->dev_major &&
	    last->dev_minor == m->dev_minor && !strcmp(l->text.v + l->at.v[n - 1], m->path))
		return l->at.v[n - 1];
	if (at + len > MAPPINGS_TEXT_MAX && strncmp(m->path, MEMFD, sizeof(MEMFD) - 1))
		return 0;
	vec_reserve(&l->text, len);
	memcpy(l->text.v + at, m->path, len);
	l->text.n += (uint32_t)len;
	return at;
}

/* Takes the complete lines of [buf, buf + n). Returns how many bytes they have. */
static size_t take_lines(struct long_list *l, char *buf, size_t n)
{
	size_t done = 0;

	for (char *nl; (nl = memchr(buf + done, '\n', n - done)); done = (size_t)(nl + 1 - buf)) {
		struct mapping m;
		size_t at;

		if (!parse_line(buf + done, nl, &m))
			continue;
		at = keep_path(l, &m);
		vec_push(&l->at, at);
		vec_push(&l->list, m);
	}
	return done;
}

static struct err *read_pieces(int fd, const char *path, struct mappings *ret)
{
	enum { PIECE = 1 << 18 /* a line has less than 20,000 bytes */ };
	cleanup_free char *buf = xmalloc(PIECE);
	struct long_list l = { 0 };
	size_t have = 0;
	ssize_t n;

	vec_push(&l.text, '\0');
	while ((n = read(fd, buf + have, PIECE - have)) > 0) {
		size_t done;

		have += (size_t)n;
		done = take_lines(&l, buf, have);
		have -= done;
		memmove(buf, buf + done, have);
	}
	if (n < 0) {
		vec_fini(&l.text);
		mappings_free(&l.list);
	}
	for (uint32_t i = 0; i < l.list.n; i++)
		l.list.v[i].path = l.text.v + l.at.v[i];
	vec_fini(&l.at);
	if (n < 0)
		return err_errno(errno, "%s: read", path);
	l.list.text = l.text.v;
	mappings_order(&l.list);
	*ret = l.list;
	return NULL;
}

static struct err *read_file(const char *path, bool whole, struct mappings *ret)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "%s: open", path);
	return whole ? read_pieces(fd, path, ret) : read_text(fd, path, ret);
}

/* Reads maps of another thread, because the file of a thread that has ended is empty. The main
 * thread may have ended while others run. */
static void read_of_other_thread(pid_t pid, bool whole, struct mappings *ret)
{
	cleanup_dir DIR *d = procdir_threads(pid);

	for (pid_t tid; !ret->n && procdir_next(d, &tid);) {
		cleanup_free char *path = xasprintf("/proc/%d/task/%d/maps", (int)pid, (int)tid);

		mappings_free(ret);
		err_free(read_file(path, whole, ret));
	}
}

static struct err *read_process(pid_t pid, bool whole, struct mappings *ret)
{
	struct mappings list = { 0 };
	char path[64];
	struct err *e;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	e = read_file(path, whole, &list);
	if (e && e->code == E2BIG)
		return err_wrap(e, "process %d has too many mappings to be traced", (int)pid);
	if (e)
		return e->code == ENOENT || e->code == ESRCH
			       ? err_wrap(e, "no process %d", (int)pid)
			       : e;
	if (!list.n)
		read_of_other_thread(pid, whole, &list);
	*ret = list;
	return NULL;
}

struct err *mappings_read(pid_t pid, struct mappings *ret)
{
	struct err *e = read_process(pid, false, ret);

	if (!e)
		mappings_claim_moved(pid, ret);
	return e;
}

struct err *mappings_read_whole(pid_t pid, struct mappings *ret)
{
	return read_process(pid, true, ret);
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

/* Replaces n mappings from an index on by others. */
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

	err_free(mappings_read_whole(pid, &m));
	for (uint32_t i = 0; i < m.n && !any; i++)
		any = !strncmp(m.v[i].path, front, strlen(front));
	mappings_free(&m);
	return any;
}

bool mapping_is_memfd(const struct mapping *m, const char *name)
{
	size_t n = strlen(name);

	/* The path is "/memfd:NAME (deleted)". */
	return !strncmp(m->path, "/memfd:", 7) && !strncmp(m->path + 7, name, n) &&
	       (!m->path[7 + n] || m->path[7 + n] == ' ');
}

/* Returns true for the files that the kernel itself names by a process's addresses. */
static bool is_map_file(const char *path)
{
	if (strncmp(path, "/proc/", 6))
		return false;
	path += 6 + strspn(path + 6, "0123456789");
	return !strncmp(path, "/map_files/", 11);
}

bool mapping_is_of_file(const struct mapping *m, const char *path, const struct stat *st)
{
	return is_map_file(path) || (st->st_ino == m->inode && S_ISREG(st->st_mode));
}

/* Returns true when the file at path is the mapped file. Some filesystems (btrfs, overlayfs) give
 * stat() another device than maps shows, with major number 0. `loose` accepts those. */
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
	/* The plain path still works after the process has ended, and is easiest to read. */
	if (is_mapped_file(m->path, m, false))
		return xstrdup(m->path);
	pid = procdir_living_thread(pid);
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
