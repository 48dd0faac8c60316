/* src/memory/graph/: small graphs with known answers, and random ones against slow algorithms. */
#include <errno.h>

#include "unit.h"

#include "memory/graph/graph_private.h"

enum { RANDOM_GRAPHS = 300, MOST = 60 };

/* A graph that the test itself keeps. */
struct plain {
	uint32_t n, m, nroots;
	uint64_t address[MOST];
	uint64_t size[MOST];
	struct {
		uint32_t from, to;
		enum graph_strength strength;
	} edge[MOST * 8];
	uint32_t root[MOST];
};

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* Marks what the roots reach without the object `gone`. */
static void reach(const struct plain *p, uint32_t gone, bool *ret)
{
	bool more = true;

	memset(ret, 0, MOST);
	for (uint32_t i = 0; i < p->nroots; i++)
		ret[p->root[i]] = p->root[i] != gone;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < p->m; i++) {
			if (p->edge[i].strength || !ret[p->edge[i].from] || ret[p->edge[i].to] ||
			    p->edge[i].to == gone)
				continue;
			more = ret[p->edge[i].to] = true;
		}
	}
}

static void make_plain(struct plain *p, bool dense, bool ordered)
{
	p->n = 1 + below(MOST);
	p->m = below(p->n * (dense ? 6 : 2) + 1);
	p->nroots = below(p->n > 6 ? 6 : p->n) + 1;
	for (uint32_t i = 0; i < p->n; i++) {
		p->address[i] = 0x7f0000001000 + i * 24ull + (dense ? 0 : (uint64_t)below(8) << 40);
		p->size[i] = below(100) + 1;
	}
	if (!dense && !ordered)
		for (uint32_t i = 0; i < p->n; i++)
			p->address[i] ^= (uint64_t)i << 20;
	for (uint32_t i = 0; i < p->m; i++) {
		p->edge[i].from = below(p->n);
		p->edge[i].to = below(4) ? below(p->n) : (p->edge[i].from + 1) % p->n;
		p->edge[i].strength = below(10) ? GRAPH_STRONG : GRAPH_WEAK;
	}
	for (uint32_t i = 0; i < p->nroots; i++)
		p->root[i] = below(p->n);
}

static struct graph *graph_of(const struct plain *p, bool ordered)
{
	struct graph *g = graph_new(NULL);
	uint32_t order[MOST];

	graph_class_name(g, graph_class(g, 1), "Thing", 5);
	for (uint32_t i = 0; i < p->n; i++)
		order[i] = i;
	for (uint32_t i = p->n - 1; i && !ordered; i--) {
		uint32_t k = below(i + 1), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (uint32_t k = 0; k < p->n; k++) {
		uint32_t o = order[k];

		graph_object(g, p->address[o], graph_class(g, 1), p->size[o]);
		for (uint32_t i = 0; i < p->m; i++)
			if (p->edge[i].from == o && i % 5)
				graph_edge(g, p->address[p->edge[i].to], 0, p->edge[i].strength);
	}
	for (uint32_t i = 0; i < p->m; i += 5)
		graph_edge_from(g, p->address[p->edge[i].from], p->address[p->edge[i].to], 0,
				p->edge[i].strength);
	for (uint32_t i = 0; i < p->nroots; i++)
		graph_root(g, p->address[p->root[i]], "global");
	assert_null(graph_finish(g));
	return g;
}

static uint32_t known(const struct plain *p, const struct graph *g, graph_id id)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->address[i] == graph_address(g, id))
			return i;
	fail();
	return 0;
}

/* By the definition: an object dominates those that the roots do not reach without it. */
static void check_by_removal(const struct plain *p, struct graph *g)
{
	bool all[MOST], left[MOST];
	static bool dominates[MOST][MOST];

	reach(p, UINT32_MAX, all);
	for (uint32_t d = 0; d < p->n; d++) {
		uint64_t retained = 0;
		graph_id id = graph_find(g, p->address[d]);

		assert_int_equal(graph_address(g, id), p->address[d]);
		assert_int_equal(graph_reachable(g, id), all[d]);
		reach(p, d, left);
		for (uint32_t i = 0; i < p->n; i++) {
			dominates[d][i] = all[d] && all[i] && !left[i];
			if (dominates[d][i])
				retained += p->size[i];
		}
		assert_int_equal(graph_retained(g, id), retained);
	}
	/* The immediate one is dominated by all other dominators. */
	for (uint32_t i = 0; i < p->n; i++) {
		graph_id id = graph_find(g, p->address[i]), dom = graph_dominator(g, id);
		uint32_t expected = UINT32_MAX;

		for (uint32_t d = 0; d < p->n; d++) {
			bool nearest = d != i && dominates[d][i];

			for (uint32_t k = 0; k < p->n && nearest; k++)
				if (k != i && dominates[k][i] && !dominates[k][d])
					nearest = false;
			if (nearest)
				expected = d;
		}
		if (expected == UINT32_MAX)
			assert_int_equal(dom, GRAPH_NONE);
		else
			assert_int_equal(known(p, g, dom), expected);
	}
}

/* A second algorithm: the data-flow equations of Cooper, Harvey and Kennedy, as sets of bits. */
static void check_by_sets(const struct plain *p, struct graph *g)
{
	uint64_t dom[MOST];
	bool all[MOST], more = true;

	reach(p, UINT32_MAX, all);
	for (uint32_t i = 0; i < p->n; i++)
		dom[i] = UINT64_MAX;
	for (uint32_t i = 0; i < p->nroots; i++)
		dom[p->root[i]] = 1ull << p->root[i];
	while (more) {
		more = false;
		for (uint32_t i = 0; i < p->m; i++) {
			uint32_t from = p->edge[i].from, to = p->edge[i].to;
			uint64_t set = dom[to] & (dom[from] | 1ull << to);

			if (p->edge[i].strength || !all[from] || set == dom[to])
				continue;
			dom[to] = set;
			more = true;
		}
	}
	for (uint32_t i = 0; i < p->n; i++) {
		uint64_t chain = 0;

		if (!all[i])
			continue;
		for (graph_id id = graph_find(g, p->address[i]); id != GRAPH_NONE;
		     id = graph_dominator(g, id))
			chain |= 1ull << known(p, g, id);
		assert_int_equal(chain, dom[i]);
	}
}

static void check_walks(const struct plain *p, struct graph *g)
{
	struct graph_edge_to edge;
	uint32_t out = 0, in = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		graph_id id = graph_find(g, p->address[i]);
		uint32_t expected = 0, found = 0, referrers = 0;
		struct graph_walk w = graph_out(g, id);

		for (uint32_t k = 0; k < p->m; k++)
			expected += p->edge[k].from == i;
		while (graph_walk_next(&w, &edge))
			found++;
		assert_int_equal(found, expected);
		w = graph_in(g, id);
		while (graph_walk_next(&w, &edge)) {
			bool real = false;

			for (uint32_t k = 0; k < p->m; k++)
				real |= p->edge[k].to == i &&
					p->address[p->edge[k].from] == graph_address(g, edge.id) &&
					p->edge[k].strength == edge.strength;
			assert_true(real);
			referrers++;
		}
		out += found;
		in += referrers;
	}
	assert_int_equal(out, p->m);
	assert_int_equal(in, p->m);
}

static bool is_wanted(void *arg, graph_id id)
{
	(void)arg;
	return id % 3 == 0;
}

static void check_paths(const struct plain *p, struct graph *g)
{
	struct graph_paths paths;
	uint64_t wanted = 0;
	bool all[MOST];

	reach(p, UINT32_MAX, all);
	graph_paths(g, is_wanted, NULL, &paths);
	for (uint32_t i = 0; i < p->n; i++)
		wanted += all[i] && is_wanted(NULL, graph_find(g, p->address[i]));
	assert_int_equal(paths.wanted, wanted);
	for (uint32_t i = 0; i < paths.nodes.n; i++) {
		const struct graph_path_node *n = &paths.nodes.v[i];

		assert_true(n->parent == GRAPH_NONE || n->parent < i);
		if (n->parent == GRAPH_NONE)
			wanted -= n->wanted;
	}
	assert_int_equal(wanted, 0);
	graph_paths_fini(&paths);
}

static void random_graphs(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RANDOM_GRAPHS; i++) {
		struct plain p;
		struct graph *g;

		make_plain(&p, i & 1, i & 2);
		g = graph_of(&p, i & 2);
		assert_int_equal(graph_totals(g)->objects, p.n);
		check_by_removal(&p, g);
		check_by_sets(&p, g);
		check_walks(&p, g);
		check_paths(&p, g);
		graph_free(g);
	}
}

/* A list of a million objects, and a ladder between two of them: no recursion, and no quadratic
 * time. */
static void deep(void **state)
{
	enum { N = 1000000 };
	struct graph *g = graph_new(NULL);
	uint32_t class = graph_class(g, 7);
	struct graph_suspects s;
	struct graph_paths paths;
	struct graph_rows rows;

	(void)state;
	graph_class_name(g, class, "Node", 4);
	for (uint64_t i = 1; i <= N; i++) {
		graph_object(g, i * 16, class, 16);
		graph_edge(g, (i + 1) * 16, 0, GRAPH_STRONG);
		graph_edge(g, (i + 2) * 16, 0, GRAPH_STRONG);
		graph_edge(g, (i - 1) * 16, 0, GRAPH_STRONG);
		graph_edge(g, 16, 0, GRAPH_STRONG);
	}
	graph_root(g, 16, "global");
	assert_null(graph_finish(g));
	assert_int_equal(graph_totals(g)->dangling, 3); /* behind the last; 0 is no reference */
	assert_int_equal(graph_reach(g)->objects, N);
	assert_int_equal(graph_retained(g, 0), 16ull * N);
	assert_int_equal(graph_dominator(g, N - 1), 0);
	graph_histogram_retained(g, &rows);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.v[0].n, N);
	assert_int_equal(rows.v[0].retained, 16ull * N);
	graph_rows_free(&rows);
	graph_suspects(g, 20, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.v[0].point, 0);
	graph_suspects_free(&s);
	graph_paths(g, is_wanted, NULL, &paths);
	assert_int_equal(paths.nodes.n, 1); /* objects of one class in a row */
	assert_int_equal(paths.nodes.v[0].wanted, (N + 2) / 3);
	graph_paths_fini(&paths);
	graph_free(g);
}

static void weak_and_unreachable(void **state)
{
	struct graph *g = graph_new(NULL);
	uint32_t a = graph_class(g, 1), b = graph_class(g, 2);
	struct graph_rows rows;

	(void)state;
	graph_class_name(g, a, "A", 1);
	graph_class_name(g, b, "B", 1);
	graph_object(g, 0x1000, a, 8);
	graph_edge(g, 0x2000, 0, GRAPH_SOFT);
	graph_object(g, 0x2000, b, 100); /* softly, with what it holds */
	graph_edge(g, 0x3000, 0, GRAPH_STRONG);
	graph_object(g, 0x3000, b, 20);
	graph_edge(g, 0x5000, 0, GRAPH_PHANTOM);
	graph_object(g, 0x4000, b, 3); /* not at all */
	graph_edge(g, 0x1000, 0, GRAPH_STRONG);
	graph_object(g, 0x5000, b, 7); /* by a reference of the soft one */
	graph_root(g, 0x1000, "thread");
	assert_null(graph_finish(g));
	assert_int_equal(graph_reach(g)->objects, 1);
	assert_int_equal(graph_reach(g)->bytes, 8);
	assert_int_equal(graph_reach(g)->weak, 3);
	assert_int_equal(graph_reach(g)->weak_bytes, 127);
	assert_int_equal(graph_reach(g)->unreachable, 1);
	assert_int_equal(graph_reach(g)->unreachable_bytes, 3);
	assert_int_equal(graph_retained(g, graph_find(g, 0x2000)), 0);
	graph_histogram(g, GRAPH_UNREACHABLE, &rows);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.v[0].class, b);
	assert_int_equal(rows.v[0].n, 4);
	graph_rows_free(&rows);
	graph_free(g);
}

/* A graph that only counts has the same rows, whatever is added beside the objects. */
static void counts(void **state)
{
	struct graph *g = graph_new(&(struct graph_wanted){ .counts = true, .contents = true });
	uint32_t a = graph_class(g, 1), b = graph_class(g, 2), c = graph_class(g, 3);
	struct graph_rows rows;
	struct err *e;

	(void)state;
	graph_class_name(g, a, "A", 1);
	graph_object(g, 0x100, a, 10);
	graph_object_add(g, 5);
	graph_content(g, "text", 4);
	graph_edge(g, 0x200, 0, GRAPH_STRONG);
	graph_edge(g, 0x200, 0, GRAPH_WEAK);
	graph_edge_from(g, 0x100, 0x200, 0, GRAPH_STRONG);
	graph_root(g, 0x100, "thread");
	graph_object(g, 0x200, b, GRAPH_SIZE_OF_CLASS);
	graph_object(g, 0x300, b, GRAPH_SIZE_OF_CLASS);
	graph_object(g, 0x400, b, 1);
	graph_class_size(g, b, 1ull << 33);
	graph_count(g, a, 3, 30);
	(void)c;
	assert_null(graph_finish(g));
	assert_int_equal(graph_totals(g)->objects, 7);
	assert_int_equal(graph_totals(g)->bytes, 45 + (2ull << 33) + 1);
	graph_histogram(g, GRAPH_ALL, &rows);
	assert_int_equal(rows.n, 2);
	assert_int_equal(rows.v[0].class, b);
	assert_int_equal(rows.v[0].n, 3);
	assert_int_equal(rows.v[0].bytes, (2ull << 33) + 1);
	assert_int_equal(rows.v[1].class, a);
	assert_int_equal(rows.v[1].n, 4);
	assert_int_equal(rows.v[1].bytes, 45);
	assert_string_equal(graph_class_text(g, a), "A");
	assert_string_equal(graph_class_text(g, b), "class 0x2");
	graph_rows_free(&rows);
	graph_free(g);

	g = graph_new(&(struct graph_wanted){ .counts = true });
	graph_count(g, graph_class(g, 1), 2, UINT64_MAX);
	e = graph_finish(g);
	assert_non_null(e);
	assert_int_equal(e->code, EBADMSG);
	err_free(e);
	graph_free(g);
}

/* Instances hold their class without an edge; so a class that only they hold is theirs. */
static void classes(void **state)
{
	struct graph *g = graph_new(&(struct graph_wanted){ .labels = true });
	uint32_t of_classes = graph_class(g, 1), x = graph_class(g, 0xc0);
	struct graph_edge_to edge;
	struct graph_walk w;
	char buf[32];

	(void)state;
	graph_class_name(g, of_classes, "Class", 5);
	graph_class_object(g, x, 0xc0);
	graph_class_size(g, x, 24);
	graph_object(g, 0xc0, of_classes, 500);
	graph_edge(g, 0x300, graph_label(g, "cache", 5), GRAPH_STRONG);
	graph_object(g, 0x100, x, GRAPH_SIZE_OF_CLASS);
	graph_object(g, 0x100, of_classes, 9); /* the address is taken */
	graph_edge(g, 0x200, 0, GRAPH_STRONG);
	graph_object(g, 0x300, of_classes, 1ull << 33); /* larger than 32 bits */
	graph_edge(g, 0x9999, 0, GRAPH_STRONG);         /* to nothing */
	graph_edge(g, 0x100, GRAPH_LABEL_INDEX | 7, GRAPH_STRONG);
	graph_object(g, 0x200, x, GRAPH_SIZE_OF_CLASS);
	graph_edge(g, 0x100, graph_label(g, "next", 4), GRAPH_STRONG);
	graph_edge(g, 0xc0, graph_label(g, "kind", 4), GRAPH_WEAK);
	graph_root(g, 0x200, "thread");
	graph_root(g, 0x12345, "thread"); /* no object */
	assert_null(graph_finish(g));
	assert_int_equal(graph_totals(g)->objects, 4);
	assert_int_equal(graph_totals(g)->repeated, 1);
	assert_int_equal(graph_totals(g)->dangling, 2);
	assert_int_equal(graph_totals(g)->edges, 3);
	assert_int_equal(graph_totals(g)->bytes, 500 + 24 + 24 + (1ull << 33));
	assert_int_equal(graph_reach(g)->objects, 4);
	assert_int_equal(graph_dominator(g, graph_find(g, 0xc0)), graph_find(g, 0x200));
	assert_int_equal(graph_retained(g, graph_find(g, 0xc0)), 500 + (1ull << 33));
	assert_int_equal(graph_size(g, graph_find(g, 0x300)), 1ull << 33);
	assert_string_equal(graph_class_text(g, x), "class 0xc0");
	assert_int_equal(graph_is_class(g, graph_find(g, 0xc0)), x);
	assert_int_equal(graph_is_class(g, graph_find(g, 0x100)), GRAPH_NONE);
	assert_int_equal(graph_find(g, 0x104), GRAPH_NONE);
	assert_int_equal(graph_find(g, 0), GRAPH_NONE);
	assert_int_equal(graph_find(g, UINT64_MAX), GRAPH_NONE);
	w = graph_out(g, graph_find(g, 0xc0));
	assert_true(graph_walk_next(&w, &edge));
	assert_int_equal(graph_address(g, edge.id), 0x300);
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "cache");
	assert_false(graph_walk_next(&w, &edge));
	w = graph_in(g, graph_find(g, 0x100));
	assert_true(graph_walk_next(&w, &edge));
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "next");
	assert_true(graph_walk_next(&w, &edge));
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "[7]");
	assert_false(graph_walk_next(&w, &edge));
	w = graph_in(g, graph_find(g, 0xc0));
	assert_true(graph_walk_next(&w, &edge));
	assert_int_equal(edge.strength, GRAPH_WEAK);
	assert_string_equal(graph_label_text(g, edge.label, buf, sizeof(buf)), "kind");
	assert_false(graph_walk_next(&w, &edge));
	graph_free(g);
}

/* A holder of many, below a chain of single ones, beside small things. */
static void suspects(void **state)
{
	struct graph *g = graph_new(NULL);
	uint32_t item = graph_class(g, 2), other = graph_class(g, 3);
	struct graph_suspects s;

	(void)state;
	graph_class_name(g, item, "Item", 4);
	for (uint64_t i = 0; i < 3; i++) {
		graph_object(g, 0x1000 + i * 16, graph_class(g, 10 + i), 16);
		if (i < 2)
			graph_edge(g, 0x1010 + i * 16, 0, GRAPH_STRONG);
		else
			for (uint64_t k = 0; k < 1000; k++)
				graph_edge(g, 0x10000 + k * 64, 0, GRAPH_STRONG);
	}
	for (uint64_t k = 0; k < 1000; k++)
		graph_object(g, 0x10000 + k * 64, item, 64);
	for (uint64_t k = 0; k < 500; k++) {
		graph_object(g, 0x90000 + k * 64, other, 48);
		graph_root(g, 0x90000 + k * 64, "thread");
	}
	graph_root(g, 0x1000, "global");
	assert_null(graph_finish(g));
	graph_suspects(g, 20, &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(graph_address(g, s.v[0].id), 0x1000);
	assert_int_equal(s.v[0].retained, 64048);
	assert_int_equal(graph_address(g, s.v[0].point), 0x1020);
	assert_int_equal(s.v[0].point_retained, 64016);
	assert_int_equal(s.v[0].point_held, 1000);
	assert_int_equal(s.v[0].below.class, item);
	assert_int_equal(s.v[0].below.n, 1000);
	assert_int_equal(s.v[1].id, GRAPH_NONE);
	assert_int_equal(s.v[1].class, other);
	assert_int_equal(s.v[1].n, 500);
	assert_int_equal(s.v[1].retained, 24000);
	graph_suspects_free(&s);
	graph_suspects(g, 60, &s);
	assert_int_equal(s.n, 1);
	graph_suspects_free(&s);
	graph_free(g);
}

static void nothing(void **state)
{
	struct graph *g = graph_new(NULL);
	struct graph_rows rows;
	struct graph_suspects s;
	struct graph_paths paths;

	(void)state;
	graph_edge(g, 1, 0, GRAPH_STRONG);
	graph_root(g, 1, "x");
	assert_null(graph_finish(g));
	assert_int_equal(graph_totals(g)->objects, 0);
	assert_int_equal(graph_reach(g)->objects, 0);
	assert_int_equal(graph_find(g, 1), GRAPH_NONE);
	graph_histogram(g, GRAPH_ALL, &rows);
	assert_int_equal(rows.n, 0);
	graph_rows_free(&rows);
	graph_histogram_retained(g, &rows);
	assert_int_equal(rows.n, 0);
	graph_rows_free(&rows);
	graph_suspects(g, 20, &s);
	assert_int_equal(s.n, 0);
	graph_suspects_free(&s);
	graph_paths(g, is_wanted, NULL, &paths);
	assert_int_equal(paths.nodes.n, 0);
	graph_paths_fini(&paths);
	graph_free(g);
}

/* References to classes count: graph_dominators() has numbers of 32 bits for all. */
static void too_many_references(void **state)
{
	(void)state;
	for (uint32_t objects = 10; objects <= 11; objects++) {
		struct graph *g = graph_new(NULL);
		struct err *e;

		g->references_max = 100;
		for (uint32_t i = 0; i < objects; i++) {
			graph_object(g, 0x1000 + i * 8, graph_class(g, 1), 8);
			for (uint32_t k = 0; !i && k < 90; k++)
				graph_edge(g, 0x1000, GRAPH_LABEL_NONE, GRAPH_STRONG);
		}
		e = graph_finish(g);
		assert_int_equal(e ? e->code : 0, objects == 10 ? 0 : EFBIG);
		err_free(e);
		graph_free(g);
	}
}

static void duplicates(void **state)
{
	struct graph *g = graph_new(&(struct graph_wanted){ .contents = true });
	uint32_t s = graph_class(g, 1), t = graph_class(g, 2);
	struct graph_duplicate *v;
	char text[32];
	size_t n;

	(void)state;
	for (uint64_t i = 0; i < 5000; i++) {
		graph_object(g, 0x1000 + i * 32, s, 32);
		n = (size_t)snprintf(text, sizeof(text), "text %llu",
				     (unsigned long long)(i % 2500));
		graph_content(g, text, n);
	}
	graph_object(g, 0x900000, t, 32);
	graph_content(g, "text 1", 6); /* of another class */
	graph_object(g, 0x900100, s, 1000);
	graph_content(g, "text 7", 6);
	assert_null(graph_finish(g));
	n = graph_duplicates(g, &v);
	assert_int_equal(n, 2500);
	assert_int_equal(v[0].n, 3);
	assert_int_equal(v[0].bytes, 1064);
	assert_int_equal(v[0].length, 6);
	assert_memory_equal(v[0].head, "text 7", 6);
	assert_int_equal(v[1].bytes, 64);
	free(v);
	graph_free(g);
}

/* Numbers stay with their objects, whatever the order, and those of a repeated one go. */
static void values(void **state)
{
	struct graph *g = graph_new(&(struct graph_wanted){ .values = true });
	const uint64_t at[] = { 0x3000, 0x1000, 0x2000, 0x1000, 0x4000 };
	uint32_t class = graph_class(g, 7), other = graph_class(g, 8);
	const uint8_t *p;
	size_t n;

	(void)state;
	graph_class_field(g, other, false, 'J', graph_field_name(g, "other", 5), 0);
	graph_class_field(g, class, false, 'B', graph_field_name(g, "small", 5), 0);
	graph_class_field(g, class, true, 'I', graph_field_name(g, "fixed", 5), 4711);
	graph_class_field(g, class, false, 'S', graph_field_name(g, "big", 3), 0);
	for (uint8_t i = 0; i < ARRAY_SIZE(at); i++) {
		graph_object(g, at[i], class, 16);
		if (i == 4)
			continue;
		memset(graph_values(g, 1), i, 1);
		memset(graph_values(g, 2), i + 10, 2);
	}
	assert_null(graph_finish(g));
	for (uint8_t i = 0; i < 3; i++) {
		const uint8_t wanted[] = { i, i + 10, i + 10 };

		p = graph_values_of(g, graph_find(g, at[i]), &n);
		assert_int_equal(n, 3);
		assert_memory_equal(p, wanted, 3);
	}
	assert_null(graph_values_of(g, graph_find(g, at[4]), &n));
	assert_int_equal(n, 0);
	assert_int_equal(graph_fields(g, class, false), 2);
	assert_string_equal(graph_field_at(g, class, false, 0).name, "small");
	assert_int_equal(graph_field_at(g, class, false, 1).type, 'S');
	assert_int_equal(graph_fields(g, class, true), 1);
	assert_int_equal(graph_field_at(g, class, true, 0).value, 4711);
	assert_int_equal(graph_fields(g, other, true), 0);
	graph_free(g);
}

/* An array for which spare pages are enough, to the last one, has zeros and no more. */
static void spare_pages(void **state)
{
	enum { HUGE = 2 << 20, PAGE = 4096 };

	(void)state;
	for (size_t n = 2 * HUGE - PAGE - 100; n <= 4 * HUGE; n += HUGE) {
		struct graph_memory m = { 0 };
		char *p = graph_alloc(&m, 4 * HUGE);

		memset(p, 1, 4 * HUGE);
		graph_release(p);
		assert_true(m.spared >= 4 * HUGE);
		p = graph_alloc(&m, n);
		assert_int_equal(m.used, n);
		for (size_t i = 0; i < n; i++)
			assert_false(p[i]);
		graph_release(p);
		graph_spare_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(spare_pages),
		cmocka_unit_test(random_graphs),
		cmocka_unit_test(deep),
		cmocka_unit_test(weak_and_unreachable),
		cmocka_unit_test(counts),
		cmocka_unit_test(classes),
		cmocka_unit_test(suspects),
		cmocka_unit_test(nothing),
		cmocka_unit_test(too_many_references),
		cmocka_unit_test(duplicates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
