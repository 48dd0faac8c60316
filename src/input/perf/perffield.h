/* Fields of perf.data whose length stands in front of them. */
#ifndef DESCRY_INPUT_PERF_PERFFIELD_H
#define DESCRY_INPUT_PERF_PERFFIELD_H

#include "base/bytes.h"

/* Reads a name with its length in front. "": there is none. */
const char *perf_field_name(struct bytes *b);
/* Passes over a counter's values (PERF_SAMPLE_READ) in perf_event_attr.read_format. */
void perf_field_skip_read(struct bytes *b, uint64_t format);

#endif
