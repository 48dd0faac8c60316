/* The table of `descry calls -c`:
 *
 *	% time     seconds  usecs/call     calls       p50       p99       max function
 *	------ ----------- ----------- --------- --------- --------- --------- --------------------
 *	 47.02    0.000221      221.00         1    221.00    221.00    221.00 puts
 */
#include "calls/calls.h"
#include "data/record.h"

/* The values of one function. Times are in nanoseconds. */
struct total {
	const char *name;
	uint64_t calls, ns, returned, p50, p99, max;
};

struct summary {
	struct sink s;
	const struct calls *c;
	struct out o;
	struct arena arena;
	struct hash by_name; /* name -> index in totals */
	VEC(struct total) totals;
	uint64_t lost;
};

static struct summary *of(struct sink *s)
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

/* Returns the value below which `share` of the values lie, by the buckets' bounds. */
static uint64_t percentile(const struct agg *a, const struct agg_row *row, double share)
{
	uint64_t n = (uint64_t)row->words[0];
	double want = (double)n * share, below = 0;

	for (uint32_t i = 0; i + 1 < a->nwords; i++) {
		double in = (double)row->words[i + 1];
		double from, to;

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

static struct err *take(struct sink *s, const struct record_view *r, const struct action *a,
			struct agg_view *const *aggs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t row = 0; row < aggs[i]->nrows; row++) {
			const struct agg *agg = aggs[i]->agg;
			const struct agg_row *at = &aggs[i]->rows[row];
			struct total *t = total_of(of(s), agg, at);

			switch (agg->func) {
			case AGG_COUNT: t->calls = (uint64_t)at->words[0]; break;
			case AGG_SUM:
				t->returned = (uint64_t)at->words[0];
				t->ns = (uint64_t)at->words[1];
				break;
			case AGG_MAX: t->max = (uint64_t)at->words[1]; break;
			case AGG_LLQUANTIZE:
				t->p50 = percentile(agg, at, 0.5);
				t->p99 = percentile(agg, at, 0.99);
				break;
			default: break;
			}
		}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	return COMPARE(y->ns, x->ns) ?: COMPARE(y->calls, x->calls) ?: strcmp(x->name, y->name);
}

static void put_usecs(struct out *o, uint64_t ns)
{
	out_printf(o, " %9.2f", (double)ns / 1000);
}

static void put_row(struct summary *k, const struct total *t, uint64_t all)
{
	struct out *o = &k->o;

	out_printf(o, "%6.2f %11.6f", all ? 100.0 * (double)t->ns / (double)all : 0.0,
		   (double)t->ns / 1e9);
	if (t->returned)
		out_printf(o, " %11.2f", (double)t->ns / 1000 / (double)t->returned);
	else
		out_printf(o, " %11s", "-");
	out_printf(o, " %9llu", (unsigned long long)t->calls);
	if (t->returned) {
		put_usecs(o, t->p50 > t->max ? t->max : t->p50);
		put_usecs(o, t->p99 > t->max ? t->max : t->p99);
		put_usecs(o, t->max);
	} else {
		out_printf(o, " %9s %9s %9s", "-", "-", "-");
	}
	out_printf(o, " %s\n", calls_shown(k->c, &k->s, t->name));
}

static struct err *summary_end(struct sink *s)
{
	static const char rule[] =
		"------ ----------- ----------- --------- --------- --------- --------- --------------------\n";
	struct summary *k = of(s);
	uint64_t ns = 0, calls = 0;

	k->o.file = s->out;
	if (k->totals.n)
		qsort(k->totals.v, k->totals.n, sizeof(*k->totals.v), by_time);
	for (uint32_t i = 0; i < k->totals.n; i++) {
		ns += k->totals.v[i].ns;
		calls += k->totals.v[i].calls;
	}
	out_str(&k->o,
		"% time     seconds  usecs/call     calls       p50       p99       max function\n");
	out_str(&k->o, rule);
	for (uint32_t i = 0; i < k->totals.n; i++)
		put_row(k, &k->totals.v[i], ns);
	out_str(&k->o, rule);
	out_printf(&k->o, "%6.2f %11.6f %11s %9llu %9s %9s %9s total\n", ns ? 100.0 : 0.0,
		   (double)ns / 1e9, "", (unsigned long long)calls, "", "", "");
	if (k->lost)
		out_printf(&k->o, "%llu events were lost\n", (unsigned long long)k->lost);
	return out_flush(&k->o);
}

static struct err *summary_drop(struct sink *s, enum drop_kind kind, int cpu, uint64_t count)
{
	of(s)->lost += count;
	return NULL;
}

static char *no_format(struct sink *s, const struct record_view *r, const struct action *a)
{
	return xstrdup("");
}

static void summary_free(struct sink *s)
{
	struct summary *k = of(s);

	vec_fini(&k->totals);
	hash_fini(&k->by_name);
	arena_fini(&k->arena);
	out_fini(&k->o);
	free(k);
}

struct sink *calls_summary_new(const struct calls *c)
{
	static const struct sink_ops ops = {
		.name = "calls -c",
		.any_order = true,
		.end = summary_end,
		.printa = take,
		.drop = summary_drop,
		.format = no_format,
		.free = summary_free,
	};
	struct summary *k = xcalloc(1, sizeof(*k));

	k->s.ops = &ops;
	k->c = c;
	arena_init(&k->arena);
	out_init(&k->o, NULL);
	return &k->s;
}
