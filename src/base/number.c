/* Parses numbers that people write. */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool number_parse(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	char *end;
	long long v;

	if (!isdigit((unsigned char)text[*text == '-'])) /* strtoll() accepts blanks and '+' too */
		return false;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*ret = v;
	return true;
}
