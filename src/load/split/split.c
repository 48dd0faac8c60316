/* Runs one program by two engines: the in-process engine fires the probes that can be patched, the
 * kernel engine's uprobes the rest.
 *
 * Each engine runs its own image of the same program, without the probes of the other. Records,
 * keys and counters mean the same in both. The CPUs of this engine are those of INSIDE, then those
 * of KERNEL. BEGIN, END and timers belong to INSIDE.
 */

#include "load/split/split.h"

enum { INSIDE, KERNEL, PARTS };

struct split {
	struct engine e;
	struct engine *part[PARTS];
	struct image *outer; /* KERNEL's image; e.image is INSIDE's */
	bool *outside;       /* by probe: the kernel engine fires it */
	uint32_t nreports;   /* number of programs that INSIDE reports */
	struct engine_counters counters;
};

static struct split *split_of(struct engine *e)
{
	return (struct split *)e;
}

static void take_notes(struct split *s)
{
	for (int i = 0; i < PARTS; i++) {
		struct engine *p = s->part[i];

		for (uint32_t k = 0; k < p->nnotes; k++)
			engine_remark(&s->e, p->notes[k].text, p->notes[k].blind);
		p->nnotes = 0;
		s->e.remarks.left_out += p->remarks.left_out;
		p->remarks.left_out = 0;
	}
}

static struct err *split_ready(struct engine *en, const struct image *img)
{
	struct engine *k = split_of(en)->part[KERNEL];

	return k->ops->ready(k, split_of(en)->outer);
}

static void split_hold(struct engine *en, struct control *c)
{
	struct engine *inside = split_of(en)->part[INSIDE];

	inside->ops->hold(inside, c);
}

static struct err *split_load(struct engine *en, const struct image *img, bool measure)
{
	struct split *s = split_of(en);
	struct err *e = NULL;

	en->image = img;
	for (int i = 0; i < PARTS && !e; i++) {
		e = s->part[i]->ops->load(s->part[i], i == INSIDE ? img : s->outer, measure);
		en->ncpus += s->part[i]->ncpus;
	}
	en->state = s->part[INSIDE]->state;
	en->beside = s->part[KERNEL];
	take_notes(s);
	return e;
}

static struct err *split_attach(struct engine *en)
{
	struct split *s = split_of(en);
	struct err *e = NULL;

	for (int i = 0; i < PARTS && !e; i++)
		e = s->part[i]->ops->attach(s->part[i]);
	take_notes(s);
	return e;
}

static void split_add_process(struct engine *en, int pid, bool command)
{
	struct split *s = split_of(en);

	for (int i = 0; i < PARTS; i++)
		if (s->part[i]->ops->add_process)
			s->part[i]->ops->add_process(s->part[i], pid, command);
}

static void split_met(struct engine *en, void (*fn)(void *arg, int pid), void *arg)
{
	struct split *s = split_of(en);

	for (int i = 0; i < PARTS; i++)
		if (s->part[i]->ops->met)
			s->part[i]->ops->met(s->part[i], fn, arg);
}

static struct err *split_fire(struct engine *en, uint32_t prog)
{
	struct engine *inside = split_of(en)->part[INSIDE];

	return inside->ops->fire(inside, prog);
}

static void split_poll(struct engine *en, int timeout_ms)
{
	struct split *s = split_of(en);

	/* INSIDE's poll returns after 20 ms at most, so the kernel's ring need not wake this
	 * process. */
	s->part[INSIDE]->ops->poll(s->part[INSIDE], timeout_ms);
	s->part[KERNEL]->ops->poll(s->part[KERNEL], 0);
	if (engine_exiting(en))
		engine_exit(en);
}

static struct err *split_enter(struct engine *en, int pid, int like, struct control *c)
{
	struct engine *inside = split_of(en)->part[INSIDE];

	return inside->ops->enter(inside, pid, like, c);
}

static uint32_t split_nprocesses(const struct engine *en)
{
	const struct engine *inside = ((const struct split *)en)->part[INSIDE];

	return inside->ops->nprocesses(inside);
}

static bool split_behind(struct engine *en, uint64_t time)
{
	struct engine *inside = split_of(en)->part[INSIDE];

	return inside->ops->behind && inside->ops->behind(inside, time);
}

static int split_wait_fd(struct engine *en)
{
	return -1;
}

static void split_drain(struct engine *en, record_fn *fn, void *arg)
{
	struct split *s = split_of(en);

	for (int i = 0; i < PARTS; i++)
		s->part[i]->ops->drain(s->part[i], fn, arg);
	take_notes(s);
}

/* --- aggregations: a key's values of both parts side by side --- */

struct row {
	void *key;
	uint64_t *values;
};
struct table {
	const struct agg *agg;
	uint32_t ncpus, first; /* the part's first CPU */
	struct hash index;
	VEC(struct row) rows;
};

static void gather(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	struct table *t = arg;
	uint64_t *at = hash_put(&t->index, key ? key : "", key ? t->agg->key_size : 0, NULL);
	const size_t words = t->agg->nwords;
	struct row *r;

	if (!*at) {
		r = vec_add(&t->rows);
		r->key = key ? xmemdup(key, t->agg->key_size) : NULL;
		r->values = xcalloc(t->ncpus * words, sizeof(*r->values));
		*at = t->rows.n;
	}
	r = &t->rows.v[*at - 1];
	memcpy(r->values + t->first * words, values, ncpus * words * sizeof(*values));
}

static struct err *split_agg_read(struct engine *en, uint32_t agg, agg_fn *fn, void *arg)
{
	struct split *s = split_of(en);
	struct table t = { .agg = &en->image->aggs[agg], .ncpus = en->ncpus };
	struct err *e = NULL;

	for (int i = 0; i < PARTS && !e; i++) {
		e = s->part[i]->ops->agg_read(s->part[i], agg, gather, &t);
		t.first += s->part[i]->ncpus;
	}
	for (uint32_t i = 0; i < t.rows.n; i++) {
		if (!e)
			fn(arg, t.rows.v[i].key, t.rows.v[i].values, t.ncpus);
		free(t.rows.v[i].key);
		free(t.rows.v[i].values);
	}
	vec_fini(&t.rows);
	hash_fini(&t.index);
	return e;
}

static struct err *split_agg_delete(struct engine *en, uint32_t agg, const void *key,
				    uint64_t *ret_values)
{
	struct split *s = split_of(en);
	struct err *e = NULL;
	size_t at = 0;

	for (int i = 0; i < PARTS && !e; i++) {
		e = s->part[i]->ops->agg_delete(s->part[i], agg, key,
						ret_values ? ret_values + at : NULL);
		at += (size_t)s->part[i]->ncpus * en->image->aggs[agg].nwords;
	}
	return e;
}

/* --- stacks: both parts make ids from the frames in the same way --- */

static uint32_t split_stack(struct engine *en, int64_t id, uint64_t *frames, uint32_t max)
{
	struct split *s = split_of(en);
	uint32_t n = 0;

	for (int i = 0; i < PARTS && !n; i++)
		n = s->part[i]->ops->stack(s->part[i], id, frames, max);
	return n;
}

static uint32_t split_stack_end(struct engine *en, int64_t id)
{
	struct split *s = split_of(en);
	uint32_t end = 0;

	for (int i = 0; i < PARTS && !end; i++)
		if (s->part[i]->ops->stack_end)
			end = s->part[i]->ops->stack_end(s->part[i], id);
	return end;
}

/* --- costs --- */

static void split_counters(struct engine *en, struct engine_counters *ret)
{
	struct split *s = split_of(en);
	struct engine_counters *sum = &s->counters;
	uint32_t nprobes = en->image->nprobes, first = 0;

	if (!sum->fixed) {
		sum->ncpus = en->ncpus;
		sum->fixed = xcalloc((size_t)en->ncpus * WIRE_FIXED_COUNTERS + 1, 8);
		sum->fired = xcalloc(nprobes + 1, 8);
		sum->dropped = xcalloc(nprobes + 1, 8);
	}
	memset(sum->fired, 0, nprobes * 8);
	memset(sum->dropped, 0, nprobes * 8);
	sum->table_bytes = sum->missed = sum->lost_ticks = sum->lost_events = 0;
	for (int i = 0; i < PARTS; i++) {
		struct engine_counters c = { 0 };

		s->part[i]->ops->counters(s->part[i], &c);
		if (c.fixed)
			memcpy(sum->fixed + (size_t)first * WIRE_FIXED_COUNTERS, c.fixed,
			       (size_t)c.ncpus * WIRE_FIXED_COUNTERS * 8);
		for (uint32_t k = 0; k < nprobes; k++) {
			sum->fired[k] += c.fired ? c.fired[k] : 0;
			sum->dropped[k] += c.dropped ? c.dropped[k] : 0;
		}
		sum->table_bytes += c.table_bytes;
		sum->missed += c.missed;
		sum->lost_ticks += c.lost_ticks;
		sum->lost_events += c.lost_events;
		first += s->part[i]->ncpus;
	}
	*ret = *sum;
}

/* Returns the number among all programs of a program of the kernel's part. */
static uint32_t number_of(const struct split *s, uint32_t prog)
{
	const struct image *img = s->e.image;
	const char *name = s->outer->progs[prog].name;

	for (uint32_t i = 0; i < img->nprogs; i++)
		if (!strcmp(img->progs[i].name, name))
			return i;
	return 0;
}

static uint32_t split_report(struct engine *en, struct engine_prog_report *ret, uint32_t max)
{
	struct split *s = split_of(en);
	uint32_t n = s->part[INSIDE]->ops->report(s->part[INSIDE], ret, max);
	uint32_t all = n + s->part[KERNEL]->ops->report(s->part[KERNEL], ret + n, max - n);

	for (uint32_t i = n; i < all; i++)
		ret[i].prog = number_of(s, ret[i].prog);
	s->nreports = n;
	return all;
}

static uint64_t split_map_bytes(struct engine *en)
{
	struct engine *k = split_of(en)->part[KERNEL];

	return k->ops->map_bytes(k);
}

static const char *split_probe_mode(struct engine *en, uint32_t i)
{
	struct split *s = split_of(en);
	struct engine *part = s->part[s->outside[i] ? KERNEL : INSIDE];
	const char *mode = part->ops->probe_mode ? part->ops->probe_mode(part, i) : NULL;

	return s->outside[i] ? "kernel uprobe" : mode;
}

static bool split_stop(struct engine *en, uint32_t i)
{
	struct split *s = split_of(en);
	struct engine *part = s->part[i < s->nreports ? INSIDE : KERNEL];

	return part->ops->stop && part->ops->stop(part, i < s->nreports ? i : i - s->nreports);
}

/* --- the end --- */

static struct err *split_detach(struct engine *en)
{
	struct split *s = split_of(en);
	struct err *first = NULL;

	/* Detaches the kernel's probes first, because they were attached last. */
	for (int i = PARTS; i--;) {
		struct err *e = s->part[i]->ops->detach(s->part[i]);

		if (first)
			err_free(e);
		else
			first = e;
	}
	take_notes(s);
	return first;
}

static void split_free(struct engine *en)
{
	struct split *s = split_of(en);

	for (int i = PARTS; i--;)
		s->part[i]->ops->free(s->part[i]);
	image_free(s->outer);
	engine_free_remarks(en);
	free(s->outside);
	free(s->counters.fixed);
	free(s->counters.fired);
	free(s->counters.dropped);
	free(s);
}

static const struct engine_ops engine_split_ops = {
	.name = "inproc+kernel",
	.ready = split_ready,
	.hold = split_hold,
	.load = split_load,
	.attach = split_attach,
	.add_process = split_add_process,
	.met = split_met,
	.fire = split_fire,
	.poll = split_poll,
	.enter = split_enter,
	.nprocesses = split_nprocesses,
	.behind = split_behind,
	.wait_fd = split_wait_fd,
	.drain = split_drain,
	.agg_read = split_agg_read,
	.agg_delete = split_agg_delete,
	.stack = split_stack,
	.stack_end = split_stack_end,
	.counters = split_counters,
	.report = split_report,
	.map_bytes = split_map_bytes,
	.probe_mode = split_probe_mode,
	.stop = split_stop,
	.detach = split_detach,
	.free = split_free,
};

/* Gives all probes of a function to the kernel when one of them is the kernel's, so that the kernel
 * also has the arrays of this function. */
static void widen(const struct image *img, bool *outside)
{
	struct hash names = { 0 };

	for (uint32_t i = 0; i < img->nprobes; i++)
		if (outside[i])
			*hash_put(&names, img->probes[i].func, strlen(img->probes[i].func), NULL) =
				1;
	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct image_probe *p = &img->probes[i];

		outside[i] =
			p->probe &&
			(p->probe->kind == ATTACH_UPROBE || p->probe->kind == ATTACH_URETPROBE) &&
			hash_get(&names, p->func, strlen(p->func));
	}
	hash_fini(&names);
}

struct engine *engine_split_new(struct engine *inside, struct engine *kernel, struct image *inner,
				struct image *outer, const bool *outside)
{
	struct split *s = xcalloc(1, sizeof(*s));
	cleanup_free bool *kept = xcalloc(inner->nprobes + 1, sizeof(*kept));

	s->e.ops = &engine_split_ops;
	s->part[INSIDE] = inside;
	s->part[KERNEL] = kernel;
	s->outer = outer;
	s->outside = xmemdup(outside, inner->nprobes * sizeof(*outside) + 1);
	widen(inner, s->outside);
	image_keep(outer, s->outside);
	for (uint32_t i = 0; i < inner->nprobes; i++)
		kept[i] = !s->outside[i];
	image_keep(inner, kept);
	return &s->e;
}
