/* The view "time x value matrix": how often a value was in a row's range during a column's time,
 * and whose it was.
 *
 * In: events (time, value) or buckets of distributions (time, min, max, count), each with a party:
 * the series it belongs to and, within it, who. Out: matrix_view_make(): rows and columns without
 * gaps, cells with what is not zero, each with its parties.
 * Always true: memory grows with the cells, not with the events; a column is a whole number of
 * steps since time 0, so an event is in exactly one, however late it is read; rows do not overlap;
 * every count of a cell is the sum of its entries, and `total` that of all cells. Names are any
 * bytes.
 */
#ifndef DESCRY_DATA_MATRIX_H
#define DESCRY_DATA_MATRIX_H

#include <stdbool.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
	MATRIX_COLUMNS_MAX = 65536,
	MATRIX_ROWS_MAX = 4096,
};

/* How values become rows. */
enum matrix_axis_kind {
	MATRIX_DECADES, /* ten rows from 10^k to 10^(k+1): 10 12 15 20 25 30 40 50 60 80 */
	MATRIX_LINEAR,  /* from 0 in equal steps, as large as they must be for `rows` of them */
	MATRIX_FIXED, /* from base to limit in steps, with a row below and one above when anything is there */
	MATRIX_BUCKETS, /* as the distributions bring them */
};

struct matrix_axis {
	enum matrix_axis_kind kind;
	int64_t base, limit, step; /* FIXED; step > 0 */
	bool whole; /* FIXED: the row at or above limit, BUCKETS: all rows known are shown, even when empty */
	uint32_t rows; /* LINEAR: at most so many; 0: 50 */
};

struct matrix_name {
	const char *text; /* not NUL-terminated; lives as long as the matrix */
	uint32_t len;
};

struct matrix_series {
	struct matrix_name name;
	uint64_t count;
};

struct matrix_party {
	uint32_t series;
	struct matrix_name who; /* empty: only the series is known */
	uint64_t count;
};

/* [min, max]; INT64_MIN, INT64_MAX: open. */
struct matrix_row {
	int64_t min, max;
};

struct matrix_slot;
struct matrix_near;

struct matrix {
	uint64_t step; /* nanoseconds of a column, > 0 */
	struct matrix_axis axis;
	VEC(struct matrix_series) series;
	VEC(struct matrix_party) parties;

	/* The rest is the inside. */
	VEC(struct matrix_row) buckets;
	struct hash bucket_ids, series_ids, party_ids;
	struct matrix_slot *slots;
	uint32_t nslots, cap;
	uint64_t grain;                   /* LINEAR: the width of a fine row, 10^k */
	uint64_t col_start, col_end, col; /* the column of the last event */
	struct matrix_near *near;         /* its counts, those not yet in the slots */
	struct arena text;
	uint8_t decade_start[256];
};

void matrix_init(struct matrix *m, uint64_t step, const struct matrix_axis *axis);
void matrix_fini(struct matrix *m);

uint32_t matrix_series(struct matrix *m, const char *text, size_t len);
/* who may be empty. */
uint32_t matrix_party(struct matrix *m, uint32_t series, const char *who, size_t len);

/* An event; not for MATRIX_BUCKETS. */
void matrix_event(struct matrix *m, uint64_t time, int64_t value, uint32_t party);
/* `count` values that were in [min, max]; only for MATRIX_BUCKETS. */
void matrix_bucket(struct matrix *m, uint64_t time, int64_t min, int64_t max, uint32_t party,
		   uint64_t count);

/* Adds `value` once for each party and each column, from the first to the last, in which it has
 * none. Nothing when the columns are too many. */
void matrix_fill(struct matrix *m, int64_t value);

struct matrix_entry {
	uint32_t party; /* index into the view's parties */
	uint64_t count;
};

struct matrix_cell {
	uint32_t column, row;
	uint32_t at, n;  /* entries[at .. at + n), the largest first */
	uint32_t series; /* the one with the largest part */
	uint64_t count;
};

struct matrix_view {
	uint64_t step, first; /* column c is [(first + c) * step, + step) */
	uint32_t ncolumns;
	uint64_t total, max;         /* of all cells; of the largest */
	uint64_t left_out;           /* counts not of `only`, of `without`, or outside from..to */
	VEC(struct matrix_row) rows; /* upwards, without gaps */
	VEC(struct matrix_series) series; /* the largest first */
	VEC(struct matrix_party) parties; /* by series, the largest first; `series` is of this view */
	VEC(struct matrix_cell) cells;    /* by column, then by row */
	VEC(struct matrix_entry) entries;
};

struct matrix_filter {
	const char *const *only; /* series; none: all */
	uint32_t nonly;
	const char *const *without;
	uint32_t nwithout;
	uint64_t from, to; /* nanoseconds: columns that overlap [from, to); to 0: open */
};

/* Of what was added so far; more may be added, and another view made. ret_view need not be
 * initialised and is made empty on failure. Fails when the times are too far apart or buckets
 * overlap. f may be NULL. */
struct err *matrix_view_make(struct matrix *m, const struct matrix_filter *f,
			     struct matrix_view *ret_view);
void matrix_view_fini(struct matrix_view *v);

/* Cells of `columns` by `rows` neighbours become one: for small screens. The lowest of the new rows
 * has only `low` (1 to rows) of the old. */
void matrix_view_shrink(const struct matrix_view *v, uint32_t columns, uint32_t rows, uint32_t low,
			struct matrix_view *ret);

#endif
