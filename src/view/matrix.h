/* The view "time x value matrix": how often a value was in a row's range during a column's time,
 * and which parties it came from.
 *
 * In: events (time, value) or buckets of distributions (time, min, max, count), each with a party,
 * which is a series and a name in it. Out: matrix_view_make(): rows and columns without gaps, the
 * cells that are not zero, each with its parties.
 * Always true: memory grows with the cells, not with the events, and cells have a limit. A column
 * is a whole number of steps since time 0, so an event is in exactly one column, however late it is
 * read. Rows do not overlap. Every count of a cell is the sum of its entries, and `total` the sum
 * of all cells. Names are any bytes. */
#ifndef DESCRY_VIEW_MATRIX_H
#define DESCRY_VIEW_MATRIX_H

#include <stdbool.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
	MATRIX_COLUMNS_MAX = 65536,
	MATRIX_ROWS_MAX = 65536,
	MATRIX_GAP_MAX = 4096,       /* rows between two buckets that have counts */
	MATRIX_CELLS_MAX = 16 << 20, /* of 48 bytes */
};

/* The ways in which values become rows. */
enum matrix_axis_kind {
	MATRIX_DECADES, /* ten rows from 10^k to 10^(k+1): 10 12 15 20 25 30 40 50 60 80 */
	MATRIX_LINEAR,  /* equal steps from 0, large enough for `rows` of them */
	MATRIX_FIXED,   /* steps from base to limit, and rows below and above if not empty */
	MATRIX_BUCKETS, /* the rows of the distributions */
};

struct matrix_axis {
	enum matrix_axis_kind kind;
	int64_t base, limit, step; /* FIXED; step > 0 */
	bool whole;    /* show even if empty: FIXED: the row from limit on, BUCKETS: all rows */
	uint32_t rows; /* LINEAR: limit of rows; 0: 50 */
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
	struct matrix_name who; /* empty: the event has only a series */
	uint64_t count;
};

/* [min, max]; INT64_MIN and INT64_MAX mean open. */
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
	uint64_t crowded;   /* counts that are left out, because their cells were too many */
	uint32_t cells_max; /* MATRIX_CELLS_MAX */

	/* The rest is private. */
	VEC(struct matrix_row) buckets;
	struct hash bucket_ids, series_ids, party_ids;
	struct matrix_slot *slots;
	uint32_t nslots, cap;
	uint64_t grain;                   /* LINEAR: width of a fine row, 10^k */
	uint64_t col_start, col_end, col; /* the column of the last event */
	struct matrix_near *near;         /* its counts that are not in the slots yet */
	struct arena text;
	uint8_t decade_start[256];
};

void matrix_init(struct matrix *m, uint64_t step, const struct matrix_axis *axis);
void matrix_fini(struct matrix *m);

uint32_t matrix_series(struct matrix *m, const char *text, size_t len);
/* Returns the party of this series and name. The name may be empty. */
uint32_t matrix_party(struct matrix *m, uint32_t series, const char *who, size_t len);

/* Counts an event. Not for MATRIX_BUCKETS. */
void matrix_event(struct matrix *m, uint64_t time, int64_t value, uint32_t party);
/* Counts `count` values in [min, max]. Only for MATRIX_BUCKETS. */
void matrix_bucket(struct matrix *m, uint64_t time, int64_t min, int64_t max, uint32_t party,
		   uint64_t count);

/* Adds `value` once for each party to each column without a value of it, from the first column to
 * the last. Adds nothing and returns false when there are too many columns, or cells. */
bool matrix_fill(struct matrix *m, int64_t value);

struct matrix_entry {
	uint32_t party; /* index into the view's parties */
	uint64_t count;
};

struct matrix_cell {
	uint32_t column, row;
	uint32_t at, n;  /* entries[at .. at + n), the largest first */
	uint32_t series; /* the series with the largest part */
	uint64_t count;
};

struct matrix_view {
	uint64_t step, first; /* column c is [(first + c) * step, + step) */
	uint32_t ncolumns;
	uint64_t total, max;         /* of all cells; of the largest cell */
	uint64_t left_out;           /* counts not in `only`, in `without`, or outside from..to */
	VEC(struct matrix_row) rows; /* upwards, without gaps */
	VEC(struct matrix_series) series; /* the largest first */
	VEC(struct matrix_party) parties; /* by series, the largest first; `series` is the view's */
	VEC(struct matrix_cell) cells;    /* by column, then by row */
	VEC(struct matrix_entry) entries;
};

struct matrix_filter {
	const char *const *only; /* names of series; none: all */
	uint32_t nonly;
	const char *const *without;
	uint32_t nwithout;
	uint64_t from, to; /* nanoseconds: columns that overlap [from, to); to 0: open */
};

/* Makes a view of all counts added so far. The caller may add more later and make another view.
 * ret_view need not be initialised and is empty on failure. Fails when the times are too far apart
 * or buckets overlap. f may be NULL. */
struct err *matrix_view_make(struct matrix *m, const struct matrix_filter *f,
			     struct matrix_view *ret_view);
void matrix_view_fini(struct matrix_view *v);

/* Makes a view for small screens, in which `columns` by `rows` cells become one. The lowest new row
 * holds only `low` (1 to rows) old rows. */
void matrix_view_shrink(const struct matrix_view *v, uint32_t columns, uint32_t rows, uint32_t low,
			struct matrix_view *ret);

#endif
