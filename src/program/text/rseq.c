/* Finds restartable sequences: code that the kernel makes a thread abort when it is moved to
 * another CPU, preempted or sent a signal amid. The kernel knows the thread by its instruction
 * pointer, so a thread in a stub would not abort. Format: linux/rseq.h, struct rseq_cs; section
 * __rseq_cs. */
#include <elf.h>

#include "base/bytes.h"
#include "base/sorted.h"
#include "program/text/text_private.h"

enum { RECORD = 32, START_AT = 8, ABORT_AT = 24, SIGNATURE = 4, SPANS_MAX = 1 << 11 };

static void relocate(uint8_t *p, uint64_t n, uint64_t addr, const Elf64_Rela *r)
{
	const uint64_t v = (uint64_t)r->r_addend;

	if (ELF64_R_TYPE(r->r_info) == R_X86_64_RELATIVE && r->r_offset >= addr &&
	    r->r_offset - addr < n && n - (r->r_offset - addr) >= sizeof(v))
		memcpy(p + (r->r_offset - addr), &v, sizeof(v));
}

static void add_span(struct text *t, uint64_t start, uint64_t n)
{
	if (t->restartable.n < SPANS_MAX && start && n && start <= UINT64_MAX - n)
		vec_push(&t->restartable, (struct text_span){ start, start + n });
}

static int by_start(const void *a, const void *b)
{
	const struct text_span *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Sorts the spans, and joins those that overlap. */
static void join_spans(struct text *t)
{
	struct text_span *v = t->restartable.v;
	uint32_t n = 0;

	if (t->restartable.n)
		qsort(v, t->restartable.n, sizeof(*v), by_start);
	for (uint32_t i = 0; i < t->restartable.n; i++)
		if (n && v[i].start <= v[n - 1].end)
			v[n - 1].end = v[i].end > v[n - 1].end ? v[i].end : v[n - 1].end;
		else
			v[n++] = v[i];
	t->restartable.n = n;
}

void text_restartable_read(struct text *t, uint64_t rela, uint64_t relasz)
{
	uint64_t addr;
	size_t n;
	cleanup_free uint8_t *p = object_section(t->object, "__rseq_cs", &addr, &n);
	Elf64_Rela r;

	if (!p)
		return;
	if (n / RECORD > SPANS_MAX / 2) {
		vec_push(&t->restartable, (struct text_span){ 0, UINT64_MAX });
		return;
	}
	for (uint64_t at = 0; at + sizeof(r) <= relasz && text_bytes(t, rela + at, &r, sizeof(r));
	     at += sizeof(r))
		relocate(p, n, addr, &r);
	for (size_t at = 0; at + RECORD <= n; at += RECORD) {
		uint64_t word[3]; /* start_ip, post_commit_offset, abort_ip */

		memcpy(word, p + at + START_AT, sizeof(word));
		add_span(t, word[0], word[1]);
		/* The kernel compares these bytes before it goes to abort_ip. */
		add_span(t, word[2] - SIGNATURE, SIGNATURE);
	}
	join_spans(t);
}

bool text_is_restartable(const struct text *t, uint64_t lo, uint64_t hi)
{
	uint32_t i = partition_point(t->restartable.n, k, t->restartable.v[k].end <= lo);

	return i < t->restartable.n && hi > t->restartable.v[i].start;
}
