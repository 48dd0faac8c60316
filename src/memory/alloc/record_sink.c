/* The sink of `descry malloc record`: records become events of the file. */
#include <errno.h>

#include "base/hash.h"
#include "memory/alloc/alloc_record.h"
#include "render/render.h"

enum {
	NUMBERS = 3,
	FLUSH_NS = 1000000000,
	MET_BYTES = 64, /* counted for an address in record_sink.met */
};

struct thread {
	uint32_t index; /* in the file; from 1 */
	uint32_t stack; /* of the call that has not returned yet */
	/* Its last event is a free of this address, by this function; else 0. */
	uint64_t freed;
	const struct alloc_function *by;
};

struct record_sink {
	struct sink s; /* first */
	struct alloc_record *r;
	struct hash threads; /* tid -> index in known */
	VEC(struct thread) known;
	struct hash stacks; /* addresses -> number */
	struct hash pcs;    /* address -> number of its frame */
	VEC(uint32_t) frames;
	uint64_t began, flushed, now; /* now: time of the last event */
	/* Blocks of before the recording are read at its first record. Until their time is reached,
	 * `met` has the addresses of all events. */
	struct alloc_before before;
	struct hash met;
	bool before_read, before_waits;
	/* Of the record at hand. */
	uint64_t numbers[NUMBERS];
	uint32_t nnumbers, stack;
	/* The last tid, to look it up once. */
	uint32_t tid, last;
};

static struct record_sink *of(struct sink *s)
{
	return (struct record_sink *)s;
}

/* A process can make any number of stacks, names and threads. Returns false when the room that
 * is left is too small for one more. */
static bool take_room(struct record_sink *k, uint64_t bytes)
{
	if (k->r->room < bytes)
		return false;
	k->r->room -= bytes;
	return true;
}

/* Returns NULL when there is no room for one more thread. */
static struct thread *thread_of(struct record_sink *k, uint32_t tid)
{
	bool is_new;
	uint64_t *at;

	if (tid == k->tid && k->known.n)
		return &k->known.v[k->last];
	if (!hash_get(&k->threads, &tid, sizeof(tid)) && !take_room(k, ALLOC_DEFINED))
		return NULL;
	at = hash_put(&k->threads, &tid, sizeof(tid), &is_new);
	if (is_new) {
		*at = k->known.n;
		vec_push(&k->known,
			 (struct thread){ .index = alloc_writer_thread(k->r->writer, tid) });
	}
	k->tid = tid;
	k->last = (uint32_t)*at;
	return &k->known.v[k->last];
}

/* --- stacks --- */

static void add_frame(void *arg, const struct frame *f)
{
	struct record_sink *k = arg;
	char text[ALLOC_TEXT_MAX];
	bool is_new;
	uint64_t *at;
	size_t n;

	if (f->kind == FRAME_END)
		return;
	frame_text_line(&k->s, f, text, sizeof(text));
	n = strlen(text);
	at = hash_put(&k->pcs, text, n, &is_new);
	if (is_new) {
		(void)take_room(k, ALLOC_DEFINED + n); /* number_stack() has looked */
		*at = alloc_writer_frame(k->r->writer, text, n);
	}
	vec_push(&k->frames, (uint32_t)*at);
}

/* Numbers a stack. Its addresses get names when it is seen first. */
static uint32_t number_stack(struct record_sink *k, const struct field *f, const uint8_t *data)
{
	struct field_stack st;
	bool is_new;
	uint64_t *at;

	if (!field_stack(f, data, &st) || !st.pcs)
		return 0;
	if (!hash_get(&k->stacks, st.pcs, st.n * sizeof(uint64_t)) &&
	    (k->r->room < st.n * (uint64_t)(ALLOC_DEFINED + ALLOC_TEXT_MAX) ||
	     !take_room(k, ALLOC_DEFINED + st.n * (uint64_t)ALLOC_DEFINED_FRAME))) {
		k->r->unstacked++;
		return 0;
	}
	at = hash_put(&k->stacks, st.pcs, st.n * sizeof(uint64_t), &is_new);
	if (is_new) {
		k->frames.n = 0;
		stack_each(&k->s, f, data, add_frame, k);
		*at = k->frames.n ? alloc_writer_stack(k->r->writer, k->frames.v, k->frames.n) : 0;
	}
	return (uint32_t)*at;
}

/* --- what was allocated before --- */

static void read_before(struct record_sink *k)
{
	if (!k->r->attached || k->before_read)
		return;
	k->before_read = true;
	k->r->not_before = alloc_before_read(k->r->attached, &k->before);
	k->before_waits = !k->r->not_before;
}

/* Writes the blocks that are in use at k->before.time and that no event before has. */
static void write_before(struct record_sink *k)
{
	static const char TEXT[] = "[allocated before the recording]";
	struct alloc_event e = { .op = ALLOC_MALLOC, .time = k->now };
	struct thread *t = thread_of(k, (uint32_t)k->r->attached);
	char number[32];
	uint32_t frame;

	k->before_waits = false;
	if (t && k->before.blocks.n && take_room(k, ALLOC_DEFINED * 2 + sizeof(TEXT))) {
		frame = alloc_writer_frame(k->r->writer, TEXT, sizeof(TEXT) - 1);
		e.stack = alloc_writer_stack(k->r->writer, &frame, 1);
		e.thread = t->index;
		for (uint32_t i = 0; i < k->before.blocks.n; i++) {
			e.addr = k->before.blocks.v[i].addr;
			e.size = k->before.blocks.v[i].size;
			if (hash_get(&k->met, &e.addr, sizeof(e.addr)))
				continue;
			alloc_write(k->r->writer, &e);
			k->r->before++;
		}
		snprintf(number, sizeof(number), "%llu", (unsigned long long)k->r->before);
		alloc_writer_info(k->r->writer, "before", number);
	}
	vec_fini(&k->before.blocks);
	hash_fini(&k->met);
}

/* Notes the address of an event that may be older than the copy. The process may write the times of
 * its records (-x engine=inproc), so it can make any number. */
static void note_met(struct record_sink *k, uint64_t addr)
{
	bool is_new;

	hash_put(&k->met, &addr, sizeof(addr), &is_new);
	if (!is_new || take_room(k, MET_BYTES))
		return;
	k->r->not_before = err_new(
		E2BIG, "too many blocks were allocated or freed while its memory was copied");
	k->before_waits = false;
	vec_fini(&k->before.blocks);
	hash_fini(&k->met);
}

/* --- records --- */

/* One function that frees may call another to do it: only the first call counts. Notes the event. */
static bool is_freed_already(struct thread *t, const struct alloc_event *e,
			     const struct alloc_function *by)
{
	bool again = e->op == ALLOC_FREE && t->freed && t->freed == e->addr && t->by != by;

	t->freed = e->op == ALLOC_FREE ? e->addr : 0;
	t->by = by;
	return again;
}

static struct err *record_begin(struct sink *s, const struct record_view *r)
{
	read_before(of(s));
	of(s)->nnumbers = of(s)->stack = 0;
	return NULL;
}

static struct err *action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct record_sink *k = of(s);

	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct field *f = &r->segment->fields[a->fields[i]];

		if (a->kind == ACT_USTACK)
			k->stack = number_stack(k, f, r->data);
		else if (k->nnumbers < NUMBERS)
			k->numbers[k->nnumbers++] = field_uint(f, r->data);
	}
	return NULL;
}

static void lose(struct record_sink *k, uint64_t count)
{
	struct alloc_event e = { .op = ALLOC_LOST, .size = count };

	if (k->known.n) {
		e.thread = k->known.v[k->last].index;
		e.time = k->now;
		alloc_write(k->r->writer, &e);
	}
}

static struct err *record_end(struct sink *s, const struct record_view *r)
{
	struct record_sink *k = of(s);
	const struct alloc_clause *c;
	struct alloc_event e = { 0 };
	struct thread *t;

	if (r->segment->clause >= k->r->clauses.n)
		return NULL;
	c = &k->r->clauses.v[r->segment->clause];
	if (k->before_waits && r->head->time >= k->before.time)
		write_before(k);
	t = thread_of(k, r->head->tid);
	if (!t) {
		k->r->lost++;
		lose(k, 1);
		return NULL;
	}
	if (!k->began)
		k->began = k->flushed = r->head->time;
	e.thread = t->index;
	e.time = k->now = r->head->time - k->began;
	e.op = c->function->op;
	e.stack = k->stack;
	if (c->what == ALLOC_AT_STACK) {
		t->stack = k->stack;
		if (!k->nnumbers || !k->numbers[0])
			return NULL;
		e.op = ALLOC_REALLOC_FROM;
		e.stack = 0;
		e.addr = k->numbers[0];
	} else {
		e.addr = k->numbers[0];
		e.size = k->numbers[1];
		e.align = k->numbers[2];
		if (e.op != ALLOC_FREE) {
			e.stack = t->stack;
			t->stack = 0;
		}
	}
	if (is_freed_already(t, &e, c->function))
		return NULL;
	if (k->before_waits && r->head->time < k->before.time && e.addr)
		note_met(k, e.addr);
	alloc_write(k->r->writer, &e);
	if (r->head->time - k->flushed > FLUSH_NS) {
		k->flushed = r->head->time;
		alloc_writer_flush(k->r->writer);
	}
	return NULL;
}

static struct err *drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct record_sink *k = of(s);

	if (kind == DROP_NAMES || kind == DROP_CHANGED)
		return NULL;
	k->r->lost += count;
	lose(k, count);
	return NULL;
}

/* A clause that faults records nothing, for example when the pointer of posix_memalign() cannot be
 * read at its return. */
static struct err *fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct record_sink *k = of(s);

	k->r->faults++;
	(void)thread_of(k, f->head.tid);
	lose(k, 1);
	return NULL;
}

static struct err *end(struct sink *s)
{
	read_before(of(s)); /* of a process that has made no call */
	if (of(s)->before_waits)
		write_before(of(s));
	return NULL;
}

static struct err *nothing(struct sink *s)
{
	return NULL;
}

static struct err *no_printa(struct sink *s, const struct record_view *r, const struct action *a,
			     struct agg_view *const *aggs, uint32_t n)
{
	return NULL;
}

static struct err *no_reopen(struct sink *s, const char *path)
{
	return NULL;
}

static char *no_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void sink_free(struct sink *s)
{
	struct record_sink *k = of(s);

	hash_fini(&k->threads);
	hash_fini(&k->stacks);
	hash_fini(&k->pcs);
	hash_fini(&k->met);
	vec_fini(&k->before.blocks);
	vec_fini(&k->known);
	vec_fini(&k->frames);
	free(k);
}

struct sink *alloc_record_sink(struct alloc_record *r)
{
	static const struct sink_ops ops = {
		.name = "malloc record",
		.begin = nothing,
		.end = end,
		.record_begin = record_begin,
		.action = action,
		.record_end = record_end,
		.printa = no_printa,
		.fault = fault,
		.drop = drop,
		.reopen = no_reopen,
		.truncate = nothing,
		.flush = nothing,
		.format = no_format,
		.free = sink_free,
	};
	struct record_sink *k = xcalloc(1, sizeof(*k));

	k->s.ops = &ops;
	k->r = r;
	return &k->s;
}
