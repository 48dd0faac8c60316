/* Parses numbers that people write. */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"

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

int64_t number_time_unit(const char *name)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{ "ns", 1 },
		{ "nsec", 1 },
		{ "us", 1000 },
		{ "usec", 1000 },
		{ "ms", 1000000 },
		{ "msec", 1000000 },
		{ "s", 1000000000 },
		{ "sec", 1000000000 },
		{ "m", 60000000000 },
		{ "min", 60000000000 },
		{ "h", 3600000000000 },
		{ "hour", 3600000000000 },
		{ "d", 86400000000000 },
		{ "day", 86400000000000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcasecmp(name, units[i].name))
			return units[i].ns;
	return 0;
}
