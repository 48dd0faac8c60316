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
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/meminfo.h"
#include "base/outfile.h"

#define SMALL (64ull << 10)    /* with a limit: an array that stays in memory */
#define ASKED (64ull << 20)    /* without: one for which the free memory is asked for */
#define RESERVE (512ull << 20) /* of memory, which is left for all else */
enum { PAGE = 4096 };

#define HUGE (2ul << 20) /* the size of a huge page, and of an array that is mapped */

enum { IN_HEAP = -1, MAPPED = -2 };
struct header {
	struct graph_memory *memory;
	size_t n;    /* bytes of the array */
	int fd;      /* of its file; IN_HEAP: of malloc(3); MAPPED: pages of its own */
	bool pieces; /* its pages are of several mappings, which begin at huge pages */
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
	return !left || left + m->spared > more + RESERVE;
}

/* Reserves addresses that begin where a huge page begins. */
static char *huge_reserve(size_t bytes)
{
	char *p = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0),
	     *at = (char *)round_up((uintptr_t)p, HUGE);

	if (p == MAP_FAILED)
		return NULL;
	if (at > p)
		munmap(p, (size_t)(at - p));
	munmap(at + bytes, HUGE - (size_t)(at - p));
	return at;
}

__attribute__((noreturn)) static void no_mappings(void)
{
	mem_exhausted("out of memory: the kernel moves no more pages");
}

/* Moves pages to reserved addresses. The kernel moves one mapping at a time. When it fails, the
 * reserved addresses may be another thread's already, so that nothing may be done with them. */
static void pages_move(char *from, size_t bytes, char *to, bool pieces)
{
	size_t step = pieces ? HUGE : bytes;

	for (size_t at = 0, some; at < bytes; at += some) {
		some = bytes - at < step ? bytes - at : step;
		if (mremap(from + at, some, some, MREMAP_MAYMOVE | MREMAP_FIXED, to + at) ==
		    MAP_FAILED)
			no_mappings();
	}
}

/* Gives an array addresses that have no pages yet. */
static bool pages_fresh(char *at, size_t bytes)
{
	return !bytes || mmap(at, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Moves spare pages to an array that has none yet. Returns how many of its bytes have them. The
 * kernel clears each new page, which costs more than all that a walk does with it. */
static size_t spare_take(struct graph_memory *m, char *to, size_t bytes)
{
	size_t at = 0;

	while (m->nspare && bytes - at >= HUGE) {
		struct graph_spare *s = &m->spare[m->nspare - 1];
		size_t most = (bytes - at) & ~(HUGE - 1), some = s->bytes < most ? s->bytes : most;

		s->bytes -= some;
		m->spared -= some;
		pages_move(s->at + s->bytes, some, to + at, s->pieces);
		at += some;
		m->nspare -= !s->bytes;
	}
	return at;
}

/* Keeps whole huge pages for the next arrays. */
static void spare_add(struct graph_memory *m, char *at, size_t bytes, bool pieces)
{
	size_t kept = bytes & ~(HUGE - 1);

	if (m->nspare == GRAPH_SPARES)
		kept = 0;
	munmap(at + kept, bytes - kept);
	if (!kept)
		return;
	m->spare[m->nspare++] = (struct graph_spare){ at, kept, pieces };
	m->spared += kept;
}

/* Makes an array of pages of its own, of which the first *ret_used bytes have any value. The kernel
 * makes huge pages, of which a walk in no order misses fewer in the processor's tables; the last
 * part of the array has small ones. */
static void *pages_map(struct graph_memory *m, size_t n, size_t *ret_used)
{
	size_t bytes = round_up(PAGE + n, PAGE);
	char *to = huge_reserve(bytes);

	if (!to)
		return NULL;
	*ret_used = spare_take(m, to, bytes);
	if (!pages_fresh(to + *ret_used, bytes - *ret_used)) {
		*ret_used = 0;
		return NULL;
	}
	(void)!madvise(to, bytes, MADV_HUGEPAGE);
	*header_of(to + PAGE) = (struct header){ m, n, MAPPED, *ret_used > 0 };
	return to + PAGE;
}

/* Moves an array of pages of its own to where it has room for more. Returns NULL when there is no
 * room. */
static char *pages_grow(char *at, size_t was, size_t bytes)
{
	bool pieces = header_of(at + PAGE)->pieces;
	size_t whole = pieces ? was & ~(HUGE - 1) : 0;
	char *to = huge_reserve(bytes);

	if (!to)
		return NULL;
	if (!pieces && mremap(at, was, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		return NULL;
	if (pieces) {
		pages_move(at, whole, to, true);
		/* the last mapping grows */
		if (was > whole ? mremap(at + whole, was - whole, bytes - whole,
					 MREMAP_MAYMOVE | MREMAP_FIXED, to + whole) == MAP_FAILED
				: !pages_fresh(to + whole, bytes - whole))
			no_mappings();
	}
	(void)!madvise(to, bytes, MADV_HUGEPAGE);
	return to;
}

/* Changes the size of an array of pages of its own. Returns NULL when there is no room. */
static void *pages_remap(struct header *h, size_t n)
{
	char *at = (char *)h + HEADER - PAGE;
	size_t was = round_up(PAGE + h->n, PAGE), bytes = round_up(PAGE + n, PAGE),
	       whole = round_up(bytes, HUGE);

	if (whole < was) {
		spare_add(h->memory, at + whole, was - whole, h->pieces);
		was = whole;
	}
	if (bytes < was)
		munmap(at + bytes, was - bytes);
	else if (bytes > was && mremap(at, was, bytes, 0) == MAP_FAILED)
		at = pages_grow(at, was, bytes);
	if (!at)
		return NULL;
	header_of(at + PAGE)->n = n;
	return at + PAGE;
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
	int error;

	if (!io_disk_has(fd, n - was))
		no_file(n, ENOSPC);
	error = posix_fallocate(fd, 0, (off_t)(PAGE + n));
	if (error)
		no_file(n, error);
}

static void *file_map(struct graph_memory *m, size_t n)
{
	int fd = outfile_unnamed(folder());
	char *p;

	if (fd < 0)
		no_file(n, errno);
	file_resize(fd, 0, n);
	p = mmap(NULL, PAGE + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		no_file(n, errno);
	*header_of(p + PAGE) = (struct header){ m, n, fd };
	m->filed += n;
	return p + PAGE;
}

static void *file_remap(struct header *h, size_t n)
{
	struct graph_memory *m = h->memory;
	size_t was = h->n;
	char *to;

	if (n > was)
		file_resize(h->fd, was, n);
	to = mremap((char *)h + HEADER - PAGE, PAGE + was, PAGE + n, MREMAP_MAYMOVE);
	if (to == MAP_FAILED)
		no_file(n, errno);
	h = header_of(to + PAGE);
	if (n < was && ftruncate(h->fd, (off_t)(PAGE + n)))
		no_file(n, errno);
	h->n = n;
	m->filed += n - was;
	return to + PAGE;
}

static void *array_make(struct graph_memory *m, size_t n, size_t *ret_used)
{
	char *p = NULL;

	*ret_used = 0;
	if (!fits(m, n, n))
		return file_map(m, n);
	if (n >= HUGE)
		p = pages_map(m, n, ret_used);
	if (!p) {
		p = (char *)xcalloc(1, HEADER + n) + HEADER;
		*header_of(p) = (struct header){ m, n, IN_HEAP };
	}
	m->used += n;
	return p;
}

void *graph_alloc(struct graph_memory *m, size_t n)
{
	size_t used;
	char *p = array_make(m, n, &used);

	if (used)
		memset(p, 0, used - PAGE);
	return p;
}

void *graph_alloc_unset(struct graph_memory *m, size_t n)
{
	size_t used;

	return array_make(m, n, &used);
}

void *graph_realloc(struct graph_memory *m, void *p, size_t n)
{
	struct header *h;
	size_t was;
	char *to = NULL;

	if (!p)
		return graph_alloc(m, n);
	h = header_of(p);
	was = h->n;
	if (h->fd >= 0)
		return file_remap(h, n);
	if (n > was && !fits(m, n, n - was)) {
		to = file_map(m, n);
	} else if (h->fd == MAPPED && (to = pages_remap(h, n))) {
		m->used += n - was;
		return to;
	} else if (h->fd == IN_HEAP && n < HUGE) {
		to = (char *)xrealloc(h, HEADER + n) + HEADER;
		header_of(to)->n = n;
		m->used += n - was;
		return to;
	} else {
		to = graph_alloc(m, n);
	}
	memcpy(to, p, n < was ? n : was);
	graph_release(p);
	return to;
}

void graph_adopt(struct graph_memory *m, void *p)
{
	struct header *h = p ? header_of(p) : NULL;

	if (!h)
		return;
	*(h->fd >= 0 ? &h->memory->filed : &h->memory->used) -= h->n;
	*(h->fd >= 0 ? &m->filed : &m->used) += h->n;
	h->memory = m;
}

void graph_release(void *p)
{
	struct header *h;
	int fd;

	if (!p)
		return;
	h = header_of(p);
	fd = h->fd;
	*(fd >= 0 ? &h->memory->filed : &h->memory->used) -= h->n;
	if (fd == IN_HEAP) {
		free(h);
	} else if (fd == MAPPED) {
		spare_add(h->memory, (char *)p - PAGE, round_up(PAGE + h->n, PAGE), h->pieces);
	} else {
		munmap((char *)p - PAGE, PAGE + h->n);
		close(fd);
	}
}

void graph_spare_free(struct graph_memory *m)
{
	for (uint32_t i = 0; i < m->nspare; i++)
		munmap(m->spare[i].at, m->spare[i].bytes);
	m->nspare = 0;
	m->spared = 0;
}
