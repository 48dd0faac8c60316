/* The making of a graph: what a source adds, kept by arrival until graph_finish(). */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "base/meminfo.h"
#include "graph_private.h"

enum {
	ROOM_CHECKED =
		64 << 20, /* bytes from which on an array's growth asks for the free memory */
	REMARKS_MAX = 32,
	KIND_MAX = 256, /* bytes of a root's kind: a file can give each of its roots a long one */
};
#define CODE_ESCAPE 0x80000000u

struct graph *graph_new(const struct graph_wanted *w)
{
	struct graph *g = xcalloc(1, sizeof(*g));

	if (w)
		g->wanted = *w;
	g->memory.limit = g->wanted.memory;
	g->wanted.contents &= !g->wanted.counts;
	g->wanted.values &= !g->wanted.counts;
	g->references_max = GRAPH_OBJECTS_MAX;
	intern_init(&g->names);
	intern_init(&g->label_names);
	return g;
}

void graph_part_free(struct graph_part *p)
{
	graph_release(p->addresses);
	graph_release(p->kind);
	graph_release(p->degree);
	graph_release(p->to.v);
	graph_release(p->labels.v);
	*p = (struct graph_part){ 0 };
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	for (uint32_t i = 0; i < g->remarks.n; i++)
		free(g->remarks.v[i]);
	for (uint32_t i = 0; i < g->class_texts.n; i++)
		free(g->class_texts.v[i]);
	vec_fini(&g->remarks);
	vec_fini(&g->class_texts);
	vec_fini(&g->classes);
	hash_fini(&g->class_ids);
	hash_fini(&g->aliases);
	intern_fini(&g->names);
	intern_fini(&g->label_names);
	graph_index_fini(&g->index);
	vec_fini(&g->more);
	vec_fini(&g->by_object);
	vec_fini(&g->weak);
	graph_part_free(&g->made);
	for (uint32_t i = 0; i < g->joined.n; i++)
		graph_part_free(&g->joined.v[i]);
	vec_fini(&g->joined);
	graph_kinds_fini(g);
	graph_release(g->kind);
	graph_release(g->to.v);
	graph_release(g->labels.v);
	graph_release(g->raw_roots.v);
	graph_release(g->offset);
	free(g->roots);
	graph_release(g->in_offset);
	graph_release(g->in_from);
	graph_release(g->weak_by_to);
	graph_release(g->reached);
	graph_release(g->reached_weakly);
	graph_release(g->dominator);
	graph_release(g->retained);
	graph_release(g->child_offset);
	graph_release(g->children);
	graph_content_fini(g);
	graph_values_fini(g);
	graph_spare_free(&g->memory);
	err_free(g->failed);
	free(g);
}

const struct graph_wanted *graph_wanted(const struct graph *g)
{
	return &g->wanted;
}

/* Sets the error of a graph unless it has one, and drops what is added from now on. */
void graph_fail(struct graph *g, struct err *e)
{
	if (g->failed)
		err_free(e);
	else
		g->failed = e;
}

bool graph_room(struct graph *g, uint64_t more)
{
	uint64_t left;

	if (more < ROOM_CHECKED)
		return !g->failed;
	left = meminfo_available();
	if (left && more > left)
		graph_fail(g,
			   err_new(ENOMEM,
				   "the heap has too many objects for the memory of this machine: "
				   "%u objects were read, and %llu MB are left",
				   g->nobjects, (unsigned long long)(left >> 20)));
	return !g->failed;
}

void *graph_list_add(struct graph *g, struct graph_list *l, size_t size, size_t n)
{
	if (l->n + n > l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 1024;

		while (cap < l->n + n)
			cap *= 2;
		l->v = graph_realloc(&g->memory, l->v, cap * size);
		l->cap = cap;
	}
	l->n += n;
	return (char *)l->v + (l->n - n) * size;
}

uint32_t graph_class(struct graph *g, uint64_t key)
{
	uint64_t *id;

	if (g->classes.n && key == g->last_key)
		return g->last_class;
	id = hash_put(&g->class_ids, &key, sizeof(key), NULL);
	if (!*id) {
		vec_push(&g->classes, (struct graph_class){ .key = key });
		*id = g->classes.n;
	}
	g->last_key = key;
	return g->last_class = (uint32_t)*id - 1;
}

void graph_class_name(struct graph *g, uint32_t class, const char *name, size_t n)
{
	g->classes.v[class].name = intern_shown(&g->names, name, n);
}

void graph_class_object(struct graph *g, uint32_t class, uint64_t address)
{
	g->classes.v[class].object = address;
}

void graph_class_size(struct graph *g, uint32_t class, uint64_t size)
{
	g->classes.v[class].size = size;
}

uint32_t graph_label(struct graph *g, const char *name, size_t n)
{
	return g->wanted.labels ? intern_shown(&g->label_names, name, n) : GRAPH_LABEL_NONE;
}

static void part_grow(struct graph *g, struct graph_part *p)
{
	p->cap = p->cap ? p->cap * 2 : 1024;
	p->addresses = graph_realloc(&g->memory, p->addresses, p->cap * sizeof(*p->addresses));
	p->kind = graph_realloc(&g->memory, p->kind, p->cap * sizeof(*p->kind));
	p->degree = graph_realloc(&g->memory, p->degree, p->cap * sizeof(*p->degree));
}

void graph_count(struct graph *g, uint32_t class, uint64_t n, uint64_t bytes)
{
	struct graph_class *c = &g->classes.v[class];

	c->n += n;
	if (__builtin_add_overflow(c->bytes, bytes, &c->bytes))
		c->bytes = UINT64_MAX;
}

static void object_count(struct graph *g, uint32_t class, uint64_t size)
{
	g->counted = class;
	if (size == GRAPH_SIZE_OF_CLASS)
		g->classes.v[class].n_of_size++;
	else
		graph_count(g, class, 1, size < GRAPH_SIZE_MAX ? size : GRAPH_SIZE_MAX);
}

void graph_object(struct graph *g, uint64_t address, uint32_t class, uint64_t size)
{
	struct graph_part *p = &g->made;
	uint32_t i = g->nobjects;

	if (g->wanted.counts) {
		object_count(g, class, size);
		return;
	}
	if (i >= GRAPH_OBJECTS_MAX)
		graph_fail(g,
			   err_new(EFBIG, "the heap has more than %u objects", GRAPH_OBJECTS_MAX));
	if (g->failed)
		return;
	if (i == p->cap)
		part_grow(g, p);
	if (!i) {
		p->first = p->low = address;
		p->code_shift = address % 8 ? 0 : 3;
	}
	if (address < p->low)
		p->low = address;
	p->differ |= address ^ p->first;
	if (size != GRAPH_SIZE_OF_CLASS && size > GRAPH_SIZE_MAX)
		size = GRAPH_SIZE_MAX;
	p->addresses[i] = address;
	p->kind[i] = graph_kind(g, class, size);
	p->degree[i] = 0;
	p->n = ++g->nobjects;
}

void graph_object_add(struct graph *g, uint64_t more)
{
	const struct graph_kind *k;
	uint32_t *last;

	if (g->wanted.counts) {
		graph_count(g, g->counted, 0, more);
		return;
	}
	if (g->failed || !more)
		return;
	last = &g->made.kind[g->nobjects - 1];
	k = graph_kind_at(g, *last);
	if (k->size <= GRAPH_SIZE_MAX && more <= GRAPH_SIZE_MAX - k->size)
		*last = graph_kind(g, k->class, k->size + more);
}

/* Most addresses are near the first object's, so that their distance takes one word. */
static bool code_edge(struct graph *g, uint64_t to)
{
	struct graph_part *p = &g->made;
	int64_t far = (int64_t)(to - p->first) >> p->code_shift;
	uint32_t *w;

	if (far > INT32_MIN && far <= INT32_MAX &&
	    ((uint64_t)far << p->code_shift) == to - p->first) {
		w = graph_list_add(g, &p->to, sizeof(*w), 1);
		if (w)
			*w = (uint32_t)far;
		return w;
	}
	w = graph_list_add(g, &p->to, sizeof(*w), 3);
	if (!w)
		return false;
	w[0] = CODE_ESCAPE;
	w[1] = (uint32_t)to;
	w[2] = (uint32_t)(to >> 32);
	return true;
}

uint64_t graph_decode(const struct graph_part *p, size_t *at)
{
	const uint32_t *w = (const uint32_t *)p->to.v + *at;

	if (*w != CODE_ESCAPE) {
		++*at;
		return p->first + ((uint64_t)(int32_t)*w << p->code_shift);
	}
	*at += 3;
	return w[1] | (uint64_t)w[2] << 32;
}

void graph_edge(struct graph *g, uint64_t to, uint32_t label, enum graph_strength strength)
{
	struct graph_part *p = &g->made;
	uint32_t *l;

	if (!to || g->failed || !g->nobjects)
		return;
	if (strength) {
		graph_edge_from(g, p->addresses[g->nobjects - 1], to, label, strength);
		return;
	}
	if (++g->totals.edges > GRAPH_OBJECTS_MAX) {
		graph_fail(g, err_new(EFBIG, "the heap has more than %u references",
				      GRAPH_OBJECTS_MAX));
		return;
	}
	if (!code_edge(g, to))
		return;
	p->degree[g->nobjects - 1]++;
	if (!g->wanted.labels)
		return;
	l = graph_list_add(g, &p->labels, sizeof(*l), 1);
	if (l)
		*l = label;
}

static bool apart_room(struct graph *g, uint32_t n, uint32_t cap)
{
	if (n >= GRAPH_OBJECTS_MAX / 2)
		graph_fail(g, err_new(EFBIG, "the heap has more than %u weak references", n));
	return !g->failed && (n < cap || graph_room(g, (uint64_t)cap * sizeof(struct graph_apart)));
}

void graph_edge_from(struct graph *g, uint64_t from, uint64_t to, uint32_t label,
		     enum graph_strength strength)
{
	struct graph_apart a = { from, to, label, strength };

	if (!to || g->failed || g->wanted.counts)
		return;
	if (strength && apart_room(g, g->weak.n, g->weak.cap))
		vec_push(&g->weak, a);
	else if (!strength && apart_room(g, g->more.n, g->more.cap))
		vec_push(&g->more, a);
}

void graph_root(struct graph *g, uint64_t address, const char *kind)
{
	struct graph_raw_root *r;

	if (g->failed || g->wanted.counts)
		return;
	r = graph_list_add(g, &g->raw_roots, sizeof(*r), 1);
	if (r)
		*r = (struct graph_raw_root){
			address, intern_text(&g->names,
					     intern_shown(&g->names, kind, strnlen(kind, KIND_MAX)))
		};
}

/* Joins the vector of apart references `from` to `to`. */
#define APART_JOIN(to, from) \
	for (uint32_t i_ = 0; i_ < (from)->n; i_++) \
		vec_push(to, (from)->v[i_]); \
	vec_fini(from)

void graph_join(struct graph *g, struct graph *more)
{
	struct graph_part *p = &more->made;
	const struct graph_raw_root *raw = more->raw_roots.v;
	uint32_t *kinds = xmalloc((more->kinds.n + 1) * sizeof(*kinds));
	void *arrays[] = { p->addresses, p->kind, p->degree, p->to.v, p->labels.v };

	assert(!more->wanted.counts && !more->wanted.values && !more->wanted.contents);
	if (more->failed)
		graph_fail(g, more->failed);
	more->failed = NULL;
	for (size_t i = 0; i < more->kinds.n; i++)
		kinds[i] = graph_kind(g, graph_kind_at(more, (uint32_t)i)->class,
				      graph_kind_at(more, (uint32_t)i)->size);
	for (uint32_t i = 0; i < p->n; i++)
		p->kind[i] = kinds[p->kind[i]];
	free(kinds);
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		graph_adopt(&g->memory, arrays[i]);
	if (p->n)
		vec_push(&g->joined, *p);
	*p = (struct graph_part){ 0 };
	APART_JOIN(&g->weak, &more->weak);
	APART_JOIN(&g->more, &more->more);
	for (size_t i = 0; i < more->raw_roots.n; i++)
		graph_root(g, raw[i].address, raw[i].kind);
	g->totals.edges += more->totals.edges;
	if (g->totals.edges > GRAPH_OBJECTS_MAX)
		graph_fail(g, err_new(EFBIG, "the heap has more than %u references",
				      GRAPH_OBJECTS_MAX));
	for (uint32_t i = 0; i < more->remarks.n; i++)
		graph_remark(g, "%s", more->remarks.v[i]);
	graph_free(more);
}

void graph_restart(struct graph *g)
{
	graph_part_free(&g->made);
	for (uint32_t i = 0; i < g->joined.n; i++)
		graph_part_free(&g->joined.v[i]);
	g->joined.n = g->weak.n = g->more.n = 0;
	g->raw_roots.n = 0;
	g->nobjects = 0;
	g->totals = (struct graph_totals){ 0 };
	err_free(g->failed);
	g->failed = NULL;
}

void graph_alias(struct graph *g, uint64_t reference, uint64_t address)
{
	*hash_put(&g->aliases, &reference, sizeof(reference), NULL) = address;
}

void graph_remark(struct graph *g, const char *fmt, ...)
{
	va_list ap;

	if (g->remarks.n >= REMARKS_MAX)
		return;
	va_start(ap, fmt);
	vec_push(&g->remarks, xvasprintf(fmt, ap));
	va_end(ap);
}
