/* HotSpot's objects: a walk over each part of the heap, from object to object. The process is not
 * at a safepoint: memory of threads' buffers has no objects yet, and the last one may be half
 * made. */
#include "base/sorted.h"
#include "memory/heaplive/java_heap.h"

enum {
	CONTENT_MAX = 1 << 20, /* bytes of an array that are compared with others */
	CLASS_AT = 8,          /* of an object: its Klass, behind the mark */
	/* the low bits of a mark */
	MARK_LOCK = 3,
	MARK_UNLOCKED = 1,
	MARK_MARKED = 3,
};

/* Returns the run of touched pages that has addr, or the next one behind it. */
static struct space_range run_at(struct java_reader *x, uint64_t addr)
{
	uint32_t i;

	if (addr >= x->cached.start && addr < x->cached.end)
		return x->cached;
	i = partition_point(x->copy->runs.n, k, x->copy->runs.v[k].end <= addr);
	if (i == x->copy->runs.n)
		return (struct space_range){ UINT64_MAX, UINT64_MAX };
	return x->cached = x->copy->runs.v[i];
}

/* Where an array has its length. */
static uint32_t length_at(const struct java_reader *x)
{
	return x->narrow_class ? 12 : 16;
}

static struct java_class *class_of(const struct java_reader *x, const uint8_t *p)
{
	uint64_t klass = x->narrow_class ? x->class_base + ((uint64_t)java_u32(p + CLASS_AT)
							    << x->class_shift)
					 : java_u64(p + CLASS_AT);
	struct java_class *c = java_class_at(x, klass);

	return c && c->size ? c : NULL;
}

static uint64_t elements_size(const struct java_reader *x, const struct java_class *c,
			      const uint8_t *p)
{
	return (uint64_t)java_u32(p + length_at(x)) << c->shift;
}

/* Returns the size in bytes of the object at p, or 0 when no object of this class fits in n. */
static uint64_t object_size(const struct java_reader *x, const struct java_class *c,
			    const uint8_t *p, uint64_t n)
{
	uint64_t size = c->size;

	if (c->kind == JAVA_MIRROR) {
		if (x->mirror_words + 4ull > c->size || n < c->size)
			return 0;
		size = java_u32(p + x->mirror_words) * 8ull;
		if (size < c->size)
			return 0;
	} else if (c->kind != JAVA_INSTANCE) {
		if (n < length_at(x) + 4 || java_u32(p + length_at(x)) > INT32_MAX)
			return 0;
		size += elements_size(x, c, p);
	}
	size = (size + x->align - 1) & ~(uint64_t)(x->align - 1);
	return size <= n ? size : 0;
}

/* Is this the mark of an object that a search may believe in? */
static bool is_mark(const struct java_reader *x, uint64_t mark)
{
	switch (mark & MARK_LOCK) {
	case MARK_UNLOCKED: return !(mark & x->mark_unused);
	case MARK_MARKED: return false;
	}
	return mark > 4096 && mark < 1ull << 47; /* the address of a lock */
}

static void instance_refs(struct java_reader *x, const uint8_t *p, uint64_t size, uint32_t ref,
			  uint32_t n)
{
	uint32_t width = x->narrow ? 4 : 8;

	for (uint32_t i = 0; i < n; i++) {
		const struct java_ref *r = &x->refs.v[ref + i];
		uint64_t to = r->at + (uint64_t)width <= size ? java_ref(x, p + r->at) : 0;

		if (to)
			graph_edge(x->graph, to, r->label, r->strength);
	}
}

/* Adds the elements of an array of references. Passes over memory that was never touched. */
static void array_refs(struct java_reader *x, uint64_t addr, const uint8_t *p, uint64_t from,
		       uint64_t size)
{
	uint32_t width = x->narrow ? 4 : 8;

	for (uint64_t at = from; at + width <= size;) {
		struct space_range run = run_at(x, addr + at);
		uint64_t end = run.end - addr < size ? run.end - addr : size;

		if (run.start > addr + at) {
			if (run.start - addr >= size)
				return;
			at = run.start - addr; /* pages begin at whole elements */
			continue;
		}
		for (; at + width <= end; at += width) {
			uint64_t to = java_ref(x, p + at);

			if (to)
				graph_edge(x->graph, to,
					   GRAPH_LABEL_INDEX | ((uint32_t)((at - from) / width) &
								~GRAPH_LABEL_INDEX),
					   GRAPH_STRONG);
		}
		if (at < end)
			return;
	}
}

/* Adds what a mirror leads to by the class that it stands for. A class has one mirror: others that
 * name it are not the JVM's. */
static void mirror_refs(struct java_reader *x, uint64_t addr, const uint8_t *p, uint64_t size)
{
	static const char super[] = "<super>", constants[] = "<constants>";
	uint64_t most = size / (x->narrow ? 4 : 8);
	struct java_class *c, *above;

	if (x->mirror_class + 8ull > size)
		return;
	c = java_class_at(x, java_u64(p + x->mirror_class));
	if (!c || c->mirror != addr)
		return;
	if (!c->laid_out)
		java_lay_out(x, c);
	instance_refs(x, p, size, c->static_, c->nstatic < most ? c->nstatic : (uint32_t)most);
	if (c->constants)
		graph_edge(x->graph, c->constants,
			   graph_label(x->graph, constants, strlen(constants)), GRAPH_STRONG);
	above = c->super ? java_class_at(x, c->super) : NULL;
	if (above && above->mirror)
		graph_edge(x->graph, above->mirror, graph_label(x->graph, super, strlen(super)),
			   GRAPH_STRONG);
}

static void content_add(struct java_reader *x, const struct java_class *c, const uint8_t *p)
{
	uint64_t n = elements_size(x, c, p);

	if (n && n <= CONTENT_MAX && graph_wanted(x->graph)->contents)
		graph_content(x->graph, p + c->size, n);
	/* forged arrays lie in far more memory than the process has touched */
	if (n && n <= x->values && graph_wanted(x->graph)->values) {
		uint8_t *to = graph_values(x->graph, n);

		x->values -= n;

		if (to)
			memcpy(to, p + c->size, n);
	}
}

/* A number that would lie behind the object's end is 0. */
static void numbers_add(struct java_reader *x, const struct java_class *c, const uint8_t *p,
			uint64_t size)
{
	uint8_t *to = c->nnumbers ? graph_values(x->graph, c->number_bytes) : NULL;

	for (uint32_t i = 0; to && i < c->nnumbers; i++) {
		const struct java_number *n = &x->numbers.v[c->number_at + i];

		if (n->at + (uint64_t)n->size <= size)
			memcpy(to, p + n->at, n->size);
		else
			memset(to, 0, n->size);
		to += n->size;
	}
}

static void object_add(struct java_reader *x, struct java_part *part, uint64_t addr,
		       const uint8_t *p, struct java_class *c, uint64_t size)
{
	x->objects++;
	if (!part->starts) {
		c->n++;
		c->bytes += size;
		return;
	}
	java_bit_set(part->starts, (addr - part->bottom) / x->align);
	graph_object(x->graph, addr, c->number, size);
	if (!c->laid_out)
		java_lay_out(x, c);
	switch (c->kind) {
	case JAVA_MIRROR:
		numbers_add(x, c, p, size);
		instance_refs(x, p, size, c->ref, c->nrefs);
		mirror_refs(x, addr, p, size);
		break;
	case JAVA_INSTANCE:
		numbers_add(x, c, p, size);
		instance_refs(x, p, size, c->ref, c->nrefs);
		break;
	case JAVA_REFERENCES:
		array_refs(x, addr, p, c->size, c->size + elements_size(x, c, p));
		break;
	case JAVA_NUMBERS: content_add(x, c, p); break;
	}
}

/* A walk over a part. */
struct walk {
	struct java_part *part;
	uint64_t at, limit; /* no object that begins at `at` goes beyond limit */
	uint32_t buffer;    /* the first buffer that ends behind `at` */
};

/* Sets limit. Returns false when it has passed over memory without objects instead. */
static bool walk_limit(struct java_reader *x, struct walk *w)
{
	const struct java_buffer *b;

	w->limit = w->part->single ? w->part->region->end : w->part->top;
	while (w->buffer < x->buffers.n && x->buffers.v[w->buffer].end <= w->at)
		w->buffer++;
	b = w->buffer < x->buffers.n ? &x->buffers.v[w->buffer] : NULL;
	if (!b || b->start >= w->limit)
		return true;
	if (w->at < b->start) {
		w->limit = b->start;
	} else if (w->at < b->top) {
		w->limit = b->top < w->limit ? b->top : w->limit;
	} else {
		uint64_t end = b->end < w->limit ? b->end : w->limit;

		x->holes += end - w->at;
		w->at = end;
		return false;
	}
	return true;
}

/* Goes to the next place, up to the limit, where an object seems to begin. In a buffer, what does
 * not follow the object before is of older objects. */
static void walk_resync(struct java_reader *x, struct walk *w)
{
	const struct java_buffer *b = w->buffer < x->buffers.n ? &x->buffers.v[w->buffer] : NULL;
	uint64_t from = w->at;

	if (w->part->single) {
		w->limit = w->part->top;
		w->at = w->limit;
	} else if (b && b->start <= w->at) {
		w->at = w->limit;
	} else {
		w->at += x->align;
	}
	while (w->at + 16 <= w->limit) {
		const uint8_t *p = w->part->region->bytes + (w->at - w->part->region->start);
		struct space_range run = run_at(x, w->at);
		const struct java_class *c;

		if (run.start > w->at) {
			w->at = run.start < w->limit ? run.start : w->limit;
			continue;
		}
		c = is_mark(x, java_u64(p)) ? class_of(x, p) : NULL;
		if (c && object_size(x, c, p, w->limit - w->at))
			break;
		w->at += x->align;
	}
	if (w->at + 16 > w->limit)
		w->at = w->limit;
	x->skipped += w->at - from;
}

/* Is the object at `at` one that the collector knows to be dead? */
static bool is_dead(const struct java_reader *x, const struct java_part *part, uint64_t at)
{
	uint64_t i = (at - part->bottom) / x->align;

	return at < part->marked && !(part->marks[i / 8] >> i % 8 & 1);
}

/* Goes over dead objects. Their classes may be unloaded, so that nothing tells their size. */
static void walk_dead(const struct java_reader *x, struct walk *w)
{
	while (w->at < w->part->marked && is_dead(x, w->part, w->at))
		w->at += x->align;
}

static void part_walk(struct java_reader *x, struct java_part *part, uint64_t *end)
{
	const struct memory_region *r = part->region;
	struct walk w = { .part = part, .at = part->bottom };

	w.buffer = partition_point(x->buffers.n, k, x->buffers.v[k].end <= part->bottom);
	while (w.at < part->top) {
		const uint8_t *p = r->bytes + (w.at - r->start);
		struct java_class *c = NULL;
		uint64_t size = 0;

		if (is_dead(x, part, w.at)) {
			walk_dead(x, &w);
			continue;
		}
		if (!walk_limit(x, &w))
			continue;
		if (w.limit - w.at >= 16 && run_at(x, w.at).start <= w.at)
			c = class_of(x, p);
		if (c)
			size = object_size(x, c, p, w.limit - w.at);
		if (!size) {
			walk_resync(x, &w);
			continue;
		}
		object_add(x, part, w.at, p, c, size);
		w.at += part->step ? (size + part->step - 1) & ~(uint64_t)(part->step - 1) : size;
	}
	*end = w.at;
}

void java_objects_add(struct java_reader *x)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < x->parts.n; i++)
		if (x->parts.v[i].bottom >= end)
			part_walk(x, &x->parts.v[i], &end);
	for (uint32_t i = 0; i < x->classes.n; i++)
		if (x->classes.v[i].n)
			graph_count(x->graph, x->classes.v[i].number, x->classes.v[i].n,
				    x->classes.v[i].bytes);
}
