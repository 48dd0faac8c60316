/* Evaluates an expression of D for objects of a graph: names of an object, its members, numbers,
 * texts, comparisons, arithmetic and logic. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "memory/heap/heap.h"
#include "memory/heap/heap_query.h"

/* A hostile heap can have many objects that share one with very many references. */
#define LOOKED_AT_MAX (1ull << 34)

void heap_query_init(struct heap_query *q, struct graph *g)
{
	*q = (struct heap_query){ .g = g, .budget = LOOKED_AT_MAX };
	q->label_dict = graph_label(g, "__dict__", 8);
	q->label_elements = graph_label(g, "elements", 8);
	out_init(&q->text[0], NULL);
	out_init(&q->text[1], NULL);
}

void heap_query_fini(struct heap_query *q)
{
	for (uint32_t i = 0; i < q->members.n; i++)
		free(q->members.v[i].by_class);
	vec_fini(&q->members);
	out_fini(&q->text[0]);
	out_fini(&q->text[1]);
}

struct heap_value heap_bad(struct heap_query *q, const char *why, const char *name)
{
	if (!q->error)
		q->error = err_new(EINVAL, "--find: %s%s", why, name);
	return heap_integer(0);
}

const char *heap_text_of(struct heap_query *q, struct heap_value v, unsigned place)
{
	if (v.kind == HEAP_TEXT)
		return v.text;
	return v.kind == HEAP_OBJECT && heap_text(q->g, v.id, &q->text[place], &q->budget)
		       ? q->text[place].v
		       : NULL;
}

/* java.lang.Integer and its like have their number in a field. */
static bool is_boxed(const char *class)
{
	static const char *const boxes[] = { "Integer", "Long",  "Short",   "Byte",
					     "Double",  "Float", "Boolean", "Character" };

	if (strncmp(class, "java.lang.", 10) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(boxes); i++)
		if (!strcmp(class + 10, boxes[i]))
			return true;
	return false;
}

struct heap_value heap_plain(struct heap_query *q, struct heap_value v)
{
	struct graph_field f;

	if (v.kind != HEAP_OBJECT)
		return v;
	if (graph_number_find(q->g, v.id, GRAPH_LABEL_NONE, &f))
		return heap_number(q, f.type, f.value);
	if (is_boxed(graph_class_text(q->g, graph_class_of(q->g, v.id))))
		return heap_member_of(q, v.id, "value");
	return v;
}

bool heap_is_true(struct heap_query *q, struct heap_value v)
{
	v = heap_plain(q, v);
	switch (v.kind) {
	case HEAP_NOTHING: return false;
	case HEAP_INTEGER: return v.integer != 0;
	case HEAP_REAL: return v.real != 0;
	case HEAP_TEXT: return *v.text;
	case HEAP_OBJECT: break;
	}
	return true;
}

static struct heap_value name_value(struct heap_query *q, const char *name)
{
	const struct heap_value object = { .kind = HEAP_OBJECT, .id = q->id };
	struct heap_value v = { .kind = HEAP_TEXT };

	if (!strcmp(name, "NULL"))
		v.kind = HEAP_NOTHING;
	else if (!strcmp(name, "class"))
		v.text = graph_class_text(q->g, graph_class_of(q->g, q->id));
	else if (!strcmp(name, "root"))
		v.text = graph_root_kind(q->g, q->id) ?: "";
	else if (!strcmp(name, "text"))
		return heap_text(q->g, q->id, &q->text[0], &q->budget)
			       ? object
			       : (struct heap_value){ .kind = HEAP_TEXT, .text = "" };
	else if (!strcmp(name, "file"))
		return heap_member_of(q, q->id, GRAPH_FILE);
	else if (!strcmp(name, "line"))
		return heap_member_of(q, q->id, GRAPH_LINE);
	else if (!strcmp(name, "size"))
		v = heap_integer((int64_t)graph_size(q->g, q->id));
	else if (!strcmp(name, "retained"))
		v = heap_integer((int64_t)graph_retained(q->g, q->id));
	else if (!strcmp(name, "address"))
		v = heap_integer((int64_t)graph_address(q->g, q->id));
	else if (!strcmp(name, "reachable"))
		v = heap_integer(graph_reachable(q->g, q->id));
	else
		return heap_bad(q,
				"there are class, size, retained, address, reachable, root, text, "
				"file, line and this->MEMBER, and no ",
				name);
	return v;
}

static int64_t ordered(enum op op, int order)
{
	switch (op) {
	case OP_EQ: return order == 0;
	case OP_NE: return order != 0;
	case OP_LT: return order < 0;
	case OP_LE: return order <= 0;
	case OP_GT: return order > 0;
	default: return order >= 0;
	}
}

static bool is_comparison(enum op op)
{
	return op == OP_EQ || op == OP_NE || op == OP_LT || op == OP_LE || op == OP_GT ||
	       op == OP_GE;
}

static bool is_number(struct heap_value v)
{
	return v.kind == HEAP_INTEGER || v.kind == HEAP_REAL;
}

static double real_of(struct heap_value v)
{
	return v.kind == HEAP_REAL ? v.real : (double)v.integer;
}

static int order_of(struct heap_value a, struct heap_value b)
{
	double x, y;

	if (a.kind == HEAP_INTEGER && b.kind == HEAP_INTEGER)
		return (a.integer > b.integer) - (a.integer < b.integer);
	x = real_of(a);
	y = real_of(b);
	return (x > y) - (x < y);
}

/* What is not there is equal to NULL, and stands in no order with anything else. */
static struct heap_value compared(struct heap_query *q, enum op op, struct heap_value a,
				  struct heap_value b)
{
	const char *x, *y;

	a = heap_plain(q, a);
	b = heap_plain(q, b);
	if (a.kind == HEAP_NOTHING || b.kind == HEAP_NOTHING)
		return heap_integer(op == OP_EQ ? a.kind == b.kind
						: op == OP_NE && a.kind != b.kind);
	if (is_number(a) && is_number(b))
		return heap_integer(ordered(op, order_of(a, b)));
	if (a.kind == HEAP_OBJECT && b.kind == HEAP_OBJECT && a.id == b.id)
		return heap_integer(ordered(op, 0));
	x = heap_text_of(q, a, 0);
	y = heap_text_of(q, b, 1);
	if (x && y)
		return heap_integer(ordered(op, strcmp(x, y)));
	if ((a.kind == HEAP_TEXT && is_number(b)) || (b.kind == HEAP_TEXT && is_number(a)))
		return heap_bad(q, "a text is compared with a number by ", op_name(op));
	/* objects, of which one at least is no text: they differ */
	return heap_integer(op == OP_NE);
}

static struct heap_value of_reals(struct heap_query *q, enum op op, double a, double b)
{
	struct heap_value v = { .kind = HEAP_REAL };

	switch (op) {
	case OP_ADD: v.real = a + b; break;
	case OP_SUB: v.real = a - b; break;
	case OP_MUL: v.real = a * b; break;
	case OP_DIV: v.real = a / b; break;
	default: return heap_bad(q, "fractions have no operator ", op_name(op));
	}
	return v;
}

/* Sums wrap around, as in D. */
static struct heap_value computed(struct heap_query *q, enum op op, struct heap_value a,
				  struct heap_value b)
{
	int64_t x, y, r = 0;

	a = heap_plain(q, a);
	b = heap_plain(q, b);
	if (a.kind == HEAP_TEXT || b.kind == HEAP_TEXT)
		return heap_bad(q, "texts have no operator ", op_name(op));
	if (!is_number(a) || !is_number(b))
		return (struct heap_value){ .kind = HEAP_NOTHING };
	if (a.kind == HEAP_REAL || b.kind == HEAP_REAL)
		return of_reals(q, op, real_of(a), real_of(b));
	x = a.integer;
	y = b.integer;
	switch (op) {
	case OP_ADD: __builtin_add_overflow(x, y, &r); break;
	case OP_SUB: __builtin_sub_overflow(x, y, &r); break;
	case OP_MUL: __builtin_mul_overflow(x, y, &r); break;
	case OP_DIV:
	case OP_MOD:
		/* an object's number may be 0 */
		if (!y || (x == INT64_MIN && y == -1))
			return (struct heap_value){ .kind = HEAP_NOTHING };
		r = op == OP_DIV ? x / y : x % y;
		break;
	case OP_AND: r = x & y; break;
	case OP_OR: r = x | y; break;
	case OP_XOR: r = x ^ y; break;
	default: return heap_bad(q, "it does not know the operator ", op_name(op));
	}
	return heap_integer(r);
}

static struct heap_value binary(struct heap_query *q, const struct node *n)
{
	struct heap_value a = heap_eval(q, n->e.a);

	if (n->op == OP_LAND)
		return heap_integer(heap_is_true(q, a) && heap_is_true(q, heap_eval(q, n->e.b)));
	if (n->op == OP_LOR)
		return heap_integer(heap_is_true(q, a) || heap_is_true(q, heap_eval(q, n->e.b)));
	return is_comparison(n->op) ? compared(q, n->op, a, heap_eval(q, n->e.b))
				    : computed(q, n->op, a, heap_eval(q, n->e.b));
}

static struct heap_value unary(struct heap_query *q, const struct node *n)
{
	struct heap_value v = heap_eval(q, n->e.a);

	switch (n->op) {
	case OP_LNOT: return heap_integer(!heap_is_true(q, v));
	case OP_PLUS: return v;
	case OP_NEG: return computed(q, OP_SUB, heap_integer(0), v);
	default: return heap_bad(q, "it does not know the operator ", op_name(n->op));
	}
}

static struct heap_value has_text(struct heap_query *q, const struct node *n)
{
	const struct node *args = n->call.args;
	struct heap_value a, b;
	const char *x, *y;

	if (strcmp(n->call.func, "strstr") || !args || !args->next || args->next->next)
		return heap_bad(q, "it knows the function strstr(text, text) only, and not ",
				n->call.func);
	a = heap_plain(q, heap_eval(q, args));
	b = heap_plain(q, heap_eval(q, args->next));
	if (is_number(a) || is_number(b))
		return heap_bad(q, "strstr() searches a text in a text", "");
	x = heap_text_of(q, a, 0);
	y = heap_text_of(q, b, 1);
	return x && y && strstr(x, y) ? heap_integer(1)
				      : (struct heap_value){ .kind = HEAP_NOTHING };
}

static struct heap_value followed(struct heap_query *q, const struct node *n)
{
	struct heap_value v = heap_eval(q, n->member.a);

	return v.kind == HEAP_OBJECT ? heap_member_of(q, v.id, n->member.name)
				     : (struct heap_value){ .kind = HEAP_NOTHING };
}

/* base[number], or base["name"]: for names that are none in D. */
static struct heap_value indexed(struct heap_query *q, const struct node *n)
{
	struct heap_value v = heap_eval(q, n->e.a), k;

	if (!n->e.b || n->e.b->next)
		return heap_bad(q, "there is one index in []", "");
	k = heap_plain(q, heap_eval(q, n->e.b));
	if (v.kind != HEAP_OBJECT || k.kind == HEAP_NOTHING)
		return (struct heap_value){ .kind = HEAP_NOTHING };
	if (k.kind == HEAP_TEXT && n->e.b->kind == N_STR)
		return heap_member_of(q, v.id, k.text);
	if (k.kind == HEAP_INTEGER)
		return heap_element_of(q, v.id, (uint64_t)k.integer);
	return heap_bad(q, "an index is a number, or a name in quotes", "");
}

/* Trees are at most AST_MAX_HEIGHT high. */
struct heap_value heap_eval(struct heap_query *q, const struct node *n)
{
	switch (n->kind) {
	case N_INT: return heap_integer((int64_t)n->i.value);
	case N_STR: return (struct heap_value){ .kind = HEAP_TEXT, .text = n->s.text };
	case N_IDENT:
		return n->ident.scope == SCOPE_NONE ? name_value(q, n->ident.name)
						    : heap_member_of(q, q->id, n->ident.name);
	case N_MEMBER:
	case N_PMEMBER: return followed(q, n);
	case N_INDEX: return indexed(q, n);
	case N_CALL: return has_text(q, n);
	case N_UNARY: return unary(q, n);
	case N_BINARY: return binary(q, n);
	case N_TERNARY:
		return heap_eval(q, heap_is_true(q, heap_eval(q, n->e.a)) ? n->e.b : n->e.c);
	default:
		return heap_bad(q, "it does not know expressions of the kind ",
				node_kind_name(n->kind));
	}
}
