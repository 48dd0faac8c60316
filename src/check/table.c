/* Builds tables of the results of `descry check`. */
#define _GNU_SOURCE
#include "check/table.h"

void check_table_init(struct check_table *t, const char *subject, const char *title,
		      const struct check_column *columns, uint32_t ncolumns)
{
	*t = (struct check_table){
		.subject = subject, .title = title, .columns = columns, .ncolumns = ncolumns
	};
}

void check_table_fini(struct check_table *t)
{
	for (uint32_t i = 0; i < t->cells.n; i++)
		free(t->cells.v[i]);
	for (uint32_t i = 0; i < t->notes.n; i++)
		free(t->notes.v[i]);
	vec_fini(&t->cells);
	vec_fini(&t->notes);
}

void check_row(struct check_table *t, const char *const *cells)
{
	for (uint32_t i = 0; i < t->ncolumns; i++)
		vec_push(&t->cells, cells[i] ? xstrdup(cells[i]) : NULL);
}

void check_note(struct check_table *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vec_push(&t->notes, xvasprintf(fmt, ap));
	va_end(ap);
}
