/* Writes a stack tree as folded text and as JSON. */
#define _GNU_SOURCE
#include "render/folded.h"

#include "base/utf8.h"
#include "render/json.h"

/* Steps of writing a node: its own line, or the lines below it. They need not follow each other:
 * "a" < "a-b" < "a;c". */
struct part {
	uint32_t node;
	bool below;
	uint32_t path; /* number of frames of the parent */
};

struct writer {
	const struct stacktree *t;
	VEC(struct part) parts; /* nodes still to be written, the next one last */
	VEC(uint32_t) path;     /* the nodes from below the root to the one being written */
};

static int part_compare(const void *a, const void *b, void *arg)
{
	const struct stacktree *t = arg;
	const struct part *pa = a, *pb = b;

	return stacktree_compare(stacktree_frame_of(t, pa->node), pa->below ? ';' : -1,
				 stacktree_frame_of(t, pb->node), pb->below ? ';' : -1);
}

static bool has_self(const struct stacktree *t, uint32_t node)
{
	return t->nodes.v[node].self || (t->differential && t->before.v[node].self);
}

/* Adds the children of a node, the first to be written last. */
static void push_children(struct writer *w, uint32_t node)
{
	const struct stacktree *t = w->t;
	uint32_t first = w->parts.n, n;
	bool sorted = true;

	for (uint32_t k = t->nodes.v[node].first; k != STACKTREE_NONE; k = t->nodes.v[k].next) {
		if (has_self(t, k))
			vec_push(&w->parts, (struct part){ k, false, w->path.n });
		if (t->nodes.v[k].first != STACKTREE_NONE)
			vec_push(&w->parts, (struct part){ k, true, w->path.n });
	}
	n = w->parts.n - first;
	for (uint32_t i = first + 1; i < w->parts.n && sorted; i++)
		sorted = part_compare(&w->parts.v[i - 1], &w->parts.v[i], (void *)t) <= 0;
	if (!sorted)
		qsort_r(w->parts.v + first, n, sizeof(*w->parts.v), part_compare, (void *)t);
	for (uint32_t i = 0; i < n / 2; i++) {
		struct part p = w->parts.v[first + i];

		w->parts.v[first + i] = w->parts.v[first + n - 1 - i];
		w->parts.v[first + n - 1 - i] = p;
	}
}

/* Returns the bytes of a frame's text that are written, and whether ".." stands behind them. */
static uint32_t name_length(const struct stacktree_frame *f, uint32_t name_most, bool *ret_cut)
{
	*ret_cut = f->len > name_most;
	return *ret_cut ? utf8_cut(f->text, name_most) : f->len;
}

uint64_t folded_size(const struct stacktree *t, uint32_t name_most)
{
	cleanup_free uint64_t *path = xcalloc(t->nodes.n, sizeof(*path));
	uint64_t size = 0;

	for (uint32_t i = 1; i < t->nodes.n; i++) { /* a parent comes before its children */
		const struct stacktree_frame *f = stacktree_frame_of(t, i);
		bool cut;
		const uint32_t n = name_length(f, name_most, &cut);

		path[i] = path[t->nodes.v[i].parent] + n + (cut ? 2 : 0) +
			  strlen(frame_mark(f->kind)) + 1;
		if (has_self(t, i) && __builtin_add_overflow(size, path[i], &size))
			return UINT64_MAX;
	}
	return size;
}

uint32_t folded_name_most(const struct stacktree *t, uint64_t most)
{
	uint32_t name_most = FOLDED_WHOLE;

	while (name_most && folded_size(t, name_most) > most)
		name_most = name_most == FOLDED_WHOLE     ? FOLDED_LONGEST
			    : name_most > FOLDED_SHORTEST ? name_most / 2
							  : 0;
	return name_most;
}

static void write_counts(const struct stacktree *t, struct out *o, uint32_t node)
{
	out_char(o, ' ');
	if (t->differential) {
		out_unsigned(o, t->before.v[node].self, 0);
		out_char(o, ' ');
	}
	out_unsigned(o, t->nodes.v[node].self, 0);
	out_char(o, '\n');
}

static void write_name(const struct stacktree_frame *f, uint32_t name_most, struct out *o)
{
	bool cut;

	out_mem(o, f->text, name_length(f, name_most, &cut));
	if (cut)
		out_str(o, "..");
	out_str(o, frame_mark(f->kind));
}

void folded_frame(const struct stacktree_frame *f, struct out *o)
{
	write_name(f, FOLDED_WHOLE, o);
}

void folded_write(const struct stacktree *t, uint32_t name_most, struct out *o)
{
	struct writer w = { .t = t };

	if (has_self(t, STACKTREE_ROOT))
		write_counts(t, o, STACKTREE_ROOT);
	push_children(&w, STACKTREE_ROOT);
	while (w.parts.n) {
		struct part p = w.parts.v[--w.parts.n];

		w.path.n = p.path;
		vec_push(&w.path, p.node);
		if (p.below) {
			push_children(&w, p.node);
			continue;
		}
		/* A name may have 64 kB, and stand in a stack many thousand times. So a line is
		 * never put together in memory. */
		for (uint32_t i = 0; i < w.path.n; i++) {
			if (i)
				out_char(o, ';');
			write_name(stacktree_frame_of(t, w.path.v[i]), name_most, o);
		}
		write_counts(t, o, p.node);
	}
	vec_fini(&w.parts);
	vec_fini(&w.path);
}

/* --- JSON --- */

/* Levels of frames in a part. The whole nests to about twice as many levels, which readers with a
 * limit of 100 accept. */
enum { PART_DEPTH = 40 };

struct json_parts {
	const struct stacktree *t;
	struct out *o;
	struct out name; /* depth of the node being written */
	VEC(uint32_t)
	roots; /* nodes whose children stand in a part of their own, in the order of the parts */
};

/* Writes a node without its end. */
static void put_node(struct json_parts *j, uint32_t i)
{
	const struct stacktree_node *n = &j->t->nodes.v[i];
	struct out *o = j->o;

	j->name.n = 0;
	if (i != STACKTREE_ROOT)
		folded_frame(stacktree_frame_of(j->t, i), &j->name);
	else
		out_str(&j->name, "all");
	out_str(o, "{\"name\":");
	json_string(o, j->name.v, j->name.n);
	out_str(o, ",\"value\":");
	out_unsigned(o, n->total, 0);
	out_str(o, ",\"self\":");
	out_unsigned(o, n->self, 0);
	if (j->t->differential) {
		out_str(o, ",\"before\":");
		out_unsigned(o, j->t->before.v[i].total, 0);
		out_str(o, ",\"selfBefore\":");
		out_unsigned(o, j->t->before.v[i].self, 0);
	}
}

/* Writes the place of the children, behind put_node(). Returns the number of levels that it leaves
 * open: 1 for a list of them, else 0. */
static uint32_t put_children(struct json_parts *j, uint32_t i, bool apart)
{
	bool some = j->t->nodes.v[i].first != STACKTREE_NONE;

	if (some && !apart) {
		out_str(j->o, ",\"children\":[");
		return 1;
	}
	if (some) {
		out_str(j->o, ",\"part\":");
		out_unsigned(j->o, j->roots.n, 0);
		vec_push(&j->roots, i);
	}
	out_char(j->o, '}');
	return 0;
}

/* Like stacktree_next(), but stays below `root`, so that a stack of n frames, which has n /
 * PART_DEPTH parts, takes no more steps than n. */
static uint32_t next_below(const struct stacktree *t, uint32_t root, uint32_t i, bool skip)
{
	if (!skip && t->nodes.v[i].first != STACKTREE_NONE)
		return t->nodes.v[i].first;
	while (i != root && t->nodes.v[i].next == STACKTREE_NONE)
		i = t->nodes.v[i].parent;
	return i == root ? STACKTREE_NONE : t->nodes.v[i].next;
}

/* Writes a node and PART_DEPTH levels below it, without the '}' at its end. */
static void put_part(struct json_parts *j, uint32_t root)
{
	const struct stacktree *t = j->t;
	/* objects whose "]}" is not written yet */
	uint32_t base = t->nodes.v[root].depth, open = 0;
	bool apart = false;

	put_node(j, root);
	if (t->nodes.v[root].first == STACKTREE_NONE)
		return;
	open = put_children(j, root, false);
	for (uint32_t i = next_below(t, root, root, false); i != STACKTREE_NONE;
	     i = next_below(t, root, i, apart)) {
		uint32_t depth = t->nodes.v[i].depth - base;

		for (; open > depth; open--)
			out_str(j->o, "]}");
		if (t->nodes.v[t->nodes.v[i].parent].first != i)
			out_str(j->o, ",\n");
		put_node(j, i);
		apart = depth == PART_DEPTH;
		open = depth + put_children(j, i, apart);
	}
	for (; open > 1; open--)
		out_str(j->o, "]}");
	out_char(j->o, ']');
}

void stacktree_json(const struct stacktree *t, struct out *o)
{
	struct json_parts j = { .t = t, .o = o };

	put_part(&j, STACKTREE_ROOT);
	for (uint32_t i = 0; i < j.roots.n; i++) {
		out_str(o, i ? "},\n" : ",\n\"parts\":[");
		put_part(&j, j.roots.v[i]);
	}
	out_str(o, j.roots.n ? "}]}\n" : "}\n");
	out_fini(&j.name);
	vec_fini(&j.roots);
}
