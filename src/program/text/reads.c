/* Finds bytes of code that instructions read as data. */
#include "base/sorted.h"
#include "program/text/text_private.h"

enum {
	CONSTANT = 4, /* bytes that may follow a displacement */
	OPERAND = 16, /* bytes that are read; the rest of a longer one is no code either */
	READS_FEW = 4096,
	READS_BYTES = 16, /* of text, for each operand in it; real ones have some 200 */
};

/* Returns true when the byte at i may be the ModRM byte of an instruction that has memory at a
 * displacement from the instruction pointer: an opcode stands before it. */
static bool is_operand(const uint8_t *b, uint64_t i)
{
	uint8_t op = i ? b[i - 1] : 0;

	if ((b[i] & 0xc7) != 0x05 || i < 5)
		return false;
	if ((op & 0xc4) == 0 || op == 0x63 || op == 0x69 || op == 0x6b || (op & 0xfc) == 0x80 ||
	    (op & 0xfc) == 0x84 || (op & 0xfc) == 0x88 || (op & 0xf8) == 0xd8 ||
	    (op & 0xfe) == 0xf6 || op == 0xff || (op & 0xfe) == 0xc0 || (op & 0xfc) == 0xd0)
		return true;
	/* 0f op, 0f 38 op, 0f 3a op, and those of VEX, XOP and EVEX */
	return b[i - 2] == 0x0f || b[i - 3] == 0x0f || b[i - 3] == 0xc5 || b[i - 4] == 0xc4 ||
	       b[i - 4] == 0x8f || b[i - 5] == 0x62;
}

void text_reads_find(struct text *t, const struct text_segment *g)
{
	const uint64_t most = t->reads.n + READS_FEW + g->size / READS_BYTES;
	const uint8_t *b = g->bytes;

	for (uint64_t i = 5; i + 5 <= g->size; i++) {
		struct text_read r = { .at = g->addr + i };
		int32_t disp;

		if (!is_operand(b, i))
			continue;
		memcpy(&disp, b + i + 1, 4);
		r.target = r.at + 5 + (uint64_t)(int64_t)disp;
		if (r.target < t->lo || r.target >= t->hi)
			continue;
		if (t->reads.n == most) {
			t->too_many_tables = true;
			return;
		}
		vec_push(&t->reads, r);
	}
}

static int by_target(const void *a, const void *b)
{
	const struct text_read *x = a, *y = b;

	return COMPARE(x->target, y->target);
}

void text_reads_sort(struct text *t)
{
	if (t->reads.n)
		qsort(t->reads.v, t->reads.n, sizeof(*t->reads.v), by_target);
}

/* Returns true unless the bytes are another part of an instruction of a function that decodes as
 * one sequence. */
static bool is_read_by(struct text *t, const struct text_read *r, uint64_t lo, uint64_t hi)
{
	struct text_range *range = text_range_cover(t, r->at);
	cleanup_code struct text_code *c = range ? text_code(t, range) : NULL;
	const struct insn *n;
	uint32_t i;

	if (!c || c->irregular || r->at < c->start || r->at >= c->end)
		return true;
	i = partition_point(c->insns.n, k, c->start + c->insns.v[k].off <= r->at);
	if (!i)
		return true;
	n = &c->insns.v[i - 1];
	return n->kind == INSN_BAD ||
	       (n->relative && !text_is_branch(n) && n->target < hi && n->target + OPERAND > lo);
}

bool text_is_read(struct text *t, uint64_t lo, uint64_t hi)
{
	const uint64_t from = lo < OPERAND + CONSTANT ? 0 : lo - OPERAND - CONSTANT;
	uint32_t i = partition_point(t->reads.n, k, t->reads.v[k].target <= from);

	for (; i < t->reads.n && t->reads.v[i].target < hi; i++)
		if (!text_may_work(t, 1) || is_read_by(t, &t->reads.v[i], lo, hi))
			return true;
	return false;
}
