/* Binds names: variables, built-ins, inlines, constants, kernel symbols, the probe's arguments. */
#include "compile/bind/foreign.h"
#include "compile/bind/bind_private.h"

static uint64_t *var_slot(struct bind_cx *cx, enum var_scope scope, const char *name, bool make)
{
	char key[256];
	int n = snprintf(key, sizeof(key), "%d%s", (int)scope, name);

	if (n >= (int)sizeof(key))
		n = (int)sizeof(key) - 1;
	return make ? hash_put(&cx->state->vars, key, (size_t)n, NULL)
		    : hash_get(&cx->state->vars, key, (size_t)n);
}

struct variable *var_find(struct bind_cx *cx, enum var_scope scope, const char *name)
{
	uint64_t *slot = var_slot(cx, scope, name, false);

	return slot ? cx->state->out->vars.v[*slot - 1] : NULL;
}

struct variable *var_new(struct bind_cx *cx, enum var_scope scope, const char *name, type_id type,
			 loc_t loc)
{
	struct variable *v = arena_new(cx->arena, struct variable);

	v->index = cx->state->out->vars.n;
	v->name = name;
	v->scope = scope;
	v->type = type;
	v->loc = loc;
	vec_push(&cx->state->out->vars, v);
	*var_slot(cx, scope, name, true) = cx->state->out->vars.n;
	return v;
}

void ident_init(struct bind_cx *cx)
{
	struct bind_state *s = cx->state;

	for (int i = 0; i < BUILTIN_COUNT; i++)
		*hash_put(&s->builtins, builtin_table[i].name, strlen(builtin_table[i].name),
			  NULL) = (uint64_t)i + 1;
	for (int i = 0; i < SUBR_ID_COUNT; i++)
		*hash_put(&s->subrs, subr_table[i].name, strlen(subr_table[i].name), NULL) =
			(uint64_t)i + 1;
}

bool is_defined_name(struct bind_cx *cx, const char *name)
{
	size_t len = strlen(name);

	return var_find(cx, SCOPE_NONE, name) || var_find(cx, SCOPE_SELF, name) ||
	       var_find(cx, SCOPE_THIS, name) || hash_get(&cx->state->inlines, name, len) ||
	       hash_get(&cx->state->funcs, name, len) || agg_is_known(cx, name);
}

int builtin_find(struct bind_cx *cx, const char *name)
{
	uint64_t *slot = hash_get(&cx->state->builtins, name, strlen(name));

	return slot && !version_hides(cx, name) ? (int)*slot - 1 : -1;
}

int subr_find(struct bind_cx *cx, const char *name)
{
	uint64_t *slot = hash_get(&cx->state->subrs, name, strlen(name));

	return slot && !version_hides(cx, name) ? (int)*slot - 1 : -1;
}

struct inline_def *inline_find(struct bind_cx *cx, const char *name)
{
	uint64_t *slot = hash_get(&cx->state->inlines, name, strlen(name));
	struct inline_def *def;

	if (!slot && lib_load(cx, 'i', name))
		slot = hash_get(&cx->state->inlines, name, strlen(name));
	def = slot ? (struct inline_def *)(uintptr_t)*slot : NULL;
	return def && is_lib_node(cx, def->node) && version_hides(cx, name) ? NULL : def;
}

static const struct env *env_find(struct bind_cx *cx, const char *name)
{
	for (const struct env *e = cx->state->env; e; e = e->up) {
		if (!strcmp(e->name, name))
			return e;
	}
	return NULL;
}

bool env_has(struct bind_cx *cx, const char *name)
{
	return env_find(cx, name);
}

bool ident_is_new(struct bind_cx *cx, const struct node *n)
{
	if (n->kind != N_IDENT || var_find(cx, n->ident.scope, n->ident.name))
		return false;
	return n->ident.scope != SCOPE_NONE ||
	       (!env_find(cx, n->ident.name) && builtin_find(cx, n->ident.name) < 0 &&
		!inline_find(cx, n->ident.name) && subr_find(cx, n->ident.name) < 0);
}

void ident_set_var(struct bind_cx *cx, struct node *n, struct variable *var)
{
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_VAR;
	n->id->var = var;
	n->type = var->type;
	n->lvalue = true;
}

static const char *scope_text(enum var_scope scope)
{
	return scope == SCOPE_SELF ? "self->" : scope == SCOPE_THIS ? "this->" : "";
}

/* Variables of other systems' DTrace, with the reason why descry has none. */
static const struct {
	const char *name, *reason;
} unsupported[] = {
	{ "jailname", "Linux has no jails" },
	{ "jid", "Linux has no jails" },
	{ "vmregs", "use uregs[ ]" },
};

void ident_undefined(struct bind_cx *cx, struct node *n)
{
	struct bind_state *s = cx->state;
	const char *name = n->ident.name, *scope = scope_text(n->ident.scope);
	const char *foreign = foreign_word(name);
	struct nearest near = { .word = name };
	const void *key;
	size_t len;
	uint32_t pos = 0;
	uint64_t *val;

	if (diags_full(cx->diags)) { /* this error is only counted: search no hint */
		bind_error(cx, n, "D_IDENT_UNDEF", "%s", name);
		return;
	}
	for (uint32_t i = 0; i < s->out->vars.n; i++) {
		if (s->out->vars.v[i]->scope == n->ident.scope)
			nearest_offer(&near, s->out->vars.v[i]->name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(unsupported) && n->ident.scope == SCOPE_NONE; i++) {
		if (!strcmp(unsupported[i].name, name)) {
			bind_error(cx, n, "D_VAR_UNSUP", "variable %s is not available: %s", name,
				   unsupported[i].reason);
			return;
		}
	}
	if (n->ident.scope == SCOPE_NONE) {
		for (int i = 0; i < BUILTIN_COUNT; i++)
			nearest_offer(&near, builtin_table[i].name);
		while (hash_next(&s->inlines, &pos, &key, &len, &val))
			nearest_offer(&near, ((struct inline_def *)(uintptr_t)*val)->name);
		if (foreign)
			near.name = NULL;
		/* The tag and the beginning are DTrace's; the hint is not. */
		bind_error(cx, n, "D_IDENT_UNDEF",
			   "failed to resolve %s: Unknown variable name%s%s%s", name,
			   near.name ? " (did you mean " : "", near.name ? near.name : "",
			   near.name ? "?)" : "");
		if (foreign)
			diag_note(cx->diags, n->loc, n->end, "%s", foreign);
		return;
	}
	bind_error(cx, n, "D_VAR_UNDEF", "%s%s has not yet been declared or assigned%s%s%s%s",
		   scope, name, near.name ? " (did you mean " : "", near.name ? scope : "",
		   near.name ? near.name : "", near.name ? "?)" : "");
}

/* --- the probe's arguments --- */

/* Gives nodes of a library or a provider the position of their use, because their own position
 * means nothing to the user. */
static void relocate(struct node *n, const struct node *at)
{
	struct node_lists below;

	for (; n; n = n->next) {
		n->loc = at->loc;
		n->end = at->end;
		below = node_lists(n);
		for (uint32_t i = 0; i < ARRAY_SIZE(below.list); i++)
			relocate(below.list[i], at);
	}
}

struct node *clone_at(struct bind_cx *cx, const struct node *n, const struct node *at)
{
	const struct source *src = source_of(cx->diags, n->loc);
	struct node *c = node_clone(cx->arena, n);

	c->next = NULL;
	if (src && src->kind == SOURCE_LIB)
		relocate(c, at);
	return c;
}

bool is_lib_loc(struct bind_cx *cx, loc_t loc)
{
	const struct source *src = source_of(cx->diags, loc);

	return src && src->kind == SOURCE_LIB;
}

bool is_lib_node(struct bind_cx *cx, const struct node *n)
{
	return is_lib_loc(cx, n->loc);
}

/* Parses the text as the value of an inline. Parses each text once. */
static const struct node *context_node(struct bind_cx *cx, const char *text)
{
	struct bind_state *s = cx->state;
	uint64_t *slot = hash_get(&s->texts, text, strlen(text));
	cleanup_free char *d = NULL;
	struct node *top;

	if (slot)
		return (const struct node *)(uintptr_t)*slot;
	d = xasprintf("inline int64_t __probe_text = (%s);\n", text);
	source_add(cx->diags, SOURCE_LIB, "<probe>", d, strlen(d));
	top = parse_source(cx->parse, cx->diags->nsources - 1, PDESC_NAME);
	*hash_put(&s->texts, text, strlen(text), NULL) =
		(uint64_t)(uintptr_t)(top && top->kind == D_INLINE ? top->inl.value : NULL);
	return top && top->kind == D_INLINE ? top->inl.value : NULL;
}

static struct node *bind_text(struct bind_cx *cx, const char *text, const struct node *at,
			      bool in_context)
{
	struct bind_state *s = cx->state;
	const struct node *value = context_node(cx, text);
	const struct env *env = s->env;
	bool context = s->in_context, lib = s->in_lib;
	struct node *n;

	if (!value)
		return NULL;
	n = clone_at(cx, value, at);
	s->env = NULL;
	s->in_context = in_context;
	s->in_lib = true;
	bind_value(cx, n);
	s->env = env;
	s->in_context = context;
	s->in_lib = lib;
	return n;
}

struct node *bind_context_text(struct bind_cx *cx, const char *text, const struct node *at)
{
	return bind_text(cx, text, at, true);
}

struct node *bind_args_text(struct bind_cx *cx, const char *text, const struct node *at)
{
	return bind_text(cx, text, at, false);
}

/* Makes n the value of arg, with type t. n's id names the probe's array that arg is in. */
static void set_arg(struct bind_cx *cx, struct node *n, enum builtin_id id,
		    const struct probe_arg *arg, type_id t)
{
	if (arg->expr) {
		struct node *v = bind_context_text(cx, arg->expr, n);

		if (!v) {
			poison(n);
			return;
		}
		replace_node(n, v);
		decay(cx, n);
		cast_to(cx, n, t);
		return;
	}
	n->kind = N_IDENT;
	n->ident.name = builtin_table[id].name;
	n->ident.module = NULL;
	n->ident.scope = SCOPE_NONE;
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_BUILTIN;
	n->id->builtin = id;
	n->type = t;
	n->aux = (void *)arg;
}

static void bind_argn(struct bind_cx *cx, struct node *n, unsigned i)
{
	struct bind_state *s = cx->state;

	if (s->in_context && s->clause && s->clause->nprobes && i == PROBE_FILTER_ARG &&
	    s->clause->probes[0]->kind == ATTACH_UPROBE) {
		set_arg(cx, n, BUILTIN_ARG0 + i, &s->clause->args.arg[i], T_INT64);
		return;
	}
	if (s->in_context) {
		n->id = arena_new(cx->arena, struct bind_ident);
		n->id->kind = IDENT_CTX;
		n->id->ctx = i * 8;
		n->type = T_INT64;
		return;
	}
	if (s->trying) {
		set_int(cx, n, 0, T_INT64);
		n->constant = false;
		return;
	}
	if (!s->clause) {
		bind_error(cx, n, "D_IDENT_BADREF", "arg%u has no value outside of a clause", i);
		return;
	}
	if (!(s->known_use.plain & 1u << i)) {
		bind_error(cx, n, "D_IDENT_BADREF", "arg%u cannot be used in a translator", i);
		return;
	}
	/* argN has all 64 bits, whatever type the probe gives. */
	set_arg(cx, n, BUILTIN_ARG0 + i, &s->clause->args.arg[i], T_INT64);
}

void bind_args_index(struct bind_cx *cx, struct node *n)
{
	struct bind_state *s = cx->state;
	const struct probe_args *args = s->clause ? &s->clause->args : NULL;
	const struct probe_arg *arg;
	struct node *index = n->e.b;
	const struct probe *p;
	uint64_t i;

	if (!bind_builtin_index(cx, n, "args"))
		return;
	if (s->trying) {
		poison(n); /* its type depends on the probe */
		return;
	}
	if (!args || s->in_context) {
		bind_error(cx, n, "D_ARGS_NONE", "args[ ] has no value outside of a clause");
		return;
	}
	i = index->i.value;
	p = s->clause->nprobes ? s->clause->probes[0] : NULL;
	if (s->dry) {
		poison(n);
		return;
	}
	if (!s->known_use.typed) {
		bind_error(cx, n, "D_IDENT_BADREF", "args[] cannot be used in a translator");
		return;
	}
	if (!args->known || !args->ntyped) {
		bind_error(cx, n, "D_ARGS_IDX",
			   "probe %s:%s:%s:%s has no typed arguments: use arg0...arg9",
			   p ? p->prov : "", p ? p->mod : "", p ? p->func : "", p ? p->name : "");
		return;
	}
	if (i >= args->ntyped) {
		bind_error(cx, n, "D_ARGS_IDX",
			   "index %lld is out of range for %s:%s:%s:%s args[ ]", (long long)i,
			   p ? p->prov : "", p ? p->mod : "", p ? p->func : "", p ? p->name : "");
		return;
	}
	arg = &args->typed[i];
	set_arg(cx, n, BUILTIN_ARGS, arg, kernel_type(cx, arg->type));
	n->lvalue = false;
	if (arg->xlate && !is_poison(n)) {
		struct node *native = make_node(cx, N_INT, n);
		type_id out;

		replace_node(native, n);
		native->next = NULL;
		/* The library that holds the translator also holds the type. */
		if (!type_parse_name(cx->types, arg->xlate, &out)) {
			char word[64];

			snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg->xlate, " *"),
				 arg->xlate);
			if (!lib_load(cx, 't', word) ||
			    !type_parse_name(cx->types, arg->xlate, &out)) {
				bind_error(cx, n, "D_ARGS_XLATOR",
					   "translated type of args[%u] is not known: %s",
					   (unsigned)i, arg->xlate);
				return;
			}
		}
		make_xlated(cx, n, out, native);
	}
}

/* --- inlines --- */

struct node *placeholder(struct bind_cx *cx, const struct node *at, type_id t)
{
	struct variable *v = arena_new(cx->arena, struct variable);
	struct node *n = make_node(cx, N_IDENT, at);

	v->name = "";
	v->type = t;
	n->ident.name = v->name;
	ident_set_var(cx, n, v);
	return n;
}

void try_inline(struct bind_cx *cx, struct inline_def *def)
{
	struct node *use = make_node(cx, N_IDENT, def->node->inl.value), *args = NULL,
		    **tail = &args;
	uint32_t errors = cx->diags->errors;

	for (uint32_t i = 0; i < def->params.n; i++) {
		*tail = placeholder(cx, use, def->params.v[i]);
		tail = &(*tail)->next;
	}
	cx->state->trying = true;
	expand_inline(cx, use, def, args);
	cx->state->trying = false;
	def->bad = cx->diags->errors != errors;
}

void expand_inline(struct bind_cx *cx, struct node *n, struct inline_def *def, struct node *args)
{
	struct bind_state *s = cx->state;
	const struct env *saved = s->env;
	bool lib = s->in_lib;
	struct env *env = NULL, *e;
	const struct decl *p = def->node->inl.params;
	struct node *value;
	uint32_t i = 0;

	if (def->bad) {
		poison(n);
		return;
	}
	if (def->busy) {
		bind_error(cx, n, "D_IDENT_UNDEF", "failed to resolve %s: it is defined by itself",
			   def->name);
		return;
	}
	if (list_length(args) != def->params.n) {
		if (!args)
			bind_error(
				cx, n, "D_IDENT_BADREF",
				"%s may not be referenced as a scalar: it takes %u argument%s in [ ]",
				def->name, def->params.n, def->params.n == 1 ? "" : "s");
		else
			bind_error(cx, n, "D_PROTO_LEN",
				   "%s[ ] prototype mismatch: %u argument%s passed, %u expected",
				   def->name, list_length(args), list_length(args) == 1 ? "" : "s",
				   def->params.n);
		return;
	}
	for (struct node *a = args; a; a = a->next, p = p->next, i++) {
		if (is_poison(a)) {
			poison(n);
			return;
		}
		if (!convert_kept(cx, a, def->params.v[i])) {
			bind_error(
				cx, n, "D_PROTO_ARG",
				"%s[ ] argument #%u is incompatible with prototype: \"%s\" is not \"%s\"",
				def->name, i + 1, type_text(cx, a->type),
				type_text(cx, def->params.v[i]));
			return;
		}
		e = arena_new(cx->arena, struct env);
		*e = (struct env){ .up = env, .name = p->name ? p->name : "", .value = a };
		env = e;
	}
	value = clone_at(cx, def->node->inl.value, n);
	s->env = env;
	s->in_lib = is_lib_node(cx, def->node);
	def->busy = true;
	bind_expr(cx, value);
	def->busy = false;
	s->env = saved;
	s->in_lib = lib;
	if (is_poison(value)) {
		poison(n);
		return;
	}
	if (is_xlated(value)) {
		if (!type_same(cx->types, value->type, def->type)) {
			bind_error(cx, n, "D_OP_INCOMPAT",
				   "inline %s definition uses incompatible types: \"%s\" = \"%s\"",
				   def->name, type_text(cx, def->type), type_text(cx, value->type));
			return;
		}
	} else if (!convert_kept(cx, value, def->type)) {
		bind_error(cx, n, "D_OP_INCOMPAT",
			   "inline %s definition uses incompatible types: \"%s\" = \"%s\"",
			   def->name, type_text(cx, def->type), type_text(cx, value->type));
		return;
	}
	value->lvalue = false;
	value->loc = n->loc;
	value->end = n->end;
	replace_node(n, value);
}

/* --- identifiers --- */

/* Replaces probemod or probefunc of a probe in functions of a language by the name at the firing.
 * Returns false when the probe has the names itself. */
static bool bind_language_name(struct bind_cx *cx, struct node *n, enum builtin_id id)
{
	const struct bound_clause *c = cx->state->clause;
	const struct probe *p = c && c->nprobes && !cx->state->in_context ? c->probes[0] : NULL;
	const char *text = !p                        ? NULL
			   : id == BUILTIN_PROBEMOD  ? p->mod_text
			   : id == BUILTIN_PROBEFUNC ? p->func_text
						     : NULL;
	struct node *v = text ? bind_args_text(cx, text, n) : NULL;

	if (!v)
		return false;
	replace_node(n, v);
	return true;
}

static void bind_builtin(struct bind_cx *cx, struct node *n, enum builtin_id id)
{
	type_id t;

	if (id <= BUILTIN_ARG9) {
		bind_argn(cx, n, id - BUILTIN_ARG0);
		return;
	}
	if (bind_language_name(cx, n, id))
		return;
	if (id == BUILTIN_ARGS || id == BUILTIN_UREGS) {
		bind_error(cx, n, "D_IDENT_BADREF",
			   "%s may not be referenced as a scalar: it needs an index",
			   n->ident.name);
		return;
	}
	if (!type_parse_name(cx->types, builtin_table[id].type, &t)) {
		bind_error(cx, n, "D_TYPE_ERR", "type %s of %s is not known: %s",
			   builtin_table[id].type, n->ident.name,
			   type_kernel_err(cx->types) ? type_kernel_err(cx->types)
						      : "the kernel has no such type");
		return;
	}
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_BUILTIN;
	n->id->builtin = id;
	n->type = kernel_type(cx, t);
}

static void ident_count(void *arg, const struct node *n)
{
	++*(uint32_t *)arg;
}

/* Replaces n by a parameter's bound value. Counts the value's nodes as bound here. */
static void put_in(struct bind_cx *cx, struct node *n, const struct node *value)
{
	struct node *c;

	if (is_poison(value)) {
		poison(n);
		return;
	}
	node_walk(value, ident_count, &cx->state->nodes);
	if (!bind_has_room(cx, n)) {
		poison(n);
		return;
	}
	c = node_clone(cx->arena, value);
	c->loc = n->loc;
	c->end = n->end;
	replace_node(n, c);
}

void bind_ident(struct bind_cx *cx, struct node *n)
{
	const char *name = n->ident.name;
	const struct env *e;
	struct variable *v;
	struct inline_def *def;
	int64_t value;
	type_id t;
	int b;

	if (n->ident.scope == SCOPE_NONE && (e = env_find(cx, name))) {
		put_in(cx, n, e->value);
		return;
	}
	v = var_find(cx, n->ident.scope, name);
	if (v && v->bad) {
		poison(n);
		return;
	}
	if (v) {
		if (v->assoc) {
			bind_error(
				cx, n, "D_IDENT_BADREF",
				"%s%s may not be referenced as a scalar: it is an associative array",
				scope_text(n->ident.scope), name);
			return;
		}
		ident_set_var(cx, n, v);
		return;
	}
	if (n->ident.scope != SCOPE_NONE) {
		ident_undefined(cx, n);
		return;
	}
	b = builtin_find(cx, name);
	if (b >= 0) {
		bind_builtin(cx, n, (enum builtin_id)b);
		if (!is_poison(n))
			attr_check(cx, n, name,
				   b == BUILTIN_CURTHREAD ? ATTR_PRIVATE_DATA : ATTR_STABLE);
		return;
	}
	def = inline_find(cx, name);
	if (def) {
		expand_inline(cx, n, def, NULL);
		return;
	}
	if (!strcmp(name, "NULL")) {
		set_int(cx, n, 0, T_VOIDPTR);
		return;
	}
	if (subr_find(cx, name) >= 0) {
		bind_error(cx, n, "D_IDENT_BADREF", "function '%s' referenced as variable", name);
		return;
	}
	lib_load(cx, 'e', name);
	if (type_enumerator(cx->types, name, &value, &t)) {
		set_int(cx, n, (uint64_t)value, t);
		return;
	}
	ident_undefined(cx, n);
}

struct inline_def *library_symbol(struct bind_cx *cx, const char *symbol)
{
	char name[128];

	if ((size_t)snprintf(name, sizeof(name), "__symbol__%s", symbol) >= sizeof(name))
		return NULL;
	return inline_find(cx, name);
}

/* Binds a library symbol. A structure's symbol holds its address, so it is dereferenced. */
static void bind_library_symbol(struct bind_cx *cx, struct node *n, struct inline_def *def)
{
	struct node *p;

	expand_inline(cx, n, def, NULL);
	if (is_poison(n) || !is_pointer(cx, n) || !type_is_sou(cx->types, pointee(cx, n->type)))
		return;
	p = arena_new(cx->arena, struct node);
	*p = *n;
	p->next = NULL;
	*n = (struct node){ .kind = N_UNARY,
			    .op = OP_DEREF,
			    .loc = p->loc,
			    .end = p->end,
			    .next = n->next,
			    .height = (uint16_t)(p->height + 1),
			    .e.a = p };
	n->type = pointee(cx, p->type);
	n->lvalue = true;
}

void bind_extern(struct bind_cx *cx, struct node *n)
{
	const char *name = n->ident.name, *module = n->ident.module;
	struct inline_def *def;
	uint64_t addr = 0;
	bool typed, shown;
	const char *why;
	type_id t;

	if (!strcmp(module ? module : "", "D")) {
		/* D`x is a variable of the program. */
		n->kind = N_IDENT;
		n->ident.module = NULL;
		bind_ident(cx, n);
		return;
	}
	def = library_symbol(cx, name);
	if (def) {
		bind_library_symbol(cx, n, def);
		return;
	}
	typed = type_kernel_var(cx->types, name, &t) || type_kernel_func(cx->types, name, &t);
	shown = symbols_kernel_addr(cx->probes->symbols, module, name, &addr);
	why = symbols_kernel_err(cx->probes->symbols);
	if (!why)
		why = "/proc/kallsyms has no such symbol; a kernel without CONFIG_KALLSYMS_ALL lists functions only";
	if (!typed && shown) {
		bind_error(cx, n, "D_SYM_NOTYPES",
			   "no symbolic type information is available for %s`%s",
			   module ? module : "", name);
		return;
	}
	if (!typed && opt_on(cx->options, OPT_KNODEFS)) {
		t = T_INT; /* at address 0: a fault when it is read */
		typed = true;
	}
	if (!typed || (!shown && !opt_on(cx->options, OPT_KNODEFS))) {
		bind_error(cx, n, "D_IDENT_UNDEF", "failed to resolve %s`%s: %s (%s)",
			   module ? module : "", name,
			   typed ? "the kernel does not show its address" : "Unknown symbol name",
			   why);
		return;
	}
	n->id = arena_new(cx->arena, struct bind_ident);
	n->id->kind = IDENT_KSYM;
	n->id->ksym.module = module;
	n->id->ksym.name = name;
	n->id->ksym.addr = addr;
	n->type = t;
	n->lvalue = true;
	attr_check(cx, n, name, ATTR_PRIVATE);
}
