/* Keeps the views of a running program for the page: a ring of seconds, and the lines printed. */
#define _GNU_SOURCE
#include "serve/live_private.h"

#include <time.h>

#include "base/clock.h"
#include "render/picture_flame.h"
#include "render/json.h"

enum {
	HISTORY = 600,
	TICK_MS = 1000,
	LINES_MAX = 2000, /* of one tick */
	BYTES = 256 << 20,
};

void live_put_text(struct out *o, const char *s, size_t n)
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
	if (!l->options.bytes)
		l->options.bytes = BYTES;
	if (!l->options.names)
		l->options.names = BYTES;
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

static void free_texts(char **v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		free(v[i]);
}

static void live_forget(struct live *l)
{
	for (uint32_t i = 0; i < l->aggs.n; i++) {
		struct live_agg *a = &l->aggs.v[i];

		free_texts(a->texts.v, a->texts.n);
		free_texts(a->buckets.v, a->buckets.n);
		vec_fini(&a->texts);
		vec_fini(&a->buckets);
		timeline_fini(&a->rows);
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
	l->first = l->tick_bytes = 0;
	l->nticks = l->lines_dropped = l->stacks_dropped = 0;
	l->frames_from = l->stacks_from = l->npart = 0;
	l->name_bytes = 0;
	l->views.n = 0;
	memset(l->drops, 0, sizeof(l->drops));
	l->drops_new = false;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	live_forget(l);
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

char *live_take_text(struct out *o)
{
	char *s;

	out_char(o, '\0');
	s = xmemdup(o->v, o->n);
	o->n = 0;
	return s;
}

void live_put_new(struct out *o, const char *name, char *const *v, uint32_t from, uint32_t n)
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
			live_put_text(o, l->lines.v[i].text, strlen(l->lines.v[i].text));
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

/* Writes ,"drops":[[1234,"aggregation drops","raise -x aggsize, ..."],...]: the losses since the
 * run began. */
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

static void drop_oldest(struct live *l)
{
	struct tick *old = &l->ticks.v[l->first++ % l->options.history];

	l->tick_bytes -= old->n;
	free(old->json);
	*old = (struct tick){ 0 };
}

/* Closes the tick. The lock is held. */
void live_close_tick(struct live *l)
{
	struct out o = { 0 };
	struct tick t;

	out_printf(&o,
		   "{\"type\":\"tick\",\"tick\":%llu,\"time\":%llu,\"running\":%s,\"status\":%d",
		   (unsigned long long)l->nticks,
		   (unsigned long long)(clock_ns(CLOCK_REALTIME) / 1000000),
		   l->running ? "true" : "false", l->status);
	live_put_new(&o, "frames", l->frames.v, l->frames_from, l->frames.n);
	live_put_new(&o, "stacks", l->stacks.v, l->stacks_from, l->stacks.n);
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
	t = (struct tick){ xrealloc(o.v, o.n), o.n };
	if (l->nticks - l->first == l->options.history)
		drop_oldest(l);
	if (l->ticks.n < l->options.history)
		vec_push(&l->ticks, t);
	else
		l->ticks.v[l->nticks % l->options.history] = t;
	l->nticks++;
	/* A traced process can make the program print megabytes each second. */
	l->tick_bytes += t.n;
	while (l->tick_bytes > l->options.bytes && l->first + 1 < l->nticks)
		drop_oldest(l);
}

void live_tell(struct live *l)
{
	if (l->fn)
		l->fn(l->arg);
}

void live_begin(struct live *l, const char *program)
{
	pthread_mutex_lock(&l->lock);
	live_forget(l);
	l->generation++;
	free(l->program);
	l->program = xstrdup(program);
	l->running = true;
	l->status = 0;
	l->next_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)l->options.ms * 1000000;
	pthread_mutex_unlock(&l->lock);
	live_tell(l);
}

void live_end(struct live *l, int status)
{
	pthread_mutex_lock(&l->lock);
	l->running = false;
	l->status = status;
	live_close_tick(l);
	pthread_mutex_unlock(&l->lock);
	live_tell(l);
}

/* Replaces tabs by blanks up to the next eighth column, as terminals do. */
static char *with_spaces(const char *text, size_t n)
{
	struct out o = { 0 };

	for (size_t i = 0; i < n; i++)
		if (text[i] == '\t')
			out_fill(&o, ' ', 8 - o.n % 8);
		else
			out_char(&o, text[i] ? text[i] : ' ');
	return out_take(&o);
}

void live_add_line(struct live *l, const char *text, size_t n, bool message)
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
		live_add_line(l, text, n, message);
	pthread_mutex_unlock(&l->lock);
}

/* Writes elements of a list until the text has `end` bytes. Returns the number of the first that
 * is left. */
static uint32_t put_piece(struct out *o, const char *name, char *const *v, uint32_t from,
			  uint32_t n, size_t end)
{
	size_t bytes = o->n;
	uint32_t to = from;

	while (to < n && bytes < end)
		bytes += strlen(v[to++]) + 1;
	live_put_new(o, name, v, from, to);
	return to;
}

/* Writes the next names, stacks and rows that a reader needs for the kept ticks. A traced process
 * can make them many, and each reader has a copy of what is sent to it. */
static void put_names(struct live *l, struct live_reader *r, struct out *o)
{
	const size_t end = o->n + LIVE_PIECE;
	const char *sep = "";

	r->frames = put_piece(o, "frames", l->frames.v, r->frames, l->frames_from, end);
	r->stacks = put_piece(o, "stacks", l->stacks.v, r->stacks, l->stacks_from, end);
	out_str(o, ",\"aggs\":[");
	while (r->agg < l->aggs.n && o->n < end) {
		struct live_agg *a = &l->aggs.v[r->agg];

		if (a->head) {
			out_printf(o, "%s{%s", sep, a->head);
			r->rows = put_piece(o, "rows", a->texts.v, r->rows, a->texts.n, end);
			r->buckets = put_piece(o, "buckets", a->buckets.v, r->buckets, a->buckets.n,
					       end);
			out_char(o, '}');
			sep = ",";
			if (r->rows < a->texts.n || r->buckets < a->buckets.n)
				break;
		}
		r->agg++;
		r->rows = r->buckets = 0;
	}
	out_str(o, "]}");
	r->names = r->frames < l->frames_from || r->stacks < l->stacks_from || r->agg < l->aggs.n;
}

/* Writes the text that begins a stream. */
static void put_hello(struct live *l, struct live_reader *r, struct out *o)
{
	out_printf(
		o,
		"{\"type\":\"hello\",\"ms\":%u,\"history\":%u,\"allowD\":%s,\"allowHeap\":%s,\"running\":%s,",
		l->options.ms, l->options.history, l->options.allow_d ? "true" : "false",
		l->options.allow_heap ? "true" : "false", l->running ? "true" : "false");
	out_printf(o, "\"status\":%d,\"program\":", l->status);
	json_string(o, l->program ? l->program : "", l->program ? strlen(l->program) : 0);
	out_str(o, ",\"host\":");
	json_string(o, l->options.host ? l->options.host : "",
		    l->options.host ? strlen(l->options.host) : 0);
	put_drops(l, o);
	put_names(l, r, o);
}

bool live_next(struct live *l, struct live_reader *r, struct out *o)
{
	bool some = true;

	pthread_mutex_lock(&l->lock);
	if (r->generation != l->generation) {
		*r = (struct live_reader){ .generation = l->generation, .tick = l->first };
		put_hello(l, r, o);
	} else if (r->names) {
		out_str(o, "{\"type\":\"names\"");
		put_names(l, r, o);
	} else if (r->tick < l->nticks) {
		const struct tick *t;

		/* the reader is too slow, and the page sees the gap */
		if (r->tick < l->first)
			r->tick = l->first;
		t = &l->ticks.v[r->tick % l->options.history];
		out_mem(o, t->json, t->n);
		r->tick++;
	} else {
		some = false;
	}
	pthread_mutex_unlock(&l->lock);
	return some;
}
