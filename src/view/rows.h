/* The view "rows": a merged, sorted snapshot of one aggregation. */
#ifndef DESCRY_VIEW_ROWS_H
#define DESCRY_VIEW_ROWS_H

#include "data/agg.h"

struct agg_row {
	const uint8_t *key;    /* agg->key_size bytes; NULL when the aggregation has no keys */
	const int64_t *words;  /* agg->nwords merged words (schema.h) */
	const int64_t *percpu; /* ncpus * nwords, NULL unless aggpercpu */
	uint32_t ncpus;
};

struct agg_view {
	const struct agg *agg;
	struct agg_row *rows;
	uint32_t nrows;
	int64_t normal; /* normalize() factor; 1: none */
};

/* Divides a value by the factor of normalize(). Both may be any number: a traced process can write
 * to its aggregations, and -1 divides the least number to one that no 64 bits hold. */
int64_t agg_normalized(const struct agg_view *v, int64_t value);
/* Returns the number that an aggregation is sorted by and that %@d prints, normalised: count, sum,
 * avg, min, max, stddev; of a distribution the total count, weighted as by DTrace. */
int64_t agg_row_value(const struct agg_view *v, const struct agg_row *r);

#endif
