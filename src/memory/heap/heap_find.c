/* Finds the objects for which an expression of D is true, and sums objects by the value of another
 * one. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/sorted.h"
#include "compile/parse/parse.h"
#include "memory/heap/heap.h"
#include "memory/heap/heap_query.h"
#include "render/json.h"

enum { SHOWN_MAX = 200 /* bytes of a text */ };

struct heap_find {
	struct arena arena;
	struct diags diags;
	struct node *find, *by; /* NULL: not asked for */
};

static bool no_type(void *arg, const char *module, const char *name)
{
	(void)arg;
	(void)module;
	(void)name;
	return false;
}

/* Returns the diagnostics as an error. */
static struct err *find_refused(const struct diags *d, const char *option)
{
	struct diag_style style = { .progname = "descry" };
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	struct err *e;

	if (!f)
		return err_errno(errno, "%s", option);
	diags_print(d, &style, f);
	fclose(f);
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	e = err_lines(EINVAL, "%s:\n%s", option, text);
	free(text);
	return e;
}

/* An expression is what may stand between the strokes of a clause. */
static struct err *expression_parse(struct heap_find *f, const char *option, const char *text,
				    struct node **ret)
{
	struct macro_args macros = { .target = -1 };
	struct parse_cx cx = {
		.arena = &f->arena, .diags = &f->diags, .macros = &macros, .is_type = no_type
	};
	const char *clause = arena_printf(&f->arena, "heap:::object /%s\n/ { }", text);
	const uint32_t source = f->diags.nsources;
	struct node *top;

	source_add(&f->diags, SOURCE_FILE, option, clause, strlen(clause));
	top = parse_source(&cx, source, PDESC_NAME);
	if (f->diags.errors)
		return find_refused(&f->diags, option);
	if (!top || top->next || top->kind != D_CLAUSE || !top->clause.pred || top->clause.body)
		return err_new(EINVAL, "%s: not one expression: %s", option, text);
	*ret = top->clause.pred;
	return NULL;
}

struct err *heap_find_new(const char *find, const char *by, struct heap_find **ret)
{
	struct heap_find *f = xcalloc(1, sizeof(*f));
	struct err *e = NULL;

	arena_init(&f->arena);
	diags_init(&f->diags);
	if (find)
		e = expression_parse(f, "--find", find, &f->find);
	if (by && !e)
		e = expression_parse(f, "--by", by, &f->by);
	if (e)
		heap_find_free(f);
	else
		*ret = f;
	return e;
}

void heap_find_free(struct heap_find *f)
{
	if (!f)
		return;
	diags_fini(&f->diags);
	arena_fini(&f->arena);
	free(f);
}

static void asks_inside(void *arg, const struct node *n)
{
	bool *asks = arg;

	*asks |= n->kind == N_MEMBER || n->kind == N_PMEMBER || n->kind == N_INDEX ||
		 (n->kind == N_IDENT &&
		  (n->ident.scope != SCOPE_NONE || !strcmp(n->ident.name, "text") ||
		   !strcmp(n->ident.name, "file") || !strcmp(n->ident.name, "line")));
}

bool heap_find_inside(const struct heap_find *f)
{
	bool asks = false;

	if (f->find)
		node_walk(f->find, asks_inside, &asks);
	if (f->by)
		node_walk(f->by, asks_inside, &asks);
	return asks;
}

static void object_show(struct heap_query *q, const struct heap_shown *how, struct out *o)
{
	struct graph *g = q->g;
	const char *text =
		heap_text_of(q, (struct heap_value){ .kind = HEAP_OBJECT, .id = q->id }, 0);
	size_t n;

	text = text ?: "";
	if (how->json) {
		out_str(o, "{\"type\":\"object\"");
		heap_json_address(o, "address", graph_address(g, q->id));
		heap_json_text(o, "class", graph_class_text(g, graph_class_of(g, q->id)));
		heap_json_number(o, "size", graph_size(g, q->id));
		heap_json_number(o, "retained", graph_retained(g, q->id));
		if (*text)
			heap_json_text(o, "text", text);
		out_str(o, "}\n");
		return;
	}
	out_printf(o, "%14llu %14llu  ", (unsigned long long)graph_retained(g, q->id),
		   (unsigned long long)graph_size(g, q->id));
	heap_put_object(g, q->id, o);
	n = strlen(text);
	if (n > SHOWN_MAX)
		n = SHOWN_MAX;
	while (n && ((uint8_t)text[n] & 0xc0) == 0x80) /* within a character */
		n--;
	if (n) {
		out_char(o, ' ');
		json_string(o, text, n);
		out_str(o, text[n] ? "..." : "");
	}
	out_char(o, '\n');
}

/* Objects with one value of --by. */
struct find_group {
	const char *key; /* of the table */
	size_t nkey;
	uint64_t n, bytes;
};

struct find_groups {
	struct hash numbers; /* number + 1 in v */
	VEC(struct find_group) v;
};

/* Puts a text of the heap. Control characters become '?': a line feed would end the row. */
static void put_group_text(const char *text, struct out *o)
{
	for (uint32_t i = 0; i < SHOWN_MAX && text[i]; i++)
		out_char(o, (uint8_t)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
}

static void put_key(struct heap_query *q, struct heap_value v, struct out *o)
{
	const char *text;

	v = heap_plain(q, v);
	text = heap_text_of(q, v, 0);
	switch (v.kind) {
	case HEAP_NOTHING: out_str(o, "NULL"); break;
	case HEAP_INTEGER: out_printf(o, "%lld", (long long)v.integer); break;
	case HEAP_REAL: out_printf(o, "%.17g", v.real); break;
	case HEAP_TEXT:
	case HEAP_OBJECT:
		if (text)
			put_group_text(text, o);
		else
			heap_put_object(q->g, v.id, o);
	}
}

static void group_add(struct find_groups *all, struct heap_query *q, const struct node *by,
		      struct out *key)
{
	struct find_group *group;
	uint64_t *number;

	key->n = 0;
	put_key(q, heap_eval(q, by), key);
	number = hash_put(&all->numbers, key->v, key->n, NULL);
	if (!*number) {
		vec_push(&all->v, (struct find_group){ 0 });
		*number = all->v.n;
	}
	group = &all->v.v[*number - 1];
	group->n++;
	group->bytes += graph_size(q->g, q->id);
}

static int compare_groups(const void *x, const void *y)
{
	const struct find_group *a = x, *b = y;
	const size_t n = a->nkey < b->nkey ? a->nkey : b->nkey;

	return COMPARE(b->bytes, a->bytes)
		       ?: COMPARE(b->n, a->n) ?: memcmp(a->key, b->key, n)
		       ?: COMPARE(a->nkey, b->nkey);
}

static void groups_show(struct find_groups *all, const struct heap_shown *how, struct out *o)
{
	uint32_t pos = 0;
	const void *key;
	size_t nkey;
	uint64_t *number;

	while (hash_next(&all->numbers, &pos, &key, &nkey, &number)) {
		all->v.v[*number - 1].key = key;
		all->v.v[*number - 1].nkey = nkey;
	}
	if (all->v.n)
		qsort(all->v.v, all->v.n, sizeof(*all->v.v), compare_groups);
	if (!how->json)
		out_printf(o, "%12s %14s  VALUE\n", "OBJECTS", "BYTES");
	for (uint32_t i = 0; i < all->v.n && i < how->most; i++) {
		const struct find_group *g = &all->v.v[i];
		cleanup_free char *text = xasprintf("%.*s", (int)g->nkey, g->key);

		if (how->json) {
			out_str(o, "{\"type\":\"group\"");
			heap_json_text(o, "value", text);
			heap_json_number(o, "objects", g->n);
			heap_json_number(o, "bytes", g->bytes);
			out_str(o, "}\n");
		} else {
			out_printf(o, "%12llu %14llu  ", (unsigned long long)g->n,
				   (unsigned long long)g->bytes);
			out_str(o, text);
			out_char(o, '\n');
		}
	}
}

/* A name that nothing has is wrong more often than not. */
static void unseen_show(const struct heap_query *q, struct out *o)
{
	for (uint32_t i = 0; i < q->members.n; i++) {
		const char *name = q->members.v[i].name;

		if (q->members.v[i].seen)
			continue;
		if (!strcmp(name, GRAPH_FILE) || !strcmp(name, GRAPH_LINE))
			out_str(o, "no object has a file and line: dumps of Ruby have them when "
				   "ObjectSpace.trace_object_allocations was on\n");
		else
			out_printf(o, "no object has a member %s that is set\n", name);
	}
}

struct err *heap_show_find(struct graph *g, const struct heap_find *find,
			   const struct heap_shown *how, struct out *o)
{
	struct find_groups groups = { 0 };
	struct heap_query q;
	struct out key;
	uint64_t n = 0, bytes = 0, shown = find->by ? 0 : how->most, rows;

	heap_query_init(&q, g);
	out_init(&key, NULL);
	if (!how->json && !find->by)
		out_printf(o, "%14s %14s  OBJECT\n", "RETAINED", "SIZE");
	for (; q.id < graph_totals(g)->objects && !q.error && q.budget; q.id++) {
		if (find->find && !heap_is_true(&q, heap_eval(&q, find->find)))
			continue;
		bytes += graph_size(g, q.id);
		if (find->by)
			group_add(&groups, &q, find->by, &key);
		else if (n < shown)
			object_show(&q, how, o);
		n++;
	}
	if (!q.error && !q.budget)
		q.error = err_new(EFBIG, "--find: it takes too long, objects of the heap have too "
					 "many references that the members are searched in");
	rows = find->by ? groups.v.n : n;
	if (!q.error && find->by)
		groups_show(&groups, how, o);
	if (!q.error && !how->json) {
		out_printf(o, "%llu object%s, ", (unsigned long long)n, n == 1 ? "" : "s");
		out_size(o, bytes);
		out_str(o, rows > how->most ? "; -n lists more\n" : "\n");
		unseen_show(&q, o);
	}
	out_fini(&key);
	hash_fini(&groups.numbers);
	vec_fini(&groups.v);
	heap_query_fini(&q);
	return q.error;
}
