/* The parser's state and the functions that its files share. Only src/compile/parse includes it.
 *
 * A syntax error sets `panic`. From then on peek() returns TOK_STOP, until a recovery point
 * (statement, member, top-level item) clears `panic`. Because of this, each error is reported once
 * and no loop needs a check for errors. */
#ifndef DESCRY_COMPILE_PARSE_PARSE_PRIVATE_H
#define DESCRY_COMPILE_PARSE_PARSE_PRIVATE_H

#include "base/hash.h"
#include "lex.h"

enum {
	MAX_DEPTH = 1000,     /* limit of the parser's recursion; a parenthesis costs two */
	MAX_DECLARATORS = 64, /* limit of pointers, dimensions and parameter lists of one name */
	QUEUE = 128, /* more than the longest look-ahead: "(name" and MAX_DECLARATORS stars */
};

struct parser {
	struct parse_cx *cx;
	struct lexer lx;
	enum pdesc_form form;
	enum source_kind source_kind;
	struct token queue[QUEUE]; /* read but not consumed, from head on */
	uint32_t head, queued;
	struct token stop; /* the token that peek returns in panic */
	loc_t last_end;    /* end of the last token consumed */
	uint32_t depth;
	uint32_t braces; /* open braces of the item being read */
	bool panic;
	bool unclosed;      /* this clause's body lacks its brace: the next clause begins in it */
	uint32_t loops;     /* loops open around the statement being read */
	bool in_function;   /* a function's body is being read: return may stand there */
	bool bad_decl;      /* the declaration being read has an error that needs no recovery */
	struct node *unary; /* the last unary expression: only this may be assigned to */
	struct hash types;  /* typedefs, when cx->typedefs is NULL */
	struct hash vars;   /* names that this source declares or assigns: never types */
	struct node *list, **tail; /* of the top level */
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
/* Takes k or reports a syntax error. Returns whether k was there. */
bool expect(struct parser *p, enum token_kind k);
/* Reports "syntax error near "x": <hint>". hint may be NULL. Sets panic. */
void syntax_error(struct parser *p, const char *hint);
void parse_error(struct parser *p, loc_t loc, loc_t end, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Counts a level of nesting. Returns false, with an error, when there are too many. Each true needs
 * a leave(). */
bool enter(struct parser *p);
static inline void leave(struct parser *p)
{
	p->depth--;
}
/* Clears panic and skips to where `level` braces are open: behind the next `;` or `{...}`, or
 * before a `}`. */
void recover(struct parser *p, uint32_t level);
/* Drops the tokens read ahead, so that the lexer can continue in its other mode. */
void unread(struct parser *p);
struct node *new_node(struct parser *p, enum node_kind kind, loc_t loc);
/* Sets end and height. Returns n, or a poisoned node, with an error, when the tree is too high. */
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
/* Parses a type without a name, as in casts. */
struct decl *parse_type_name(struct parser *p);
/* Parses a type with a name, for inlines (implicit int allowed) and translator inputs. Returns NULL
 * on error. */
struct decl *parse_named(struct parser *p, bool implicit_int);
/* Parses the list between parentheses or brackets. formal: the native parameters of a probe. The
 * names of its translated parameters refer to them. formal NULL: the list declares its names. */
struct decl *parse_params(struct parser *p, enum token_kind close, const struct decl *formal,
			  bool *ret_varargs);
struct node *parse_declaration(struct parser *p);
/* Parses the specifiers of a declaration in a block, which has no storage class. */
struct spec *parse_local_specs(struct parser *p);
struct decl *parse_local_declarator(struct parser *p, struct spec *spec);
/* Returns true when a type begins at the token k ahead. */
bool starts_type(struct parser *p, uint32_t k);

/* --- parse_top.c --- */
/* Parses the body of the function `d`. Its "{" is the next token. */
struct node *parse_function(struct parser *p, struct decl *d, loc_t loc);
void parse_items(struct parser *p);

/* --- parse_pdesc.c --- */
/* Expands and splits a description. Returns NULL, with an error, when it is malformed. */
struct pdesc *parse_pdesc(struct parse_cx *cx, enum pdesc_form form, const struct token *t);

#endif
