/* Finds the stacks of leaked blocks in a recording: which blocks live at its end. */
#include "memory/alloc/leak_stacks.h"

#include <errno.h>

#include "base/hash.h"
#include "memory/alloc/live_blocks.h"
#include "memory/alloc/trace.h"
#include "memory/leaks/blocks.h"

/* A block on its way through realloc(3). */
struct moving {
	struct live_block from;
	bool known;
};

struct lives {
	struct live live;
	VEC(struct moving) threads;
};

/* Follows an event, as alloc_report() does. */
static void follow_event(struct lives *k, const struct alloc_event *e)
{
	struct live_block b = { e->addr, e->size, e->time, e->stack, e->thread }, old;
	struct moving *m;

	while (k->threads.n <= e->thread)
		vec_add(&k->threads);
	m = &k->threads.v[e->thread];
	switch (e->op) {
	case ALLOC_REALLOC_FROM: m->known = live_take(&k->live, e->addr, &m->from); break;
	case ALLOC_REALLOC:
		if (!e->addr && e->size && m->known)
			live_put(&k->live, &m->from, &old); /* it failed: the block stays */
		m->known = false;
		if (e->addr)
			live_put(&k->live, &b, &old);
		break;
	case ALLOC_MALLOC:
	case ALLOC_CALLOC:
	case ALLOC_ALIGNED:
		if (e->addr)
			live_put(&k->live, &b, &old);
		break;
	case ALLOC_FREE: live_take(&k->live, e->addr, &old); break;
	default: break;
	}
}

/* What leaks have of a recording so far. */
struct given {
	struct hash stacks; /* number of a stack -> index in leaks.stacks */
	const char **texts; /* of each frame; NULL: it is in no stack */
};

/* Returns the index of a stack in l->stacks, 0 when it has no frames. Stacks share the texts of
 * their frames. */
static uint32_t add_stack(struct leaks *l, const struct alloc_trace *t, struct given *g,
			  uint32_t stack)
{
	const struct alloc_stack *s = &t->stacks.v[stack];
	struct leaks_stack *to;
	bool is_new;
	uint64_t *at;

	if (!s->n)
		return 0;
	at = hash_put(&g->stacks, &stack, sizeof(stack), &is_new);
	if (!is_new)
		return (uint32_t)*at;
	if (!l->stacks.n)
		vec_add(&l->stacks);
	*at = l->stacks.n;
	to = vec_add(&l->stacks);
	to->frames = arena_array(&l->arena, const char *, s->n);
	to->n = s->n;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t frame = t->stack_frames.v[s->at + i];

		if (!g->texts[frame])
			g->texts[frame] = arena_strdup(&l->arena, t->frames.v[frame].text);
		to->frames[i] = g->texts[frame];
	}
	return (uint32_t)*at;
}

static void give_stacks(struct leaks *l, const struct alloc_trace *t, struct lives *k)
{
	const struct leaks_heap *h = l->heap;
	struct given g = { .texts = xcalloc(t->frames.n + 1, sizeof(*g.texts)) };

	l->chunk_stacks = xcalloc(h->chunks.n + 1, sizeof(*l->chunk_stacks));
	for (uint32_t i = 0; i < h->chunks.n; i++) {
		const struct leaks_chunk *c = &h->chunks.v[i];
		struct live_block of;

		/* A block that was freed and allocated again behind the recording's end is larger
		 * or smaller. */
		if (!(c->bits & CHUNK_FREE) && live_take(&k->live, chunk_block(c), &of) &&
		    of.size <= chunk_usable(c) && of.stack < t->stacks.n)
			l->chunk_stacks[i] = add_stack(l, t, &g, of.stack);
	}
	for (uint32_t i = 0; i < l->blocks.n; i++) {
		struct leaks_block *b = &l->blocks.v[i];

		b->stack = l->chunk_stacks[b->chunk];
	}
	hash_fini(&g.stacks);
	free(g.texts);
}

struct err *leak_stacks(const char *path, pid_t pid, struct leaks *l)
{
	struct alloc_trace *t = NULL;
	struct lives k = { 0 };
	struct alloc_event event;
	struct err *e = alloc_open(path, false, &t);
	const char *of;

	if (e)
		return e;
	while (!e && alloc_next(t, &event, &e)) {
		follow_event(&k, &event);
		if (live_growth(&k.live) > t->room)
			e = alloc_no_room(t, live_growth(&k.live));
	}
	of = alloc_info(t, "pid");
	if (!e && pid && of && atoi(of) != pid)
		e = err_new(EINVAL, "%s: it is a recording of process %s", path, of);
	if (!e)
		give_stacks(l, t, &k);
	live_fini(&k.live);
	vec_fini(&k.threads);
	alloc_close(t);
	return e;
}
