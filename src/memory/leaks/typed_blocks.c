/* Follows typed pointers from a program's variables through its blocks, as mdb's ::typegraph does.
 * A block gets the type of the first pointer to its beginning, if it has the right size for one
 * object or for several; a smaller type says only how it begins. */
#include "memory/leaks/typed_blocks.h"

enum {
	STEPS_MAX = 1 << 28,
	TRIED_MAX = 64, /* elements of an array that are looked at before it counts as one */
	SMALL_USABLE = 24,
};

bool typed_step(struct typed_blocks *t)
{
	return t->steps < STEPS_MAX && ++t->steps;
}

bool typed_word(struct typed_blocks *t, uint64_t addr, uint64_t *ret)
{
	const void *p = memory_at_near(t->c, &t->last, addr, sizeof(*ret));

	if (p)
		memcpy(ret, p, sizeof(*ret));
	return p;
}

uint32_t typed_block_at(const struct typed_blocks *t, uint64_t addr)
{
	uint32_t i;

	if (addr < t->h->lo || addr >= t->h->hi)
		return LEAKS_NONE;
	i = heap_chunk(t->h, addr);
	return i != LEAKS_NONE && !(t->h->chunks.v[i].bits & CHUNK_FREE) &&
			       chunk_block(&t->h->chunks.v[i]) == addr
		       ? i
		       : LEAKS_NONE;
}

/* What malloc(3) adds: glibc rounds up to multiples of 16, and other allocators have classes of
 * sizes, at most a quarter apart. glibc rarely leaves 16 bytes more, which are too small for a
 * chunk; such a block has no type. */
bool typed_block_fits(const struct leaks_chunk *k, const struct layout *y)
{
	uint64_t usable = chunk_usable(k), most;

	if (usable < y->size)
		return false;
	if (k->bits & CHUNK_MAPPED)
		most = y->size + MEMORY_PAGE;
	else if (k->bits & CHUNK_PLAIN)
		most = y->size + y->size / 4 + CHUNK_HEADER;
	else
		most = round_up(y->size + MEMORY_WORD, CHUNK_HEADER) - MEMORY_WORD;
	return y->tail || usable <= (most > SMALL_USABLE ? most : SMALL_USABLE);
}

void typed_block_set(struct typed_blocks *t, uint32_t chunk, uint32_t layout)
{
	t->of[chunk] = layout;
	vec_push(&t->queue, chunk);
}

/* Returns true when all pointers of an object are empty or lead somewhere. */
static bool is_plausible(struct typed_blocks *t, const struct layout *y, uint64_t at)
{
	for (uint32_t i = 0; i < y->n && typed_step(t); i++) {
		const struct layout_field *f = &t->layouts.fields.v[y->first + i];
		uint64_t v;

		if ((f->kind == FIELD_POINTER || f->kind == FIELD_CODE) &&
		    (!typed_word(t, at + f->at, &v) || (v && !mappings_find(t->maps, v))))
			return false;
	}
	return true;
}

static bool is_array(struct typed_blocks *t, const struct leaks_chunk *k, const struct layout *y)
{
	uint64_t n = chunk_usable(k) / y->size;

	if (n < 2)
		return false;
	for (uint64_t i = 0; i < n && i < TRIED_MAX; i++)
		if (!is_plausible(t, y, chunk_block(k) + i * y->size))
			return false;
	return true;
}

/* A pointer to this type has this value. */
static void follow_pointer(struct typed_blocks *t, uint64_t v, type_id to)
{
	uint32_t i = typed_block_at(t, v), number;
	const struct leaks_chunk *k;
	const struct layout *y;

	if (i == LEAKS_NONE || (t->of[i] && !(t->of[i] & TYPED_LOOSE)))
		return;
	number = layout_of(&t->layouts, to);
	if (!number)
		return;
	k = &t->h->chunks.v[i];
	y = &t->layouts.v.v[number];
	if (typed_block_fits(k, y) || is_array(t, k, y))
		typed_block_set(t, i, number);
	else if (!t->of[i] && chunk_usable(k) > y->size)
		typed_block_set(t, i, number | TYPED_LOOSE);
}

static void follow_object(struct typed_blocks *t, uint32_t number, uint64_t at)
{
	/* A pointer that is followed may make a layout, which moves the list of fields. */
	const struct layout y = t->layouts.v.v[number];

	for (uint32_t i = 0; i < y.n && typed_step(t); i++) {
		const struct layout_field f = t->layouts.fields.v[y.first + i];
		uint64_t v;

		if (f.kind == FIELD_POINTER && typed_word(t, at + f.at, &v) && v)
			follow_pointer(t, v, f.to);
	}
}

static void follow_objects(struct typed_blocks *t, uint32_t number, uint64_t at, uint64_t end)
{
	uint64_t size = t->layouts.v.v[number].size;

	for (; end - at >= size && at < end && t->layouts.v.v[number].n && typed_step(t);
	     at += size)
		follow_object(t, number, at);
}

void typed_blocks_follow(struct typed_blocks *t)
{
	while (t->queue.n) {
		uint32_t i = t->queue.v[--t->queue.n], number = t->of[i] & ~TYPED_LOOSE, tail;
		const struct leaks_chunk *k = &t->h->chunks.v[i];
		const struct layout y = t->layouts.v.v[number];
		uint64_t at = chunk_block(k), end = at + chunk_usable(k);

		if (y.tail || t->of[i] & TYPED_LOOSE)
			follow_object(t, number, at);
		else
			follow_objects(t, number, at, end);
		tail = y.tail && y.tail_at < end - at ? layout_of(&t->layouts, y.tail) : 0;
		if (tail)
			follow_objects(t, tail, at + y.tail_at, end);
	}
}

static void follow_variable(struct typed_blocks *t, const struct typed_variable *v)
{
	uint64_t size = type_size(t->layouts.g, v->type);
	uint32_t number = layout_of(&t->layouts, v->type);

	if (!number || !size || v->addr + size < v->addr)
		return;
	*hash_put(&t->at, &v->addr, sizeof(v->addr), NULL) = number;
	follow_objects(t, number, v->addr, v->addr + size);
	typed_blocks_follow(t);
}

/* Tables of virtual functions are constants of a file. */
static const char *typed_class(struct typed_blocks *t, uint64_t word,
			       const char *(*class_of)(void *arg, uint64_t word), void *arg)
{
	const struct mapping *m = mappings_find(t->maps, word);

	return m && m->path[0] == '/' && !m->exec && !m->write ? class_of(arg, word) : NULL;
}

void typed_blocks_find(struct typed_blocks *t, const char *(*class_of)(void *arg, uint64_t word),
		       void *arg)
{
	t->of = xcalloc(t->h->chunks.n + 1, sizeof(*t->of));
	for (uint32_t i = 0; i < t->h->chunks.n && t->layouts.of_class.n; i++) {
		const struct leaks_chunk *k = &t->h->chunks.v[i];
		uint32_t number;
		const char *name;
		uint64_t word;

		if (k->bits & CHUNK_FREE || !typed_step(t) || !typed_word(t, chunk_block(k), &word))
			continue;
		name = typed_class(t, word, class_of, arg);
		number = name ? layout_of_class(&t->layouts, name) : 0;
		if (number)
			typed_block_set(t, i,
					number | (typed_block_fits(k, &t->layouts.v.v[number])
							  ? 0
							  : TYPED_LOOSE));
	}
	typed_blocks_follow(t);
	for (uint32_t i = 0; i < t->variables.n; i++)
		follow_variable(t, &t->variables.v[i]);
}

void typed_blocks_fini(struct typed_blocks *t)
{
	layouts_fini(&t->layouts);
	vec_fini(&t->variables);
	hash_fini(&t->at);
	vec_fini(&t->queue);
	free(t->of);
}
