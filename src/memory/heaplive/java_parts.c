/* Where HotSpot's heap has objects: the spaces of Serial and Parallel, the regions of G1, and the
 * threads' buffers in them. */
#include "base/sorted.h"
#include "memory/heaplive/java_heap.h"

enum {
	REGIONS_MAX = 1 << 20, /* of G1: 2048 by default */
	/* HeapRegionType */
	REGION_FREE = 0,
	REGION_HUMONGOUS = 4,
	REGION_HUMONGOUS_REST = 5,
	REGION_PINNED = 8, /* a bit that humongous ones also have up to Java 21 */
};

static void part_add(struct java_reader *x, struct java_part p)
{
	if (p.bottom < p.top && !(p.bottom & (x->align - 1)) && !(p.top & 7))
		vec_push(&x->parts, p);
}

static void space_add(struct java_reader *x, uint64_t space, struct jvm_member bottom,
		      struct jvm_member top)
{
	if (space)
		part_add(x, (struct java_part){ .bottom = jvm_get(x->jvm, space, bottom),
						.top = jvm_get(x->jvm, space, top) });
}

static void serial_parts(struct java_reader *x, uint64_t heap)
{
	const struct java_layout *l = &x->layout;
	uint64_t young = jvm_get(x->jvm, heap, l->serial_young),
		 old = jvm_get(x->jvm, heap, l->serial_old);

	space_add(x, jvm_get(x->jvm, young, l->young_eden), l->space_bottom, l->space_top);
	space_add(x, jvm_get(x->jvm, young, l->young_from), l->space_bottom, l->space_top);
	space_add(x, jvm_get(x->jvm, old, l->tenured_space), l->space_bottom, l->space_top);
}

static void parallel_parts(struct java_reader *x)
{
	const struct java_layout *l = &x->layout;
	const struct jvm_member word = { 0, 8 };
	uint64_t young = jvm_get(x->jvm, l->variable.parallel_young, word),
		 old = jvm_get(x->jvm, l->variable.parallel_old, word);

	space_add(x, jvm_get(x->jvm, young, l->parallel_eden), l->mutable_bottom, l->mutable_top);
	space_add(x, jvm_get(x->jvm, young, l->parallel_from), l->mutable_bottom, l->mutable_top);
	space_add(x, jvm_get(x->jvm, old, l->parallel_old), l->mutable_bottom, l->mutable_top);
}

static void g1_parts(struct java_reader *x, uint64_t heap)
{
	const struct java_layout *l = &x->layout;
	const struct jvm_member tag = { l->region_type.at + l->type_tag.at, 4 };
	uint64_t table = heap + l->g1_manager.at + l->manager_regions.at,
		 base = jvm_get(x->jvm, table, l->regions_base),
		 n = jvm_get(x->jvm, table, l->regions_length), region, type;

	if (!l->g1_manager.width || !l->manager_regions.width || !l->type_tag.width)
		return;
	for (uint64_t i = 0; i < n && i < REGIONS_MAX; i++) {
		if (!jvm_word(x->jvm, base + i * 8, &region))
			return;
		type = region ? jvm_get(x->jvm, region, tag) : REGION_FREE;
		if (type & REGION_HUMONGOUS)
			type &= ~(uint64_t)REGION_PINNED;
		if (type != REGION_FREE && type != REGION_HUMONGOUS_REST)
			part_add(x, (struct java_part){
					    .bottom = jvm_get(x->jvm, region, l->region_bottom),
					    .top = jvm_get(x->jvm, region, l->region_top),
					    .single = type == REGION_HUMONGOUS,
					    .structure = region });
	}
}

static int part_order(const void *a, const void *b)
{
	const struct java_part *p = a, *q = b;

	return p->bottom < q->bottom ? -1 : p->bottom > q->bottom;
}

/* Drops what overlaps, and what is not in the copy. */
static void parts_settle(struct java_reader *x)
{
	uint32_t n = 0;

	if (x->parts.n)
		qsort(x->parts.v, x->parts.n, sizeof(*x->parts.v), part_order);
	for (uint32_t i = 0; i < x->parts.n; i++) {
		struct java_part p = x->parts.v[i];

		if (n && p.bottom < x->parts.v[n - 1].top)
			continue;
		p.region = memory_region_at(x->copy, p.bottom);
		if (!p.region || p.region->end < p.top) {
			uint64_t end = p.region ? p.region->end : p.bottom;

			x->outside += p.top - end;
			p.top = end;
		}
		if (p.bottom >= p.top)
			continue;
		x->parts.v[n++] = p;
	}
	x->parts.n = n;
}

/* All memory in front of a top has had objects. The tables are as large as the parts. */
static bool is_touched(const struct java_reader *x)
{
	uint64_t bytes = 0, touched = 1 << 20;

	for (uint32_t i = 0; i < x->parts.n; i++)
		bytes += x->parts.v[i].top - x->parts.v[i].bottom;
	for (uint32_t i = 0; i < x->copy->runs.n; i++)
		touched += x->copy->runs.v[i].end - x->copy->runs.v[i].start;
	return bytes / 64 <= touched;
}

/* Bytes behind a thread's buffer that only its last, filling object takes. */
static uint64_t buffer_reserve(const struct java_reader *x)
{
	uint64_t words = jvm_get(x->jvm, x->layout.variable.tlab_reserve,
				 (struct jvm_member){ 0, 4 }),
		 bytes = x->narrow_class ? 16 : 24;

	if (words * 8 > bytes && words < 1 << 16)
		bytes = words * 8;
	return (bytes + x->align - 1) & ~(uint64_t)(x->align - 1);
}

static int buffer_order(const void *a, const void *b)
{
	const struct java_buffer *p = a, *q = b;

	return p->start < q->start ? -1 : p->start > q->start;
}

static void buffers_find(struct java_reader *x)
{
	const struct java_layout *l = &x->layout;
	const struct jvm_member second = { l->tlab_end.at + 8, 8 };
	/* a limit in front of the end, where a profiler wants to see an allocation */
	bool limited = l->tlab_desired.at == l->tlab_end.at + 16;
	struct jvm_threads threads = jvm_threads_begin(x->jvm);
	uint64_t thread, reserve = buffer_reserve(x);
	uint32_t kept = 0;

	while ((thread = jvm_threads_next(&threads))) {
		struct java_buffer b;
		uint64_t tlab, end;

		tlab = thread + l->thread_tlab.at;
		b.start = java_wide(x, jvm_get(x->jvm, tlab, l->tlab_start));
		b.top = java_wide(x, jvm_get(x->jvm, tlab, l->tlab_top));
		b.end = java_wide(x, jvm_get(x->jvm, tlab, l->tlab_end));
		end = limited ? java_wide(x, jvm_get(x->jvm, tlab, second)) : 0;
		if (end > b.end)
			b.end = end;
		b.end += reserve;
		if (b.start && b.start <= b.top && b.top <= b.end &&
		    !((b.start | b.top | b.end) & (x->align - 1)))
			vec_push(&x->buffers, b);
	}
	if (x->buffers.n)
		qsort(x->buffers.v, x->buffers.n, sizeof(*x->buffers.v), buffer_order);
	for (uint32_t i = 0; i < x->buffers.n; i++)
		if (!kept || x->buffers.v[i].start >= x->buffers.v[kept - 1].end)
			x->buffers.v[kept++] = x->buffers.v[i];
	x->buffers.n = kept;
}

struct err *java_parts_find(struct java_reader *x)
{
	uint64_t heap = jvm_get(x->jvm, x->layout.variable.heap, (struct jvm_member){ 0, 8 });

	switch (x->collector) {
	case JAVA_SERIAL: serial_parts(x, heap); break;
	case JAVA_PARALLEL: parallel_parts(x); break;
	case JAVA_G1: g1_parts(x, heap); break;
	case JAVA_ZGC: java_zgc_parts(x); break;
	}
	parts_settle(x);
	if (!x->parts.n)
		return err_new(0, "the heap of Java %s is not as it should be: it has no spaces",
			       x->jvm->runtime.version);
	if (!is_touched(x))
		return err_new(0,
			       "the heap of Java %s is not as it should be: hardly any of its "
			       "memory has been used",
			       x->jvm->runtime.version);
	for (uint32_t i = 0; i < x->parts.n && !graph_wanted(x->graph)->counts; i++) {
		struct java_part *p = &x->parts.v[i];
		uint64_t words = ((p->top - p->bottom) / x->align + 63) / 64 + 1;

		p->starts = xcalloc(words, sizeof(*p->starts));
	}
	if (x->collector == JAVA_G1)
		java_marks_find(x);
	if (x->collector == JAVA_ZGC)
		java_zgc_marks(x);
	buffers_find(x);
	return NULL;
}

struct java_part *java_part_at(struct java_reader *x, uint64_t addr)
{
	struct java_part *p = x->last;
	uint32_t i;

	if (addr & (x->align - 1))
		return NULL;
	if (p && addr >= p->bottom && addr < p->top)
		return p;
	i = partition_point(x->parts.n, k, x->parts.v[k].top <= addr);
	if (i == x->parts.n || x->parts.v[i].bottom > addr)
		return NULL;
	return x->last = &x->parts.v[i];
}

bool java_is_object(struct java_reader *x, uint64_t addr)
{
	const struct java_part *p = java_part_at(x, addr);

	return p && java_bit(p->starts, (addr - p->bottom) / x->align);
}
