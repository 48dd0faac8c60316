/* Computes edit distances, for "did you mean ...?". */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX_LEN = 63 };

static uint32_t min2(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t edit_distance(const char *a, const char *b, uint32_t limit)
{
	/* Three rows of the usual table, because a swap needs the row before the last. */
	uint32_t rows[3][WORD_MAX_LEN + 1], *before = rows[0], *prev = rows[1], *cur = rows[2], *t;
	size_t na = strnlen(a, WORD_MAX_LEN + 1), nb = strnlen(b, WORD_MAX_LEN + 1);

	if (na > WORD_MAX_LEN || nb > WORD_MAX_LEN || (na > nb ? na - nb : nb - na) > limit)
		return limit + 1;
	for (size_t j = 0; j <= nb; j++)
		prev[j] = (uint32_t)j;
	for (size_t i = 1; i <= na; i++) {
		uint32_t least = cur[0] = (uint32_t)i;

		for (size_t j = 1; j <= nb; j++) {
			uint32_t d = prev[j - 1] + (a[i - 1] != b[j - 1]);

			d = min2(d, min2(prev[j], cur[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = min2(d, before[j - 2] + 1);
			cur[j] = d;
			least = min2(least, d);
		}
		if (least > limit)
			return limit + 1;
		t = before;
		before = prev;
		prev = cur;
		cur = t;
	}
	return min2(prev[nb], limit + 1);
}

/* Compares two candidates of equal distance. Swapped letters are likelier than lost letters, so a
 * word of the same length is. Otherwise the first of the alphabet is taken, so that the order of
 * the offers, which may be that of a hash table, does not matter. */
static bool is_likelier(const char *word, const char *candidate, const char *than)
{
	bool same = strlen(candidate) == strlen(word), was_same = strlen(than) == strlen(word);

	return same != was_same ? same : strcmp(candidate, than) < 0;
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	size_t len = strnlen(n->word, WORD_MAX_LEN + 1);
	uint32_t limit = len < 6 ? 1 : (uint32_t)len / 3, d;

	if (len < 3 || len > WORD_MAX_LEN)
		return; /* every word would be near */
	d = edit_distance(n->word, candidate, limit);
	if (d > 0 && d <= limit &&
	    (!n->name || d < n->distance ||
	     (d == n->distance && is_likelier(n->word, candidate, n->name)))) {
		n->name = candidate;
		n->distance = d;
	}
}
