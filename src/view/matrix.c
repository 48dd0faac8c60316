/* Counts events and buckets by column, row and party. */
#include <assert.h>

#include "view/matrix_private.h"

enum { LINEAR_FINE = 1000, DECADE_ROWS = 190 };
/* A map of n cells is filled up to FILL_FREE + n * FILL_TIMES of them. */
enum { FILL_FREE = 2 << 20, FILL_TIMES = 16 };

/* The counts of the last event's column. Most events are in the same column as the event before,
 * and these counts stay in the cache. */
enum { NEAR_ROWS = 1024, NEAR_PARTIES = 32, NEAR = NEAR_ROWS * NEAR_PARTIES };
struct matrix_near {
	uint32_t counts[NEAR];  /* index: party * NEAR_ROWS + row */
	uint32_t touched[NEAR]; /* indices of counts that are not 0 */
	uint32_t ntouched;
};

/* --- rows ---
 * A row's number: DECADES: 0 below zero, 1 zero, 2 + i from decade_at[i]. LINEAR: 0 below zero, 1 +
 * i from i * grain. FIXED: 0 below base, 1 + i from base + i * step, the last from limit. BUCKETS:
 * index into m->buckets. */

static uint64_t decade_at[DECADE_ROWS + 2]; /* followed by UINT64_MAX */
static uint32_t ndecades;

static void make_decades(void)
{
	static const uint8_t parts[] = { 10, 12, 15, 20, 25, 30, 40, 50, 60, 80 };
	uint64_t ten = 1;

	if (ndecades)
		return;
	for (uint64_t v = 1; v < 10; v += v < 6 ? 1 : 2) /* 1 2 3 4 5 6 8 */
		decade_at[ndecades++] = v;
	for (int e = 1; e < 19; e++, ten *= 10)
		for (size_t i = 0; i < ARRAY_SIZE(parts) && ndecades < DECADE_ROWS; i++)
			if (parts[i] <= INT64_MAX / ten)
				decade_at[ndecades++] = parts[i] * ten;
	decade_at[ndecades] = decade_at[ndecades + 1] = UINT64_MAX;
}

/* Returns the highest bit of a number and the two bits behind it, as one number. */
static inline uint32_t magnitude(uint64_t v)
{
	uint32_t bit = 63 - (uint32_t)__builtin_clzll(v);

	return bit * 4 + (uint32_t)((v << (63 - bit)) >> 61 & 3);
}

/* Returns the row of a value. The numbers of one magnitude are in at most three rows. The code has
 * no branch that depends on the value, because the processor could not predict it. */
static inline uint32_t decade_row(const struct matrix *m, int64_t value)
{
	uint32_t i;

	if (value <= 0)
		return value == 0;
	i = m->decade_start[magnitude((uint64_t)value)];
	i += (uint64_t)value >= decade_at[i + 1];
	i += (uint64_t)value >= decade_at[i + 1];
	return 2 + i;
}

/* Divides. 64-bit division takes three times as long as 32-bit division. */
static inline uint64_t quotient(uint64_t v, uint64_t by)
{
	return (v | by) >> 32 ? v / by : (uint32_t)v / (uint32_t)by;
}

uint32_t matrix_fixed_last(const struct matrix_axis *a)
{
	uint64_t span = (uint64_t)a->limit - (uint64_t)a->base, step = (uint64_t)a->step;

	return (uint32_t)(span / step + (span % step != 0)) + 1;
}

static uint32_t fixed_row(const struct matrix_axis *a, int64_t value)
{
	if (value < a->base)
		return 0;
	if (value >= a->limit)
		return matrix_fixed_last(a);
	return 1 + (uint32_t)quotient((uint64_t)value - (uint64_t)a->base, (uint64_t)a->step);
}

struct matrix_row matrix_bounds(const struct matrix *m, uint32_t row)
{
	const struct matrix_axis *a = &m->axis;
	int64_t step = a->step, min;
	uint64_t from;

	switch (a->kind) {
	case MATRIX_DECADES:
		if (row < 2)
			return (struct matrix_row){ row ? 0 : INT64_MIN, row ? 0 : -1 };
		return (struct matrix_row){ (int64_t)decade_at[row - 2],
					    row - 1 < ndecades ? (int64_t)decade_at[row - 1] - 1
							       : INT64_MAX };
	case MATRIX_LINEAR:
		if (!row)
			return (struct matrix_row){ INT64_MIN, -1 };
		from = (row - 1) *
		       m->grain; /* may exceed INT64_MAX in the last shown row's fine rows */
		return (struct matrix_row){ from > INT64_MAX ? INT64_MAX : (int64_t)from,
					    from > INT64_MAX - m->grain
						    ? INT64_MAX
						    : (int64_t)(from + m->grain - 1) };
	case MATRIX_FIXED:
		if (!row)
			return (struct matrix_row){ INT64_MIN, a->base - 1 };
		if (row == matrix_fixed_last(a))
			return (struct matrix_row){ a->limit, INT64_MAX };
		min = a->base + (int64_t)(row - 1) * step;
		return (struct matrix_row){ min,
					    a->limit - min < step ? a->limit - 1 : min + step - 1 };
	default: return m->buckets.v[row];
	}
}

void matrix_init(struct matrix *m, uint64_t step, const struct matrix_axis *axis)
{
	*m = (struct matrix){
		.step = step, .axis = *axis, .grain = 1, .cells_max = MATRIX_CELLS_MAX
	};
	assert(step &&
	       (axis->kind != MATRIX_FIXED || (axis->step > 0 && axis->limit > axis->base)));
	arena_init(&m->text);
	m->near = xcalloc(1, sizeof(*m->near));
	make_decades();
	for (uint32_t k = 0, i = 0; k < ARRAY_SIZE(m->decade_start);
	     k++) { /* k's row: that of its least number */
		uint64_t least = k / 4 < 2 ? (uint64_t)1 << k / 4
					   : (uint64_t)(4 + k % 4) << (k / 4 - 2);

		while (i + 1 < ndecades && decade_at[i + 1] <= least)
			i++;
		m->decade_start[k] = (uint8_t)i;
	}
}

void matrix_fini(struct matrix *m)
{
	vec_fini(&m->series);
	vec_fini(&m->parties);
	vec_fini(&m->buckets);
	hash_fini(&m->bucket_ids);
	hash_fini(&m->series_ids);
	hash_fini(&m->party_ids);
	free(m->slots);
	free(m->near);
	arena_fini(&m->text);
}

static struct matrix_name matrix_keep(struct matrix *m, const char *text, size_t len)
{
	return (struct matrix_name){ len ? arena_strndup(&m->text, text, len) : "", (uint32_t)len };
}

uint32_t matrix_series(struct matrix *m, const char *text, size_t len)
{
	bool new;
	uint64_t *id = hash_put(&m->series_ids, text, len, &new);

	if (new) {
		*id = m->series.n;
		vec_push(&m->series, (struct matrix_series){ .name = matrix_keep(m, text, len) });
	}
	return (uint32_t)*id;
}

uint32_t matrix_party(struct matrix *m, uint32_t series, const char *who, size_t len)
{
	char small[256], *key = len + sizeof(series) <= sizeof(small)
					? small
					: xmalloc(len + sizeof(series));
	uint64_t *id;
	bool new;

	memcpy(key, &series, sizeof(series));
	if (len)
		memcpy(key + sizeof(series), who, len);
	id = hash_put(&m->party_ids, key, len + sizeof(series), &new);
	if (key != small)
		free(key);
	if (new) {
		*id = m->parties.n;
		vec_push(&m->parties, (struct matrix_party){ .series = series,
							     .who = matrix_keep(m, who, len) });
	}
	return (uint32_t)*id;
}

/* --- cells being counted --- */

static inline uint32_t matrix_slot_of(const struct matrix *m, uint64_t column, uint32_t row,
				      uint32_t party)
{
	return (uint32_t)hash_pair(column, (uint64_t)party << 32 | row) & (m->cap - 1);
}

static struct matrix_slot *matrix_find(struct matrix *m, uint64_t column, uint32_t row,
				       uint32_t party)
{
	uint32_t i = matrix_slot_of(m, column, row, party);

	while (m->slots[i].count && (m->slots[i].column != column || m->slots[i].row != row ||
				     m->slots[i].party != party))
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

/* Copies all slots into a table of `cap` slots. row_of, unless NULL, gives rows new numbers, which
 * may merge cells. */
static void rebuild(struct matrix *m, uint32_t cap, uint32_t (*row_of)(uint32_t row))
{
	struct matrix_slot *was = m->slots;
	uint32_t nwas = was ? m->cap : 0;

	m->slots = xcalloc(cap, sizeof(*m->slots));
	m->cap = cap;
	m->nslots = 0;
	for (uint32_t i = 0; i < nwas; i++) {
		uint32_t row = row_of ? row_of(was[i].row) : was[i].row;
		struct matrix_slot *s;

		if (!was[i].count)
			continue;
		s = matrix_find(m, was[i].column, row, was[i].party);
		m->nslots += !s->count;
		*s = (struct matrix_slot){ was[i].column, s->count + was[i].count, row,
					   was[i].party };
	}
	free(was);
}

static inline void matrix_count(struct matrix *m, uint64_t column, uint32_t row, uint32_t party,
				uint64_t n)
{
	struct matrix_slot *s;

	if (m->nslots >= m->cap / 2 && m->nslots < m->cells_max)
		rebuild(m, m->cap ? m->cap * 2 : 1024, NULL);
	s = matrix_find(m, column, row, party);
	if (!s->count) {
		if (!n)
			return;
		if (m->nslots >= m->cells_max) {
			m->crowded += n;
			return;
		}
		s->column = column;
		s->row = row;
		s->party = party;
		m->nslots++;
	}
	s->count = s->count + n < n ? UINT64_MAX : s->count + n;
}

void matrix_settle(struct matrix *m)
{
	struct matrix_near *near = m->near;

	for (uint32_t i = 0; i < near->ntouched; i++) {
		uint32_t at = near->touched[i];

		matrix_count(m, m->col, at % NEAR_ROWS, at / NEAR_ROWS, near->counts[at]);
		near->counts[at] = 0;
	}
	near->ntouched = 0;
}

static void change_column(struct matrix *m, uint64_t time)
{
	matrix_settle(m);
	m->col = time / m->step;
	m->col_start = m->col * m->step;
	m->col_end = m->col_start > UINT64_MAX - m->step ? UINT64_MAX : m->col_start + m->step;
}

static uint32_t tenth(uint32_t row)
{
	return row ? 1 + (row - 1) / 10 : 0;
}

static uint32_t linear_row(struct matrix *m, int64_t value)
{
	if (value < 0)
		return 0;
	while ((uint64_t)value >= LINEAR_FINE * m->grain) {
		matrix_settle(m);
		m->grain *= 10;
		rebuild(m, m->cap ? m->cap : 1024, tenth);
	}
	return 1 + (uint32_t)quotient((uint64_t)value, m->grain);
}

void matrix_event(struct matrix *m, uint64_t time, int64_t value, uint32_t party)
{
	struct matrix_near *near = m->near;
	uint32_t row = m->axis.kind == MATRIX_DECADES  ? decade_row(m, value)
		       : m->axis.kind == MATRIX_LINEAR ? linear_row(m, value)
						       : fixed_row(&m->axis, value);
	uint32_t at = party * NEAR_ROWS + row;

	assert(m->axis.kind != MATRIX_BUCKETS);
	if (time < m->col_start || time >= m->col_end)
		change_column(m, time);
	if (row >= NEAR_ROWS || party >= NEAR_PARTIES) {
		matrix_count(m, m->col, row, party, 1);
		return;
	}
	if (!near->counts[at])
		near->touched[near->ntouched++] = at;
	if (++near->counts[at] == UINT32_MAX)
		matrix_settle(m);
}

void matrix_bucket(struct matrix *m, uint64_t time, int64_t min, int64_t max, uint32_t party,
		   uint64_t n)
{
	int64_t key[2] = { min, max };
	uint64_t *id;
	bool new;

	assert(m->axis.kind == MATRIX_BUCKETS);
	id = hash_put(&m->bucket_ids, key, sizeof(key), &new);
	if (new) {
		*id = m->buckets.n;
		vec_push(&m->buckets, (struct matrix_row){ min, max });
	}
	if (n)
		matrix_count(m, time / m->step, (uint32_t)*id, party, n);
}

bool matrix_fill(struct matrix *m, int64_t value)
{
	uint64_t first = UINT64_MAX, last = 0, n, words;
	cleanup_free uint64_t *has = NULL;

	matrix_settle(m);
	for (uint32_t i = 0; i < m->cap; i++)
		if (m->slots[i].count) {
			first = m->slots[i].column < first ? m->slots[i].column : first;
			last = m->slots[i].column > last ? m->slots[i].column : last;
		}
	if (first > last)
		return true;
	n = last - first + 1;
	if (last - first >= MATRIX_COLUMNS_MAX || m->parties.n * n > m->cells_max ||
	    m->parties.n * n > FILL_FREE + (uint64_t)m->nslots * FILL_TIMES)
		return false;
	words = (n + 63) / 64;
	has = xcalloc(m->parties.n * words, sizeof(*has));
	for (uint32_t i = 0; i < m->cap; i++)
		if (m->slots[i].count)
			has[m->slots[i].party * words + (m->slots[i].column - first) / 64] |=
				(uint64_t)1 << ((m->slots[i].column - first) % 64);
	for (uint32_t p = 0; p < m->parties.n; p++)
		for (uint64_t c = 0; c < n; c++)
			if (!(has[p * words + c / 64] >> (c % 64) & 1))
				matrix_event(m, (first + c) * m->step, value, p);
	return true;
}
