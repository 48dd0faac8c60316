/* Guesses the type of a lost block, to which no pointer leads. Each type of its size is held
 * against its words. What speaks against a type: a pointer that leads nowhere, or to a block of
 * another type or size; a number that is the address of a block. */
#include "base/sorted.h"
#include "memory/leaks/typed_blocks.h"

/* How a block's words speak for a type. */
struct guess {
	uint32_t layout;
	bool no;
	uint32_t proofs; /* pointers to objects of the right type, and to functions */
	uint32_t signs;  /* pointers to blocks of the right size, whose type is not known */
};

static void guess_block(struct typed_blocks *t, const struct layout_field *f, uint32_t target,
			struct guess *g)
{
	uint32_t number = layout_of(&t->layouts, f->to), is = t->of[target];

	if (!number)
		return; /* text, or void */
	if ((is & ~TYPED_LOOSE) == number)
		g->proofs++;
	else if (is && !(is & TYPED_LOOSE))
		g->no = true;
	else if (!is && typed_block_fits(&t->h->chunks.v[target], &t->layouts.v.v[number]))
		g->signs++;
	else if (!is && chunk_usable(&t->h->chunks.v[target]) < t->layouts.v.v[number].size)
		g->no = true;
}

static void guess_pointer(struct typed_blocks *t, const struct layout_field *f, uint64_t v,
			  struct guess *g)
{
	uint32_t target = typed_block_at(t, v);
	const struct mapping *m;
	uint64_t *known;

	if (target != LEAKS_NONE) {
		guess_block(t, f, target, g);
		return;
	}
	m = mappings_find(t->maps, v);
	if (!m || m->exec) {
		g->no = true;
		return;
	}
	known = hash_get(&t->at, &v, sizeof(v));
	if (known && *known == layout_of(&t->layouts, f->to))
		g->proofs++;
}

/* Words that lie in numbers. */
static void guess_number(struct typed_blocks *t, const struct layout_field *f, uint64_t at,
			 uint64_t end, struct guess *g)
{
	uint64_t v;

	for (uint64_t to = at + f->at + f->size, a = (at + f->at) & ~7ull;
	     a < to && a + MEMORY_WORD <= end && typed_step(t); a += MEMORY_WORD)
		if (typed_word(t, a, &v) && typed_block_at(t, v) != LEAKS_NONE)
			g->no = true;
}

static void guess_field(struct typed_blocks *t, const struct layout_field *f, uint64_t at,
			uint64_t end, struct guess *g)
{
	const struct mapping *m;
	const uint8_t *flag;
	uint64_t v;

	switch (f->kind) {
	case FIELD_POINTER:
		if (typed_word(t, at + f->at, &v) && v)
			guess_pointer(t, f, v, g);
		break;
	case FIELD_CODE:
		if (!typed_word(t, at + f->at, &v) || !v)
			break;
		m = mappings_find(t->maps, v);
		g->proofs += m && m->exec;
		g->no |= !m || !m->exec;
		break;
	case FIELD_FLAG:
		flag = memory_at_near(t->c, &t->last, at + f->at, 1);
		g->no |= flag && *flag > 1;
		break;
	case FIELD_NUMBER: guess_number(t, f, at, end, g); break;
	default: break;
	}
}

static struct guess guess_layout(struct typed_blocks *t, uint32_t number, uint64_t at, uint64_t end)
{
	const struct layout y = t->layouts.v.v[number];
	struct guess g = { .layout = number };

	for (uint32_t i = 0; i < y.n && !g.no && typed_step(t); i++) {
		const struct layout_field f = t->layouts.fields.v[y.first + i];

		guess_field(t, &f, at, end, &g);
	}
	return g;
}

uint32_t typed_block_guess(struct typed_blocks *t, uint32_t chunk)
{
	const struct leaks_chunk *k = &t->h->chunks.v[chunk];
	uint64_t at = chunk_block(k), end = at + chunk_usable(k);
	struct layouts *ls = &t->layouts;
	uint32_t i = partition_point(ls->items.n, j, ls->items.v[j].size <= end - at);
	struct guess best = { 0 };
	bool several = false;

	/* Types are in the order of their sizes: the largest that fits comes first. */
	while (i-- && typed_step(t)) {
		const struct layout_item item = ls->items.v[i];
		struct guess g;
		uint32_t number;

		if (!typed_block_fits(k, &(struct layout){ .size = item.size }))
			break;
		number = layout_of(ls, item.type);
		if (!number || !ls->v.v[number].name || number == best.layout)
			continue;
		g = guess_layout(t, number, at, end);
		if (g.no || !(g.proofs + g.signs))
			continue;
		if (!best.layout || g.proofs > best.proofs) {
			best = g;
			several = false;
		} else if (g.proofs == best.proofs) {
			several = true;
		}
	}
	/* Without the rest of the steps nothing was held against it. */
	return several || !typed_step(t) ? 0 : best.layout;
}
