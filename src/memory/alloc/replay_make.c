/* Turns a recording into operations on numbered slots. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/io.h"
#include "base/outfile.h"
#include "memory/alloc/live_blocks.h"
#include "memory/alloc/replay.h"

/* A thread of the replay. */
struct lane {
	uint32_t number;
	uint64_t calls;
	bool timed; /* it has had an AT: */
	uint64_t at;
	uint64_t meeting; /* whose calls it has waited for */
	uint64_t chunk;   /* whose operations are */
	struct replay_op ops[REPLAY_CHUNK];
	uint32_t nops;
	VEC(uint32_t) free;   /* slots */
	VEC(uint64_t) waited; /* by lane: it has waited for so many of its calls */
};

/* A thread of the recording. */
struct recorded_thread {
	bool begun, known; /* a realloc() that has not returned; `from` was recorded */
	struct live_block from;
	struct lane *lane; /* NULL: none yet */
	uint64_t left;     /* events to come, with lanes of threads */
};

/* The last call on a slot. */
struct last_call {
	uint32_t lane;
	uint64_t calls; /* of the lane, with it; 0: there was none */
};

enum {
	OPS_AN_EVENT = 64,  /* most operations that an event may have, on average */
	OPS_FREE = 1 << 20, /* that are not held against this */
	SIZE_BITS = 47,     /* no process can have a larger block */
	SLOT_BYTES = 2 * sizeof(uint64_t),
	APART_MIN = 32 << 20,
	BLOCK_OWN = 32, /* a header, and the least size */
	ALIGNED_OWN =
		8192, /* a block at a multiple of pages has its first and last one for itself */
};

struct making {
	struct replay_head head;
	uint64_t nevents, nops;
	int fd;
	char *path;       /* of the folder on disk that fd is in; NULL: it is in memory */
	struct live live; /* live_block.stack: the slot; .time: what it counts in `in_use` */
	VEC(struct recorded_thread) threads;
	VEC(struct lane *) lanes;
	VEC(struct lane *) idle;
	VEC(struct last_call) slots;
	VEC(uint64_t) met; /* by lane: its calls before the last meeting */
	uint64_t meetings;
	uint64_t apart; /* bytes allocated since that */
	bool same_threads;
	uint64_t bytes;  /* of live blocks */
	uint64_t in_use; /* memory that allocators need for these, about */
	uint64_t room;   /* of the machine's memory; 0: not known */
	struct err *e;   /* the first */
};

static const char IN_MEMORY[] = "a memory file for the operations";

static uint64_t bytes_of_operations(const struct making *m)
{
	return (m->head.nchunks + m->lanes.n) * REPLAY_CHUNK * sizeof(struct replay_op);
}

/* Moves the operations from memory to a file on disk, which nobody else can open. */
static void move_to_disk(struct making *m)
{
	const char *dir = getenv("TMPDIR");
	char *path = xstrdup(dir && *dir ? dir : "/var/tmp");
	int fd = outfile_unnamed(path), error = fd < 0 ? errno : 0;
	off_t at = 0;
	ssize_t k;

	while (!error && (k = sendfile(fd, m->fd, &at, 1 << 30)) != 0)
		if (k < 0 && errno != EINTR)
			error = errno;
	m->path = path;
	if (error)
		m->e = err_errno(error, "a file in %s", path);
	if (fd < 0)
		return;
	close(m->fd);
	m->fd = fd;
}

static void write_at(struct making *m, const void *p, size_t n, uint64_t at)
{
	while (n && !m->e) {
		ssize_t k = pwrite(m->fd, p, n, (off_t)at);

		if (k < 0 && errno != EINTR)
			m->e = err_errno(errno, "%s", m->path ?: IN_MEMORY);
		k = k < 0 ? 0 : k;
		p = (const char *)p + k;
		n -= (size_t)k;
		at += (size_t)k;
	}
}

static void end_chunk(struct making *m, struct lane *l, const struct replay_op *last)
{
	l->ops[l->nops] = *last;
	write_at(m, l->ops, sizeof(l->ops), sizeof(m->head) + l->chunk * sizeof(l->ops));
}

static void put_op(struct making *m, struct lane *l, const struct replay_op *op)
{
	if (l->nops == REPLAY_CHUNK - 1) {
		end_chunk(m, l,
			  &(struct replay_op){ .kind = REPLAY_NEXT, .size = m->head.nchunks });
		l->chunk = m->head.nchunks++;
		l->nops = 0;
	}
	l->ops[l->nops++] = *op;
	m->nops++;
}

/* Returns the lane of a thread's event. NULL: there would be too many. */
static struct lane *lane_of(struct making *m, struct recorded_thread *t)
{
	struct lane *l;

	if (!m->same_threads && m->lanes.n)
		return m->lanes.v[0];
	if (!t->lane && m->idle.n)
		t->lane = m->idle.v[--m->idle.n];
	if (t->lane)
		return t->lane;
	if (m->lanes.n == REPLAY_LANES_MAX) {
		m->e = err_new(EINVAL,
			       "more than %d threads allocate at one time: one thread can play "
			       "their calls (--threads 1)",
			       REPLAY_LANES_MAX);
		return NULL;
	}
	l = t->lane = xcalloc(1, sizeof(*l));
	l->number = m->lanes.n;
	l->chunk = m->head.first[l->number] = m->head.nchunks++;
	vec_push(&m->lanes, l);
	return l;
}

/* Lets a lane wait until another has made so many calls. */
static void wait_for_lane(struct making *m, struct lane *l, uint32_t other, uint64_t calls)
{
	struct replay_op wait = { .kind = REPLAY_WAIT, .slot = other, .size = calls };

	if (other == l->number)
		return;
	while (l->waited.n <= other)
		vec_add(&l->waited);
	if (l->waited.v[other] >= calls)
		return;
	l->waited.v[other] = calls;
	put_op(m, l, &wait);
}

/* Returns the memory that allocators need for a block, about. align: 0 for none */
static uint64_t memory_of(uint64_t size, uint64_t align)
{
	return size + BLOCK_OWN + (align < ALIGNED_OWN ? align : ALIGNED_OWN);
}

/* Returns how much memory the lanes may allocate between two meetings. */
static uint64_t most_apart(const struct making *m)
{
	const uint64_t part = m->head.peak_room / 4;

	return part > APART_MIN ? part : APART_MIN;
}

/* Lets the lanes meet, each time they have allocated a part of the peak. A lane that ran ahead
 * of the frees of others could otherwise hold any multiple of the memory that the recorded
 * program held. */
static void meet(struct making *m, struct lane *l, const struct replay_op *op)
{
	const uint64_t memory = op->kind == REPLAY_FREE ? 0
							: memory_of(op->size, 1ull << op->align);

	m->apart += memory;
	if (m->apart > most_apart(m)) {
		m->apart = memory;
		m->meetings++;
		m->met.n = 0;
		for (uint32_t i = 0; i < m->lanes.n; i++)
			vec_push(&m->met, m->lanes.v[i]->calls);
	}
	if (l->meeting == m->meetings)
		return;
	l->meeting = m->meetings;
	for (uint32_t i = 0; i < m->met.n; i++)
		wait_for_lane(m, l, i, m->met.v[i]);
}

static void put_call(struct making *m, struct lane *l, const struct replay_op *op)
{
	struct last_call *c = &m->slots.v[op->slot];

	meet(m, l, op);
	if (c->calls)
		wait_for_lane(m, l, c->lane, c->calls);
	put_op(m, l, op);
	*c = (struct last_call){ l->number, ++l->calls };
	m->head.ncalls++;
}

static void leave(struct making *m, struct lane *l, const struct live_block *b)
{
	put_call(m, l, &(struct replay_op){ .kind = REPLAY_FREE, .slot = b->stack });
	vec_push(&l->free, b->stack);
	m->bytes -= b->size;
	m->in_use -= b->time;
}

static void replay_make_enter(struct making *m, struct lane *l, const struct alloc_event *e,
			      uint32_t slot, uint64_t align)
{
	struct live_block b = { .addr = e->addr, .size = e->size, .stack = slot }, old;

	b.time = memory_of(e->size, align);
	if (!live_put(&m->live, &b, &old)) {
		m->head.skipped++; /* its free was lost */
		leave(m, l, &old);
	}
	m->bytes += e->size;
	m->in_use += b.time;
	if (m->bytes > m->head.peak_bytes)
		m->head.peak_bytes = m->bytes;
	if (m->in_use > m->head.peak_room)
		m->head.peak_room = m->in_use;
}

static void allocate(struct making *m, struct lane *l, const struct alloc_event *e,
		     enum replay_kind kind)
{
	struct replay_op op = { .kind = (uint8_t)kind, .size = e->size };
	uint64_t align = 0;

	if (l->free.n) {
		op.slot = l->free.v[--l->free.n];
	} else {
		op.slot = m->slots.n;
		vec_add(&m->slots);
	}
	if (kind == REPLAY_ALIGNED && e->align && !(e->align & (e->align - 1)))
		align = e->align;
	op.align = align ? (uint8_t)__builtin_ctzll(align) : 0;
	put_call(m, l, &op);
	replay_make_enter(m, l, e, op.slot, align);
}

static void returned(struct making *m, struct lane *l, const struct alloc_event *e,
		     struct recorded_thread *t)
{
	bool had = t->begun && t->known;
	struct live_block old;

	t->begun = false;
	if (had && !e->addr && e->size) { /* it failed: the block stays */
		live_put(&m->live, &t->from, &old);
	} else if (had && !e->addr) {
		leave(m, l, &t->from);
	} else if (had) {
		struct replay_op op = { .kind = REPLAY_REALLOC,
					.size = e->size,
					.slot = t->from.stack };

		m->bytes -= t->from.size;
		put_call(m, l, &op);
		replay_make_enter(m, l, e, op.slot, 0);
		m->in_use -= t->from.time; /* both are there while the bytes are copied */
	} else if (e->addr) {
		allocate(m, l, e, REPLAY_MALLOC);
	}
}

/* Returns an error when the operations need more of the disk than there is, or when nearly all of
 * them are waits. Hundreds of threads that each allocate large parts of the peak would need as many
 * waits for each call, in any number from a small file. */
static struct err *check_disk(const struct making *m)
{
	if (m->nops > OPS_FREE && m->nops / OPS_AN_EVENT > m->nevents)
		return err_new(EINVAL,
			       "the %u threads of the recording wait for each other too often: "
			       "one thread can play their calls (--threads 1)",
			       m->lanes.n);
	if (m->path && !io_disk_has(m->fd, REPLAY_CHUNK * sizeof(struct replay_op)))
		return err_errno(ENOSPC, "%s", m->path);
	return NULL;
}

/* Returns an error when a process that plays the operations, or this one for its table, needs more
 * memory than there is. The file may be another user's, and a small one can have any number of
 * calls. */
static struct err *check_room(const struct making *m)
{
	const uint64_t growth = live_growth(&m->live), ahead = m->lanes.n < 2 ? 0 : most_apart(m),
		       slots = m->slots.n * (uint64_t)SLOT_BYTES,
		       needs = (growth > m->head.peak_room + slots ? growth
								   : m->head.peak_room + slots) +
			       ahead + (m->path ? 0 : bytes_of_operations(m));

	return !m->room || needs <= m->room
		       ? NULL
		       : err_new(ENOMEM,
				 "to play the recording takes %llu MB or more, and this machine "
				 "can spare %llu MB",
				 (unsigned long long)(needs >> 20),
				 (unsigned long long)(m->room >> 20));
}

static void take_call(struct making *m, struct recorded_thread *t, struct lane *l,
		      const struct alloc_event *e)
{
	struct live_block b;

	switch (e->op) {
	case ALLOC_MALLOC:
	case ALLOC_CALLOC:
	case ALLOC_ALIGNED:
		if (e->addr)
			allocate(m, l, e,
				 e->op == ALLOC_MALLOC   ? REPLAY_MALLOC
				 : e->op == ALLOC_CALLOC ? REPLAY_CALLOC
							 : REPLAY_ALIGNED);
		return;
	case ALLOC_REALLOC_FROM:
		t->begun = true;
		t->known = live_take(&m->live, e->addr, &t->from);
		m->head.skipped += !t->known;
		return;
	case ALLOC_REALLOC: returned(m, l, e, t); return;
	case ALLOC_FREE:
		if (live_take(&m->live, e->addr, &b)) {
			leave(m, l, &b);
		} else if (t->begun && t->known && t->from.addr == e->addr) {
			t->begun = false; /* realloc(p, 0), by free() */
			leave(m, l, &t->from);
		} else {
			m->head.skipped++;
		}
		return;
	default: return;
	}
}

static struct recorded_thread *thread_of(struct making *m, uint32_t thread)
{
	while (m->threads.n <= thread)
		vec_add(&m->threads);
	return &m->threads.v[thread];
}

static void replay_make_take(struct making *m, const struct alloc_event *e)
{
	struct recorded_thread *t = thread_of(m, e->thread);
	struct lane *l;

	m->nevents++;
	if (e->time > m->head.duration)
		m->head.duration = e->time;
	if (e->op == ALLOC_LOST) {
		m->head.skipped += e->size;
		return;
	}
	l = lane_of(m, t);
	if (!l)
		return;
	if (!l->timed || e->time >= l->at + REPLAY_STEP) {
		put_op(m, l, &(struct replay_op){ .kind = REPLAY_AT, .size = e->time });
		l->timed = true;
		l->at = e->time;
	}
	if (e->op < ALLOC_LOST && e->addr && e->size >> SIZE_BITS)
		m->head.skipped++;
	else
		take_call(m, t, l, e);
	if (m->same_threads && !--t->left) {
		vec_push(&m->idle, t->lane);
		t->lane = NULL;
	}
}

/* Counts the events of each thread, whose last one frees its lane. */
static struct err *count_events(struct making *m, struct alloc_trace *t)
{
	struct alloc_event event;
	struct err *e = NULL;

	while (alloc_next(t, &event, &e))
		thread_of(m, event.thread)->left += event.op != ALLOC_LOST;
	alloc_rewind(t);
	return e;
}

static void end_lanes(struct making *m)
{
	for (uint32_t i = 0; i < m->lanes.n && !m->e; i++)
		end_chunk(m, m->lanes.v[i], &(struct replay_op){ .kind = REPLAY_END });
	m->head.nlanes = m->lanes.n;
	m->head.nslots = m->slots.n;
	write_at(m, &m->head, sizeof(m->head), 0);
}

struct err *replay_make(struct alloc_trace *t, bool same_threads, struct replay_head *ret,
			int *ret_fd)
{
	struct making m = { .fd = memfd_create("descry-replay", MFD_CLOEXEC),
			    .same_threads = same_threads,
			    .room = t->room / 4 * 7 };
	uint64_t checked = 0;
	struct alloc_event event;

	if (m.fd < 0)
		return err_errno(errno, "%s", IN_MEMORY);
	if (same_threads)
		m.e = count_events(&m, t);
	while (!m.e && alloc_next(t, &event, &m.e)) {
		replay_make_take(&m, &event);
		if (m.room && !m.path && !m.e && bytes_of_operations(&m) > m.room / 4)
			move_to_disk(&m);
		m.e = m.e ?: check_room(&m);
		if (m.head.nchunks > checked && !m.e) {
			m.e = check_disk(&m);
			checked = m.head.nchunks;
		}
	}
	m.e = m.e ?: alloc_unchanged(t);
	if (!m.e)
		end_lanes(&m);
	for (uint32_t i = 0; i < m.lanes.n; i++) {
		vec_fini(&m.lanes.v[i]->free);
		vec_fini(&m.lanes.v[i]->waited);
		free(m.lanes.v[i]);
	}
	vec_fini(&m.lanes);
	vec_fini(&m.met);
	vec_fini(&m.idle);
	vec_fini(&m.slots);
	live_fini(&m.live);
	vec_fini(&m.threads);
	free(m.path);
	*ret = m.head;
	if (m.e)
		close(m.fd);
	else
		*ret_fd = m.fd;
	return m.e;
}
