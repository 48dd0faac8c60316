/* Parses declarations and type names. */
#define _GNU_SOURCE
#include <stdarg.h>

#include "parse_private.h"

enum base_flags {
	SPEC_SIZES = SPEC_SIGNED | SPEC_UNSIGNED | SPEC_SHORT | SPEC_LONG | SPEC_LONGLONG
};

/* The place of a declarator determines whether it has a name. */
enum declr_mode { DECLR_NAMED, DECLR_ABSTRACT, DECLR_EITHER };

static struct decl *parse_declarator(struct parser *p, struct spec *spec, enum declr_mode mode,
				     bool member);
static struct spec *parse_specs(struct parser *p, bool storage, bool must_be_type);

/* Reports an error of meaning. Parsing continues, because the form is right. Reports one error a
 * declaration. */
__attribute__((format(printf, 5, 6))) static void decl_error(struct parser *p, loc_t loc, loc_t end,
							     const char *tag, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	if (p->bad_decl || p->panic)
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	parse_error(p, loc, end, tag, "%s", text);
	p->bad_decl = true;
}

bool starts_type(struct parser *p, uint32_t k)
{
	const struct token *t = peek(p, k);

	return is_type_token(p, t);
}

/* attribute:  "__attribute__" "(" ... ")"     C headers carry it. It has no effect here. */
static void skip_attributes(struct parser *p)
{
	for (;;) {
		const struct token *t = peek(p, 0);
		uint32_t depth = 0;

		if (t->kind != TOK_IDENT || t->scoped)
			return;
		if (!strcmp(t->text, "__extension__") || !strcmp(t->text, "__restrict") ||
		    !strcmp(t->text, "__restrict__") || !strcmp(t->text, "__const") ||
		    !strcmp(t->text, "__volatile__") || !strcmp(t->text, "__inline") ||
		    !strcmp(t->text, "__inline__")) {
			take(p);
			continue;
		}
		if (strcmp(t->text, "__attribute__") && strcmp(t->text, "__asm__"))
			return;
		take(p);
		do {
			if (is_at(p, TOK_LPAREN))
				depth++;
			else if (is_at(p, TOK_RPAREN))
				depth--;
			else if (!depth || is_at(p, TOK_EOF) || p->panic)
				break;
			take(p);
		} while (depth);
	}
}

static void set_base(struct parser *p, struct spec *s, const struct token *t, enum spec_base base)
{
	if (s->base != BASE_NONE)
		decl_error(p, t->loc, t->end, "D_DECL_COMBO", "invalid type combination");
	s->base = base;
}

static void set_size(struct parser *p, struct spec *s, const struct token *t, uint32_t flag)
{
	if (flag == SPEC_LONG && s->flags & SPEC_LONG) {
		s->flags &= ~(uint32_t)SPEC_LONG;
		flag = SPEC_LONGLONG;
	} else if (s->flags & (flag == SPEC_LONG ? (uint32_t)SPEC_LONGLONG : 0)) {
		decl_error(p, t->loc, t->end, "D_DECL_COMBO", "invalid type combination");
	}
	s->flags |= flag;
}

/* Reports the combinations of specifiers that DTrace refuses, in DTrace's words. */
static void check_specs(struct parser *p, struct spec *s)
{
	uint32_t f = s->flags & SPEC_SIZES;
	bool integer = s->base == BASE_NONE || s->base == BASE_INT || s->base == BASE_CHAR;

	if (s->base == BASE_CHAR && f & (SPEC_SHORT | SPEC_LONG | SPEC_LONGLONG)) {
		decl_error(
			p, s->loc, s->end, "D_DECL_CHARATTR",
			"invalid type declaration: short and long may not be used with char type");
	} else if (s->base == BASE_VOID && f) {
		decl_error(p, s->loc, s->end, "D_DECL_VOIDATTR",
			   "invalid type declaration: attributes may not be used with void type");
	} else if (!integer && f & (SPEC_SIGNED | SPEC_UNSIGNED)) {
		decl_error(p, s->loc, s->end, "D_DECL_SIGNINT",
			   "invalid type declaration: signed and unsigned may only "
			   "be used with integer type");
	} else if (!integer && f & (SPEC_SHORT | SPEC_LONG | SPEC_LONGLONG) &&
		   !(s->base == BASE_DOUBLE && !(f & (SPEC_SHORT | SPEC_LONGLONG)))) {
		decl_error(p, s->loc, s->end, "D_DECL_LONGINT",
			   "invalid type declaration: long and long long may only "
			   "be used with integer or floating-point type");
	} else if ((f & SPEC_SIGNED && f & SPEC_UNSIGNED) ||
		   (f & SPEC_SHORT && f & (SPEC_LONG | SPEC_LONGLONG))) {
		/* DTrace does not check this combination and fails to find the type. */
		decl_error(p, s->loc, s->end, "D_UNKNOWN", "invalid type combination");
	}
}

/* enumerators:  name ["=" constant] { "," name ["=" constant] } [","] "}" */
static struct enumerator *parse_enumerators(struct parser *p)
{
	struct enumerator *list = NULL, **tail = &list;

	while (!is_at(p, TOK_RBRACE) && is_at(p, TOK_IDENT)) {
		const struct token t = *peek(p, 0);
		struct enumerator *e = arena_new(p->cx->arena, struct enumerator);

		take(p);
		e->name = t.text;
		e->loc = t.loc;
		if (t.scoped) {
			decl_error(p, t.loc, t.end, "D_DECL_SCOPE",
				   "D scoping operator may not be used in an enumerator name (%s)",
				   t.text);
		}
		if (accept(p, TOK_ASSIGN))
			e->value = parse_constant(p);
		*tail = e;
		tail = &e->next;
		if (!accept(p, TOK_COMMA))
			break;
	}
	expect(p, TOK_RBRACE);
	return list;
}

/* member:  specifiers [member-declarator { "," member-declarator }] ";"
 * member-declarator:  declarator [":" constant]  |  ":" constant */
static struct decl **parse_member(struct parser *p, struct decl **tail)
{
	struct spec *spec = parse_specs(p, false, true);
	struct decl *d;

	if (is_at(p, TOK_SEMI)) {
		if (spec->base != BASE_STRUCT && spec->base != BASE_UNION &&
		    !(spec->base == BASE_ENUM && spec->has_body))
			decl_error(p, spec->loc, spec->end, "D_DECL_MNAME",
				   "member declaration requires a name");
		d = arena_new(p->cx->arena, struct decl);
		d->spec = spec;
		d->loc = spec->loc;
		d->end = spec->end;
		*tail = d;
		tail = &d->next;
		take(p);
		return tail;
	}
	do {
		if (is_at(p, TOK_COLON)) {
			d = arena_new(p->cx->arena, struct decl);
			d->spec = spec;
			d->loc = spec->loc;
			d->end = spec->end;
		} else {
			d = parse_declarator(p, spec, DECLR_NAMED, true);
		}
		if (accept(p, TOK_COLON))
			d->bits = parse_constant(p);
		skip_attributes(p);
		d->end = p->last_end;
		*tail = d;
		tail = &d->next;
	} while (accept(p, TOK_COMMA));
	expect(p, TOK_SEMI);
	return tail;
}

/* tag:  [name] "{" body "}"  |  name     The caller has taken the keyword. */
static void parse_tag(struct parser *p, struct spec *s)
{
	skip_attributes(p);
	if (is_at(p, TOK_IDENT)) {
		s->name = peek(p, 0)->text;
		s->module = peek(p, 0)->module;
		take(p);
	} else if (!is_at(p, TOK_LBRACE)) {
		syntax_error(p, "expected a tag or \"{\"");
		return;
	}
	if (!is_at(p, TOK_LBRACE) || !enter(p))
		return;
	if (s->module) {
		decl_error(
			p, s->loc, p->last_end, "D_SYNTAX",
			"syntax error near \"%s\": D scoping operator may not be used in a type name",
			s->name);
	}
	take(p);
	s->has_body = true;
	if (s->base == BASE_ENUM) {
		s->enumerators = parse_enumerators(p);
	} else {
		struct decl **tail = &s->members;

		uint32_t level = p->braces;

		while (!is_at(p, TOK_RBRACE) && !is_at(p, TOK_EOF)) {
			tail = parse_member(p, tail);
			if (p->panic) {
				recover(p, level);
				p->bad_decl = true;
			}
		}
		expect(p, TOK_RBRACE);
	}
	leave(p);
	skip_attributes(p);
}

/* C's keyword, which stands behind a storage class. D's inline begins a definition. */
static bool is_c_inline(struct parser *p)
{
	const struct token *t = peek(p, 0);

	return t->kind == TOK_INLINE ||
	       (t->kind == TOK_IDENT && !t->scoped &&
		(!strcmp(t->text, "__inline") || !strcmp(t->text, "__inline__")));
}

static enum decl_storage storage_of(enum token_kind k)
{
	switch (k) {
	case TOK_AUTO: return STORAGE_AUTO;
	case TOK_REGISTER: return STORAGE_REGISTER;
	case TOK_STATIC: return STORAGE_STATIC;
	case TOK_EXTERN: return STORAGE_EXTERN;
	case TOK_TYPEDEF: return STORAGE_TYPEDEF;
	case TOK_SELF: return STORAGE_SELF;
	case TOK_THIS: return STORAGE_THIS;
	default: return STORAGE_NONE;
	}
}

/* Returns true when the identifier is the declared name and not a type, as in "self x;" or "inline
 * x = 1;". */
static bool is_declared_name(struct parser *p)
{
	switch (peek_kind(p, 1)) {
	case TOK_SEMI:
	case TOK_COMMA:
	case TOK_ASSIGN:
	case TOK_LBRACKET: return true;
	default: return false;
	}
}

/* specifiers:  { storage-class | qualifier | void | char | int | ... | struct tag | typedef-name }+
 * storage: storage classes may stand here. must_be_type: the first identifier is a type, whatever
 * follows. */
static struct spec *parse_specs(struct parser *p, bool storage, bool must_be_type)
{
	struct spec *s = arena_new(p->cx->arena, struct spec);
	uint32_t n = 0;

	s->loc = peek(p, 0)->loc;
	for (;; n++) {
		while (s->storage != STORAGE_NONE && is_c_inline(p)) {
			s->c_inline = true;
			take(p);
		}
		skip_attributes(p);

		const struct token t = *peek(p, 0);
		bool typed = s->base != BASE_NONE || s->flags & SPEC_SIZES;

		switch (t.kind) {
		case TOK_SELF:
		case TOK_THIS:
			if (typed && !storage)
				goto out; /* a member of this name */
					  /* fallthrough */
		case TOK_AUTO:
		case TOK_REGISTER:
		case TOK_STATIC:
		case TOK_EXTERN:
		case TOK_TYPEDEF:
			if (!storage && t.kind != TOK_REGISTER)
				decl_error(p, t.loc, t.end, "D_DECL_PARMCLASS",
					   "inappropriate storage class for function or "
					   "associative array parameter");
			else if (s->storage != STORAGE_NONE)
				decl_error(p, t.loc, t.end, "D_DECL_CLASS",
					   "only one storage class allowed in a declaration");
			s->storage = storage_of(t.kind);
			break;
		case TOK_CONST: s->flags |= SPEC_CONST; break;
		case TOK_VOLATILE: s->flags |= SPEC_VOLATILE; break;
		case TOK_RESTRICT: s->flags |= SPEC_RESTRICT; break;
		case TOK_SIGNED: set_size(p, s, &t, SPEC_SIGNED); break;
		case TOK_UNSIGNED: set_size(p, s, &t, SPEC_UNSIGNED); break;
		case TOK_SHORT: set_size(p, s, &t, SPEC_SHORT); break;
		case TOK_LONG: set_size(p, s, &t, SPEC_LONG); break;
		case TOK_VOID: set_base(p, s, &t, BASE_VOID); break;
		case TOK_CHAR: set_base(p, s, &t, BASE_CHAR); break;
		case TOK_INT_KW: set_base(p, s, &t, BASE_INT); break;
		case TOK_FLOAT: set_base(p, s, &t, BASE_FLOAT); break;
		case TOK_DOUBLE: set_base(p, s, &t, BASE_DOUBLE); break;
		case TOK_BOOL: set_base(p, s, &t, BASE_BOOL); break;
		case TOK_STRING_KW:
			if (typed && !storage)
				goto out; /* "int string;" in a struct */
			set_base(p, s, &t, BASE_STRING);
			break;
		case TOK_STRUCT:
		case TOK_UNION:
		case TOK_ENUM:
			set_base(p, s, &t,
				 t.kind == TOK_STRUCT  ? BASE_STRUCT
				 : t.kind == TOK_UNION ? BASE_UNION
						       : BASE_ENUM);
			take(p);
			parse_tag(p, s);
			s->end = p->last_end;
			if (p->panic)
				return s;
			continue;
		case TOK_IDENT:
			if (!strcmp(t.text, "__signed__") || !strcmp(t.text, "__signed")) {
				set_size(p, s, &t, SPEC_SIGNED);
				break;
			}
			if (typed || (!must_be_type && is_declared_name(p)))
				goto out;
			set_base(p, s, &t, BASE_NAME);
			s->name = t.text;
			s->module = t.module;
			/* mod`struct tag */
			if (t.scoped && !is_at(p, TOK_STOP)) {
				enum token_kind k = keyword_find(t.text, strlen(t.text));

				if (k == TOK_STRUCT || k == TOK_UNION || k == TOK_ENUM) {
					s->base = k == TOK_STRUCT  ? BASE_STRUCT
						  : k == TOK_UNION ? BASE_UNION
								   : BASE_ENUM;
					take(p);
					s->name = peek(p, 0)->text;
					expect(p, TOK_IDENT);
					s->end = p->last_end;
					continue;
				}
			}
			break;
		default: goto out;
		}
		take(p);
		s->end = p->last_end;
	}
out:
	if (!n && !p->panic && !is_at(p, TOK_IDENT))
		syntax_error(p, "expected a type");
	check_specs(p, s);
	return s;
}

static bool has_param(const struct decl *d, const char *name)
{
	while (d && !(d->name && !strcmp(d->name, name)))
		d = d->next;
	return d;
}

/* params:  [param { "," param }] ["," "..."] close     param: specifiers [declarator] */
struct decl *parse_params(struct parser *p, enum token_kind close, const struct decl *formal,
			  bool *ret_varargs)
{
	const char *kind = close == TOK_RBRACKET ? "array" : "function";
	struct decl *list = NULL, **tail = &list, *d, *voids = NULL;

	*ret_varargs = false;
	if (accept(p, close))
		return NULL;
	do {
		if (is_at(p, TOK_ELLIPSIS)) {
			const struct token t = *peek(p, 0);

			if (close == TOK_RBRACKET)
				decl_error(
					p, t.loc, t.end, "D_DECL_PROTO_VARARGS",
					"%s prototype may not use a variable-length argument list",
					kind);
			take(p);
			*ret_varargs = true;
			break;
		}
		d = parse_declarator(p, parse_specs(p, false, true), DECLR_EITHER, false);
		if (d->name && has_param(formal ? formal : list, d->name) != !!formal) {
			decl_error(p, d->loc, d->end, "D_DECL_PROTO_FORM",
				   "parameter is %s declared in %s prototype: %s",
				   formal ? "not" : "already", kind, d->name);
		}
		if (d->declr && d->declr->kind == DECLR_ASSOC)
			decl_error(
				p, d->loc, d->end, "D_DECL_PROTO_TYPE",
				"%s prototype may not use parameter of an associative array type",
				kind);
		if (d->spec->base == BASE_VOID && !d->declr) {
			voids = d;
			if (close == TOK_RBRACKET)
				decl_error(p, d->loc, d->end, "D_DECL_PROTO_TYPE",
					   "array prototype may not use parameter of type void");
			else if (d->name)
				decl_error(p, d->loc, d->end, "D_DECL_PROTO_NAME",
					   "void parameter may not have a name: %s", d->name);
		}
		*tail = d;
		tail = &d->next;
	} while (accept(p, TOK_COMMA));
	expect(p, close);
	if (voids && (list->next || *ret_varargs))
		decl_error(p, voids->loc, voids->end, "D_DECL_PROTO_VOID",
			   "void must be sole parameter");
	return voids ? NULL : list;
}

struct declr_list {
	struct declarator *head, **tail;
	uint32_t n;
};

static struct declarator *new_declarator(struct parser *p, struct declr_list *l,
					 enum declarator_kind kind)
{
	struct declarator *d = arena_new(p->cx->arena, struct declarator);

	if (++l->n > MAX_DECLARATORS)
		syntax_error(p, "a declaration of this many levels is not supported");
	d->kind = kind;
	*l->tail = d;
	l->tail = &d->next;
	return d;
}

/* Returns true when "(" begins a parameter list, at a place where a nested abstract declarator
 * could stand too. */
static bool opens_params(struct parser *p)
{
	enum token_kind k = peek_kind(p, 1);

	return k == TOK_RPAREN || k == TOK_ELLIPSIS || k == TOK_REGISTER || starts_type(p, 1) ||
	       (k == TOK_IDENT && peek_kind(p, 2) != TOK_RPAREN &&
		peek_kind(p, 2) != TOK_LBRACKET && peek_kind(p, 2) != TOK_LPAREN);
}

/* suffixes:  { "[" [constant | params] "]" | "(" params ")" } */
static void parse_suffixes(struct parser *p, struct declr_list *l)
{
	for (;;) {
		struct declarator *d;

		if (is_at(p, TOK_LPAREN)) {
			d = new_declarator(p, l, DECLR_FUNC);
			take(p);
			d->params = parse_params(p, TOK_RPAREN, NULL, &d->varargs);
		} else if (is_at(p, TOK_LBRACKET)) {
			take(p);
			if (starts_type(p, 0) || is_at(p, TOK_ELLIPSIS) ||
			    token_class(cur(p)) == K_CLASS ||
			    (is_at(p, TOK_IDENT) &&
			     (peek_kind(p, 1) == TOK_IDENT || peek_kind(p, 1) == TOK_COMMA))) {
				d = new_declarator(p, l, DECLR_ASSOC);
				d->params = parse_params(p, TOK_RBRACKET, NULL, &d->varargs);
				continue;
			}
			d = new_declarator(p, l, DECLR_ARRAY);
			if (accept(p, TOK_RBRACKET))
				continue;
			d->size = parse_constant(p);
			if (is_at(p, TOK_COMMA))
				syntax_error(p, "expected types or one constant in the brackets");
			expect(p, TOK_RBRACKET);
		} else {
			return;
		}
	}
}

/* declarator:  { "*" {qualifier} } (name | "(" declarator ")" | nothing) suffixes
 * The list runs from the name outwards: the declarator inside the parentheses, then the suffixes,
 * then the stars from right to left. */
static void parse_declr(struct parser *p, enum declr_mode mode, bool member, struct decl *ret,
			struct declr_list *l)
{
	struct declr_list stars = { .tail = &stars.head };
	struct declarator *rev = NULL;

	if (!enter(p))
		return;
	skip_attributes(p);
	while (is_at(p, TOK_MUL)) {
		struct declarator *d = new_declarator(p, &stars, DECLR_POINTER);

		take(p);
		for (;; take(p)) {
			skip_attributes(p);
			if (is_at(p, TOK_CONST))
				d->quals |= SPEC_CONST;
			else if (is_at(p, TOK_VOLATILE))
				d->quals |= SPEC_VOLATILE;
			else if (is_at(p, TOK_RESTRICT))
				d->quals |= SPEC_RESTRICT;
			else
				break;
		}
	}

	const struct token t = *peek(p, 0);
	enum keyword_class c = token_class(t.kind);

	if (t.kind == TOK_LPAREN && (mode == DECLR_NAMED || !opens_params(p))) {
		take(p);
		parse_declr(p, mode, member, ret, l);
		expect(p, TOK_RPAREN);
	} else if (mode != DECLR_ABSTRACT &&
		   (t.kind == TOK_IDENT ||
		    (member &&
		     (t.kind == TOK_STRING_KW || c == K_CLASS || c == K_TOP ||
		      t.kind == TOK_COUNTER || t.kind == TOK_PROBE || t.kind == TOK_IMPORT)))) {
		if (t.scoped) {
			decl_error(p, t.loc, t.end, "D_DECL_SCOPE",
				   "D scoping operator may not be used in a declaration name (%s)",
				   t.text);
		}
		ret->name = t.text;
		take(p);
	} else if (mode == DECLR_NAMED) {
		syntax_error(p, "expected a name");
	}
	parse_suffixes(p, l);
	for (struct declarator *d = stars.head, *next; d; d = next) {
		next = d->next;
		d->next = rev;
		rev = d;
	}
	*l->tail = rev;
	while (*l->tail)
		l->tail = &(*l->tail)->next;
	l->n += stars.n;
	if (l->n > MAX_DECLARATORS)
		syntax_error(p, "a declaration of this many levels is not supported");
	leave(p);
}

static struct decl *parse_declarator(struct parser *p, struct spec *spec, enum declr_mode mode,
				     bool member)
{
	struct decl *d = arena_new(p->cx->arena, struct decl);
	struct declr_list l = { .tail = &d->declr };
	bool assoc = false;

	d->spec = spec;
	d->loc = spec->loc;
	parse_declr(p, mode, member, d, &l);
	skip_attributes(p);
	d->end = p->last_end > d->loc ? p->last_end : d->loc;
	if (mode != DECLR_ABSTRACT && d->name && is_at(p, TOK_IDENT)) {
		const struct token *t = peek(p, 0);

		decl_error(p, t->loc, t->end, "D_DECL_IDENT",
			   "old-style declaration or incorrect type specified");
		p->panic = true;
	}
	for (struct declarator *x = d->declr; x; x = x->next) {
		if (x->kind == DECLR_ASSOC && assoc)
			decl_error(p, d->loc, d->end, "D_DECL_DYNOBJ",
				   "cannot declare array of associative arrays");
		assoc = x->kind == DECLR_ASSOC || (assoc && x->kind == DECLR_ARRAY);
	}
	return d;
}

struct decl *parse_type_name(struct parser *p)
{
	bool saved = p->bad_decl;
	struct decl *d;

	p->bad_decl = false;
	d = parse_declarator(p, parse_specs(p, false, true), DECLR_ABSTRACT, false);
	p->bad_decl = saved;
	return d;
}

struct spec *parse_local_specs(struct parser *p)
{
	return parse_specs(p, false, true);
}

struct decl *parse_local_declarator(struct parser *p, struct spec *spec)
{
	return parse_declarator(p, spec, DECLR_NAMED, false);
}

struct decl *parse_named(struct parser *p, bool implicit_int)
{
	struct decl *d;

	p->bad_decl = false;
	d = parse_declarator(p, parse_specs(p, implicit_int, !implicit_int), DECLR_NAMED, false);
	return p->bad_decl || p->panic ? NULL : d;
}

/* declaration:  specifiers [declarator { "," declarator }] ";"     Returns NULL on error. */
struct node *parse_declaration(struct parser *p)
{
	loc_t loc = peek(p, 0)->loc;
	struct decl *list = NULL, **tail = &list, *d;
	struct spec *spec;
	struct node *n;

	p->bad_decl = false;
	spec = parse_specs(p, true, false);
	if (!spec->end)
		syntax_error(p, "expected a type");
	if (is_at(p, TOK_SEMI)) {
		if (spec->base != BASE_STRUCT && spec->base != BASE_UNION &&
		    spec->base != BASE_ENUM)
			decl_error(p, spec->loc, spec->end, "D_DECL_USELESS",
				   "useless declaration");
		d = arena_new(p->cx->arena, struct decl);
		d->spec = spec;
		d->loc = spec->loc;
		d->end = spec->end;
		list = d;
	} else {
		do {
			d = parse_declarator(p, spec, DECLR_NAMED, false);
			*tail = d;
			tail = &d->next;
			if (p->panic || !d->name)
				break;
			if (is_at(p, TOK_LBRACE) && !list->next && d->declr &&
			    d->declr->kind == DECLR_FUNC && spec->storage == STORAGE_NONE)
				return parse_function(p, d, loc);
			if (is_at(p, TOK_LBRACE) && spec->c_inline) {
				recover(p, 0); /* a header's code is C: nothing to run here */
				return NULL;
			}
			if (spec->storage == STORAGE_TYPEDEF)
				declare_type(p, d->name);
			else if (spec->storage != STORAGE_SELF && spec->storage != STORAGE_THIS)
				declare_var(p, d->name);
		} while (accept(p, TOK_COMMA));
		if (is_at(p, TOK_ASSIGN))
			syntax_error(
				p,
				"a declaration cannot set a value; assign it in a clause such as BEGIN");
	}
	expect(p, TOK_SEMI);
	if (p->panic || p->bad_decl)
		return NULL;
	n = new_node(p, D_DECL, loc);
	n->decl.decls = list;
	return finish(p, n);
}
