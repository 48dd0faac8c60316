/* The table of `descry calls -c`:
 *
 *	% time     seconds  usecs/call     calls       p50       p99       max function
 *	------ ----------- ----------- --------- --------- --------- --------- --------------------
 *	 47.02    0.000221      221.00         1    221.00    221.00    221.00 puts
 */
#include "base/clock.h"
#include "base/term.h"
#include "calls/calls.h"
#include "data/record.h"
#include "render/json.h"
#include "render/render.h"

/* Timed calls. Times are in nanoseconds. */
struct timed {
	uint64_t n, ns;
	int64_t *spread; /* the words of their llquantize(); NULL: there are none */
};

/* The values of one function in one session. */
struct total {
	const char *name;
	uint64_t counted, untimed;  /* calls whose entry was timed, and others */
	struct timed whole, window; /* while all were timed; in windows between untimed ones */
	uint64_t max;
};

/* A function's row: the values of all sessions. */
struct row {
	const char *name; /* as it is shown */
	uint64_t calls, ns, max, p50, p99;
	uint64_t untimed, timed;
	uint64_t returned; /* calls whose time is known or estimated */
	double *spread;    /* by bucket; NULL: no call has returned */
};

/* What the sinks of one output share. */
struct calls_table {
	struct out o;
	struct arena arena;
	struct hash by_name; /* name -> index in rows */
	VEC(struct row) rows;
	struct agg spread; /* the aggregation of all .spread; nwords 0: there is none */
	uint64_t lost;
	uint64_t calls, shown_at, shown_calls; /* of the progress line */
	int width;                             /* of the column of names */
	uint32_t nsinks;                       /* that have not ended */
};

struct summary {
	struct sink s;
	const struct calls *c;
	struct calls_table *table;
	struct arena arena;
	struct hash by_name; /* name -> index in totals */
	VEC(struct total) totals;
	const struct agg *spread; /* the aggregation of all .spread */
	uint64_t shown_at, calls; /* of the progress line: these calls are in table->calls */
	bool ended;
};

static struct summary *summary_of(struct sink *s)
{
	return (struct summary *)s;
}

static struct total *total_of(struct summary *k, const struct agg *agg, const struct agg_row *row)
{
	const char *text = "";
	uint32_t n = 0;
	uint64_t *at;
	bool is_new;

	if (agg->nkeys)
		field_text(k->s.image, &agg->keys[0], row->key, &text, &n);
	at = hash_put(&k->by_name, text, n, &is_new);
	if (is_new) {
		*at = k->totals.n;
		vec_add(&k->totals)->name = arena_strndup(&k->arena, text, n);
	}
	return &k->totals.v[*at];
}

/* Returns the value below which `share` of the n calls lie, by the buckets' bounds. */
static uint64_t percentile(const struct agg *a, const double *spread, double n, double share)
{
	double want = n * share, below = 0;

	for (uint32_t i = 0; i + 1 < a->nwords; i++) {
		double in = spread[i], from, to;

		if (in <= 0)
			continue;
		if (below + in < want) {
			below += in;
			continue;
		}
		from = (double)agg_ll_lower(a->factor, a->low_mag, a->high_mag, a->steps, i);
		to = i + 2 < a->nwords ? (double)agg_ll_lower(a->factor, a->low_mag, a->high_mag,
							      a->steps, i + 1)
				       : from;
		from = from < 0 ? 0 : from;
		return (uint64_t)(from + (to - from) * (want - below) / in);
	}
	return 0;
}

static void take_spread(struct timed *t, const struct agg *a, const struct agg_row *row)
{
	if (!t->spread)
		t->spread = xcalloc(a->nwords, sizeof(*t->spread));
	memcpy(t->spread, row->words, a->nwords * sizeof(*t->spread));
}

static struct err *summary_take(struct sink *s, const struct record_view *r, const struct action *a,
				struct agg_view *const *aggs, uint32_t n)
{
	struct summary *k = summary_of(s);

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t row = 0; row < aggs[i]->nrows; row++) {
			const struct agg *agg = aggs[i]->agg;
			const struct agg_row *at = &aggs[i]->rows[row];
			struct total *t = total_of(k, agg, at);
			struct timed *in = strncmp(agg->name, "window_", 7) ? &t->whole
									    : &t->window;

			switch (agg->func) {
			case AGG_COUNT:
				*(strcmp(agg->name, "untimed") ? &t->counted : &t->untimed) =
					(uint64_t)at->words[0];
				break;
			case AGG_SUM:
				in->n = (uint64_t)at->words[0];
				in->ns = (uint64_t)at->words[1];
				break;
			case AGG_MAX: t->max = (uint64_t)at->words[1]; break;
			case AGG_LLQUANTIZE:
				k->spread = agg;
				take_spread(in, agg, at);
				break;
			default: break;
			}
		}
	return NULL;
}

static struct row *row_of(struct summary *k, const char *name)
{
	struct calls_table *t = k->table;
	bool is_new;
	uint64_t *at = hash_put(&t->by_name, name, strlen(name), &is_new);

	if (is_new) {
		*at = t->rows.n;
		vec_add(&t->rows)->name = arena_strdup(&t->arena, calls_shown(k->c, &k->s, name));
	}
	return &t->rows.v[*at];
}

/* Adds a session's calls of a function to its row. The untimed calls took as long as those in
 * windows, or as all timed ones if windows have few. */
static void add_total(struct summary *k, const struct total *t)
{
	enum { FEW = 1000 };
	const struct timed *parts[] = { &t->whole, &t->window };
	double factor[] = { 1, 1 }, ns = 0;
	const uint64_t timed = t->whole.n + t->window.n;
	struct row *r = row_of(k, t->name);

	if (t->window.n >= FEW)
		factor[1] += (double)t->untimed / (double)t->window.n;
	else if (timed)
		factor[0] = factor[1] += (double)t->untimed / (double)timed;
	if (timed && k->spread && !r->spread)
		r->spread = xcalloc(k->spread->nwords, sizeof(*r->spread));
	for (int i = 0; i < 2; i++) {
		ns += (double)parts[i]->ns * factor[i];
		for (uint32_t b = 0; r->spread && parts[i]->spread && b + 1 < k->spread->nwords;
		     b++)
			r->spread[b] += (double)parts[i]->spread[b + 1] * factor[i];
	}
	r->calls += t->counted + t->untimed;
	r->untimed += t->untimed;
	r->timed += timed;
	r->returned += timed ? timed + t->untimed : 0;
	r->ns += t->untimed ? (uint64_t)ns : t->whole.ns + t->window.ns;
	r->max = t->max > r->max ? t->max : r->max;
}

static void add_totals(struct summary *k)
{
	if (k->spread)
		k->table->spread = *k->spread;
	for (uint32_t i = 0; i < k->totals.n; i++)
		add_total(k, &k->totals.v[i]);
}

static void find_percentiles(struct calls_table *t)
{
	for (uint32_t i = 0; i < t->rows.n; i++) {
		struct row *r = &t->rows.v[i];

		if (!r->spread)
			continue;
		r->p50 = percentile(&t->spread, r->spread, (double)r->returned, 0.5);
		r->p99 = percentile(&t->spread, r->spread, (double)r->returned, 0.99);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: COMPARE(y->calls, x->calls) ?: strcmp(x->name, y->name);
}

static void put_usecs(struct out *o, uint64_t ns)
{
	out_printf(o, " %9.2f", (double)ns / 1000);
}

static void put_row(struct calls_table *k, const struct row *t, uint64_t all)
{
	struct out *o = &k->o;

	out_printf(o, "%6.2f %11.6f", all ? 100.0 * (double)t->ns / (double)all : 0.0,
		   (double)t->ns / 1e9);
	if (t->returned)
		out_printf(o, " %11.2f", (double)t->ns / 1000 / (double)t->returned);
	else
		out_printf(o, " %11s", "-");
	out_printf(o, " %9llu %-*s", (unsigned long long)t->calls, k->width, t->name);
	if (t->returned) {
		put_usecs(o, t->p50 > t->max ? t->max : t->p50);
		put_usecs(o, t->p99 > t->max ? t->max : t->p99);
		put_usecs(o, t->max);
	} else {
		out_printf(o, " %9s %9s %9s", "-", "-", "-");
	}
	out_char(o, '\n');
}

/* The distribution of a function's times, by powers of two, in DTrace's layout. */
static void put_histogram(struct summary *s, const struct row *t)
{
	struct calls_table *k = s->table;
	const struct agg *a = &k->spread;
	double in[127] = { 0 };
	int64_t words[128] = { 0 };
	struct agg doubles = { .func = AGG_QUANTIZE, .nwords = ARRAY_SIZE(words) };
	struct agg_view v = { .agg = &doubles, .normal = 1 };

	if (!t->spread)
		return;
	for (uint32_t i = 0; i + 1 < a->nwords; i++) {
		int64_t from = agg_ll_lower(a->factor, a->low_mag, a->high_mag, a->steps, i);

		in[agg_quantize_bucket(from < 0 ? 0 : from)] += t->spread[i];
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(in); i++)
		words[1 + i] = (int64_t)(in[i] + 0.5);
	out_printf(&k->o, "\n  %s (ns)", t->name);
	hist_print(&s->s, &k->o, &v, words);
}

/* Writes a function's row as a line of JSON. */
static void put_json(struct calls_table *k, const struct row *t, bool histograms)
{
	const char *name = t->name;
	struct out *o = &k->o;

	out_str(o, "{\"function\":");
	json_string(o, name, strlen(name));
	out_printf(o, ",\"calls\":%llu,\"returned\":%llu,\"timed\":%llu,\"ns\":%llu",
		   (unsigned long long)t->calls, (unsigned long long)t->returned,
		   (unsigned long long)t->timed, (unsigned long long)t->ns);
	if (t->returned)
		out_printf(o, ",\"p50\":%llu,\"p99\":%llu,\"max\":%llu", (unsigned long long)t->p50,
			   (unsigned long long)t->p99, (unsigned long long)t->max);
	if (histograms && t->spread) {
		const struct agg *a = &k->spread;
		const char *between = "";

		out_str(o, ",\"spread\":[");
		for (uint32_t i = 0; i + 1 < a->nwords; i++) {
			int64_t from =
				agg_ll_lower(a->factor, a->low_mag, a->high_mag, a->steps, i);

			if (t->spread[i] < 0.5)
				continue;
			out_printf(o, "%s[%lld,%lld]", between, (long long)(from < 0 ? 0 : from),
				   (long long)(t->spread[i] + 0.5));
			between = ",";
		}
		out_char(o, ']');
	}
	out_str(o, "}\n");
}

enum { PROGRESS_NS = 1000000000 };

static void show_progress(struct calls_table *t, uint64_t now)
{
	cleanup_free char *line = NULL;

	if (now - t->shown_at < PROGRESS_NS / 2)
		return;
	line = xasprintf("\r%llu calls, %.0f a second\033[K", (unsigned long long)t->calls,
			 (double)(t->calls - t->shown_calls) * 1e9 / (double)(now - t->shown_at));
	term_raw(stderr, line, strlen(line));
	t->shown_at = now;
	t->shown_calls = t->calls;
}

static bool due(struct sink *s, bool shown)
{
	struct summary *k = summary_of(s);
	uint64_t now = clock_ns(CLOCK_MONOTONIC), calls = 0;

	if (!k->c->o->progress)
		return false;
	if (!k->shown_at)
		k->shown_at = now;
	if (!k->table->shown_at)
		k->table->shown_at = now;
	if (!shown)
		return now - k->shown_at >= PROGRESS_NS;
	for (uint32_t i = 0; i < k->totals.n; i++)
		calls += k->totals.v[i].counted + k->totals.v[i].untimed;
	k->table->calls += calls - k->calls;
	k->calls = calls;
	k->shown_at = now;
	show_progress(k->table, now);
	return false;
}

/* Returns the width of the column of names. Longer names push the columns behind them. */
static int name_width(const struct calls_table *t)
{
	enum { NARROW = 20, WIDE = 40 };
	size_t width = NARROW;

	for (uint32_t i = 0; i < t->rows.n; i++) {
		size_t n = strlen(t->rows.v[i].name);

		width = n > width ? n : width;
	}
	return width < WIDE ? (int)width : WIDE;
}

static void put_rule(struct calls_table *t)
{
	out_str(&t->o, "------ ----------- ----------- --------- ");
	out_fill(&t->o, '-', (size_t)t->width);
	out_str(&t->o, " --------- --------- ---------\n");
}

static void put_table(struct summary *k)
{
	struct calls_table *t = k->table;
	uint64_t ns = 0, calls = 0;
	uint32_t estimated = 0;

	for (uint32_t i = 0; i < t->rows.n; i++) {
		ns += t->rows.v[i].ns;
		calls += t->rows.v[i].calls;
		estimated += t->rows.v[i].untimed && t->rows.v[i].returned;
	}
	t->width = name_width(t);
	out_printf(&t->o,
		   "%% time     seconds  usecs/call     calls %-*s       p50       p99       max\n",
		   t->width, "function");
	put_rule(t);
	for (uint32_t i = 0; i < t->rows.n; i++)
		put_row(t, &t->rows.v[i], ns);
	put_rule(t);
	out_printf(&t->o, "%6.2f %11.6f %11s %9llu total\n", ns ? 100.0 : 0.0, (double)ns / 1e9, "",
		   (unsigned long long)calls);
	if (estimated)
		out_printf(
			&t->o,
			"times of %u function%s are estimates, from some of the calls; max is the longest of "
			"these (--time-all: all calls)\n",
			estimated, estimated == 1 ? "" : "s");
	for (uint32_t i = 0; k->c->o->histograms && i < t->rows.n; i++)
		put_histogram(k, &t->rows.v[i]);
	if (t->lost)
		out_printf(&t->o, "%llu events were lost\n", (unsigned long long)t->lost);
}

static struct err *summary_end(struct sink *s)
{
	struct summary *k = summary_of(s);
	struct calls_table *t = k->table;

	add_totals(k);
	k->ended = true;
	if (--t->nsinks)
		return NULL;
	t->o.file = s->out;
	if (t->shown_calls)
		term_raw(stderr, "\r\033[K", strlen("\r\033[K"));
	find_percentiles(t);
	if (t->rows.n)
		qsort(t->rows.v, t->rows.n, sizeof(*t->rows.v), by_time);
	if (!k->c->o->json)
		put_table(k);
	for (uint32_t i = 0; k->c->o->json && i < t->rows.n; i++)
		put_json(t, &t->rows.v[i], k->c->o->histograms);
	return out_flush(&t->o);
}

static struct err *summary_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	/* A tick that comes too late for its window loses no call */
	if (kind != DROP_TICKS)
		summary_of(s)->table->lost += count;
	return NULL;
}

static char *no_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void summary_free(struct sink *s)
{
	struct summary *k = summary_of(s);

	for (uint32_t i = 0; i < k->totals.n; i++) {
		free(k->totals.v[i].whole.spread);
		free(k->totals.v[i].window.spread);
	}
	k->table->nsinks -= !k->ended;
	vec_fini(&k->totals);
	hash_fini(&k->by_name);
	arena_fini(&k->arena);
	free(k);
}

struct sink *calls_summary_new(const struct calls *c, struct calls_table *t)
{
	static const struct sink_ops ops = {
		.name = "calls -c",
		.any_order = true,
		.end = summary_end,
		.printa = summary_take,
		.drop = summary_drop,
		.format = no_format,
		.report = calls_report,
		.due = due,
		.free = summary_free,
	};
	struct summary *k = xcalloc(1, sizeof(*k));

	k->s.ops = &ops;
	k->c = c;
	k->table = t;
	t->nsinks++;
	arena_init(&k->arena);
	return &k->s;
}

struct calls_table *calls_table_new(void)
{
	struct calls_table *t = xcalloc(1, sizeof(*t));

	arena_init(&t->arena);
	out_init(&t->o, NULL);
	return t;
}

void calls_table_free(struct calls_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->rows.n; i++)
		free(t->rows.v[i].spread);
	vec_fini(&t->rows);
	hash_fini(&t->by_name);
	arena_fini(&t->arena);
	out_fini(&t->o);
	free(t);
}
