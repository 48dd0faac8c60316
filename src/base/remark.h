/* Remarks for the user, each of which is shown once, and no more than somebody reads: names in them
 * come from files and processes, which may have a million. */
#ifndef DESCRY_BASE_REMARK_H
#define DESCRY_BASE_REMARK_H

#include "base/hash.h"

enum { REMARKS_MAX = 1000 };

/* The remarks that remarks_take() has taken. A zeroed struct has none. */
struct remarks {
	struct hash texts;
	uint32_t left_out; /* those beyond REMARKS_MAX, and again each time that they come */
};

/* Returns true when the text is to be shown: it is new, and there is room. */
bool remarks_take(struct remarks *r, const char *text);
void remarks_fini(struct remarks *r);

#endif
