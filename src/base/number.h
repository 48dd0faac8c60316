/* Numbers that people write: options, process ids. */
#ifndef DESCRY_BASE_NUMBER_H
#define DESCRY_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* text as a decimal number from min to max: digits and maybe a '-' in front, nothing else. False
 * leaves *ret. */
bool number_parse(const char *text, int64_t min, int64_t max, int64_t *ret);

/* A hexadecimal number at *p, moved behind it; false: there is none. What is larger than 64 bits
 * loses its front. */
static inline bool number_take_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *from = *p;
	uint64_t v = 0;

	for (; *p < end; ++*p) {
		char c = **p;
		int d = c >= '0' && c <= '9'                 ? c - '0'
			: (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
							     : -1;

		if (d < 0)
			break;
		v = v << 4 | (uint64_t)d;
	}
	*ret = v;
	return *p > from;
}

#endif
