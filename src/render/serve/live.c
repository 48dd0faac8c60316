#define _GNU_SOURCE
#include "render/serve/live.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "render/flame.h"
#include "render/json.h"

enum {
	HISTORY = 600,
	TICK_MS = 1000,
	STACKS_MAX = 200000,
	ROWS_MAX = 100000, /* of one aggregation */
	LINES_MAX = 2000,  /* of one tick */
	LINE_BYTES = 4096,
};
static const uint32_t NO_STACK = UINT32_MAX;

struct live_row {
	int64_t *last; /* words at the last tick */
	uint32_t text; /* its JSON: in texts */
};

struct live_agg {
	char *head; /* JSON: "id":..,"name":..,"func":..,"keys":.. */
	struct hash rows;
	VEC(struct live_row) v;
	VEC(char *) texts;                  /* of the rows: {"k":[..],"s":n} */
	VEC(char *) buckets;                /* [index,min,max], those seen */
	uint32_t first_bucket, last_bucket; /* all between them are known */
	uint64_t dropped;
};

struct tick {
	char *json;
	size_t n;
};

struct line {
	char *text;
	bool message;
};

struct live {
	struct live_options options;
	pthread_mutex_t lock;
	uint64_t generation;
	char *program;
	int status;
	bool running;

	VEC(char *) frames; /* as frame_id() writes them */
	struct hash frame_ids;
	VEC(char *) stacks; /* JSON arrays of indices of frames, root first */
	struct hash stack_ids;
	uint64_t stacks_dropped;
	VEC(struct live_agg) aggs;

	VEC(struct tick) ticks; /* ring of `history` */
	uint64_t nticks;        /* ever; the next one's number */
	VEC(struct line) lines; /* since the last tick */
	uint64_t lines_dropped;
	uint64_t drops[DROP_KIND_COUNT]; /* since the run began */
	bool drops_new;                  /* since the last tick */
	char part[LINE_BYTES];           /* a line that has not ended */
	uint32_t npart;
	uint64_t next_ns; /* the next tick is due */

	/* The tick being made. */
	struct out views;
	uint32_t frames_from, stacks_from;

	void (*fn)(void *arg);
	void *arg;
};

struct live_sink_ {
	struct sink s;
	struct live *live;
	struct sink *text; /* what prints */
	FILE *out;
	char buffer[4096];
};

/* As a JSON string: what cannot be seen, or would turn the text around it, as \xNN. */
static void put_text(struct out *o, const char *s, size_t n)
{
	struct out shown = { 0 };

	flame_shown(&shown, s, n);
	json_string(o, shown.v ? shown.v : "", shown.n);
	out_fini(&shown);
}

struct live *live_new(const struct live_options *o)
{
	struct live *l = xcalloc(1, sizeof(*l));

	l->options = *o;
	if (!l->options.history)
		l->options.history = HISTORY;
	if (!l->options.ms)
		l->options.ms = TICK_MS;
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

static void free_texts(char **v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(v[i]);
}

static void forget(struct live *l)
{
	for (uint32_t i = 0; i < l->aggs.n; i++) {
		struct live_agg *a = &l->aggs.v[i];

		for (uint32_t k = 0; k < a->v.n; k++)
			free(a->v.v[k].last);
		free_texts(a->texts.v, a->texts.n);
		free_texts(a->buckets.v, a->buckets.n);
		vec_fini(&a->v);
		vec_fini(&a->texts);
		vec_fini(&a->buckets);
		hash_fini(&a->rows);
		free(a->head);
	}
	free_texts(l->frames.v, l->frames.n);
	free_texts(l->stacks.v, l->stacks.n);
	for (uint32_t i = 0; i < l->ticks.n; i++)
		free(l->ticks.v[i].json);
	for (uint32_t i = 0; i < l->lines.n; i++)
		free(l->lines.v[i].text);
	l->aggs.n = l->frames.n = l->stacks.n = l->ticks.n = l->lines.n = 0;
	hash_fini(&l->frame_ids);
	hash_fini(&l->stack_ids);
	l->frame_ids = l->stack_ids = (struct hash){ 0 };
	l->nticks = l->lines_dropped = l->stacks_dropped = 0;
	l->frames_from = l->stacks_from = l->npart = 0;
	l->views.n = 0;
	memset(l->drops, 0, sizeof(l->drops));
	l->drops_new = false;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	forget(l);
	vec_fini(&l->aggs);
	vec_fini(&l->frames);
	vec_fini(&l->stacks);
	vec_fini(&l->ticks);
	vec_fini(&l->lines);
	out_fini(&l->views);
	free(l->program);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void live_on_tick(struct live *l, void (*fn)(void *arg), void *arg)
{
	l->fn = fn;
	l->arg = arg;
}

/* --- ticks --- */

static char *text_of_out(struct out *o)
{
	char *s;

	out_char(o, '\0');
	s = xmemdup(o->v, o->n);
	o->n = 0;
	return s;
}

/* ,"NAME":[from,[...]]: what was added to a list since. */
static void put_new(struct out *o, const char *name, char *const *v, uint32_t from, uint32_t n)
{
	if (from == n)
		return;
	out_printf(o, ",\"%s\":[%u,[", name, from);
	for (uint32_t i = from; i < n; i++) {
		if (i > from)
			out_char(o, ',');
		out_str(o, v[i]);
	}
	out_str(o, "]]");
}

static void put_lines(struct live *l, struct out *o)
{
	if (l->lines.n) {
		out_str(o, ",\"lines\":[");
		for (uint32_t i = 0; i < l->lines.n; i++) {
			out_str(o, i ? ",[" : "[");
			out_str(o, l->lines.v[i].message ? "1," : "0,");
			put_text(o, l->lines.v[i].text, strlen(l->lines.v[i].text));
			out_char(o, ']');
			free(l->lines.v[i].text);
		}
		out_char(o, ']');
		l->lines.n = 0;
	}
	if (l->lines_dropped)
		out_printf(o, ",\"linesDropped\":%llu", (unsigned long long)l->lines_dropped);
	l->lines_dropped = 0;
}

/* ,"drops":[[1234,"aggregation drops","raise -x aggsize, ..."],...]: what was lost since the run
 * began. */
static void put_drops(const struct live *l, struct out *o)
{
	const char *sep = ",\"drops\":[[";

	for (int i = 0; i < DROP_KIND_COUNT; i++) {
		enum drop_kind kind = (enum drop_kind)i;
		const char *remedy = drop_remedy(kind);

		if (!l->drops[i])
			continue;
		out_printf(o, "%s%llu,\"", sep, (unsigned long long)l->drops[i]);
		drop_text(o, kind, l->drops[i]);
		out_printf(o, "\",\"%s\"]", remedy ? remedy : "");
		sep = ",[";
	}
	if (sep[1] == '[')
		out_char(o, ']');
}

/* Closes the tick: the lock is held. */
static void close_tick(struct live *l)
{
	struct out o = { 0 };
	struct tick t;

	out_printf(&o,
		   "{\"type\":\"tick\",\"tick\":%llu,\"time\":%llu,\"running\":%s,\"status\":%d",
		   (unsigned long long)l->nticks,
		   (unsigned long long)(clock_ns(CLOCK_REALTIME) / 1000000),
		   l->running ? "true" : "false", l->status);
	put_new(&o, "frames", l->frames.v, l->frames_from, l->frames.n);
	put_new(&o, "stacks", l->stacks.v, l->stacks_from, l->stacks.n);
	l->frames_from = l->frames.n;
	l->stacks_from = l->stacks.n;
	if (l->views.n) {
		out_str(&o, ",\"aggs\":[");
		out_mem(&o, l->views.v, l->views.n);
		out_char(&o, ']');
		l->views.n = 0;
	}
	put_lines(l, &o);
	if (l->drops_new)
		put_drops(l, &o);
	l->drops_new = false;
	if (l->stacks_dropped)
		out_printf(&o, ",\"stacksDropped\":%llu", (unsigned long long)l->stacks_dropped);
	out_char(&o, '}');
	t = (struct tick){ o.v, o.n };
	if (l->ticks.n < l->options.history) {
		vec_push(&l->ticks, t);
	} else {
		struct tick *old = &l->ticks.v[l->nticks % l->options.history];

		free(old->json);
		*old = t;
	}
	l->nticks++;
}

static void tell(struct live *l)
{
	if (l->fn)
		l->fn(l->arg);
}

void live_begin(struct live *l, const char *program)
{
	pthread_mutex_lock(&l->lock);
	forget(l);
	l->generation++;
	free(l->program);
	l->program = xstrdup(program);
	l->running = true;
	l->status = 0;
	l->next_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)l->options.ms * 1000000;
	pthread_mutex_unlock(&l->lock);
	tell(l);
}

void live_end(struct live *l, int status)
{
	pthread_mutex_lock(&l->lock);
	l->running = false;
	l->status = status;
	close_tick(l);
	pthread_mutex_unlock(&l->lock);
	tell(l);
}

/* Tabs as far as the next eighth column, as a terminal has them. */
static char *with_spaces(const char *text, size_t n)
{
	struct out o = { 0 };
	char *s;

	for (size_t i = 0; i < n; i++)
		if (text[i] == '\t')
			out_fill(&o, ' ', 8 - o.n % 8);
		else
			out_char(&o, text[i] ? text[i] : ' ');
	out_char(&o, '\0');
	s = xstrdup(o.v);
	out_fini(&o);
	return s;
}

static void add_line(struct live *l, const char *text, size_t n, bool message)
{
	if (l->lines.n >= LINES_MAX) {
		l->lines_dropped++;
		return;
	}
	vec_push(&l->lines, (struct line){ with_spaces(text, n), message });
}

void live_line(struct live *l, const char *text, size_t n, bool message)
{
	pthread_mutex_lock(&l->lock);
	while (n && text[n - 1] == '\n')
		n--;
	if (n)
		add_line(l, text, n, message);
	pthread_mutex_unlock(&l->lock);
}

/* Everything a reader needs to understand the ticks that are kept. */
static void put_hello(struct live *l, struct out *o)
{
	out_printf(o, "{\"type\":\"hello\",\"ms\":%u,\"history\":%u,\"allowD\":%s,\"running\":%s,",
		   l->options.ms, l->options.history, l->options.allow_d ? "true" : "false",
		   l->running ? "true" : "false");
	out_printf(o, "\"status\":%d,\"program\":", l->status);
	json_string(o, l->program ? l->program : "", l->program ? strlen(l->program) : 0);
	out_str(o, ",\"host\":");
	json_string(o, l->options.host ? l->options.host : "",
		    l->options.host ? strlen(l->options.host) : 0);
	put_drops(l, o);
	put_new(o, "frames", l->frames.v, 0, l->frames_from);
	put_new(o, "stacks", l->stacks.v, 0, l->stacks_from);
	out_str(o, ",\"aggs\":[");
	for (uint32_t i = 0, n = 0; i < l->aggs.n; i++) {
		struct live_agg *a = &l->aggs.v[i];

		if (!a->head)
			continue;
		out_printf(o, "%s{%s", n++ ? "," : "", a->head);
		put_new(o, "rows", a->texts.v, 0, a->texts.n);
		put_new(o, "buckets", a->buckets.v, 0, a->buckets.n);
		out_char(o, '}');
	}
	out_str(o, "]}");
}

bool live_next(struct live *l, struct live_reader *r, struct out *o)
{
	bool some = true;

	pthread_mutex_lock(&l->lock);
	if (r->generation != l->generation) {
		r->generation = l->generation;
		r->tick = l->nticks > l->options.history ? l->nticks - l->options.history : 0;
		put_hello(l, o);
	} else if (r->tick < l->nticks) {
		const struct tick *t;

		if (l->nticks - r->tick > l->options.history) /* too slow: the page sees the gap */
			r->tick = l->nticks - l->options.history;
		t = &l->ticks.v[r->tick % l->options.history];
		out_mem(o, t->json, t->n);
		r->tick++;
	} else {
		some = false;
	}
	pthread_mutex_unlock(&l->lock);
	return some;
}

/* --- the sink --- */

static struct live_sink_ *self_of(struct sink *s)
{
	return (struct live_sink_ *)s;
}

/* What the run told us, the printer needs too. */
static struct sink *inner(struct sink *s)
{
	struct live_sink_ *self = self_of(s);
	const struct sink_ops *ops = self->text->ops;

	*self->text = *s;
	self->text->ops = ops;
	self->text->out = self->out;
	return self->text;
}

/* A frame as the page gets it: "name", or ["name","kind"] where the kind is not native. */
static uint32_t frame_id(struct live *l, enum frame_kind kind, const char *name, size_t n)
{
	struct out o = { 0 };
	bool fresh;
	uint64_t *id;

	out_str(&o, kind ? "[" : "");
	json_string(&o, name, n);
	if (kind)
		out_printf(&o, ",\"%s\"]", frame_kind_name(kind));
	id = hash_put(&l->frame_ids, o.v, o.n, &fresh);
	if (fresh) {
		*id = l->frames.n;
		vec_push(&l->frames, text_of_out(&o));
	}
	out_fini(&o);
	return (uint32_t)*id;
}

struct frames {
	struct live *live;
	VEC(uint32_t) user, kernel; /* leaf first */
};

static void take_frame(void *arg, const struct frame *f)
{
	struct frames *to = arg;
	struct out shown = { 0 };
	char buf[ADDRESS_TEXT];
	uint32_t id;

	if (f->kind == FRAME_END)
		snprintf(buf, sizeof(buf), "[%s]", f->end);
	else
		place_format(&f->place, f->address, false, buf, sizeof(buf));
	flame_shown(&shown, buf, strlen(buf));
	id = frame_id(to->live, f->kind, shown.v ? shown.v : "", shown.n);
	out_fini(&shown);
	if (f->kind == FRAME_KERNEL)
		vec_push(&to->kernel, id);
	else
		vec_push(&to->user, id);
}

static uint32_t stack_id(struct live *l, const struct frames *f)
{
	VEC(uint32_t) ids = { 0 };
	struct out o = { 0 };
	uint64_t *id;
	uint32_t ret;
	bool fresh;

	for (uint32_t i = f->user.n; i; i--)
		vec_push(&ids, f->user.v[i - 1]);
	for (uint32_t i = f->kernel.n; i; i--)
		vec_push(&ids, f->kernel.v[i - 1]);
	if (l->stacks.n >= STACKS_MAX) {
		uint64_t *known = hash_get(&l->stack_ids, ids.v, ids.n * sizeof(*ids.v));

		l->stacks_dropped += !known;
		ret = known ? (uint32_t)*known : NO_STACK;
		vec_fini(&ids);
		return ret;
	}
	id = hash_put(&l->stack_ids, ids.n ? (const void *)ids.v : "", ids.n * sizeof(*ids.v),
		      &fresh);
	if (fresh) {
		*id = l->stacks.n;
		out_char(&o, '[');
		for (uint32_t i = 0; i < ids.n; i++)
			out_printf(&o, "%s%u", i ? "," : "", ids.v[i]);
		out_char(&o, ']');
		vec_push(&l->stacks, text_of_out(&o));
		out_fini(&o);
	}
	ret = (uint32_t)*id;
	vec_fini(&ids);
	return ret;
}

static void put_key(struct sink *s, struct out *o, const struct field *f, const uint8_t *key)
{
	struct out text = { 0 };
	size_t from = 0;

	key_print(s, &text, f, key);
	while (from < text.n && text.v[from] == ' ')
		from++;
	while (text.n > from && (text.v[text.n - 1] == ' ' || text.v[text.n - 1] == '\n'))
		text.n--;
	put_text(o, text.v ? text.v + from : "", text.n - from);
	out_fini(&text);
}

/* {"k":["key",...],"s":stack} */
static char *row_text(struct live *l, struct sink *s, const struct agg *agg, const uint8_t *key)
{
	struct frames f = { .live = l };
	struct out o = { 0 };
	bool stacks = false, first = true;
	char *text;

	out_str(&o, "{\"k\":[");
	for (uint32_t i = 0; key && i < agg->nkeys; i++) {
		const struct field *k = &agg->keys[i];

		if (k->kind == FIELD_KSTACK || k->kind == FIELD_USTACK ||
		    k->kind == FIELD_KSTACKID || k->kind == FIELD_USTACKID) {
			stack_each(s, k, key, take_frame, &f);
			stacks = true;
			continue;
		}
		if (!first)
			out_char(&o, ',');
		first = false;
		put_key(s, &o, k, key);
	}
	out_char(&o, ']');
	if (stacks) {
		uint32_t id = stack_id(l, &f);

		if (id != NO_STACK)
			out_printf(&o, ",\"s\":%u", id);
	}
	out_char(&o, '}');
	text = text_of_out(&o);
	out_fini(&o);
	vec_fini(&f.user);
	vec_fini(&f.kernel);
	return text;
}

static struct live_agg *agg_of(struct live *l, const struct agg *agg)
{
	struct live_agg *a;

	while (l->aggs.n <= agg->id)
		(void)vec_add(&l->aggs);
	a = &l->aggs.v[agg->id];
	if (!a->head) {
		struct out o = { 0 };
		bool stacks = false;

		for (uint32_t i = 0; i < agg->nkeys; i++)
			stacks |= agg->keys[i].kind == FIELD_KSTACK ||
				  agg->keys[i].kind == FIELD_USTACK ||
				  agg->keys[i].kind == FIELD_KSTACKID ||
				  agg->keys[i].kind == FIELD_USTACKID;
		out_printf(&o, "\"id\":%u,\"name\":", agg->id);
		json_string(&o, agg->name, strlen(agg->name));
		out_printf(&o, ",\"func\":\"%s\",\"unit\":\"%s\",\"stacks\":%s",
			   agg_func_name(agg->func), agg->unit ? agg->unit : "",
			   stacks ? "true" : "false");
		a->head = text_of_out(&o);
		out_fini(&o);
	}
	return a;
}

static void put_bound(struct out *o, int64_t v, int64_t open)
{
	if (v == open)
		out_str(o, "null");
	else
		out_signed(o, v, 0);
}

static void put_bucket(struct live_agg *a, const struct agg *agg, uint32_t bucket)
{
	struct out o = { 0 };
	int64_t min, max;

	hist_bounds(agg, bucket, &min, &max);
	out_printf(&o, "[%u,", bucket);
	put_bound(&o, min, INT64_MIN);
	out_char(&o, ',');
	put_bound(&o, max, INT64_MAX);
	out_char(&o, ']');
	vec_push(&a->buckets, text_of_out(&o));
	out_fini(&o);
}

/* Those between two seen are shown as well. */
static void see_bucket(struct live_agg *a, const struct agg *agg, uint32_t bucket)
{
	if (!a->buckets.n) {
		a->first_bucket = a->last_bucket = bucket;
		put_bucket(a, agg, bucket);
	}
	while (bucket < a->first_bucket)
		put_bucket(a, agg, --a->first_bucket);
	while (bucket > a->last_bucket)
		put_bucket(a, agg, ++a->last_bucket);
}

/* What was counted in a row since the last tick: ",row,..." onto o. */
static void put_change(struct live_agg *a, const struct agg_view *v, const struct agg_row *r,
		       uint32_t row, struct out *o)
{
	const struct agg *agg = v->agg;
	int64_t *last = a->v.v[row].last;

	if (r->words[0] < last[0]) /* cleared since */
		memset(last, 0, agg->nwords * sizeof(*last));
	if (agg_is_distribution(agg)) {
		for (uint32_t b = 0; b + 1 < agg->nwords; b++) {
			int64_t d = r->words[b + 1] - last[b + 1];

			if (!d)
				continue;
			see_bucket(a, agg, b);
			out_printf(o, ",%u,%u,%lld", row, b, (long long)d);
		}
	} else if (agg->func == AGG_COUNT || agg->func == AGG_SUM) {
		uint32_t w = agg->func == AGG_SUM;

		if (r->words[w] != last[w])
			out_printf(o, ",%u,%lld", row, (long long)(r->words[w] - last[w]));
	} else if (memcmp(last, r->words, agg->nwords * sizeof(*last)) != 0) {
		out_printf(o, ",%u,%lld", row, (long long)agg_row_value(v, r));
	}
	memcpy(last, r->words, agg->nwords * sizeof(*last));
}

static void take_view(struct live *l, struct sink *s, const struct agg_view *v)
{
	struct live_agg *a = agg_of(l, v->agg);
	uint32_t rows_from = a->texts.n, buckets_from = a->buckets.n;
	struct out changes = { 0 };

	for (uint32_t i = 0; i < v->nrows; i++) {
		const struct agg_row *r = &v->rows[i];
		uint64_t *id;
		bool fresh;

		if (a->texts.n >= ROWS_MAX &&
		    !hash_get(&a->rows, r->key ? r->key : (const uint8_t *)"", v->agg->key_size)) {
			a->dropped++;
			continue;
		}
		id = hash_put(&a->rows, r->key ? r->key : (const uint8_t *)"", v->agg->key_size,
			      &fresh);
		if (fresh) {
			*id = a->v.n;
			vec_push(&a->v, (struct live_row){
						.last = xcalloc(v->agg->nwords, sizeof(int64_t)) });
			vec_push(&a->texts, row_text(l, s, v->agg, r->key));
		}
		put_change(a, v, r, (uint32_t)*id, &changes);
	}
	if (changes.n || rows_from < a->texts.n) {
		out_printf(&l->views, "%s{%s", l->views.n ? "," : "", a->head);
		put_new(&l->views, "rows", a->texts.v, rows_from, a->texts.n);
		put_new(&l->views, "buckets", a->buckets.v, buckets_from, a->buckets.n);
		if (v->normal != 1)
			out_printf(&l->views, ",\"normal\":%lld", (long long)v->normal);
		if (a->dropped)
			out_printf(&l->views, ",\"dropped\":%llu", (unsigned long long)a->dropped);
		out_str(&l->views, ",\"d\":[");
		if (changes.n)
			out_mem(&l->views, changes.v + 1, changes.n - 1);
		out_str(&l->views, "]}");
	}
	out_fini(&changes);
}

/* Text of the printer: cut into lines. */
static ssize_t take_text(void *cookie, const char *buf, size_t n)
{
	struct live *l = cookie;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < n; i++) {
		if (buf[i] == '\n' || l->npart == sizeof(l->part)) {
			if (l->npart)
				add_line(l, l->part, l->npart, false);
			l->npart = 0;
		}
		if (buf[i] != '\n')
			l->part[l->npart++] = buf[i];
	}
	pthread_mutex_unlock(&l->lock);
	return (ssize_t)n;
}

static struct err *sink_begin(struct sink *s)
{
	struct sink *t = inner(s);

	return t->ops->begin(t);
}

static struct err *sink_end(struct sink *s)
{
	struct sink *t = inner(s);

	return t->ops->end(t);
}

static struct err *sink_record_begin(struct sink *s, const struct record_view *r)
{
	struct sink *t = inner(s);

	return t->ops->record_begin ? t->ops->record_begin(t, r) : NULL;
}

static struct err *sink_action(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct sink *t = inner(s);

	return t->ops->action(t, r, a);
}

/* printa() prints; as they are now, and at the end, they are views. */
static struct err *sink_printa(struct sink *s, const struct record_view *r, const struct action *a,
			       struct agg_view *const *aggs, uint32_t n)
{
	struct live *l = self_of(s)->live;
	struct sink *t = inner(s);

	if (r)
		return t->ops->printa(t, r, a, aggs, n);
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; i < n; i++)
		take_view(l, s, aggs[i]);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static struct err *sink_record_end(struct sink *s, const struct record_view *r)
{
	struct sink *t = inner(s);

	return t->ops->record_end ? t->ops->record_end(t, r) : NULL;
}

static struct err *sink_fault(struct sink *s, const struct image *img, const struct wire_fault *f)
{
	struct sink *t = inner(s);

	return t->ops->fault(t, img, f);
}

static struct err *sink_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct live *l = self_of(s)->live;
	struct sink *t = inner(s);

	pthread_mutex_lock(&l->lock);
	l->drops[kind < DROP_KIND_COUNT ? kind : DROP_DATA] += count;
	l->drops_new = true;
	pthread_mutex_unlock(&l->lock);
	if (l->options.err)
		t->err = l->options.err;
	return t->ops->drop(t, kind, cpu, count);
}

static struct err *sink_reopen(struct sink *s, const char *path)
{
	struct sink *t = inner(s);

	return t->ops->reopen(t, path);
}

static struct err *sink_truncate(struct sink *s)
{
	struct sink *t = inner(s);

	return t->ops->truncate(t);
}

static struct err *sink_flush(struct sink *s)
{
	struct sink *t = inner(s);

	return t->ops->flush(t);
}

static char *sink_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	struct sink *t = inner(s);

	return t->ops->format(t, r, a);
}

static void sink_report(struct sink *s, const struct run_report *r)
{
	struct sink *t = inner(s);

	if (t->ops->report)
		t->ops->report(t, r);
}

/* A tick is due, and then closed when the aggregations have been shown. */
static bool sink_due(struct sink *s, bool shown)
{
	struct live *l = self_of(s)->live;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ms = (uint64_t)l->options.ms * 1000000;

	if (!shown)
		return now >= l->next_ns;
	pthread_mutex_lock(&l->lock);
	while (l->next_ns <= now)
		l->next_ns += ms;
	close_tick(l);
	pthread_mutex_unlock(&l->lock);
	tell(l);
	return false;
}

static void sink_free(struct sink *s)
{
	struct live_sink_ *self = self_of(s);

	self->text->ops->free(self->text);
	if (self->out)
		fclose(self->out);
	free(self);
}

static const struct sink_ops live_ops = {
	.name = "live",
	.begin = sink_begin,
	.end = sink_end,
	.record_begin = sink_record_begin,
	.action = sink_action,
	.printa = sink_printa,
	.record_end = sink_record_end,
	.fault = sink_fault,
	.drop = sink_drop,
	.reopen = sink_reopen,
	.truncate = sink_truncate,
	.flush = sink_flush,
	.format = sink_format,
	.report = sink_report,
	.due = sink_due,
	.free = sink_free,
};

struct sink *live_sink(struct live *l)
{
	struct live_sink_ *self = xcalloc(1, sizeof(*self));

	self->s.ops = &live_ops;
	self->live = l;
	self->text = sink_text_new();
	self->out = fopencookie(l, "w", (cookie_io_functions_t){ .write = take_text });
	if (self->out)
		setvbuf(self->out, self->buffer, _IOFBF, sizeof(self->buffer));
	return &self->s;
}
