/* Restores the text of a forked child. Writes through /proc/self/mem, which needs no change of
 * protection. Where that file cannot be opened, makes the pages writable for a moment, and not
 * executable meanwhile. The child has only this thread. */
#include "agent/agent.h"

enum {
	O_RDWR = 2,
	O_CLOEXEC = 02000000,
	PROT_READ = 1,
	PROT_WRITE = 2,
	PROT_EXEC = 4,
};

struct healing {
	int64_t fd;      /* of /proc/self/mem, < 0: none */
	uint64_t lo, hi; /* pages that are writable now */
	uint64_t there;  /* a page that is known to be mapped */
};

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(uint64_t)(PAGE - 1);
}

static void close_window(struct healing *h)
{
	if (h->hi)
		sys4(SYS_MPROTECT, h->lo, h->hi - h->lo, PROT_READ | PROT_EXEC, 0);
	h->lo = h->hi = 0;
}

/* Returns true when the address is mapped. Sites are in the order of addresses, so the page is
 * mostly that of the site before. */
static bool is_there(struct healing *h, uint64_t addr)
{
	if (page_of(addr) != h->there && probe_word(page_of(addr)))
		h->there = page_of(addr);
	return page_of(addr) == h->there;
}

/* Makes pages writable: from `at`'s page on, as long as the next sites are in the same page or the
 * one behind it. */
static bool open_window(struct healing *h, const struct wire_undo *u, const struct wire_undo *end)
{
	uint64_t lo = page_of(u->site), hi = page_of(u->site + u->len - 1) + PAGE;

	if (u->site >= h->lo && u->site + u->len <= h->hi)
		return true;
	close_window(h);
	for (u++; u < end && u->len && u->site >= lo && page_of(u->site) <= hi; u++)
		if (page_of(u->site + u->len - 1) + PAGE > hi)
			hi = page_of(u->site + u->len - 1) + PAGE;
	if (sys4(SYS_MPROTECT, lo, hi - lo, PROT_READ | PROT_WRITE, 0))
		return false;
	h->lo = lo;
	h->hi = hi;
	return true;
}

enum { NOT_OURS, OURS, NOT_YET /* or not any more: the original bytes */ };

/* Compares the bytes on one side of a page boundary with the record. */
static uint32_t look_at(const struct wire_undo *u, uint32_t from, uint32_t to)
{
	static const uint8_t hold[] = { WIRE_UNDO_HOLD };
	uint8_t now[WIRE_SITE_MAX];
	uint32_t n = to - from;

	for (uint32_t i = 0; i < n; i++)
		LOAD(8, u->site + from + i, now[i], bad);
	if (mem_same(now, u->before + from, n))
		return NOT_YET;
	if (mem_same(now, u->after + from, n) ||
	    (!from && n >= sizeof(hold) && mem_same(now, hold, sizeof(hold))))
		return OURS;
bad:
	return NOT_OURS;
}

static void heal_part(struct healing *h, const struct wire_undo *u, const struct wire_undo *end,
		      uint32_t from, uint32_t to)
{
	uint64_t at = u->site + from;
	uint32_t n = to - from;

	if (h->fd >= 0 &&
	    sys4(SYS_PWRITE64, (uint64_t)h->fd, (uintptr_t)(u->before + from), n, at) == n)
		return;
	if (u->data || open_window(h, u, end))
		mem_copy((void *)at, u->before + from, n);
}

/* Restores a site when both sides of a page boundary hold bytes of the record. One side may be only
 * a few bytes, which could be equal by chance. */
static void heal_site(struct healing *h, const struct wire_undo *u, const struct wire_undo *end)
{
	uint32_t cut = PAGE - (uint32_t)(u->site % PAGE), first, second = NOT_YET;

	if (cut > u->len)
		cut = u->len;
	first = look_at(u, 0, cut);
	if (cut < u->len)
		second = look_at(u, cut, u->len);
	if (first == NOT_OURS || second == NOT_OURS)
		return;
	if (first == OURS)
		heal_part(h, u, end, 0, cut);
	if (second == OURS)
		heal_part(h, u, end, cut, u->len);
}

ENTRY uint64_t agent_heal(void)
{
	const struct wire_undo *u = (const struct wire_undo *)area()->undo,
			       *end = u + area()->nundo;
	struct healing h;
	uint32_t pid = kept()->pid;
	char path[] = "/proc/self/mem";

	h.lo = h.hi = 0;
	h.there = 1;
	h.fd = sys4(SYS_OPEN, (uintptr_t)path, O_RDWR | O_CLOEXEC, 0, 0);
	for (; u < end; u++) {
		if (!u->len || u->len > WIRE_SITE_MAX || (pid && u->pid != pid) ||
		    !is_there(&h, u->site) || !is_there(&h, u->site + u->len - 1))
			continue;
		heal_site(&h, u, end);
	}
	close_window(&h);
	if (h.fd >= 0)
		sys2(SYS_CLOSE, (uint64_t)h.fd, 0);
	return 0;
}
