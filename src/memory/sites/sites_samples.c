/* The objects of Java and Node.js that were sampled when they were made, by the lines that made
 * them, and how many of them live, where that is known (sites_kept.c). */
#include "memory/sites/sites.h"

#include <string.h>

#include "base/path.h"
#include "memory/heap/heap.h"
#include "memory/heapfile/java_name.h"

enum {
	SAMPLES_MAX = 1 << 20, /* of a class by a place */
	CLASSES_MAX = 1 << 16,
	FRAMES_WITH = 8, /* functions in one place that are asked for */
};

/* A class as it is shown: V8 gives an object its class only after it has been sampled. A name is
 * kept even when its sample is left out, so all names count. */
static uint32_t class_number(struct sites *s, const char *text, size_t n, uint64_t size)
{
	const uint64_t *known;
	struct out name;
	uint32_t number;

	out_init(&name, NULL);
	if (n) {
		cleanup_free char *copy = xstrndup(text, n);

		for (char *c = copy; *c; c++) /* a row is a line */
			*c = *c == '\n' ? ' ' : *c;
		java_name(&name, copy);
	} else {
		out_printf(&name, "(%llu bytes)", (unsigned long long)size);
	}
	known = hash_get(&s->classes.ids, name.v, name.n);
	if (known)
		number = (uint32_t)*known;
	else if (s->classes.n < CLASSES_MAX)
		number = intern_strn(&s->classes, name.v, name.n);
	else
		number = intern_str(&s->classes, "(others)");
	out_fini(&name);
	return number;
}

uint32_t sites_sample_add(struct sites *s, uint32_t place, const char *text, size_t n,
			  uint64_t size, uint64_t bytes)
{
	const uint32_t class = class_number(s, text, n, size);
	uint64_t key = (uint64_t)place << 32 | class,
		 *at = hash_get(&s->by_class, &key, sizeof(key));
	struct sites_sample *m;
	bool is_new;

	if (!at && s->samples.n == SAMPLES_MAX) {
		s->left_out++;
		return UINT32_MAX;
	}
	if (!at) {
		at = hash_put(&s->by_class, &key, sizeof(key), &is_new);
		*at = s->samples.n;
		vec_push(&s->samples, ((struct sites_sample){ .place = place, .class = class }));
	}
	m = &s->samples.v[*at];
	m->n++;
	m->bytes += bytes;
	m->objects += size && bytes > size ? (double)bytes / (double)size : 1;
	return (uint32_t)*at;
}

/* --- rows --- */

struct sampled_row {
	const char *file, *function; /* NULL: not known */
	uint32_t line, class;
	struct sites_sample sums; /* without a place */
};
typedef VEC(struct sampled_row) sampled_rows;

/* Returns the innermost function that has a file of its own. A function that is built into V8, and
 * the JVM's own pieces of code ("[jvm]"), are where their caller is. A function that could not be
 * read may be the one, so nothing is returned then. */
static struct runtime_frame place_shown(const struct sites *s, uint32_t place)
{
	for (uint32_t i = 0; i < s->places.v[place].n; i++)
		for (uint32_t k = 0, many = 1; k < many && k < FRAMES_WITH; k++) {
			struct runtime_frame f = sites_frame(s, place, i, k, &many);

			if (!f.function || (f.file && *f.file != '['))
				return f;
		}
	return (struct runtime_frame){ 0 };
}

/* Those first that have the most bytes alive, where that is known. */
static int most_bytes_first(const void *x, const void *y)
{
	const struct sampled_row *a = x, *b = y;

	return COMPARE(b->sums.live_bytes, a->sums.live_bytes)
		       ?: COMPARE(b->sums.bytes, a->sums.bytes)
				  ?: strcmp(a->file ?: "", b->file ?: "")
					     ?: COMPARE(a->line, b->line)
							?: COMPARE(a->class, b->class);
}

static void add_sums(struct sites_sample *to, const struct sites_sample *m)
{
	to->n += m->n;
	to->objects += m->objects;
	to->bytes += m->bytes;
	to->live += m->live;
	to->live_objects += m->live_objects;
	to->live_bytes += m->live_bytes;
}

static void make_rows(const struct sites *s, sampled_rows *ret, struct sites_sample *all)
{
	struct hash by_line = { 0 };

	for (uint32_t i = 0; i < s->samples.n; i++) {
		const struct sites_sample *m = &s->samples.v[i];
		struct runtime_frame f = place_shown(s, m->place);
		cleanup_free char *key =
			xasprintf("%u:%u:%s:%s", m->class, f.line, f.file ?: "",
				  f.line ? "" : f.function ?: "");
		bool is_new;
		uint64_t *at = hash_put(&by_line, key, strlen(key), &is_new);

		if (is_new) {
			*at = ret->n;
			vec_push(ret, ((struct sampled_row){
					      f.file, f.function, f.line, m->class, { 0 } }));
		}
		add_sums(&ret->v[*at].sums, m);
		add_sums(all, m);
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), most_bytes_first);
	hash_fini(&by_line);
}

static unsigned long long whole(double v)
{
	return v < 1e18 ? (unsigned long long)(v + 0.5) : 0;
}

static void put_json_numbers(const struct sites *s, const struct sites_sample *m, struct out *o)
{
	heap_json_number(o, "samples", m->n);
	heap_json_number(o, "objects", whole(m->objects));
	heap_json_number(o, "bytes", m->bytes);
	if (!s->live)
		return;
	heap_json_number(o, "live_samples", m->live);
	heap_json_number(o, "live_objects", whole(m->live_objects));
	heap_json_number(o, "live_bytes", whole(m->live_bytes));
}

static void put_json_head(const struct sites *s, const struct sites_sample *all, struct out *o)
{
	static const char *const live[] = { [SITES_UNKNOWN] = "unknown",
					    [SITES_REACHABLE] = "reachable",
					    [SITES_UNCOLLECTED] = "uncollected" };

	out_str(o, "{\"type\":\"allocated\"");
	heap_json_text(o, "language", s->language);
	heap_json_text(o, "live", live[s->live]);
	if (*s->reason)
		heap_json_text(o, "reason", s->reason);
	if (s->keeps)
		heap_json_number(o, "interval", s->interval);
	put_json_numbers(s, all, o);
	heap_json_number(o, "lost", s->lost);
	heap_json_number(o, "without_place", s->nowhere);
	out_str(o, "}\n");
}

static void put_head(const struct sites *s, const struct sites_sample *all, struct out *o)
{
	const unsigned long long n = all->n;

	if (!s->live) {
		out_printf(
			o,
			"allocated while it was recorded, estimated from %llu samples; which of it "
			"lives is not known%s%s\n%14s %12s %8s  FILE:LINE:CLASS\n",
			n, *s->reason ? ": " : "", s->reason, "BYTES", "OBJECTS", "SAMPLES");
		return;
	}
	out_printf(o,
		   "%s, of what was allocated while it was recorded; estimated from %llu samples, "
		   "one for each %llu bytes\n",
		   s->live == SITES_REACHABLE ? "alive" : "not collected yet", n,
		   (unsigned long long)s->interval);
	if (*s->reason)
		out_printf(o, "what roots reach is not known: %s\n", s->reason);
	out_printf(o, "%14s %12s %8s %14s  FILE:LINE:CLASS\n", "LIVE BYTES", "OBJECTS", "SAMPLES",
		   "ALLOCATED");
}

static void put_json_row(const struct sites *s, const struct sampled_row *r, struct out *o)
{
	out_str(o, "{\"type\":\"allocated-site\"");
	put_json_numbers(s, &r->sums, o);
	if (r->file)
		heap_json_text(o, "file", r->file);
	if (r->line)
		heap_json_number(o, "line", r->line);
	if (r->function)
		heap_json_text(o, "function", r->function);
	heap_json_text(o, "class", intern_text(&s->classes, r->class));
	out_str(o, "}\n");
}

static void put_row(const struct sites *s, const struct sampled_row *r, struct out *o)
{
	const char *class = intern_text(&s->classes, r->class);
	const struct sites_sample *m = &r->sums;

	if (s->live)
		out_printf(o, "%14llu %12llu %8llu %14llu  ", whole(m->live_bytes),
			   whole(m->live_objects), (unsigned long long)m->live,
			   (unsigned long long)m->bytes);
	else
		out_printf(o, "%14llu %12llu %8llu  ", (unsigned long long)m->bytes,
			   whole(m->objects), (unsigned long long)m->n);
	if (r->file && r->line)
		out_printf(o, "%s:%u:%s\n", r->file, r->line, class);
	else if (r->file || r->function)
		out_printf(o, "%s:%s:%s\n", r->file ?: "?", r->function ?: "?", class);
	else
		out_printf(o, "[%s]:%s\n", s->language, class);
}

void sites_samples_show(struct sites *s, const struct sites_shown *how, struct out *o)
{
	struct sites_sample all = { 0 };
	sampled_rows rows = { 0 };

	make_rows(s, &rows, &all);
	(how->json ? put_json_head : put_head)(s, &all, o);
	for (uint32_t i = 0; i < rows.n && i < how->most; i++)
		(how->json ? put_json_row : put_row)(s, &rows.v[i], o);
	if (!how->json && rows.n > how->most)
		out_printf(o, "%14s and %u more lines\n", "", rows.n - how->most);
	vec_fini(&rows);
}

/* --- by stack --- */

void sites_samples_stacktree(struct sites *s, struct stacktree *ret)
{
	enum frame_kind kind = frame_kind_of_language(s->language);

	for (uint32_t i = 0; i < s->samples.n; i++) {
		const struct sites_sample *m = &s->samples.v[i];
		uint32_t ids[WIRE_STACK_FRAMES + 1], n = 0;
		cleanup_free char *class = xstrdup(intern_text(&s->classes, m->class));

		ids[n++] = sites_tree_text(ret, FRAME_NATIVE, class);
		for (uint32_t w = 0; w < s->places.v[m->place].n; w++)
			for (uint32_t k = 0, many = 1; k < many && n < ARRAY_SIZE(ids); k++) {
				struct runtime_frame f = sites_frame(s, m->place, w, k, &many);
				cleanup_free char *text =
					f.line ? xasprintf("%s:%u:%s", path_base(f.file ?: "?"),
							   f.line, f.function ?: "?")
					: f.function ? xasprintf("%s:%s", path_base(f.file ?: "?"),
								 f.function)
						     : xasprintf("[%s]", s->language);

				ids[n++] = sites_tree_text(ret, kind, text);
			}
		stacktree_add(ret, ids, n, s->live ? whole(m->live_bytes) : m->bytes);
	}
	stacktree_finish(ret);
}
