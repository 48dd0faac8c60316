/* Turns a recording into operations on numbered slots. */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/alloc/live_blocks.h"
#include "memory/alloc/replay.h"

/* Of one thread: a realloc() that has not returned. */
struct moving {
	bool begun, known;
	struct live_block from;
};

enum {
	SIZE_BITS = 47, /* no process can have a larger block */
	SLOT_BYTES = 2 * sizeof(uint64_t),
	BLOCK_OWN = 32, /* a header, and the least size */
	ALIGNED_OWN =
		8192, /* a block at a multiple of pages has its first and last one for itself */
};

struct making {
	struct replay_head head;
	FILE *file;
	struct live live;   /* live_block.stack: the slot; .time: what it counts in `in_use` */
	VEC(uint32_t) free; /* slots */
	VEC(struct moving) threads;
	uint64_t bytes;  /* of live blocks */
	uint64_t in_use; /* memory that allocators need for these, about */
	uint64_t room;   /* of the machine's memory; 0: not known */
};

static void put(struct making *m, enum replay_kind kind, uint32_t slot, uint64_t size,
		uint64_t align)
{
	struct replay_op op = { .size = size, .slot = slot, .kind = (uint8_t)kind };

	op.align = align ? (uint8_t)__builtin_ctzll(align) : 0;
	m->head.nops++;
	fwrite(&op, sizeof(op), 1, m->file);
}

static void leave(struct making *m, const struct live_block *b)
{
	put(m, REPLAY_FREE, b->stack, 0, 0);
	vec_push(&m->free, b->stack);
	m->bytes -= b->size;
	m->in_use -= b->time;
}

static void replay_make_enter(struct making *m, const struct alloc_event *e, uint32_t slot,
			      uint64_t align)
{
	struct live_block b = { .addr = e->addr, .size = e->size, .stack = slot }, old;

	b.time = e->size + BLOCK_OWN + (align < ALIGNED_OWN ? align : ALIGNED_OWN);
	if (!live_put(&m->live, &b, &old)) {
		m->head.skipped++; /* its free was lost */
		leave(m, &old);
	}
	m->bytes += e->size;
	m->in_use += b.time;
	if (m->bytes > m->head.peak_bytes)
		m->head.peak_bytes = m->bytes;
	if (m->in_use > m->head.peak_room)
		m->head.peak_room = m->in_use;
}

static void allocate(struct making *m, const struct alloc_event *e, enum replay_kind kind)
{
	uint32_t slot = m->free.n ? m->free.v[--m->free.n] : (uint32_t)m->head.nslots++;
	uint64_t align =
		kind == REPLAY_ALIGNED && e->align && !(e->align & (e->align - 1)) ? e->align : 0;

	put(m, kind, slot, e->size, align);
	replay_make_enter(m, e, slot, align);
}

static void returned(struct making *m, const struct alloc_event *e, struct moving *t)
{
	bool had = t->begun && t->known;
	struct live_block old;

	t->begun = false;
	if (had && !e->addr && e->size) { /* it failed: the block stays */
		live_put(&m->live, &t->from, &old);
	} else if (had && !e->addr) {
		leave(m, &t->from);
	} else if (had) {
		m->bytes -= t->from.size;
		m->in_use -= t->from.time;
		put(m, REPLAY_REALLOC, t->from.stack, e->size, 0);
		replay_make_enter(m, e, t->from.stack, 0);
	} else if (e->addr) {
		allocate(m, e, REPLAY_MALLOC);
	}
}

/* Returns an error when a process that plays the operations, or this one for its table, needs more
 * memory than there is. The file may be another user's, and a small one can have any number of
 * calls. */
static struct err *check_room(const struct making *m)
{
	const uint64_t growth = live_growth(&m->live), slots = m->head.nslots * SLOT_BYTES,
		       needs = (growth > m->head.peak_room + slots ? growth
								   : m->head.peak_room + slots) +
			       m->head.nops * sizeof(struct replay_op);

	return !m->room || needs <= m->room
		       ? NULL
		       : err_new(ENOMEM,
				 "to play the recording takes %llu MB or more, and this machine "
				 "has %llu MB available",
				 (unsigned long long)(needs >> 20),
				 (unsigned long long)(m->room >> 20));
}

static void replay_make_take(struct making *m, const struct alloc_event *e)
{
	struct live_block b;
	struct moving *t;

	if (e->addr && e->size >> SIZE_BITS) {
		m->head.skipped++;
		return;
	}

	while (m->threads.n <= e->thread)
		vec_add(&m->threads);
	t = &m->threads.v[e->thread];
	switch (e->op) {
	case ALLOC_MALLOC:
	case ALLOC_CALLOC:
	case ALLOC_ALIGNED:
		if (e->addr)
			allocate(m, e,
				 e->op == ALLOC_MALLOC   ? REPLAY_MALLOC
				 : e->op == ALLOC_CALLOC ? REPLAY_CALLOC
							 : REPLAY_ALIGNED);
		return;
	case ALLOC_REALLOC_FROM:
		t->begun = true;
		t->known = live_take(&m->live, e->addr, &t->from);
		m->head.skipped += !t->known;
		return;
	case ALLOC_REALLOC: returned(m, e, t); return;
	case ALLOC_FREE:
		if (live_take(&m->live, e->addr, &b)) {
			leave(m, &b);
		} else if (t->begun && t->known && t->from.addr == e->addr) {
			t->begun = false; /* realloc(p, 0), by free() */
			leave(m, &t->from);
		} else {
			m->head.skipped++;
		}
		return;
	case ALLOC_LOST: m->head.skipped += e->size; return;
	default: return;
	}
}

struct err *replay_make(struct alloc_trace *t, struct replay_head *ret, int *ret_fd)
{
	int fd = memfd_create("descry-replay", 0), own = fd < 0 ? -1 : dup(fd);
	struct making m = { .file = own < 0 ? NULL : fdopen(own, "w"), .room = 2 * t->room };
	struct alloc_event event;
	struct err *e = NULL;

	if (!m.file)
		return err_errno(errno, "a memory file for the operations");
	fwrite(&m.head, sizeof(m.head), 1, m.file);
	while (!e && alloc_next(t, &event, &e)) {
		replay_make_take(&m, &event);
		e = check_room(&m);
	}
	if (!e && (fseek(m.file, 0, SEEK_SET) || fwrite(&m.head, sizeof(m.head), 1, m.file) != 1))
		e = err_errno(errno, "the operations");
	if (fclose(m.file) && !e)
		e = err_errno(errno, "the operations");
	live_fini(&m.live);
	vec_fini(&m.free);
	vec_fini(&m.threads);
	*ret = m.head;
	if (e)
		close(fd);
	else
		*ret_fd = fd;
	return e;
}

struct err *replay_find(const char *name, struct replay_allocator *ret, struct arena *a)
{
	static const struct {
		const char *name, *pattern, *package;
	} known[] = {
		{ "jemalloc", "/usr/lib/*-linux-gnu*/libjemalloc.so.2", "libjemalloc2" },
		{ "tcmalloc", "/usr/lib/*-linux-gnu*/libtcmalloc_minimal.so.4",
		  "libtcmalloc-minimal4" },
		{ "mimalloc", "/usr/lib/*-linux-gnu*/libmimalloc.so.2*", "libmimalloc2.0" },
	};
	glob_t g;

	*ret = (struct replay_allocator){ .name = arena_strdup(a, name) };
	if (!strcmp(name, "glibc"))
		return NULL;
	if (strchr(name, '/')) {
		char *path = realpath(name, NULL); /* LD_PRELOAD takes neither ':' nor blanks */
		struct err *e = NULL;

		if (!path)
			return err_errno(errno, "%s", name);
		if (strpbrk(path, ": "))
			e = err_new(EINVAL, "%s: LD_PRELOAD has no way to name it", path);
		ret->path = arena_strdup(a, path);
		ret->name = strrchr(ret->path, '/') + 1;
		free(path);
		return e;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, name))
			continue;
		if (!glob(known[i].pattern, 0, NULL, &g)) {
			ret->path = arena_strdup(a, g.gl_pathv[0]);
			globfree(&g);
			return NULL;
		}
		return err_new(ENOENT, "%s is not installed: apt-get install %s", name,
			       known[i].package);
	}
	return err_new(EINVAL,
		       "%s is no allocator that descry knows: glibc, jemalloc, tcmalloc, "
		       "mimalloc or the path of a library",
		       name);
}
