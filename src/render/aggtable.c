/* -x aggtable: prints the last key of an aggregation across. A scalar aggregation makes one table.
 * A distribution makes one table for each group of equal other keys, with a line for each bucket.
 *
 *	                     read            write
 *	 bash                  12                3
 */
#include "render/render.h"

enum { COLUMN = 16, CELL_TEXT = 64 };

struct table {
	struct sink *sink;
	const struct agg_view *view;
	uint32_t last;         /* the key that is printed across */
	VEC(uint32_t) columns; /* a row of each column */
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

static bool same_column(const struct table *t, uint32_t a, uint32_t b)
{
	const struct field *f = across(t);
	const struct agg_row *rows = t->view->rows;

	return !memcmp(rows[a].key + f->offset, rows[b].key + f->offset, f->size);
}

/* Returns true when two rows have equal keys, except the last. */
static bool same_group(const struct table *t, uint32_t a, uint32_t b)
{
	const struct agg_row *rows = t->view->rows;

	for (uint32_t i = 0; i < t->last; i++) {
		const struct field *f = &t->view->agg->keys[i];

		if (memcmp(rows[a].key + f->offset, rows[b].key + f->offset, f->size))
			return false;
	}
	return true;
}

static void find_columns(struct table *t)
{
	for (uint32_t i = 0; i < t->view->nrows; i++) {
		uint32_t k = 0;

		while (k < t->columns.n && !same_column(t, t->columns.v[k], i))
			k++;
		if (k == t->columns.n)
			vec_push(&t->columns, i);
	}
}

static bool is_first(const struct table *t, uint32_t row)
{
	for (uint32_t i = 0; i < row; i++)
		if (same_group(t, i, row))
			return false;
	return true;
}

/* Returns the row of that group in that column, NULL: there is none. */
static const struct agg_row *find_row(const struct table *t, uint32_t group, uint32_t column)
{
	for (uint32_t i = 0; i < t->view->nrows; i++)
		if (same_group(t, i, group) && same_column(t, i, t->columns.v[column]))
			return &t->view->rows[i];
	return NULL;
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
	for (uint32_t i = 0; i < t->view->nrows; i++) {
		if (!is_first(t, i))
			continue;
		group_keys(t, o, i);
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
	int64_t normal = t->view->normal ? t->view->normal : 1;
	char buf[CELL_TEXT];

	if (t->last) {
		group_keys(t, o, group);
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
			out_signed(o, r ? r->words[1 + i] / normal : 0, COLUMN);
		}
		out_char(o, '\n');
	}
	out_char(o, '\n');
}

void aggtable_print(struct sink *s, struct out *o, const struct agg_view *v)
{
	struct table t = { .sink = s, .view = v, .last = v->agg->nkeys - 1 };

	find_columns(&t);
	if (agg_is_distribution(v->agg)) {
		for (uint32_t i = 0; i < v->nrows; i++)
			if (is_first(&t, i))
				distributions(&t, o, i);
	} else {
		scalars(&t, o);
	}
	vec_fini(&t.columns);
}
