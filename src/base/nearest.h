/* The word of a list that a misspelt word was probably meant to be: "did you mean ...?". */
#ifndef DESCRY_BASE_NEAREST_H
#define DESCRY_BASE_NEAREST_H

#include <stdint.h>

/* Insertions, deletions, replacements and swaps of neighbours that make a into b. At most `limit +
 * 1`. */
uint32_t edit_distance(const char *a, const char *b, uint32_t limit);

/* Start with { .word = "wrod" }, offer each candidate, then read `name`: NULL when none is near
 * enough (a third of the word's length; words of one or two letters have none). Candidates must
 * outlive it. */
struct nearest {
	const char *word;
	const char *name;
	uint32_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);

#endif
