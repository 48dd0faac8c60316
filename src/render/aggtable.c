/* -x aggtable: prints the last key of an aggregation across. A scalar aggregation makes one table.
 * A distribution makes one table for each group of equal other keys, with a line for each bucket.
 *
 *	                     read            write
 *	 bash                  12                3
 */
#include "base/hash.h"
#include "render/render.h"

enum {
	COLUMN = 16,
	CELL_TEXT = 64,
	COLUMNS_MAX = 256, /* printed; the keys may be any process's names */
};

struct table {
	struct sink *sink;
	const struct agg_view *view;
	uint32_t last;         /* the key that is printed across */
	VEC(uint32_t) columns; /* a row of each column */
	VEC(uint32_t) groups;  /* the first row of each group: equal keys, except the last */
	struct hash cells;     /* group, column: row */
	uint32_t left_out;     /* columns that are not printed */
};

static const struct field *across(const struct table *t)
{
	return &t->view->agg->keys[t->last];
}

/* Returns the field's text without blanks around it. */
static void cell_text(struct sink *s, const struct field *f, const uint8_t *key, char *buf)
{
	struct out o;
	uint32_t from = 0, n;

	out_init(&o, NULL);
	key_print(s, &o, f, key);
	n = (uint32_t)o.n;
	while (from < n && (o.v[from] == ' ' || o.v[from] == '\n'))
		from++;
	while (n > from && (o.v[n - 1] == ' ' || o.v[n - 1] == '\n'))
		n--;
	snprintf(buf, CELL_TEXT, "%.*s", (int)(n - from), o.v + from);
	out_fini(&o);
}

/* Copies the keys of a row, except the last, without what lies between them. Returns their size. */
static uint32_t group_of(const struct table *t, const struct agg_row *r, uint8_t *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->last; i++) {
		const struct field *f = &t->view->agg->keys[i];

		memcpy(to + n, r->key + f->offset, f->size);
		n += f->size;
	}
	return n;
}

static void find_cells(struct table *t)
{
	struct hash columns = { 0 }, groups = { 0 };
	cleanup_free uint8_t *keys = NULL;
	uint32_t size = 1;

	for (uint32_t i = 0; i < t->last; i++)
		size += t->view->agg->keys[i].size;
	keys = xmalloc(size);
	for (uint32_t i = 0; i < t->view->nrows; i++) {
		const struct agg_row *r = &t->view->rows[i];
		uint64_t *column, *group;
		uint32_t cell[2];
		bool is_new;

		column = hash_put(&columns, r->key + across(t)->offset, across(t)->size, &is_new);
		if (is_new) {
			*column = t->columns.n + t->left_out;
			if (t->columns.n < COLUMNS_MAX)
				vec_push(&t->columns, i);
			else
				t->left_out++;
		}
		group = hash_put(&groups, keys, group_of(t, r, keys), &is_new);
		if (is_new) {
			*group = t->groups.n;
			vec_push(&t->groups, i);
		}
		cell[0] = (uint32_t)*group;
		cell[1] = (uint32_t)*column;
		if (cell[1] < COLUMNS_MAX)
			*hash_put(&t->cells, cell, sizeof(cell), NULL) = i;
	}
	hash_fini(&columns);
	hash_fini(&groups);
}

/* Returns the row of that group in that column, NULL: there is none. */
static const struct agg_row *find_row(const struct table *t, uint32_t group, uint32_t column)
{
	const uint32_t cell[] = { group, column };
	const uint64_t *row = hash_get(&t->cells, cell, sizeof(cell));

	return row ? &t->view->rows[*row] : NULL;
}

static void heading(const struct table *t, struct out *o, const char *what)
{
	char buf[CELL_TEXT];

	out_padded(o, what, strlen(what), (int)(COLUMN * (t->last ? t->last : 1)));
	for (uint32_t c = 0; c < t->columns.n; c++) {
		cell_text(t->sink, across(t), t->view->rows[t->columns.v[c]].key, buf);
		out_char(o, ' ');
		out_padded(o, buf, strlen(buf), COLUMN);
	}
	out_char(o, '\n');
}

static void group_keys(const struct table *t, struct out *o, uint32_t row)
{
	char buf[CELL_TEXT];

	for (uint32_t i = 0; i < t->last; i++) {
		cell_text(t->sink, &t->view->agg->keys[i], t->view->rows[row].key, buf);
		out_char(o, ' ');
		out_padded(o, buf, strlen(buf), -(COLUMN - 1));
	}
}

static void scalars(const struct table *t, struct out *o)
{
	heading(t, o, "");
	for (uint32_t i = 0; i < t->groups.n; i++) {
		group_keys(t, o, t->groups.v[i]);
		for (uint32_t c = 0; c < t->columns.n; c++) {
			const struct agg_row *r = find_row(t, i, c);

			out_char(o, ' ');
			if (r)
				out_signed(o, agg_row_value(t->view, r), COLUMN);
			else
				out_padded(o, "-", 1, COLUMN);
		}
		out_char(o, '\n');
	}
}

static void distributions(const struct table *t, struct out *o, uint32_t group)
{
	uint32_t first = UINT32_MAX, last = 0, a, b;
	char buf[CELL_TEXT];

	if (t->last) {
		group_keys(t, o, t->groups.v[group]);
		out_char(o, '\n');
	}
	for (uint32_t c = 0; c < t->columns.n; c++) {
		const struct agg_row *r = find_row(t, group, c);

		if (!r)
			continue;
		hist_range(t->view->agg, r->words + 1, &a, &b);
		first = a < first ? a : first;
		last = b > last ? b : last;
	}
	out_padded(o, "value", 5, COLUMN);
	for (uint32_t c = 0; c < t->columns.n; c++) {
		cell_text(t->sink, across(t), t->view->rows[t->columns.v[c]].key, buf);
		out_char(o, ' ');
		out_padded(o, buf, strlen(buf), COLUMN);
	}
	out_char(o, '\n');
	for (uint32_t i = first; i <= last; i++) {
		hist_label(t->view->agg, i, buf, sizeof(buf));
		out_padded(o, buf, strlen(buf), COLUMN);
		for (uint32_t c = 0; c < t->columns.n; c++) {
			const struct agg_row *r = find_row(t, group, c);

			out_char(o, ' ');
			out_signed(o, r ? agg_normalized(t->view, r->words[1 + i]) : 0, COLUMN);
		}
		out_char(o, '\n');
	}
	out_char(o, '\n');
}

void aggtable_print(struct sink *s, struct out *o, const struct agg_view *v)
{
	struct table t = { .sink = s, .view = v, .last = v->agg->nkeys - 1 };

	find_cells(&t);
	if (agg_is_distribution(v->agg)) {
		for (uint32_t i = 0; i < t.groups.n; i++)
			distributions(&t, o, i);
	} else {
		scalars(&t, o);
	}
	if (t.left_out)
		out_printf(o, "... and %u more columns\n", t.left_out);
	vec_fini(&t.columns);
	vec_fini(&t.groups);
	hash_fini(&t.cells);
}
