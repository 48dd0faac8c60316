/* The binder's own state and the functions its files share. Only src/compile/bind includes it.
 *
 * Binding a node rewrites it in place, children first, once: what a name stands for (an inline, a
 * translator's input) is put in as a clone of a tree already bound. Two kinds of node exist only
 * while their parents are being bound:
 *  - a poisoned node: N_INT of type int that stands where an error was reported; nobody reports it
 *    again;
 *  - a translated value: N_XLATE with the native value in t.a and its translator in aux, of the
 *    translator's output type or a pointer to it. Member access replaces it by the translator's
 *    expression for the member.
 */
#ifndef DESCRY_COMPILE_BIND_STATE_H
#define DESCRY_COMPILE_BIND_STATE_H

#include "base/hash.h"
#include "base/nearest.h"
#include "compile/bind/bind.h"

enum {
	MAX_DEPTH = 3000,   /* of an expression with all that is expanded in it */
	MAX_NODES = 250000, /* of a clause: inlines of inlines grow without bound */
	MAX_ALL = 4000000,  /* of all clauses: some 100 bytes each */
	MAX_VALUE = 16384,  /* bytes of a struct kept in a variable */
};

/* inline T f[K k] = e; */
struct inline_def {
	const char *name;
	const struct node *node;
	type_id type;
	VEC(type_id) params;
	bool busy; /* being expanded: an inline of itself has no end */
	bool bad;  /* its errors are reported */
};

/* T f(T a) { ... }: put in where it is called, with parameters and result in variables of its
 * own. */
struct func_def {
	const char *name;
	const struct node *node;
	type_id type; /* T_VOID: none */
	VEC(type_id) params;
	bool busy;
};

struct xlator {
	const struct node *node;
	type_id out, in; /* out is a struct or union */
	const char *in_name;
	struct xlator *next; /* of the same key in bind_state.xlators */
};

/* A name that stands for a bound tree: parameters of inlines and translators. */
struct env {
	const struct env *up;
	const char *name;
	const struct node *value;
};

/* A library file, from dlib/ or a -L directory. */
struct lib_file {
	const char *name, *text;
	size_t len;
	bool loaded;
	bool busy;     /* being loaded */
	bool own;      /* of a -L directory */
	uint32_t turn; /* its number, from 1, among the files read to their end */
};

/* What a clause uses of the probe: bit n for argn and args[n]. */
struct arg_use {
	uint32_t plain, typed;
};

struct agg_use {
	struct node *call; /* printa, clear, ...: checked when every clause is bound */
	struct node *agg;
};

/* A clause's statements so far: what may not come together with what. */
struct flow {
	bool speculate, commit, record;
};

struct bind_state {
	struct hash vars;                    /* "scope name" -> index in bound.vars + 1 */
	VEC(const struct node *) attributes; /* #pragma D attributes a/b/c name */
	struct hash enumerators;             /* names that enums of D define */
	struct hash aggs;                    /* name -> index in bound.aggs + 1 */
	struct hash inlines;                 /* name -> struct inline_def * */
	struct hash funcs;                   /* name -> struct func_def * */
	uint32_t expansions;                 /* of functions, so far */
	struct variable *result;             /* of the function being put in, NULL: it has none */
	struct hash specs;                   /* struct spec * -> type_id + 1 */
	struct hash user_tags; /* tags the program defines itself: a library means the kernel's */
	struct hash texts;     /* D text of probes -> its tree */
	struct hash builtins, subrs; /* name -> id + 1 */
	struct hash
		xlators; /* struct xlator_key -> struct xlator *, the first one declared (xlate.c) */
	VEC(const struct node *) providers;
	VEC(struct node *) clauses;
	struct hash uses; /* "scope name" of a variable -> what the program does with it (assign.c) */
	uint32_t uses_of; /* clauses that `uses` was made of */
	VEC(struct agg_use) agg_uses;
	VEC(struct agg_info *) agg_info; /* beside bound.aggs */
	VEC(struct lib_file) libs;
	struct hash
		lib_names; /* "k name", k one of t(ype) s(truct) i(nline) e(numerator) x(lator): file + 1 */
	bool libs_indexed;
	uint32_t nlibs_read;
	struct bound *out;
	uint32_t ndescs;            /* of the clauses bound so far */
	uint32_t nodes, all, depth; /* bound so far, of the clause, of those before; being bound */
	bool full;                  /* and that has been said */

	/* of the clause instance being bound */
	struct bound_clause *clause;
	const struct env *env;
	struct arg_use known_use; /* arguments the clause names; the instances are made for these */
	bool dry; /* no probe matched and none has to: bound for its errors and variables only */
	bool in_context; /* inside probe_arg.expr or a filter: arg0.. are context words */
	struct flow flow;
	bool trying; /* binding a definition that nothing uses yet, for its errors: the probe's arguments have no values */
	bool showing; /* print(&x): the address of a variable is allowed */
	bool in_lib;  /* inside a library's inline or translator: __names are allowed */
};

struct agg_info {
	bool defined;
	bool bad;               /* its definition was an error */
	enum subr_id *key_subr; /* of T_DYN keys: which action */
};

extern const char bind_poison_mark;

static inline bool is_poison(const struct node *n)
{
	return n->kind == N_INT && n->aux == &bind_poison_mark;
}
static inline bool is_xlated(const struct node *n)
{
	return n->kind == N_XLATE;
}
static inline bool calls_kind(const struct node *n, enum subr_kind kind)
{
	return n->kind == N_CALL && n->id && n->id->kind == IDENT_SUBR &&
	       subr_table[n->id->subr].kind == kind;
}
/* A bound call of an action, of no type or T_DYN: no value but in the few places that take one. */
static inline bool is_action(const struct node *n)
{
	return calls_kind(n, SUBR_KIND_ACTION);
}
/* A bound call of count() and the like outside of an assignment to an aggregation: T_DYN, an error
 * wherever it is used. */
static inline bool is_aggregating(const struct node *n)
{
	return calls_kind(n, SUBR_KIND_AGG);
}
static inline bool is_const(const struct node *n)
{
	return n->kind == N_INT && n->constant;
}

/* --- bind.c --- */
void poison(struct node *n);
/* Reports at n, poisons it. */
void bind_error(struct bind_cx *cx, struct node *n, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A node of that kind at the place of `at`, outside any list. */
struct node *make_node(struct bind_cx *cx, enum node_kind kind, const struct node *at);
/* *n becomes *by; the list it stands in stays. */
void replace_node(struct node *n, const struct node *by);
const char *type_text(struct bind_cx *cx, type_id t);

/* --- decl.c --- */
type_id bind_spec(struct bind_cx *cx, const struct spec *s);
type_id bind_decl_type(struct bind_cx *cx, const struct decl *d);
/* " (did you mean struct foo?)" for a type that is not there, else "". */
const char *type_suggestion(struct bind_cx *cx, enum type_kind kind, const char *name);
/* The same for an incomplete struct, union or enum. */
const char *tag_suggestion(struct bind_cx *cx, type_id t);
/* t, or the kernel's type when t is, or points to, a struct of the program that has the name of one
 * of the kernel's. */
type_id kernel_type(struct bind_cx *cx, type_id t);
void bind_declaration(struct bind_cx *cx, const struct node *n);
void bind_inline(struct bind_cx *cx, const struct node *n);

/* --- ident.c --- */
void ident_init(struct bind_cx *cx);
struct variable *var_find(struct bind_cx *cx, enum var_scope scope, const char *name);
struct variable *var_new(struct bind_cx *cx, enum var_scope scope, const char *name, type_id type,
			 loc_t loc);
bool env_has(struct bind_cx *cx, const char *name);
struct inline_def *inline_find(struct bind_cx *cx, const char *name);
/* A kernel variable of another system that something here can answer: inline T __symbol__NAME.
 * NULL: it is not known. */
struct inline_def *library_symbol(struct bind_cx *cx, const char *symbol);
/* Is it a variable, an inline or a function of D? */
bool is_defined_name(struct bind_cx *cx, const char *name);
int builtin_find(struct bind_cx *cx, const char *name); /* -1: none */
int subr_find(struct bind_cx *cx, const char *name);
/* N_IDENT, N_EXTERN. */
void bind_ident(struct bind_cx *cx, struct node *n);
void bind_extern(struct bind_cx *cx, struct node *n);
/* Is it an identifier that names nothing yet, so that an assignment may create it? */
bool ident_is_new(struct bind_cx *cx, const struct node *n);
void ident_undefined(struct bind_cx *cx, struct node *n);
/* Makes n name var. */
void ident_set_var(struct bind_cx *cx, struct node *n, struct variable *var);
/* args[i] */
void bind_args_index(struct bind_cx *cx, struct node *n);
/* Expands def with the bound arguments `args` (list) into n. */
void expand_inline(struct bind_cx *cx, struct node *n, struct inline_def *def, struct node *args);
/* Binds the value of a definition for its errors, before it is used. */
void try_inline(struct bind_cx *cx, struct inline_def *def);
/* A node of type t that stands for any value, in trees that are thrown away. */
struct node *placeholder(struct bind_cx *cx, const struct node *at, type_id t);
/* A copy of a definition's tree for use at `at`, which its positions become when it comes from a
 * library. */
struct node *clone_at(struct bind_cx *cx, const struct node *n, const struct node *at);
bool is_lib_node(struct bind_cx *cx, const struct node *n);
/* Is it in a library file? */
bool is_lib_loc(struct bind_cx *cx, loc_t loc);
/* Binds D text that belongs to a probe, as an expression over context words. NULL on error. */
struct node *bind_context_text(struct bind_cx *cx, const char *text, const struct node *at);

/* --- lib.c --- */
/* Reads the library file that defines the name of that kind ('t' 's' 'i' 'e' 'x'). True when one
 * was read now. */
bool lib_load(struct bind_cx *cx, char kind, const char *name);
/* Was the library of this file name read? */
bool lib_loaded(struct bind_cx *cx, const char *name);
/* Is the file of that name being loaded? */
bool lib_busy(struct bind_cx *cx, const char *name);
/* Is that a name another system's kernel has, for which dlib/foreign.d puts a type of this one? */
bool lib_stands_in(const struct bind_cx *cx, const char *type_name);
/* Loads every file of the -L directories. */
void lib_load_own(struct bind_cx *cx);
void lib_fini(struct bind_cx *cx);

/* --- expr.c --- */
/* Binds n. Translated values and struct values may result. */
void bind_expr(struct bind_cx *cx, struct node *n);
/* Binds n, an N_TERNARY. When its condition is a constant, n becomes the operand that the constant
 * chooses and is bound by bind_chosen, as DTrace does it: the other operand may be anything. */
void bind_ternary(struct bind_cx *cx, struct node *n,
		  void (*bind_chosen)(struct bind_cx *cx, struct node *n));
/* False, with an error: more than MAX_NODES or MAX_ALL nodes. */
bool bind_has_room(struct bind_cx *cx, const struct node *n);
/* Binds n, which must be a value: no translated value, no action, not void. */
void bind_value(struct bind_cx *cx, struct node *n);
/* n, bound, becomes a value of type t as if by assignment; false when it cannot, nothing is
 * reported. */
bool convert(struct bind_cx *cx, struct node *n, type_id t);
/* The same where no assignment follows that cuts the value to its type: of inlines, their
 * parameters, translated members. */
bool convert_kept(struct bind_cx *cx, struct node *n, type_id t);
/* n as an operand of type t, or as what will be kept in one: a cast only where the value would
 * change. */
void cast_value(struct bind_cx *cx, struct node *n, type_id t);
/* Inserts a cast (or folds it) whatever the types. */
void cast_to(struct bind_cx *cx, struct node *n, type_id t);
/* Wraps n in N_STRINGOF unless it is a string. False when it is neither char array nor char
 * pointer. */
bool to_string(struct bind_cx *cx, struct node *n);
bool is_string_like(struct bind_cx *cx, const struct node *n);
bool is_scalar(struct bind_cx *cx, const struct node *n);
bool is_integer(struct bind_cx *cx, const struct node *n);
/* Arrays become pointers to their first element. */
void decay(struct bind_cx *cx, struct node *n);
/* The number that a pointer to a translated value is made of (curcpu: a CPU's), which is its value;
 * n for anything else. */
struct node *untranslated(struct bind_cx *cx, struct node *n);
/* NULL, which compares with integers and can be assigned to them. */
bool is_null(struct bind_cx *cx, const struct node *n);
/* The type an operand has in an expression: a bit-field whose values an int holds is an int, as in
 * C. */
type_id operand_type(struct bind_cx *cx, const struct node *n);
type_id common_type(struct bind_cx *cx, type_id a, type_id b);
type_id promote(struct bind_cx *cx, type_id t);
bool pointers_compatible(struct bind_cx *cx, const struct node *a, const struct node *b);
struct node *int_node(struct bind_cx *cx, const struct node *at, uint64_t value, type_id t);

/* Poisons n when its operand a is. */
bool bad_operand(struct node *n, const struct node *a);
/* The type of a for a message; "aggregation", "dynamic" and "translated T" for what has none of
 * C's. */
const char *value_text(struct bind_cx *cx, const struct node *a);
bool is_pointer(struct bind_cx *cx, const struct node *n);
/* What pointers of type t point to, and t's kind; without typedefs and qualifiers. */
type_id pointee(struct bind_cx *cx, type_id t);
enum type_kind kind_of(struct bind_cx *cx, type_id t);

/* --- member.c --- */
void bind_member(struct bind_cx *cx, struct node *n);
void bind_sizeof(struct bind_cx *cx, struct node *n);
void bind_offsetof(struct bind_cx *cx, struct node *n);

/* --- assign.c --- */
void bind_assign(struct bind_cx *cx, struct node *n);
void bind_incdec(struct bind_cx *cx, struct node *n);
void bind_index(struct bind_cx *cx, struct node *n);
/* False, with an error at n: more keys than -x tregs. */
bool check_key_count(struct bind_cx *cx, struct node *n, const struct node *keys);
/* Binds the index of args[i] and uregs[i], a constant; false with an error. */
bool bind_builtin_index(struct bind_cx *cx, struct node *n, const char *name);

/* --- const.c --- */
void set_int(struct bind_cx *cx, struct node *n, uint64_t value, type_id t);
uint64_t int_truncate(struct bind_cx *cx, uint64_t v, type_id t);
/* Folds a bound unary, binary, ternary or cast node with constant operands. */
void fold(struct bind_cx *cx, struct node *n);
/* A constant expression of a declaration; false (reported with tag) when it is none. */
bool const_value(struct bind_cx *cx, const struct node *n, int64_t *ret, const char *tag,
		 const char *what);
void bind_int(struct bind_cx *cx, struct node *n);

/* --- xlate.c --- */
void bind_translator(struct bind_cx *cx, const struct node *n);
struct xlator *xlator_find(struct bind_cx *cx, type_id out, type_id in);
/* Makes n a translated value of type `out` (struct or pointer) over `native` (bound). */
void make_xlated(struct bind_cx *cx, struct node *n, type_id out, struct node *native);
void bind_xlate(struct bind_cx *cx, struct node *n);
/* n is a member access whose base is a translated value: becomes the member's expression. */
void xlate_member(struct bind_cx *cx, struct node *n);
/* Of n, a translated value: how many members its translator gives values. */
uint32_t xlate_count(const struct node *n);
/* Makes `set`, an N_ASSIGN to an N_MEMBER, the assignment of the i-th of them. False with an
 * error. */
bool xlate_value(struct bind_cx *cx, const struct node *n, uint32_t i, struct node *set);

/* --- call.c --- */
/* Subroutines; stack() and friends, of type T_DYN. */
void bind_call(struct bind_cx *cx, struct node *n);
/* Reports a wrong number of arguments. */
bool check_count(struct bind_cx *cx, struct node *n, enum subr_id id);
/* The subroutine n calls, -1 (reported) when there is none it may call. */
int call_subr(struct bind_cx *cx, struct node *n);
void set_call(struct bind_cx *cx, struct node *n, enum subr_id id);
/* Binds and converts the arguments as the subroutine's prototype says; false with an error. */
bool bind_call_args(struct bind_cx *cx, struct node *n, enum subr_id id);
bool positive_const(struct bind_cx *cx, const struct node *a);
/* Binds and checks the arguments of stack(), sym()...: actions that are values. */
void bind_dyn(struct bind_cx *cx, struct node *n, enum subr_id id);

/* --- action.c --- */
/* One after the other: speculate, then data; or data; or commits and no data. False with an
 * error. */
bool check_flow(struct bind_cx *cx, struct node *n, enum subr_id id);
/* An expression that is a statement. */
void bind_statement(struct bind_cx *cx, struct node *n);

/* --- format.c --- */
void bind_printf(struct bind_cx *cx, struct node *n, enum subr_id id);
/* Parses the first argument into n->aux; false with an error. */
bool bind_format(struct bind_cx *cx, struct node *n, const struct node *text);
/* printa's format against the keys of agg; all clauses are bound. */
void check_printa(struct bind_cx *cx, struct node *n, uint32_t agg);

/* --- aggs.c --- */
/* Has a clause before given it a value, or named it? */
bool agg_is_known(struct bind_cx *cx, const char *name);
void bind_agg_assign(struct bind_cx *cx, struct node *n);
/* @a as argument of the action `call`; false with an error. */
bool bind_agg_ref(struct bind_cx *cx, struct node *call, struct node *n);
/* What could be checked only when all clauses are bound. */
void aggs_check(struct bind_cx *cx);

/* unit.c: gives aggregations of times their unit.
 * needs: every clause bound without errors.   gives: agg->unit.   keeps: everything else. */
void units_find(struct bound *b);

/* --- provider.c --- */
/* Types of the program's own provider definitions, for arguments that have none. */
void bind_provider(struct bind_cx *cx, const struct node *n);
void provider_types(struct bind_cx *cx, const struct probe *p, struct probe_args *args);

/* --- function.c --- */
void bind_func(struct bind_cx *cx, const struct node *n);
struct func_def *func_find(struct bind_cx *cx, const char *name);
/* Puts the function that n calls in its place. */
void expand_function(struct bind_cx *cx, struct node *n, struct func_def *def);
void bind_return(struct bind_cx *cx, struct node *n);
/* n, bound, is a statement: what functions in its arguments print comes before what it prints
 * itself. Statements are put in front; the last of them, which is n's own. */
struct node *functions_first(struct bind_cx *cx, struct node *n);
/* T x = e; in a block, whose names so far are those of state.env down to `outside`. */
void bind_local(struct bind_cx *cx, struct node *n, const struct env *outside);

/* --- version.c --- */
void version_check_option(struct bind_cx *cx);
/* The version of D that brought the name, when the program was written for an older one; else
 * NULL. */
const char *version_hides(const struct bind_cx *cx, const char *name);

/* --- attr.c --- */
enum attr_kind { ATTR_STABLE, ATTR_PRIVATE_DATA, ATTR_PRIVATE };
/* Reports at n when `what` is less stable than -x amin asks. */
void attr_check(struct bind_cx *cx, struct node *n, const char *what, enum attr_kind kind);

/* --- clause.c --- */
void bind_statements(struct bind_cx *cx, struct node *list);
void bind_clause(struct bind_cx *cx, const struct node *n, uint32_t index);
uint32_t list_length(const struct node *n);

#endif
