/* A sink that gives what a program prints and counts to the views of a live run. */
#define _GNU_SOURCE /* fopencookie */
#include <assert.h>
#include <time.h>

#include "base/clock.h"
#include "serve/live_private.h"

struct live_printer {
	struct sink_ops ops; /* operations of the text sink, except for aggregations and drops */
	const struct sink_ops *plain; /* the text sink's own */
	struct live *live;
	FILE *out;
	char buffer[4096];
};

static struct live_printer *live_of(struct sink *s)
{
	return (struct live_printer *)((char *)(uintptr_t)s->ops -
				       offsetof(struct live_printer, ops));
}

/* Cuts the printer's text into lines. */
static ssize_t take_text(void *cookie, const char *buf, size_t n)
{
	struct live *l = cookie;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < n; i++) {
		if (buf[i] == '\n' || l->npart == sizeof(l->part)) {
			if (l->npart)
				live_add_line(l, l->part, l->npart, false);
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
	struct live_printer *self = live_of(s);

	s->out = self->out;
	return self->plain->begin(s);
}

/* printa() prints. The present aggregations, and those at the end, are views. */
static struct err *sink_printa(struct sink *s, const struct record_view *r, const struct action *a,
			       struct agg_view *const *aggs, uint32_t n)
{
	struct live *l = live_of(s)->live;

	if (r)
		return live_of(s)->plain->printa(s, r, a, aggs, n);
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; i < n; i++)
		live_take_rows(l, s, aggs[i]);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static struct err *sink_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	struct live *l = live_of(s)->live;
	const struct sink before = *s;
	struct err *e;

	pthread_mutex_lock(&l->lock);
	l->drops[kind < DROP_KIND_COUNT ? kind : DROP_DATA] += count;
	l->drops_new = true;
	pthread_mutex_unlock(&l->lock);
	if (l->options.drops) {
		s->message = l->options.drops;
		s->message_arg = l->options.arg;
	}
	e = live_of(s)->plain->drop(s, kind, cpu, count);
	s->message = before.message;
	s->message_arg = before.message_arg;
	return e;
}

/* Returns true when a tick is due. The tick is closed when the aggregations have been shown. */
static bool sink_due(struct sink *s, bool shown)
{
	struct live *l = live_of(s)->live;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), ms = (uint64_t)l->options.ms * 1000000;

	if (!shown)
		return now >= l->next_ns;
	pthread_mutex_lock(&l->lock);
	while (l->next_ns <= now)
		l->next_ns += ms;
	live_close_tick(l);
	pthread_mutex_unlock(&l->lock);
	live_tell(l);
	return false;
}

static void sink_free(struct sink *s)
{
	struct live_printer *self = live_of(s);

	self->plain->free(s);
	fclose(self->out);
	free(self);
}

struct sink *live_sink(struct live *l)
{
	struct live_printer *self = xcalloc(1, sizeof(*self));
	struct sink *s = sink_text_new();

	self->plain = s->ops;
	self->ops = *s->ops;
	self->ops.name = "live";
	self->ops.begin = sink_begin;
	self->ops.printa = sink_printa;
	self->ops.final = NULL;
	self->ops.drop = sink_drop;
	self->ops.due = sink_due;
	self->ops.free = sink_free;
	self->live = l;
	self->out = fopencookie(l, "w", (cookie_io_functions_t){ .write = take_text });
	assert(self->out);
	setvbuf(self->out, self->buffer, _IOFBF, sizeof(self->buffer));
	s->ops = &self->ops;
	return s;
}
