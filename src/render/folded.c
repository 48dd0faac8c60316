#define _GNU_SOURCE
#include "render/folded.h"

#include "render/json.h"

/* What of a node is written: its own line, or the lines below it. They need not stand together: "a" < "a-b" < "a;c". */
struct part {
	uint32_t node;
	bool below;
	size_t path; /* length of the text of the parent */
};

struct writer {
	const struct stacktree *t;
	VEC(struct part) parts; /* still to be written, the next one last */
	VEC(char) path;
};

static int part_compare(const void *a, const void *b, void *arg)
{
	const struct stacktree *t = arg;
	const struct part *pa = a, *pb = b;
	const struct stacktree_name *x = stacktree_name_of(t, pa->node),
				    *y = stacktree_name_of(t, pb->node);
	uint32_t min = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->text, y->text, min);
	int ca, cb;

	if (order)
		return order;
	/* behind the name: its next byte, the ';' before what is below, or the end of the line */
	ca = x->len > min ? (uint8_t)x->text[min] : pa->below ? ';' : -1;
	cb = y->len > min ? (uint8_t)y->text[min] : pb->below ? ';' : -1;
	return ca - cb;
}

static bool has_self(const struct stacktree *t, uint32_t node)
{
	return t->nodes.v[node].self || (t->differential && t->before.v[node].self);
}

/* The children of a node, so that the first to be written is the last. */
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

static void append(struct writer *w, const char *s, size_t n)
{
	if (!n)
		return;
	vec_reserve(&w->path, n);
	memcpy(w->path.v + w->path.n, s, n);
	w->path.n += (uint32_t)n;
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

void folded_write(const struct stacktree *t, struct out *o)
{
	struct writer w = { .t = t };

	if (has_self(t, STACKTREE_ROOT))
		write_counts(t, o, STACKTREE_ROOT);
	push_children(&w, STACKTREE_ROOT);
	while (w.parts.n) {
		struct part p = w.parts.v[--w.parts.n];
		const struct stacktree_name *name = stacktree_name_of(t, p.node);

		w.path.n = (uint32_t)p.path;
		if (t->nodes.v[p.node].depth > 1)
			append(&w, ";", 1);
		append(&w, name->text, name->len);
		if (p.below) {
			push_children(&w, p.node);
			continue;
		}
		out_mem(o, w.path.v, w.path.n);
		write_counts(t, o, p.node);
	}
	vec_fini(&w.parts);
	vec_fini(&w.path);
}

void stacktree_json(const struct stacktree *t, struct out *o)
{
	uint32_t open = 0; /* objects whose "]}" is still to come */

	for (uint32_t i = 0; i != STACKTREE_NONE; i = stacktree_next(t, i, false)) {
		const struct stacktree_node *n = &t->nodes.v[i];
		const struct stacktree_name *name = stacktree_name_of(t, i);

		for (; open > n->depth; open--)
			out_str(o, "]}");
		if (i && t->nodes.v[n->parent].first != i)
			out_str(o, ",\n");
		out_str(o, "{\"name\":");
		if (i)
			json_string(o, name->text, name->len);
		else
			json_string(o, "all", 3);
		out_str(o, ",\"value\":");
		out_unsigned(o, n->total, 0);
		out_str(o, ",\"self\":");
		out_unsigned(o, n->self, 0);
		if (t->differential) {
			out_str(o, ",\"before\":");
			out_unsigned(o, t->before.v[i].total, 0);
			out_str(o, ",\"selfBefore\":");
			out_unsigned(o, t->before.v[i].self, 0);
		}
		if (n->first == STACKTREE_NONE) {
			out_char(o, '}');
		} else {
			out_str(o, ",\"children\":[");
			open = n->depth + 1;
		}
	}
	for (; open; open--)
		out_str(o, "]}");
	out_char(o, '\n');
}
