/* Finds functions that only one other function leads to, by jumps: each of their returns is a
 * return of that one. glibc's pthread_mutex_lock() has such a function for robust mutexes. */
#include "base/sorted.h"
#include "program/text/text_private.h"

enum {
	SHORT = 130, /* a short branch and its instruction, in bytes */
	WAYS = 8,    /* a range to which more lead has callers */
};

/* The ways into a range from outside it: addresses of what looks like calls and jumps. */
struct text_ways {
	uint64_t from[WAYS];
	uint32_t n; /* more than WAYS: not all are there */
};

static bool in_range(const struct text_range *r, uint64_t addr)
{
	return addr >= r->start && addr < r->end;
}

static void add_way(struct text *t, uint64_t from, uint64_t to)
{
	const struct text_range *r = text_range_cover(t, to);
	struct text_ways *w = r ? &t->ways[r - t->ranges.v] : NULL;

	if (!r || in_range(r, from) || w->n > WAYS)
		return;
	if (w->n < WAYS)
		w->from[w->n] = from;
	w->n++;
}

/* Takes every byte for an opcode, as module.c does: data among the code cannot hide a branch. */
static void find_ways(struct text *t)
{
	t->ways = xcalloc(t->ranges.n + 1, sizeof(*t->ways));
	for (uint32_t k = 0; k < t->segments.n; k++) {
		const struct text_segment *g = &t->segments.v[k];

		for (uint64_t i = 0; g->exec && i + 5 <= g->size; i++) {
			const uint8_t *b = g->bytes + i;
			const bool jcc = b[0] == 0x0f && (b[1] & 0xf0) == 0x80 && i + 6 <= g->size;
			int32_t rel;

			if (b[0] != 0xe8 && b[0] != 0xe9 && !jcc)
				continue;
			memcpy(&rel, b + 1 + jcc, sizeof(rel));
			add_way(t, g->addr + i, g->addr + i + 5 + jcc + (uint64_t)(int64_t)rel);
		}
	}
}

/* Returns true when a byte of [lo, hi) could be a short branch into r. */
static bool bytes_lead(const struct text *t, uint64_t lo, uint64_t hi, const struct text_range *r)
{
	for (; lo + 2 <= hi; lo++) {
		uint8_t b[2];

		if (text_bytes(t, lo, b, 2) &&
		    (b[0] == 0xeb || (b[0] & 0xf0) == 0x70 || (b[0] & 0xfc) == 0xe0) &&
		    in_range(r, lo + 2 + (uint64_t)(int64_t)(int8_t)b[1]))
			return true;
	}
	return false;
}

/* Returns true when the part [lo, hi) of another function has a short branch into r. */
static bool function_leads(struct text *t, struct text_range *other, uint64_t lo, uint64_t hi,
			   const struct text_range *r)
{
	cleanup_code struct text_code *c = text_code(t, other);

	if (!c || c->irregular)
		return bytes_lead(t, lo, hi, r);
	for (uint32_t i = partition_point(c->insns.n, k, c->start + c->insns.v[k].off < lo);
	     i < c->insns.n && c->start + c->insns.v[i].off < hi; i++)
		if (text_is_branch(&c->insns.v[i]) && in_range(r, c->insns.v[i].target))
			return true;
	return false;
}

/* Returns true when code beside r, in [lo, hi), could have a short branch into r. c's may. */
static bool has_short_way(struct text *t, const struct text_code *c, uint64_t lo, uint64_t hi,
			  const struct text_range *r)
{
	while (lo < hi) {
		struct text_range *other = text_range_cover(t, lo);
		const uint32_t next = text_range_from(t, lo + 1);
		uint64_t to = other                ? other->end
			      : next < t->ranges.n ? t->ranges.v[next].start
						   : hi;

		to = to < hi ? to : hi;
		if (other ? other != c->range && other != r && function_leads(t, other, lo, to, r)
			  : bytes_lead(t, lo, to, r))
			return true;
		lo = to > lo ? to : lo + 1;
	}
	return false;
}

/* Returns true when the code in front of the range may run on into it. */
static bool is_fallen_into(struct text *t, const struct text_range *r)
{
	struct text_range *before = r->start ? text_range_cover(t, r->start - 1) : NULL;
	cleanup_code struct text_code *c = before ? text_code(t, before) : NULL;

	return before && (!c || c->falls_off || c->irregular);
}

/* Returns true when c jumps from there, or when no branch has its opcode there, behind prefixes. */
static bool is_own_way(struct text *t, const struct text_code *c, uint64_t from)
{
	struct text_range *r = text_range_cover(t, from);
	cleanup_code struct text_code *code = r ? text_code(t, r) : NULL;
	const struct insn *n;
	uint32_t i;

	if (!code || code->irregular)
		return false;
	i = partition_point(code->insns.n, k, code->start + code->insns.v[k].off <= from);
	n = i ? &code->insns.v[i - 1] : NULL;
	if (!n || from >= code->start + n->off + n->len ||
	    (n->kind != INSN_CALL && !text_is_branch(n)))
		return n;
	return r == c->range && text_is_branch(n);
}

/* Returns true when the first of the symbols at the address, by rank, is global. */
static bool is_global(struct text *t, uint64_t addr)
{
	uint32_t n, i;
	const struct object_symbol *s = object_symbols(t->object, &n);

	i = partition_point(n, k, s[k].addr < addr);
	return i < n && s[i].addr == addr && s[i].is_global;
}

bool text_is_sole(struct text *t, const struct text_code *c, uint64_t addr)
{
	const struct text_range *r = text_range_at(t, addr);
	const struct text_ways *w;

	if (!r || r->inner || r == c->range || text_marked(t, addr, MARK_TAKEN) ||
	    is_global(t, addr))
		return false;
	if (!t->ways)
		find_ways(t);
	w = &t->ways[r - t->ranges.v];
	for (uint32_t i = 0; i < w->n; i++)
		if (i == WAYS || !is_own_way(t, c, w->from[i]))
			return false;
	return !has_short_way(t, c, r->start > SHORT ? r->start - SHORT : 0, r->start, r) &&
	       !has_short_way(t, c, r->end, r->end + SHORT, r) && !is_fallen_into(t, r);
}
