#include "base/procdir.h"

#include <limits.h>
#include <stdlib.h>

bool procdir_next(DIR *d, int *ret)
{
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char *end;
		long n = strtol(de->d_name, &end, 10);

		if (end != de->d_name && !*end && n >= 0 && n <= INT_MAX) {
			*ret = (int)n;
			return true;
		}
	}
	return false;
}
