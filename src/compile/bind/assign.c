/* Binds assignments, which create variables, ++ and --, and indexing. */
#include "compile/bind/bind_private.h"

#include <ctype.h>

static const char *var_text(struct bind_cx *cx, const struct node *n)
{
	return arena_printf(cx->arena, "%s%s",
			    n->ident.scope == SCOPE_SELF   ? "self->"
			    : n->ident.scope == SCOPE_THIS ? "this->"
							   : "",
			    n->ident.name);
}

/* Returns the type that a variable gets from its first value. Removes qualifiers. A char array
 * becomes a string, another array a pointer. Returns T_VOID when no variable can hold the value. */
static type_id value_type(struct bind_cx *cx, struct node *v)
{
	type_id t = v->type;

	if (type_is_char_array(cx->types, t))
		return T_STRING;
	decay(cx, v);
	t = v->type;
	while (type_kind(cx->types, t) == TYPE_CONST || type_kind(cx->types, t) == TYPE_VOLATILE ||
	       type_kind(cx->types, t) == TYPE_RESTRICT)
		t = type_ref(cx->types, t);
	if (type_is_sou(cx->types, t))
		return type_size(cx->types, t) && type_size(cx->types, t) <= MAX_VALUE ? t : T_VOID;
	return type_is_scalar(cx->types, t) || type_is_string(cx->types, t) ? t : T_VOID;
}

/* Returns the type that an associative array's key gets from its first use. An integer gets 64
 * bits, so that every later key fits. */
static type_id key_type(struct bind_cx *cx, struct node *k)
{
	type_id t = value_type(cx, k);

	if (type_is_integer(cx->types, t))
		return type_is_signed(cx->types, t) || type_size(cx->types, t) < 8 ? T_INT64
										   : T_UINT64;
	return t;
}

/* Binds n, an index expression whose keys are bound, to an element of v. */
static void bind_assoc(struct bind_cx *cx, struct node *n, struct variable *v)
{
	uint32_t have = list_length(n->e.b), i = 0;
	const char *name = var_text(cx, n->e.a);

	if (have != v->nkeys) {
		bind_error(cx, n, "D_PROTO_LEN",
			   "%s[ ] prototype mismatch: %u key%s passed, %u expected", name, have,
			   have == 1 ? "" : "s", v->nkeys);
		return;
	}
	for (struct node *k = n->e.b; k; k = k->next, i++) {
		if (is_poison(k)) {
			poison(n);
			return;
		}
		if (!convert(cx, k, v->keys[i])) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"%s[ ] key #%u is incompatible with its first use: \"%s\" is not \"%s\"",
				name, i + 1, value_text(cx, k), type_text(cx, v->keys[i]));
			return;
		}
	}
	ident_set_var(cx, n, v);
}

bool check_key_count(struct bind_cx *cx, struct node *n, const struct node *keys)
{
	int64_t most = opt_num(cx->options, OPT_TREGS);

	if (list_length(keys) <= most)
		return true;
	bind_error(cx, n, "D_TUPLE_REGS", "Insufficient tuple registers to generate code%s",
		   cx->options->v[OPT_TREGS].set ? "" : ": more than 8 keys need -x tregs=N");
	return false;
}

/* Creates an associative array with elements of type t. */
static struct variable *new_assoc(struct bind_cx *cx, struct node *n, type_id t)
{
	struct node *base = n->e.a;
	struct variable *v;

	if (base->ident.scope == SCOPE_THIS) {
		bind_error(cx, n, "D_ARR_LOCAL",
			   "clause-local variables may not be used as associative arrays: %s",
			   var_text(cx, base));
		return NULL;
	}
	if (!check_key_count(cx, n, n->e.b))
		return NULL;
	v = var_new(cx, base->ident.scope, base->ident.name, t, n->loc);
	v->assoc = true;
	v->keys = arena_array(cx->arena, type_id, list_length(n->e.b));
	for (struct node *k = n->e.b; k; k = k->next) {
		type_id kt = is_poison(k) ? T_INT64 : key_type(cx, k);

		if (kt == T_VOID) {
			bind_error(cx, n, "D_KEY_TYPE",
				   "%s: a value of type \"%s\" cannot be a key", v->name,
				   type_text(cx, k->type));
			v->bad = true;
			return NULL;
		}
		v->keys[v->nkeys++] = kt;
	}
	return v;
}

static bool bind_key_list(struct bind_cx *cx, struct node *keys)
{
	bool good = true;

	for (struct node *k = keys; k; k = k->next) {
		bind_expr(cx, k);
		if (!is_poison(k) && (is_xlated(k) || k->type == T_DYN || k->type == T_VOID))
			bind_error(cx, k, "D_KEY_TYPE",
				   "a value of type %s cannot be a key of an associative array",
				   value_text(cx, k));
		good &= !is_poison(k);
	}
	return good;
}

/* Returns true when assigning to l creates a variable: x, or x[keys]. */
static bool is_creation(struct bind_cx *cx, const struct node *l)
{
	return ident_is_new(cx, l) || (l->kind == N_INDEX && ident_is_new(cx, l->e.a));
}

/* Creates the variable that l names, with values of type t, and binds l. */
static void create(struct bind_cx *cx, struct node *l, type_id t, bool bad)
{
	struct variable *v;

	if (l->kind == N_IDENT) {
		v = var_new(cx, l->ident.scope, l->ident.name, t, l->loc);
		v->bad = bad;
		ident_set_var(cx, l, v);
		return;
	}
	bind_key_list(cx, l->e.b);
	v = new_assoc(cx, l, t);
	if (!v)
		return;
	v->bad = bad;
	if (!bad)
		bind_assoc(cx, l, v);
}

/* Returns whether l may be assigned to. Reports an error at n if not. */
static bool check_lvalue(struct bind_cx *cx, struct node *n, const struct node *l)
{
	const char *op = n->kind == N_UNARY
				 ? n->op == OP_PREINC || n->op == OP_POSTINC ? "++" : "--"
			 : n->op == OP_NONE ? "="
					    : arena_printf(cx->arena, "%s=", op_name(n->op));

	if (is_poison(l)) {
		poison(n);
		return false;
	}
	if (l->id && (l->id->kind == IDENT_BUILTIN || l->id->kind == IDENT_KSYM ||
		      l->id->kind == IDENT_CTX)) {
		bind_error(cx, n, "D_OP_WRITE",
			   "operator %s can only be applied to a writable variable", op);
		return false;
	}
	if (!l->lvalue) {
		bind_error(cx, n, "D_OP_LVAL", "operator %s must be applied to an lvalue", op);
		return false;
	}
	return true;
}

static void mismatch(struct bind_cx *cx, struct node *n, const struct node *l, const struct node *r)
{
	bind_error(cx, n, "D_OP_INCOMPAT", "operands have incompatible types: \"%s\" %s%s \"%s\"",
		   value_text(cx, l), n->op == OP_NONE ? "" : op_name(n->op), "=",
		   value_text(cx, r));
}

/* Returns the bytes by which a pointer of type t steps, 0 when the size is not known. */
static uint64_t step_size(struct bind_cx *cx, type_id t)
{
	type_id ref = pointee(cx, t);

	return ref == T_VOID || kind_of(cx, ref) == TYPE_FUNC ? 0 : type_size(cx->types, ref);
}

/* Binds p += i and p -= i for a pointer p. */
static void bind_pointer_step(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b, *mul;
	struct type_graph *g = cx->types;
	uint64_t size;

	if (type_is_string(g, l->type) || type_is_string(g, r->type)) {
		mismatch(cx, n, l, r);
		return;
	}
	size = is_pointer(cx, l) ? step_size(cx, l->type) : 0;
	if (!size) {
		bind_error(
			cx, n, "D_OP_VFPTR",
			"operator %s= requires a left-hand scalar operand of known size, not \"%s\"",
			op_name(n->op), value_text(cx, l));
		return;
	}
	if (!is_integer(cx, r)) {
		mismatch(cx, n, l, r);
		return;
	}
	cast_to(cx, r, T_LONG);
	if (size == 1)
		return;
	mul = make_node(cx, N_BINARY, r);
	mul->op = OP_MUL;
	mul->e.a = r;
	mul->e.b = int_node(cx, r, size, T_LONG);
	mul->type = T_LONG;
	fold(cx, mul);
	n->e.b = mul;
}

static void bind_compound(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b;
	struct type_graph *g = cx->types;
	type_id t;

	if ((n->op == OP_ADD || n->op == OP_SUB) && !(is_integer(cx, l) && is_integer(cx, r))) {
		bind_pointer_step(cx, n);
		return;
	}
	if (!type_is_integer(g, l->type) || !is_integer(cx, r)) {
		bool arith = n->op == OP_MUL || n->op == OP_DIV;

		bind_error(cx, n, arith ? "D_OP_ARITH" : "D_OP_INT",
			   "operator %s= requires operands of %s type: \"%s\" and \"%s\"",
			   op_name(n->op), arith ? "arithmetic" : "integral", value_text(cx, l),
			   value_text(cx, r));
		return;
	}
	switch (n->op) {
	case OP_DIV:
	case OP_MOD:
		if (is_const(r) && !r->i.value) {
			bind_error(cx, n, "D_DIV_ZERO", "expression contains division by zero");
			return;
		}
		t = common_type(cx, operand_type(cx, l), operand_type(cx, r));
		if (type_size(g, t) != type_size(g, l->type) ||
		    type_is_signed(g, t) != type_is_signed(g, l->type)) {
			/* C computes in a wider type than a's. e.c carries this type. */
			cast_value(cx, r, t);
			n->e.c = int_node(cx, n, 0, t);
			return;
		}
		cast_value(cx, r, l->type);
		break;
	case OP_SHL:
	case OP_SHR: cast_value(cx, r, promote(cx, r->type)); break;
	default: /* only the low bits of the operands affect the low bits of the result */
		if (type_int_flags(g, l->type) & TYPE_BOOL) {
			t = common_type(cx, operand_type(cx, l), operand_type(cx, r));
			cast_value(cx, r, t);
			n->e.c = int_node(cx, n, 0, t);
			return;
		}
		cast_to(cx, r, l->type);
		break;
	}
}

/* Reports an error when l has a type that cannot be assigned to. */
static bool check_assignable(struct bind_cx *cx, struct node *n, const struct node *l)
{
	enum type_kind k = kind_of(cx, l->type);

	if (is_xlated(l) || (k != TYPE_ARRAY && k != TYPE_FUNC))
		return true;
	bind_error(cx, n, "D_OP_ARRFUN",
		   "operator = may not be applied to an operand of type \"%s\"",
		   type_text(cx, l->type));
	return false;
}

/* Returns true when `l = r` assigns 0 to a struct that is an array element or a self-> variable.
 * This frees it. */
static bool frees_struct(struct bind_cx *cx, const struct node *l, const struct node *r)
{
	return type_is_sou(cx->types, l->type) && l->id && l->id->kind == IDENT_VAR &&
	       (l->id->var->assoc || l->id->var->scope == SCOPE_SELF) && is_const(r) &&
	       is_integer(cx, r) && !r->i.value;
}

/* How a program uses a variable, or the elements of an array. */
enum {
	USE_COUNTED = 1, /* x[k]++ */
	USE_WIDE = 2,    /* x = timestamp: the variable needs 64 bits */
};

/* Returns the word in bind_state.uses of the variable, or of the array of an element. Returns NULL
 * when l is no variable, or, with make false, when it has no word. */
static uint64_t *use_of(struct bind_cx *cx, const struct node *l, bool make)
{
	cleanup_free char *key = NULL;

	if (l->kind == N_INDEX)
		l = l->e.a;
	if (l->kind != N_IDENT)
		return NULL;
	key = xasprintf("%d %s", (int)l->ident.scope, l->ident.name);
	return make ? hash_put(&cx->state->uses, key, strlen(key), NULL)
		    : hash_get(&cx->state->uses, key, strlen(key));
}

static void look_for_wide(void *arg, const struct node *n)
{
	static const char *const wide[] = { "timestamp", "vtimestamp", "walltimestamp" };
	bool *found = arg;

	for (size_t i = 0; n->kind == N_IDENT && i < ARRAY_SIZE(wide); i++)
		*found |= !strcmp(n->ident.name, wide[i]);
	*found |= n->kind == N_IDENT && !strncmp(n->ident.name, "arg", 3) &&
		  isdigit((unsigned char)n->ident.name[3]);
}

static void look_for_use(void *arg, const struct node *n)
{
	struct bind_cx *cx = arg;
	uint64_t *use = NULL;
	bool wide = false;

	if (n->kind == N_UNARY && n->op >= OP_PREINC && n->e.a && n->e.a->kind == N_INDEX) {
		use = use_of(cx, n->e.a, true);
		if (use)
			*use |= USE_COUNTED;
	}
	if (n->kind != N_ASSIGN || !n->e.a || !n->e.b)
		return;
	node_walk(n->e.b, look_for_wide, &wide);
	use = wide ? use_of(cx, n->e.a, true) : NULL;
	if (use)
		*use |= USE_WIDE;
}

/* Returns true when some clause uses the variable in this way. Walks all clauses at the first call,
 * because a program may have as many variables as clauses. */
static bool program_uses(struct bind_cx *cx, const struct node *ident, uint64_t what)
{
	struct bind_state *s = cx->state;
	const uint64_t *use;

	for (; s->uses_of < s->clauses.n; s->uses_of++)
		node_walk(s->clauses.v[s->uses_of]->clause.body, look_for_use, cx);
	use = use_of(cx, ident, false);
	return use && *use & what;
}

/* Creates the variable of `l = r`. Returns false, with an error, when no variable can hold r. */
static bool create_for(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b;
	bool value = r->type != T_DYN && r->type != T_VOID;
	type_id t = is_poison(r) ? T_INT : value ? value_type(cx, r) : T_VOID;

	if (n->op != OP_NONE && type_is_integer(cx->types, t))
		t = T_INT64;
	/* x = 0 may come before x = timestamp. DTrace's variables hold 64 bits whatever their first
	 * value is. */
	if (t == T_INT && is_const(r) && program_uses(cx, l, USE_WIDE))
		t = T_INT64;
	create(cx, l, t == T_VOID ? T_INT : t, is_poison(r) || t == T_VOID);
	if (t != T_VOID)
		return true;
	if (n->op != OP_NONE && !value && l->kind == N_IDENT)
		bind_error(cx, l, "D_VAR_UNDEF", "%s has not yet been declared or assigned",
			   l->ident.name);
	else if (r->type == T_DYN && is_action(r))
		bind_error(cx, n, "D_OP_DYN", "a value of dynamic type cannot be assigned");
	else if (!value)
		bind_error(cx, n, "D_OP_INCOMPAT", "a value of type %s cannot be assigned",
			   value_text(cx, r));
	else
		bind_error(
			cx, n, "D_OP_SOU",
			"a value of type \"%s\" cannot be kept in a variable: assign its address or "
			"its members",
			value_text(cx, r));
	return false;
}

/* Rewrites n, `l = r` with r a translated struct, as assignments to the members that the translator
 * gives a value. */
static void assign_translated(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b, *all = NULL;

	if (!type_same(cx->types, type_strip(cx->types, l->type), type_strip(cx->types, r->type))) {
		mismatch(cx, n, l, r);
		return;
	}
	for (uint32_t i = 0, count = xlate_count(r); i < count; i++) {
		struct node *set = make_node(cx, N_ASSIGN, n), *both;

		set->e.a = make_node(cx, N_MEMBER, l);
		set->e.a->member.a = node_clone(cx->arena, l);
		if (!xlate_value(cx, r, i, set)) {
			poison(n);
			return;
		}
		if (is_xlated(set->e.b))
			assign_translated(cx, set);
		if (!all) {
			all = set;
			continue;
		}
		both = make_node(cx, N_COMMA, n);
		both->e.a = all;
		both->e.b = set;
		both->type = set->type;
		all = both;
	}
	if (all)
		replace_node(n, all);
	else
		set_int(cx, n, 0, T_INT); /* a translator without members */
}

void bind_assign(struct bind_cx *cx, struct node *n)
{
	struct node *l = n->e.a, *r = n->e.b;

	if (l->kind == N_AGG) {
		bind_error(cx, n, "D_OP_LVAL",
			   "an aggregation may be assigned to by a statement only");
		return;
	}
	if (l->kind == N_INDEX && l->e.a->kind == N_AGG) {
		bind_index(cx, l);
		poison(n);
		return;
	}
	bind_expr(cx, r);
	if (is_creation(cx, l)) {
		if (!create_for(cx, n))
			return;
	} else {
		bind_expr(cx, l);
	}
	if (bad_operand(n, l) || bad_operand(n, r))
		return;
	n->type = l->type;
	if (n->op == OP_NONE && is_xlated(r) && !type_is_pointer(cx->types, r->type)) {
		if (check_lvalue(cx, n, l))
			assign_translated(cx, n);
		return;
	}
	if (n->op != OP_NONE) {
		bind_compound(cx, n);
	} else if (check_assignable(cx, n, l)) {
		if (r->type == T_DYN && is_action(r))
			bind_error(cx, n, "D_OP_DYN", "a value of dynamic type cannot be assigned");
		else if (!frees_struct(cx, l, r) && !convert(cx, r, l->type))
			mismatch(cx, n, l, r);
	}
	if (!is_poison(n))
		check_lvalue(cx, n, l);
}

void bind_incdec(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;
	const char *op = n->op == OP_PREINC || n->op == OP_POSTINC ? "++" : "--";
	uint64_t size;

	if (is_creation(cx, a))
		create(cx, a, T_INT64, false);
	else
		bind_expr(cx, a);
	if (bad_operand(n, a))
		return;
	n->type = a->type;
	if (!is_scalar(cx, a)) {
		bind_error(cx, n, "D_OP_SCALAR",
			   "operator %s requires an operand of scalar type, not \"%s\"", op,
			   value_text(cx, a));
		return;
	}
	if (is_pointer(cx, a)) {
		size = step_size(cx, a->type);
		if (!size) {
			bind_error(cx, n, "D_OP_VFPTR",
				   "operator %s requires an operand of known size, not \"%s\"", op,
				   type_text(cx, a->type));
			return;
		}
		n->e.c = int_node(cx, n, size, T_LONG);
	}
	check_lvalue(cx, n, a);
}

/* --- indexing --- */

bool bind_builtin_index(struct bind_cx *cx, struct node *n, const char *name)
{
	struct node *index = n->e.b;

	bind_expr(cx, index);
	if (bad_operand(n, index))
		return false;
	if (index->next)
		bind_error(cx, n, "D_PROTO_LEN",
			   "%s[ ] prototype mismatch: %u arguments passed, 1 expected", name,
			   list_length(index));
	else if (!is_const(index) || !is_integer(cx, index))
		bind_error(
			cx, n, "D_PROTO_ARG",
			"%s[ ] argument #1 is incompatible with prototype: prototype: integer constant, "
			"argument: %s",
			name, value_text(cx, index));
	return !is_poison(n);
}

/* Binds uregs[R_RAX]. The register's number is the only key. */
static void bind_uregs(struct bind_cx *cx, struct node *n)
{
	/* R_DS, R_ES, R_FS, R_GS and R_TRAPNO are not in struct pt_regs: the kernel keeps them for
	 * each thread. */
	enum { FIRST_IN_THREAD = 21, LAST_IN_THREAD = 25, LAST_VECTOR = 33 };
	static const char *const in_thread[] = { "curthread->thread.ds", "curthread->thread.es",
						 "curthread->thread.fsbase",
						 "curthread->thread.gsbase",
						 "curthread->thread.trap_nr" };
	struct node *index = n->e.b, *value;

	if (!bind_builtin_index(cx, n, "uregs"))
		return;
	if (index->i.value > LAST_VECTOR) {
		bind_error(cx, n, "D_UNKNOWN", "index %lld is out of range for uregs[ ]",
			   (long long)index->i.value);
		return;
	}
	if (index->i.value >= FIRST_IN_THREAD && index->i.value <= LAST_IN_THREAD) {
		value = bind_context_text(cx, in_thread[index->i.value - FIRST_IN_THREAD], n);
		if (!value) {
			poison(n);
			return;
		}
		replace_node(n, value);
		cast_to(cx, n, T_UINT64);
		return;
	}
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_BUILTIN;
	n->id->builtin = BUILTIN_UREGS;
	n->type = T_UINT64;
	n->lvalue = false;
}

static void bind_element(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a, *i = n->e.b;
	struct type_graph *g = cx->types;
	bool array, text;
	type_id t;

	bind_expr(cx, a);
	bind_expr(cx, i);
	if (bad_operand(n, a) || bad_operand(n, i))
		return;
	if (i->next) {
		bind_error(cx, n, "D_ARR_BADREF", "a value of type \"%s\" takes one index",
			   value_text(cx, a));
		return;
	}
	if (is_integer(cx, a)) {
		bind_error(cx, n, "D_DEREF_NONPTR",
			   "operator [] must be applied to an array or a pointer, not \"%s\"",
			   value_text(cx, a));
		return;
	}
	t = type_strip(g, a->type);
	text = !is_xlated(a) && type_is_string(g, t);
	array = type_kind(g, t) == TYPE_ARRAY;
	if (is_xlated(a) || !is_integer(cx, i) ||
	    (!array && !text && (!type_is_pointer(g, t) || !step_size(cx, t)))) {
		bind_error(cx, n, "D_OP_INCOMPAT",
			   "a value of type \"%s\" cannot be indexed by \"%s\"", value_text(cx, a),
			   value_text(cx, i));
		return;
	}
	if (text) {
		if (is_const(i) && i->i.value >= type_size(g, T_STRING)) {
			bind_error(cx, n, "D_ARR_BOUNDS",
				   "index outside of the string: %lld, max is %llu",
				   (long long)i->i.value,
				   (unsigned long long)type_size(g, T_STRING) - 1);
			return;
		}
		cast_to(cx, i, T_INT64);
		n->type = T_CHAR;
		n->lvalue = a->lvalue;
		return;
	}
	if (array && is_const(i) && type_nelems(g, t) > 1 && i->i.value >= type_nelems(g, t)) {
		bind_error(cx, n, "D_ARR_BOUNDS",
			   "index outside array bounds: %lld, max is [0, %u]",
			   (long long)i->i.value, type_nelems(g, t) - 1);
		return;
	}
	t = type_ref(g, t);
	cast_to(cx, i,
		type_is_signed(g, i->type) || type_size(g, i->type) < 8 ? T_INT64 : T_UINT64);
	n->type = t;
	n->lvalue = array ? a->lvalue : true;
}

void bind_index(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->e.a;
	struct inline_def *def;
	struct variable *v;
	int b;

	if (a->kind == N_AGG) {
		bind_error(cx, n, "D_AGG_MDIM", "improper use of multi-dimensional array: @%s",
			   a->agg.name);
		return;
	}
	if (!n->e.b) {
		bind_error(cx, n, "D_SYNTAX", "an index is missing between [ and ]");
		return;
	}
	if (a->kind != N_IDENT) {
		def = a->kind == N_EXTERN ? library_symbol(cx, a->ident.name) : NULL;
		if (!def || !def->params.n)
			bind_element(cx, n);
		else if (bind_key_list(cx, n->e.b))
			expand_inline(cx, n, def, n->e.b);
		else
			poison(n);
		return;
	}
	v = var_find(cx, a->ident.scope, a->ident.name);
	if (v && v->bad) {
		poison(n);
		return;
	}
	if (v && v->assoc) {
		if (bind_key_list(cx, n->e.b))
			bind_assoc(cx, n, v);
		else
			poison(n);
		return;
	}
	if (ident_is_new(cx, a) && program_uses(cx, a, USE_COUNTED)) {
		create(cx, n, T_INT64, false);
		return;
	}
	if (ident_is_new(cx, a)) {
		ident_undefined(cx, a);
		poison(n);
		return;
	}
	if (!v && a->ident.scope == SCOPE_NONE && !env_has(cx, a->ident.name)) {
		b = builtin_find(cx, a->ident.name);
		if (b == BUILTIN_ARGS) {
			bind_args_index(cx, n);
			return;
		}
		if (b == BUILTIN_UREGS) {
			bind_uregs(cx, n);
			return;
		}
		def = b < 0 ? inline_find(cx, a->ident.name) : NULL;
		if (def && def->params.n) {
			for (struct node *k = n->e.b; k; k = k->next)
				bind_value(cx, k);
			expand_inline(cx, n, def, n->e.b);
			return;
		}
	}
	bind_element(cx, n);
}
