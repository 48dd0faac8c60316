/* Numbers that people write: options, process ids. */
#ifndef DESCRY_BASE_NUMBER_H
#define DESCRY_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses text as a decimal number from min to max: digits, with an optional '-' in front. Returns
 * false and leaves *ret untouched for any other text. */
bool number_parse(const char *text, int64_t min, int64_t max, int64_t *ret);

/* Parses the hexadecimal number at *p and moves *p behind it. Returns false when there is none.
 * Drops the upper digits of a number above 64 bits. */
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

/* Returns the nanoseconds of "ms", "sec", "day" and so on; 0: no unit of time has this name. */
int64_t number_time_unit(const char *name);

#endif
