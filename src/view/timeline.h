/* The view "timeline": the changes of each row of an aggregation since the last look.
 *
 * In: the present rows, again and again. Out: for each row a number, which it keeps, and its
 * changes. Always true: the changes of any period can be added up, also when the aggregation was
 * cleared in between.
 */
#ifndef DESCRY_VIEW_TIMELINE_H
#define DESCRY_VIEW_TIMELINE_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/mem.h"
#include "view/rows.h"

struct timeline {
	struct hash ids;     /* key -> number */
	VEC(int64_t *) last; /* by number: words at the last look */
};

enum { TIMELINE_NONE = UINT32_MAX };

/* Returns the number of a row, or NONE when it is new and there are `max` already. */
uint32_t timeline_row(struct timeline *t, const struct agg *agg, const uint8_t *key, uint32_t max,
		      bool *ret_new);
/* Calls fn with the changes of row r, which has that number, since the last call. For a
 * distribution, calls it once for each bucket that has changed. For count() and sum(), passes the
 * difference, with bucket 0. For others, passes the value, if it has changed. */
void timeline_changes(struct timeline *t, uint32_t number, const struct agg_view *v,
		      const struct agg_row *r,
		      void (*fn)(void *arg, uint32_t bucket, int64_t change), void *arg);
void timeline_fini(struct timeline *t);

#endif
