/* The objects of Java and Node.js that were sampled when they were made, by the lines that made
 * them. Which of them live is not known: the collectors move all young objects, and nothing that
 * stays tells where one of them went. */
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

void sites_sample_add(struct sites *s, uint32_t place, const char *text, size_t n, uint64_t size,
		      uint64_t bytes)
{
	const uint32_t class = class_number(s, text, n, size);
	uint64_t key = (uint64_t)place << 32 | class,
		 *at = hash_get(&s->by_class, &key, sizeof(key));
	struct sites_sample *m;
	bool is_new;

	if (!at && s->samples.n == SAMPLES_MAX) {
		s->left_out++;
		return;
	}
	if (!at) {
		at = hash_put(&s->by_class, &key, sizeof(key), &is_new);
		*at = s->samples.n;
		vec_push(&s->samples, ((struct sites_sample){ place, class, 0, 0, 0 }));
	}
	m = &s->samples.v[*at];
	m->n++;
	m->bytes += bytes;
	m->objects += size && bytes > size ? bytes / size : 1;
}

/* --- rows --- */

struct sampled_row {
	const char *file, *function; /* NULL: not known */
	uint32_t line, class;
	uint64_t n, objects, bytes;
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

static int most_bytes_first(const void *x, const void *y)
{
	const struct sampled_row *a = x, *b = y;

	return COMPARE(b->bytes, a->bytes)
		       ?: strcmp(a->file ?: "", b->file ?: "")
				  ?: COMPARE(a->line, b->line) ?: COMPARE(a->class, b->class);
}

static void make_rows(const struct sites *s, sampled_rows *ret, struct sampled_row *all)
{
	struct hash by_line = { 0 };

	for (uint32_t i = 0; i < s->samples.n; i++) {
		const struct sites_sample *m = &s->samples.v[i];
		struct runtime_frame f = place_shown(s, m->place);
		cleanup_free char *key =
			xasprintf("%u:%u:%s:%s", m->class, f.line, f.file ?: "",
				  f.line ? "" : f.function ?: "");
		struct sampled_row *row;
		bool is_new;
		uint64_t *at = hash_put(&by_line, key, strlen(key), &is_new);

		if (is_new) {
			*at = ret->n;
			vec_push(ret, ((struct sampled_row){ f.file, f.function, f.line, m->class,
							     0, 0, 0 }));
		}
		row = &ret->v[*at];
		row->n += m->n;
		row->objects += m->objects;
		row->bytes += m->bytes;
		all->n += m->n;
		all->objects += m->objects;
		all->bytes += m->bytes;
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), most_bytes_first);
	hash_fini(&by_line);
}

static void put_head(const struct sites *s, const struct sampled_row *all, bool json, struct out *o)
{
	if (!json) {
		out_printf(
			o,
			"allocated while it was recorded, estimated from %llu samples; which of it "
			"lives is not known\n%14s %12s %8s  FILE:LINE:CLASS\n",
			(unsigned long long)all->n, "BYTES", "OBJECTS", "SAMPLES");
		return;
	}
	out_str(o, "{\"type\":\"allocated\"");
	heap_json_text(o, "language", s->language);
	heap_json_number(o, "samples", all->n);
	heap_json_number(o, "objects", all->objects);
	heap_json_number(o, "bytes", all->bytes);
	heap_json_number(o, "lost", s->lost);
	heap_json_number(o, "without_place", s->nowhere);
	out_str(o, "}\n");
}

static void put_sampled(const struct sites *s, const struct sampled_row *r, bool json,
			struct out *o)
{
	const char *class = intern_text(&s->classes, r->class);

	if (json) {
		out_str(o, "{\"type\":\"allocated-site\"");
		heap_json_number(o, "samples", r->n);
		heap_json_number(o, "objects", r->objects);
		heap_json_number(o, "bytes", r->bytes);
		if (r->file)
			heap_json_text(o, "file", r->file);
		if (r->line)
			heap_json_number(o, "line", r->line);
		if (r->function)
			heap_json_text(o, "function", r->function);
		heap_json_text(o, "class", class);
		out_str(o, "}\n");
		return;
	}
	out_printf(o, "%14llu %12llu %8llu  ", (unsigned long long)r->bytes,
		   (unsigned long long)r->objects, (unsigned long long)r->n);
	if (r->file && r->line)
		out_printf(o, "%s:%u:%s\n", r->file, r->line, class);
	else if (r->file || r->function)
		out_printf(o, "%s:%s:%s\n", r->file ?: "?", r->function ?: "?", class);
	else
		out_printf(o, "[%s]:%s\n", s->language, class);
}

void sites_samples_show(struct sites *s, const struct sites_shown *how, struct out *o)
{
	struct sampled_row all = { 0 };
	sampled_rows rows = { 0 };

	make_rows(s, &rows, &all);
	put_head(s, &all, how->json, o);
	for (uint32_t i = 0; i < rows.n && i < how->most; i++)
		put_sampled(s, &rows.v[i], how->json, o);
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
		stacktree_add(ret, ids, n, m->bytes);
	}
	stacktree_finish(ret);
}
