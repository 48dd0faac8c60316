/* An address space over a copy: readers of structures see the moment of the copy. */
#include "base/sorted.h"
#include "memory/copy/memory_copy.h"

struct copied {
	struct space space; /* first */
	const struct memory_copy *copy;
	struct space *from;
};

static struct copied *copied_of(struct space *s)
{
	return (struct copied *)s;
}

static struct err *copied_mappings(struct space *s, uint64_t time, const struct mappings **ret)
{
	return space_mappings(copied_of(s)->from, time, ret);
}

/* Reads the pages that the process has made; all others have the bytes of their files, or zeros. */
static uint32_t copied_read(struct space *s, uint64_t addr, void *buf, uint32_t n,
			    uint32_t *ret_gap)
{
	const struct memory_copy *c = copied_of(s)->copy;
	uint32_t i = partition_point(c->runs.n, k, c->runs.v[k].end <= addr);
	const struct space_range *run = &c->runs.v[i];
	const struct memory_region *r;

	if (i == c->runs.n)
		return 0;
	if (run->start > addr) {
		if (run->start - addr < *ret_gap)
			*ret_gap = (uint32_t)(run->start - addr);
		return 0;
	}
	r = memory_region_at(c, addr);
	if (!r)
		return 0;
	if (n > run->end - addr)
		n = (uint32_t)(run->end - addr);
	memcpy(buf, r->bytes + (addr - r->start), n);
	return n;
}

static uint32_t copied_read_below(struct space *s, uint64_t addr, void *buf, uint32_t n,
				  uint32_t *ret_gap)
{
	(void)ret_gap;
	return space_read_some(copied_of(s)->from, addr, buf, n);
}

static char *copied_open_path(struct space *s, const struct mapping *m)
{
	return space_open_path(copied_of(s)->from, m);
}

static void copied_free(struct space *s)
{
	free(copied_of(s));
}

struct space *memory_copy_space(const struct memory_copy *c, struct space *from)
{
	static const struct space_ops ops = {
		.mappings = copied_mappings,
		.memory = { { "the copy of its memory", copied_read },
			    { "its files", copied_read_below } },
		.open_path = copied_open_path,
		.free = copied_free,
	};
	struct copied *s = xcalloc(1, sizeof(*s));

	s->space = (struct space){ .ops = &ops, .name = xstrdup(from->name), .pid = from->pid };
	s->copy = c;
	s->from = from;
	return &s->space;
}
