/* Prints the tree as indented text: one node a line, two spaces a level. Golden files depend on
 * every byte of this text. */
#define _GNU_SOURCE
#include <inttypes.h>

#include "ast.h"

struct printer {
	FILE *out;
	struct type_graph *types; /* NULL: the tree is not bound */
	struct arena arena;       /* holds names of types */
};

static void print_node(struct printer *p, const struct node *n, int depth, const char *role);

static void indent(struct printer *p, int depth)
{
	fprintf(p->out, "%*s", depth * 2, "");
}

static void print_quoted(FILE *out, const char *s, size_t n)
{
	fputc('"', out);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (c < ' ' || c >= 0x7f)
			fprintf(out, "\\%03o", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static const char *storage_text(enum decl_storage s)
{
	static const char *const text[] = {
		[STORAGE_NONE] = "",          [STORAGE_TYPEDEF] = "typedef ",
		[STORAGE_EXTERN] = "extern ", [STORAGE_STATIC] = "static ",
		[STORAGE_AUTO] = "auto ",     [STORAGE_REGISTER] = "register ",
		[STORAGE_SELF] = "self ",     [STORAGE_THIS] = "this ",
	};

	return text[s];
}

static void print_quals(FILE *out, uint32_t flags)
{
	fputs(flags & SPEC_CONST ? "const " : "", out);
	fputs(flags & SPEC_VOLATILE ? "volatile " : "", out);
	fputs(flags & SPEC_RESTRICT ? "restrict " : "", out);
}

static void print_spec(FILE *out, const struct spec *s)
{
	static const char *const base[] = {
		[BASE_NONE] = "int",          [BASE_VOID] = "void",     [BASE_CHAR] = "char",
		[BASE_INT] = "int",           [BASE_FLOAT] = "float",   [BASE_DOUBLE] = "double",
		[BASE_BOOL] = "_Bool",        [BASE_STRING] = "string", [BASE_STRUCT] = "struct",
		[BASE_UNION] = "union",       [BASE_ENUM] = "enum",     [BASE_NAME] = "",
		[BASE_USERLAND] = "userland",
	};

	print_quals(out, s->flags);
	fputs(s->flags & SPEC_SIGNED     ? "signed "
	      : s->flags & SPEC_UNSIGNED ? "unsigned "
					 : "",
	      out);
	fputs(s->flags & SPEC_SHORT      ? "short "
	      : s->flags & SPEC_LONG     ? "long "
	      : s->flags & SPEC_LONGLONG ? "long long "
					 : "",
	      out);
	fputs(base[s->base], out);
	if (s->base >= BASE_STRUCT && s->base <= BASE_ENUM)
		fputc(' ', out);
	if (s->module)
		fprintf(out, "%s`", s->module);
	if (s->name)
		fputs(s->name, out);
	else if (s->base >= BASE_STRUCT && s->base <= BASE_ENUM)
		fputs("(anonymous)", out);
}

/* Prints an expression on one line, for dimensions and enumerators. Prints constants and names as
 * they are and everything else in parentheses. */
static void print_inline_expr(FILE *out, const struct node *n)
{
	switch (n->kind) {
	case N_INT: fprintf(out, "%" PRIu64, n->i.value); break;
	case N_IDENT: fputs(n->ident.name, out); break;
	case N_UNARY:
		fprintf(out, "(%.1s", op_name(n->op));
		print_inline_expr(out, n->e.a);
		fputc(')', out);
		break;
	case N_BINARY:
		fputc('(', out);
		print_inline_expr(out, n->e.a);
		fprintf(out, " %s ", op_name(n->op));
		print_inline_expr(out, n->e.b);
		fputc(')', out);
		break;
	default: fprintf(out, "<%s>", node_kind_name(n->kind));
	}
}

/* Prints "name: array(3) of pointer to int". Reads from the name outwards, in the order of the
 * declarator list. */
static void print_decl_text(FILE *out, const struct decl *d)
{
	if (d->name)
		fprintf(out, "%s: ", d->name);
	fputs(storage_text(d->spec->storage), out);
	for (const struct declarator *x = d->declr; x; x = x->next) {
		switch (x->kind) {
		case DECLR_POINTER:
			print_quals(out, x->quals);
			fputs("pointer to ", out);
			break;
		case DECLR_ARRAY:
			fputs("array(", out);
			if (x->size)
				print_inline_expr(out, x->size);
			fputs(") of ", out);
			break;
		case DECLR_ASSOC:
		case DECLR_FUNC:
			fputs(x->kind == DECLR_ASSOC ? "assoc[" : "function(", out);
			for (const struct decl *q = x->params; q; q = q->next) {
				print_decl_text(out, q);
				fputs(q->next || x->varargs ? ", " : "", out);
			}
			fputs(x->varargs ? "..." : "", out);
			fputs(x->kind == DECLR_ASSOC ? "] of " : ") returning ", out);
			break;
		}
	}
	print_spec(out, d->spec);
	if (d->bits) {
		fputs(" : ", out);
		print_inline_expr(out, d->bits);
	}
}

/* Prints one line for the declaration, then one for each member of a body. `with_body` is false for
 * the b of "struct {..} a, b;", because a's line is followed by the members already. */
static void print_decl(struct printer *p, const struct decl *d, int depth, const char *role,
		       bool with_body)
{
	const struct spec *last = NULL;

	indent(p, depth);
	fprintf(p->out, "%s ", role);
	print_decl_text(p->out, d);
	fputc('\n', p->out);
	if (!d->spec->has_body || !with_body)
		return;
	for (const struct decl *m = d->spec->members; m; m = m->next) {
		print_decl(p, m, depth + 1, "member", m->spec != last);
		last = m->spec;
	}
	for (const struct enumerator *e = d->spec->enumerators; e; e = e->next) {
		indent(p, depth + 1);
		fprintf(p->out, "enumerator %s\n", e->name);
		if (e->value)
			print_node(p, e->value, depth + 2, NULL);
	}
}

static void print_decls(struct printer *p, const struct decl *d, int depth, const char *role)
{
	const struct spec *last = NULL;

	for (; d; d = d->next) {
		print_decl(p, d, depth, role, d->spec != last);
		last = d->spec;
	}
}

static void print_list(struct printer *p, const struct node *n, int depth)
{
	for (; n; n = n->next)
		print_node(p, n, depth, NULL);
}

static void print_label(struct printer *p, const char *label, int depth)
{
	indent(p, depth);
	fprintf(p->out, "%s\n", label);
}

static void print_pdesc(struct printer *p, const struct pdesc *d, int depth)
{
	indent(p, depth);
	if (d->by_id)
		fprintf(p->out, "probe #%u\n", d->id);
	else
		fprintf(p->out, "probe %s:%s:%s:%s\n", d->prov, d->mod, d->func, d->name);
}

/* Prints the values that follow the node's name on its line. */
static void print_head(struct printer *p, const struct node *n)
{
	static const char *const scope[] = {
		[SCOPE_NONE] = "", [SCOPE_SELF] = "self->", [SCOPE_THIS] = "this->"
	};
	FILE *out = p->out;

	switch (n->kind) {
	case N_INT:
		fprintf(out,
			p->types && !n->i.is_unsigned ? " %" PRId64 "%s%s%s%s"
						      : " %" PRIu64 "%s%s%s%s",
			n->i.value, n->i.is_unsigned ? "u" : "",
			n->i.longs == 2 ? "ll"
			: n->i.longs    ? "l"
					: "",
			n->i.is_char ? " char" : "", n->i.based ? " based" : "");
		break;
	case N_STR:
	case N_MACRO:
		fputc(' ', out);
		print_quoted(out, n->s.text, n->s.len);
		break;
	case N_IDENT: fprintf(out, " %s%s", scope[n->ident.scope], n->ident.name); break;
	case N_EXTERN:
		fprintf(out, " %s`%s", n->ident.module ? n->ident.module : "", n->ident.name);
		break;
	case N_AGG: fprintf(out, " @%s", n->agg.name); break;
	case N_CALL: fprintf(out, " %s", n->call.func); break;
	case N_MEMBER:
	case N_PMEMBER: fprintf(out, " %s", n->member.name); break;
	case N_UNARY:
	case N_BINARY: fprintf(out, " %s", op_name(n->op)); break;
	case N_ASSIGN: fprintf(out, " %s=", op_name(n->op)); break;
	case N_CAST:
	case N_SIZEOF_TYPE:
	case N_XLATE:
	case N_OFFSETOF:
		if (n->t.type) { /* a cast that the binder inserts has none */
			fputc(' ', out);
			print_decl_text(out, n->t.type);
		}
		if (n->kind == N_OFFSETOF)
			fprintf(out, ", %s", n->t.member);
		break;
	case D_PROVIDER: fprintf(out, " %s", n->provider.name); break;
	case D_PRAGMA: fprintf(out, " %s", n->pragma.text); break;
	default: break;
	}
	if (p->types && n->kind < S_EXPR)
		fprintf(out, ": %s", type_name(p->types, &p->arena, n->type, NULL));
	fputc('\n', out);
}

static void print_body(struct printer *p, const struct node *n, int depth)
{
	struct node_lists below = node_lists(n);
	const struct spec *body = NULL;

	switch (n->kind) {
	case N_CAST:
	case N_SIZEOF_TYPE:
	case N_OFFSETOF:
	case N_XLATE:
		body = n->t.type ? n->t.type->spec : NULL;
		for (const struct decl *m = body ? body->members : NULL; m; m = m->next)
			print_decl(p, m, depth, "member", true);
		print_list(p, n->t.a, depth);
		break;
	case S_LOCAL:
		print_decl(p, n->local.decl, depth, "variable", true);
		print_list(p, n->local.value, depth);
		break;
	case S_LOOP:
		if (n->loop.cond)
			print_node(p, n->loop.cond, depth, n->loop.tail ? "do-while" : "while");
		if (n->loop.step)
			print_node(p, n->loop.step, depth, "step");
		print_node(p, n->loop.body, depth, NULL);
		break;
	case S_IF:
		print_node(p, n->cond.cond, depth, NULL);
		print_node(p, n->cond.then, depth, "then");
		if (n->cond.els)
			print_node(p, n->cond.els, depth, "else");
		break;
	case D_CLAUSE:
		for (const struct pdesc *d = n->clause.pdescs; d; d = d->next)
			print_pdesc(p, d, depth);
		if (n->clause.pred) {
			print_label(p, "predicate", depth);
			print_node(p, n->clause.pred, depth + 1, NULL);
		}
		if (n->clause.has_body) {
			print_label(p, "body", depth);
			print_list(p, n->clause.body, depth + 1);
		}
		break;
	case D_DECL: print_decls(p, n->decl.decls, depth, "declare"); break;
	case D_INLINE:
		print_decls(p, n->inl.decl, depth, "declare");
		print_decls(p, n->inl.params, depth, "param");
		print_node(p, n->inl.value, depth, NULL);
		break;
	case D_TRANSLATOR:
		print_decls(p, n->xlator.out, depth, "out");
		print_decls(p, n->xlator.in, depth, "in");
		print_list(p, n->xlator.members, depth);
		break;
	case D_PROVIDER:
		for (const struct provider_probe *pr = n->provider.probes; pr; pr = pr->next) {
			indent(p, depth);
			fprintf(p->out, "probe %s\n", pr->name);
			print_decls(p, pr->native, depth + 1, "native");
			print_decls(p, pr->translated, depth + 1, "translated");
		}
		break;
	case D_FUNC: break;
	default:
		for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++)
			print_list(p, below.list[i], depth);
	}
}

static void print_node(struct printer *p, const struct node *n, int depth, const char *role)
{
	indent(p, depth);
	fputs(role ? role : node_kind_name(n->kind), p->out);
	print_head(p, n);
	print_body(p, n, depth + 1);
}

void ast_print(FILE *out, const struct node *n, struct type_graph *types)
{
	struct printer p = { .out = out, .types = types };

	arena_init(&p.arena);
	print_node(&p, n, 0, NULL);
	arena_fini(&p.arena);
}
