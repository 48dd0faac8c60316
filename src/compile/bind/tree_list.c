/* Prints the syntax tree in the form of DTrace's listings (-x tree), so that a D program's meaning
 * can be compared there and here. -d parse and -d bind print descry's own form.
 *
 *     Parse tree (Pass 2):
 *       CLAUSE attr=[s/s/c]
 *         PDESC :::BEGIN [0]
 *       CTXATTR [u/u/c]
 *       ACTION
 *         D EXPRESSION attr=[s/s/c]
 *           OP2 = (type=<int> attr=[s/s/c] flags=SIGN,COOK,WRITE)
 *
 * Nodes that DTrace does not have (loops, if, functions) are printed under the name that -d gives
 * them, in capitals. */
#include <ctype.h>
#include <inttypes.h>

#include "compile/bind/bind_private.h"
#include "probe/stability.h"

struct tree {
	FILE *out;
	struct type_graph *types; /* NULL: the tree is not bound */
	const bool *scratch;      /* variable i holds an address of alloca() or copyin() */
	struct arena arena;       /* holds names of types */
};

static const struct stability common = S_COMMON,
			      unknown = { LEVEL_INTERNAL, LEVEL_INTERNAL, CLASS_UNKNOWN };

static void print_node(struct tree *t, const struct node *n, int depth);

static void label(struct tree *t, int depth, const char *text)
{
	fprintf(t->out, "%*s%s\n", depth * 2, "", text);
}

/* Prints "[s/s/c]". */
static void print_attr(struct tree *t, struct stability s)
{
	fprintf(t->out, "[%c/%c/%c]", "ipoxuesS"[s.names], "ipoxuesS"[s.data],
		"uCpgIc"[s.dependency]);
}

/* Skips the casts that the binder inserted. They have the position of their operand. DTrace's tree
 * does not have them. */
static const struct node *as_written(const struct node *n)
{
	while (n->kind == N_CAST && !n->t.type && n->loc == n->t.a->loc)
		n = n->t.a;
	while (n->kind == N_STRINGOF && n->loc == n->e.a->loc && n->e.a->kind != N_INDEX)
		n = n->e.a;
	return n;
}

static const struct variable *variable_of(const struct node *n)
{
	return n->id && n->id->kind == IDENT_VAR ? n->id->var : NULL;
}

/* Returns true when the bound expression gives an address in memory of alloca() or copyin(). */
static bool gives_scratch(const bool *scratch, const struct node *n)
{
	switch (n->kind) {
	case N_CALL:
		return n->id && n->id->kind == IDENT_SUBR &&
		       (n->id->subr == SUBR_ALLOCA || n->id->subr == SUBR_COPYIN);
	case N_IDENT:
	case N_INDEX: return variable_of(n) && scratch[variable_of(n)->index];
	case N_CAST: return gives_scratch(scratch, n->t.a);
	case N_ASSIGN:
	case N_COMMA: return gives_scratch(scratch, n->e.b);
	case N_BINARY:
		return (n->op == OP_ADD || n->op == OP_SUB) &&
		       (gives_scratch(scratch, n->e.a) || gives_scratch(scratch, n->e.b));
	case N_TERNARY: return gives_scratch(scratch, n->e.b) || gives_scratch(scratch, n->e.c);
	default: return false;
	}
}

static void find_scratch(void *arg, const struct node *n)
{
	bool *scratch = arg;
	const struct variable *v = n->kind == N_ASSIGN ? variable_of(n->e.a) : NULL;

	if (v && gives_scratch(scratch, n->e.b))
		scratch[v->index] = true;
}

/* Returns true for calls of subroutines, even before binding, because D has no other use for their
 * names. */
static bool calls(const struct node *n, enum subr_kind kind)
{
	for (int i = 0; n->kind == N_CALL && i < SUBR_ID_COUNT; i++)
		if (!strcmp(subr_table[i].name, n->call.func))
			return subr_table[i].kind == kind;
	return false;
}

static struct stability stability_of(const struct node *n)
{
	static const struct stability private = P_UNKNOWN;

	return n->id && n->id->kind == IDENT_KSYM ? private : common;
}

static void put_flag(struct tree *t, bool set, const char *name, bool *any)
{
	if (!set)
		return;
	fprintf(t->out, "%s%s", *any ? "," : "", name);
	*any = true;
}

/* Prints the information that a node has before binding: only constants have a type. */
static void print_parsed_info(struct tree *t, const struct node *n)
{
	const char *type = NULL, *flags = "0";

	if (n->kind == N_STR) {
		type = "string";
		flags = "COOK,REF,DPTR";
	} else if (n->kind == N_INT) {
		bool wide = n->i.longs || n->i.value > (n->i.is_unsigned ? UINT32_MAX : INT32_MAX);

		type = n->i.is_unsigned ? (wide ? "unsigned long" : "unsigned int")
		       : wide           ? "long"
					: "int";
		flags = n->i.is_unsigned ? "COOK" : "SIGN,COOK";
	}
	fprintf(t->out, "(type=<%s> attr=", type ? type : "-1");
	print_attr(t, common);
	fprintf(t->out, " flags=%s)", flags);
}

static void print_info(struct tree *t, const struct node *n)
{
	bool agg = t->types && calls(n, SUBR_KIND_AGG), any = false;
	const struct variable *v = variable_of(n);

	if (!t->types) {
		print_parsed_info(t, n);
		return;
	}
	bool pointer = type_is_pointer(t->types, n->type) && !agg;
	bool by_address = agg || type_is_string(t->types, n->type) ||
			  type_is_sou(t->types, n->type) ||
			  type_kind(t->types, type_strip(t->types, n->type)) == TYPE_ARRAY;
	bool plain = n->type == T_VOID || n->type == T_DYN || type_is_signed(t->types, n->type);

	fprintf(t->out, "(type=<%s> attr=",
		agg || n->type == T_DYN ? "<DYN>" : type_name(t->types, &t->arena, n->type, NULL));
	print_attr(t, stability_of(n));
	fputs(" flags=", t->out);
	put_flag(t, agg || (plain && !pointer), "SIGN", &any);
	put_flag(t, true, "COOK", &any);
	put_flag(t, by_address || n->type == T_DYN, "REF", &any);
	put_flag(t, v || n->lvalue, "LVAL", &any);
	put_flag(t, v || n->kind == N_ASSIGN, "WRITE", &any);
	put_flag(t, n->selected && n->selected->bit_size, "BITF", &any);
	put_flag(t, gives_scratch(t->scratch, n), "ALLOCA", &any);
	put_flag(t, n->kind == N_STR, "DPTR", &any);
	fputc(')', t->out);
}

/* Prints "NAME text (type=<...> ...)". */
static void head(struct tree *t, const struct node *n, int depth, const char *name,
		 const char *text)
{
	fprintf(t->out, "%*s%s%s%s ", depth * 2, "", name, *text ? " " : "", text);
	print_info(t, n);
	fputc('\n', t->out);
}

static void print_list(struct tree *t, const struct node *list, int depth)
{
	for (const struct node *n = list; n; n = n->next)
		print_node(t, n, depth);
}

/* Prints arguments and keys. A line with a comma stands between two of them. */
static void print_args(struct tree *t, const struct node *args, int depth)
{
	for (const struct node *n = args; n; n = n->next) {
		print_node(t, n, depth + 1);
		if (n->next)
			label(t, depth, ",");
	}
}

static void print_string(struct tree *t, const struct node *n, int depth)
{
	fprintf(t->out, "%*sSTRING \"", depth * 2, "");
	for (uint32_t i = 0; i < n->s.len; i++) {
		unsigned char c = (unsigned char)n->s.text[i];
		const char *at = c ? strchr("\"\\\a\b\f\n\r\t\v", c) : NULL;

		if (at)
			fprintf(t->out, "\\%c", "\"\\abfnrtv"[at - "\"\\\a\b\f\n\r\t\v"]);
		else if (c < ' ' || c >= 0x7f)
			fprintf(t->out, "\\%03o", c);
		else
			fputc(c, t->out);
	}
	fputs("\" ", t->out);
	print_info(t, n);
	fputc('\n', t->out);
}

static void print_ident(struct tree *t, const struct node *n, const struct node *keys, int depth)
{
	static const char *const scopes[] = { "", "self->", "this->" };
	const struct variable *v = variable_of(n);
	bool builtin = n->id && n->id->kind == IDENT_BUILTIN;
	enum var_scope scope = v ? v->scope : n->kind == N_IDENT ? n->ident.scope : SCOPE_NONE;
	const char *name = v                    ? v->name
			   : builtin            ? builtin_table[n->id->builtin].name
			   : n->kind == N_IDENT ? n->ident.name
						: "?";

	fprintf(t->out, "%*s%s %s%s%s ", depth * 2, "", t->types ? "VARIABLE" : "IDENT",
		!v                     ? ""
		: t->scratch[v->index] ? "(alloca-assigned) "
				       : "(normally-assigned) ",
		scopes[scope], name);
	print_info(t, n);
	fputc('\n', t->out);
	if (!keys)
		return;
	label(t, depth, "[");
	print_args(t, keys, depth);
	label(t, depth, "]");
}

/* Prints an aggregation before binding, as an operator. DTrace's listing then has the first key
 * only. */
static void print_parsed_agg(struct tree *t, const struct node *n, int depth)
{
	int below = n->agg.keys ? depth + 1 : depth;

	if (n->agg.keys)
		head(t, n, depth, "OP2", "[");
	fprintf(t->out, "%*sIDENT @%s ", below * 2, "", n->agg.name);
	print_info(t, n);
	fputc('\n', t->out);
	if (n->agg.keys)
		print_node(t, n->agg.keys, below);
}

static void print_agg(struct tree *t, const struct node *n, int depth)
{
	if (!t->types) {
		print_parsed_agg(t, n, depth);
		return;
	}
	fprintf(t->out, "%*sAGGREGATE @%s attr=", depth * 2, "", n->agg.name);
	print_attr(t, common);
	fputs(" [\n", t->out);
	print_args(t, n->agg.keys, depth);
	label(t, depth, "]");
}

static void print_call(struct tree *t, const struct node *n, int depth)
{
	const struct node *args = n->call.args;

	head(t, n, depth, "FUNC", n->call.func);
	print_args(t, args, depth);
	/* DTrace's tree holds the length that copyinstr() takes when the call gives none. */
	if (t->types && n->id && n->id->kind == IDENT_SUBR && n->id->subr == SUBR_COPYINSTR &&
	    args && !args->next) {
		struct node length = { .kind = N_INT, .type = T_INT };

		length.i.value = type_size(t->types, T_STRING);
		label(t, depth, ",");
		print_node(t, &length, depth + 1);
	}
}

/* Prints the type that a cast, sizeof or xlate names. */
static void print_type(struct tree *t, const struct node *n, int depth)
{
	const struct spec *s = n->t.type ? n->t.type->spec : NULL;

	head(t, n, depth, "TYPE", s && s->name ? s->name : "");
}

static void print_op(struct tree *t, const struct node *n, int depth, const char *name,
		     const char *op)
{
	head(t, n, depth, name, op);
	print_node(t, n->e.a, depth + 1);
	if (n->e.b)
		print_node(t, n->e.b, depth + 1);
}

static void print_member(struct tree *t, const struct node *n, int depth)
{
	head(t, n, depth, "OP2", n->kind == N_MEMBER ? "." : "->");
	print_node(t, n->member.a, depth + 1);
	fprintf(t->out, "%*sIDENT %s ", depth * 2 + 2, "", n->member.name);
	print_info(t, n);
	fputc('\n', t->out);
}

static void print_ternary(struct tree *t, const struct node *n, int depth)
{
	head(t, n, depth, "OP3", "");
	print_node(t, n->e.a, depth + 1);
	label(t, depth, "?");
	print_node(t, n->e.b, depth + 1);
	label(t, depth, ":");
	print_node(t, n->e.c, depth + 1);
}

static void print_statement(struct tree *t, const struct node *n, int depth)
{
	const struct node *e = n->block.body;

	fprintf(t->out, "%*sD %s attr=", depth * 2, "",
		calls(e, SUBR_KIND_ACTION) ? "PRODUCER" : "EXPRESSION");
	print_attr(t, common);
	fputc('\n', t->out);
	print_node(t, e, depth + 1);
}

/* Prints "OP2 =" or "OP2 +=". An aggregation's stands under its keys. */
static void print_assign(struct tree *t, const struct node *n, int depth)
{
	char op[8];

	if (t->types && n->e.a->kind == N_AGG) {
		print_node(t, n->e.a, depth);
		label(t, depth, "=");
		print_node(t, n->e.b, depth + 1);
		return;
	}
	snprintf(op, sizeof(op), "%s=", op_name(n->op));
	print_op(t, n, depth, "OP2", op);
}

static void print_unary(struct tree *t, const struct node *n, int depth)
{
	const char *op = op_name(n->op);
	char text[8];
	size_t len = 0;

	for (; *op && len + 1 < sizeof(text); op++)
		if (*op != 'u')
			text[len++] = *op;
	text[len] = '\0';
	print_op(t, n, depth, "OP1", text);
}

/* Prints descriptions. A description has a number only when the source gives one. */
static void print_pdescs(struct tree *t, const struct pdesc *d, int depth)
{
	for (; d; d = d->next)
		fprintf(t->out, "%*sPDESC %s:%s:%s:%s [%" PRIu32 "]\n", depth * 2, "", d->prov,
			d->mod, d->func, d->name, d->by_id ? d->id : 0);
}

static void print_clause(struct tree *t, const struct pdesc *descs, struct stability context,
			 const struct node *pred, const struct node *body, int depth)
{
	fprintf(t->out, "%*sCLAUSE attr=", depth * 2, "");
	print_attr(t, common);
	fputc('\n', t->out);
	print_pdescs(t, descs, depth + 1);
	fprintf(t->out, "%*sCTXATTR ", depth * 2, "");
	print_attr(t, context);
	fputc('\n', t->out);
	if (pred) {
		label(t, depth, "PREDICATE /");
		print_node(t, pred, depth + 1);
		label(t, depth, "/");
	}
	label(t, depth, "ACTION");
	print_list(t, body, depth + 1);
}

static void print_declaration(struct tree *t, const struct node *n, int depth)
{
	switch (n->kind) {
	case D_INLINE:
	case D_FUNC:
		head(t, n, depth, n->kind == D_FUNC ? "FUNCTION" : "INLINE", n->inl.decl->name);
		print_node(t, n->inl.value, depth + 1);
		break;
	case D_TRANSLATOR:
		head(t, n, depth, "XLATOR", "");
		for (const struct node *m = n->xlator.members; m; m = m->next) {
			head(t, m, depth + 1, "MEMBER", m->e.a->ident.name);
			print_node(t, m->e.b, depth + 2);
		}
		break;
	case D_PROVIDER:
		fprintf(t->out, "%*sPROVIDER %s (decl)\n", depth * 2, "", n->provider.name);
		for (const struct provider_probe *p = n->provider.probes; p; p = p->next)
			fprintf(t->out, "%*sPROBE %s\n", depth * 2 + 2, "", p->name);
		break;
	default: break; /* DTrace's tree has no other declarations, and no pragmas */
	}
}

/* Prints a node that DTrace does not have: its name in capitals, its parts in the order of the
 * source. */
static void print_own(struct tree *t, const struct node *n, int depth)
{
	const struct node *const parts[] = {
		n->kind == S_LOOP   ? n->loop.cond
		: n->kind == S_IF   ? n->cond.cond
		: n->kind == N_BODY ? n->fn.args
				    : NULL,
		n->kind == S_LOOP                           ? n->loop.step
		: n->kind == S_IF                           ? n->cond.then
		: n->kind == S_BLOCK || n->kind == S_RETURN ? n->block.body
		: n->kind == S_LOCAL                        ? n->local.value
							    : NULL,
		n->kind == S_LOOP   ? n->loop.body
		: n->kind == S_IF   ? n->cond.els
		: n->kind == N_BODY ? n->fn.body
				    : NULL,
	};

	fprintf(t->out, "%*s", depth * 2, "");
	for (const char *p = node_kind_name(n->kind); *p; p++)
		fputc(toupper((unsigned char)*p), t->out);
	fputs(n->kind == S_LOCAL ? " " : "\n", t->out);
	if (n->kind == S_LOCAL)
		fprintf(t->out, "%s\n", n->local.decl->name);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		print_list(t, parts[i], depth + 1);
}

static void print_node(struct tree *t, const struct node *n, int depth)
{
	char text[24];

	if (t->types)
		n = as_written(n);
	switch (n->kind) {
	case N_INT:
		snprintf(text, sizeof(text), "0x%" PRIx64, n->i.value);
		head(t, n, depth, "INT", text);
		break;
	case N_STR: print_string(t, n, depth); break;
	case N_IDENT: print_ident(t, n, NULL, depth); break;
	case N_EXTERN:
		fprintf(t->out, "%*sSYMBOL %s`%s ", depth * 2, "",
			n->ident.module ? n->ident.module : "", n->ident.name);
		print_info(t, n);
		fputc('\n', t->out);
		break;
	case N_MACRO: head(t, n, depth, "IDENT", n->s.text); break;
	case N_AGG: print_agg(t, n, depth); break;
	case N_INDEX:
		if (t->types && n->id)
			print_ident(t, n, n->e.b, depth);
		else
			print_op(t, n, depth, "OP2", "[");
		break;
	case N_CALL: print_call(t, n, depth); break;
	case N_MEMBER:
	case N_PMEMBER: print_member(t, n, depth); break;
	case N_UNARY: print_unary(t, n, depth); break;
	case N_BINARY: print_op(t, n, depth, "OP2", op_name(n->op)); break;
	case N_COMMA: print_op(t, n, depth, "OP2", ","); break;
	case N_ASSIGN: print_assign(t, n, depth); break;
	case N_TERNARY: print_ternary(t, n, depth); break;
	case N_SIZEOF: print_op(t, n, depth, "OP1", "sizeof"); break;
	case N_STRINGOF: print_op(t, n, depth, "OP1", "stringof"); break;
	case N_CAST:
	case N_XLATE:
		head(t, n, depth, "OP2", n->kind == N_CAST ? "()" : "xlate");
		print_type(t, n, depth + 1);
		print_node(t, n->t.a, depth + 1);
		break;
	case N_SIZEOF_TYPE:
	case N_OFFSETOF:
		head(t, n, depth, "OP1", n->kind == N_OFFSETOF ? "offsetof" : "sizeof");
		print_type(t, n, depth + 1);
		break;
	case S_EXPR: print_statement(t, n, depth); break;
	case D_CLAUSE:
		print_clause(t, n->clause.pdescs, unknown, n->clause.pred, n->clause.body, depth);
		break;
	case D_DECL:
	case D_INLINE:
	case D_FUNC:
	case D_TRANSLATOR:
	case D_PROVIDER:
	case D_PRAGMA: print_declaration(t, n, depth); break;
	default: print_own(t, n, depth);
	}
}

static void print_program(struct tree *t)
{
	fputs("  PROGRAM attr=", t->out);
	print_attr(t, common);
	fputc('\n', t->out);
}

void tree_list_parsed(FILE *out, const struct node *top)
{
	struct tree t = { .out = out };

	arena_init(&t.arena);
	fputs("Parse tree (Pass 1):\n", out);
	print_program(&t);
	print_list(&t, top, 2);
	fputs("Parse tree: end\n", out);
	arena_fini(&t.arena);
}

/* Returns the stability of the clause's probe. It is lower when the description's provider is a
 * pattern or empty. */
static struct stability context_of(const struct bound_clause *c)
{
	const struct probe_desc prov = { c->descs ? c->descs->prov : "", "", "", "" };

	if (!c->nprobes)
		return unknown;
	return stability_min(probe_desc_stability(&prov, c->probes[0]),
			     c->probes[0]->provider->stability.args);
}

void tree_list_bound(FILE *out, const struct bound *b, struct type_graph *types, int pass)
{
	struct tree t = { .out = out, .types = types };
	bool *scratch;

	arena_init(&t.arena);
	t.scratch = scratch = arena_array(&t.arena, bool, b->vars.n + 1);
	/* Walk the clauses in the order of the program, as DTrace does: a value that a later clause
	 * gives does not affect an earlier clause. */
	for (uint32_t i = 0; i < b->clauses.n; i++)
		node_walk(b->clauses.v[i]->body, find_scratch, scratch);
	if (pass == 3) {
		fputs("Parse tree (Pass 3):\n", out);
		print_program(&t);
	}
	for (uint32_t i = 0; i < b->clauses.n; i++) {
		const struct bound_clause *c = b->clauses.v[i];

		if (pass == 2)
			fputs("Parse tree (Pass 2):\n", out);
		print_clause(&t, c->descs, context_of(c), c->pred, c->body, pass - 1);
	}
	fputs("Parse tree: end\n", out);
	arena_fini(&t.arena);
}
