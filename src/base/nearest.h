/* Finds the word of a list that a misspelt word probably means: "did you mean ...?". */
#ifndef DESCRY_BASE_NEAREST_H
#define DESCRY_BASE_NEAREST_H

#include <stdint.h>

/* Returns the number of insertions, deletions, replacements and swaps of neighbours that turn a
 * into b, at most `limit + 1`. */
uint32_t edit_distance(const char *a, const char *b, uint32_t limit);

/* Start with { .word = "wrod" }, offer each candidate, then read `name`. It is NULL when no
 * candidate is near enough (a third of the word's length; never for a word of one or two letters).
 * Candidates must live longer than this struct. */
struct nearest {
	const char *word;
	const char *name;
	uint32_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);

#endif
