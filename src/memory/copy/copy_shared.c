/* Which pages of a region a process has. Where Java's collector ZGC has its heap, in a memory file
 * that it maps several times, the file tells, because the page table of each mapping has only what
 * was touched by it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "memory/copy/copy_private.h"

enum { PIECES_MAX = 1 << 16 };

bool copy_is_java_heap(const struct mapping *m)
{
	return m->shared && mapping_is_memfd(m, "java_heap");
}

/* Up to Java 20, the addresses of its mappings differ in the highest bit alone. */
uint64_t copy_java_end(const struct mappings *maps)
{
	for (uint32_t i = 0; i < maps->n; i++)
		if (copy_is_java_heap(&maps->v[i]) && maps->v[i].start)
			return 2ull << (63 - __builtin_clzll(maps->v[i].start));
	return UINT64_MAX;
}

/* Adds the pages of a mapping with which its file has data. All of them when it cannot be asked:
 * reading a hole would make a page. */
static struct err *file_pages(struct space *s, const struct mapping *m, struct space_range in,
			      space_range_vec *ret)
{
	uint64_t start = m->start > in.start ? m->start : in.start,
		 end = m->end < in.end ? m->end : in.end, at = m->offset + (start - m->start),
		 last = at + (end - start);
	cleanup_free char *path = space_open_path(s, m);
	cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

	if (fd < 0) {
		vec_push(ret, (struct space_range){ start, end });
		return NULL;
	}
	for (uint32_t n = 0; at < last; n++) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA),
		      hole = data < 0 ? data : lseek(fd, data, SEEK_HOLE);

		if (data < 0 || hole <= data || (uint64_t)data >= last)
			break;
		if (n == PIECES_MAX)
			return err_new(E2BIG, "%s: its heap's file has too many holes", s->name);
		at = (uint64_t)hole < last ? (uint64_t)hole : last;
		vec_push(ret,
			 (struct space_range){ end - (last - (uint64_t)data), end - (last - at) });
	}
	return NULL;
}

struct err *copy_resident(struct space *s, const struct memory_region *r, struct space_range in,
			  space_range_vec *ret)
{
	const struct mappings *maps = NULL;
	struct err *e;

	if (!r->heap_file)
		return space_resident(s, in, ret);
	e = space_mappings(s, 0, &maps);
	for (uint32_t i = e ? 0 : mappings_from(maps, in.start);
	     !e && i < maps->n && maps->v[i].start < in.end; i++)
		e = file_pages(s, &maps->v[i], in, ret);
	return e;
}
