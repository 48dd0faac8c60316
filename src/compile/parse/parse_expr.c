/* Parses expressions by precedence climbing. */
#include "parse_private.h"

static struct node *parse_cast(struct parser *p);

static struct node *poison(struct parser *p)
{
	return new_node(p, N_INT, peek(p, 0)->loc);
}

static struct node *new_e(struct parser *p, enum node_kind kind, enum op op, loc_t loc,
			  struct node *a, struct node *b)
{
	struct node *n = new_node(p, kind, loc);

	n->op = op;
	n->e.a = a;
	n->e.b = b;
	return finish(p, n);
}

/* arguments:  [assignment {"," assignment}] close     The caller has taken the opening token. */
static struct node *parse_list(struct parser *p, enum token_kind close, bool may_be_empty)
{
	struct node *list = NULL, **tail = &list;

	if (may_be_empty && accept(p, close))
		return NULL;
	do {
		*tail = parse_assignment(p);
		tail = &(*tail)->next;
	} while (accept(p, TOK_COMMA));
	expect(p, close);
	return list;
}

/* Returns a member's name. A keyword is a valid name here. */
static const char *member_name(struct parser *p)
{
	const struct token *t = peek(p, 0);
	const char *name = t->text;

	if (t->kind != TOK_IDENT && token_class(t->kind) == K_NONE) {
		expect(p, TOK_IDENT);
		return "";
	}
	take(p);
	return name;
}

/* string:  TOK_STR {TOK_STR}     Neighbours are joined, as in C. */
static struct node *parse_string(struct parser *p)
{
	struct node *n = new_node(p, N_STR, peek(p, 0)->loc);
	cleanup_free char *buf = NULL;
	size_t len = 0;
	FILE *out;

	n->s.text = peek(p, 0)->text;
	n->s.len = peek(p, 0)->len;
	take(p);
	if (is_at(p, TOK_STR) && (out = open_memstream(&buf, &len))) {
		char *copy;

		fwrite(n->s.text, 1, n->s.len, out);
		for (; is_at(p, TOK_STR); take(p))
			fwrite(peek(p, 0)->text, 1, peek(p, 0)->len, out);
		fclose(out);
		copy = arena_alloc(p->cx->arena, len + 1);
		memcpy(copy, buf, len);
		n->s.text = copy;
		n->s.len = (uint32_t)len;
	}
	return finish(p, n);
}

/* scoped:  ("self" | "this") "->" name */
static struct node *parse_scoped(struct parser *p)
{
	struct node *n = new_node(p, N_IDENT, peek(p, 0)->loc);
	bool self = is_at(p, TOK_SELF);

	take(p);
	n->ident.scope = self ? SCOPE_SELF : SCOPE_THIS;
	n->ident.name = "";
	if (!is_at(p, TOK_ARROW)) {
		syntax_error(p, self ? "expected \"->\" after self" : "expected \"->\" after this");
		return n;
	}
	take(p);
	n->ident.name = member_name(p);
	return finish(p, n);
}

/* name:  identifier  |  identifier "(" arguments ")"  |  [module] "`" identifier */
static struct node *parse_name(struct parser *p)
{
	const struct token t = *peek(p, 0);
	struct node *n = new_node(p, t.scoped ? N_EXTERN : N_IDENT, t.loc);

	take(p);
	if (!t.scoped && accept(p, TOK_LPAREN)) {
		n->kind = N_CALL;
		n->call.func = t.text;
		n->call.args = parse_list(p, TOK_RPAREN, true);
		return finish(p, n);
	}
	n->ident.name = t.text;
	n->ident.module = t.module;
	return finish(p, n);
}

/* offsetof:  "offsetof" "(" type-name "," member ")" */
static struct node *parse_offsetof(struct parser *p)
{
	struct node *n = new_node(p, N_OFFSETOF, peek(p, 0)->loc);

	take(p);
	expect(p, TOK_LPAREN);
	n->t.type = parse_type_name(p);
	expect(p, TOK_COMMA);
	n->t.member = member_name(p);
	expect(p, TOK_RPAREN);
	return finish(p, n);
}

/* xlate:  "xlate" "<" type-name ">" "(" expression ")" */
static struct node *parse_xlate(struct parser *p)
{
	struct node *n = new_node(p, N_XLATE, peek(p, 0)->loc);

	take(p);
	expect(p, TOK_LT);
	n->t.type = parse_type_name(p);
	expect(p, TOK_GT);
	expect(p, TOK_LPAREN);
	n->t.a = parse_expression(p);
	expect(p, TOK_RPAREN);
	return finish(p, n);
}

/* primary:  name | scoped | aggregation | integer | string | offsetof | xlate | "(" expression ")" */
static struct node *parse_primary(struct parser *p)
{
	const struct token t = *peek(p, 0);
	struct node *n;

	switch (t.kind) {
	case TOK_INT:
		take(p);
		n = new_node(p, N_INT, t.loc);
		n->i.value = t.value;
		n->i.is_unsigned = t.is_unsigned;
		n->i.is_char = t.is_char;
		n->i.longs = t.longs;
		n->i.based = t.based;
		n = finish(p, n);
		return t.negative ? new_e(p, N_UNARY, OP_NEG, t.loc, n, NULL) : n;
	case TOK_STR: return parse_string(p);
	case TOK_IDENT: return parse_name(p);
	case TOK_SELF:
	case TOK_THIS: return parse_scoped(p);
	case TOK_OFFSETOF: return parse_offsetof(p);
	case TOK_XLATE: return parse_xlate(p);
	case TOK_AGG:
		take(p);
		n = new_node(p, N_AGG, t.loc);
		n->agg.name = t.text;
		if (accept(p, TOK_LBRACKET))
			n->agg.keys = parse_list(p, TOK_RBRACKET, false);
		return finish(p, n);
	case TOK_LPAREN:
		take(p);
		n = parse_expression(p);
		expect(p, TOK_RPAREN);
		return n;
	default:
		if (token_class(t.kind) == K_TYPE || token_class(t.kind) == K_QUAL)
			syntax_error(
				p,
				"a type cannot stand here; a declaration is a statement of its own");
		else
			syntax_error(p, NULL);
		return poison(p);
	}
}

/* postfix:  primary { "[" arguments "]" | "(" arguments ")" | "." name | "->" name | "++" | "--" } */
static struct node *parse_postfix(struct parser *p)
{
	loc_t loc = peek(p, 0)->loc;
	struct node *n = parse_primary(p);

	for (;;) {
		enum token_kind k = cur(p);
		struct node *a = n;

		switch (k) {
		case TOK_LBRACKET:
			take(p);
			n = new_e(p, N_INDEX, OP_NONE, loc, a, parse_list(p, TOK_RBRACKET, false));
			break;
		case TOK_LPAREN:
			parse_error(p, loc, p->last_end, "D_FUNC_IDENT",
				    "function designator is not of function type");
			take(p);
			parse_list(p, TOK_RPAREN, true);
			break;
		case TOK_DOT:
		case TOK_ARROW:
			take(p);
			n = new_node(p, k == TOK_DOT ? N_MEMBER : N_PMEMBER, loc);
			n->member.a = a;
			n->member.name = member_name(p);
			n = finish(p, n);
			break;
		case TOK_INC:
		case TOK_DEC:
			take(p);
			n = new_e(p, N_UNARY, k == TOK_INC ? OP_POSTINC : OP_POSTDEC, loc, a, NULL);
			break;
		default: return n;
		}
	}
}

static enum op unary_op(enum token_kind k)
{
	switch (k) {
	case TOK_AND: return OP_ADDROF;
	case TOK_MUL: return OP_DEREF;
	case TOK_ADD: return OP_PLUS;
	case TOK_SUB: return OP_NEG;
	case TOK_BNOT: return OP_BNOT;
	case TOK_LNOT: return OP_LNOT;
	default: return OP_NONE;
	}
}

/* Returns true when a type name follows the "(" at token 0. Calls is_type_token() only where both
 * readings are possible: "(a) - b", "(a)(b)", "(a * (b". */
static bool parens_hold_type(struct parser *p)
{
	uint32_t k = 2;
	const struct token *t = peek(p, 1);

	if (t->kind != TOK_IDENT)
		return starts_type(p, 1);
	if (t->scoped &&
	    (!strcmp(t->text, "struct") || !strcmp(t->text, "union") || !strcmp(t->text, "enum")))
		return true;
	while (k < MAX_DECLARATORS && peek_kind(p, k) == TOK_MUL)
		k++;
	switch (peek_kind(p, k)) {
	case TOK_CONST:
	case TOK_VOLATILE:
	case TOK_RESTRICT: return true;
	case TOK_RPAREN:
		if (k > 2)
			return true;
		break;
	case TOK_LPAREN:
		if (peek_kind(p, k + 1) == TOK_MUL && peek_kind(p, k + 2) == TOK_RPAREN)
			return true;
		return k > 2 && is_type_token(p, peek(p, 1));
	case TOK_LBRACKET: return is_type_token(p, peek(p, 1));
	default: return false;
	}
	switch (peek_kind(p, 3)) {
	case TOK_IDENT:
	case TOK_INT:
	case TOK_STR:
	case TOK_AGG:
	case TOK_LNOT:
	case TOK_BNOT:
	case TOK_SELF:
	case TOK_THIS:
	case TOK_SIZEOF:
	case TOK_STRINGOF:
	case TOK_OFFSETOF:
	case TOK_XLATE: return true;
	case TOK_LPAREN:
	case TOK_ADD:
	case TOK_SUB:
	case TOK_MUL:
	case TOK_AND:
	case TOK_INC:
	case TOK_DEC: return is_type_token(p, peek(p, 1));
	default: return false;
	}
}

/* sizeof:  "sizeof" "(" type-name ")"  |  "sizeof" unary */
static struct node *parse_sizeof(struct parser *p);

/* unary:  postfix  |  ("++" | "--") unary  |  ("&" | "*" | "+" | "-" | "~" | "!") cast  |  sizeof
 *       |  "stringof" unary */
static struct node *parse_unary(struct parser *p)
{
	enum token_kind k = cur(p);
	loc_t loc = peek(p, 0)->loc;
	struct node *n;

	if (!enter(p))
		return poison(p);
	switch (k) {
	case TOK_INC:
	case TOK_DEC:
		take(p);
		n = parse_unary(p);
		n = new_e(p, N_UNARY, k == TOK_INC ? OP_PREINC : OP_PREDEC, loc, n, NULL);
		break;
	case TOK_AND:
	case TOK_MUL:
	case TOK_ADD:
	case TOK_SUB:
	case TOK_BNOT:
	case TOK_LNOT:
		take(p);
		n = parse_cast(p);
		n = new_e(p, N_UNARY, unary_op(k), loc, n, NULL);
		break;
	case TOK_STRINGOF:
		take(p);
		n = parse_unary(p);
		n = new_e(p, N_STRINGOF, OP_NONE, loc, n, NULL);
		break;
	case TOK_SIZEOF: n = parse_sizeof(p); break;
	default: n = parse_postfix(p);
	}
	leave(p);
	p->unary = n;
	return n;
}

static bool sizeof_holds_type(struct parser *p)
{
	uint32_t k = 2;

	if (!is_at(p, TOK_LPAREN))
		return false;
	if (starts_type(p, 1))
		return true;
	if (peek_kind(p, 1) != TOK_IDENT)
		return false;
	while (k < MAX_DECLARATORS && peek_kind(p, k) == TOK_MUL)
		k++;
	return k > 2 && peek_kind(p, k) == TOK_RPAREN;
}

static struct node *parse_sizeof(struct parser *p)
{
	loc_t loc = peek(p, 0)->loc;
	struct node *n;

	take(p);
	if (sizeof_holds_type(p)) {
		take(p);
		n = new_node(p, N_SIZEOF_TYPE, loc);
		n->t.type = parse_type_name(p);
		expect(p, TOK_RPAREN);
		return finish(p, n);
	}
	n = parse_unary(p);
	return new_e(p, N_SIZEOF, OP_NONE, loc, n, NULL);
}

/* cast:  unary  |  "(" type-name ")" cast */
static struct node *parse_cast(struct parser *p)
{
	struct node *n;

	if (!is_at(p, TOK_LPAREN) || !parens_hold_type(p))
		return parse_unary(p);
	n = new_node(p, N_CAST, peek(p, 0)->loc);
	if (!enter(p))
		return poison(p);
	take(p);
	n->t.type = parse_type_name(p);
	expect(p, TOK_RPAREN);
	n->t.a = parse_cast(p);
	leave(p);
	p->unary = NULL;
	return finish(p, n);
}

/* Returns the precedence of a binary operator; 0: k is no binary operator. */
static int binary_level(enum token_kind k, enum op *ret_op)
{
	static const struct {
		enum token_kind kind;
		enum op op;
		int level;
	} table[] = {
		{ TOK_LOR, OP_LOR, 1 },  { TOK_LXOR, OP_LXOR, 2 }, { TOK_LAND, OP_LAND, 3 },
		{ TOK_OR, OP_OR, 4 },    { TOK_XOR, OP_XOR, 5 },   { TOK_AND, OP_AND, 6 },
		{ TOK_EQ, OP_EQ, 7 },    { TOK_NE, OP_NE, 7 },     { TOK_LT, OP_LT, 8 },
		{ TOK_LE, OP_LE, 8 },    { TOK_GT, OP_GT, 8 },     { TOK_GE, OP_GE, 8 },
		{ TOK_SHL, OP_SHL, 9 },  { TOK_SHR, OP_SHR, 9 },   { TOK_ADD, OP_ADD, 10 },
		{ TOK_SUB, OP_SUB, 10 }, { TOK_MUL, OP_MUL, 11 },  { TOK_DIV, OP_DIV, 11 },
		{ TOK_MOD, OP_MOD, 11 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].kind == k) {
			*ret_op = table[i].op;
			return table[i].level;
		}
	}
	return 0;
}

/* binary:  cast { operator binary }     All binary operators associate to the left. */
static struct node *parse_binary(struct parser *p, int min)
{
	loc_t loc = peek(p, 0)->loc;
	struct node *n = parse_cast(p);
	enum op op = OP_NONE;
	int level;

	while ((level = binary_level(cur(p), &op)) && level >= min) {
		enum op this_op = op;
		struct node *b;

		take(p);
		b = parse_binary(p, level + 1);
		n = new_e(p, N_BINARY, this_op, loc, n, b);
	}
	return n;
}

/* conditional:  binary  |  binary "?" expression ":" conditional
 * Reads a chain a ? b : c ? d : e in a loop and then folds it from its end. */
static struct node *parse_conditional(struct parser *p)
{
	VEC(struct node *) arms = { 0 };
	struct node *n = parse_binary(p, 1);

	while (is_at(p, TOK_QUESTION)) {
		struct node *t = new_node(p, N_TERNARY, n->loc);

		take(p);
		t->e.a = n;
		t->e.b = parse_expression(p);
		expect(p, TOK_COLON);
		vec_push(&arms, t);
		n = parse_binary(p, 1);
		p->unary = NULL;
	}
	while (arms.n) {
		struct node *t = arms.v[--arms.n];

		t->e.c = n;
		n = finish(p, t);
	}
	vec_fini(&arms);
	return n;
}

struct node *parse_constant(struct parser *p)
{
	struct node *n;

	if (!enter(p))
		return poison(p);
	n = parse_conditional(p);
	leave(p);
	return n;
}

static bool assign_op(enum token_kind k, enum op *ret)
{
	switch (k) {
	case TOK_ASSIGN: *ret = OP_NONE; return true;
	case TOK_MUL_EQ: *ret = OP_MUL; return true;
	case TOK_DIV_EQ: *ret = OP_DIV; return true;
	case TOK_MOD_EQ: *ret = OP_MOD; return true;
	case TOK_ADD_EQ: *ret = OP_ADD; return true;
	case TOK_SUB_EQ: *ret = OP_SUB; return true;
	case TOK_SHL_EQ: *ret = OP_SHL; return true;
	case TOK_SHR_EQ: *ret = OP_SHR; return true;
	case TOK_AND_EQ: *ret = OP_AND; return true;
	case TOK_XOR_EQ: *ret = OP_XOR; return true;
	case TOK_OR_EQ: *ret = OP_OR; return true;
	default: return false;
	}
}

/* Declares the name that is assigned to as a variable. */
static void note_variable(struct parser *p, const struct node *n)
{
	while (n->kind == N_INDEX)
		n = n->e.a;
	if (n->kind == N_IDENT && n->ident.scope == SCOPE_NONE)
		declare_var(p, n->ident.name);
}

/* assignment:  conditional  |  unary ("=" | "*=" | "/=" | ...) assignment */
struct node *parse_assignment(struct parser *p)
{
	loc_t loc = peek(p, 0)->loc;
	struct node *n;
	enum op op;

	if (!enter(p))
		return poison(p);
	p->unary = NULL;
	n = parse_conditional(p);
	if (assign_op(cur(p), &op)) {
		if (p->unary != n) {
			syntax_error(p, "the left side of an assignment must be a variable");
		} else {
			note_variable(p, n);
			take(p);
			n = new_e(p, N_ASSIGN, op, loc, n, parse_assignment(p));
		}
	}
	leave(p);
	p->unary = NULL;
	return n;
}

/* expression:  assignment { "," assignment } */
struct node *parse_expression(struct parser *p)
{
	loc_t loc = peek(p, 0)->loc;
	struct node *n = parse_assignment(p);

	while (accept(p, TOK_COMMA))
		n = new_e(p, N_COMMA, OP_NONE, loc, n, parse_assignment(p));
	return n;
}
