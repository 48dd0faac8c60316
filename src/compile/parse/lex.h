/* The tokens of D.
 *
 * In: one source text. Out: tokens, one at a time, in one of two modes. `lex_next` reads the tokens
 * of expressions and declarations. `lex_top` reads the tokens that may stand at a probe
 * description's place ("tick-1s", "pid$1:::").
 * Always true: each call moves forward or returns TOK_EOF. A malformed token is reported once, even
 * when lex_seek goes back and it is read again. `#` lines are not part of the stream: they are
 * collected in `pragmas`. */
#ifndef DESCRY_COMPILE_PARSE_LEX_H
#define DESCRY_COMPILE_PARSE_LEX_H

#include "parse.h"

// clang-format off
/* Keywords: token, text, class. K_TYPE begins a type, K_QUAL qualifies one, K_CLASS is a storage
 * class, K_TOP begins a definition at top level, K_OP is an operator, K_RESERVED has no meaning in
 * D. */
#define KEYWORDS(X) \
	X(TOK_AUTO, "auto", K_CLASS) X(TOK_BREAK, "break", K_RESERVED) X(TOK_CASE, "case", K_RESERVED) \
	X(TOK_CHAR, "char", K_TYPE) X(TOK_CONST, "const", K_QUAL) X(TOK_CONTINUE, "continue", K_RESERVED) \
	X(TOK_COUNTER, "counter", K_RESERVED) X(TOK_DEFAULT, "default", K_RESERVED) X(TOK_DO, "do", K_RESERVED) \
	X(TOK_DOUBLE, "double", K_TYPE) X(TOK_ELSE, "else", K_RESERVED) X(TOK_ENUM, "enum", K_TYPE) \
	X(TOK_EXTERN, "extern", K_CLASS) X(TOK_FLOAT, "float", K_TYPE) X(TOK_FOR, "for", K_RESERVED) \
	X(TOK_GOTO, "goto", K_RESERVED) X(TOK_IF, "if", K_RESERVED) X(TOK_IMPORT, "import", K_RESERVED) \
	X(TOK_INLINE, "inline", K_TOP) X(TOK_INT_KW, "int", K_TYPE) X(TOK_LONG, "long", K_TYPE) \
	X(TOK_OFFSETOF, "offsetof", K_OP) X(TOK_PROBE, "probe", K_RESERVED) X(TOK_PROVIDER, "provider", K_TOP) \
	X(TOK_REGISTER, "register", K_CLASS) X(TOK_RESTRICT, "restrict", K_QUAL) X(TOK_RETURN, "return", K_RESERVED) \
	X(TOK_SELF, "self", K_CLASS) X(TOK_SHORT, "short", K_TYPE) X(TOK_SIGNED, "signed", K_TYPE) \
	X(TOK_SIZEOF, "sizeof", K_OP) X(TOK_STATIC, "static", K_CLASS) X(TOK_STRING_KW, "string", K_TYPE) \
	X(TOK_STRINGOF, "stringof", K_OP) X(TOK_STRUCT, "struct", K_TYPE) X(TOK_SWITCH, "switch", K_RESERVED) \
	X(TOK_THIS, "this", K_CLASS) X(TOK_TRANSLATOR, "translator", K_TOP) X(TOK_TYPEDEF, "typedef", K_CLASS) \
	X(TOK_UNION, "union", K_TYPE) X(TOK_UNSIGNED, "unsigned", K_TYPE) X(TOK_VOID, "void", K_TYPE) \
	X(TOK_VOLATILE, "volatile", K_QUAL) X(TOK_WHILE, "while", K_RESERVED) X(TOK_XLATE, "xlate", K_OP) \
	X(TOK_BOOL, "_Bool", K_TYPE)

/* Punctuation. Of two texts with a common beginning, the longer stands first. */
#define PUNCTUATION(X) \
	X(TOK_SHL_EQ, "<<=") X(TOK_SHR_EQ, ">>=") X(TOK_ELLIPSIS, "...") \
	X(TOK_LAND, "&&") X(TOK_LXOR, "^^") X(TOK_LOR, "||") X(TOK_EQ, "==") X(TOK_NE, "!=") X(TOK_LE, "<=") X(TOK_GE, ">=") \
	X(TOK_SHL, "<<") X(TOK_SHR, ">>") X(TOK_ARROW, "->") X(TOK_INC, "++") X(TOK_DEC, "--") \
	X(TOK_ADD_EQ, "+=") X(TOK_SUB_EQ, "-=") X(TOK_MUL_EQ, "*=") X(TOK_DIV_EQ, "/=") X(TOK_MOD_EQ, "%=") \
	X(TOK_AND_EQ, "&=") X(TOK_XOR_EQ, "^=") X(TOK_OR_EQ, "|=") \
	X(TOK_OR, "|") X(TOK_XOR, "^") X(TOK_AND, "&") X(TOK_LT, "<") X(TOK_GT, ">") X(TOK_ADD, "+") X(TOK_SUB, "-") X(TOK_MUL, "*") \
	X(TOK_DIV, "/") X(TOK_MOD, "%") X(TOK_BNOT, "~") X(TOK_LNOT, "!") X(TOK_QUESTION, "?") X(TOK_COLON, ":") X(TOK_DOT, ".") \
	X(TOK_ASSIGN, "=") X(TOK_COMMA, ",") X(TOK_SEMI, ";") X(TOK_LPAREN, "(") X(TOK_RPAREN, ")") \
	X(TOK_LBRACKET, "[") X(TOK_RBRACKET, "]") X(TOK_LBRACE, "{") X(TOK_RBRACE, "}")
// clang-format on

enum token_kind {
	TOK_EOF,
	TOK_ERROR, /* malformed, already reported */
	TOK_STOP,  /* the parser returns this after an error, until it recovers */
	TOK_INT,   /* value */
	TOK_STR,   /* text, len: escapes resolved */
	TOK_IDENT, /* text; scoped: module`text */
	TOK_AGG,   /* text without the @, "" for plain @ */
	TOK_EPRED, /* the slash that ends a predicate */
	TOK_PSPEC, /* text: a probe description as written; lex_top only */
#define X(id, text) id,
	PUNCTUATION(X)
#undef X
#define X(id, text, class) id,
		KEYWORDS(X)
#undef X
			TOKEN_KIND_COUNT
};

enum keyword_class { K_NONE, K_TYPE, K_QUAL, K_CLASS, K_TOP, K_OP, K_RESERVED };

struct token {
	enum token_kind kind;
	loc_t loc, end;
	const char *text;
	const char *module; /* TOK_IDENT with scoped: name before the backquote, NULL for `sym */
	uint32_t len;
	uint64_t value; /* TOK_INT */
	bool scoped, is_unsigned, is_char, based;
	bool negative; /* TOK_INT from a macro with a minus sign: the parser negates the value */
	uint8_t longs;
};

struct lex_pragma {
	struct lex_pragma *next;
	const char *text; /* after "#pragma" */
	loc_t loc, end;
};

struct lexer {
	struct parse_cx *cx;
	const char *text;
	uint32_t len, pos;
	loc_t base;
	bool pred;                   /* the lexer is in a predicate: a slash may end it */
	bool quiet;                  /* the parser skips after an error: report nothing */
	uint32_t reported;           /* offset + 1 of the last malformed token that was reported */
	uint32_t controlled;         /* offset + 1 of the last # line that was handled */
	uint32_t decl_from, decl_to; /* lex_is_decl's last result holds for these offsets */
	bool decl;
	struct lex_pragma *pragmas, **pragmas_tail; /* those that the parser has not taken */
};

void lex_init(struct lexer *lx, struct parse_cx *cx, uint32_t src);
void lex_next(struct lexer *lx, struct token *ret);
void lex_top(struct lexer *lx, struct token *ret);
/* Continues reading at loc, which must lie in this source. */
void lex_seek(struct lexer *lx, loc_t loc);
/* Skips blanks, comments and # lines. Returns the next character, 0 at the end. */
int lex_blank(struct lexer *lx);
/* Returns true when the word at pos begins a declaration, and false when it begins a probe
 * description. */
bool lex_is_decl(struct lexer *lx);

enum keyword_class token_class(enum token_kind k);
/* Returns the keyword's token, or TOK_IDENT when the word is no keyword. */
enum token_kind keyword_find(const char *s, size_t n);
const char *token_kind_text(enum token_kind k);

/* --- lex_value.c: the values of constants and macros --- */
/* Resolves the C escapes of s[0..n) into out, which holds at least n bytes. Returns the number of
 * bytes written. */
size_t unescape(const char *s, size_t n, char *out);
/* Reads `$1`, `$$1`, `$target` or `$$name` in an expression. lx->pos is at the first `$`. */
void lex_macro(struct lexer *lx, struct token *t);
/* Reads the number at lx->pos. */
void lex_number(struct lexer *lx, struct token *t);
void lex_string(struct lexer *lx, struct token *t);
void lex_char(struct lexer *lx, struct token *t);
/* Returns the text of macro `name` (without dollars), or NULL when the macro is not defined. Sets
 * *ret_unset when the macro is $target and there is no target. Marks arguments as used. The text
 * lies in the arena or in the command line. */
const char *macro_text(struct parse_cx *cx, const char *name, bool string, bool *ret_unset);
/* Reports an error at the token [pos, end) unless it was reported before. Turns the token into
 * TOK_ERROR. */
void lex_error(struct lexer *lx, struct token *t, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static inline bool is_ident_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}
static inline bool is_ident_char(int c)
{
	return is_ident_start(c) || is_digit(c);
}
static inline bool is_blank_char(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
