#include "render/stacksink.h"

#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/term.h"
#include "render/render.h"

/* A program counter, which stands in many stacks. */
struct frame_key {
	uint64_t pc;
	uint32_t pid;
	uint8_t user, called, pad[2];
};

struct known_frame {
	uint32_t first, n; /* in frame_ids */
	bool calls;        /* what stack_frame() said */
};

struct stacksink {
	struct sink s;
	const struct stacksink_options *o;
	struct stacktree *tree;
	struct stacksink_result *ret;
	VEC(uint32_t) ids; /* of the stack that is being made, leaf first */
	struct hash
		known; /* struct frame_key -> index in frames + 1; while one aggregation is taken */
	VEC(struct known_frame) frames;
	VEC(uint32_t) frame_ids;
	struct out text;
	uint64_t begin_ns, said_ns;
	bool said;
};

static struct stacksink *of(struct sink *s)
{
	return (struct stacksink *)s;
}

/* The line on the terminal that says how far it is: true when it is time for another one. */
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

/* A piece of that line: its own control sequences act, and no name is in it. */
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

/* A ';' would split the frame, a line feed the line. */
static void push(struct stacksink *k, enum frame_kind kind)
{
	struct out *t = &k->text;

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i] == ';')
			t->v[i] = ':';
		else if ((uint8_t)t->v[i] < ' ')
			t->v[i] = '?';
	vec_push(&k->ids, stacktree_frame(k->tree, kind, t->v, t->n));
}

/* The kind that the options let show. */
static enum frame_kind kind_shown(const struct stacksink_options *o, enum frame_kind kind)
{
	bool hidden = (kind == FRAME_KERNEL && !o->kernel) || (kind == FRAME_JIT && !o->jit);

	return hidden ? FRAME_NATIVE : kind;
}

static void take_frame(void *arg, const struct frame *f)
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
	push(k, kind_shown(o, f->kind));
}

static bool is_stack(const struct field *f, bool user)
{
	return user ? stack_is_user(f) : f->kind == FIELD_KSTACKID || f->kind == FIELD_KSTACK;
}

static bool push_frame(struct stacksink *k, bool user, uint32_t pid, uint64_t pc, bool called)
{
	struct frame_key key = { .pc = pc, .pid = pid, .user = user, .called = called };
	uint64_t *at = hash_put(&k->known, &key, sizeof(key), NULL);
	struct known_frame *f;
	uint32_t from = k->ids.n;

	if (*at) {
		f = &k->frames.v[*at - 1];
		for (uint32_t i = 0; i < f->n; i++)
			vec_push(&k->ids, k->frame_ids.v[f->first + i]);
		return f->calls;
	}
	f = vec_add(&k->frames);
	*at = k->frames.n;
	f->calls = stack_frame(&k->s, user, pid, pc, called, take_frame, k);
	f->first = k->frame_ids.n;
	f->n = k->ids.n - from;
	for (uint32_t i = from; i < k->ids.n; i++)
		vec_push(&k->frame_ids, k->ids.v[i]);
	return f->calls;
}

static void push_stack(struct stacksink *k, const struct field *f, const uint8_t *key)
{
	uint64_t pcs[STACK_MAX];
	uint32_t pid, n = stack_frames(&k->s, f, key, pcs, STACK_MAX, &pid);
	bool user = stack_is_user(f), called = false;

	for (uint32_t i = 0; i < n; i++)
		called = push_frame(k, user, pid, pcs[i], called);
	if (user && n)
		stack_finish(&k->s, f, key, pid, pcs[n - 1], take_frame, k);
}

static void forget_frames(struct stacksink *k)
{
	hash_fini(&k->known);
	k->frames.n = 0;
	k->frame_ids.n = 0;
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
	k->ids.n = 0;
	for (int user = 0; user < 2; user++)
		for (uint32_t i = 0; i < agg->nkeys; i++)
			if (is_stack(&agg->keys[i], user))
				push_stack(k, &agg->keys[i], key);
	push_process(k, agg, key);
	stacktree_add(k->tree, k->ids.v, k->ids.n, n);
	k->ret->samples += n;
	k->ret->stacks++;
}

static struct err *take_aggs(struct sink *s, const struct record_view *r, const struct action *a,
			     struct agg_view *const *aggs, uint32_t n)
{
	struct stacksink *k = of(s);

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
	forget_frames(k);
	return NULL;
}

static struct err *begin(struct sink *s)
{
	of(s)->begin_ns = now_ns();
	return NULL;
}

static struct err *end(struct sink *s)
{
	clear_line(of(s));
	return NULL;
}

static struct err *flush(struct sink *s)
{
	struct stacksink *k = of(s);

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
	of(s)->ret->complete = true;
	return NULL;
}

static struct err *nothing(struct sink *s, const struct record_view *r)
{
	return NULL;
}

static struct err *no_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	return NULL;
}

static struct err *fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct out o;
	struct err *e;

	clear_line(of(s));
	out_init(&o, s->err);
	fault_message(s, &o, img, f);
	e = out_flush(&o);
	out_fini(&o);
	return e;
}

static struct err *drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct out o;
	struct err *e;

	clear_line(of(s));
	of(s)->ret->lost += count;
	out_init(&o, s->err);
	drop_message(s, &o, kind, cpu, count);
	e = out_flush(&o);
	out_fini(&o);
	return e;
}

static void report(struct sink *s, const struct run_report *r)
{
	struct run_report *to = &of(s)->ret->report;

	*to = *r;
	to->probes = NULL;
	to->progs = NULL;
	to->nprobes = to->nprogs = 0;
}

static struct err *no_reopen(struct sink *s, const char *path)
{
	return NULL;
}

static char *no_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void free_sink(struct sink *s)
{
	struct stacksink *k = of(s);

	forget_frames(k);
	vec_fini(&k->frames);
	vec_fini(&k->frame_ids);
	vec_fini(&k->ids);
	out_fini(&k->text);
	free(k);
}

static const struct sink_ops ops = {
	.name = "stacks",
	.any_order = true, /* the tree has its own */
	.begin = begin,
	.end = end,
	.record_begin = nothing,
	.action = no_action,
	.printa = take_aggs,
	.final = final,
	.record_end = nothing,
	.fault = fault,
	.drop = drop,
	.reopen = no_reopen,
	.truncate = end,
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
	k->s.err = stderr;
	k->s.progname = "descry";
	k->o = o;
	k->tree = t;
	k->ret = ret;
	out_init(&k->text, NULL);
	return &k->s;
}
