/* Relative jump tables, found without decoding: all that code which takes the address of data by
 * lea may use as one. Its entries are distances from its start. They may lead into a part of the
 * function that lies far away, or, in assembly, into any code. A compiler puts one table behind
 * another, and the code of each takes its address, so a table mostly ends where the next address
 * is taken. But that may be the end of an array before the table, or a place in the table
 * before, from which assembly counts. So some words behind it count too. */
#include <elf.h>

#include "base/sorted.h"
#include "program/text/text_private.h"

enum {
	UNREACHABLE_MAX = 4, /* entries that may lead to no code before others do */
	BEHIND_MAX = 64,     /* words behind the next address, or behind one that leads where
			      * words before the next address do */
	LED_MAX = 8,
	MARKS_WORK = 4,     /* words that take as long as a step of decoding */
	UNALIGNED_MAX = 64, /* addresses in a row that are not where an entry could be */
};

static int by_value(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

uint64_t text_next_table(const struct text *t, uint64_t table)
{
	uint32_t i = partition_point(t->tables.n, k, t->tables.v[k] <= table);

	for (uint32_t n = 0; n < UNALIGNED_MAX && i < t->tables.n; n++, i++)
		if (!((t->tables.v[i] - table) % 4))
			break;
	return i < t->tables.n ? t->tables.v[i] : UINT64_MAX;
}

/* The functions and parts into which a table leads. */
struct led {
	const struct text_range *v[LED_MAX];
	uint32_t n;
};

/* Returns true when the table is known to lead into the function that has addr. is_entry: addr is
 * certainly an entry's. */
static bool leads_into(struct text *t, struct led *l, uint64_t addr, bool is_entry)
{
	const struct text_range *r = text_range_cover(t, addr);

	for (uint32_t i = 0; r && i < l->n; i++)
		if (l->v[i] == r)
			return true;
	if (r && is_entry && l->n < LED_MAX)
		l->v[l->n++] = r;
	return false;
}

static void mark_table(struct text *t, uint64_t table)
{
	const struct text_segment *g = text_segment_at(t, table);
	uint64_t at = table, next = text_next_table(t, table), end, until;
	uint64_t hits = 0, misses = 0;
	struct led l = { .n = 0 };

	if (!g)
		return;
	end = g->addr + g->size;
	until = next < end ? next + BEHIND_MAX * 4 : end;
	/* Other data, such as an array of small numbers, has few words that look like entries. */
	for (; end - at >= 4 && at < until && misses <= hits + UNREACHABLE_MAX; at += 4) {
		int32_t w;
		uint64_t to;

		if (!((at - table) % (MARKS_WORK * 4)) && !text_may_work(t, 1))
			return;
		memcpy(&w, g->bytes + (at - g->addr), sizeof(w));
		to = table + (uint64_t)(int64_t)w;
		if (to < t->lo || to >= t->hi) {
			misses++;
			continue;
		}
		hits++;
		text_mark(t, to, MARK_BRANCH);
		/* the table goes on */
		if (leads_into(t, &l, to, at < next) && at >= next)
			until = at + 4 + BEHIND_MAX * 4;
	}
}

void text_tables_mark(struct text *t)
{
	struct object_segment s;
	uint32_t n = 0;

	if (t->too_many_tables) {
		t->work_left = 0; /* no code can be decoded, and none is changed */
		return;
	}
	/* The table of .eh_frame_hdr, whose entries are such distances too, ends the last one. */
	for (uint32_t i = 0; object_segment(t->object, i, &s); i++)
		if (s.type == PT_GNU_EH_FRAME)
			vec_push(&t->tables, s.addr);
	if (t->tables.n)
		qsort(t->tables.v, t->tables.n, sizeof(*t->tables.v), by_value);
	for (uint32_t i = 0; i < t->tables.n; i++)
		if (!n || t->tables.v[n - 1] != t->tables.v[i])
			t->tables.v[n++] = t->tables.v[i];
	t->tables.n = n;
	for (uint32_t i = 0; i < t->tables.n; i++)
		mark_table(t, t->tables.v[i]);
}
