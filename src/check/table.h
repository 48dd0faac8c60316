/* The results of `descry check` as tables: rows of named cells, which the command prints as text or
 * JSON.
 *
 * In: rows from the files beside this one and from cmd/. Out: cells in the order they were added.
 * Ownership: a table owns its cells. Columns, subject and title are constants of the table's
 * maker. */
#ifndef DESCRY_CHECK_TABLE_H
#define DESCRY_CHECK_TABLE_H

#include <stdbool.h>

#include "base/mem.h"

enum check_place {
	CHECK_COLUMN, /* beside the other columns, as wide as its widest cell */
	CHECK_BELOW,  /* on its own line, below the columns, behind its key */
	CHECK_JSON,   /* in JSON only */
};

struct check_column {
	const char *key; /* in JSON */
	enum check_place place;
};

struct check_table {
	const char *subject; /* its name in JSON: "engines" */
	const char *title;   /* its heading as text */
	const struct check_column *columns;
	uint32_t ncolumns;
	VEC(char *) cells; /* row after row; NULL: empty */
	VEC(char *) notes; /* remarks on the whole table */
};

void check_table_init(struct check_table *t, const char *subject, const char *title,
		      const struct check_column *columns, uint32_t ncolumns);
void check_table_fini(struct check_table *t);
/* Copies t->ncolumns cells. */
void check_row(struct check_table *t, const char *const *cells);
void check_note(struct check_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline uint32_t check_rows(const struct check_table *t)
{
	return t->cells.n / t->ncolumns;
}
static inline const char *check_cell(const struct check_table *t, uint32_t row, uint32_t column)
{
	return t->cells.v[row * t->ncolumns + column];
}

#endif
