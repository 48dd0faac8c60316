/* Binds functions of the program and variables of blocks. A call is replaced by the function's
 * body. Parameters and result are clause-local variables, new ones for each call. So the code is
 * the same as if the body stood in place of the call. */
#include "compile/bind/bind_private.h"

struct func_def *func_find(struct bind_cx *cx, const char *name)
{
	uint64_t *slot = hash_get(&cx->state->funcs, name, strlen(name));

	return slot ? (struct func_def *)(uintptr_t)*slot : NULL;
}

void bind_func(struct bind_cx *cx, const struct node *n)
{
	struct bind_state *s = cx->state;
	const char *name = n->inl.decl->name;
	struct func_def *def;
	uint64_t *slot;
	bool fresh = true;

	if (!var_find(cx, SCOPE_NONE, name) && builtin_find(cx, name) < 0 &&
	    subr_find(cx, name) < 0 && !inline_find(cx, name))
		slot = hash_put(&s->funcs, name, strlen(name), &fresh);
	else
		slot = NULL;
	if (!slot || !fresh) {
		diag_error(cx->diags, n->inl.decl->loc, n->inl.decl->end, "D_DECL_IDRED",
			   "identifier redefined: %s", name);
		return;
	}
	def = arena_new(cx->arena, struct func_def);
	def->name = name;
	def->node = n;
	*slot = (uint64_t)(uintptr_t)def;
	def->type = bind_decl_type(cx, n->inl.decl);
	if (type_strip(cx->types, def->type) == T_VOID)
		def->type = T_VOID;
	else if (!type_is_scalar(cx->types, def->type) && !type_is_string(cx->types, def->type))
		diag_error(cx->diags, n->inl.decl->loc, n->inl.decl->end, "D_DECL_PROTO_TYPE",
			   "%s: a function gives a number, a pointer or a string", name);
	for (const struct decl *p = n->inl.params; p; p = p->next) {
		type_id t = bind_decl_type(cx, p);

		vec_push(&def->params, t);
		if (!p->name)
			diag_error(cx->diags, p->loc, p->end, "D_DECL_PROTO_NAME",
				   "%s: parameter #%u needs a name", name, def->params.n);
		else if (!type_is_scalar(cx->types, t) && !type_is_string(cx->types, t))
			diag_error(cx->diags, p->loc, p->end, "D_DECL_PROTO_TYPE",
				   "%s: parameter %s must be a number, a pointer or a string", name,
				   p->name);
	}
}

/* Creates a variable that no name of the program can reach. owner: the function's name, or
 * "local". */
static struct variable *hidden(struct bind_cx *cx, const char *owner, const char *name, type_id t,
			       loc_t loc)
{
	struct variable *v;

	v = var_new(cx, SCOPE_THIS,
		    arena_printf(cx->arena, "%s#%u%s%s", owner, cx->state->expansions,
				 *name ? "." : "", name),
		    t, loc);
	v->local = true;
	return v;
}

static struct node *function_name_of(struct bind_cx *cx, struct variable *v, const struct node *at)
{
	struct node *n = make_node(cx, N_IDENT, at);

	n->ident.name = v->name;
	n->ident.scope = SCOPE_THIS;
	ident_set_var(cx, n, v);
	return n;
}

static struct node *assignment(struct bind_cx *cx, struct variable *v, struct node *value)
{
	struct node *n = make_node(cx, N_ASSIGN, value);

	value->next = NULL;
	n->e.a = function_name_of(cx, v, value);
	n->e.b = value;
	n->type = v->type;
	return n;
}

/* Returns the result of a function that ends without a return. */
static struct node *zero_of(struct bind_cx *cx, type_id t, const struct node *at)
{
	struct node *n;

	if (!type_is_string(cx->types, t))
		return int_node(cx, at, 0, t);
	n = make_node(cx, N_STR, at);
	n->s.text = "";
	n->type = T_STRING;
	return n;
}

/* Makes the arguments of n assignments to the parameters of this call. Returns false on error. */
static bool pass_arguments(struct bind_cx *cx, struct node *n, struct func_def *def,
			   struct node **tail, struct env **ret_env)
{
	const struct decl *p = def->node->inl.params;
	struct node *next;
	uint32_t i = 0;

	for (struct node *a = n->call.args; a; a = next, p = p->next, i++) {
		struct variable *v;
		struct env *e;

		next = a->next;
		if (is_poison(a)) {
			poison(n);
			return false;
		}
		if (!convert(cx, a, def->params.v[i])) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"%s( ) argument #%u is incompatible with prototype: \"%s\" is not \"%s\"",
				def->name, i + 1, type_text(cx, a->type),
				type_text(cx, def->params.v[i]));
			return false;
		}
		v = hidden(cx, def->name, p->name ? p->name : "", def->params.v[i], a->loc);
		*tail = assignment(cx, v, a);
		tail = &(*tail)->next;
		e = arena_new(cx->arena, struct env);
		*e = (struct env){ .up = *ret_env,
				   .name = v->name,
				   .value = function_name_of(cx, v, a) };
		e->name = p->name ? p->name : "";
		*ret_env = e;
	}
	return true;
}

void expand_function(struct bind_cx *cx, struct node *n, struct func_def *def)
{
	struct bind_state *s = cx->state;
	const struct env *saved = s->env;
	struct variable *outer = s->result, *result = NULL;
	struct node *body = make_node(cx, N_BODY, n), *block, **tail = &body->fn.args;
	struct env *env = NULL;

	if (def->busy) {
		bind_error(cx, n, "D_UNKNOWN", "function %s( ) calls itself", def->name);
		return;
	}
	if (list_length(n->call.args) != def->params.n) {
		bind_error(cx, n, "D_PROTO_LEN",
			   "%s( ) prototype mismatch: %u argument%s passed, %u expected", def->name,
			   list_length(n->call.args), list_length(n->call.args) == 1 ? "" : "s",
			   def->params.n);
		return;
	}
	for (struct node *a = n->call.args; a; a = a->next)
		bind_value(cx, a);
	s->expansions++;
	if (def->type != T_VOID) {
		result = hidden(cx, def->name, "", def->type, n->loc);
		*tail = assignment(cx, result, zero_of(cx, def->type, n));
		tail = &(*tail)->next;
	}
	if (!pass_arguments(cx, n, def, tail, &env))
		return;
	block = clone_at(cx, def->node->inl.value, n);
	s->env = env;
	s->result = result;
	def->busy = true;
	bind_statements(cx, block->block.body);
	def->busy = false;
	s->env = saved;
	s->result = outer;
	body->fn.body = block;
	body->type = T_VOID;
	if (!result) {
		replace_node(n, body);
		return;
	}
	n->kind = N_COMMA;
	n->op = OP_NONE;
	n->e.a = body;
	n->e.b = function_name_of(cx, result, n);
	n->e.c = NULL;
	n->type = def->type;
	n->lvalue = n->constant = false;
	n->id = NULL;
	n->aux = NULL;
}

void bind_return(struct bind_cx *cx, struct node *n)
{
	struct variable *v = cx->state->result;
	struct node *value = n->block.body;

	if (!value || !v) {
		if (!value && !v)
			return;
		diag_error(cx->diags, n->loc, n->end, "D_FUNC_RETURN",
			   v ? "return needs a value: the function gives \"%s\""
			     : "return takes no value: the function gives none",
			   v ? type_text(cx, v->type) : "");
		n->block.body = NULL;
		return;
	}
	bind_value(cx, value);
	if (is_poison(value))
		return;
	if (!convert(cx, value, v->type)) {
		bind_error(cx, value, "D_OP_INCOMPAT",
			   "the function gives \"%s\", this is of type \"%s\"",
			   type_text(cx, v->type), type_text(cx, value->type));
		return;
	}
	n->block.body = assignment(cx, v, value);
}

void bind_local(struct bind_cx *cx, struct node *n, const struct env *outside)
{
	struct bind_state *s = cx->state;
	const struct decl *d = n->local.decl;
	struct node *value = n->local.value;
	struct env *e = arena_new(cx->arena, struct env);
	type_id t = bind_decl_type(cx, d);
	struct variable *v;

	for (const struct env *o = s->env; o != outside; o = o->up)
		if (!strcmp(o->name, d->name))
			diag_error(cx->diags, d->loc, d->end, "D_DECL_IDRED",
				   "identifier redefined: %s", d->name);
	if (value) {
		bind_value(cx, value);
		decay(cx, value);
	}
	if (t && !type_is_scalar(cx->types, t) && !type_is_string(cx->types, t)) {
		diag_error(
			cx->diags, d->loc, d->end, "D_DECL_LOCASSC",
			"%s: a variable of a block is a number, a pointer or a string; others are "
			"declared outside of clauses",
			d->name);
		t = T_INT;
		value = NULL;
	}
	if (!value || is_poison(value))
		value = zero_of(cx, t, n);
	else if (!convert(cx, value, t))
		bind_error(cx, value, "D_OP_INCOMPAT",
			   "%s is of type \"%s\", this is of type \"%s\"", d->name,
			   type_text(cx, t), type_text(cx, value->type));
	s->expansions++;
	v = hidden(cx, "local", d->name, t, d->loc);
	*e = (struct env){ .up = s->env, .name = d->name, .value = function_name_of(cx, v, n) };
	s->env = e;
	n->kind = S_EXPR;
	n->block.body = assignment(cx, v, value);
}

/* --- functions that print, in the arguments of an action --- */

static bool acts(const struct node *list)
{
	for (; list; list = list->next) {
		struct node_lists below = node_lists(list);

		if (list->kind == N_SIZEOF)
			continue;
		if (list->kind == N_CALL && list->id && list->id->kind == IDENT_SUBR &&
		    subr_table[list->id->subr].kind == SUBR_KIND_ACTION)
			return true;
		for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++)
			if (acts(below.list[i]))
				return true;
	}
	return false;
}

/* Moves the calls of functions with actions out of n to statements at *tail. Their results stay in
 * n. A call that may not be evaluated (behind && || ?:) stays too. */
static void take_out(struct bind_cx *cx, struct node *n, struct node ***tail)
{
	struct node *st;

	if (!n)
		return;
	switch (n->kind) {
	case N_COMMA:
		if (n->e.a->kind == N_BODY && acts(n->e.a)) {
			st = make_node(cx, S_EXPR, n);
			st->block.body = n->e.a;
			**tail = st;
			*tail = &st->next;
			replace_node(n, n->e.b);
			return;
		}
		take_out(cx, n->e.a, tail);
		take_out(cx, n->e.b, tail);
		return;
	case N_BINARY:
		take_out(cx, n->e.a, tail);
		if (n->op != OP_LAND && n->op != OP_LOR)
			take_out(cx, n->e.b, tail);
		return;
	case N_UNARY:
	case N_TERNARY:
	case N_STRINGOF: take_out(cx, n->e.a, tail); return;
	case N_INDEX:
		take_out(cx, n->e.a, tail);
		for (struct node *i = n->e.b; i; i = i->next)
			take_out(cx, i, tail);
		return;
	case N_CAST: take_out(cx, n->t.a, tail); return;
	case N_MEMBER:
	case N_PMEMBER: take_out(cx, n->member.a, tail); return;
	case N_CALL:
		for (struct node *a = n->call.args; a; a = a->next)
			take_out(cx, a, tail);
		return;
	default: return;
	}
}

struct node *functions_first(struct bind_cx *cx, struct node *n)
{
	struct node *call = n->block.body, *list = NULL, **tail = &list, *last;

	if (!call || call->kind != N_CALL || !call->id || call->id->kind != IDENT_SUBR ||
	    subr_table[call->id->subr].kind != SUBR_KIND_ACTION || !acts(call->call.args))
		return n;
	take_out(cx, call, &tail);
	if (!list)
		return n;
	/* n becomes the first of these statements, and a copy of n the last. */
	last = make_node(cx, S_EXPR, n);
	last->block.body = call;
	last->next = n->next;
	*tail = last;
	n->block.body = list->block.body;
	n->next = list->next;
	return last;
}
