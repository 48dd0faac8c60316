/* Shows tables of a heap: classes, the biggest objects, equal contents, a difference. */
#define _GNU_SOURCE
#include "memory/heap/heap.h"
#include "render/json.h"

static void more_rows(uint64_t n, const struct heap_shown *how, const char *what, struct out *o)
{
	if (n > how->most && !how->json)
		out_printf(o, "... and %llu more %s (-n)\n", (unsigned long long)(n - how->most),
			   what);
}

static void show_rows(struct graph *g, const struct graph_rows *r, bool retained,
		      const struct heap_shown *how, struct out *o)
{
	uint64_t n = 0, bytes = 0;

	if (!how->json)
		out_printf(o, "%s%12s %14s  CLASS\n", retained ? "      RETAINED " : "", "OBJECTS",
			   "BYTES");
	for (uint32_t i = 0; i < r->n; i++) {
		const struct graph_row *row = &r->v[i];
		const char *class = graph_class_text(g, row->class);

		n += row->n;
		bytes += row->bytes;
		if (i >= how->most)
			continue;
		if (how->json) {
			out_str(o, "{\"type\":\"class\"");
			heap_json_text(o, "class", class);
			heap_json_number(o, "objects", row->n);
			heap_json_number(o, "bytes", row->bytes);
			if (retained)
				heap_json_number(o, "retained", row->retained);
			out_str(o, "}\n");
			continue;
		}
		if (retained)
			out_printf(o, "%14llu ", (unsigned long long)row->retained);
		out_printf(o, "%12llu %14llu  %s\n", (unsigned long long)row->n,
			   (unsigned long long)row->bytes, class);
	}
	more_rows(r->n, how, "classes", o);
	if (!how->json)
		out_printf(o, "%s%12llu %14llu  total\n", retained ? "               " : "",
			   (unsigned long long)n, (unsigned long long)bytes);
}

void heap_show_histogram(struct graph *g, enum graph_which which, const struct heap_shown *how,
			 struct out *o)
{
	struct graph_rows r;

	graph_histogram(g, which, &r);
	show_rows(g, &r, false, how, o);
	graph_rows_free(&r);
}

static int counts_most_first(const void *x, const void *y)
{
	const struct graph_row *a = x, *b = y;

	return COMPARE(b->n, a->n) ?: COMPARE(a->class, b->class);
}

void heap_show_counts(struct graph *g, const struct heap_shown *how, struct out *o)
{
	struct graph_rows r;

	graph_histogram(g, GRAPH_ALL, &r);
	if (r.n)
		qsort(r.v, r.n, sizeof(*r.v), counts_most_first);
	for (uint32_t i = 0; i < r.n && i < how->most; i++) {
		const char *class = graph_class_text(g, r.v[i].class);

		if (how->json) {
			out_str(o, "{\"type\":\"count\"");
			heap_json_number(o, "count", r.v[i].n);
			heap_json_text(o, "class", class);
			out_str(o, "}\n");
		} else {
			out_printf(o, "%7llu %s\n", (unsigned long long)r.v[i].n, class);
		}
	}
	more_rows(r.n, how, "classes", o);
	graph_rows_free(&r);
}

void heap_show_retained(struct graph *g, const struct heap_shown *how, struct out *o)
{
	struct graph_rows r;

	graph_histogram_retained(g, &r);
	show_rows(g, &r, true, how, o);
	graph_rows_free(&r);
}

static int compare_ids(const void *x, const void *y, void *arg)
{
	struct graph *g = arg;
	graph_id a = *(const graph_id *)x, b = *(const graph_id *)y;

	return COMPARE(graph_retained(g, b), graph_retained(g, a)) ?: COMPARE(a, b);
}

void heap_show_biggest(struct graph *g, const struct heap_shown *how, struct out *o)
{
	size_t n;
	const graph_id *top = graph_dominated(g, GRAPH_NONE, &n);
	cleanup_free graph_id *v = xmemdup(top, (n + 1) * sizeof(*v));

	qsort_r(v, n, sizeof(*v), compare_ids, g);
	if (!how->json)
		out_printf(o, "\n%14s %8s %14s  OBJECT\n", "RETAINED", "", "SIZE");
	for (size_t i = 0; i < n && i < how->most; i++) {
		if (how->json) {
			out_str(o, "{\"type\":\"object\"");
			heap_json_address(o, "address", graph_address(g, v[i]));
			heap_json_text(o, "class", graph_class_text(g, graph_class_of(g, v[i])));
			heap_json_number(o, "size", graph_size(g, v[i]));
			heap_json_number(o, "retained", graph_retained(g, v[i]));
			out_str(o, "}\n");
			continue;
		}
		out_printf(o, "%14llu %6.1f %% %14llu  ",
			   (unsigned long long)graph_retained(g, v[i]),
			   100.0 * (double)graph_retained(g, v[i]) /
				   (double)(graph_reach(g)->bytes ?: 1),
			   (unsigned long long)graph_size(g, v[i]));
		heap_put_object(g, v[i], o);
		out_char(o, '\n');
	}
}

/* The first bytes of the contents as text; those of 16-bit characters without their zeros. */
static size_t head_text(const struct graph_duplicate *d, char *text)
{
	bool wide = d->head_n >= 2 && d->head_n % 2 == 0;
	unsigned zero = d->head_n ? d->head[0] != 0 : 0;
	size_t n = 0;

	for (unsigned i = zero; i < d->head_n; i += 2)
		wide &= !d->head[i];
	for (unsigned i = 0; i < d->head_n; i++)
		if (!wide || i % 2 != zero)
			text[n++] = d->head[i];
	return n;
}

void heap_show_duplicates(struct graph *g, const struct heap_shown *how, struct out *o)
{
	struct graph_duplicate *v;
	size_t n = graph_duplicates(g, &v);

	if (!how->json)
		out_printf(o, "%12s %14s %12s  CONTENTS\n", "OBJECTS", "BYTES", "LENGTH");
	for (size_t i = 0; i < n && i < how->most; i++) {
		char text[sizeof(v[i].head)];
		size_t len = head_text(&v[i], text);

		if (how->json) {
			out_str(o, "{\"type\":\"duplicate\"");
			heap_json_text(o, "class", graph_class_text(g, v[i].class));
			heap_json_number(o, "objects", v[i].n);
			heap_json_number(o, "bytes", v[i].bytes);
			heap_json_number(o, "length", v[i].length);
			heap_json_address(o, "address", v[i].example);
			out_str(o, ",\"head\":");
			json_string(o, text, len);
			out_str(o, "}\n");
			continue;
		}
		out_printf(o, "%12llu %14llu %12llu  %s \"", (unsigned long long)v[i].n,
			   (unsigned long long)v[i].bytes, (unsigned long long)v[i].length,
			   graph_class_text(g, v[i].class));
		out_escaped(o, text, len);
		out_str(o, v[i].length > v[i].head_n ? "\"...\n" : "\"\n");
	}
	more_rows(n, how, "contents", o);
	free(v);
}

struct class_change {
	const char *name;
	uint64_t n[2], bytes[2]; /* before, after */
};

static int compare_changes(const void *x, const void *y)
{
	const struct class_change *a = x, *b = y;
	int64_t more_a = (int64_t)(a->bytes[1] - a->bytes[0]),
		more_b = (int64_t)(b->bytes[1] - b->bytes[0]);

	return COMPARE(more_b, more_a) ?: strcmp(a->name, b->name);
}

void heap_show_diff(struct graph *before, struct graph *after, const struct heap_shown *how,
		    struct out *o)
{
	struct graph *const graphs[] = { before, after };
	VEC(struct class_change) v = { 0 };
	struct hash names = { 0 };
	uint32_t n = 0;

	for (int side = 0; side < 2; side++) {
		struct graph_rows r;

		graph_histogram(graphs[side], GRAPH_REACHABLE, &r);
		for (uint32_t i = 0; i < r.n; i++) {
			const char *name = graph_class_text(graphs[side], r.v[i].class);
			bool fresh;
			uint64_t *at = hash_put(&names, name, strlen(name), &fresh);

			if (fresh) {
				*at = v.n;
				vec_push(&v, (struct class_change){ .name = name });
			}
			v.v[*at].n[side] += r.v[i].n;
			v.v[*at].bytes[side] += r.v[i].bytes;
		}
		graph_rows_free(&r);
	}
	hash_fini(&names);
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), compare_changes);
	if (!how->json)
		out_printf(o, "%12s %14s %12s %14s  CLASS\n", "+OBJECTS", "+BYTES", "OBJECTS",
			   "BYTES");
	for (uint32_t i = 0; i < v.n; i++) {
		const struct class_change *c = &v.v[i];
		long long objects = (long long)(c->n[1] - c->n[0]),
			  bytes = (long long)(c->bytes[1] - c->bytes[0]);

		if ((!objects && !bytes) || n++ >= how->most)
			continue;
		if (!how->json) {
			out_printf(o, "%+12lld %+14lld %12llu %14llu  %s\n", objects, bytes,
				   (unsigned long long)c->n[1], (unsigned long long)c->bytes[1],
				   c->name);
			continue;
		}
		out_str(o, "{\"type\":\"change\"");
		heap_json_text(o, "class", c->name);
		heap_json_number(o, "objects_before", c->n[0]);
		heap_json_number(o, "objects", c->n[1]);
		heap_json_number(o, "bytes_before", c->bytes[0]);
		heap_json_number(o, "bytes", c->bytes[1]);
		out_str(o, "}\n");
	}
	more_rows(n, how, "classes", o);
	if (!n && !how->json)
		out_str(o, "no class has changed\n");
	vec_fini(&v);
}
