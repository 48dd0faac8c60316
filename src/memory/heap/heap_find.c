/* Finds the objects for which an expression of D is true. Knows the names class, size, retained,
 * address, reachable, root and text, numbers, texts, comparisons, arithmetic and logic.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "compile/parse/parse.h"
#include "memory/heap/heap.h"
#include "render/json.h"

enum { SHOWN_MAX = 200 /* bytes of a text */ };

/* A value of an expression: a number, or a text when text is not NULL. */
struct find_value {
	uint64_t number;
	const char *text;
};

struct finder {
	struct graph *g;
	graph_id id;
	struct out text; /* of the object at hand, if has_text */
	bool has_text, text_known;
	struct err *error;
};

static bool no_type(void *arg, const char *module, const char *name)
{
	(void)arg;
	(void)module;
	(void)name;
	return false;
}

static struct find_value find_number(uint64_t n)
{
	return (struct find_value){ .number = n };
}

static struct find_value find_bad(struct finder *f, const char *why, const char *name)
{
	if (!f->error)
		f->error = err_new(EINVAL, "--find: %s%s", why, name);
	return find_number(0);
}

/* "" when the object is no text. */
static const char *find_text(struct finder *f)
{
	if (!f->text_known)
		f->has_text = heap_text(f->g, f->id, &f->text);
	f->text_known = true;
	return f->has_text ? f->text.v : "";
}

static struct find_value find_name(struct finder *f, const char *name)
{
	if (!strcmp(name, "class"))
		return (struct find_value){ .text = graph_class_text(f->g,
								     graph_class_of(f->g, f->id)) };
	if (!strcmp(name, "size"))
		return find_number(graph_size(f->g, f->id));
	if (!strcmp(name, "retained"))
		return find_number(graph_retained(f->g, f->id));
	if (!strcmp(name, "address"))
		return find_number(graph_address(f->g, f->id));
	if (!strcmp(name, "reachable"))
		return find_number(graph_reachable(f->g, f->id));
	if (!strcmp(name, "root"))
		return (struct find_value){ .text = graph_root_kind(f->g, f->id) ?: "" };
	if (!strcmp(name, "text"))
		return (struct find_value){ .text = find_text(f) };
	return find_bad(
		f, "there are class, size, retained, address, reachable, root and text, and no ",
		name);
}

static struct find_value find_eval(struct finder *f, const struct node *n);

static struct find_value find_texts(struct finder *f, enum op op, struct find_value a,
				    struct find_value b)
{
	int order;

	if (!a.text || !b.text)
		return find_bad(f, "a text is compared with a number by ", op_name(op));
	order = strcmp(a.text, b.text);
	switch (op) {
	case OP_EQ: return find_number(!order);
	case OP_NE: return find_number(order != 0);
	case OP_LT: return find_number(order < 0);
	case OP_LE: return find_number(order <= 0);
	case OP_GT: return find_number(order > 0);
	case OP_GE: return find_number(order >= 0);
	default: return find_bad(f, "texts have no operator ", op_name(op));
	}
}

static struct find_value find_numbers(struct finder *f, enum op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case OP_EQ: return find_number(a == b);
	case OP_NE: return find_number(a != b);
	case OP_LT: return find_number(a < b);
	case OP_LE: return find_number(a <= b);
	case OP_GT: return find_number(a > b);
	case OP_GE: return find_number(a >= b);
	case OP_ADD: return find_number(a + b);
	case OP_SUB: return find_number(a - b);
	case OP_MUL: return find_number(a * b);
	case OP_DIV: return b ? find_number(a / b) : find_bad(f, "division by zero", "");
	case OP_MOD: return b ? find_number(a % b) : find_bad(f, "division by zero", "");
	case OP_AND: return find_number(a & b);
	case OP_OR: return find_number(a | b);
	case OP_XOR: return find_number(a ^ b);
	default: return find_bad(f, "it does not know the operator ", op_name(op));
	}
}

static bool find_true(struct finder *f, const struct node *n)
{
	struct find_value v = find_eval(f, n);

	return v.text ? *v.text != 0 : v.number != 0;
}

static struct find_value find_strstr(struct finder *f, const struct node *n)
{
	const struct node *args = n->call.args;
	struct find_value a, b;

	if (strcmp(n->call.func, "strstr") || !args || !args->next || args->next->next)
		return find_bad(f, "it knows the function strstr(text, text) only, and not ",
				n->call.func);
	a = find_eval(f, args);
	b = find_eval(f, args->next);
	if (!a.text || !b.text)
		return find_bad(f, "strstr() searches a text in a text", "");
	return find_number(strstr(a.text, b.text) != NULL);
}

/* Trees are at most AST_MAX_HEIGHT high. */
static struct find_value find_eval(struct finder *f, const struct node *n)
{
	struct find_value a, b;

	switch (n->kind) {
	case N_INT: return find_number(n->i.value);
	case N_STR: return (struct find_value){ .text = n->s.text };
	case N_IDENT:
		return !strcmp(n->ident.name, "NULL") ? find_number(0)
						      : find_name(f, n->ident.name);
	case N_CALL: return find_strstr(f, n);
	case N_UNARY:
		if (n->op != OP_LNOT)
			return find_bad(f, "it does not know the operator ", op_name(n->op));
		return find_number(!find_true(f, n->e.a));
	case N_BINARY:
		if (n->op == OP_LAND)
			return find_number(find_true(f, n->e.a) && find_true(f, n->e.b));
		if (n->op == OP_LOR)
			return find_number(find_true(f, n->e.a) || find_true(f, n->e.b));
		a = find_eval(f, n->e.a);
		b = find_eval(f, n->e.b);
		if (a.text || b.text)
			return find_texts(f, n->op, a, b);
		return find_numbers(f, n->op, a.number, b.number);
	default:
		return find_bad(f, "it does not know expressions of the kind ",
				node_kind_name(n->kind));
	}
}

/* Returns the diagnostics as an error. */
static struct err *find_refused(const struct diags *d)
{
	struct diag_style style = { .progname = "descry" };
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	struct err *e;

	if (!f)
		return err_errno(errno, "--find");
	diags_print(d, &style, f);
	fclose(f);
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	e = err_new(EINVAL, "--find:\n%s", text);
	free(text);
	return e;
}

static void find_show(struct finder *f, const struct heap_shown *how, struct out *o)
{
	struct graph *g = f->g;

	if (how->json) {
		out_str(o, "{\"type\":\"object\"");
		heap_json_address(o, "address", graph_address(g, f->id));
		heap_json_text(o, "class", graph_class_text(g, graph_class_of(g, f->id)));
		heap_json_number(o, "size", graph_size(g, f->id));
		heap_json_number(o, "retained", graph_retained(g, f->id));
		if (*find_text(f))
			heap_json_text(o, "text", find_text(f));
		out_str(o, "}\n");
		return;
	}
	out_printf(o, "%14llu %14llu  ", (unsigned long long)graph_retained(g, f->id),
		   (unsigned long long)graph_size(g, f->id));
	heap_put_object(g, f->id, o);
	if (*find_text(f)) {
		const char *text = find_text(f);
		size_t n = strlen(text);

		if (n > SHOWN_MAX)
			n = SHOWN_MAX;
		while (n && ((uint8_t)text[n] & 0xc0) == 0x80) /* within a character */
			n--;
		out_char(o, ' ');
		json_string(o, text, n);
		out_str(o, text[n] ? "..." : "");
	}
	out_char(o, '\n');
}

static struct err *find_all(struct graph *g, const struct node *predicate,
			    const struct heap_shown *how, struct out *o)
{
	struct finder f = { .g = g };
	uint64_t n = 0, bytes = 0;

	if (!how->json)
		out_printf(o, "%14s %14s  OBJECT\n", "RETAINED", "SIZE");
	out_init(&f.text, NULL);
	for (; f.id < graph_totals(g)->objects && !f.error; f.id++) {
		f.text_known = false;
		if (!find_true(&f, predicate))
			continue;
		bytes += graph_size(g, f.id);
		if (n++ < how->most)
			find_show(&f, how, o);
	}
	out_fini(&f.text);
	if (f.error)
		return f.error;
	if (!how->json) {
		out_printf(o, "%llu object%s, ", (unsigned long long)n, n == 1 ? "" : "s");
		out_size(o, bytes);
		out_str(o, n > how->most ? "; -n lists more\n" : "\n");
	}
	return NULL;
}

struct err *heap_show_find(struct graph *g, const char *expression, const struct heap_shown *how,
			   struct out *o)
{
	char *text = xasprintf("heap:::object /%s\n/ { }", expression);
	struct macro_args macros = { .target = -1 };
	struct arena arena;
	struct diags diags;
	struct parse_cx cx = {
		.arena = &arena, .diags = &diags, .macros = &macros, .is_type = no_type
	};
	struct node *top;
	struct err *e;

	arena_init(&arena);
	diags_init(&diags);
	source_add(&diags, SOURCE_FILE, "--find", text, strlen(text));
	top = parse_source(&cx, 0, PDESC_NAME);
	if (diags.errors)
		e = find_refused(&diags);
	else if (!top || top->next || top->kind != D_CLAUSE || !top->clause.pred ||
		 top->clause.body)
		e = err_new(EINVAL, "--find: not one expression: %s", expression);
	else
		e = find_all(g, top->clause.pred, how, o);
	diags_fini(&diags);
	arena_fini(&arena);
	free(text);
	return e;
}
