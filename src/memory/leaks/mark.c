/* Marks the blocks that a program can reach: a word that holds an address in a block reaches it,
 * and so do the words of a block that is reached. The rest has leaked. A leaked block that no
 * other leaked block leads to is a root, and so is one block of a circle; each root holds the
 * leaked blocks that it reaches first. */
#include "base/clock.h"
#include "base/sorted.h"
#include "memory/leaks/leaks_private.h"

enum { SMALL = 4096, PTHREAD_MAX = 4096 };

typedef VEC(uint32_t) chunk_vec;

struct marker {
	const struct memory_copy *c;
	struct leaks_heap *h;
	struct leaks *l;
	const struct leaks_seek *seek; /* NULL: only blocks are reached */
	const char *kind;              /* of the memory that leads to the word */
	chunk_vec found;               /* reached, not scanned yet */
	memory_word_vec stacks;
};

/* Calls fn for the parts of [start, end) that the process has made. */
static void each_part(const struct memory_copy *c, uint64_t start, uint64_t end,
		      void (*fn)(void *arg, uint64_t start, uint64_t end), void *arg)
{
	uint32_t i = partition_point(c->runs.n, k, c->runs.v[k].end <= start);

	for (; i < c->runs.n && c->runs.v[i].start < end; i++) {
		uint64_t from = c->runs.v[i].start, to = c->runs.v[i].end;

		fn(arg, from > start ? from : start, to < end ? to : end);
	}
}

/* --- what is reached --- */

static void reach(struct marker *m, uint64_t at, uint64_t word)
{
	uint32_t i;

	if (m->seek && m->seek->placed)
		m->seek->placed(m->seek->arg, at, word, m->kind);
	else if (m->seek)
		m->seek->fn(m->seek->arg, word, m->kind);
	if (word < m->h->lo || word >= m->h->hi + CHUNK_HEADER)
		return;
	i = heap_chunk(m->h, word);
	if (i == LEAKS_NONE || (m->h->chunks.v[i].bits & (CHUNK_FREE | CHUNK_REACHED)))
		return;
	m->h->chunks.v[i].bits |= CHUNK_REACHED;
	vec_push(&m->found, i);
}

static void reach_words(struct marker *m, const struct memory_region *r, uint64_t start,
			uint64_t end)
{
	start = round_up(start, MEMORY_WORD);
	end = end < r->end ? end : r->end;
	m->l->scanned += end > start ? end - start : 0;
	for (; start + MEMORY_WORD <= end; start += MEMORY_WORD)
		reach(m, start, memory_word(r, start));
}

static const char *kind_of(const struct marker *m, const struct memory_region *r)
{
	if (memory_has_stack(&m->stacks, r))
		return "native stack";
	return r->file ? "native variable" : "native memory";
}

static void reach_part(void *arg, uint64_t start, uint64_t end)
{
	struct marker *m = arg;
	const struct memory_region *r = memory_region_at(m->c, start);

	m->kind = kind_of(m, r);
	reach_words(m, r, start, end);
	/* Words are searched as they are found, so that the list of found ones stays short. */
	while (m->found.n) {
		const struct leaks_chunk *c = &m->h->chunks.v[m->found.v[--m->found.n]];
		uint64_t from = chunk_block(c), to = from + chunk_usable(c);

		r = memory_region_at(m->c, from);
		if (to - from <= SMALL) {
			reach_words(m, r, from, to);
			continue;
		}
		/* of a large block only what was touched */
		for (uint32_t i = partition_point(m->c->runs.n, k, m->c->runs.v[k].end <= from);
		     i < m->c->runs.n && m->c->runs.v[i].start < to; i++) {
			uint64_t a = m->c->runs.v[i].start, b = m->c->runs.v[i].end;

			reach_words(m, r, a > from ? a : from, b < to ? b : to);
		}
	}
}

/* Finds where a thread's stack begins. Its struct pthread, on top of the stack, has the words
 * {stackblock, stackblock_size, guardsize} at a place that differs between versions. Returns 0 when
 * it is not known. */
static uint64_t stack_begin(const struct memory_copy *c, const struct memory_thread *t)
{
	const struct memory_region *r = memory_region_at(c, t->sp);
	uint64_t end;

	if (!r)
		return 0;
	if (r->stack)
		return r->start;
	if (t->fs <= t->sp || t->fs >= r->end) /* a core file can have any number there */
		return 0;
	end = r->end - t->fs < PTHREAD_MAX ? r->end : t->fs + PTHREAD_MAX;
	for (uint64_t at = t->fs; at % 8 == 0 && at + 24 <= end; at += MEMORY_WORD) {
		uint64_t block = memory_word(r, at), size = memory_word(r, at + 8);
		uint64_t guard = memory_word(r, at + 16);

		if (block && block <= t->sp && size > t->fs - block && guard < size &&
		    block + size <= r->end && block + guard >= r->start && block + guard <= t->sp)
			return block + guard;
	}
	return 0;
}

/* Adds the part of each thread's stack that no function has. A stack that lies in a block of the
 * heap is that block's. */
static void add_dead_stacks(const struct memory_copy *c, const memory_word_vec *sps,
			    space_range_vec *ret)
{
	for (uint32_t i = 0; i < c->threads.n; i++) {
		uint64_t begin = stack_begin(c, &c->threads.v[i]);
		uint32_t k = partition_point(sps->n, j, sps->v[j] < begin);

		if (begin) /* begin <= sp, so that there is one */
			vec_push(ret, (struct space_range){ begin, sps->v[k] });
	}
}

/* Scans all memory but malloc's own and the blocks. */
static void reach_from_roots(struct marker *m)
{
	space_range_vec no = { 0 };
	uint64_t at = 0;

	memory_stacks(m->c, &m->stacks);
	add_dead_stacks(m->c, &m->stacks, &no);
	for (uint32_t i = 0; i < no.n; i++) {
		uint32_t k =
			partition_point(m->h->areas.n, j, m->h->areas.v[j].end <= no.v[i].start);

		if (k < m->h->areas.n && m->h->areas.v[k].start < no.v[i].end)
			no.v[i].end = no.v[i].start; /* not a plain stack */
	}
	for (uint32_t i = 0; i < m->h->own.n; i++)
		vec_push(&no, m->h->own.v[i]);
	for (uint32_t i = 0; i < m->h->areas.n; i++)
		vec_push(&no, (struct space_range){ m->h->areas.v[i].start, m->h->areas.v[i].end });
	for (uint32_t i = 0; m->seek && i < m->seek->nskip; i++)
		vec_push(&no, m->seek->skip[i]);
	if (no.n)
		qsort(no.v, no.n, sizeof(*no.v), ranges_by_start);
	m->kind = "register";
	for (uint32_t i = 0; i < m->c->registers.n; i++)
		reach(m, 0, m->c->registers.v[i]);
	for (uint32_t i = 0; i <= no.n; i++) {
		uint64_t end = i < no.n ? no.v[i].start : UINT64_MAX;

		if (end > at)
			each_part(m->c, at, end, reach_part, m);
		if (i < no.n && no.v[i].end > at)
			at = no.v[i].end;
	}
	/* Registers may have reached blocks though no memory is a root. */
	if (m->found.n && m->c->runs.n)
		reach_part(m, m->c->runs.v[0].start, m->c->runs.v[0].start);
	vec_fini(&no);
}

void leaks_seek(const struct memory_copy *c, struct leaks_heap *h, const struct leaks_seek *seek)
{
	struct leaks l = { 0 };
	struct marker m = { .c = c, .h = h, .l = &l, .seek = seek };

	reach_from_roots(&m);
	vec_fini(&m.found);
	vec_fini(&m.stacks);
}

/* --- what holds what --- */

/* A place in a depth-first walk: a block, and the next of its words. */
struct visit {
	uint32_t chunk;
	uint64_t next;
};
typedef VEC(struct visit) visit_vec;

static bool is_leaked(const struct leaks_chunk *c)
{
	return !(c->bits & (CHUNK_FREE | CHUNK_REACHED));
}

/* Returns the next leaked block, of those without CHUNK_SEEN, that a word of the block leads to. */
static uint32_t next_leaked(struct marker *m, struct visit *p)
{
	const struct leaks_chunk *c = &m->h->chunks.v[p->chunk];
	uint64_t end = chunk_block(c) + chunk_usable(c);
	const struct memory_region *r = memory_region_at(m->c, c->addr);

	end = end < r->end ? end : r->end;
	while (p->next + MEMORY_WORD <= end) {
		uint64_t at = p->next, word = 0;
		uint32_t i;

		if (at % MEMORY_PAGE < MEMORY_WORD || at == chunk_block(c)) {
			/* passes over what was not touched */
			uint32_t k = partition_point(m->c->runs.n, j, m->c->runs.v[j].end <= at);

			if (k == m->c->runs.n || m->c->runs.v[k].start >= end)
				break;
			if (m->c->runs.v[k].start > at) {
				p->next = round_up(m->c->runs.v[k].start, MEMORY_WORD);
				continue;
			}
		}
		p->next = at + MEMORY_WORD;
		word = memory_word(r, at);
		if (word < m->h->lo || word >= m->h->hi + CHUNK_HEADER)
			continue;
		i = heap_chunk(m->h, word);
		if (i != LEAKS_NONE && is_leaked(&m->h->chunks.v[i]) &&
		    !(m->h->chunks.v[i].bits & CHUNK_SEEN))
			return i;
	}
	p->next = end;
	return LEAKS_NONE;
}

static void mark_enter(struct marker *m, visit_vec *walk, uint32_t chunk)
{
	m->h->chunks.v[chunk].bits |= CHUNK_SEEN;
	vec_push(walk, (struct visit){ chunk, chunk_block(&m->h->chunks.v[chunk]) });
}

/* Lists the leaked blocks in the order in which a depth-first walk leaves them. Of blocks that lead
 * to each other's, the last one left leads to all the others. */
static void order(struct marker *m, chunk_vec *ret)
{
	visit_vec walk = { 0 };

	for (uint32_t i = 0; i < m->h->chunks.n; i++) {
		struct leaks_chunk *c = &m->h->chunks.v[i];

		if (!is_leaked(c) || (c->bits & CHUNK_SEEN))
			continue;
		mark_enter(m, &walk, i);
		while (walk.n) {
			uint32_t next = next_leaked(m, vec_last(&walk));

			if (next != LEAKS_NONE)
				mark_enter(m, &walk, next);
			else
				vec_push(ret, walk.v[--walk.n].chunk);
		}
	}
	for (uint32_t i = 0; i < ret->n; i++)
		m->h->chunks.v[ret->v[i]].bits &= ~CHUNK_SEEN;
	vec_fini(&walk);
}

static void add_root(struct marker *m, visit_vec *walk, uint32_t chunk)
{
	const struct leaks_chunk *c = &m->h->chunks.v[chunk];
	struct leaks_block b = { .addr = chunk_block(c), .size = chunk_usable(c), .chunk = chunk };

	mark_enter(m, walk, chunk);
	while (walk->n) {
		uint32_t next = next_leaked(m, vec_last(walk));

		if (next == LEAKS_NONE) {
			walk->n--;
			continue;
		}
		b.held++;
		b.held_bytes += chunk_usable(&m->h->chunks.v[next]);
		mark_enter(m, walk, next);
	}
	vec_push(&m->l->blocks, b);
}

static void find_roots(struct marker *m)
{
	chunk_vec left = { 0 };
	visit_vec walk = { 0 };

	order(m, &left);
	while (left.n) {
		uint32_t i = left.v[--left.n];

		if (!(m->h->chunks.v[i].bits & CHUNK_SEEN))
			add_root(m, &walk, i);
	}
	vec_fini(&left);
	vec_fini(&walk);
}

static int by_bytes(const void *a, const void *b)
{
	const struct leaks_block *x = a, *y = b;
	uint64_t m = x->size + x->held_bytes, n = y->size + y->held_bytes;

	if (m != n)
		return m > n ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

void leaks_mark(const struct memory_copy *c, struct leaks_heap *h, struct leaks *l)
{
	struct marker m = { .c = c, .h = h, .l = l };

	reach_from_roots(&m);
	for (uint32_t i = 0; i < h->chunks.n; i++) {
		const struct leaks_chunk *k = &h->chunks.v[i];
		bool unused = k->bits & CHUNK_FREE;

		*(unused ? &l->unused : &l->used) += 1;
		*(unused ? &l->unused_bytes : &l->used_bytes) += chunk_usable(k);
		if (is_leaked(k)) {
			l->leaked++;
			l->leaked_bytes += chunk_usable(k);
		}
	}
	find_roots(&m);
	if (l->blocks.n)
		qsort(l->blocks.v, l->blocks.n, sizeof(*l->blocks.v), by_bytes);
	vec_fini(&m.found);
	vec_fini(&m.stacks);
}

struct err *leaks_find(const struct memory_copy *c, struct leaks **ret)
{
	struct leaks *l = xcalloc(1, sizeof(*l));
	struct leaks_heap *h = xcalloc(1, sizeof(*h));
	uint64_t begin;
	struct err *e;

	arena_init(&l->arena);
	l->heap = h;
	h->l = l;
	e = heap_find(c, h);
	if (!e) {
		l->arenas = h->arenas;
		l->maps = h->maps;
		begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		leaks_mark(c, h, l);
		l->search_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		*ret = l;
	} else {
		leaks_free(l);
	}
	return e;
}

void leaks_free(struct leaks *l)
{
	if (!l)
		return;
	vec_fini(&l->groups);
	vec_fini(&l->blocks);
	vec_fini(&l->stacks);
	vec_fini(&l->remarks);
	if (l->heap)
		heap_fini(l->heap);
	free(l->heap);
	free(l->chunk_stacks);
	arena_fini(&l->arena);
	free(l);
}
