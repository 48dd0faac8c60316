/* Parses the items at top level: clauses, inlines, translators, providers, declarations. */
#include "parse_private.h"

static struct node *parse_statements(struct parser *p);

/* Skips a whole statement of C that D does not have. It begins with a reserved word. */
static void skip_c_statement(struct parser *p)
{
	const struct token t = *peek(p, 0);
	uint32_t depth = 0, level = p->braces;

	switch (t.kind) {
	case TOK_BREAK:
	case TOK_CONTINUE: syntax_error(p, "it may only stand in a loop"); break;
	case TOK_RETURN: syntax_error(p, "it may only stand in a function"); break;
	case TOK_SWITCH:
	case TOK_CASE:
	case TOK_DEFAULT:
	case TOK_GOTO: syntax_error(p, "D has no such statement"); break;
	default: syntax_error(p, NULL);
	}
	p->panic = false;
	take(p);
	/* for (a; b; c): these semicolons do not end the statement */
	if (is_at(p, TOK_LPAREN)) {
		do {
			enum token_kind k = cur(p);

			if (k == TOK_EOF || k == TOK_LBRACE || k == TOK_RBRACE || p->panic)
				break;
			depth += k == TOK_LPAREN;
			depth -= k == TOK_RPAREN;
			take(p);
		} while (depth);
	}
	recover(p, level);
}

static bool is_c_statement(enum token_kind k)
{
	switch (k) {
	case TOK_SWITCH:
	case TOK_CASE:
	case TOK_DEFAULT:
	case TOK_BREAK:
	case TOK_CONTINUE:
	case TOK_GOTO:
	case TOK_RETURN: return true;
	default: return false;
	}
}

/* block:  "{" statements "}"  |  statement     The result is always an S_BLOCK. */
static struct node *parse_block(struct parser *p);

/* if:  "if" "(" expression ")" block ["else" (if | block)]
 * Reads an else-if chain in a loop and folds it from its end. */
static struct node *parse_if(struct parser *p)
{
	VEC(struct node *) chain = { 0 };
	struct node *els = NULL, *n;

	do {
		n = new_node(p, S_IF, peek(p, 0)->loc);
		take(p);
		expect(p, TOK_LPAREN);
		n->cond.cond = parse_expression(p);
		expect(p, TOK_RPAREN);
		n->cond.then = parse_block(p);
		n->end = p->last_end;
		vec_push(&chain, n);
		if (!accept(p, TOK_ELSE))
			break;
		if (!is_at(p, TOK_IF)) {
			els = parse_block(p);
			break;
		}
	} while (true);
	while (chain.n) {
		n = chain.v[--chain.n];
		n->cond.els = els;
		n = finish(p, n);
		if (!chain.n)
			break;
		els = new_node(p, S_BLOCK, n->loc);
		els->block.body = n;
		els = finish(p, els);
	}
	vec_fini(&chain);
	return n;
}

/* Parses an expression that is a statement, as S_EXPR. */
static struct node *parse_effect(struct parser *p)
{
	struct node *n = new_node(p, S_EXPR, peek(p, 0)->loc);

	n->block.body = parse_expression(p);
	return finish(p, n);
}

/* Returns true at "T x" and "T *x", because no expression begins so. */
static bool begins_local(struct parser *p)
{
	enum keyword_class c = token_class(cur(p));

	if (c == K_TYPE || c == K_QUAL)
		return true;
	return is_at(p, TOK_IDENT) &&
	       (peek_kind(p, 1) == TOK_IDENT || peek_kind(p, 1) == TOK_MUL) && starts_type(p, 0);
}

/* local:  specifiers declarator ["=" assignment] { "," declarator ["=" assignment] }     one S_LOCAL each */
static struct node *parse_local(struct parser *p)
{
	loc_t loc = peek(p, 0)->loc;
	struct node *list = NULL, **tail = &list;
	struct spec *spec;

	p->bad_decl = false;
	spec = parse_local_specs(p);
	do {
		struct node *n = new_node(p, S_LOCAL, list ? peek(p, 0)->loc : loc);

		n->local.decl = parse_local_declarator(p, spec);
		if (p->panic || p->bad_decl || !n->local.decl->name)
			break;
		if (accept(p, TOK_ASSIGN))
			n->local.value = parse_assignment(p);
		declare_var(p, n->local.decl->name);
		*tail = finish(p, n);
		tail = &(*tail)->next;
	} while (accept(p, TOK_COMMA));
	return list;
}

/* Parses the body of a loop. break and continue may stand in it. */
static void parse_loop_body(struct parser *p, struct node *n)
{
	p->loops++;
	n->loop.body = parse_block(p);
	p->loops--;
}

/* loop:  "while" "(" expression ")" block
 *    |  "do" block "while" "(" expression ")" ";"
 *    |  "for" "(" [expression | local] ";" [expression] ";" [expression] ")" block
 * A for with a first part becomes a block of two statements. */
static struct node *parse_loop(struct parser *p)
{
	struct node *n = new_node(p, S_LOOP, peek(p, 0)->loc), *first = NULL, *block;
	enum token_kind kind = cur(p);

	take(p);
	if (kind == TOK_DO) {
		n->loop.tail = true;
		parse_loop_body(p, n);
		expect(p, TOK_WHILE);
	}
	expect(p, TOK_LPAREN);
	if (kind == TOK_FOR && !is_at(p, TOK_SEMI))
		first = begins_local(p) ? parse_local(p) : parse_effect(p);
	if (kind == TOK_FOR)
		expect(p, TOK_SEMI);
	if (kind != TOK_FOR || !is_at(p, TOK_SEMI))
		n->loop.cond = parse_expression(p);
	if (kind == TOK_FOR) {
		expect(p, TOK_SEMI);
		if (!is_at(p, TOK_RPAREN))
			n->loop.step = parse_effect(p);
	}
	expect(p, TOK_RPAREN);
	if (kind == TOK_DO) {
		if (!is_at(p, TOK_RBRACE))
			expect(p, TOK_SEMI);
	} else {
		parse_loop_body(p, n);
	}
	n = finish(p, n);
	if (!first)
		return n;
	block = new_node(p, S_BLOCK, n->loc);
	block->block.body = first;
	while (first->next)
		first = first->next;
	first->next = n;
	return finish(p, block);
}

/* jump:  "break" ";"  |  "continue" ";"  |  "return" [expression] ";" */
static struct node *parse_jump(struct parser *p)
{
	enum token_kind kind = cur(p);
	struct node *n = new_node(p,
				  kind == TOK_BREAK      ? S_BREAK
				  : kind == TOK_CONTINUE ? S_CONTINUE
							 : S_RETURN,
				  peek(p, 0)->loc);

	take(p);
	if (kind == TOK_RETURN && !is_at(p, TOK_SEMI) && !is_at(p, TOK_RBRACE))
		n->block.body = parse_expression(p);
	n = finish(p, n);
	if (!is_at(p, TOK_RBRACE))
		expect(p, TOK_SEMI);
	return n;
}

/* statement:  ";"  |  (expression | local) (";" | before "}")  |  if  |  loop  |  jump
 * Returns NULL for an empty statement, and a list for a local. */
static struct node *parse_statement(struct parser *p)
{
	struct node *n, *e;

	if (accept(p, TOK_SEMI))
		return NULL;
	if (is_at(p, TOK_IF))
		return parse_if(p);
	if (is_at(p, TOK_FOR) || is_at(p, TOK_WHILE) || is_at(p, TOK_DO))
		return parse_loop(p);
	if ((p->loops && (is_at(p, TOK_BREAK) || is_at(p, TOK_CONTINUE))) ||
	    (p->in_function && is_at(p, TOK_RETURN)))
		return parse_jump(p);
	if (is_c_statement(cur(p))) {
		skip_c_statement(p);
		return NULL;
	}
	if (begins_local(p)) {
		n = parse_local(p);
	} else {
		n = new_node(p, S_EXPR, peek(p, 0)->loc);
		e = parse_expression(p);
		n->block.body = e;
		n = finish(p, n);
	}
	if (!is_at(p, TOK_RBRACE) && !accept(p, TOK_SEMI))
		syntax_error(p, is_at(p, TOK_EOF) ? "expected \"}\"" : NULL);
	return n;
}

static struct node *parse_block(struct parser *p)
{
	struct node *n = new_node(p, S_BLOCK, peek(p, 0)->loc);

	if (!enter(p))
		return n;
	if (accept(p, TOK_LBRACE)) {
		n->block.body = parse_statements(p);
		if (!p->unclosed)
			expect(p, TOK_RBRACE);
	} else {
		n->block.body = parse_statement(p);
	}
	leave(p);
	return finish(p, n);
}

/* Returns true when the name at loc begins the next clause, although a statement may stand here: a
 * brace is missing. Only a name at the start of a line can do so: "tick-1s {", "syscall::read:entry
 * /", "a:b:c:d,". */
static bool begins_clause(struct parser *p, loc_t loc)
{
	struct lexer lx = p->lx;
	const char *colon;
	struct token t;

	if (loc == lx.base || lx.text[loc - lx.base - 1] != '\n')
		return false;
	lex_seek(&lx, loc);
	lx.quiet = true;
	lx.controlled = UINT32_MAX;
	lex_top(&lx, &t);
	if (t.kind != TOK_PSPEC)
		return false;
	colon = strchr(t.text, ':');
	lex_top(&lx, &t);
	return t.kind == TOK_LBRACE ||
	       ((t.kind == TOK_DIV || t.kind == TOK_COMMA) && colon && strchr(colon + 1, ':'));
}

/* statements:  { statement }     Reads up to "}" or the end. An error costs one statement. */
static struct node *parse_statements(struct parser *p)
{
	struct node *list = NULL, **tail = &list, *n;
	uint32_t level = p->braces;

	while (!is_at(p, TOK_RBRACE) && !is_at(p, TOK_EOF) && !p->unclosed) {
		if (is_at(p, TOK_IDENT) && begins_clause(p, peek(p, 0)->loc)) {
			const struct token *t = peek(p, 0);

			parse_error(
				p, t->loc, t->end, "D_SYNTAX",
				"syntax error near \"%s\": expected \"}\" before the next clause",
				t->text);
			p->unclosed = true;
			break;
		}
		n = parse_statement(p);
		if (p->panic) {
			recover(p, level);
			continue;
		}
		for (*tail = n; *tail; tail = &(*tail)->next)
			;
	}
	return list;
}

/* pdescs:  pdesc { "," pdesc }     *t is the first token before the call and the token behind
 * the list after it. */
static struct pdesc *parse_pdescs(struct parser *p, struct token *t, bool *ret_bad)
{
	struct pdesc *list = NULL, **tail = &list;

	*ret_bad = false;

	for (;;) {
		if (t->kind != TOK_INT && !t->text) {
			if (t->kind != TOK_ERROR) {
				uint32_t n = t->end - t->loc;

				parse_error(
					p, t->loc, t->end, "D_SYNTAX",
					n ? "syntax error near \"%.*s\": expected a probe description"
					  : "syntax error near end-of-input%.*s: expected a probe description",
					(int)n, p->lx.text + (t->loc - p->lx.base));
			}
			lex_seek(&p->lx, t->loc);
			p->panic = true;
			return NULL;
		}
		*tail = parse_pdesc(p->cx, p->form, t);
		if (*tail)
			tail = &(*tail)->next;
		else
			*ret_bad = true;
		p->last_end = t->end;
		lex_top(&p->lx, t);
		if (t->kind != TOK_COMMA)
			break;
		lex_top(&p->lx, t);
	}
	return list;
}

/* clause:  pdescs ["/" expression "/"] ["{" statements "}"]
 * The body may be missing only on the command line, and never after a predicate. Returns NULL on
 * error. */
static struct node *parse_clause(struct parser *p)
{
	struct node *n;
	struct token t;
	uint32_t errors = p->cx->diags->errors;
	loc_t pred_end;
	bool bad;

	lex_top(&p->lx, &t);
	n = new_node(p, D_CLAUSE, t.loc);
	n->clause.pdescs = parse_pdescs(p, &t, &bad);
	if (p->panic)
		return NULL;
	lex_seek(&p->lx, t.loc);
	if (t.kind != TOK_DIV && t.kind != TOK_LBRACE) {
		if (p->source_kind != SOURCE_ARG) {
			if (!bad && t.kind != TOK_ERROR) {
				parse_error(
					p, n->loc, p->last_end, "D_SYNTAX",
					"expected predicate and/or actions following probe description");
			}
			/* The text behind the wrong word belongs to the same mistake. */
			if (t.kind != TOK_EOF)
				p->panic = true;
			return NULL;
		}
		return bad ? NULL : finish(p, n);
	}
	if (t.kind == TOK_DIV) {
		take(p);
		p->lx.pred = true;
		n->clause.pred = parse_expression(p);
		pred_end = peek(p, 0)->end;
		if (!accept(p, TOK_EPRED)) {
			syntax_error(p, "expected \"/\" and \"{\" after the predicate");
			p->lx.pred = false;
			return NULL;
		}
		p->lx.pred = false;
		if (!is_at(p, TOK_LBRACE)) {
			if (!p->panic) {
				parse_error(
					p, n->clause.pred->loc, pred_end, "D_SYNTAX",
					"expected actions { } following probe description and predicate");
			}
			p->panic = !is_at(p, TOK_EOF);
			return NULL;
		}
	}
	take(p);
	n->clause.has_body = true;
	n->clause.body = parse_statements(p);
	if (p->unclosed) {
		p->unclosed = false;
		return NULL;
	}
	if (!accept(p, TOK_RBRACE) && p->cx->diags->errors == errors)
		syntax_error(p, "expected \"}\" at the end of the clause");
	return bad || p->panic ? NULL : finish(p, n);
}

/* function:  specifiers declarator block */
struct node *parse_function(struct parser *p, struct decl *d, loc_t loc)
{
	struct node *n = new_node(p, D_FUNC, loc);

	n->inl.decl = d;
	n->inl.params = d->declr->params;
	if (d->declr->varargs)
		syntax_error(p, "a function takes a fixed number of arguments");
	d->declr = d->declr->next;
	p->in_function = true;
	n->inl.value = parse_block(p);
	p->in_function = false;
	p->unclosed = false;
	return p->panic ? NULL : finish(p, n);
}

/* inline:  "inline" specifiers declarator "=" assignment ";" */
static struct node *parse_inline(struct parser *p)
{
	struct node *n = new_node(p, D_INLINE, peek(p, 0)->loc);
	struct declarator *a;

	take(p);
	n->inl.decl = parse_named(p, true);
	expect(p, TOK_ASSIGN);
	n->inl.value = parse_assignment(p);
	expect(p, TOK_SEMI);
	if (p->panic || !n->inl.decl)
		return NULL;
	declare_var(p, n->inl.decl->name);
	a = n->inl.decl->declr;
	if (a && a->kind == DECLR_ASSOC) {
		n->inl.params = a->params;
		n->inl.decl->declr = a->next;
	}
	return finish(p, n);
}

/* "}" ";"     When the semicolon is missing, the next item is still read. */
static void expect_end(struct parser *p)
{
	if (!expect(p, TOK_RBRACE) || accept(p, TOK_SEMI) || p->panic)
		return;
	parse_error(p, p->last_end - 1, p->last_end, "D_SYNTAX",
		    "syntax error near \"}\": expected \";\" after it");
}

/* translator:  "translator" type-name "<" specifiers declarator ">" "{" { name "=" assignment ";" } "}" ";" */
static struct node *parse_translator(struct parser *p)
{
	struct node *n = new_node(p, D_TRANSLATOR, peek(p, 0)->loc), **tail = &n->xlator.members;
	bool bad;

	take(p);
	n->xlator.out = parse_type_name(p);
	expect(p, TOK_LT);
	n->xlator.in = parse_named(p, false);
	bad = !n->xlator.in;
	expect(p, TOK_GT);
	expect(p, TOK_LBRACE);
	if (p->panic)
		return NULL;
	while (!is_at(p, TOK_RBRACE) && !is_at(p, TOK_EOF)) {
		const struct token t = *peek(p, 0);
		struct node *m = new_node(p, N_ASSIGN, t.loc), *name = new_node(p, N_IDENT, t.loc);

		if (t.kind != TOK_IDENT && token_class(t.kind) == K_NONE)
			syntax_error(p, "expected \"member = expression;\"");
		take(p);
		name->ident.name = t.text;
		m->e.a = finish(p, name);
		expect(p, TOK_ASSIGN);
		m->e.b = parse_assignment(p);
		m = finish(p, m);
		expect(p, TOK_SEMI);
		if (p->panic) {
			recover(p, 1);
			continue;
		}
		*tail = m;
		tail = &m->next;
	}
	expect_end(p);
	return p->panic || bad ? NULL : finish(p, n);
}

/* Names the types in args[]. */
static void check_names(struct parser *p, const struct decl *native, loc_t probe)
{
	uint32_t i = 1;

	for (const struct decl *d = native; d; d = d->next, i++)
		if (!d->name) {
			loc_t at = d->loc ? d->loc : probe;

			diag_error(p->cx->diags, at, d->end > at ? d->end : at, "D_DECL_PROTO_NAME",
				   "parameter declaration requires a name: parameter #%u", i);
			return;
		}
}

/* probe:  "probe" name "(" params ")" [":" "(" params ")"] ";" */
static struct provider_probe *parse_probe(struct parser *p)
{
	struct provider_probe *pr = arena_new(p->cx->arena, struct provider_probe);
	bool varargs;

	expect(p, TOK_PROBE);
	pr->loc = peek(p, 0)->loc;
	pr->name = peek(p, 0)->text;
	expect(p, TOK_IDENT);
	expect(p, TOK_LPAREN);
	pr->native = parse_params(p, TOK_RPAREN, NULL, &varargs);
	if (accept(p, TOK_COLON)) {
		expect(p, TOK_LPAREN);
		pr->is_translated = true;
		pr->translated = parse_params(p, TOK_RPAREN, pr->native, &varargs);
		check_names(p, pr->native, pr->loc);
	}
	expect(p, TOK_SEMI);
	return pr;
}

/* provider:  "provider" name "{" { probe } "}" ";" */
static struct node *parse_provider(struct parser *p)
{
	struct node *n = new_node(p, D_PROVIDER, peek(p, 0)->loc);
	struct provider_probe **tail = &n->provider.probes, *pr;

	take(p);
	n->provider.name = peek(p, 0)->text;
	expect(p, TOK_IDENT);
	expect(p, TOK_LBRACE);
	if (p->panic)
		return NULL;
	while (!is_at(p, TOK_RBRACE) && !is_at(p, TOK_EOF)) {
		p->bad_decl = false;
		pr = parse_probe(p);
		if (p->panic) {
			recover(p, 1);
			continue;
		}
		*tail = pr;
		tail = &pr->next;
	}
	expect_end(p);
	return p->panic ? NULL : finish(p, n);
}

/* item:  inline | translator | provider | declaration | clause */
static struct node *parse_item(struct parser *p)
{
	loc_t loc = p->lx.base + p->lx.pos;
	struct token t;

	lex_top(&p->lx, &t);
	lex_seek(&p->lx, loc);
	switch (t.kind) {
	case TOK_INLINE: return parse_inline(p);
	case TOK_TRANSLATOR: return parse_translator(p);
	case TOK_PROVIDER: return parse_provider(p);
	case TOK_PSPEC:
		return !p->cx->pspec && lex_is_decl(&p->lx) ? parse_declaration(p)
							    : parse_clause(p);
	case TOK_INT: return parse_clause(p);
	default:
		if (token_class(t.kind) != K_NONE || lex_is_decl(&p->lx))
			return parse_declaration(p);
		if (t.kind != TOK_ERROR)
			syntax_error(p, NULL);
		p->panic = true;
		return NULL;
	}
}

void parse_items(struct parser *p)
{
	while (lex_blank(&p->lx)) {
		uint32_t start = p->lx.pos;
		struct node *n = parse_item(p);

		if (p->panic) {
			recover(p, 0);
			if (p->queued && p->queue[p->head].kind == TOK_RBRACE)
				take(p);
			unread(p);
			if (lex_blank(&p->lx) == '{') /* skip a body whose head had an error */
				recover(p, 0);
		}
		unread(p);
		p->depth = p->braces = p->loops = 0;
		p->bad_decl = p->in_function = false;
		if (n)
			append_top(p, n);
		/* recover() stops at a lone closing brace without taking it. */
		if (p->lx.pos == start)
			p->lx.pos++;
	}
}
