/* A sink that gives what a program prints to the reader of stacks, as if it came from a file. */
#define _GNU_SOURCE /* fopencookie */
#include "render/flamesink.h"

#include <assert.h>

#include "input/stackin/stackin_reader.h"
#include "render/stackrows.h"

struct flamesink {
	struct sink_ops ops;          /* operations of the text sink, except for aggregations */
	const struct sink_ops *plain; /* the text sink's own */
	struct stackin *in;
	FILE *text; /* feeds in */
	struct stackrows rows;
	struct out name;
};

static struct flamesink *flamesink_of(struct sink *s)
{
	return (struct flamesink *)((char *)(uintptr_t)s->ops - offsetof(struct flamesink, ops));
}

static ssize_t feed_text(void *cookie, const char *text, size_t n)
{
	struct flamesink *k = cookie;

	stackin_feed(k->in, text, n);
	return (ssize_t)n;
}

static void push_name(struct flamesink *k, enum frame_kind kind)
{
	const struct stackin_options *o = &k->in->options;

	vec_push(&k->rows.ids,
		 stackrows_frame(k->in->tree, stackrows_kind(kind, o->kernel, o->jit), &k->name));
}

/* Returns the name that stack() prints, without offset and arguments. */
static void name_frame(void *arg, const struct frame *f)
{
	struct flamesink *k = arg;
	char text[ADDRESS_TEXT];
	size_t n;

	k->name.n = 0;
	if (f->kind == FRAME_END) {
		out_printf(&k->name, "[stack ends: %s]", f->end);
	} else {
		frame_text(k->rows.sink, f, text, sizeof(text));
		n = tidy_offset(text, strlen(text), false);
		n = tidy_function(text, n, text);
		out_mem(&k->name, n ? text : "-", n ? n : 1);
	}
	if (f->file && !frame_is_language(f->kind))
		out_printf(&k->name, " %s:%u", f->file, f->line);
	push_name(k, f->kind);
}

static void push_key(struct flamesink *k, const struct field *f, const uint8_t *key)
{
	struct out *t = &k->name;
	size_t from = 0;

	t->n = 0;
	key_print(k->rows.sink, t, f, key);
	while (t->n && strchr(" \n", t->v[t->n - 1]))
		t->n--;
	while (from < t->n && strchr(" \n", t->v[from]))
		from++;
	if (from == t->n)
		return;
	t->n -= from;
	memmove(t->v, t->v + from, t->n);
	push_name(k, FRAME_NATIVE);
}

/* Returns the number of values in a distribution. */
static int64_t row_count(const struct agg_view *v, const struct agg_row *r)
{
	uint64_t sum = 0;

	if (!agg_is_distribution(v->agg))
		return agg_row_value(v, r);
	for (uint32_t i = 1; i < v->agg->nwords; i++)
		sum += (uint64_t)r->words[i];
	return agg_normalized(v, (int64_t)sum);
}

static void take_row(struct flamesink *k, const struct agg *agg, const uint8_t *key, int64_t count)
{
	struct stackrows *r = &k->rows;

	r->ids.n = 0;
	stackrows_take(r, agg, key);
	if (!r->ids.n)
		vec_push(&r->ids, stacktree_frame(k->in->tree, FRAME_NATIVE, "[no stack]", 10));
	for (uint32_t i = agg->nkeys; i > 0; i--) {
		const struct field *f = &agg->keys[i - 1];
		struct field_stack st;

		if (!field_stack(f, key, &st))
			push_key(k, f, key);
	}
	stacktree_add(k->in->tree, r->ids.v, r->ids.n, stackin_scale(k->in, (uint64_t)count));
}

static struct err *flamesink_begin(struct sink *s)
{
	struct flamesink *k = flamesink_of(s);

	s->out = k->text;
	return k->plain->begin(s);
}

static struct err *printa(struct sink *s, const struct record_view *r, const struct action *a,
			  struct agg_view *const *aggs, uint32_t n)
{
	struct flamesink *k = flamesink_of(s);
	const struct agg_view *v = aggs[n - 1];

	if (!stackrows_has_stack(v->agg))
		return k->plain->printa(s, r, a, aggs, n);
	/* Text beside them is a heading, or other output of DTrace. */
	if (!k->in->options.format)
		k->in->options.format = STACKIN_DTRACE;
	k->rows.sink = s;
	for (uint32_t i = 0; i < v->nrows; i++) {
		int64_t count = row_count(v, &v->rows[i]);

		if (count > 0)
			take_row(k, v->agg, v->rows[i].key, count);
	}
	stackrows_forget(&k->rows);
	return NULL;
}

static void free_sink(struct sink *s)
{
	struct flamesink *k = flamesink_of(s);

	k->plain->free(s);
	fclose(k->text);
	stackrows_fini(&k->rows);
	out_fini(&k->name);
	free(k);
}

struct sink *flamesink_new(struct stackin *in)
{
	struct flamesink *k = xcalloc(1, sizeof(*k));
	struct sink *s = sink_text_new();

	k->plain = s->ops;
	k->ops = *s->ops;
	k->ops.begin = flamesink_begin;
	k->ops.printa = printa;
	k->ops.free = free_sink;
	k->in = in;
	k->rows.name = name_frame;
	k->rows.arg = k;
	k->text = fopencookie(k, "w", (cookie_io_functions_t){ .write = feed_text });
	assert(k->text);
	s->ops = &k->ops;
	return s;
}
