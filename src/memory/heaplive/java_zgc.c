/* The heap of Java 17's collector ZGC: its pages, which objects it knows to be dead, and where the
 * objects of references are that it has not mended yet (zPage.hpp, zLiveMap.hpp, zForwarding.hpp of
 * OpenJDK 17).
 *
 * ZGC maps its heap three times. A reference is an offset in the heap and above it a bit, its
 * colour, which also says in which mapping it leads. Here all addresses are those of the first
 * mapping. References of another colour than the current one may name the place where the object
 * was before it was moved. Tables of moved objects stay until all of these are mended. */
#include "base/sorted.h"
#include "memory/heaplive/java_heap.h"

enum {
	GRANULE = 21, /* log2 of the bytes for which the tables have an entry */
	OFFSET_BITS_MIN = 30,
	OFFSET_BITS_MAX = 46,
	VIEWS = 3,
	PAGE_LARGE = 2,      /* of one object */
	PHASE_MARK = 0,      /* the marks of this cycle are not complete */
	SMALL_SHIFT = 3,     /* log2 of the bytes between objects of small pages */
	SHIFT_MAX = GRANULE, /* likewise of large ones */
	LIVE_SEGMENTS = 64,  /* of a page's marks: those without a bit are not valid */
	LIVE_BITS = 2,       /* of an object: marked, and not only as finalizable */
	ENTRY_TO = 1,        /* of ZForwardingEntry: bit 0 is 1, the new offset, */
	ENTRY_FROM = 46,     /* the number of the object in the old page */
	ENTRIES_MAX = 1 << (64 - ENTRY_FROM + 1),
};

/* ZLiveMap */
struct live {
	uint32_t cycle, objects;
	uint64_t bytes, segments, claimed, bits, nbits, flags, segment_shift;
};

static uint64_t global(const struct java_reader *x, struct jvm_member m)
{
	const struct jvm_member word = { 0, 8 };
	uint64_t globals = jvm_get(x->jvm, x->layout.variable.z_globals, word),
		 at = m.width ? jvm_get(x->jvm, globals, (struct jvm_member){ m.at, 8 }) : 0;

	return at ? jvm_get(x->jvm, at, (struct jvm_member){ 0, m.width }) : 0;
}

struct err *java_zgc_find(struct java_reader *x)
{
	const struct java_layout *l = &x->layout;
	struct java_zgc *z = &x->zgc;
	uint64_t offsets = global(x, l->z_offset_mask), good = global(x, l->z_good_mask);
	int bits = __builtin_popcountll(offsets);

	if (offsets & (offsets + 1) || bits < OFFSET_BITS_MIN || bits > OFFSET_BITS_MAX ||
	    good >> bits == 0 || good >> bits >= 1 << VIEWS || good & (good - 1) ||
	    !l->z_heap.width || !l->z_pages.width || !l->z_page_map.width ||
	    !l->z_page_words.width || !l->z_forwardings.width || !l->z_forwarding_map.width ||
	    !l->z_forwarding_words.width || !l->z_page_type.width || !l->z_page_seqnum.width ||
	    !l->z_page_virtual.width || !l->z_page_top.width || !l->z_start.width ||
	    !l->z_end.width || !l->z_from.width || !l->z_from_shift.width || !l->z_entries.width ||
	    !l->z_entries_length.width || !l->size.z_forwarding)
		return err_new(
			0,
			"the heap of the collector ZGC of Java %s is not known to descry: "
			"it reads that of 17. A heap dump (jcmd PID GC.heap_dump FILE) can be "
			"read",
			x->jvm->runtime.version);
	z->offsets = offsets;
	z->base = offsets + 1;
	z->good = good;
	z->phase = (uint32_t)global(x, (struct jvm_member){ l->z_phase.at, 4 });
	z->cycle = (uint32_t)global(x, (struct jvm_member){ l->z_seqnum.at, 4 });
	return NULL;
}

/* Calls `each` for each entry of a table that has one for each granule of the heap. Most of the
 * table was never touched. */
static void entries_each(struct java_reader *x, uint64_t table,
			 void (*each)(struct java_reader *x, uint64_t granule, uint64_t entry))
{
	uint64_t n = (x->zgc.offsets + 1) >> GRANULE, end = table + n * 8, before = 0;
	uint32_t i = partition_point(x->copy->runs.n, k, x->copy->runs.v[k].end <= table);

	if (!table || table & 7)
		return;
	for (; i < x->copy->runs.n && x->copy->runs.v[i].start < end; i++) {
		struct space_range run = x->copy->runs.v[i];
		uint64_t from = run.start > table ? run.start : table,
			 to = run.end < end ? run.end : end;
		const uint8_t *p = memory_at(x->copy, from, to - from);

		for (uint64_t at = from; p && at + 8 <= to; at += 8) {
			uint64_t entry = java_u64(p + (at - from));

			if (entry && entry != before)
				each(x, (at - table) / 8, entry);
			before = entry;
		}
	}
}

static uint64_t heap_member(const struct java_reader *x, struct jvm_member a, struct jvm_member b,
			    struct jvm_member c)
{
	const struct java_layout *l = &x->layout;
	uint64_t heap = jvm_get(x->jvm, l->variable.heap, (struct jvm_member){ 0, 8 });

	return jvm_get(x->jvm, heap + l->z_heap.at + a.at + b.at, c);
}

/* --- moved objects --- */

static void moved_add(struct java_reader *x, uint64_t granule, uint64_t at)
{
	const struct java_layout *l = &x->layout;
	struct java_moved m = { .start = jvm_get(x->jvm, at + l->z_from.at, l->z_start),
				.end = jvm_get(x->jvm, at + l->z_from.at, l->z_end),
				.shift = (uint32_t)jvm_get(x->jvm, at, l->z_from_shift) };
	uint64_t n = jvm_get(x->jvm, at + l->z_entries.at, l->z_entries_length),
		 size = (l->size.z_forwarding + 7) & ~7ull;

	if (m.start >> GRANULE != granule || m.end <= m.start || m.end > x->zgc.offsets + 1 ||
	    m.shift < SMALL_SHIFT || m.shift > SHIFT_MAX || !n || n & (n - 1) || n > ENTRIES_MAX ||
	    (x->zgc.moved.n && vec_last(&x->zgc.moved)->end > m.start))
		return;
	m.entries = memory_at(x->copy, at + size, n * 8);
	m.mask = (uint32_t)n - 1;
	if (m.entries)
		vec_push(&x->zgc.moved, m);
}

void java_zgc_moves(struct java_reader *x)
{
	const struct java_layout *l = &x->layout;

	entries_each(x,
		     heap_member(x, l->z_forwardings, l->z_forwarding_map, l->z_forwarding_words),
		     moved_add);
}

static uint64_t entry_at(const struct java_moved *m, uint32_t i)
{
	return java_u64(m->entries + (uint64_t)i * 8);
}

/* ZHash::uint32_to_uint32() */
static uint32_t hash_number(uint32_t k)
{
	k = ~k + (k << 15);
	k ^= k >> 12;
	k += k << 2;
	k ^= k >> 4;
	k *= 2057;
	return k ^ k >> 16;
}

/* Returns where the object is that was at this offset. */
static uint64_t offset_now(struct java_reader *x, uint64_t offset)
{
	struct java_zgc *z = &x->zgc;
	uint32_t k = partition_point(z->moved.n, j, z->moved.v[j].end <= offset), i;
	const struct java_moved *m = k < z->moved.n ? &z->moved.v[k] : NULL;
	uint64_t number, entry;

	if (!m || m->start > offset)
		return offset;
	number = (offset - m->start) >> m->shift;
	i = hash_number((uint32_t)number) & m->mask;
	for (uint32_t left = m->mask + 1; left && z->looks; left--, i = (i + 1) & m->mask) {
		z->looks--;
		entry = entry_at(m, i);
		if (!(entry & 1))
			break;
		if (entry >> ENTRY_FROM == number)
			return (entry & ((1ull << ENTRY_FROM) - 1)) >> ENTRY_TO;
	}
	return offset;
}

uint64_t java_zgc_object(struct java_reader *x, uint64_t reference)
{
	uint64_t offset = reference & x->zgc.offsets, colour = reference & ~x->zgc.offsets;

	/* behind the bits of the views: "finalizable" */
	if (!colour || colour >= x->zgc.base << (VIEWS + 1))
		return 0;
	if (!(colour & x->zgc.good))
		offset = offset_now(x, offset);
	return x->zgc.base + (offset & x->zgc.offsets);
}

/* --- pages --- */

static void page_add(struct java_reader *x, uint64_t granule, uint64_t page)
{
	const struct java_layout *l = &x->layout;
	uint64_t start = jvm_get(x->jvm, page + l->z_page_virtual.at, l->z_start),
		 end = jvm_get(x->jvm, page + l->z_page_virtual.at, l->z_end),
		 top = jvm_get(x->jvm, page, l->z_page_top), base = x->zgc.base;

	if (start >> GRANULE == granule && start < top && top <= end && end <= base &&
	    !(top & (x->align - 1)))
		vec_push(&x->parts, ((struct java_part){ .bottom = base + start,
							 .top = base + top,
							 .step = x->align,
							 .structure = page }));
}

void java_zgc_parts(struct java_reader *x)
{
	const struct java_layout *l = &x->layout;

	entries_each(x, heap_member(x, l->z_pages, l->z_page_map, l->z_page_words), page_add);
}

/* Sets *ret to the log2 of the bytes between objects of a page. Returns false when its marks are
 * not as they should be. */
static bool live_shift(const struct live *v, uint32_t type, uint64_t bytes, uint32_t *ret)
{
	uint64_t places = v->nbits / LIVE_BITS;

	if (places < LIVE_SEGMENTS || places & (places - 1) || v->segment_shift > 63 ||
	    v->nbits / LIVE_SEGMENTS != 1ull << v->segment_shift)
		return false;
	*ret = type == PAGE_LARGE ? SHIFT_MAX
				  : (uint32_t)__builtin_ctzll(bytes / places | 1ull << 63);
	return type == PAGE_LARGE ||
	       (*ret >= SMALL_SHIFT && *ret <= SHIFT_MAX && places << *ret == bytes);
}

/* Makes of a page's marks a bit for each place where an object may begin. */
static void marks_add(struct java_reader *x, struct java_part *p, const struct live *v,
		      uint32_t shift)
{
	const uint8_t *bits = memory_at(x->copy, v->bits, v->nbits / 8);
	uint64_t places = (p->top - p->bottom + x->align - 1) / x->align;

	if (!bits)
		return;
	p->made = xcalloc(places / 8 + 1, 1);
	p->marks = p->made;
	p->marked = p->top;
	for (uint64_t i = 0; i < v->nbits && v->cycle == x->zgc.cycle; i += LIVE_BITS) {
		uint64_t place = (i / LIVE_BITS << shift) / x->align;

		if (place >= places)
			return;
		if (v->segments >> (i >> v->segment_shift) & 1 && bits[i / 8] >> i % 8 & 1)
			p->made[place / 8] |= (uint8_t)(1 << place % 8);
	}
}

/* Objects that were moved are there twice until their page is given back. */
static void moved_drop(struct java_reader *x, struct java_part *p)
{
	uint64_t start = p->bottom - x->zgc.base;
	uint32_t k = partition_point(x->zgc.moved.n, j, x->zgc.moved.v[j].end <= start);
	const struct java_moved *m = k < x->zgc.moved.n ? &x->zgc.moved.v[k] : NULL;

	for (uint32_t i = 0; m && m->start == start && i <= m->mask && x->zgc.looks; i++) {
		uint64_t entry = entry_at(m, i), at = entry >> ENTRY_FROM << m->shift,
			 place = at / x->align;

		x->zgc.looks--;
		if (entry & 1 && at < p->top - p->bottom)
			p->made[place / 8] &= (uint8_t) ~(1 << place % 8);
	}
}

/* Reads the marks of a page. Returns false when they are not as they should be. */
static bool part_marks(struct java_reader *x, struct java_part *p)
{
	const struct java_layout *l = &x->layout;
	const struct jvm_member type = { l->z_page_type.at, 1 }, cycle = { l->z_page_seqnum.at, 4 };
	uint64_t page = p->structure, start = p->bottom - x->zgc.base,
		 bytes = jvm_get(x->jvm, page + l->z_page_virtual.at, l->z_end) - start;
	uint32_t shift;
	struct live v;

	if (space_read_some(x->jvm->runtime.space, page + l->z_page_top.at + 8, &v, sizeof(v)) !=
		    sizeof(v) ||
	    !live_shift(&v, (uint32_t)jvm_get(x->jvm, page, type), bytes, &shift))
		return false;
	if (1u << shift > p->step)
		p->step = 1u << shift;
	/* a page of this cycle has no dead objects yet */
	if (x->zgc.phase == PHASE_MARK || jvm_get(x->jvm, page, cycle) == x->zgc.cycle)
		return true;
	marks_add(x, p, &v, shift);
	if (p->made)
		moved_drop(x, p);
	return p->made;
}

void java_zgc_marks(struct java_reader *x)
{
	bool right = true;

	for (uint32_t i = 0; i < x->parts.n; i++)
		right &= part_marks(x, &x->parts.v[i]);
	if (!right)
		graph_remark(x->graph,
			     "the marks of the collector are not as they should be: objects that "
			     "it knows to be dead are among those that no root reaches");
	if (x->zgc.phase == PHASE_MARK)
		graph_remark(x->graph, "the collector was marking: objects that it has yet to find "
				       "dead are among those that no root reaches");
}
