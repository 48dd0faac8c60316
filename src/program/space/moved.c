/* Finds code that a program has moved to memory without the program's file.
 *
 * Some programs copy their own text to huge pages and put the copy at the text's addresses (hhvm,
 * libhugetlbfs, iodlr), because the processor then needs fewer entries of its TLB:
 *
 *	400000-600000 r--p 00000000 fe:01 12  /usr/bin/program    head
 *	600000-612000 r-xp 00200000 fe:01 12  /usr/bin/program
 *	612000-a00000 r-xp 00000000 00:00 0                       moved
 *	a00000-a34000 r-xp 00600000 fe:01 12  /usr/bin/program
 *	a34000-b00000 rw-p 00634000 fe:01 12  /usr/bin/program
 *
 * Such a mapping lies between mappings of one file and holds the file's bytes. */
#include "base/mem.h"
#include "base/procmem.h"
#include "program/object/object.h"
#include "program/space/mapping.h"

enum {
	AHEAD = 64,   /* mappings in which the file's last one is searched */
	PIECES = 16,  /* that are compared */
	PIECE = 4096, /* bytes */
	/* Of one list, in which a process can have 65,530 mappings, of files with any number of
	 * segments: */
	FILES_MAX = 32,
	SEGMENTS_MAX = 1024,
	PIECES_MAX = 1024,
};

/* What may still be looked at. */
struct left {
	uint32_t files, segments, pieces;
};

/* The file whose mappings are around the one that is looked at. */
struct around {
	const struct mapping *head; /* has the file's first byte */
	uint64_t end;               /* of the last mapping */
	struct object *object;
	bool tried;
};

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

static void around_begin(struct around *a, const struct mappings *list, uint32_t i)
{
	object_free(a->object);
	*a = (struct around){ .head = &list->v[i], .end = list->v[i].end };
	for (uint32_t k = i + 1; k < list->n && k - i < AHEAD; k++)
		if (same_file(&list->v[k], a->head))
			a->end = list->v[k].end;
}

/* Compares pieces at link-time addresses [lo, hi) with the memory. Some may differ, because
 * debuggers and tracers write into text. */
static bool has_bytes_of(pid_t pid, const struct object *o, uint64_t lo, uint64_t hi, uint64_t bias,
			 struct left *left)
{
	const uint64_t step = (hi - lo) / PIECES > PIECE ? (hi - lo) / PIECES : PIECE;
	uint32_t same = 0, all = 0;

	for (uint64_t at = lo; at < hi && left->pieces; at += step, all++, left->pieces--) {
		const uint32_t n = hi - at < PIECE ? (uint32_t)(hi - at) : PIECE;
		uint8_t file[PIECE], memory[PIECE];

		same += object_read(o, at, file, n) == n &&
			procmem_read(pid, memory, n, at + bias) == (ssize_t)n &&
			!memcmp(file, memory, n);
	}
	return same && same * 2 >= all;
}

static void around_open(pid_t pid, struct around *a, struct left *left)
{
	cleanup_free char *path = left->files ? mapping_open_path(pid, a->head) : NULL;

	a->tried = true;
	if (!path)
		return;
	left->files--;
	err_free(object_open(path, &a->object));
}

/* Gives the mapping the file's name and offset if it holds the file's code. */
static void claim(pid_t pid, struct around *a, struct mapping *m, struct left *left)
{
	uint64_t first, off, n, addr, at;

	if (!a->tried)
		around_open(pid, a, left);
	if (!a->object || !object_offset_to_addr(a->object, 0, &first))
		return;
	at = m->start - (a->head->start - first);
	for (uint32_t i = 0;
	     left->segments && left->pieces && object_text_segment(a->object, i, &off, &n, &addr);
	     i++, left->segments--) {
		const uint64_t skip = at > addr ? at - addr : 0, size = m->end - m->start;

		if (at + PIECE <= addr || skip >= n || off + at < addr ||
		    !has_bytes_of(pid, a->object, addr + skip,
				  at + size < addr + n ? at + size : addr + n,
				  a->head->start - first, left))
			continue;
		m->offset = off + at - addr;
		m->path = a->head->path;
		m->dev_major = a->head->dev_major;
		m->dev_minor = a->head->dev_minor;
		m->inode = a->head->inode;
		m->moved = true;
		return;
	}
}

void mappings_claim_moved(pid_t pid, struct mappings *list)
{
	struct left left = { FILES_MAX, SEGMENTS_MAX, PIECES_MAX };
	struct around a = { 0 };

	for (uint32_t i = 0; i < list->n; i++) {
		struct mapping *m = &list->v[i];

		if (a.head && m->start < a.end) {
			if (m->exec && !same_file(m, a.head))
				claim(pid, &a, m, &left);
		} else if (m->path[0] == '/' && m->inode && !m->offset) {
			around_begin(&a, list, i);
		}
	}
	object_free(a.object);
}
