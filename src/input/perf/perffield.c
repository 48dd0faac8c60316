/* Reads and passes over fields of perf.data whose length stands in front of them. */
#include "input/perf/perffield.h"

#include <string.h>

enum { READ_ENABLED = 1, READ_RUNNING = 2, READ_ID = 4, READ_GROUP = 8, READ_LOST = 16 };

const char *perf_field_name(struct bytes *b)
{
	uint32_t n = bytes_u32(b);
	const char *s = bytes_take(b, n);

	return s && n && memchr(s, '\0', n) ? s : "";
}

void perf_field_skip_read(struct bytes *b, uint64_t format)
{
	uint64_t n = 1, each = 8 + (format & READ_ID ? 8 : 0) + (format & READ_LOST ? 8 : 0);

	if (format & READ_GROUP) {
		n = bytes_u64(b);
		if (n > bytes_left(b) / 8)
			n = bytes_left(b); /* more than there is, so the skip fails */
	}
	bytes_skip(b, (format & READ_ENABLED ? 8 : 0) + (format & READ_RUNNING ? 8 : 0));
	bytes_skip(b, n * each);
}
