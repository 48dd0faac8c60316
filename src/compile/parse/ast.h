/* The syntax tree of D.
 *
 * In: nothing. Out: nodes, allocated in the compilation's arena and freed with it. The parser fills
 * the fields of each node above "-- bind --". The binder fills the rest and may rewrite nodes in
 * place. It expands inlines, translators and macro values by cloning. After binding, no N_XLATE, no
 * N_MACRO and no N_IDENT that names an inline is left. */
#ifndef DESCRY_COMPILE_PARSE_AST_H
#define DESCRY_COMPILE_PARSE_AST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/mem.h"
#include "program/type/type.h"

// clang-format off
#define NODE_KINDS(X) \
	/* expressions */ \
	X(N_INT, "int")           /* integer or character constant */ \
	X(N_STR, "string")        /* string literal */ \
	X(N_IDENT, "ident")       /* x, self->x (scope), this->x */ \
	X(N_EXTERN, "extern")     /* `sym  mod`sym */ \
	X(N_MACRO, "macro")       /* $1 $$1 $target ... */ \
	X(N_AGG, "agg")           /* @name[keys] */ \
	X(N_INDEX, "index")       /* base[args]: associative or C array, decided by bind */ \
	X(N_CALL, "call")         /* f(args) */ \
	X(N_MEMBER, "member")     /* a.name */ \
	X(N_PMEMBER, "pmember")   /* a->name */ \
	X(N_UNARY, "unary") \
	X(N_BINARY, "binary") \
	X(N_ASSIGN, "assign")     /* a op= b; op OP_NONE: plain = */ \
	X(N_TERNARY, "ternary") \
	X(N_COMMA, "comma") \
	X(N_CAST, "cast") \
	X(N_SIZEOF_TYPE, "sizeof-type") \
	X(N_SIZEOF, "sizeof") \
	X(N_OFFSETOF, "offsetof") \
	X(N_STRINGOF, "stringof") \
	X(N_XLATE, "xlate")       /* xlate <T>(e) */ \
	X(N_BODY, "body")         /* a call, expanded by bind: assigns the arguments, then runs the body */ \
	/* statements */ \
	X(S_EXPR, "expr-stmt") \
	X(S_IF, "if") \
	X(S_BLOCK, "block") \
	X(S_LOOP, "loop")         /* while, do, for without its first part */ \
	X(S_LOCAL, "local")       /* T x = value; one declarator. After binding an S_EXPR */ \
	X(S_BREAK, "break") \
	X(S_CONTINUE, "continue") \
	X(S_RETURN, "return")     /* block.body: the value, or NULL */ \
	/* top level */ \
	X(D_CLAUSE, "clause") \
	X(D_DECL, "decl")         /* typedef/struct/variable declaration */ \
	X(D_INLINE, "inline") \
	X(D_FUNC, "function")     /* T f(T a) { ... }: inl.value is the S_BLOCK */ \
	X(D_TRANSLATOR, "translator") \
	X(D_PROVIDER, "provider") \
	X(D_PRAGMA, "pragma")
// clang-format on

enum node_kind {
#define X(id, name) id,
	NODE_KINDS(X)
#undef X
		NODE_KIND_COUNT
};

// clang-format off
#define OPS(X) \
	X(OP_NONE, "") X(OP_ADD, "+") X(OP_SUB, "-") X(OP_MUL, "*") X(OP_DIV, "/") X(OP_MOD, "%") \
	X(OP_SHL, "<<") X(OP_SHR, ">>") X(OP_AND, "&") X(OP_OR, "|") X(OP_XOR, "^") \
	X(OP_LAND, "&&") X(OP_LOR, "||") X(OP_LXOR, "^^") \
	X(OP_EQ, "==") X(OP_NE, "!=") X(OP_LT, "<") X(OP_LE, "<=") X(OP_GT, ">") X(OP_GE, ">=") \
	/* unary */ \
	X(OP_NEG, "-u") X(OP_PLUS, "+u") X(OP_LNOT, "!") X(OP_BNOT, "~") X(OP_DEREF, "*u") X(OP_ADDROF, "&u") \
	X(OP_PREINC, "++u") X(OP_PREDEC, "--u") X(OP_POSTINC, "u++") X(OP_POSTDEC, "u--")
// clang-format on

enum op {
#define X(id, name) id,
	OPS(X)
#undef X
		OP_COUNT
};

enum { AST_MAX_HEIGHT = 2000 };

enum var_scope { SCOPE_NONE, SCOPE_SELF, SCOPE_THIS };

/* Declaration specifiers and declarators, as written. */
enum decl_storage {
	STORAGE_NONE,
	STORAGE_TYPEDEF,
	STORAGE_EXTERN,
	STORAGE_STATIC,
	STORAGE_AUTO,
	STORAGE_REGISTER,
	STORAGE_SELF,
	STORAGE_THIS,
};
enum spec_flag {
	SPEC_CONST = 1,
	SPEC_VOLATILE = 2,
	SPEC_RESTRICT = 4,
	SPEC_SIGNED = 8,
	SPEC_UNSIGNED = 16,
	SPEC_SHORT = 32,
	SPEC_LONG = 64,
	SPEC_LONGLONG = 128,
};
enum spec_base {
	BASE_NONE, /* as in "unsigned x", which means int */
	BASE_VOID,
	BASE_CHAR,
	BASE_INT,
	BASE_FLOAT,
	BASE_DOUBLE,
	BASE_BOOL,
	BASE_STRING,
	BASE_STRUCT,
	BASE_UNION,
	BASE_ENUM,
	BASE_NAME,     /* a typedef name, "mod`name" included */
	BASE_USERLAND, /* reserved: no code makes this value */
};

struct spec {
	enum decl_storage storage;
	uint32_t flags; /* enum spec_flag */
	enum spec_base base;
	const char *name;     /* tag or typedef name, NULL when anonymous */
	const char *module;   /* the name before a backquote, or NULL */
	bool has_body;        /* struct/union/enum { ... } */
	bool c_inline;        /* C's "static inline", of a header */
	struct decl *members; /* struct/union body, in order */
	struct enumerator *enumerators;
	loc_t loc, end;
};

struct enumerator {
	struct enumerator *next;
	const char *name;
	struct node *value; /* NULL: previous value + 1 */
	loc_t loc;
};

/* A declarator from the name outwards: "int *a[3]" is ARRAY(3) then POINTER. */
enum declarator_kind { DECLR_POINTER, DECLR_ARRAY, DECLR_ASSOC, DECLR_FUNC };
struct declarator {
	struct declarator *next; /* applied next: it stands further from the name */
	enum declarator_kind kind;
	uint32_t quals;      /* pointer: SPEC_CONST... */
	struct node *size;   /* array: NULL when [] */
	struct decl *params; /* DECLR_FUNC and DECLR_ASSOC ("int a[int, string]") */
	bool varargs;
};

/* A declared name with its full type: variable, member or parameter. The name of an abstract
 * declaration is NULL. */
struct decl {
	struct decl *next;
	struct spec *spec; /* shared by "int a, b;" */
	struct declarator *declr;
	const char *name;
	struct node *bits; /* bit-field width */
	loc_t loc, end;
};

/* A probe description p:m:f:n after macro expansion. Empty fields are "". by_id: the source gives a
 * number. */
struct pdesc {
	struct pdesc *next;
	const char *prov, *mod, *func, *name;
	uint32_t id; /* by_id only */
	bool by_id;
	loc_t loc, end;
};

struct node {
	enum node_kind kind;
	enum op op;
	uint16_t height;   /* longest path to a leaf: at most AST_MAX_HEIGHT, for recursive walks */
	loc_t loc, end;    /* offset of the first byte, and of the byte behind the last */
	struct node *next; /* in lists: arguments, keys, statements, top level */

	// clang-format off
	union {
		/* N_INT. longs: 0, 1 or 2. based: the constant is octal or hexadecimal, so C may
		 * give it an unsigned type */
		struct { uint64_t value; bool is_unsigned, is_char; uint8_t longs; bool based; } i;
		struct { const char *text; uint32_t len; } s;                        /* N_STR: escapes resolved; N_MACRO: name */
		struct { const char *name, *module; enum var_scope scope; } ident;   /* N_IDENT, N_EXTERN */
		struct { const char *name; struct node *keys; } agg;                 /* name "" for plain @ */
		struct { struct node *a, *b, *c; } e;      /* unary a; binary a b; ternary a ? b : c; sizeof a; stringof a; index a[b...] */
		struct { const char *func; struct node *args; } call;
		struct { struct node *a; const char *name; } member;
		struct { struct decl *type; const char *member; struct node *a; } t; /* sizeof-type, offsetof, cast, xlate: type name */
		struct { struct node *cond, *then, *els; } cond;                     /* S_IF: then/els are S_BLOCK */
		struct { struct node *body; } block;                                 /* S_BLOCK list; S_EXPR: the expression */
		struct { struct node *cond, *step, *body; bool tail; } loop;         /* cond, step may be NULL; tail: do ... while */
		struct { struct decl *decl; struct node *value; } local;             /* S_LOCAL: value may be NULL */
		struct { struct node *args, *body; } fn;                             /* N_BODY: list of N_ASSIGN, S_BLOCK */
		struct {
			struct pdesc *pdescs;
			struct node *pred;       /* NULL: no predicate */
			struct node *body;       /* statement list */
			bool has_body;           /* false: bare description (default action) */
		} clause;
		struct { struct decl *decls; } decl;
		struct { struct decl *decl; struct decl *params; struct node *value; } inl;    /* params of inline T f[K k]; decl is T f */
		struct {
			struct decl *out, *in;   /* translator out < in name > */
			struct node *members;    /* list of N_ASSIGN(N_IDENT, expr) */
		} xlator;
		struct { const char *name; struct provider_probe *probes; } provider;
		struct { const char *text; } pragma;       /* the rest of the #pragma line */
	};
	// clang-format on

	/* -- bind -- */
	type_id type;                 /* every expression */
	bool lvalue;                  /* may be assigned to or addressed */
	bool constant;                /* an integer constant: N_INT after folding */
	struct bind_member *selected; /* N_MEMBER, N_PMEMBER: the member that they select */
	/* The thing that an N_IDENT, N_AGG, N_CALL, N_EXTERN, or an N_INDEX of an associative array
	 * names. */
	struct bind_ident *id;
	void *aux; /* by kind, see bind.h */
};

/* provider p { probe name(T, T) : (X, X); }; */
struct provider_probe {
	struct provider_probe *next;
	const char *name;
	struct decl *native, *translated;
	bool is_translated; /* has ":", with a list that may be empty */
	loc_t loc;
};
/* Returns the first of the arguments that a tracer sees, and with provider_native() the index of
 * the native argument that each of them is: the argument with the same name, else the argument at
 * the same place. */
const struct decl *provider_args(const struct provider_probe *p);
uint32_t provider_native(const struct provider_probe *p, const struct decl *arg, uint32_t place);

/* Prints the tree as indented text, one node a line: for `-d parse` (before binding) and `-d bind`.
 * Adds ": type" to each expression when types is not NULL. */
void ast_print(FILE *out, const struct node *n, struct type_graph *types);
const char *node_kind_name(enum node_kind k);
const char *op_name(enum op op);
/* Returns the lists of nodes below n, in the order of the text. A list may be NULL. */
struct node_lists {
	struct node *list[3];
};
struct node_lists node_lists(const struct node *n);
/* Calls fn for every node of the list and for every node below them. */
void node_walk(const struct node *n, void (*fn)(void *arg, const struct node *n), void *arg);
/* Returns a deep copy of n, allocated in arena a. */
struct node *node_clone(struct arena *a, const struct node *n);

#endif
