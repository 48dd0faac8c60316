/* Tree -> meaning: every name resolved, every expression typed, every probe description matched.
 *
 * In: top-level nodes of all sources in order; the probe set; the type graph; options.
 * Out: struct bound: variables, aggregations, and clause instances in program order. An instance is
 * a clause for all probes that share an argument signature (attach kind, thread, filter, and the
 * sources/types of the arguments the clause uses). Its tree is its own copy, fully typed. Always
 * true after a bind without errors:
 *  - every expression has a type other than T_VOID, except calls of actions; constants are folded
 *    into N_INT;
 *  - no N_XLATE, N_MACRO, N_SIZEOF*, N_OFFSETOF, inline or translated member is left, because the
 *    binder expands them in place;
 *  - arithmetic operands are converted: the binder inserts N_CAST nodes, so that both operands of a
 *    binary operator have their common type where C requires it, and assigned values have the
 *    target's type; struct values only appear as operands of & . -> print() trace() sizeof and as
 *    arguments of actions;
 *  - string operands of relational operators, assignments, keys and subroutines have type T_STRING:
 *    N_STRINGOF wraps char arrays and pointers;
 *  - N_INDEX with id is an associative array element; without id a C array or pointer element.
 */
#ifndef DESCRY_COMPILE_BIND_BIND_H
#define DESCRY_COMPILE_BIND_BIND_H

#include "compile/parse/ast.h"
#include "compile/parse/parse.h"
#include "data/options.h"
#include "data/schema.h"
#include "probe/probe.h"

/* Built-in variables: builtins.def  X(id, "name", "type text or empty", "doc") */
enum builtin_id {
#define X(id, name, type, doc) BUILTIN_##id,
#include "compile/bind/builtins.def"
#undef X
	BUILTIN_COUNT
};

/* Subroutines, actions and aggregating functions: subrs.def
 * X(id, "name", kind, min args, max args, "result type text", flags, "doc") */
enum subr_id {
#define X(id, name, kind, min, max, type, flags, doc) SUBR_##id,
#include "compile/bind/subrs.def"
#undef X
	SUBR_ID_COUNT
};
enum subr_kind { SUBR_KIND_FUNC, SUBR_KIND_ACTION, SUBR_KIND_AGG };
enum subr_flag {
	SUBR_DESTRUCTIVE = 1,
	SUBR_RECORDS = 2 /* puts data into the record */,
	SUBR_CONTROL = 4 /* control ring */,
	SUBR_INTERNAL = 8 /* __names used by dlib only */,
	SUBR_UNSUPPORTED = 16 /* known, but refused with D_UNKNOWN */,
};
struct subr_info {
	const char *name;
	enum subr_kind kind;
	int min, max;
	const char *type;
	unsigned flags;
	const char *doc;
};
extern const struct subr_info subr_table[SUBR_ID_COUNT];
struct builtin_info {
	const char *name, *type, *doc;
};
extern const struct builtin_info builtin_table[BUILTIN_COUNT];

enum ident_kind { IDENT_VAR, IDENT_BUILTIN, IDENT_SUBR, IDENT_AGG, IDENT_KSYM, IDENT_CTX };

/* A variable of the program. */
struct variable {
	uint32_t index; /* in bound.vars */
	const char *name;
	enum var_scope scope;
	type_id type; /* of the value (element for associative arrays) */
	bool assoc;
	type_id *keys; /* assoc: key types; T_STRING for strings */
	uint32_t nkeys;
	loc_t loc;
	bool local; /* of a function or block: assigned before every use */
	bool bad;   /* its first value was an error, which has been reported */
};

struct bind_ident {
	enum ident_kind kind;
	union {
		struct variable *var;
		enum builtin_id builtin; /* BUILTIN_ARG0.. and ARGS: value from node->arg */
		enum subr_id subr;
		uint32_t agg; /* index in bound.aggs */
		struct {
			const char *module, *name;
			uint64_t addr;
		} ksym;
		uint32_t ctx; /* IDENT_CTX: context word (byte offset), inside probe_arg.expr and filters */
	};
};

/* N_MEMBER / N_PMEMBER */
struct bind_member {
	uint64_t bit_offset;
	uint32_t bit_size; /* 0: not a bit-field */
	type_id type;
};

/* node->aux:
 *	N_IDENT of BUILTIN_ARGn, N_INDEX/ident of BUILTIN_ARGS (args[i] becomes N_IDENT with id BUILTIN_ARGS):
 *		const struct probe_arg *  (source; expr already expanded away)
 *	N_CALL of printf printa freopen system: struct format *
 *	N_CAST: the operand is in t.a; t.type is NULL (casts that were written and those put in are alike)
 *	stack() ustack() jstack(): the number of frames is always there, from the options when it was not written
 *	distributions: increment is argument 1 (quantize), 4 (lquantize) or 5 (llquantize), if there; parameters are in struct agg
 *	0 and NULL where a string is wanted (assignment, == and !=): N_STR ""
 *	N_CALL of an aggregating function does not occur as an expression: `@a[k] = f(x)` is N_ASSIGN with a = N_AGG, b = N_CALL
 *	N_CALL of stack/ustack/tracemem..: NULL, arguments are in call.args (sizes are N_INT)
 */

struct stability;

struct bound_clause {
	struct node *pred;   /* NULL: always. && joins the probe's filter, if any, in front */
	struct node *body;   /* statement list; actions are S_EXPR of N_CALL */
	bool default_action; /* empty body: prints only the probe's name */
	loc_t loc, end;
	uint32_t index;   /* of the source clause, in program order */
	uint32_t number;  /* of its first description, among those of all clauses */
	const char *desc; /* its first description, as written */
	const struct pdesc *descs;
	uint8_t least_stable; /* of the names in its statements: bound_clause_stability() */
	struct probe **probes;
	uint32_t nprobes;
	struct probe_args args; /* of this signature */
	enum attach_kind attach;
	int8_t thread_arg;
};

struct bound {
	VEC(struct variable *) vars;
	VEC(struct agg *)
	aggs; /* func, type, parameters, key types bound; keys' layout is ir's work: nkeys and
					       * agg_key_types are set here */
	VEC(type_id *)
	agg_key_types; /* per agg: nkeys types (T_STRING; T_DYN for stack(), usym().. by the first use) */
	VEC(struct bound_clause *) clauses;
	uint32_t nclauses; /* source clauses */
	bool destructive;
	uint32_t matched; /* probes matched, for "matched N probes" (counted per description, as DTrace) */
};

struct bind_cx {
	struct arena *arena;
	struct diags *diags;
	struct type_graph *types;
	struct probe_set *probes;
	struct options *options;
	struct macro_args *macros;
	struct parse_cx *parse;    /* for library files read on demand */
	VEC(const char *) libdirs; /* -L */
	struct bind_state *state;  /* binder's own */
};

void bind_init(struct bind_cx *cx);
void bind_fini(struct bind_cx *cx);
/* The callback parse_cx.is_type, with arg = bind_cx. Searches the program, the library index and
 * the kernel's types. */
bool bind_is_type(void *arg, const char *module, const char *name);
/* Takes the top-level nodes of one source: binds declarations, sets the options of #pragma D
 * option, and keeps the clauses for bind_finish(). */
void bind_add(struct bind_cx *cx, struct node *top);
/* Matches probes and binds all clauses. Errors go to diags. The result is usable only without
 * errors, and until bind_fini. */
struct bound *bind_finish(struct bind_cx *cx);
/* Returns the argument types of a probe that a source of bind_add() defines, in the words of -G.
 * The texts live as long as cx. */
struct probe_definition;
void bind_probe_definition(struct bind_cx *cx, const char *provider, const struct provider_probe *p,
			   struct probe_definition *ret);
/* Returns the stability of the least stable name in the clause's statements. */
struct stability bound_clause_stability(const struct bound_clause *c);
/* Returns true when the probed functions can be divided by name among two engines that share no
 * variables. */
bool bound_is_separable(const struct bound *b);
/* Prints the result of the binder: for tests and -d bind. */
void bound_print(FILE *out, const struct bound *b, struct type_graph *types);
/* Prints the library files that were read, one a line, each before the files that depend on it. */
void libraries_print(FILE *out, const struct bind_cx *cx);
/* Print the trees in the form of DTrace's listings, for -x tree: pass 1 as parsed, pass 2 (bound)
 * clause by clause, pass 3 (compiled) as one program. */
void tree_list_parsed(FILE *out, const struct node *top);
void tree_list_bound(FILE *out, const struct bound *b, struct type_graph *types, int pass);

#endif
