/* Joins the places where objects were made with the objects of a heap, and writes the table. */
#include "memory/sites/sites.h"

#include <string.h>

#include "base/hash.h"
#include "base/path.h"
#include "base/sorted.h"
#include "memory/heap/heap.h"
#include "program/runtime/languages.h"
#include "render/json.h"

/* Objects of a class that one place made. */
struct sum {
	uint32_t place, class;
	uint64_t n, bytes;
};

struct join {
	struct sites *s;
	struct graph *g;
	bool garbage;
	struct hash by_key; /* place, class -> index in sums */
	VEC(struct sum) sums;
};

static void join_object(void *arg, uint64_t address, uint32_t place)
{
	struct join *j = arg;
	graph_id id = graph_find(j->g, address);
	struct sum *sum;
	uint64_t key, *at;
	bool is_new;

	if (id == GRAPH_NONE || (!j->garbage && !graph_reachable(j->g, id)))
		return;
	key = (uint64_t)place << 32 | graph_class_of(j->g, id);
	at = hash_put(&j->by_key, &key, sizeof(key), &is_new);
	if (is_new) {
		*at = j->sums.n;
		vec_push(&j->sums, ((struct sum){ place, (uint32_t)key, 0, 0 }));
	}
	sum = &j->sums.v[*at];
	sum->n += j->s->sample;
	sum->bytes += graph_size(j->g, id) * j->s->sample;
}

static bool has_object(void *arg, uint64_t address)
{
	return graph_find(arg, address) != GRAPH_NONE;
}

static void join_heap(struct sites *s, struct graph *g, bool garbage, struct join *ret)
{
	*ret = (struct join){ .s = s, .g = g, .garbage = garbage };
	sites_forget(s, has_object, g);
	sites_each(s, join_object, ret);
}

static void join_fini(struct join *j)
{
	hash_fini(&j->by_key);
	vec_fini(&j->sums);
}

struct runtime_frame sites_frame(const struct sites *s, uint32_t place, uint32_t i, uint32_t k,
				 uint32_t *ret_n)
{
	const struct sites_place *p = &s->places.v[place];
	struct runtime_frame f = { 0 };

	*ret_n = 1;
	if (i < p->n && s->sink && s->sink->languages)
		(void)languages_frame(s->sink->languages, s->pid, s->words.v[p->at + i], k, ret_n,
				      &f);
	return f;
}

/* One word is one function of Ruby or Python. */
static struct runtime_frame place_frame(const struct sites *s, uint32_t place, uint32_t i)
{
	uint32_t n;

	return sites_frame(s, place, i, 0, &n);
}

/* --- rows --- */

static int rows_most_first(const void *x, const void *y)
{
	const struct sites_row *a = x, *b = y;

	return COMPARE(b->n, a->n)
		       ?: strcmp(a->file ?: "", b->file ?: "")
				  ?: COMPARE(a->line, b->line) ?: COMPARE(a->class, b->class);
}

void sites_rows(struct sites *s, struct graph *g, bool garbage, struct sites_rows *ret)
{
	struct hash by_line = { 0 };
	struct join j;

	*ret = (struct sites_rows){ 0 };
	join_heap(s, g, garbage, &j);
	for (uint32_t i = 0; i < j.sums.n; i++) {
		const struct sum *sum = &j.sums.v[i];
		struct runtime_frame f = place_frame(s, sum->place, 0);
		cleanup_free char *key = xasprintf("%u:%u:%s", sum->class, f.line, f.file ?: "");
		struct sites_row *row;
		bool is_new;
		uint64_t *at = hash_put(&by_line, key, strlen(key), &is_new);

		if (is_new) {
			*at = ret->v.n;
			vec_push(&ret->v, ((struct sites_row){ f.file, f.line, sum->class, 0, 0 }));
		}
		row = &ret->v.v[*at];
		row->n += sum->n;
		row->bytes += sum->bytes;
		ret->objects += sum->n;
		ret->bytes += sum->bytes;
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), rows_most_first);
	hash_fini(&by_line);
	join_fini(&j);
}

void sites_rows_fini(struct sites_rows *r)
{
	vec_fini(&r->v);
}

static void put_json_head(const struct sites *s, struct graph *g, const struct sites_rows *rows,
			  struct out *o)
{
	out_str(o, "{\"type\":\"alloc\"");
	heap_json_text(o, "language", s->language);
	heap_json_number(o, "sample", s->sample);
	heap_json_number(o, "recorded", s->recorded);
	heap_json_number(o, "objects", rows->objects);
	heap_json_number(o, "bytes", rows->bytes);
	heap_json_number(o, "heap_objects", graph_totals(g)->objects);
	heap_json_number(o, "lost", s->lost);
	heap_json_number(o, "without_place", s->nowhere);
	out_str(o, "}\n");
}

static void put_json_row(struct graph *g, const struct sites_row *r, struct out *o)
{
	out_str(o, "{\"type\":\"alloc-site\"");
	heap_json_number(o, "count", r->n);
	heap_json_number(o, "bytes", r->bytes);
	if (r->file) {
		heap_json_text(o, "file", r->file);
		heap_json_number(o, "line", r->line);
	}
	heap_json_text(o, "class", graph_class_text(g, r->class));
	out_str(o, "}\n");
}

void sites_show(struct sites *s, struct graph *g, const struct sites_shown *how, struct out *o)
{
	struct sites_rows rows;

	sites_rows(s, g, how->garbage, &rows);
	if (how->json)
		put_json_head(s, g, &rows, o);
	for (uint32_t i = 0; i < rows.v.n && i < how->most; i++) {
		const struct sites_row *r = &rows.v.v[i];

		if (how->json)
			put_json_row(g, r, o);
		else if (r->file)
			out_printf(o, "%7llu %s:%u:%s\n", (unsigned long long)r->n, r->file,
				   r->line, graph_class_text(g, r->class));
		else
			out_printf(o, "%7llu [%s]:%s\n", (unsigned long long)r->n, s->language,
				   graph_class_text(g, r->class));
	}
	if (!how->json && rows.v.n > how->most)
		out_printf(o, "%7s and %u more lines\n", "", rows.v.n - how->most);
	sites_rows_fini(&rows);
}

/* --- by stack --- */

uint32_t sites_tree_text(struct stacktree *t, enum frame_kind kind, char *text)
{
	for (char *c = text; *c; c++)
		if (*c == ';')
			*c = ':';
	return stacktree_frame(t, kind, text, strlen(text));
}

void sites_stacktree(struct sites *s, struct graph *g, bool garbage, struct stacktree *ret)
{
	enum frame_kind kind = frame_kind_of_language(s->language);
	struct join j;

	join_heap(s, g, garbage, &j);
	for (uint32_t i = 0; i < j.sums.n; i++) {
		const struct sum *sum = &j.sums.v[i];
		uint32_t ids[WIRE_STACK_FRAMES + 1], n = 0;
		cleanup_free char *class = xstrdup(graph_class_text(g, sum->class));

		ids[n++] = sites_tree_text(ret, FRAME_NATIVE, class);
		for (uint32_t k = 0; k < s->places.v[sum->place].n; k++) {
			struct runtime_frame f = place_frame(s, sum->place, k);
			cleanup_free char *text = f.file ? xasprintf("%s:%u:%s", path_base(f.file),
								     f.line, f.function ?: "?")
							 : xasprintf("[%s]", s->language);

			ids[n++] = sites_tree_text(ret, kind, text);
		}
		stacktree_add(ret, ids, n, sum->bytes);
	}
	stacktree_finish(ret);
	join_fini(&j);
}
