/* The index into the table of lines. It has a bit for each instruction word, set where an entry
 * begins, and counts of the bits before (iseq.c, succ_index_table):
 *
 *	6 words		counts for the first 54 bits: 9 of 7 bits each; fewer words of shorter code
 *	then for each 512 bits
 *	    4 bytes	count of the bits before, 4 bytes unused
 *	    1 word	counts within the block before words 1 to 7: 9 bits each
 *	    8 words	the bits */
#include <string.h>

#include "program/runtime/ruby/ruby.h"

enum {
	FIRST_BITS = 54,
	FIRST_BYTES = 48,
	COUNTS = 9, /* of a word of the first part */
	COUNT_BITS = 7,
	BLOCK_BITS = 512,
	BLOCK_BYTES = 80,
	BLOCK_COUNT_BITS = 9,
};

static uint64_t load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

uint32_t ruby_lines_rank(const uint8_t *starts, uint32_t n, uint32_t at)
{
	const uint8_t *block;
	uint32_t i, word, in_block;
	uint64_t counts, bits;

	if (at < FIRST_BITS) {
		if (at / COUNTS * 8 + 8 > n)
			return 0;
		return load(starts + at / COUNTS * 8) >> at % COUNTS * COUNT_BITS & 0x7f;
	}
	i = (at - FIRST_BITS) / BLOCK_BITS;
	at = (at - FIRST_BITS) % BLOCK_BITS;
	if (n < FIRST_BYTES || (n - FIRST_BYTES) / BLOCK_BYTES <= i)
		return 0;
	block = starts + FIRST_BYTES + (size_t)i * BLOCK_BYTES;
	word = at / 64;
	counts = load(block + 8);
	in_block = word ? counts >> (word - 1) * BLOCK_COUNT_BITS & 0x1ff : 0;
	bits = load(block + 16 + (size_t)word * 8) << (63 - at % 64);
	return (uint32_t)load(block) + in_block + (uint32_t)__builtin_popcountll(bits);
}
