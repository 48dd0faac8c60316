/* Finds units of time: `@ = quantize((timestamp - self->t) / 1000)` counts microseconds. Pictures
 * show the unit. */
#include "compile/bind/bind_private.h"

enum {
	ROUNDS = 8
}; /* variables assigned from each other in a chain longer than this get no unit */

/* The unit of a value: a point in time (timestamp) or a span between two. ns 0: not known. */
struct unit {
	int64_t ns; /* nanoseconds of the value 1 */
	bool span;
	bool mixed; /* assigned values of several units */
};

struct units {
	struct bound *b;
	struct unit *vars; /* index: variable */
	struct unit *aggs;
	bool changed;
};

static bool whole_number(const struct node *n, int64_t *ret)
{
	while (n->kind == N_CAST)
		n = n->t.a;
	*ret = n->kind == N_INT ? (int64_t)n->i.value : 0;
	return n->kind == N_INT;
}

static struct unit unit_of(const struct units *u, const struct node *n);

static struct unit ident_unit(const struct units *u, const struct node *n)
{
	if (n->id && n->id->kind == IDENT_VAR && !u->vars[n->id->var->index].mixed)
		return u->vars[n->id->var->index];
	if (n->id && n->id->kind == IDENT_BUILTIN &&
	    (n->id->builtin == BUILTIN_TIMESTAMP || n->id->builtin == BUILTIN_VTIMESTAMP ||
	     n->id->builtin == BUILTIN_WALLTIMESTAMP))
		return (struct unit){ .ns = 1 };
	return (struct unit){ 0 };
}

/* point - point and point - something unknown: a span; point - span: a point */
static struct unit difference(const struct node *b, struct unit x, struct unit y)
{
	int64_t value;

	if (!x.ns || (y.ns && y.ns != x.ns))
		return (struct unit){ 0 };
	if (!x.span && !y.span && (y.ns || !whole_number(b, &value)))
		x.span = true;
	return x;
}

static struct unit binary_unit(const struct units *u, const struct node *n)
{
	struct unit x = unit_of(u, n->e.a), y = unit_of(u, n->e.b), none = { 0 };
	int64_t value;

	switch (n->op) {
	case OP_SUB: return difference(n->e.b, x, y);
	case OP_ADD:
		if (x.ns && y.ns && x.ns != y.ns)
			return none;
		return x.ns && (!x.span || !y.ns) ? x : y;
	case OP_DIV:
		if (!whole_number(n->e.b, &value) || value <= 0 ||
		    __builtin_mul_overflow(x.ns, value, &x.ns))
			return none;
		return x;
	case OP_MUL:
		if (!whole_number(n->e.b, &value) || value <= 0 || x.ns % value)
			return none;
		x.ns /= value;
		return x;
	default: return none;
	}
}

static struct unit unit_of(const struct units *u, const struct node *n)
{
	struct unit x;

	switch (n->kind) {
	case N_IDENT:
	case N_INDEX: return ident_unit(u, n);
	case N_CAST: return unit_of(u, n->t.a);
	case N_COMMA: return unit_of(u, n->e.b);
	case N_ASSIGN: return unit_of(u, n->op == OP_NONE ? n->e.b : n->e.a);
	case N_BINARY: return binary_unit(u, n);
	case N_TERNARY: x = unit_of(u, n->e.b); return x.ns ? x : unit_of(u, n->e.c);
	default: return (struct unit){ 0 };
	}
}

static void learn(struct units *u, struct unit *known, struct unit now)
{
	if (known->mixed || (known->ns == now.ns && known->span == now.span))
		return;
	u->changed = true;
	if (known->ns)
		known->mixed = true;
	else
		*known = now;
}

static void see(void *arg, const struct node *n)
{
	struct units *u = arg;
	const struct node *to = n->e.a;
	struct unit now;

	if (n->kind != N_ASSIGN || !to->id || to->id->kind != IDENT_VAR ||
	    (n->op != OP_NONE && n->op != OP_ADD && n->op != OP_SUB))
		return;
	now = unit_of(u, n->e.b);
	if (now.ns)
		learn(u, &u->vars[to->id->var->index], now);
}

static void see_agg(void *arg, const struct node *n)
{
	struct units *u = arg;
	const struct node *call = n->kind == N_ASSIGN && n->e.a->kind == N_AGG ? n->e.b : NULL;
	struct unit now, *known;

	if (!call || !n->e.a->id || call->kind != N_CALL || !call->call.args)
		return;
	now = unit_of(u, call->call.args);
	known = &u->aggs[n->e.a->id->agg];
	if (now.ns && now.span)
		learn(u, known, now);
	else
		known->mixed = true;
}

static void unit_walk(struct units *u, void (*fn)(void *arg, const struct node *n))
{
	for (uint32_t i = 0; i < u->b->clauses.n; i++)
		node_walk(u->b->clauses.v[i]->body, fn, u);
}

static const char *unit_name_of(struct unit x)
{
	static const struct {
		int64_t ns;
		const char *name;
	} names[] = { { 1, "ns" }, { 1000, "us" }, { 1000000, "ms" }, { 1000000000, "s" } };

	for (size_t i = 0; i < ARRAY_SIZE(names) && !x.mixed; i++)
		if (names[i].ns == x.ns)
			return names[i].name;
	return NULL;
}

void units_find(struct bound *b)
{
	struct units u = { .b = b };

	u.vars = xcalloc(b->vars.n + 1, sizeof(*u.vars));
	u.aggs = xcalloc(b->aggs.n + 1, sizeof(*u.aggs));
	u.changed = true;
	for (int i = 0; i < ROUNDS && u.changed && b->aggs.n; i++) {
		u.changed = false;
		unit_walk(&u, see);
	}
	unit_walk(&u, see_agg);
	for (uint32_t i = 0; i < b->aggs.n; i++)
		b->aggs.v[i]->unit = unit_name_of(u.aggs[i]);
	free(u.vars);
	free(u.aggs);
}
