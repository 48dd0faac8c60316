/* Numbers that people write: options, process ids. */
#ifndef DESCRY_BASE_NUMBER_H
#define DESCRY_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* text as a decimal number from min to max: digits and maybe a '-' in front, nothing else. False leaves *ret. */
bool number_parse(const char *text, int64_t min, int64_t max, int64_t *ret);

#endif
