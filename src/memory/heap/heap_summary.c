/* Shows the sums of a heap, and the leak suspects with the way from a root to each.
 *
 *	leak.hprof: Java heap dump, 551324 objects, 25.6 MB, 1433 classes
 *	reachable from 1702 roots: 549001 objects, 25.5 MB
 */
#include "memory/heap/heap.h"
#include "render/json.h"

enum { WAY_MAX = 40 }; /* objects of a way that are shown */

void heap_put_percent(struct out *o, uint64_t part, uint64_t all)
{
	out_printf(o, "%.1f %%", all ? 100.0 * (double)part / (double)all : 0.0);
}

void heap_put_object(struct graph *g, graph_id id, struct out *o)
{
	uint32_t class = graph_is_class(g, id);

	if (class != GRAPH_NONE)
		out_printf(o, "class %s", graph_class_text(g, class));
	else
		out_str(o, graph_class_text(g, graph_class_of(g, id)));
	out_printf(o, " @%#llx", (unsigned long long)graph_address(g, id));
}

void heap_json_text(struct out *o, const char *name, const char *text)
{
	out_printf(o, ",\"%s\":", name);
	json_string(o, text, strlen(text));
}

void heap_json_number(struct out *o, const char *name, uint64_t v)
{
	out_printf(o, ",\"%s\":%llu", name, (unsigned long long)v);
}

void heap_json_address(struct out *o, const char *name, uint64_t v)
{
	out_printf(o, ",\"%s\":\"%#llx\"", name, (unsigned long long)v);
}

static void put_sum(struct out *o, uint64_t n, uint64_t bytes)
{
	out_printf(o, "%llu object%s, ", (unsigned long long)n, n == 1 ? "" : "s");
	out_size(o, bytes);
}

static void summary_json(struct graph *g, const struct heap_shown *how, struct out *o)
{
	const struct graph_totals *t = graph_totals(g);
	const struct graph_reach *r = graph_reach(g);

	out_str(o, "{\"type\":\"heap\"");
	heap_json_text(o, "name", how->name);
	heap_json_text(o, "source", how->source->name);
	heap_json_number(o, "objects", t->objects);
	heap_json_number(o, "bytes", t->bytes);
	heap_json_number(o, "references", t->edges);
	heap_json_number(o, "weak_references", t->weak_edges);
	heap_json_number(o, "classes", graph_classes(g));
	heap_json_number(o, "roots", t->roots);
	heap_json_number(o, "reachable", r->objects);
	heap_json_number(o, "reachable_bytes", r->bytes);
	heap_json_number(o, "weakly_reachable", r->weak);
	heap_json_number(o, "weakly_reachable_bytes", r->weak_bytes);
	heap_json_number(o, "unreachable", r->unreachable);
	heap_json_number(o, "unreachable_bytes", r->unreachable_bytes);
	heap_json_number(o, "dropped_references", t->dangling);
	heap_json_number(o, "repeated_objects", t->repeated);
	heap_json_number(o, "pause_ns", how->pause_ns);
	out_printf(o, ",\"forked\":%s", how->whole && !*how->whole ? "true" : "false");
	if (how->whole && *how->whole)
		heap_json_text(o, "not_forked", how->whole);
	out_str(o, ",\"remarks\":[");
	for (uint32_t i = 0; i < graph_remarks(g); i++) {
		out_str(o, i ? "," : "");
		json_string(o, graph_remark_text(g, i), strlen(graph_remark_text(g, i)));
	}
	out_str(o, "]}\n");
}

void heap_show_summary(struct graph *g, const struct heap_shown *how, struct out *o)
{
	const struct graph_totals *t = graph_totals(g);
	const struct graph_reach *r = graph_reach(g);

	if (how->json) {
		summary_json(g, how, o);
		return;
	}
	out_printf(o, "%s: %s, ", how->name, how->source->what);
	put_sum(o, t->objects, t->bytes);
	if (how->pause_ns)
		out_printf(o, "; stopped for %.1f ms", (double)how->pause_ns / 1e6);
	if (how->whole && *how->whole)
		out_printf(o, ", not copied by a fork: %s", how->whole);
	out_printf(o, "\nreachable from %llu roots: ", (unsigned long long)t->roots);
	put_sum(o, r->objects, r->bytes);
	if (r->weak) {
		out_str(o, "; only by weak references: ");
		put_sum(o, r->weak, r->weak_bytes);
	}
	if (r->unreachable) {
		out_str(o, "; not at all: ");
		put_sum(o, r->unreachable, r->unreachable_bytes);
	}
	out_char(o, '\n');
}

static bool is_object(void *arg, graph_id id)
{
	return *(graph_id *)arg == id;
}

static void put_way(struct graph *g, graph_id id, const struct heap_shown *how, struct out *o)
{
	struct graph_paths p;
	char buf[32];

	graph_paths(g, is_object, &id, &p);
	out_str(o, how->json ? ",\"path\":[" : "   held by: ");
	for (uint32_t i = 0; i < p.nodes.n && i < WAY_MAX; i++) {
		const struct graph_path_node *n = &p.nodes.v[i];
		const char *label = graph_label_text(g, n->label, buf, sizeof(buf));
		const char *class = graph_class_text(g, n->class);
		uint32_t is_class = graph_is_class(g, n->id);

		if (is_class != GRAPH_NONE)
			class = graph_class_text(g, is_class);
		if (n->label & GRAPH_LABEL_INDEX)
			label = "[]";
		if (how->json) {
			out_str(o, i ? ",{\"type\":\"step\"" : "{\"type\":\"step\"");
			heap_json_text(o, "class", class);
			heap_json_text(o, n->root ? "root" : "field", n->root ?: label);
			out_char(o, '}');
			continue;
		}
		out_str(o, i ? " -> " : "");
		if (n->root)
			out_printf(o, "%s: ", n->root);
		else if (*label)
			out_printf(o, "%s: ", label);
		out_printf(o, is_class != GRAPH_NONE ? "class %s" : "%s", class);
		if (n->n > 1)
			out_printf(o, " (%llu in a row)", (unsigned long long)n->n);
	}
	if (p.nodes.n > WAY_MAX && !how->json)
		out_str(o, " ...");
	out_str(o, how->json ? "]" : "\n");
	graph_paths_fini(&p);
}

static void suspect_json(struct graph *g, const struct graph_suspect *s,
			 const struct heap_shown *how, struct out *o)
{
	out_str(o, "{\"type\":\"suspect\"");
	heap_json_text(o, "class", graph_class_text(g, s->class));
	heap_json_number(o, "objects", s->n);
	heap_json_number(o, "retained", s->retained);
	if (s->id != GRAPH_NONE) {
		heap_json_address(o, "address", graph_address(g, s->id));
		heap_json_address(o, "point", graph_address(g, s->point));
		heap_json_text(o, "point_class", graph_class_text(g, graph_class_of(g, s->point)));
		heap_json_number(o, "point_retained", s->point_retained);
		heap_json_number(o, "point_holds", s->point_held);
		heap_json_text(o, "mostly", graph_class_text(g, s->below.class));
		heap_json_number(o, "mostly_objects", s->below.n);
		heap_json_number(o, "mostly_bytes", s->below.bytes);
		put_way(g, s->point, how, o);
	}
	out_str(o, "}\n");
}

static void suspect_text(struct graph *g, const struct graph_suspect *s,
			 const struct heap_shown *how, struct out *o)
{
	heap_put_percent(o, s->retained, graph_reach(g)->bytes);
	out_str(o, ", ");
	out_size(o, s->retained);
	if (s->id == GRAPH_NONE) {
		out_printf(o, ": %llu objects of %s, which only roots hold\n",
			   (unsigned long long)s->n, graph_class_text(g, s->class));
		return;
	}
	out_str(o, ": ");
	heap_put_object(g, s->id, o);
	if (s->point != s->id) {
		out_str(o, "\n   accumulates in ");
		heap_put_object(g, s->point, o);
		out_str(o, ", ");
		out_size(o, s->point_retained);
	}
	if (s->point_held)
		out_printf(o, "\n   which holds %llu object%s", (unsigned long long)s->point_held,
			   s->point_held == 1 ? "" : "s");
	out_printf(o, "; the most are %llu of %s, ", (unsigned long long)s->below.n,
		   graph_class_text(g, s->below.class));
	out_size(o, s->below.bytes);
	out_char(o, '\n');
	put_way(g, s->point, how, o);
}

void heap_show_suspects(struct graph *g, const struct heap_shown *how, struct out *o)
{
	struct graph_suspects s;

	graph_suspects(g, how->percent, &s);
	if (!how->json && s.n)
		out_printf(o, "\nleak suspects, which retain %u %% or more:\n", how->percent);
	if (!how->json && !s.n)
		out_printf(o, "\nno leak suspects: nothing retains %u %% or more\n", how->percent);
	for (uint32_t i = 0; i < s.n; i++) {
		if (how->json) {
			suspect_json(g, &s.v[i], how, o);
			continue;
		}
		out_printf(o, "%u. ", i + 1);
		suspect_text(g, &s.v[i], how, o);
	}
	graph_suspects_free(&s);
}
