/* Writes a stack tree as text. */
#define _GNU_SOURCE
#include "render/picture_flame.h"
#include "render/folded.h"
#include "render/stacksink.h"

struct pending {
	uint32_t node, indent; /* columns */
	bool branch;           /* one of several children */
};

struct tree_writer {
	const struct stacktree *t;
	uint64_t all, least;
	VEC(struct pending) pending; /* nodes still to be written, the next one last */
	struct out name;             /* depth of the frame being written */
	uint64_t hidden, hidden_frames;
};

static int lightest_first(const void *a, const void *b, void *arg)
{
	const struct stacktree *t = arg;
	const struct pending *pa = a, *pb = b;
	uint64_t x = t->nodes.v[pa->node].total, y = t->nodes.v[pb->node].total;

	/* writes the first in the tree first, of equal ones */
	return x != y ? (x < y ? -1 : 1) : (pa->node < pb->node) - (pa->node > pb->node);
}

/* Adds the children of a node that are shown, the heaviest last. */
static void push_children(struct tree_writer *w, uint32_t node, uint32_t indent)
{
	const struct stacktree *t = w->t;
	uint32_t first = w->pending.n;

	for (uint32_t k = t->nodes.v[node].first; k != STACKTREE_NONE; k = t->nodes.v[k].next) {
		if (t->nodes.v[k].total >= w->least) {
			vec_push(&w->pending, (struct pending){ k, indent, false });
			continue;
		}
		w->hidden += t->nodes.v[k].total;
		w->hidden_frames += t->nodes.v[k].size;
	}
	if (w->pending.n - first <= 1)
		return;
	qsort_r(w->pending.v + first, w->pending.n - first, sizeof(*w->pending.v), lightest_first,
		(void *)t);
	for (uint32_t i = first; node && i < w->pending.n; i++) {
		w->pending.v[i].indent += 2;
		w->pending.v[i].branch = true;
	}
}

static void put_percent(struct tree_writer *w, struct out *o, uint64_t n)
{
	if (n)
		out_printf(o, "%6.1f%% ", 100.0 * (double)n / (double)w->all);
	else
		out_str(o, "        ");
}

void tree_write(const struct stacktree *t, double min_percent, struct out *o)
{
	struct tree_writer w = { .t = t, .all = t->nodes.v[STACKTREE_ROOT].total };
	double least = (double)w.all * min_percent / 100;

	if (!w.all)
		return;
	w.least = least < 1 ? 1 : (uint64_t)least;
	out_str(o, "  total    self   count  frame\n");
	push_children(&w, STACKTREE_ROOT, 0);
	while (w.pending.n) {
		struct pending p = w.pending.v[--w.pending.n];
		const struct stacktree_node *n = &t->nodes.v[p.node];

		put_percent(&w, o, n->total);
		put_percent(&w, o, n->self);
		out_printf(o, "%7llu  ", (unsigned long long)n->total);
		out_fill(o, ' ', p.branch ? p.indent - 2 : p.indent);
		out_str(o, p.branch ? "- " : "");
		w.name.n = 0;
		folded_frame(stacktree_frame_of(t, p.node), &w.name);
		flame_shown(o, w.name.v, w.name.n);
		out_char(o, '\n');
		push_children(&w, p.node, n->depth == 1 ? p.indent + 2 : p.indent);
	}
	if (w.hidden)
		out_printf(o, "%llu frames of less than %g%% are not shown (%llu samples)\n",
			   (unsigned long long)w.hidden_frames, min_percent,
			   (unsigned long long)w.hidden);
	out_fini(&w.name);
	vec_fini(&w.pending);
}
