/* The view "timeline": what each row of an aggregation has counted since it was looked at last.
 *
 * In: the rows as they are now, again and again. Out: for each row a number, which it keeps, and
 * what has changed in it.
 * Always true: changes of any stretch of time can be added up, also when the aggregation was
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
/* Calls fn with what row r, which has that number, has counted since the last call. A distribution:
 * once for each bucket that has changed. count() and sum(): the difference, with bucket 0. Others:
 * the value, if it has changed. */
void timeline_changes(struct timeline *t, uint32_t number, const struct agg_view *v,
		      const struct agg_row *r,
		      void (*fn)(void *arg, uint32_t bucket, int64_t change), void *arg);
void timeline_fini(struct timeline *t);

#endif
