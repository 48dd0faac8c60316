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

struct record_sink {
	struct sink s; /* first */
	struct alloc_record *r;
	struct record_files *files;
	VEC(uint32_t) frames;
	/* Blocks of before the recording are read at its first record. Until their time is reached,
	 * `met` has the addresses of all events. */
	struct alloc_before before;
	struct hash met;
	pid_t before_of; /* the process */
	bool before_waits;
	/* Of the record at hand. */
	uint64_t numbers[NUMBERS];
	uint32_t nnumbers, stack;
	struct record_file *file; /* NULL: it is of a process that has none, or it has not said */
	bool has_file;
};

static struct record_sink *of(struct sink *s)
{
	return (struct record_sink *)s;
}

/* A process can make any number of stacks, names and threads. Returns false when the room that
 * is left is too small for one more. */
static bool take_room(struct record_sink *k, struct record_file *to, uint64_t bytes)
{
	if (k->files->room < bytes)
		return false;
	k->files->room -= bytes;
	to->used += bytes;
	return true;
}

/* Returns NULL when there is no room for one more thread. */
static struct record_thread *thread_of(struct record_sink *k, struct record_file *to, uint32_t tid)
{
	bool is_new;
	uint64_t *at;

	if (tid == to->tid && to->known.n)
		return &to->known.v[to->last];
	if (!hash_get(&to->threads, &tid, sizeof(tid)) && !take_room(k, to, ALLOC_DEFINED))
		return NULL;
	at = hash_put(&to->threads, &tid, sizeof(tid), &is_new);
	if (is_new) {
		*at = to->known.n;
		vec_push(&to->known,
			 (struct record_thread){ .index = alloc_writer_thread(to->writer, tid) });
	}
	to->tid = tid;
	to->last = (uint32_t)*at;
	return &to->known.v[to->last];
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
	at = hash_put(&k->file->pcs, text, n, &is_new);
	if (is_new) {
		(void)take_room(k, k->file, ALLOC_DEFINED + n); /* number_stack() has looked */
		*at = alloc_writer_frame(k->file->writer, text, n);
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
	if (!hash_get(&k->file->stacks, st.pcs, st.n * sizeof(uint64_t)) &&
	    (k->files->room < st.n * (uint64_t)(ALLOC_DEFINED + ALLOC_TEXT_MAX) ||
	     !take_room(k, k->file, ALLOC_DEFINED + st.n * (uint64_t)ALLOC_DEFINED_FRAME))) {
		k->files->unstacked++;
		return 0;
	}
	at = hash_put(&k->file->stacks, st.pcs, st.n * sizeof(uint64_t), &is_new);
	if (is_new) {
		k->frames.n = 0;
		stack_each(&k->s, f, data, add_frame, k);
		*at = k->frames.n ? alloc_writer_stack(k->file->writer, k->frames.v, k->frames.n)
				  : 0;
	}
	return (uint32_t)*at;
}

/* --- what was allocated before --- */

static void read_before(struct record_sink *k)
{
	struct record_files *f = k->files;

	if (!f->attached)
		return;
	k->before_of = f->attached;
	f->attached = 0; /* once */
	f->not_before = alloc_before_read(k->before_of, &k->before);
	k->before_waits = !f->not_before;
}

/* Writes the blocks that are in use at k->before.time and that no event before has. */
static void write_before(struct record_sink *k)
{
	static const char TEXT[] = "[allocated before the recording]";
	struct record_file *to = k->files->first;
	struct alloc_event e = { .op = ALLOC_MALLOC, .time = to->now };
	struct record_thread *t = thread_of(k, to, (uint32_t)k->before_of);
	char number[32];
	uint32_t frame;

	k->before_waits = false;
	if (t && k->before.blocks.n && take_room(k, to, ALLOC_DEFINED * 2 + sizeof(TEXT))) {
		frame = alloc_writer_frame(to->writer, TEXT, sizeof(TEXT) - 1);
		e.stack = alloc_writer_stack(to->writer, &frame, 1);
		e.thread = t->index;
		for (uint32_t i = 0; i < k->before.blocks.n; i++) {
			e.addr = k->before.blocks.v[i].addr;
			e.size = k->before.blocks.v[i].size;
			if (hash_get(&k->met, &e.addr, sizeof(e.addr)))
				continue;
			alloc_write(to->writer, &e);
			k->files->before++;
		}
		snprintf(number, sizeof(number), "%llu", (unsigned long long)k->files->before);
		alloc_writer_info(to->writer, "before", number);
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
	if (!is_new || take_room(k, k->files->first, MET_BYTES))
		return;
	k->files->not_before = err_new(
		E2BIG, "too many blocks were allocated or freed while its memory was copied");
	k->before_waits = false;
	vec_fini(&k->before.blocks);
	hash_fini(&k->met);
}

/* --- records --- */

/* One function that frees may call another to do it: only the first call counts. Notes the
 * event. */
static bool is_freed_already(struct record_thread *t, const struct alloc_event *e,
			     const struct alloc_function *by)
{
	bool again = e->op == ALLOC_FREE && t->freed && t->freed == e->addr && t->by != by;

	t->freed = e->op == ALLOC_FREE ? e->addr : 0;
	t->by = by;
	return again;
}

static struct err *record_begin(struct sink *s, const struct record_view *r)
{
	struct record_sink *k = of(s);

	read_before(k);
	k->nnumbers = k->stack = 0;
	k->has_file = !k->r->follow;
	k->file = k->has_file ? k->files->first : NULL;
	return NULL;
}

static struct err *action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct record_sink *k = of(s);

	for (uint32_t i = 0; i < a->nfields; i++) {
		const struct field *f = &r->segment->fields[a->fields[i]];

		if (!k->has_file) {
			k->file = record_file_of(k->files, (pid_t)field_uint(f, r->data));
			k->has_file = true;
		} else if (a->kind == ACT_USTACK) {
			k->stack = k->file ? number_stack(k, f, r->data) : 0;
		} else if (k->nnumbers < NUMBERS) {
			k->numbers[k->nnumbers++] = field_uint(f, r->data);
		}
	}
	return NULL;
}

static void lose(struct record_sink *k, struct record_file *from, uint64_t count)
{
	struct alloc_event e = { .op = ALLOC_LOST, .size = count };

	if (from->known.n) {
		e.thread = from->known.v[from->last].index;
		e.time = from->now;
		alloc_write(from->writer, &e);
	}
}

/* A call that no event tells of. */
static void leave_out(struct record_sink *k, struct record_file *from, uint32_t tid)
{
	k->files->faults++;
	(void)thread_of(k, from, tid);
	lose(k, from, 1);
}

static struct err *record_end(struct sink *s, const struct record_view *r)
{
	struct record_sink *k = of(s);
	struct record_file *to = k->file;
	const struct alloc_clause *c;
	struct alloc_event e = { 0 };
	struct record_thread *t;

	if (r->segment->clause >= k->r->clauses.n || !to)
		return NULL;
	c = &k->r->clauses.v[r->segment->clause];
	if (k->before_waits && r->head->time >= k->before.time)
		write_before(k);
	t = thread_of(k, to, r->head->tid);
	if (!t) {
		k->files->lost++;
		lose(k, to, 1);
		return NULL;
	}
	k->files->began = k->files->began ?: r->head->time;
	e.thread = t->index;
	e.time = to->now = k->files->now = r->head->time - k->files->began;
	e.op = c->function->op;
	e.stack = k->stack;
	if (c->what == ALLOC_LEFT_OUT) {
		leave_out(k, to, r->head->tid);
		return NULL;
	}
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
	if (k->before_waits && to == k->files->first && r->head->time < k->before.time && e.addr)
		note_met(k, e.addr);
	alloc_write(to->writer, &e);
	if (to->now - to->flushed > FLUSH_NS) {
		to->flushed = to->now;
		alloc_writer_flush(to->writer);
	}
	return NULL;
}

static struct err *drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct record_sink *k = of(s);

	if (kind == DROP_NAMES || kind == DROP_CHANGED)
		return NULL;
	k->files->lost += count;
	lose(k, k->files->first, count);
	return NULL;
}

/* A clause that faults records nothing, for example when the pointer of posix_memalign() cannot be
 * read at its return. It does not say whose it is. */
static struct err *fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct record_sink *k = of(s);

	leave_out(k, k->files->recent ?: k->files->first, f->head.tid);
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

	hash_fini(&k->met);
	vec_fini(&k->before.blocks);
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
	k->files = r->files;
	return &k->s;
}
