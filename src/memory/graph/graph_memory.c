/* The large arrays of a graph: in memory while there is room for them, else in files without a name
 * that the kernel writes out and reads again as it needs. An array lies behind a header, which says
 * where it is. */
#define _GNU_SOURCE
#include "graph_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/meminfo.h"

#define SMALL (64ull << 10)    /* with a limit: an array that stays in memory */
#define ASKED (64ull << 20)    /* without: one for which the free memory is asked for */
#define RESERVE (512ull << 20) /* of memory, which is left for all else */
enum { PAGE = 4096, DISC_PART = 16 /* so large a part of the disc's room is left */ };

struct header {
	struct graph_memory *memory;
	size_t n; /* bytes of the array */
	int fd;   /* of its file; -1: it is in memory */
};
enum { HEADER = 32 };
_Static_assert(sizeof(struct header) <= HEADER && PAGE % HEADER == 0, "the header's room");

static struct header *header_of(void *p)
{
	return (struct header *)(void *)((char *)p - HEADER);
}

static bool fits(const struct graph_memory *m, size_t n, size_t more)
{
	uint64_t left;

	if (m->limit)
		return n <= SMALL || m->used + more <= m->limit;
	if (more < ASKED)
		return true;
	left = meminfo_available();
	return !left || left > more + RESERVE;
}

static const char *folder(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir == '/' ? dir : "/var/tmp"; /* /tmp is often memory */
}

__attribute__((noreturn)) static void no_file(size_t n, int error)
{
	char why[256];

	snprintf(
		why, sizeof(why),
		"the heap's graph is larger than memory, and a file of %zu MB for it cannot be made "
		"in %.100s: %s",
		n >> 20, folder(), strerror(error));
	mem_exhausted(why);
}

/* Makes the file as large as an array of n bytes needs. The kernel reserves the room now: a page
 * without room would be a SIGBUS later. */
static void file_resize(int fd, size_t was, size_t n)
{
	struct statvfs s;
	int error;

	if (!fstatvfs(fd, &s) &&
	    (uint64_t)s.f_bavail * s.f_frsize / DISC_PART * (DISC_PART - 1) < n - was)
		no_file(n, ENOSPC);
	error = posix_fallocate(fd, 0, (off_t)(PAGE + n));
	if (error)
		no_file(n, error);
}

static void *file_map(struct graph_memory *m, size_t n)
{
	int fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *p;
	struct header *h;

	if (fd < 0)
		no_file(n, errno);
	file_resize(fd, 0, n);
	p = mmap(NULL, PAGE + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		no_file(n, errno);
	h = header_of(p + PAGE);
	*h = (struct header){ m, n, fd };
	m->filed += n;
	return p + PAGE;
}

void *graph_alloc(struct graph_memory *m, size_t n)
{
	char *p;

	if (!fits(m, n, n))
		return file_map(m, n);
	p = (char *)xcalloc(1, HEADER + n) + HEADER;
	*header_of(p) = (struct header){ m, n, -1 };
	m->used += n;
	return p;
}

void *graph_realloc(struct graph_memory *m, void *p, size_t n)
{
	struct header *h;
	size_t was;
	void *to;

	if (!p)
		return graph_alloc(m, n);
	h = header_of(p);
	was = h->n;
	if (h->fd >= 0) {
		if (n > was)
			file_resize(h->fd, was, n);
		to = mremap((char *)p - PAGE, PAGE + was, PAGE + n, MREMAP_MAYMOVE);
		if (to == MAP_FAILED)
			no_file(n, errno);
		p = (char *)to + PAGE;
		if (n < was && ftruncate(header_of(p)->fd, (off_t)(PAGE + n)))
			no_file(n, errno);
		header_of(p)->n = n;
		m->filed += n - was;
		return p;
	}
	if (n <= was || fits(m, n, n - was)) {
		p = (char *)xrealloc(h, HEADER + n) + HEADER;
		header_of(p)->n = n;
		m->used += n - was;
		return p;
	}
	to = file_map(m, n);
	memcpy(to, p, was);
	graph_release(p);
	return to;
}

void graph_release(void *p)
{
	struct header *h;
	int fd;

	if (!p)
		return;
	h = header_of(p);
	if (h->fd < 0) {
		h->memory->used -= h->n;
		free(h);
		return;
	}
	h->memory->filed -= h->n;
	fd = h->fd;
	munmap((char *)p - PAGE, PAGE + h->n);
	close(fd);
}
