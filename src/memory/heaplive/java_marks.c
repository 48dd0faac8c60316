/* Which objects G1 knows to be dead: by the bits that its last marking has set. They are published
 * nowhere, and are found by their structure. */
#include "memory/heaplive/java_heap.h"

enum {
	/* G1ConcurrentMark: its second word is the heap; it has two bitmaps, and behind them
	 * pointers to both, of which the first is to the one in use */
	MARK_WORDS = 64,
	MARK_HEAP = 1,
	MARK_FIRST = 2,
	/* MarkBitMap: what it covers, a shift, and the bits */
	BITMAP_WORDS = 8,
	HEAP_WORDS_MAX = 1 << 10, /* of G1CollectedHeap */
	REGION_WORDS_MAX = 1 << 7,
	ONE_BITMAP = 20, /* from this version of Java on, what is described here is not there */
};

struct bitmap {
	uint64_t start, bits;
};

static bool bitmap_read(const struct java_reader *x, uint64_t at, uint64_t start,
			struct bitmap *ret)
{
	uint64_t w[BITMAP_WORDS];

	if (space_read_some(x->jvm->runtime.space, at, w, sizeof(w)) != sizeof(w))
		return false;
	for (int i = 0; i < 3; i++)
		if (w[i] == start && w[i + 2] < 32 && 8ull << w[i + 2] == x->align &&
		    w[i + 4] == w[i + 1] >> w[i + 2] && !(w[i + 3] & 7)) {
			*ret = (struct bitmap){ start, w[i + 3] };
			return true;
		}
	return false;
}

/* Finds the bitmap of a G1ConcurrentMark. */
static bool mark_read(const struct java_reader *x, uint64_t mark, uint64_t heap, uint64_t start,
		      struct bitmap *ret)
{
	uint64_t w[MARK_WORDS], n = space_read_some(x->jvm->runtime.space, mark, w, sizeof(w)) / 8;
	uint64_t used = 0;

	if (n < MARK_WORDS || w[MARK_HEAP] != heap)
		return false;
	/* a bitmap has a pointer to itself; the pair behind it is the last one */
	for (uint32_t i = MARK_FIRST; i + 1 < MARK_WORDS; i++) {
		uint64_t from = mark + MARK_FIRST * 8, end = mark + i * 8;

		if (w[i] != w[i + 1] && w[i] >= from && w[i] < end && w[i + 1] >= from &&
		    w[i + 1] < end)
			used = w[i];
	}
	return used && bitmap_read(x, used, start, ret);
}

static bool marks_find(const struct java_reader *x, struct bitmap *ret)
{
	uint64_t heap = jvm_get(x->jvm, x->layout.variable.heap, (struct jvm_member){ 0, 8 }),
		 n = x->layout.size.g1_heap / 8, mark,
		 start = jvm_get(x->jvm, heap,
				 (struct jvm_member){ x->layout.heap_reserved.at, 8 });

	for (uint64_t i = 0; i < n && i < HEAP_WORDS_MAX; i++)
		if (jvm_word(x->jvm, heap + i * 8, &mark) && mark > 4096 && !(mark & 7) &&
		    mark_read(x, mark, heap, start, ret))
			return true;
	return false;
}

/* A region has the addresses at which the last marking and the one at work began, side by side and
 * between its bottom and its end. Returns where all regions have such words; 0: nowhere. */
static uint32_t tops_find(const struct java_reader *x)
{
	uint64_t size = x->layout.size.region / 8, w[REGION_WORDS_MAX];
	uint32_t n = size < REGION_WORDS_MAX ? (uint32_t)size : REGION_WORDS_MAX;
	uint32_t first = x->layout.region_type.at / 8 + 1;
	bool wrong[REGION_WORDS_MAX] = { false };

	/* each region is read once: there can be a million */
	for (uint32_t k = 0; k < x->parts.n; k++) {
		const struct java_part *p = &x->parts.v[k];
		uint32_t got = space_read_some(x->jvm->runtime.space, p->structure, w, n * 8) / 8;

		for (uint32_t i = first; i + 1 < n; i++)
			wrong[i] |= i + 1 >= got || w[i] < p->bottom || w[i + 1] < p->bottom ||
				    w[i] > p->top || w[i + 1] > p->top;
	}
	for (uint32_t i = first; i + 1 < n; i++)
		if (!wrong[i])
			return i * 8;
	return 0;
}

void java_marks_find(struct java_reader *x)
{
	uint32_t at = x->major < ONE_BITMAP ? tops_find(x) : 0;
	struct bitmap b;

	if (!at || !marks_find(x, &b)) {
		graph_remark(x->graph, "the marks of the collector are not found: objects that it "
				       "knows to be dead are among those that no root reaches");
		return;
	}
	for (uint32_t i = 0; i < x->parts.n; i++) {
		struct java_part *p = &x->parts.v[i];
		/* a part may end within a place */
		uint64_t bit = (p->bottom - b.start) / x->align,
			 n = (p->top - p->bottom + x->align - 1) / x->align, marked = p->bottom;

		if (p->bottom < b.start || bit % 8 ||
		    !jvm_word(x->jvm, p->structure + at, &marked) || marked <= p->bottom ||
		    marked > p->top)
			continue;
		p->marks = memory_at(x->copy, b.bits + bit / 8, (n + 7) / 8);
		if (p->marks)
			p->marked = marked;
	}
}
