/* The binder's state and the functions that its files share. Only src/compile/bind includes it.
 *
 * Binding a node rewrites it in place, once, children first. A name of an inline or a translator's
 * input is replaced by a clone of a tree that is bound already. Two kinds of node exist only while
 * their parents are being bound:
 *  - a poisoned node: an N_INT of type int in the place of an error that has been reported; nothing
 *    reports it again;
 *  - a translated value: an N_XLATE with the native value in t.a and its translator in aux. Its
 *    type is the translator's output type or a pointer to it. Member access replaces it by the
 *    translator's expression for the member. */
#ifndef DESCRY_COMPILE_BIND_BIND_PRIVATE_H
#define DESCRY_COMPILE_BIND_BIND_PRIVATE_H

#include "base/hash.h"
#include "base/nearest.h"
#include "compile/bind/bind.h"

enum {
	MAX_DEPTH = 3000,   /* depth of an expression after expansion */
	MAX_NODES = 250000, /* nodes of a clause: inlines of inlines can grow without bound */
	MAX_ALL = 4000000,  /* nodes of all clauses: some 100 bytes each */
	MAX_VALUE = 16384,  /* bytes of a struct kept in a variable */
};

/* inline T f[K k] = e; */
struct inline_def {
	const char *name;
	const struct node *node;
	type_id type;
	VEC(type_id) params;
	bool busy; /* being expanded: an inline that uses itself has no end */
	bool bad;  /* its errors have been reported */
};

/* T f(T a) { ... }. Its body replaces each call, with parameters and result in new variables. */
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
	struct xlator *next; /* the next with the same key in bind_state.xlators */
};

/* A name that stands for a bound tree, such as a parameter of an inline or a translator. */
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
	uint32_t turn; /* its place, from 1, in the order in which files were read to their end */
};

/* The probe arguments that a clause uses: bit n stands for argn and args[n]. */
struct arg_use {
	uint32_t plain, typed;
	bool mod, func; /* probemod, probefunc */
};

struct agg_use {
	struct node *call; /* printa, clear, ...: checked when every clause is bound */
	struct node *agg;
};

/* The actions in a clause's statements so far. Some of them exclude each other. */
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
	struct variable *result;             /* of the function being expanded, NULL: it has none */
	struct hash specs;                   /* struct spec * -> type_id + 1 */
	struct hash user_tags;               /* tags of the program; a library means the kernel's */
	struct hash texts;                   /* D text of probes -> its tree */
	struct hash builtins, subrs;         /* name -> id + 1 */
	struct hash
		xlators; /* struct xlator_key -> struct xlator *, the first one declared (xlate.c) */
	VEC(const struct node *) providers;
	VEC(struct node *) clauses;
	struct hash uses; /* "scope name" of a variable -> how the program uses it (assign.c) */
	uint32_t uses_of; /* `uses` covers this many clauses */
	VEC(struct agg_use) agg_uses;
	VEC(struct agg_info *) agg_info; /* beside bound.aggs */
	VEC(struct lib_file) libs;
	struct hash
		lib_names; /* "k name", k one of t(ype) s(truct) i(nline) e(numerator) x(lator): file + 1 */
	bool libs_indexed;
	uint32_t lib_depth; /* libraries that are being read, each for the one before */
	uint32_t nlibs_read;
	struct bound *out;
	uint32_t ndescs;            /* descriptions of the clauses bound so far */
	uint32_t nodes, all, depth; /* nodes bound in this clause; in earlier clauses; depth now */
	bool full;                  /* too many nodes, and this has been reported */

	/* State of the clause instance being bound. */
	struct bound_clause *clause;
	const struct env *env;
	struct arg_use known_use; /* arguments that the clause names: its signature */
	bool dry;        /* no probe matched and none has to: bind for errors and variables only */
	bool in_context; /* inside probe_arg.expr or a filter: arg0.. are context words */
	struct flow flow;
	bool trying;  /* binding an unused definition for its errors: arguments have no values */
	bool showing; /* print(&x): the address of a variable is allowed */
	bool in_lib;  /* inside a library's inline or translator: __names are allowed */
};

struct agg_info {
	bool defined;
	bool bad;               /* its definition had an error */
	enum subr_id *key_subr; /* the action of each T_DYN key */
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
/* Returns true for a bound call of an action, which has no type or T_DYN. Only a few places take it
 * as a value. */
static inline bool is_action(const struct node *n)
{
	return calls_kind(n, SUBR_KIND_ACTION);
}
/* Returns true for a bound call of count() and the like outside of an assignment to an aggregation.
 * Its type is T_DYN. Every use of it is an error. */
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
/* Reports an error at n and poisons n. */
void bind_error(struct bind_cx *cx, struct node *n, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Returns a new node of this kind with the position of `at` and no `next`. */
struct node *make_node(struct bind_cx *cx, enum node_kind kind, const struct node *at);
/* Copies *by over *n. n stays in its list. */
void replace_node(struct node *n, const struct node *by);
const char *type_text(struct bind_cx *cx, type_id t);

/* --- decl.c --- */
type_id bind_decl_type(struct bind_cx *cx, const struct decl *d);
/* Returns " (did you mean struct foo?)" for an incomplete struct, union or enum, or "". */
const char *tag_suggestion(struct bind_cx *cx, type_id t);
/* Returns the kernel's type when t is, or points to, a struct of the program with the name of a
 * struct of the kernel. Returns t otherwise. */
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
/* Returns the library's inline T __symbol__NAME for a kernel variable of another system, or NULL
 * when there is none. */
struct inline_def *library_symbol(struct bind_cx *cx, const char *symbol);
/* Returns true when D or the program defines the name as a variable, an inline or a function. */
bool is_defined_name(struct bind_cx *cx, const char *name);
int builtin_find(struct bind_cx *cx, const char *name); /* -1: none */
int subr_find(struct bind_cx *cx, const char *name);
/* Bind an N_IDENT, or an N_EXTERN. */
void bind_ident(struct bind_cx *cx, struct node *n);
void bind_extern(struct bind_cx *cx, struct node *n);
/* Returns true for an identifier that names nothing yet. An assignment may create it. */
bool ident_is_new(struct bind_cx *cx, const struct node *n);
void ident_undefined(struct bind_cx *cx, struct node *n);
/* Makes n name var. */
void ident_set_var(struct bind_cx *cx, struct node *n, struct variable *var);
/* Binds args[i]. */
void bind_args_index(struct bind_cx *cx, struct node *n);
/* Expands def with the bound arguments `args` (list) into n. */
void expand_inline(struct bind_cx *cx, struct node *n, struct inline_def *def, struct node *args);
/* Binds the value of a definition for its errors, before it is used. */
void try_inline(struct bind_cx *cx, struct inline_def *def);
/* Returns a node of type t that stands for any value, in trees that are thrown away. */
struct node *placeholder(struct bind_cx *cx, const struct node *at, type_id t);
/* Returns a copy of a definition's tree for use at `at`. Nodes of a library get the position of
 * `at`. */
struct node *clone_at(struct bind_cx *cx, const struct node *n, const struct node *at);
bool is_lib_node(struct bind_cx *cx, const struct node *n);
/* Returns true when the position is in a library file. */
bool is_lib_loc(struct bind_cx *cx, loc_t loc);
/* Binds D text of a probe as an expression over context words. Returns NULL on error. */
struct node *bind_context_text(struct bind_cx *cx, const char *text, const struct node *at);
/* Binds D text of a probe as an expression over its arguments. Returns NULL on error. */
struct node *bind_args_text(struct bind_cx *cx, const char *text, const struct node *at);

/* --- lib.c --- */
/* Reads the library file that defines the name of this kind ('t' 's' 'i' 'e' 'x'). Returns true
 * when it read a file. */
bool lib_load(struct bind_cx *cx, char kind, const char *name);
/* Returns true when the library of this file name was read. */
bool lib_loaded(struct bind_cx *cx, const char *name);
/* Returns true while the file of this name is being loaded. */
bool lib_busy(struct bind_cx *cx, const char *name);
/* Returns true when a library file that descry has read has the typedef type_name. */
bool lib_has_type(const struct bind_cx *cx, const char *type_name);
/* Returns true when dlib/foreign.d defines a stand-in for this type of another system's kernel. */
bool lib_stands_in(const struct bind_cx *cx, const char *type_name);
/* Loads every file of the -L directories. */
void lib_load_own(struct bind_cx *cx);
void lib_fini(struct bind_cx *cx);

/* --- expr.c; convert.c --- */
bool is_string(struct bind_cx *cx, const struct node *n);
/* Converts a bit-field to the type that it is calculated with. */
void promote_bits(struct bind_cx *cx, struct node *n);
/* The type of the result of two numbers, by the ranks of D. */
type_id result_type(struct bind_cx *cx, type_id a, type_id b);
/* Turns the constant 0 into the string that a variable without a value holds. */
bool zero_to_string(struct bind_cx *cx, struct node *n);
/* Binds n. The result may be a translated value or a struct value. */
void bind_expr(struct bind_cx *cx, struct node *n);
/* Binds n, an N_TERNARY. When its condition is constant, the operand that it chooses replaces n and
 * bind_chosen binds it. The other operand is not checked, as in DTrace. */
void bind_ternary(struct bind_cx *cx, struct node *n,
		  void (*bind_chosen)(struct bind_cx *cx, struct node *n));
/* Returns false, with an error, when there are more than MAX_NODES or MAX_ALL nodes. */
bool bind_has_room(struct bind_cx *cx, const struct node *n);
/* Binds n, which must be a value: no translated value, no action, not void. */
void bind_value(struct bind_cx *cx, struct node *n);
/* Converts n, which is bound, to a value of type t as by assignment. Returns false, without an
 * error, when this is not possible. */
bool convert(struct bind_cx *cx, struct node *n, type_id t);
/* Converts n where no assignment follows that cuts the value to its type: values of inlines, their
 * parameters, translated members. */
bool convert_kept(struct bind_cx *cx, struct node *n, type_id t);
/* Casts n, an operand of type t or a value to be stored as t. Inserts a cast only where the value
 * would change. */
void cast_value(struct bind_cx *cx, struct node *n, type_id t);
/* Inserts a cast to t, or folds it. Ignores whether the types need it. */
void cast_to(struct bind_cx *cx, struct node *n, type_id t);
/* Wraps n in N_STRINGOF unless it is a string. Returns false when it is neither a char array nor a
 * char pointer. */
bool to_string(struct bind_cx *cx, struct node *n);
bool is_string_like(struct bind_cx *cx, const struct node *n);
bool is_scalar(struct bind_cx *cx, const struct node *n);
bool is_integer(struct bind_cx *cx, const struct node *n);
/* Turns an array into a pointer to its first element. */
void decay(struct bind_cx *cx, struct node *n);
/* Returns the number behind a translated pointer (curcpu: the CPU's), which is the pointer's value.
 * Returns n for any other node. */
struct node *untranslated(struct bind_cx *cx, struct node *n);
/* Returns true for NULL, which compares with integers and can be assigned to them. */
bool is_null(struct bind_cx *cx, const struct node *n);
/* Returns the type of an operand. A bit-field whose values fit an int is an int, as in C. */
type_id operand_type(struct bind_cx *cx, const struct node *n);
type_id common_type(struct bind_cx *cx, type_id a, type_id b);
type_id promote(struct bind_cx *cx, type_id t);
bool pointers_compatible(struct bind_cx *cx, const struct node *a, const struct node *b);
struct node *int_node(struct bind_cx *cx, const struct node *at, uint64_t value, type_id t);

/* Poisons n when its operand a is poisoned. Returns true then. */
bool bad_operand(struct node *n, const struct node *a);
/* Returns the type of a for a message: a type of C, "aggregation", "dynamic" or "translated T". */
const char *value_text(struct bind_cx *cx, const struct node *a);
bool is_pointer(struct bind_cx *cx, const struct node *n);
/* pointee() returns the type that a pointer type t points to; kind_of() t's kind. Both ignore
 * typedefs and qualifiers. */
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
/* Returns false, with an error at n, when there are more keys than -x tregs allows. */
bool check_key_count(struct bind_cx *cx, struct node *n, const struct node *keys);
/* Binds the index of args[i] or uregs[i], a constant. Returns false on error. */
bool bind_builtin_index(struct bind_cx *cx, struct node *n, const char *name);

/* --- const.c --- */
void set_int(struct bind_cx *cx, struct node *n, uint64_t value, type_id t);
/* Folds a bound unary, binary, ternary or cast node with constant operands. */
void fold(struct bind_cx *cx, struct node *n);
/* Evaluates a constant expression of a declaration. Returns false, with an error of this tag, when
 * it is not constant. */
bool const_value(struct bind_cx *cx, const struct node *n, int64_t *ret, const char *tag,
		 const char *what);
void bind_int(struct bind_cx *cx, struct node *n);

/* --- xlate.c --- */
void bind_translator(struct bind_cx *cx, const struct node *n);
/* Makes n a translated value of type `out` (struct or pointer) over `native` (bound). */
void make_xlated(struct bind_cx *cx, struct node *n, type_id out, struct node *native);
void bind_xlate(struct bind_cx *cx, struct node *n);
/* Replaces n, a member access of a translated value, by the translator's expression for the
 * member. */
void xlate_member(struct bind_cx *cx, struct node *n);
/* Returns the number of members that the translator of n, a translated value, gives values. */
uint32_t xlate_count(const struct node *n);
/* Makes `set`, an N_ASSIGN to an N_MEMBER, the assignment of the i-th of these members. Returns
 * false on error. */
bool xlate_value(struct bind_cx *cx, const struct node *n, uint32_t i, struct node *set);

/* --- bind_call.c --- */
/* Binds a call of a subroutine, or of stack() and the like, whose type is T_DYN. */
void bind_call(struct bind_cx *cx, struct node *n);
/* Reports a wrong number of arguments. */
bool check_count(struct bind_cx *cx, struct node *n, enum subr_id id);
/* Returns the subroutine that n calls, or -1, with an error, when n may not call one of this
 * name. */
int call_subr(struct bind_cx *cx, struct node *n);
void set_call(struct bind_cx *cx, struct node *n, enum subr_id id);
/* Binds the arguments and converts them to the types of the subroutine's prototype. Returns false
 * on error. */
bool bind_call_args(struct bind_cx *cx, struct node *n, enum subr_id id);
bool positive_const(struct bind_cx *cx, const struct node *a);
/* Binds and checks the arguments of stack(), sym()...: actions that are values. */
void bind_dyn(struct bind_cx *cx, struct node *n, enum subr_id id);

/* --- action.c --- */
/* Checks the order of actions: speculate, then data; or data; or commits and no data. Returns false
 * on error. */
bool check_flow(struct bind_cx *cx, struct node *n, enum subr_id id);
/* Binds an expression that is a statement. */
void bind_statement(struct bind_cx *cx, struct node *n);

/* --- bind_format.c --- */
void bind_printf(struct bind_cx *cx, struct node *n, enum subr_id id);
/* Parses the first argument into n->aux. Returns false on error. */
bool bind_format(struct bind_cx *cx, struct node *n, const struct node *text);
/* Checks printa's format against the keys of agg. Called when all clauses are bound. */
void check_printa(struct bind_cx *cx, struct node *n, uint32_t agg);

/* --- bind_aggs.c --- */
/* Returns true when an earlier clause has assigned or named the aggregation. */
bool agg_is_known(struct bind_cx *cx, const char *name);
void bind_agg_assign(struct bind_cx *cx, struct node *n);
/* Binds @a as an argument of the action `call`. Returns false on error. */
bool bind_agg_ref(struct bind_cx *cx, struct node *call, struct node *n);
/* Checks the uses of aggregations when all clauses are bound. */
void aggs_check(struct bind_cx *cx);

/* unit.c: gives aggregations of times their unit.
 * needs: every clause bound without errors.   gives: agg->unit.   keeps: everything else. */
void units_find(struct bound *b);

/* --- bind_provider.c --- */
/* Types from the program's provider definitions, for arguments of probes that have none. */
void bind_provider(struct bind_cx *cx, const struct node *n);
void provider_types(struct bind_cx *cx, const struct probe *p, struct probe_args *args);

/* --- bind_function.c --- */
void bind_func(struct bind_cx *cx, const struct node *n);
struct func_def *func_find(struct bind_cx *cx, const char *name);
/* Replaces the call n by the body of the function. */
void expand_function(struct bind_cx *cx, struct node *n, struct func_def *def);
void bind_return(struct bind_cx *cx, struct node *n);
/* Puts functions in the arguments of n, a bound statement, in front of it, so that their output
 * comes first. Returns the last statement, which is n's own. */
struct node *functions_first(struct bind_cx *cx, struct node *n);
/* Binds T x = e; in a block. The names of the block so far are those of state.env down to
 * `outside`. */
void bind_local(struct bind_cx *cx, struct node *n, const struct env *outside);

/* --- version.c --- */
void version_check_option(struct bind_cx *cx);
/* Returns the version of D that introduced the name if the program was written for an older
 * version, else NULL. */
const char *version_hides(const struct bind_cx *cx, const char *name);

/* --- attr.c --- */
enum attr_kind { ATTR_STABLE, ATTR_PRIVATE_DATA, ATTR_PRIVATE };
/* Reports an error at n when `what` is less stable than -x amin requires. */
void attr_check(struct bind_cx *cx, struct node *n, const char *what, enum attr_kind kind);

/* --- clause.c --- */
void bind_statements(struct bind_cx *cx, struct node *list);
void bind_choose_events(struct bind_cx *cx);
void bind_clause(struct bind_cx *cx, const struct node *n, uint32_t index);
uint32_t list_length(const struct node *n);

#endif
