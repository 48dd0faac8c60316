/* Patches text: reads runs of pages, verifies them, and writes stretches of them. The bytes between
 * patches are written back as they were read, unless a uprobe of another tracer may be there. The
 * kernel removes it also while the process is stopped, and a breakpoint that was written back would
 * stay for ever.
 *
 * The kernel copies page by page and stops between two pages when the writer is killed. So within a
 * page a patch is either whole or absent. A patch across a page boundary is written in three steps,
 * each of which leaves code that can run: first a jump to itself in front of the boundary, then the
 * bytes behind the boundary, then those in front. If the tracer is killed in between, threads loop
 * there until the undo log is applied. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <sys/ptrace.h>

#include "target_private.h"

enum {
	BREAKPOINT = 0xcc,
	CALL = 0xe8,
	CALL_BYTES = 5, /* a uprobe in place of a nop has so many */
};

static const char UPROBES[] = "[uprobes-trampoline]";
static const uint8_t hold[] = { 0xeb, 0xfe };

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(uint64_t)(CONTROL_PAGE - 1);
}

/* Writes by PTRACE_POKETEXT, for kernels where /proc/PID/mem obeys the protection
 * (proc_mem.force_override=never). */
static struct err *poke(struct control *c, uint64_t addr, const uint8_t *p, uint32_t n)
{
	pid_t tid = c->threads.n ? 0 : c->pid;

	for (uint32_t i = 0; i < c->threads.n; i++)
		if (c->threads.v[i].proved && !c->threads.v[i].blocked && !c->threads.v[i].guest)
			tid = c->threads.v[i].tid;
	if (!tid)
		return err_new(EBUSY, "process %d (%s): no thread can write to its text now",
			       c->pid, c->name);
	while (n) {
		uint32_t part = n < 8 ? n : 8;
		uint8_t word[8];
		uint64_t at = addr;

		/* The last word ends where the bytes end, if this keeps it in the page. */
		if (part < 8 && page_of(addr + 7) != page_of(addr))
			at = addr + part - 8;
		if (control_pread(c, word, sizeof(word), at) != sizeof(word))
			return err_errno(errno, "cannot read the text of process %d", c->pid);
		memcpy(word + (addr - at), p, part);
		if (ptrace(PTRACE_POKETEXT, tid, at, *(uint64_t *)(void *)word) < 0)
			return err_errno(errno, "cannot write to the text of process %d (%s)",
					 c->pid, c->name);
		addr += part;
		p += part;
		n -= part;
	}
	return NULL;
}

struct err *control_write_text(struct control *c, uint64_t addr, const void *buf, uint32_t n)
{
	ssize_t r;

	if (c->no_mem_write)
		return poke(c, addr, buf, n);
	r = control_pwrite(c, buf, n, addr);
	if (r == (ssize_t)n)
		return NULL;
	if (r > 0)
		return err_new(EFAULT,
			       "process %d (%s): text at 0x%llx goes away while it is written",
			       c->pid, c->name, (unsigned long long)addr + (uint64_t)r);
	c->no_mem_write = true;
	return poke(c, addr, buf, n);
}

/* Writes a patch in parts: a jump to itself, the bytes from `first` on, then the `first` bytes. */
static struct err *write_parts(struct control *c, const struct control_patch *p, uint32_t first)
{
	struct err *e = control_write_text(c, p->addr, hold, sizeof(hold));

	e = e ?: control_write_text(c, p->addr + first, p->put + first, p->len - first);
	return e ?: control_write_text(c, p->addr, p->put, first);
}

/* Returns where a patch is cut: at the page boundary, or, without /proc/PID/mem, after the first
 * word. Returns 0 when it is written at once. */
static uint32_t cut_of(const struct control *c, const struct control_patch *p)
{
	uint64_t next = page_of(p->addr) + CONTROL_PAGE;

	if (p->addr + p->len > next)
		return (uint32_t)(next - p->addr);
	return c->no_mem_write && p->len > 8 ? 8 : 0;
}

static uint64_t end_of(const struct control_patch *p)
{
	return page_of(p->addr + p->len - 1) + CONTROL_PAGE;
}

struct run {
	uint64_t lo, hi;   /* pages */
	uint32_t first, n; /* patches */
};

/* Returns true when a patch is to be written. had: the bytes that are there. */
static bool verify_patch(const struct control *c, struct control_patch *p, const uint8_t *had)
{
	if (!memcmp(had, p->put, p->len))
		return false;
	p->skipped = memcmp(had, p->expect, p->len) || cut_of(c, p) == 1;
	return !p->skipped;
}

/* Returns true when a call at addr leads to the code that Linux 6.18 calls instead of a breakpoint.
 * maps: NULL when there is none. */
static bool calls_kernel(const struct mappings *maps, const uint8_t *call, uint64_t addr)
{
	const struct mapping *m;
	int32_t distance;
	uint64_t to;

	if (!maps || *call != CALL)
		return false;
	memcpy(&distance, call + 1, sizeof(distance));
	to = addr + CALL_BYTES + (uint64_t)(int64_t)distance;
	m = mappings_find(maps, to);
	return m && !strcmp(m->path, UPROBES);
}

/* A stretch of a run. */
struct stretch {
	struct control *c;
	const struct mappings *maps; /* of calls_kernel() */
	uint8_t *buf;                /* the run's bytes, from lo on */
	uint64_t lo, at, end;        /* at == end: it is empty */
};

static struct err *write_stretch(struct stretch *s)
{
	struct err *e = NULL;

	if (s->at < s->end)
		e = control_write_text(s->c, s->at, s->buf + (s->at - s->lo),
				       (uint32_t)(s->end - s->at));
	s->at = s->end = 0;
	return e;
}

/* Returns true when the bytes up to addr belong to no uprobe. */
static bool are_quiet(const struct stretch *s, uint64_t addr)
{
	for (uint64_t a = s->end; a < addr; a++)
		if (s->buf[a - s->lo] == BREAKPOINT ||
		    (addr - a >= CALL_BYTES && calls_kernel(s->maps, s->buf + (a - s->lo), a)))
			return false;
	return true;
}

static struct err *put_in_stretch(struct stretch *s, const struct control_patch *p)
{
	struct err *e = NULL;

	if (s->at == s->end || !are_quiet(s, p->addr)) {
		e = write_stretch(s);
		s->at = p->addr;
	}
	memcpy(s->buf + (p->addr - s->lo), p->put, p->len);
	s->end = p->addr + p->len;
	return e;
}

static struct err *patch_run(struct control *c, struct control_patch *p, const struct run *r,
			     const struct mappings *maps)
{
	cleanup_free uint8_t *buf = xmalloc(r->hi - r->lo);
	struct stretch s = { .c = c, .maps = maps, .buf = buf, .lo = r->lo };
	struct err *e = control_read(c, r->lo, buf, (uint32_t)(r->hi - r->lo));

	if (e && r->n > 1) { /* a part of the run is unmapped (dlclose) */
		err_free(e);
		e = NULL;
		for (uint32_t i = r->first; !e && i < r->first + r->n; i++)
			e = patch_run(c, p,
				      &(struct run){ .lo = page_of(p[i].addr),
						     .hi = end_of(&p[i]),
						     .first = i,
						     .n = 1 },
				      maps);
		return e;
	}
	if (err_drop(e)) {
		p[r->first].skipped = true;
		return NULL;
	}
	e = NULL;
	for (uint32_t i = r->first; !e && i < r->first + r->n; i++) {
		uint32_t cut = cut_of(c, &p[i]);

		if (!verify_patch(c, &p[i], buf + (p[i].addr - r->lo)))
			continue;
		if (cut || c->no_mem_write)
			e = write_stretch(&s);
		if (cut)
			e = e ?: write_parts(c, &p[i], cut);
		else
			e = e ?: put_in_stretch(&s, &p[i]);
	}
	return e ?: write_stretch(&s);
}

/* Tests whether /proc/PID/mem writes to text, by writing a byte with its own value. */
static void try_write(struct control *c, uint64_t addr)
{
	uint8_t byte;

	if (!c->no_mem_write && control_pread(c, &byte, 1, addr) == 1 &&
	    control_pwrite(c, &byte, 1, addr) != 1)
		c->no_mem_write = true;
}

struct err *control_patch_text(struct control *c, struct control_patch *p, uint32_t n,
			       uint32_t *ret_skipped)
{
	struct err *e = control_put_regs(c);
	const struct mappings *maps;
	bool has_uprobes = false;
	uint32_t skipped = 0;

	assert(c->stopped);
	for (uint32_t i = 0; i < n; i++)
		p[i].skipped = false;
	if (n)
		try_write(c, p[0].addr);
	e = e ?: control_maps(c, &maps);
	for (uint32_t i = 0; !e && i < maps->n; i++)
		has_uprobes |= !strcmp(maps->v[i].path, UPROBES);
	for (uint32_t i = 0; !e && i < n;) {
		struct run r = { page_of(p[i].addr), end_of(&p[i]), i, 0 };

		while (i < n && page_of(p[i].addr) <= r.hi && r.hi - r.lo < 1 << 20) {
			assert(p[i].len && p[i].len <= CONTROL_PATCH_MAX);
			assert(i == r.first || p[i].addr >= p[i - 1].addr + p[i - 1].len);
			if (end_of(&p[i]) > r.hi)
				r.hi = end_of(&p[i]);
			r.n++;
			i++;
		}
		e = patch_run(c, p, &r, has_uprobes ? maps : NULL);
	}
	for (uint32_t i = 0; i < n; i++)
		skipped += p[i].skipped;
	*ret_skipped = skipped;
	return e;
}
