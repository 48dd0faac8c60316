/* A sink that puts aggregations keyed by stacks into a stack tree. */
#include "render/stacksink.h"

#include "base/clock.h"
#include "base/term.h"
#include "render/stackrows.h"

struct stacksink {
	struct sink s;
	const struct stacksink_options *o;
	struct stacktree *tree;
	struct stacksink_result *ret;
	struct stackrows rows;
	struct out text;
	uint64_t begin_ns, said_ns;
	bool said;
};

static struct stacksink *stacksink_of(struct sink *s)
{
	return (struct stacksink *)s;
}

/* Handles the progress line on the terminal. Returns true when another one is due. */
static bool due(struct stacksink *k, uint64_t every_ns)
{
	uint64_t now;

	if (!k->o->progress)
		return false;
	now = now_ns();
	if (now - k->said_ns < every_ns)
		return false;
	k->said_ns = now;
	k->said = true;
	return true;
}

/* Writes a part of the progress line. Its own control sequences act on the terminal, and it
 * contains no name. */
static void __attribute__((format(printf, 2, 3))) say(struct stacksink *k, const char *fmt, ...)
{
	char text[128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		term_raw(k->o->progress, text,
			 (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void clear_line(struct stacksink *k)
{
	if (k->said)
		say(k, "\r\033[K");
	k->said = false;
}

static void push(struct stacksink *k, enum frame_kind kind)
{
	const struct stacksink_options *o = k->o;

	vec_push(&k->rows.ids,
		 stackrows_frame(k->tree, stackrows_kind(kind, o->kernel, o->jit), &k->text));
}

static void name_frame(void *arg, const struct frame *f)
{
	struct stacksink *k = arg;
	const struct stacksink_options *o = k->o;
	const struct place *p = &f->place;
	struct out *t = &k->text;

	t->n = 0;
	if (f->kind == FRAME_END) {
		out_printf(t, "[stack ends: %s]", f->end);
		push(k, FRAME_END);
		return;
	}
	if (o->module && p->module && p->function)
		out_printf(t, "%s`", p->module);
	if (p->function)
		out_str(t, p->function);
	else if (o->addrs)
		out_printf(t, "0x%llx", (unsigned long long)f->address);
	else if (!p->module)
		out_str(t, "[unknown]");
	else
		out_printf(t, *p->module == '[' ? "%s" : "[%s]", p->module);
	if (o->lines && f->file)
		out_printf(t, ":%s:%u", f->file, f->line);
	push(k, f->kind);
}

static void push_process(struct stacksink *k, const struct agg *agg, const uint8_t *key)
{
	const char *comm = "", *text;
	uint64_t number[2] = { 0, 0 };
	uint32_t len = 0, nnumbers = 0;

	for (uint32_t i = 0; i < agg->nkeys; i++) {
		const struct field *f = &agg->keys[i];
		uint32_t n;

		if (f->kind == FIELD_INT && nnumbers < 2) {
			number[nnumbers++] = field_uint(f, key);
		} else if (field_text(k->s.image, f, key, &text, &n)) {
			comm = text;
			len = n;
		}
	}
	k->text.n = 0;
	out_mem(&k->text, comm, len);
	if (k->o->pid && nnumbers > 0)
		out_printf(&k->text, "-%llu", (unsigned long long)number[0]);
	if (k->o->tid && nnumbers > 1)
		out_printf(&k->text, "%s%llu", k->o->pid ? "/" : "-",
			   (unsigned long long)number[1]);
	if (k->text.n)
		push(k, FRAME_NATIVE);
}

static void take_row(struct stacksink *k, const struct agg *agg, const uint8_t *key, uint64_t n)
{
	k->rows.ids.n = 0;
	stackrows_take(&k->rows, agg, key);
	push_process(k, agg, key);
	stacktree_add(k->tree, k->rows.ids.v, k->rows.ids.n, n);
	k->ret->samples += n;
	k->ret->stacks++;
}

static struct err *take_aggs(struct sink *s, const struct record_view *r, const struct action *a,
			     struct agg_view *const *aggs, uint32_t n)
{
	struct stacksink *k = stacksink_of(s);

	for (uint32_t i = 0; i < n; i++) {
		const struct agg_view *v = aggs[i];

		for (uint32_t row = 0; row < v->nrows; row++) {
			int64_t value = agg_row_value(v, &v->rows[row]);

			if (value > 0)
				take_row(k, v->agg, v->rows[row].key, (uint64_t)value);
			if (!(row & 63) && due(k, 100000000))
				say(k, "\rnaming: %u of %u stacks\033[K", row, v->nrows);
		}
	}
	clear_line(k);
	stackrows_forget(&k->rows);
	return NULL;
}

static struct err *stacksink_begin(struct sink *s)
{
	stacksink_of(s)->begin_ns = now_ns();
	return NULL;
}

static struct err *stacksink_end(struct sink *s)
{
	clear_line(stacksink_of(s));
	return NULL;
}

static struct err *flush(struct sink *s)
{
	struct stacksink *k = stacksink_of(s);

	if (!k->begin_ns)
		k->begin_ns = now_ns();
	if (due(k, 250000000)) {
		say(k, "\rsampling: %.1f", (double)(now_ns() - k->begin_ns) / 1e9);
		if (k->o->seconds > 0)
			say(k, " of %.1f", k->o->seconds);
		say(k, " s\033[K");
	}
	return NULL;
}

static struct err * final(struct sink *s)
{
	stacksink_of(s)->ret->complete = true;
	return NULL;
}

static struct err *stacksink_message(struct sink *s, struct out *text)
{
	clear_line(stacksink_of(s));
	sink_message(s, text->v, text->n);
	out_fini(text);
	return NULL;
}

static struct err *fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct out o = { 0 };

	fault_message(s, &o, img, f);
	return stacksink_message(s, &o);
}

static struct err *drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct out o = { 0 };

	stacksink_of(s)->ret->lost += count;
	drop_message(s, &o, kind, cpu, count);
	return stacksink_message(s, &o);
}

static void report(struct sink *s, const struct run_report *r)
{
	struct run_report *to = &stacksink_of(s)->ret->report;

	*to = *r;
	to->probes = NULL;
	to->progs = NULL;
	to->nprobes = to->nprogs = 0;
}

static char *no_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void free_sink(struct sink *s)
{
	struct stacksink *k = stacksink_of(s);

	stackrows_fini(&k->rows);
	out_fini(&k->text);
	free(k);
}

static const struct sink_ops ops = {
	.name = "stacks",
	.any_order = true, /* the tree has its own copy */
	.begin = stacksink_begin,
	.end = stacksink_end,
	.printa = take_aggs,
	.final = final,
	.fault = fault,
	.drop = drop,
	.truncate = stacksink_end,
	.flush = flush,
	.format = no_format,
	.report = report,
	.free = free_sink,
};

struct sink *stacksink_new(const struct stacksink_options *o, struct stacktree *t,
			   struct stacksink_result *ret)
{
	struct stacksink *k = xcalloc(1, sizeof(*k));

	k->s.ops = &ops;
	k->s.out = stdout;
	k->s.progname = "descry";
	k->o = o;
	k->tree = t;
	k->rows = (struct stackrows){ .sink = &k->s, .name = name_frame, .arg = k };
	k->ret = ret;
	out_init(&k->text, NULL);
	return &k->s;
}
