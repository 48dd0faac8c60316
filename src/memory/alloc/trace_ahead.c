/* A ring of batches between the thread that reads and the one that works on events. */
#include "memory/alloc/trace_ahead.h"

#include <pthread.h>

enum { BATCHES = 4, BATCH_EVENTS = 4096, ALONE = 16 /* batches that are read without a thread */ };

struct batch {
	uint32_t n;
	struct alloc_event v[BATCH_EVENTS];
};

struct alloc_ahead {
	struct alloc_trace *trace;
	struct err *e;
	struct batch batches[BATCHES];
	uint64_t taken; /* batches that the caller is done with */
	uint64_t given; /* batches that are ready, taken ones too */
	uint32_t alone;
	bool ended; /* the last batch was given */
	bool stop;  /* the caller wants no more */
	bool threaded;
	bool working; /* the caller has the batch `taken` */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* Fills a batch. Returns false when it is the last. */
static bool fill_batch(struct alloc_ahead *a, struct batch *b)
{
	b->n = 0;
	while (b->n < BATCH_EVENTS && alloc_next(a->trace, &b->v[b->n], &a->e))
		b->n++;
	return b->n == BATCH_EVENTS;
}

static void *read_batches(void *arg)
{
	struct alloc_ahead *a = arg;
	bool more = true;

	pthread_mutex_lock(&a->lock);
	while (more && !a->stop) {
		if (a->given - a->taken == BATCHES) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		more = fill_batch(a, &a->batches[a->given % BATCHES]);
		pthread_mutex_lock(&a->lock);
		a->given++;
		a->ended = !more;
		pthread_cond_signal(&a->changed);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct alloc_ahead *alloc_ahead_begin(struct alloc_trace *t)
{
	struct alloc_ahead *a = xcalloc(1, sizeof(*a));

	a->trace = t;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	return a;
}

/* Without a thread. */
static const struct alloc_event *next_alone(struct alloc_ahead *a, uint32_t *ret_n)
{
	struct batch *b = &a->batches[0];

	if (a->ended)
		return NULL;
	a->ended = !fill_batch(a, b);
	*ret_n = b->n;
	return b->v;
}

const struct alloc_event *alloc_ahead_next(struct alloc_ahead *a, uint32_t *ret_n)
{
	struct batch *b;
	bool has;

	if (!a->threaded && a->alone < ALONE && !a->ended) {
		a->alone++;
		return next_alone(a, ret_n);
	}
	if (!a->threaded && !a->ended && a->alone == ALONE) {
		a->alone++; /* one try */
		a->threaded = !pthread_create(&a->thread, NULL, read_batches, a);
	}
	if (!a->threaded)
		return next_alone(a, ret_n);
	pthread_mutex_lock(&a->lock);
	if (a->working) {
		a->taken++;
		pthread_cond_signal(&a->changed);
	}
	while (a->given == a->taken && !a->ended)
		pthread_cond_wait(&a->changed, &a->lock);
	has = a->working = a->given != a->taken;
	pthread_mutex_unlock(&a->lock);
	if (!has)
		return NULL;
	b = &a->batches[a->taken % BATCHES];
	*ret_n = b->n;
	return b->v;
}

struct err *alloc_ahead_end(struct alloc_ahead *a)
{
	struct err *e;

	if (a->threaded) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->changed);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
	}
	e = a->e;
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return e;
}
