/* Maps files for reading, and guards mappings against truncation. */
#define _GNU_SOURCE
#include "base/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* --- /proc/self/maps, read in a signal handler: no allocation, no stdio --- */

enum { LINE_BYTES = 4096 + 128 };

struct range {
	uint64_t start, end;
	bool exec, write, shared, file;
	char id[32];      /* device and inode, as text */
	const char *path; /* points into the line */
};

static const char *take_hex(const char *p, uint64_t *ret)
{
	for (*ret = 0;; p++) {
		char c = *p;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (d < 0)
			return p;
		*ret = *ret << 4 | (uint64_t)d;
	}
}

static const char *skip_word(const char *p)
{
	while (*p && *p != ' ')
		p++;
	while (*p == ' ')
		p++;
	return p;
}

/* Parses 7f12a000-7f12c000 r--p 00001000 fe:01 1234      /usr/lib/libx.so */
static bool parse_range(const char *line, struct range *ret)
{
	const char *p = take_hex(line, &ret->start), *id, *rights;
	size_t n;

	if (*p != '-')
		return false;
	p = take_hex(p + 1, &ret->end);
	if (*p != ' ' || strnlen(p, 6) < 6)
		return false;
	rights = p + 1;
	ret->write = rights[1] == 'w';
	ret->exec = rights[2] == 'x';
	ret->shared = rights[3] == 's';
	id = skip_word(skip_word(rights)); /* skips the offset */
	p = skip_word(id);
	ret->file = *p && *p != '0';
	p = skip_word(p);
	ret->path = p;
	n = (size_t)(skip_word(skip_word(id)) - id);
	if (n >= sizeof(ret->id))
		n = sizeof(ret->id) - 1;
	memcpy(ret->id, id, n);
	ret->id[n] = '\0';
	for (; n && ret->id[n - 1] == ' '; n--)
		ret->id[n - 1] = '\0';
	return true;
}

struct maps {
	int fd;
	size_t n, at; /* bytes in buf; bytes of them that were returned */
	char buf[2 * LINE_BYTES];
};

/* Returns the next line without its newline, in m->buf, or NULL at the end. Cuts a line longer than
 * LINE_BYTES. */
static char *next_line(struct maps *m)
{
	for (;;) {
		char *line = m->buf + m->at, *nl = memchr(line, '\n', m->n - m->at);
		ssize_t got;

		if (nl) {
			*nl = '\0';
			m->at = (size_t)(nl + 1 - m->buf);
			return line;
		}
		memmove(m->buf, line, m->n - m->at);
		m->n -= m->at;
		m->at = 0;
		if (m->n == sizeof(m->buf))
			m->n = LINE_BYTES; /* drop the rest of a long line */
		got = read(m->fd, m->buf + m->n, sizeof(m->buf) - m->n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return NULL;
		m->n += (size_t)got;
	}
}

/* Finds the range that holds addr. Copies its path to path. */
static bool find_range(uint64_t addr, struct range *ret, char path[CHANGED_PATH])
{
	struct maps m = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	const char *line;
	bool found = false;

	while (m.fd >= 0 && !found && (line = next_line(&m)))
		found = parse_range(line, ret) && addr >= ret->start && addr < ret->end;
	if (found) {
		size_t n = strnlen(ret->path, CHANGED_PATH - 1);

		memcpy(path, ret->path, n);
		path[n] = '\0';
	}
	if (m.fd >= 0)
		close(m.fd);
	return found;
}

/* Returns true when this process executes the file. Zeros in its own data would be worse than the
 * end of the process. */
static bool is_executed(const char *id)
{
	struct maps m = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	const char *line;
	struct range r;
	bool found = false;

	while (m.fd >= 0 && !found && (line = next_line(&m)))
		found = parse_range(line, &r) && r.exec && !strcmp(r.id, id);
	if (m.fd >= 0)
		close(m.fd);
	return found;
}

/* --- the guard --- */

static struct sigaction before;

/* Replaces the pages from addr to the end of the mapping by zeros. Returns false when the guard
 * does not cover this mapping. */
static bool put_zeros(uint64_t addr)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = addr & ~(page - 1);
	char path[CHANGED_PATH];
	struct range r;

	if (!find_range(addr, &r, path) || r.shared || r.exec)
		return false;
	if (!r.file)
		return true; /* another thread has replaced it */
	if (is_executed(r.id) ||
	    mmap((void *)from, r.end - from, PROT_READ | (r.write ? PROT_WRITE : 0),
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return false;
	changed_add(path);
	return true;
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
	int error = errno;

	(void)context;
	/* A process sent the signal, or it is another kind of fault. Restore the old handler, so
	 * that the old effect happens when this returns. */
	if (info->si_code != BUS_ADRERR || !put_zeros((uintptr_t)info->si_addr)) {
		sigaction(sig, &before, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
	errno = error;
}

void mapped_guard(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction a = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_RESTART }, now;

	pthread_mutex_lock(&lock);
	if (!sigaction(SIGBUS, NULL, &now) && now.sa_sigaction != on_bus) {
		before = now;
		sigemptyset(&a.sa_mask);
		sigaction(SIGBUS, &a, NULL);
	}
	pthread_mutex_unlock(&lock);
}

/* --- files mapped by descry --- */

/* Returns the bytes of a mapping: the file's pages and one behind them. */
static size_t whole_size(size_t len)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page + page;
}

/* Maps the file and a page of zeros behind it. */
static const void *map_file(int fd, size_t len)
{
	void *p = mmap(NULL, whole_size(len), PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (p == MAP_FAILED ||
	    mmap(p, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED)
		return p;
	error = errno;
	munmap(p, whole_size(len));
	errno = error;
	return MAP_FAILED;
}

struct err *mapped_open(const char *path, struct mapped *ret)
{
	struct mapped m = { .p = "", .fd = open(path, O_RDONLY | O_CLOEXEC) };
	struct err *e = NULL;
	struct stat st;

	if (m.fd < 0)
		return err_errno(errno, "%s: open", path);
	mapped_guard();
	if (fstat(m.fd, &st) || !file_state_read(m.fd, &m.state))
		e = err_errno(errno, "%s: stat", path);
	else if (S_ISDIR(st.st_mode))
		e = err_errno(EISDIR, "%s: map", path);
	m.len = e ? 0 : (size_t)m.state.size;
	if (m.len) {
		m.p = map_file(m.fd, m.len);
		if (m.p == MAP_FAILED)
			e = err_errno(errno, "%s: map", path);
	}
	if (e)
		close(m.fd);
	else
		*ret = m;
	return e;
}

struct err *mapped_check(const struct mapped *m, const char *path)
{
	struct file_state now;
	char link[32], real[CHANGED_PATH];
	ssize_t n;

	if (file_state_read(m->fd, &now) && file_state_same(&m->state, &now))
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", m->fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (n > 0) {
		real[n] = '\0';
		changed_told(real);
	}
	return err_new(ESTALE, "%s: the file was changed while it was read", path);
}

void mapped_close(struct mapped *m)
{
	if (m->len)
		munmap((void *)m->p, whole_size(m->len));
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct mapped){ .p = "", .fd = -1 };
}
