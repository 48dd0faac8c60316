/* Shows the ways from the roots to objects, and what an object refers to and is referred to by. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/sorted.h"
#include "memory/heap/heap.h"

enum { INDENT_MAX = 60 };

/* Parses "0x7f..", "@7f.." as shown or a decimal number. */
static bool parse_address(const char *text, uint64_t *ret)
{
	int base = 10;
	char *end;

	if (*text == '@')
		text++;
	if (text[0] == '0' && text[1] == 'x')
		base = 16;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return !*end && !errno;
}

struct wanted {
	struct graph *g;
	graph_id id;   /* GRAPH_NONE: those of the classes */
	bool *classes; /* by number */
};

static bool is_wanted(void *arg, graph_id id)
{
	struct wanted *w = arg;

	return w->id == GRAPH_NONE ? w->classes[graph_class_of(w->g, id)] : w->id == id;
}

static struct err *wanted_find(struct wanted *w, const char *what)
{
	uint64_t address, n = 0;

	if (parse_address(what, &address)) {
		w->id = graph_find(w->g, address);
		return w->id == GRAPH_NONE ? err_new(ENOENT, "no object has the address %s", what)
					   : NULL;
	}
	w->id = GRAPH_NONE;
	w->classes = xcalloc((size_t)graph_classes(w->g) + 1, sizeof(*w->classes));
	for (uint32_t i = 0; i < graph_classes(w->g); i++) {
		w->classes[i] = !strcmp(graph_class_text(w->g, i), what);
		n += w->classes[i];
	}
	return n ? NULL
		 : err_new(ENOENT, "no class has the name %s (--histogram lists them)", what);
}

static int compare_path_rows(const void *x, const void *y, void *arg)
{
	const struct graph_paths *p = arg;
	const struct graph_path_node *a = &p->nodes.v[*(const uint32_t *)x],
				     *b = &p->nodes.v[*(const uint32_t *)y];

	return COMPARE(a->parent, b->parent) ?: COMPARE(b->wanted, a->wanted) ?: COMPARE(a->id, b->id);
}

static void put_path_node(struct graph *g, const struct graph_path_node *n, uint32_t depth,
			  const struct heap_shown *how, struct out *o)
{
	char buf[32];
	const char *label = n->label & GRAPH_LABEL_INDEX
				    ? "[]"
				    : graph_label_text(g, n->label, buf, sizeof(buf));
	uint32_t is_class = n->n == 1 ? graph_is_class(g, n->id) : GRAPH_NONE;
	const char *class = graph_class_text(g, is_class != GRAPH_NONE ? is_class : n->class);

	if (how->json) {
		out_str(o, "{\"type\":\"path\"");
		heap_json_number(o, "depth", depth);
		heap_json_text(o, "class", class);
		heap_json_text(o, n->root ? "root" : "field", n->root ?: label);
		heap_json_number(o, "objects", n->n);
		heap_json_number(o, "leads_to", n->wanted);
		heap_json_number(o, "leads_to_bytes", n->bytes);
		heap_json_address(o, "address", graph_address(g, n->id));
		out_str(o, "}\n");
		return;
	}
	out_printf(o, "%10llu %12llu  ", (unsigned long long)n->wanted,
		   (unsigned long long)n->bytes);
	out_fill(o, ' ', 2 * (depth < INDENT_MAX ? depth : INDENT_MAX));
	if (n->root)
		out_printf(o, "[%s] ", n->root);
	else if (*label)
		out_printf(o, "%s: ", label);
	out_printf(o, is_class != GRAPH_NONE ? "class %s" : "%s", class);
	if (n->n > 1)
		out_printf(o, " (%llu)", (unsigned long long)n->n);
	else
		out_printf(o, " @%#llx", (unsigned long long)graph_address(g, n->id));
	out_char(o, '\n');
}

/* Writes the tree from the roots down, the way to most objects first. */
void heap_put_paths(struct graph *g, struct graph_paths *p, const struct heap_shown *how,
		    struct out *o)
{
	uint32_t n = p->nodes.n, shown = 0, depth = 0, at;
	cleanup_free uint32_t *order = xmalloc(((size_t)n + 1) * sizeof(*order));
	cleanup_free uint32_t *first =
		xmalloc(((size_t)n + 1) * sizeof(*first)); /* child, in order[] */
	cleanup_free uint32_t *place =
		xmalloc(((size_t)n + 1) * sizeof(*place)); /* inverse of order */

	for (uint32_t i = 0; i < n; i++) {
		order[i] = i;
		first[i] = n;
	}
	qsort_r(order, n, sizeof(*order), compare_path_rows, p);
	for (uint32_t i = 0; i < n; i++)
		place[order[i]] = i;
	for (uint32_t i = n; i-- > 0;)
		if (p->nodes.v[order[i]].parent != GRAPH_NONE)
			first[p->nodes.v[order[i]].parent] = i;
	/* Those that begin at roots are at the end, by GRAPH_NONE. */
	at = partition_point(n, i, p->nodes.v[order[i]].parent != GRAPH_NONE);
	while (at < n && shown < how->most) {
		uint32_t node = order[at];

		put_path_node(g, &p->nodes.v[node], depth, how, o);
		shown++;
		if (first[node] < n) {
			at = first[node];
			depth++;
			continue;
		}
		for (;;) {
			uint32_t parent = p->nodes.v[node].parent;

			if (at + 1 < n && p->nodes.v[order[at + 1]].parent == parent) {
				at++;
				break;
			}
			if (parent == GRAPH_NONE) {
				at = n;
				break;
			}
			node = parent;
			at = place[node];
			depth--;
		}
	}
	if (!how->json && shown < n)
		out_printf(o, "... and %u more steps (-n)\n", n - shown);
}

struct err *heap_show_paths(struct graph *g, const char *what, const struct heap_shown *how,
			    struct out *o)
{
	struct wanted w = { .g = g };
	struct graph_paths p;
	struct err *e = wanted_find(&w, what);

	if (e) {
		free(w.classes);
		return e;
	}
	graph_paths(g, is_wanted, &w, &p);
	if (!how->json) {
		out_printf(o, "%llu object%s of %s that roots reach", (unsigned long long)p.wanted,
			   p.wanted == 1 ? "" : "s", what);
		if (p.without)
			out_printf(o, ", and %llu that no root reaches",
				   (unsigned long long)p.without);
		out_printf(o, "\n%10s %12s  PATH\n", "LEADS TO", "BYTES");
	}
	heap_put_paths(g, &p, how, o);
	graph_paths_fini(&p);
	free(w.classes);
	return NULL;
}

static void put_refs(struct graph *g, struct graph_walk w, const char *what,
		     const struct heap_shown *how, struct out *o)
{
	static const char *const strengths[] = { "", "weak ", "soft ", "phantom " };
	static const char *const json_strengths[] = { "strong", "weak", "soft", "phantom" };
	uint64_t n = w.end - w.at + w.weak_end - w.weak;
	struct graph_edge_to e;
	char buf[32];

	if (!how->json)
		out_printf(o, "%s %llu:\n", what, (unsigned long long)n);
	for (uint32_t shown = 0; shown < how->most && graph_walk_next(&w, &e); shown++) {
		const char *label = graph_label_text(g, e.label, buf, sizeof(buf));

		if (how->json) {
			out_printf(o, "{\"type\":\"%s\"", w.in ? "referrer" : "reference");
			heap_json_address(o, "address", graph_address(g, e.id));
			heap_json_text(o, "class", graph_class_text(g, graph_class_of(g, e.id)));
			heap_json_text(o, "field", label);
			heap_json_text(o, "strength", json_strengths[e.strength]);
			heap_json_number(o, "size", graph_size(g, e.id));
			heap_json_number(o, "retained", graph_retained(g, e.id));
			out_str(o, "}\n");
			continue;
		}
		out_printf(o, "%14llu  %s%s%s", (unsigned long long)graph_retained(g, e.id),
			   strengths[e.strength], label, *label ? ": " : "");
		heap_put_object(g, e.id, o);
		out_char(o, '\n');
	}
	if (n > how->most && !how->json)
		out_printf(o, "... and %llu more (-n)\n", (unsigned long long)(n - how->most));
}

struct err *heap_show_refs(struct graph *g, const char *text, const struct heap_shown *how,
			   struct out *o)
{
	uint64_t address;
	graph_id id;
	const char *root;

	if (!parse_address(text, &address))
		return err_new(EINVAL, "not an address: %s", text);
	id = graph_find(g, address);
	if (id == GRAPH_NONE)
		return err_new(ENOENT, "no object has the address %s", text);
	root = graph_root_kind(g, id);
	if (how->json) {
		out_str(o, "{\"type\":\"object\"");
		heap_json_address(o, "address", graph_address(g, id));
		heap_json_text(o, "class", graph_class_text(g, graph_class_of(g, id)));
		heap_json_number(o, "size", graph_size(g, id));
		heap_json_number(o, "retained", graph_retained(g, id));
		if (graph_dominator(g, id) != GRAPH_NONE)
			heap_json_address(o, "dominator", graph_address(g, graph_dominator(g, id)));
		if (root)
			heap_json_text(o, "root", root);
		out_str(o, "}\n");
	} else {
		heap_put_object(g, id, o);
		out_printf(o, ", %llu bytes, retains %llu%s%s\n",
			   (unsigned long long)graph_size(g, id),
			   (unsigned long long)graph_retained(g, id), root ? "; a root: " : "",
			   root ?: "");
		if (graph_dominator(g, id) != GRAPH_NONE) {
			out_str(o, "dominated by ");
			heap_put_object(g, graph_dominator(g, id), o);
			out_char(o, '\n');
		}
	}
	put_refs(g, graph_out(g, id), "refers to", how, o);
	put_refs(g, graph_in(g, id), "referred to by", how, o);
	return NULL;
}
