/* Scans stacks for signal frames, and for references to a range of code.
 *
 *	rt_sigframe + 0    return address: the restorer (mov $15, %rax; syscall)
 *	            + 8    uc_flags, uc_link, uc_stack
 *	            + 48   sigcontext: r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags cs gs fs ss ...
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/sorted.h"
#include "target_private.h"

enum {
	FRAME_FLAGS = 8,
	FRAME_RSP = 168,
	FRAME_RIP = 176,
	FRAME_CS = 192,
	FRAME_SS = 198,
	FRAME_SIZE = 200,
	STACK_MAX = 64 << 20, /* scanned in each stack at most */
	CHUNK = 256 << 10,
};

/* Limits of a scan, because a process may write frames that the kernel did not make: on the number
 * of frames, on words that look like a frame's return address but are none, and on the time of all
 * scans in one stop together. */
enum { FRAMES_MAX = 256, FRAMES_PER_THREAD = 16, READS_MAX = 1 << 14 };
static const uint64_t SCAN_NS = 5ull * 1000 * 1000 * 1000;

struct scan {
	struct control *c;
	VEC(struct control_range) stacks; /* live parts to be scanned */
	VEC(struct control_range) known;  /* live parts found so far: sorted and disjoint */
	VEC(uint64_t) restorers;
	uint8_t *buf;
	void (*fn)(void *arg, uint64_t *pc); /* NULL: search for references */
	void *arg;
	const struct control_range *ranges;
	uint32_t nranges;
	uint32_t frames, frames_max, reads;
	uint64_t begun, deadline;
	bool words, found, spent; /* spent: a limit above is reached */
};

/* Returns the index of the first known part that ends above addr. */
static uint32_t known_above(const struct scan *s, uint64_t addr)
{
	return partition_point(s->known.n, i, s->known.v[i].hi <= addr);
}

/* Replaces the known parts [first, end) by r, which covers them. */
static void replace_known(struct scan *s, uint32_t first, uint32_t end, struct control_range r)
{
	uint32_t left = s->known.n - end;

	if (first == end)
		vec_add(&s->known);
	memmove(&s->known.v[first + 1], &s->known.v[end], left * sizeof(r));
	s->known.v[first] = r;
	s->known.n = first + 1 + left;
}

/* Adds the unknown parts of the live stack [sp, end of its mapping). */
static void add_stack(struct scan *s, uint64_t sp)
{
	const struct mapping *m = mappings_find(&s->c->maps, sp);
	uint32_t first, end;
	uint64_t at, hi;

	if (!m || !m->read || !m->write)
		return;
	at = sp &= ~7ull;
	hi = m->end - sp > STACK_MAX ? sp + STACK_MAX : m->end;
	first = end = known_above(s, sp);
	if (first < s->known.n && s->known.v[first].lo <= sp)
		return;
	for (; end < s->known.n && s->known.v[end].lo < hi; end++) {
		const struct control_range *have = &s->known.v[end];

		vec_push(&s->stacks, (struct control_range){ at, have->lo });
		at = have->hi;
	}
	if (at < hi)
		vec_push(&s->stacks, (struct control_range){ at, hi });
	replace_known(s, first, end, (struct control_range){ sp, at > hi ? at : hi });
}

static bool in_ranges(const struct scan *s, uint64_t addr)
{
	for (uint32_t i = 0; i < s->nranges; i++)
		if (addr >= s->ranges[i].lo && addr < s->ranges[i].hi)
			return true;
	return false;
}

/* Returns true when addr is code that ends a signal handler: mov $15, %rax or %eax; syscall */
static bool is_restorer(struct scan *s, uint64_t addr)
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
			     eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[sizeof(rax)];

	for (uint32_t i = 0; i < s->restorers.n; i++)
		if (s->restorers.v[i] == addr)
			return true;
	s->spent |= ++s->reads > READS_MAX;
	if (s->spent || control_pread(s->c, code, sizeof(code), addr) != sizeof(code) ||
	    (memcmp(code, rax, sizeof(rax)) && memcmp(code, eax, sizeof(eax))))
		return false;
	vec_push(&s->restorers, addr);
	return true;
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Returns true for a signal frame. Tests its shape first, and the restorer's code last, because
 * this costs a read. */
static bool is_frame(struct scan *s, const uint8_t *p, uint64_t addr)
{
	return addr % 16 == 8 && word_at(p + FRAME_FLAGS) < 16 && p[FRAME_CS] == 0x33 &&
	       !p[FRAME_CS + 1] && (p[FRAME_SS] == 0x2b || !p[FRAME_SS]) && !p[FRAME_SS + 1] &&
	       word_at(p) > CONTROL_PAGE && is_restorer(s, word_at(p));
}

static struct err *look_at_frame(struct scan *s, const uint8_t *p, uint64_t addr)
{
	uint64_t pc = word_at(p + FRAME_RIP), old = pc;

	if (++s->frames > s->frames_max || now_ns() > s->deadline) {
		s->spent = true;
		return NULL;
	}
	add_stack(s, word_at(p + FRAME_RSP));
	if (!s->fn) {
		s->found |= in_ranges(s, pc) || in_ranges(s, word_at(p + FRAME_RSP));
		return NULL;
	}
	s->fn(s->arg, &pc);
	return pc == old ? NULL : control_write(s->c, addr + FRAME_RIP, &pc, sizeof(pc));
}

static struct err *scan_stack(struct scan *s, uint64_t lo, uint64_t hi)
{
	struct err *e = NULL;

	while (!e && lo + 8 <= hi && !s->found && !s->spent) {
		uint64_t n = hi - lo < CHUNK ? hi - lo : CHUNK;
		ssize_t got = control_pread(s->c, s->buf, n, lo);
		uint64_t end, at;

		s->spent = now_ns() > s->deadline;
		if (got < 8)
			return NULL; /* the rest was never touched, or was unmapped */
		/* A frame cut by the end of this chunk is scanned with the next chunk. */
		end = (uint64_t)got == n && lo + n < hi ? n - FRAME_SIZE : (uint64_t)got & ~7ull;
		for (at = 0; !e && !s->spent && at < end; at += 8) {
			if (s->words && in_ranges(s, word_at(s->buf + at)))
				s->found = true;
			if (at + FRAME_SIZE <= (uint64_t)got && is_frame(s, s->buf + at, lo + at))
				e = look_at_frame(s, s->buf + at, lo + at);
		}
		if ((uint64_t)got < n)
			return e;
		lo += end;
	}
	return e;
}

static struct err *scan_init(struct scan *s, struct control *c)
{
	const struct mappings *maps;

	if (c->scan_of != c->stop_begun)
		c->scanned = 0;
	c->scan_of = c->stop_begun;
	*s = (struct scan){ .c = c,
			    .frames_max = FRAMES_MAX + c->threads.n * FRAMES_PER_THREAD,
			    .begun = now_ns() };
	s->deadline = s->begun + (c->scanned < SCAN_NS ? SCAN_NS - c->scanned : 0);
	s->buf = xmalloc(CHUNK);
	return control_maps(c, &maps);
}

static void scan_fini(struct scan *s)
{
	s->c->scanned += now_ns() - s->begun;
	vec_fini(&s->stacks);
	vec_fini(&s->known);
	vec_fini(&s->restorers);
	free(s->buf);
}

/* Scans the stacks. A frame found in one may lead to another stack. */
static struct err *scan_stacks(struct scan *s)
{
	struct err *e = NULL;

	for (uint32_t i = 0; !e && i < s->stacks.n && !s->found && !s->spent; i++)
		e = scan_stack(s, s->stacks.v[i].lo, s->stacks.v[i].hi);
	s->stacks.n = 0;
	if (!e && s->spent && !s->found)
		e = err_new(
			EBUSY,
			"process %d (%s) has more signal frames on its stacks than can be looked at",
			s->c->pid, s->c->name);
	return e;
}

struct err *control_signal_frames(struct control *c, void (*fn)(void *arg, uint64_t *pc), void *arg)
{
	struct scan s;
	struct err *e = scan_init(&s, c);

	assert(c->stopped);
	s.fn = fn;
	s.arg = arg;
	for (uint32_t i = 0; !e && i < c->threads.n; i++)
		add_stack(&s, c->threads.v[i].regs.rsp);
	e = e ?: scan_stacks(&s);
	scan_fini(&s);
	return e;
}

struct err *control_refers(struct control *c, const struct control_range *r, uint32_t n, bool words,
			   pid_t *ret_tid)
{
	struct scan s;
	struct err *e = scan_init(&s, c);
	pid_t tid = 0;

	assert(c->stopped);
	s.ranges = r;
	s.nranges = n;
	s.words = words;
	for (uint32_t i = 0; !e && !tid && i < c->threads.n; i++) {
		const struct control_thread *t = &c->threads.v[i];

		s.found = in_ranges(&s, t->regs.rip) || in_ranges(&s, t->regs.rsp);
		add_stack(&s, t->regs.rsp);
		if (!s.found)
			e = scan_stacks(&s);
		if (s.found)
			tid = t->tid;
	}
	scan_fini(&s);
	if (!e)
		*ret_tid = tid;
	return e;
}
