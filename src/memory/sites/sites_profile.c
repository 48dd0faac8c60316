/* Reads and shows V8's profile of what lives. */
#include "memory/sites/sites_profile.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/sorted.h"
#include "base/utf8.h"
#include "memory/heap/heap.h"
#include "memory/sites/sites.h"

enum { NODES_MOST = 1 << 20, DEPTH_MOST = 1024, NAME_MOST = 4096 };
static const uint64_t BYTES_MOST = 1ull << 47;

/* --- reading --- */

/* A name may have megabytes, and stands in a picture's tree and in each of its stacks. */
static uint32_t text_of(struct sites_profile *p, const json_t *frame, const char *name)
{
	const json_t *v = json_object_get(frame, name);
	const char *text = json_is_string(v) ? json_string_value(v) : "";
	cleanup_free char *cut = NULL;

	if (!strncmp(text, "file://", 7))
		text += 7;
	if (strnlen(text, NAME_MOST + 1) > NAME_MOST)
		text = cut = xasprintf("%.*s..", (int)utf8_cut(text, NAME_MOST), text);
	return intern_shown(&p->texts, text, strlen(text));
}

static uint64_t number_of(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);
	const double d = json_is_number(v) ? json_number_value(v) : 0;

	return d > 0 && d < (double)BYTES_MOST ? (uint64_t)d : 0;
}

static void add_node(struct sites_profile *p, const json_t *node, uint32_t parent,
		     struct hash *by_id)
{
	const json_t *frame = json_object_get(node, "callFrame"),
		     *line = json_object_get(frame, "lineNumber");
	const json_int_t from_0 = json_is_integer(line) ? json_integer_value(line) : -1;
	const uint64_t id = number_of(node, "id");
	struct profile_node n = { .parent = parent,
				  .file = text_of(p, frame, "url"),
				  .function = text_of(p, frame, "functionName"),
				  .bytes = number_of(node, "selfSize") };

	if (n.file && from_0 >= 0 && from_0 < INT32_MAX)
		n.line = (uint32_t)from_0 + 1;
	*hash_put(by_id, &id, sizeof(id), NULL) = p->nodes.n;
	p->bytes += n.bytes;
	vec_push(&p->nodes, n);
}

/* Where the walk is: child `at` of a node comes next. */
struct step {
	const json_t *children;
	size_t at;
	uint32_t index;
};

static bool walk_profile(struct sites_profile *p, const json_t *head, struct hash *by_id)
{
	struct step steps[DEPTH_MOST];
	uint32_t depth = 1;

	add_node(p, head, 0, by_id);
	steps[0] = (struct step){ json_object_get(head, "children"), 0, 0 };
	while (depth) {
		struct step *s = &steps[depth - 1];
		const json_t *child = json_array_get(s->children, s->at++);

		if (!child) {
			depth--;
			continue;
		}
		if (depth == DEPTH_MOST || p->nodes.n == NODES_MOST || !json_is_object(child))
			return false;
		add_node(p, child, s->index, by_id);
		steps[depth++] =
			(struct step){ json_object_get(child, "children"), 0, p->nodes.n - 1 };
	}
	return true;
}

struct err *sites_profile_read(const json_t *result, uint64_t interval, struct sites_profile *ret)
{
	const json_t *profile = json_object_get(result, "profile"),
		     *head = json_object_get(profile, "head"),
		     *samples = json_object_get(profile, "samples"), *sample;
	struct hash by_id = { 0 };
	bool good;
	size_t i;

	*ret = (struct sites_profile){ .interval = interval };
	intern_init(&ret->texts);
	good = json_is_object(head) && walk_profile(ret, head, &by_id);
	json_array_foreach((json_t *)samples, i, sample)
	{
		const uint64_t id = number_of(sample, "nodeId");
		const uint64_t *at = hash_get(&by_id, &id, sizeof(id));

		if (!good || !at)
			continue;
		ret->nodes.v[*at].samples++;
		ret->samples++;
	}
	hash_fini(&by_id);
	if (good)
		return NULL;
	sites_profile_fini(ret);
	return err_new(EPROTO, "the profile of the process has another form");
}

void sites_profile_fini(struct sites_profile *p)
{
	intern_fini(&p->texts);
	vec_fini(&p->nodes);
}

/* --- rows --- */

struct profile_row {
	uint32_t file, line, function;
	uint64_t samples, bytes;
};
typedef VEC(struct profile_row) profile_rows;

/* Returns the innermost function that has a file: one that is built into V8 is where its caller
 * is. */
static const struct profile_node *node_shown(const struct sites_profile *p, uint32_t i)
{
	while (!p->nodes.v[i].file && p->nodes.v[i].parent != i)
		i = p->nodes.v[i].parent;
	return &p->nodes.v[i];
}

static int profile_most_first(const void *x, const void *y)
{
	const struct profile_row *a = x, *b = y;

	return COMPARE(b->bytes, a->bytes)
		       ?: COMPARE(b->samples, a->samples)
				  ?: COMPARE(a->file, b->file) ?: COMPARE(a->line, b->line);
}

static void profile_make_rows(const struct sites_profile *p, profile_rows *ret)
{
	struct hash by_place = { 0 };

	for (uint32_t i = 0; i < p->nodes.n; i++) {
		const struct profile_node *from = &p->nodes.v[i], *n = node_shown(p, i);
		const uint32_t key[3] = { n->file, n->line, n->file ? n->function : 0 };
		bool is_new;
		uint64_t *at;

		if (!from->bytes && !from->samples)
			continue;
		at = hash_put(&by_place, key, sizeof(key), &is_new);
		if (is_new) {
			*at = ret->n;
			vec_push(ret, ((struct profile_row){ key[0], key[1], key[2], 0, 0 }));
		}
		ret->v[*at].bytes += from->bytes;
		ret->v[*at].samples += from->samples;
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), profile_most_first);
	hash_fini(&by_place);
}

static const char *function_shown(const struct sites_profile *p, uint32_t function)
{
	return function ? intern_text(&p->texts, function) : "(anonymous)";
}

static void profile_json(const struct sites_profile *p, const profile_rows *rows, uint32_t most,
			 struct out *o)
{
	out_str(o, "{\"type\":\"allocated\"");
	heap_json_text(o, "language", "javascript");
	heap_json_text(o, "live", "reachable");
	heap_json_number(o, "interval", p->interval);
	heap_json_number(o, "live_samples", p->samples);
	heap_json_number(o, "live_bytes", p->bytes);
	out_str(o, "}\n");
	for (uint32_t i = 0; i < rows->n && i < most; i++) {
		const struct profile_row *r = &rows->v[i];

		out_str(o, "{\"type\":\"allocated-site\"");
		heap_json_number(o, "live_samples", r->samples);
		heap_json_number(o, "live_bytes", r->bytes);
		if (r->file) {
			heap_json_text(o, "file", intern_text(&p->texts, r->file));
			heap_json_number(o, "line", r->line);
			heap_json_text(o, "function", function_shown(p, r->function));
		}
		out_str(o, "}\n");
	}
}

static void profile_text(const struct sites_profile *p, const profile_rows *rows, uint32_t most,
			 struct out *o)
{
	out_printf(o,
		   "alive, of what was allocated while it was recorded; estimated from %llu "
		   "samples, one for each %llu bytes\n%14s %8s  FILE:LINE:FUNCTION\n",
		   (unsigned long long)p->samples, (unsigned long long)p->interval, "LIVE BYTES",
		   "SAMPLES");
	for (uint32_t i = 0; i < rows->n && i < most; i++) {
		const struct profile_row *r = &rows->v[i];

		out_printf(o, "%14llu %8llu  ", (unsigned long long)r->bytes,
			   (unsigned long long)r->samples);
		if (r->file)
			out_printf(o, "%s:%u:%s\n", intern_text(&p->texts, r->file), r->line,
				   function_shown(p, r->function));
		else
			out_str(o, "[javascript]\n");
	}
	if (rows->n > most)
		out_printf(o, "%14s and %u more lines\n", "", rows->n - most);
}

void sites_profile_show(const struct sites_profile *p, uint32_t most, bool json, struct out *o)
{
	profile_rows rows = { 0 };

	profile_make_rows(p, &rows);
	(json ? profile_json : profile_text)(p, &rows, most, o);
	vec_fini(&rows);
}

/* --- by stack --- */

static uint32_t profile_frame(const struct sites_profile *p, const struct profile_node *n,
			      struct stacktree *t)
{
	const char *function = function_shown(p, n->function);
	cleanup_free char *text = n->file ? xasprintf("%s:%u:%s",
						      path_base(intern_text(&p->texts, n->file)),
						      n->line, function)
					  : xstrdup(function);

	return sites_tree_text(t, frame_kind_of_language("javascript"), text);
}

/* Finds the nodes that have bytes, or below which others have some. */
static bool *nodes_with_bytes(const struct sites_profile *p)
{
	bool *has = xcalloc(p->nodes.n + 1ull, sizeof(*has));

	for (uint32_t i = p->nodes.n; i--;) {
		has[i] |= p->nodes.v[i].bytes > 0;
		has[p->nodes.v[i].parent] |= has[i];
	}
	return has;
}

/* A parent comes before its children. So each node is named once, and is added below its parent's
 * node in the tree: a node's whole stack may have DEPTH_MOST frames. */
void sites_profile_stacktree(const struct sites_profile *p, struct stacktree *ret)
{
	cleanup_free uint32_t *place = xcalloc(p->nodes.n + 1ull, sizeof(*place));
	cleanup_free bool *has = nodes_with_bytes(p);

	for (uint32_t i = 0; i < p->nodes.n; i++) {
		const struct profile_node *n = &p->nodes.v[i];
		char unknown[] = "[javascript]";
		uint32_t to;

		if (!has[i])
			continue;
		/* the root is no function */
		place[i] = n->parent == i ? STACKTREE_ROOT
					  : stacktree_child(ret, place[n->parent],
							    profile_frame(p, n, ret));
		if (!n->bytes)
			continue;
		to = n->parent != i
			     ? place[i]
			     : stacktree_child(ret, STACKTREE_ROOT,
					       sites_tree_text(ret,
							       frame_kind_of_language("javascript"),
							       unknown));
		stacktree_count(ret, to, n->bytes);
	}
	stacktree_finish(ret);
}
