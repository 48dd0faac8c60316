/* The address space of a process in a recording: its mappings, one after the other.
 *
 * A forked process shares its parent's list until one of the two changes it. */
#include "program/space/space.h"

enum {
	ROOM_MAX = 16 << 20,
	/* The kernel permits 65,530 unless it is told otherwise. */
	PROCESS_MAX = 1 << 17,
};
/* 22 GB, less than a second: 24,000 mappings, each of them below all others, move as many. */
#define MOVES_MAX 300000000ull

/* Shared mappings. */
struct list {
	struct mappings mappings; /* after the last record read */
	struct space_record_room *room;
	uint32_t refs, state;
};

struct record {
	struct space space; /* first member */
	struct list *list;
};

static struct record *record_of(struct space *s)
{
	return (struct record *)s;
}

static void list_drop(struct list *l)
{
	if (--l->refs)
		return;
	l->room->n -= l->mappings.n;
	mappings_free(&l->mappings);
	free(l);
}

/* Returns a list that only this space has, so that it can be changed. */
static struct list *own_list(struct record *r)
{
	struct list *l = r->list, *copy;

	if (l->refs == 1)
		return l;
	copy = xcalloc(1, sizeof(*copy));
	copy->refs = 1;
	copy->room = l->room;
	copy->room->n += l->mappings.n;
	vec_reserve(&copy->mappings, l->mappings.n);
	if (l->mappings.n)
		memcpy(copy->mappings.v, l->mappings.v, l->mappings.n * sizeof(*l->mappings.v));
	copy->mappings.n = l->mappings.n;
	list_drop(l);
	r->list = copy;
	return copy;
}

static struct err *record_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	(void)time; /* the recording is read in the order of time */
	*ret = &record_of(s)->list->mappings;
	return NULL;
}

static void record_free(struct space *s)
{
	list_drop(record_of(s)->list);
	free(s);
}

static struct space *record_new(pid_t pid, struct list *list)
{
	static const struct space_ops ops = { .mappings = record_mappings, .free = record_free };
	struct record *r = xcalloc(1, sizeof(*r));

	list->refs++;
	r->list = list;
	r->space = (struct space){ .ops = &ops,
				   .name = xasprintf("process %d, as it was recorded", (int)pid),
				   .pid = pid,
				   .record = true };
	return &r->space;
}

struct space *space_record(pid_t pid, struct space_record_room *room)
{
	struct list *l = xcalloc(1, sizeof(*l));

	l->room = room;
	return record_new(pid, l);
}

struct space *space_record_fork(struct space *parent, pid_t pid)
{
	return record_new(pid, record_of(parent)->list);
}

void space_record_map(struct space *s, const struct mapping *m, uint32_t state)
{
	struct list *l = record_of(s)->list;
	struct space_record_room *room = l->room;
	uint64_t copied = l->refs > 1 ? l->mappings.n : 0,
		 moves = copied + l->mappings.n - mappings_from(&l->mappings, m->start);

	if (l->mappings.n >= PROCESS_MAX || room->n + copied + 1 > (room->most ?: ROOM_MAX) ||
	    room->moved + moves > (room->most_moved ?: MOVES_MAX)) {
		room->left_out++;
		return;
	}
	room->moved += moves;
	l = own_list(record_of(s));
	l->state = state;
	room->n -= l->mappings.n;
	mappings_put(&l->mappings, m);
	room->n += l->mappings.n;
}

uint32_t space_record_state(const struct space *s)
{
	return ((const struct record *)s)->list->state;
}
