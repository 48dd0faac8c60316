/* The parser's own state and the functions its files share. Only src/compile/parse includes it.
 *
 * After a syntax error `panic` is set and every look at the input gives TOK_STOP until a recovery
 * point (statement, member, top-level item) clears it: so each error is reported once and no loop
 * needs to know about errors.
 */
#ifndef DESCRY_COMPILE_PARSE_PARSER_H
#define DESCRY_COMPILE_PARSE_PARSER_H

#include "base/hash.h"
#include "lex.h"

enum {
	MAX_DEPTH = 1000,     /* nesting of the parser's own recursion; a parenthesis costs two */
	MAX_DECLARATORS = 64, /* pointers, dimensions and parameter lists of one name */
	QUEUE = 128, /* more than the longest look ahead: "(name" and MAX_DECLARATORS stars */
};

struct parser {
	struct parse_cx *cx;
	struct lexer lx;
	enum pdesc_form form;
	enum source_kind source_kind;
	struct token queue[QUEUE]; /* read and not yet consumed, from head on */
	uint32_t head, queued;
	struct token stop; /* what peek gives in panic */
	loc_t last_end;    /* of the last token consumed */
	uint32_t depth;
	uint32_t braces; /* open ones of the item being read */
	bool panic;
	bool unclosed;      /* the next clause begins in the body of this one */
	uint32_t loops;     /* open around the statement being read */
	bool in_function;   /* its body is being read: return may stand there */
	bool bad_decl;      /* the declaration being read has an error that needs no recovery */
	struct node *unary; /* the last unary expression: what may stand left of an assignment */
	struct hash types;  /* typedefs, when cx->typedefs is NULL */
	struct hash vars;   /* names this source declares or assigns: never types */
	struct node *list, **tail; /* top level */
};

/* --- parse.c: tokens, errors, recovery --- */
const struct token *peek(struct parser *p, uint32_t k);
enum token_kind peek_kind(struct parser *p, uint32_t k);
static inline enum token_kind cur(struct parser *p)
{
	return peek_kind(p, 0);
}
static inline bool is_at(struct parser *p, enum token_kind k)
{
	return cur(p) == k;
}
void take(struct parser *p);
bool accept(struct parser *p, enum token_kind k);
/* Takes k or reports a syntax error. */
bool expect(struct parser *p, enum token_kind k);
/* "syntax error near "x": <hint>"; hint may be NULL. Sets panic. */
void syntax_error(struct parser *p, const char *hint);
void parse_error(struct parser *p, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* False, with an error, when the nesting is too deep; each true needs a leave(). */
bool enter(struct parser *p);
static inline void leave(struct parser *p)
{
	p->depth--;
}
/* Clears panic and goes on where `level` braces are open: after the next `;` or `{...}`, or before
 * a `}`. */
void recover(struct parser *p, uint32_t level);
/* Forgets tokens read ahead, so that the lexer can read on in its other mode. */
void unread(struct parser *p);
struct node *new_node(struct parser *p, enum node_kind kind, loc_t loc);
/* Sets end and height; gives n, or a poisoned node with an error when the tree is too high. */
struct node *finish(struct parser *p, struct node *n);
void declare_type(struct parser *p, const char *name);
void declare_var(struct parser *p, const char *name);
bool is_type_token(struct parser *p, const struct token *t);
void append_top(struct parser *p, struct node *n);

/* --- parse_expr.c --- */
struct node *parse_expression(struct parser *p);
struct node *parse_assignment(struct parser *p);
struct node *parse_constant(struct parser *p);

/* --- parse_decl.c --- */
/* A type without a name, as in casts. */
struct decl *parse_type_name(struct parser *p);
/* A type with a name, for inlines (implicit int allowed) and translator inputs. NULL on error. */
struct decl *parse_named(struct parser *p, bool implicit_int);
/* What stands between parentheses or brackets. formal: a probe's native parameters, to which the
 * names of its translated ones refer; NULL: names are declared here. */
struct decl *parse_params(struct parser *p, enum token_kind close, const struct decl *formal,
			  bool *ret_varargs);
struct node *parse_declaration(struct parser *p);
/* Of a declaration in a block: no storage class. */
struct spec *parse_local_specs(struct parser *p);
struct decl *parse_local_declarator(struct parser *p, struct spec *spec);
/* Does a type begin at the token k ahead? */
bool starts_type(struct parser *p, uint32_t k);

/* --- parse_top.c --- */
/* The body of the function `d`, whose "{" comes next. */
struct node *parse_function(struct parser *p, struct decl *d, loc_t loc);
void parse_items(struct parser *p);

/* --- parse_pdesc.c --- */
/* Expands and splits a description as written; NULL with an error when malformed. */
struct pdesc *parse_pdesc(struct parse_cx *cx, enum pdesc_form form, const struct token *t);

#endif
