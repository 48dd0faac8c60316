/* An address space over a copy: readers of structures see the moment of the copy. */
#include "base/sorted.h"
#include "memory/copy/memory_copy.h"

enum { CACHED_PAGES = 64 };

struct copied {
	struct space space; /* first */
	const struct memory_copy *copy;
	struct space *from;
	/* The last pages that were read in `from`: tables of a library are read word by word. */
	struct cached_page {
		uint64_t addr; /* 1: none */
		uint32_t n;    /* bytes that could be read */
		uint8_t bytes[MEMORY_PAGE];
	} pages[CACHED_PAGES];
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
	const uint64_t at = addr & ~(MEMORY_PAGE - 1ull);
	struct cached_page *p = &copied_of(s)->pages[at / MEMORY_PAGE % CACHED_PAGES];

	(void)ret_gap;
	if (addr - at + n > MEMORY_PAGE)
		return space_read_some(copied_of(s)->from, addr, buf, n);
	if (p->addr != at) {
		p->addr = at;
		p->n = space_read_some(copied_of(s)->from, at, p->bytes, MEMORY_PAGE);
	}
	if (addr - at >= p->n)
		return 0;
	if (n > at + p->n - addr)
		n = (uint32_t)(at + p->n - addr);
	memcpy(buf, p->bytes + (addr - at), n);
	return n;
}

static struct err *copied_auxv(struct space *s, const uint64_t **ret, uint32_t *ret_n)
{
	struct space *from = copied_of(s)->from;

	*ret_n = 0;
	return from->ops->auxv ? from->ops->auxv(from, ret, ret_n) : NULL;
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
		.auxv = copied_auxv,
		.open_path = copied_open_path,
		.free = copied_free,
	};
	struct copied *s = xcalloc(1, sizeof(*s));

	s->space = (struct space){ .ops = &ops, .name = xstrdup(from->name), .pid = from->pid };
	s->copy = c;
	s->from = from;
	for (uint32_t i = 0; i < CACHED_PAGES; i++)
		s->pages[i].addr = 1;
	return &s->space;
}
