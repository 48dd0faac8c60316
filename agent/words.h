/* Texts, eight bytes at a time. */
#ifndef DESCRY_AGENT_WORDS_H
#define DESCRY_AGENT_WORDS_H

#include "agent/agent.h"

#define ONES 0x0101010101010101ull
static inline uint64_t zero_bytes(uint64_t w) /* the lowest set bit is in the first zero byte */
{
	return (w - ONES) & ~w & (ONES << 7);
}

/* Compares a text with the words of a key, in which zeros stand behind the text. read.c */
bool words_are(const any8 *key, uint64_t n, uint64_t s, uint64_t end);

#endif
