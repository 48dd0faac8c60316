/* Keeps what a shortcut knows on one way. See way.h. */
#include <stddef.h>

#include "base/mem.h"
#include "compile/jit/way.h"

static bool word_same_place(const struct word *a, const struct word *b)
{
	return a->kind == b->kind && a->at == b->at && a->size == b->size && a->add == b->add;
}

struct word *way_slot(struct way *w, int64_t at)
{
	return at >= -8 * WAY_SLOTS && at < 0 && at % 8 == 0 ? &w->slot[WAY_SLOTS + at / 8] : NULL;
}

void way_forget(struct way *w, int64_t at, uint32_t n)
{
	for (int64_t i = at & ~(int64_t)7; i < at + n; i += 8)
		if (way_slot(w, i))
			way_slot(w, i)->kind = WORD_LOST;
}

void way_forget_thread(struct way *w, uint64_t at, uint32_t n)
{
	struct word *all[] = { w->r, w->slot };
	uint32_t counts[] = { ARRAY_SIZE(w->r), WAY_SLOTS };

	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < counts[k]; i++)
			if (all[k][i].kind == WORD_THREAD && all[k][i].at < at + n &&
			    at < all[k][i].at + all[k][i].size)
				all[k][i].kind = WORD_LOST;
}

void way_forget_zeros(struct way *w, uint64_t at, uint32_t n)
{
	for (uint32_t i = 0; i < w->nzeros;)
		if (w->zeros[i].word.kind == WORD_THREAD && w->zeros[i].word.at < at + n &&
		    at < w->zeros[i].word.at + w->zeros[i].word.size)
			w->zeros[i] = w->zeros[--w->nzeros];
		else
			i++;
}

void way_learn_zero(struct way *w, const struct word *a, bool is_zero)
{
	if (w->nzeros == WAY_ZEROS || (a->kind != WORD_THREAD && a->kind != WORD_FIXED))
		return;
	w->zeros[w->nzeros].word = *a;
	w->zeros[w->nzeros++].is_zero = is_zero;
}

bool way_knows_zero(const struct way *w, const struct word *a, bool *ret_is_zero)
{
	if (a->kind == WORD_NAMED && !a->add) {
		*ret_is_zero = false;
		return true;
	}
	for (uint32_t i = 0; i < w->nzeros; i++)
		if (word_same_place(&w->zeros[i].word, a)) {
			*ret_is_zero = w->zeros[i].is_zero;
			return true;
		}
	return false;
}
