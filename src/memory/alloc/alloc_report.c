/* Reads a recording, keeps the blocks that are live, and sums up. The stacks of the peak need a
 * second reading, which ends there. */
#include "memory/alloc/alloc_report.h"

#include "memory/alloc/live_blocks.h"
#include "memory/alloc/shared_lines.h"
#include "memory/alloc/trace_ahead.h"

enum { FETCH_AHEAD = 16 /* events: as long as the memory takes */ };

/* Of one thread. */
struct thread {
	bool moving; /* a realloc() has begun: from this block, */
	bool known;  /* which was recorded */
	struct live_block from;
	uint64_t last; /* the block that its last call allocated; 0: it did not */
};

struct reading {
	struct alloc_report *r;
	struct live live;
	VEC(struct thread) threads;
	uint64_t until; /* second reading: the number of the event of the peak; 0: the first */
	uint64_t events, peak_event;
	uint64_t from, to; /* times of the present point of the course */
	struct size_classes_table classes;
	uint32_t first_thread; /* that allocated */
	bool several;          /* a second thread has allocated, so blocks may share cache lines */
	struct shared_lines lines;
	struct mapped_ranges ranges;
};

static const char *const of_names[] = { "bytes", "count", "peak", "end", "temporary", "mapped" };

enum report_of report_of_named(const char *name)
{
	enum report_of of = 0;

	while (of < REPORT_NOF && strcmp(name, of_names[of]))
		of++;
	return of;
}

const char *report_of_name(enum report_of of)
{
	return of_names[of];
}

uint64_t report_site_value(const struct report_site *s, enum report_of of)
{
	switch (of) {
	case REPORT_COUNT: return s->count;
	case REPORT_PEAK: return s->peak_bytes;
	case REPORT_END: return s->live_bytes;
	case REPORT_TEMPORARY: return s->temporary;
	case REPORT_MAPPED: return s->mapped_bytes;
	default: return s->bytes;
	}
}

bool report_of_blocks(enum report_of of)
{
	return of == REPORT_COUNT || of == REPORT_TEMPORARY;
}

static inline struct report_site *site(struct reading *k, uint32_t stack)
{
	while (k->r->sites.n <= stack)
		vec_add(&k->r->sites);
	return &k->r->sites.v[stack];
}

static uint32_t size_class(uint64_t size)
{
	return size > 1 ? 64 - (uint32_t)__builtin_clzll(size - 1) : 0;
}

static uint32_t life_class(uint64_t ns)
{
	uint32_t i = 0;

	for (; ns >= 10 && i + 1 < REPORT_LIVES; ns /= 10)
		i++;
	return i;
}

static uint32_t heat_row(uint64_t size)
{
	uint32_t bits = size ? 63 - (uint32_t)__builtin_clzll(size) : 0;

	return size < 4 ? (uint32_t)size : bits * 4 + (uint32_t)(size >> (bits - 2) & 3);
}

void report_row_sizes(uint32_t row, uint64_t *ret_min, uint64_t *ret_max)
{
	*ret_min = *ret_max = row;
	if (row < 8)
		return;
	*ret_min = (4ull + row % 4) << (row / 4 - 2);
	*ret_max = *ret_min + ((1ull << (row / 4 - 2)) - 1);
}

/* Makes one point of two, and one column of two. */
static void halve(struct alloc_report *r)
{
	for (uint32_t i = 0; i < r->npoints; i++) {
		struct report_point *to = &r->points[i / 2], p = r->points[i];
		uint64_t most = i % 2 && to->most > p.most ? to->most : p.most;

		*to = p;
		to->most = most;
	}
	r->npoints = (r->npoints + 1) / 2;
	r->step *= 2;
	for (uint32_t i = 0; i < REPORT_COLUMNS; i++) {
		for (uint32_t k = 0; k < REPORT_ROWS; k++) {
			uint32_t n = r->heat[i][k];

			r->heat[i][k] = 0;
			r->heat[i / 2][k] += n;
		}
	}
}

/* Makes a time's point the present one. */
static void begin_point(struct reading *k, uint64_t time)
{
	struct alloc_report *r = k->r;
	uint64_t at;

	if (!r->step)
		r->step = 1000;
	while ((at = time / r->step) >= REPORT_POINTS)
		halve(r);
	while (r->npoints <= at) { /* a time without events has the value before it */
		uint64_t bytes = r->npoints ? r->points[r->npoints - 1].bytes : 0;

		r->points[r->npoints++] = (struct report_point){ .bytes = bytes, .most = bytes };
	}
	k->from = at * r->step;
	k->to = k->from + r->step;
}

static void put_point(struct reading *k, uint64_t time)
{
	struct report_point *p;

	if (time < k->from || time >= k->to)
		begin_point(k, time);
	p = &k->r->points[k->from / k->r->step];
	if (p->most < k->r->live_bytes)
		p->most = k->r->live_bytes;
	p->bytes = k->r->live_bytes;
}

static void count_waste(struct reading *k, uint64_t size, bool more)
{
	for (int c = 0; c < CLASSES_N; c++) {
		uint64_t waste = size_classes_get(&k->classes, c, size) - size;

		k->r->waste[c] += more ? waste : -waste;
	}
}

/* Begins to keep cache lines, when a second thread allocates. */
static void begin_lines(struct reading *k)
{
	k->several = true;
	for (uint32_t i = 0; i < k->live.cap; i++) {
		const struct live_block *b = &k->live.slots[i];

		if (b->addr)
			shared_lines_add(&k->lines, b->addr, b->size, b->thread);
	}
}

static void leave(struct reading *k, const struct live_block *b)
{
	struct report_site *s = site(k, b->stack);

	s->live_count--;
	s->live_bytes -= b->size;
	k->r->live--;
	k->r->live_bytes -= b->size;
	k->r->sizes[size_class(b->size)].live--;
	count_waste(k, b->size, false);
	if (k->several)
		shared_lines_remove(&k->lines, b->addr, b->size);
}

static void report_enter(struct reading *k, const struct live_block *b)
{
	struct live_block old;
	struct report_site *s = site(k, b->stack);

	if (b->thread != k->first_thread && !k->several) {
		if (k->first_thread)
			begin_lines(k);
		k->first_thread = k->first_thread ?: b->thread;
	}
	if (!live_put(&k->live, b, &old)) {
		k->r->replaced++;
		leave(k, &old);
		s = site(k, b->stack);
	}
	s->live_count++;
	s->live_bytes += b->size;
	k->r->live++;
	k->r->live_bytes += b->size;
	k->r->sizes[size_class(b->size)].live++;
	count_waste(k, b->size, true);
	if (k->several && shared_lines_add(&k->lines, b->addr, b->size, b->thread)) {
		k->r->shared++;
		s->shared++;
	}
	if (k->r->live_bytes > k->r->peak) {
		k->r->peak = k->r->live_bytes;
		k->r->peak_blocks = k->r->live;
		k->r->peak_time = b->time;
		memcpy(k->r->peak_waste, k->r->waste, sizeof(k->r->waste));
		k->peak_event = k->events;
	}
}

static void allocated(struct reading *k, const struct alloc_event *e)
{
	struct live_block b = { e->addr, e->size, e->time, e->stack, e->thread };
	struct report_site *s = site(k, e->stack);

	if (!e->addr) {
		k->r->failed++;
		return;
	}
	s->count++;
	s->bytes += e->size;
	k->r->allocated++;
	k->r->allocated_bytes += e->size;
	k->r->sizes[size_class(e->size)].count++;
	k->r->sizes[size_class(e->size)].bytes += e->size;
	if (e->time < k->from || e->time >= k->to)
		begin_point(k, e->time);
	k->r->heat[k->from / k->r->step / (REPORT_POINTS / REPORT_COLUMNS)][heat_row(e->size)]++;
	report_enter(k, &b);
}

static void freed(struct reading *k, const struct alloc_event *e, const struct live_block *b)
{
	k->r->freed++;
	k->r->lives[life_class(e->time > b->time ? e->time - b->time : 0)]++;
	if (b->thread != e->thread) {
		k->r->elsewhere++;
		site(k, b->stack)->elsewhere++;
	}
	leave(k, b);
}

static void report_map(struct reading *k, const struct alloc_event *e)
{
	k->r->map_calls++;
	if (e->op == ALLOC_MAP) {
		mapped_ranges_put(&k->ranges, e->addr, e->size, (uint8_t)e->align);
		k->r->mapped[e->align].bytes += e->size;
		if (e->align == WIRE_ALLOC_ANONYMOUS) {
			struct report_site *s = site(k, e->stack);

			s->mapped++;
			s->mapped_bytes += e->size;
		}
	} else {
		mapped_ranges_take(&k->ranges, e->addr, e->size);
	}
	for (int i = 0; i < MAPPED_N; i++) {
		struct report_mapped *m = &k->r->mapped[i];

		m->live = k->ranges.bytes[i];
		m->peak = m->live > m->peak ? m->live : m->peak;
	}
	k->r->mapped_left_out = k->ranges.left_out;
}

static void report_take(struct reading *k, const struct alloc_event *e)
{
	struct live_block b;
	struct thread *t;

	while (k->threads.n <= e->thread)
		vec_add(&k->threads);
	t = &k->threads.v[e->thread];
	switch (e->op) {
	case ALLOC_MALLOC:
	case ALLOC_CALLOC:
	case ALLOC_ALIGNED: allocated(k, e); break;
	case ALLOC_REALLOC_FROM:
		t->moving = true;
		t->known = live_take(&k->live, e->addr, &t->from);
		if (t->known)
			leave(k, &t->from);
		else
			k->r->unknown++;
		t->last = 0;
		return;
	case ALLOC_REALLOC:
		if (!e->addr && e->size && t->moving && t->known) {
			report_enter(k, &t->from); /* it failed: the block stays */
			k->r->failed++;
		} else {
			if (t->moving && t->known) {
				uint64_t age = e->time > t->from.time ? e->time - t->from.time : 0;

				k->r->freed++;
				k->r->lives[life_class(age)]++;
				k->r->elsewhere += t->from.thread != e->thread;
			}
			if (e->addr || e->size)
				allocated(k, e);
		}
		t->moving = false;
		break;
	case ALLOC_FREE:
		if (live_take(&k->live, e->addr, &b)) {
			if (t->last == e->addr) {
				k->r->temporary++;
				site(k, b.stack)->temporary++;
			}
			freed(k, e, &b);
		} else if (t->moving && t->known && t->from.addr == e->addr) {
			t->known = false; /* realloc(p, 0), by free() */
			k->r->freed++;
		} else {
			k->r->unknown++;
		}
		t->last = 0;
		return;
	case ALLOC_LOST: k->r->lost += e->size; return;
	case ALLOC_MAP:
	case ALLOC_UNMAP: report_map(k, e); return;
	default: return;
	}
	t->last = e->addr;
}

/* Takes a batch. Returns the bytes of memory that would be needed when there is not enough, else
 * 0. */
static uint64_t take_batch(struct reading *k, const struct alloc_event *v, uint32_t n,
			   uint64_t room)
{
	for (uint32_t i = 0; i < n && (!k->until || k->events < k->until); i++) {
		const struct alloc_event *e = &v[i];
		uint64_t needs =
			live_growth(&k->live) + (k->several ? shared_lines_growth(&k->lines) : 0);

		if (needs && room && needs > room)
			return needs;
		if (i + FETCH_AHEAD < n)
			live_fetch(&k->live, v[i + FETCH_AHEAD].addr);
		k->events++;
		if (e->op < ALLOC_LOST)
			k->r->calls[e->op]++;
		report_take(k, e);
		if (e->time > k->r->duration)
			k->r->duration = e->time;
		put_point(k, e->time);
	}
	return 0;
}

static struct err *read_all(struct reading *k, struct alloc_trace *t)
{
	const uint64_t room = t->room;
	const struct alloc_event *v;
	struct alloc_ahead *ahead;
	uint64_t needs = 0;
	struct err *e;
	uint32_t n;

	alloc_rewind(t);
	size_classes_init(&k->classes);
	ahead = alloc_ahead_begin(t);
	while (!needs && (!k->until || k->events < k->until) && (v = alloc_ahead_next(ahead, &n)))
		needs = take_batch(k, v, n, room);
	e = alloc_ahead_end(ahead);
	if (needs) {
		err_free(e);
		e = alloc_no_room(t, needs);
	}
	live_fini(&k->live);
	shared_lines_fini(&k->lines);
	mapped_ranges_fini(&k->ranges);
	vec_fini(&k->threads);
	return e;
}

struct err *alloc_report_make(struct alloc_trace *t, struct alloc_report **ret)
{
	struct alloc_report *r = xcalloc(1, sizeof(*r)), *peak = xcalloc(1, sizeof(*peak));
	struct reading first = { .r = r }, second = { .r = peak };
	struct err *e;

	e = read_all(&first, t);
	r->threads = t->threads.n ? t->threads.n - 1 : 0;
	r->sample = strtoull(alloc_info(t, "sample") ?: "0", NULL, 10);
	r->forked = !strcmp(alloc_info(t, "forked") ?: "no", "yes");
	second.until = first.peak_event;
	if (!e && first.peak_event && t->stacks.n > 1)
		e = read_all(&second, t);
	for (uint32_t i = 0; i < peak->sites.n && i < r->sites.n; i++) {
		r->sites.v[i].peak_count = peak->sites.v[i].live_count;
		r->sites.v[i].peak_bytes = peak->sites.v[i].live_bytes;
	}
	alloc_report_free(peak);
	/* The definitions that stacks need are those of the whole file. */
	if (!e && second.events) {
		struct alloc_event event;

		while (alloc_next(t, &event, &e))
			;
	}
	e = e ?: alloc_unchanged(t);
	/* The owner of the file may have written it between the readings. */
	if (r->sites.n > t->stacks.n)
		r->sites.n = t->stacks.n;
	if (e)
		alloc_report_free(r);
	else
		*ret = r;
	return e;
}

void alloc_report_free(struct alloc_report *r)
{
	if (!r)
		return;
	vec_fini(&r->sites);
	free(r);
}
