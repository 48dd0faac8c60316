/* The front door of the parser, and the functions of all productions: tokens, errors, recovery. */
#define _GNU_SOURCE
#include <stdarg.h>

#include "parse_private.h"

const struct token *peek(struct parser *p, uint32_t k)
{
	const struct token *t;

	p->stop = (struct token){ .kind = TOK_STOP, .loc = p->last_end, .end = p->last_end };
	if (p->panic)
		return &p->stop;
	while (p->queued <= k)
		lex_next(&p->lx, &p->queue[(p->head + p->queued++) % QUEUE]);
	t = &p->queue[(p->head + k) % QUEUE];
	if (k == 0 && t->kind == TOK_ERROR) {
		p->panic = true;
		return &p->stop;
	}
	return t;
}

enum token_kind peek_kind(struct parser *p, uint32_t k)
{
	return peek(p, k)->kind;
}

static void pop(struct parser *p, const struct token *t)
{
	p->last_end = t->end;
	p->braces += t->kind == TOK_LBRACE;
	p->braces -= t->kind == TOK_RBRACE && p->braces;
	p->head = (p->head + 1) % QUEUE;
	p->queued--;
}

void take(struct parser *p)
{
	const struct token *t = peek(p, 0);

	if (p->panic)
		return;
	pop(p, t);
}

bool accept(struct parser *p, enum token_kind k)
{
	if (!is_at(p, k))
		return false;
	take(p);
	return true;
}

void parse_error(struct parser *p, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	diag_error(p->cx->diags, loc, end, tag, "%s", text);
}

void syntax_error(struct parser *p, const char *hint)
{
	const struct token *t = peek(p, 0);

	if (p->panic)
		return;
	if (t->kind == TOK_EOF) {
		parse_error(p, t->loc, t->end, "D_SYNTAX", "syntax error near end-of-input%s%s",
			    hint ? ": " : "", hint ? hint : "");
	} else {
		enum { SHOWN = 40 };
		uint32_t n = t->end - t->loc, shown = n > SHOWN ? SHOWN : n;
		char text[SHOWN + 1];

		memcpy(text, p->lx.text + (t->loc - p->lx.base), shown);
		text[shown] = '\0';
		for (uint32_t i = 0; i < shown; i++)
			if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
				text[i] = ' ';
		parse_error(p, t->loc, t->end, "D_SYNTAX", "syntax error near \"%s%s\"%s%s", text,
			    n > shown ? "..." : "", hint ? ": " : "", hint ? hint : "");
	}
	p->panic = true;
}

bool expect(struct parser *p, enum token_kind k)
{
	char hint[64];

	if (accept(p, k))
		return true;
	if (is_at(p, TOK_EPRED) && (k == TOK_RPAREN || k == TOK_RBRACKET)) {
		const struct token *t = peek(p, 0);

		parse_error(p, t->loc, t->end, "D_SYNTAX",
			    "closing %s expected in predicate before /", token_kind_text(k));
		p->panic = true;
		return false;
	}
	snprintf(hint, sizeof(hint), k == TOK_IDENT ? "expected %s" : "expected \"%s\"",
		 token_kind_text(k));
	syntax_error(p, hint);
	return false;
}

bool enter(struct parser *p)
{
	const struct token *t = peek(p, 0);

	if (p->panic)
		return false;
	if (p->depth >= MAX_DEPTH) {
		parse_error(p, t->loc, t->end, "D_SYNTAX",
			    "syntax error: nested more than %d levels deep", MAX_DEPTH);
		p->panic = true;
		return false;
	}
	p->depth++;
	return true;
}

void recover(struct parser *p, uint32_t level)
{
	bool quiet = p->lx.quiet, closed = false;

	p->panic = false;
	p->lx.quiet = true;
	for (;;) {
		/* peek() would stop again at a malformed token. So this loop reads the queue
		 * itself. */
		if (!p->queued)
			lex_next(&p->lx, &p->queue[(p->head + p->queued++) % QUEUE]);

		const struct token *t = &p->queue[p->head];
		enum token_kind k = t->kind;

		if (k == TOK_EOF || (closed && k != TOK_SEMI) ||
		    (k == TOK_RBRACE && p->braces <= level))
			break;
		pop(p, t);
		if (closed || (k == TOK_SEMI && p->braces <= level))
			break;
		closed = k == TOK_RBRACE && p->braces <= level;
	}
	p->lx.quiet = quiet;
}

void unread(struct parser *p)
{
	if (p->queued)
		lex_seek(&p->lx, p->queue[p->head].loc);
	p->queued = 0;
}

struct node *new_node(struct parser *p, enum node_kind kind, loc_t loc)
{
	struct node *n = arena_new(p->cx->arena, struct node);

	n->kind = kind;
	n->loc = loc;
	n->end = p->last_end > loc ? p->last_end : loc;
	n->height = 1;
	return n;
}

static uint32_t list_height(const struct node *n)
{
	uint32_t h = 0;

	for (; n; n = n->next)
		if (n->height > h)
			h = n->height;
	return h;
}

struct node *finish(struct parser *p, struct node *n)
{
	struct node_lists below = node_lists(n);
	uint32_t h = 0;

	n->end = p->last_end > n->loc ? p->last_end : n->loc;
	for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++) {
		uint32_t height = list_height(below.list[i]);

		h = height > h ? height : h;
	}
	if (h >= AST_MAX_HEIGHT) {
		struct node *poison = new_node(p, N_INT, n->loc);

		if (!p->panic)
			parse_error(p, n->loc, n->end, "D_SYNTAX",
				    "syntax error: expression of more than %d levels",
				    AST_MAX_HEIGHT);
		p->panic = true;
		return poison;
	}
	n->height = (uint16_t)(h + 1);
	return n;
}

static struct hash *type_names(struct parser *p)
{
	return p->cx->typedefs ? p->cx->typedefs : &p->types;
}

void declare_type(struct parser *p, const char *name)
{
	*hash_put(type_names(p), name, strlen(name), NULL) = 1;
}

void declare_var(struct parser *p, const char *name)
{
	hash_put(&p->vars, name, strlen(name), NULL);
}

bool is_type_token(struct parser *p, const struct token *t)
{
	enum keyword_class c = token_class(t->kind);

	if (c == K_TYPE || c == K_QUAL)
		return true;
	if (t->kind != TOK_IDENT)
		return false;
	if (!t->scoped && hash_get(type_names(p), t->text, strlen(t->text)))
		return true;
	if (!t->scoped && hash_get(&p->vars, t->text, strlen(t->text)))
		return false;
	return p->cx->is_type && p->cx->is_type(p->cx->is_type_arg, t->module, t->text);
}

void append_top(struct parser *p, struct node *n)
{
	for (struct lex_pragma *pr = p->lx.pragmas; pr; pr = pr->next) {
		struct node *d = new_node(p, D_PRAGMA, pr->loc);

		d->end = pr->end;
		d->pragma.text = pr->text;
		*p->tail = d;
		p->tail = &d->next;
	}
	p->lx.pragmas = NULL;
	p->lx.pragmas_tail = &p->lx.pragmas;
	if (n) {
		*p->tail = n;
		p->tail = &n->next;
	}
}

static void parser_init(struct parser *p, struct parse_cx *cx, uint32_t src, enum pdesc_form form)
{
	memset(p, 0, sizeof(*p));
	p->cx = cx;
	p->form = form;
	p->source_kind = cx->diags->sources[src].kind;
	p->tail = &p->list;
	lex_init(&p->lx, cx, src);
	p->last_end = p->lx.base;
}

static void parser_fini(struct parser *p)
{
	hash_fini(&p->types);
	hash_fini(&p->vars);
}

/* program:  item* */
struct node *parse_source(struct parse_cx *cx, uint32_t src, enum pdesc_form form)
{
	uint32_t errors = cx->diags->errors;
	struct parser p;
	bool code = false;

	parser_init(&p, cx, src, form);
	parse_items(&p);
	append_top(&p, NULL);
	for (struct node *n = p.list; n && !code; n = n->next)
		code = n->kind != D_PRAGMA;
	if (!code && !cx->empty && p.source_kind != SOURCE_LIB && cx->diags->errors == errors)
		diag_error(cx->diags, p.lx.base, p.lx.base, "D_EMPTY",
			   "empty D program translation unit");
	parser_fini(&p);
	return p.list;
}

struct pdesc *parse_pdesc_text(struct parse_cx *cx, uint32_t src, enum pdesc_form form)
{
	struct pdesc *d = NULL;
	struct parser p;
	struct token t, rest;

	parser_init(&p, cx, src, form);
	lex_top(&p.lx, &t);
	if (t.kind == TOK_INT || t.text) {
		d = parse_pdesc(cx, form, &t);
		lex_top(&p.lx, &rest);
		if (rest.kind != TOK_EOF) {
			parse_error(&p, rest.loc, rest.end, "D_SYNTAX",
				    "syntax error after the probe description");
			d = NULL;
		}
	} else if (t.kind != TOK_ERROR) {
		parse_error(&p, t.loc, t.end, "D_SYNTAX", "probe description expected");
	}
	parser_fini(&p);
	return d;
}
