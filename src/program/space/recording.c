/* The address space of a process in a recording: its mappings, one after the other.
 *
 * A forked process shares its parent's list until one of the two changes it. */
#include "program/space/space.h"

/* Shared mappings. */
struct list {
	struct mappings mappings; /* after the last record read */
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

struct space *space_record(pid_t pid)
{
	return record_new(pid, xcalloc(1, sizeof(struct list)));
}

struct space *space_record_fork(struct space *parent, pid_t pid)
{
	return record_new(pid, record_of(parent)->list);
}

void space_record_map(struct space *s, const struct mapping *m, uint32_t state)
{
	struct list *l = own_list(record_of(s));

	l->state = state;
	mappings_put(&l->mappings, m);
}

uint32_t space_record_state(const struct space *s)
{
	return ((const struct record *)s)->list->state;
}
