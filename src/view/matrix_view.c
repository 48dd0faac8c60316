#define _GNU_SOURCE
/* Makes views of a matrix: chooses the cells, gives them rows and columns, sorts series and
 * parties. */
#include "view/matrix_private.h"

void matrix_view_fini(struct matrix_view *v)
{
	vec_fini(&v->rows);
	vec_fini(&v->series);
	vec_fini(&v->parties);
	vec_fini(&v->cells);
	vec_fini(&v->entries);
}

struct making {
	const struct matrix *m;
	struct matrix_view *v;
	VEC(struct matrix_slot) picked; /* row and party become those of the view step by step */
	uint32_t *row_at;               /* BUCKETS: row of the matrix -> row of the view */
};

static bool named(const struct matrix_name *n, const char *const *names, uint32_t nnames)
{
	for (uint32_t i = 0; i < nnames; i++)
		if (strlen(names[i]) == n->len && !memcmp(names[i], n->text, n->len))
			return true;
	return false;
}

static void pick(struct making *k, const struct matrix_filter *f)
{
	const struct matrix *m = k->m;
	cleanup_free bool *out = xcalloc(m->series.n + 1, sizeof(*out));

	for (uint32_t i = 0; f && i < m->series.n; i++)
		out[i] = (f->nonly && !named(&m->series.v[i].name, f->only, f->nonly)) ||
			 named(&m->series.v[i].name, f->without, f->nwithout);
	for (uint32_t i = 0; i < m->cap; i++) {
		const struct matrix_slot *s = &m->slots[i];

		if (!s->count)
			continue;
		if (out[m->parties.v[s->party].series] ||
		    (f && (s->column < f->from / m->step ||
			   (f->to && s->column >= f->to / m->step + (f->to % m->step != 0)))))
			k->v->left_out += s->count;
		else
			vec_push(&k->picked, *s);
	}
}

static int compare_bounds(const void *a, const void *b)
{
	const struct matrix_row *x = a, *y = b;

	return COMPARE(x->min, y->min) ?: COMPARE(x->max, y->max);
}

static uint64_t width_of(struct matrix_row r)
{
	return (uint64_t)r.max - (uint64_t)r.min + 1;
}

static bool is_power_of_two(struct matrix_row r)
{
	return r.min > 0 && (uint64_t)r.min == width_of(r) && !(r.min & (r.min - 1));
}

/* Returns the row behind `below` in a distribution that has the row `next` further up. lquantize()
 * has equal widths, quantize() doubles them, llquantize() multiplies them by ten at powers of
 * ten. */
static struct matrix_row row_behind(struct matrix_row below, struct matrix_row next)
{
	int64_t at = below.max + 1, ten = 1;
	uint64_t width = width_of(below);

	if (is_power_of_two(below) && is_power_of_two(next))
		width *= 2;
	else if (next.max != INT64_MAX && width_of(next) > width) {
		while (ten <= INT64_MAX / 10 && ten < at)
			ten *= 10;
		if (ten == at)
			width *= 10;
	}
	if (below.min == INT64_MIN || width > (uint64_t)next.min - (uint64_t)at)
		width = (uint64_t)next.min - (uint64_t)at;
	return (struct matrix_row){ at, at + (int64_t)(width - 1) };
}

/* Adds the empty rows between two rows. Adds a single row when no sequence of widths fits, or when
 * there would be too many. */
static void fill_gap(struct making *k, struct matrix_row below, struct matrix_row next)
{
	struct matrix_row r = below;
	uint32_t n = k->v->rows.n;

	while (r.max + 1 < next.min && k->v->rows.n - n < MATRIX_GAP_MAX &&
	       k->v->rows.n < MATRIX_ROWS_MAX) {
		uint64_t before = width_of(r);

		r = row_behind(r, next);
		if (width_of(r) < before && below.min != INT64_MIN)
			break;
		vec_push(&k->v->rows, r);
	}
	if (r.max + 1 < next.min || (k->v->rows.n > n && width_of(r) < width_of(below))) {
		k->v->rows.n = n;
		vec_push(&k->v->rows, (struct matrix_row){ below.max + 1, next.min - 1 });
	}
}

static struct err *bucket_rows(struct making *k)
{
	const struct matrix *m = k->m;
	cleanup_free bool *used = xcalloc(m->buckets.n + 1, sizeof(*used));
	VEC(struct matrix_row) sorted = { 0 };
	struct matrix_row low, high;
	struct err *e = NULL;

	for (uint32_t i = 0; i < k->picked.n; i++)
		used[k->picked.v[i].row] = true;
	for (uint32_t i = 0; i < m->buckets.n && m->axis.whole; i++)
		used[i] = true;
	for (uint32_t i = 0; i < m->buckets.n; i++)
		if (used[i])
			vec_push(&sorted, m->buckets.v[i]);
	if (!sorted.n)
		return NULL;
	if (m->buckets.n > MATRIX_ROWS_MAX) {
		vec_fini(&sorted);
		return err_new(0, "the distributions have %u different buckets, more than %d",
			       m->buckets.n, MATRIX_ROWS_MAX);
	}
	qsort(sorted.v, sorted.n, sizeof(*sorted.v), compare_bounds);
	low = sorted.v[0];
	high = *vec_last(&sorted);
	/* The matrix also has buckets without a count. Those between used buckets give rows their
	 * true widths. */
	for (uint32_t i = 0; i < m->buckets.n; i++) {
		struct matrix_row b = m->buckets.v[i];

		if (!used[i] && b.min > low.max && b.max < high.min)
			vec_push(&sorted, b);
	}
	qsort(sorted.v, sorted.n, sizeof(*sorted.v), compare_bounds);
	for (uint32_t i = 0; i < sorted.n && !e; i++) {
		struct matrix_row *last = i ? vec_last(&k->v->rows) : NULL;

		if (last && sorted.v[i].min <= last->max) {
			e = err_new(
				0,
				"the distributions have buckets that overlap: %lld to %lld and %lld to %lld; choose one of the "
				"aggregations with --agg, or use the same parameters in all",
				(long long)last->min, (long long)last->max,
				(long long)sorted.v[i].min, (long long)sorted.v[i].max);
			break;
		}
		if (last && sorted.v[i].min > last->max + 1)
			fill_gap(k, *last, sorted.v[i]);
		vec_push(&k->v->rows, sorted.v[i]);
	}
	vec_fini(&sorted);
	for (uint32_t i = 0, n = k->v->rows.n; i < m->buckets.n && !e; i++)
		if (used[i]) {
			struct matrix_row *r = bsearch(&m->buckets.v[i], k->v->rows.v, n,
						       sizeof(*r), compare_bounds);

			k->row_at[i] = (uint32_t)(r - k->v->rows.v);
		}
	for (uint32_t i = 0; i < k->picked.n && !e; i++)
		k->picked.v[i].row = k->row_at[k->picked.v[i].row];
	return e;
}

/* Returns how many fine rows make a shown row: 1, 2, 5, 10, ... */
static uint32_t linear_merge(uint32_t rows, uint32_t want)
{
	static const uint8_t steps[] = { 1, 2, 5 };
	uint32_t f = 1;

	for (uint32_t ten = 1, i = 0; rows > (uint64_t)want * f;
	     ten *= i == 2 ? 10 : 1, i = (i + 1) % 3)
		f = steps[(i + 1) % 3] * (i == 2 ? ten * 10 : ten);
	return f;
}

static struct err *numbered_rows(struct making *k)
{
	const struct matrix *m = k->m;
	uint32_t first = UINT32_MAX, last = 0, merge = 1;

	for (uint32_t i = 0; i < k->picked.n; i++) {
		uint32_t row = k->picked.v[i].row;

		first = row < first ? row : first;
		last = row > last ? row : last;
	}
	if (m->axis.kind == MATRIX_FIXED) {
		uint32_t top = matrix_fixed_last(&m->axis), all = m->axis.whole ? top : top - 1;

		first = first ? 1 : 0;
		last = last > all ? last : all;
	} else if (!k->picked.n) {
		return NULL;
	} else if (m->axis.kind == MATRIX_LINEAR) {
		merge = linear_merge(last, m->axis.rows ? m->axis.rows : 50);
		first = first ? 1 : 0;
		last = last ? 1 + (last - 1) / merge * merge : 0;
	}
	for (uint32_t row = first; row <= last; row += row ? merge : 1) {
		struct matrix_row b = matrix_bounds(m, row);

		if (row && merge > 1)
			b.max = matrix_bounds(m, row + merge - 1).max;
		vec_push(&k->v->rows, b);
	}
	for (uint32_t i = 0; i < k->picked.n; i++) {
		uint32_t *row = &k->picked.v[i].row;

		*row = *row && merge > 1 ? (*row - 1) / merge + 1 - first : *row - first;
	}
	return NULL;
}

static struct err *columns(struct making *k)
{
	struct matrix_view *v = k->v;
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < k->picked.n; i++) {
		uint64_t c = k->picked.v[i].column;

		first = c < first ? c : first;
		last = c > last ? c : last;
	}
	if (!k->picked.n)
		return NULL;
	if (last - first >= MATRIX_COLUMNS_MAX)
		return err_new(
			0,
			"from %llu s to %llu s are %llu columns of %g s, more than %d; choose wider ones with --step, or "
			"a part with --from and --to",
			(unsigned long long)(first * (double)v->step / 1e9),
			(unsigned long long)(last * (double)v->step / 1e9),
			(unsigned long long)(last - first + 1), (double)v->step / 1e9,
			MATRIX_COLUMNS_MAX);
	v->first = first;
	v->ncolumns = (uint32_t)(last - first + 1);
	return NULL;
}

static int compare_names(const struct matrix_name *x, const struct matrix_name *y)
{
	int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

static int compare_series(const void *a, const void *b, void *arg)
{
	const struct matrix_series *s = arg, *x = &s[*(const uint32_t *)a],
				   *y = &s[*(const uint32_t *)b];

	return x->count != y->count ? (x->count < y->count ? 1 : -1)
				    : compare_names(&x->name, &y->name);
}

static int compare_parties(const void *a, const void *b, void *arg)
{
	const struct matrix_party *p = arg, *x = &p[*(const uint32_t *)a],
				  *y = &p[*(const uint32_t *)b];

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->count != y->count ? (x->count < y->count ? 1 : -1)
				    : compare_names(&x->who, &y->who);
}

/* Adds the series and parties with a count to the view, sorted. */
static void parties(struct making *k)
{
	const struct matrix *m = k->m;
	uint32_t ns = m->series.n, np = m->parties.n;
	cleanup_free struct matrix_series *series = xcalloc(ns + 1, sizeof(*series));
	cleanup_free struct matrix_party *party = xcalloc(np + 1, sizeof(*party));
	cleanup_free uint32_t *order = xcalloc((ns > np ? ns : np) + 1, sizeof(*order));
	cleanup_free uint32_t *to = xcalloc((ns > np ? ns : np) + 1, sizeof(*to));

	for (uint32_t i = 0; i < ns; i++)
		series[i] = (struct matrix_series){ m->series.v[i].name, 0 };
	for (uint32_t i = 0; i < np; i++)
		party[i] = (struct matrix_party){ m->parties.v[i].series, m->parties.v[i].who, 0 };
	for (uint32_t i = 0; i < k->picked.n; i++) {
		const struct matrix_slot *s = &k->picked.v[i];

		party[s->party].count += s->count;
		series[party[s->party].series].count += s->count;
	}
	for (uint32_t i = 0; i < ns; i++)
		order[i] = i;
	qsort_r(order, ns, sizeof(*order), compare_series, series);
	for (uint32_t i = 0; i < ns; i++) {
		to[order[i]] = i;
		if (series[order[i]].count)
			vec_push(&k->v->series, series[order[i]]);
	}
	for (uint32_t i = 0; i < np; i++) {
		party[i].series = to[party[i].series];
		order[i] = i;
	}
	qsort_r(order, np, sizeof(*order), compare_parties, party);
	for (uint32_t i = 0; i < np; i++)
		if (party[order[i]].count) {
			to[order[i]] = k->v->parties.n;
			vec_push(&k->v->parties, party[order[i]]);
		}
	for (uint32_t i = 0; i < k->picked.n; i++)
		k->picked.v[i].party = to[k->picked.v[i].party];
}

static int compare_slots(const void *a, const void *b)
{
	const struct matrix_slot *x = a, *y = b;
	int order = COMPARE(x->column, y->column) ?: COMPARE(x->row, y->row);

	return order ?: COMPARE(x->party, y->party);
}

static int compare_entries(const void *a, const void *b)
{
	const struct matrix_entry *x = a, *y = b;

	return COMPARE(y->count, x->count) ?: x->party < y->party ? -1 : 1;
}

/* Returns the series with the largest part of a cell, or, of equal parts, the series with more
 * counts in all. */
static uint32_t main_series(const struct matrix_view *v, const struct matrix_cell *c,
			    uint64_t *sums)
{
	uint32_t best = v->parties.v[v->entries.v[c->at].party].series;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct matrix_entry *e = &v->entries.v[c->at + i];
		uint32_t s = v->parties.v[e->party].series;

		sums[s] += e->count;
	}
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t s = v->parties.v[v->entries.v[c->at + i].party].series;

		if (sums[s] > sums[best] || (sums[s] == sums[best] && s < best))
			best = s;
	}
	for (uint32_t i = 0; i < c->n; i++)
		sums[v->parties.v[v->entries.v[c->at + i].party].series] = 0;
	return best;
}

static void cells(struct making *k)
{
	struct matrix_view *v = k->v;
	cleanup_free uint64_t *sums = xcalloc(v->series.n + 1, sizeof(*sums));

	if (!k->picked.n)
		return;
	qsort(k->picked.v, k->picked.n, sizeof(*k->picked.v), compare_slots);
	vec_reserve(&v->entries, k->picked.n);
	for (uint32_t i = 0; i < k->picked.n; i++) {
		const struct matrix_slot *s = &k->picked.v[i];
		struct matrix_cell *c = v->cells.n ? vec_last(&v->cells) : NULL;

		if (!c || c->column != s->column - v->first || c->row != s->row) {
			c = vec_add(&v->cells);
			c->column = (uint32_t)(s->column - v->first);
			c->row = s->row;
			c->at = v->entries.n;
		}
		c->count += s->count;
		if (c->n && vec_last(&v->entries)->party == s->party) { /* two rows became one */
			vec_last(&v->entries)->count += s->count;
			continue;
		}
		c->n++;
		vec_push(&v->entries, (struct matrix_entry){ s->party, s->count });
	}
	for (uint32_t i = 0; i < v->cells.n; i++) {
		struct matrix_cell *c = &v->cells.v[i];

		qsort(v->entries.v + c->at, c->n, sizeof(*v->entries.v), compare_entries);
		c->series = main_series(v, c, sums);
		v->total += c->count;
		v->max = c->count > v->max ? c->count : v->max;
	}
}

struct err *matrix_view_make(struct matrix *m, const struct matrix_filter *f,
			     struct matrix_view *ret_view)
{
	struct making k = { .m = m, .v = ret_view };
	struct err *e;

	matrix_settle(m);
	*ret_view = (struct matrix_view){ .step = m->step };
	k.row_at = xcalloc(m->buckets.n + 1, sizeof(*k.row_at));
	pick(&k, f);
	e = columns(&k);
	if (!e)
		e = m->axis.kind == MATRIX_BUCKETS ? bucket_rows(&k) : numbered_rows(&k);
	if (!e) {
		parties(&k);
		cells(&k);
	} else {
		matrix_view_fini(ret_view);
	}
	vec_fini(&k.picked);
	free(k.row_at);
	return e;
}

void matrix_view_shrink(const struct matrix_view *v, uint32_t ncolumns, uint32_t nrows,
			uint32_t low, struct matrix_view *ret)
{
	struct making k = { .v = ret };

	*ret = (struct matrix_view){ .step = v->step * ncolumns,
				     .first = v->first / ncolumns,
				     .left_out = v->left_out };
	if (v->ncolumns)
		ret->ncolumns =
			(uint32_t)((v->first + v->ncolumns - 1) / ncolumns - ret->first + 1);
	for (uint32_t i = 0; i < v->rows.n; i += i ? nrows : low) {
		uint32_t end = i + (i ? nrows : low),
			 last = end < v->rows.n ? end - 1 : v->rows.n - 1;

		vec_push(&ret->rows, (struct matrix_row){ v->rows.v[i].min, v->rows.v[last].max });
	}
	for (uint32_t i = 0; i < v->series.n; i++)
		vec_push(&ret->series, v->series.v[i]);
	for (uint32_t i = 0; i < v->parties.n; i++)
		vec_push(&ret->parties, v->parties.v[i]);
	for (uint32_t i = 0; i < v->cells.n; i++) {
		const struct matrix_cell *c = &v->cells.v[i];

		for (uint32_t j = 0; j < c->n; j++)
			vec_push(&k.picked, (struct matrix_slot){ (v->first + c->column) / ncolumns,
								  v->entries.v[c->at + j].count,
								  (c->row + nrows - low) / nrows,
								  v->entries.v[c->at + j].party });
	}
	cells(&k);
	vec_fini(&k.picked);
}
