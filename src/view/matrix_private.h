/* Shared by the matrix's files: matrix.c counts, matrix_view.c makes views. */
#ifndef DESCRY_VIEW_MATRIX_PRIVATE_H
#define DESCRY_VIEW_MATRIX_PRIVATE_H

#include "view/matrix.h"

/* count 0: empty */
struct matrix_slot {
	uint64_t column, count;
	uint32_t row, party;
};

/* Moves the counts of the last event's column into slots. */
void matrix_settle(struct matrix *m);
struct matrix_row matrix_bounds(const struct matrix *m, uint32_t row);
uint32_t matrix_fixed_last(const struct matrix_axis *a);

#endif
