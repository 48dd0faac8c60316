/* Numbers that are the same in each run of a test: Knuth's linear congruential generator. */
#ifndef DESCRY_TEST_RANDOM_NUMBER_H
#define DESCRY_TEST_RANDOM_NUMBER_H

#include <stdint.h>

/* A test that sets it to 1 gets the same numbers again. */
static uint64_t random_state = 1;

static inline uint64_t random_number(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 20;
}

#endif
