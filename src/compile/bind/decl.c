/* Binds declarations of the program: adds to the type graph, the variables and the inlines. */
#include "compile/bind/bind_private.h"

static void decl_error(struct bind_cx *cx, loc_t loc, loc_t end, const char *tag, const char *fmt,
		       const char *arg)
{
	diag_error(cx->diags, loc, end, tag, fmt, arg);
}

static type_id base_int(uint32_t f, enum spec_base base)
{
	bool u = f & SPEC_UNSIGNED;

	if (base == BASE_CHAR)
		return u ? T_UCHAR : f & SPEC_SIGNED ? T_SCHAR : T_CHAR;
	if (f & SPEC_SHORT)
		return u ? T_USHORT : T_SHORT;
	if (f & SPEC_LONGLONG)
		return u ? T_ULLONG : T_LLONG;
	if (f & SPEC_LONG)
		return u ? T_ULONG : T_LONG;
	return u ? T_UINT : T_INT;
}

static enum type_kind tag_kind(enum spec_base b)
{
	return b == BASE_STRUCT ? TYPE_STRUCT : b == BASE_UNION ? TYPE_UNION : TYPE_ENUM;
}

/* Looks a type up in the program, then in the library, then in the kernel. */
static bool lookup(struct bind_cx *cx, const char *module, enum type_kind kind, const char *name,
		   type_id *ret)
{
	if (module && *module)
		return type_lookup(cx->types, module, kind, name, ret);
	if (type_lookup(cx->types, "D", kind, name, ret))
		return true;
	if (lib_load(cx, kind == TYPE_TYPEDEF ? 't' : 's', name) &&
	    type_lookup(cx->types, "D", kind, name, ret))
		return true;
	return type_lookup(cx->types, NULL, kind, name, ret);
}

type_id kernel_type(struct bind_cx *cx, type_id t)
{
	enum type_kind k = type_kind(cx->types, t);
	const char *tag = type_tag(cx->types, t);
	type_id r;

	if (!cx->state->user_tags.n)
		return t;
	if (k == TYPE_POINTER) {
		r = kernel_type(cx, type_ref(cx->types, t));
		return r == type_ref(cx->types, t) ? t : type_new_pointer(cx->types, r);
	}
	if ((k == TYPE_STRUCT || k == TYPE_UNION) &&
	    hash_get(&cx->state->user_tags, tag, strlen(tag)) &&
	    type_lookup(cx->types, "vmlinux", k, tag, &r))
		return r;
	return t;
}

/* Returns " (did you mean struct foo?)" for an unknown type, or "". */
static const char *type_suggestion(struct bind_cx *cx, enum type_kind kind, const char *name)
{
	static const char *const words[] = {
		[TYPE_STRUCT] = "struct ", [TYPE_UNION] = "union ", [TYPE_ENUM] = "enum "
	};
	struct nearest near = { .word = name };

	type_nearest(cx->types, kind, &near);
	if (!near.name)
		return "";
	return arena_printf(cx->arena, " (did you mean %s%s?)",
			    (size_t)kind < ARRAY_SIZE(words) && words[kind] ? words[kind] : "",
			    near.name);
}

const char *tag_suggestion(struct bind_cx *cx, type_id t)
{
	const char *text = type_text(cx, type_strip(cx->types, t)), *tag = strchr(text, ' ');

	if (!tag)
		return "";
	return type_suggestion(cx,
			       *text == 's'   ? TYPE_STRUCT
			       : *text == 'u' ? TYPE_UNION
					      : TYPE_ENUM,
			       tag + 1);
}

static void add_enumerators(struct bind_cx *cx, const struct spec *s, type_id t)
{
	struct hash names = { 0 }; /* of this enum */
	int64_t value = 0;

	for (const struct enumerator *e = s->enumerators; e; e = e->next, value++) {
		const size_t n = strlen(e->name);
		bool is_new;

		if (e->value)
			const_value(cx, e->value, &value, "D_DECL_ENCONST", "enumerator");
		if (value < INT32_MIN || value > INT32_MAX)
			decl_error(cx, e->loc, 0, "D_DECL_ENOFLOW", "enumerator value overflow: %s",
				   e->name);
		hash_put(&names, e->name, n, &is_new);
		if (!is_new)
			decl_error(cx, e->loc, 0, "D_UNKNOWN",
				   "failed to define enumerator '%s': the enum has it already",
				   e->name);
		else if (!is_lib_loc(cx, e->loc) && hash_get(&cx->state->enumerators, e->name, n))
			decl_error(cx, e->loc, 0, "D_DECL_IDRED", "identifier redeclared: %s",
				   e->name);
		hash_put(&cx->state->enumerators, e->name, n, NULL);
		type_add_enumerator(cx->types, t, e->name, value);
	}
	hash_fini(&names);
}

/* names: the names of the members before it. */
static void add_member(struct bind_cx *cx, type_id sou, const struct decl *d, struct hash *names)
{
	type_id t = bind_decl_type(cx, d);
	int64_t bits = 0;
	enum type_kind k = type_kind(cx->types, type_strip(cx->types, t));

	if (d->bits) {
		if (!const_value(cx, d->bits, &bits, "D_DECL_BFCONST", "bit-field size"))
			return;
		if (!type_is_integer(cx->types, t)) {
			decl_error(cx, d->loc, d->end, "D_DECL_BFTYPE",
				   "invalid type for bit-field: %s", d->name ? d->name : "");
			return;
		}
		if (bits < 0 || (!bits && d->name)) {
			decl_error(
				cx, d->loc, d->end, "D_DECL_BFCONST",
				"positive integral constant expression expected as bit-field size: %s",
				d->name ? d->name : "");
			return;
		}
		if ((uint64_t)bits > type_size(cx->types, t) * 8) {
			decl_error(cx, d->loc, d->end, "D_DECL_BFSIZE",
				   "bit-field too big for type: %s", d->name ? d->name : "");
			return;
		}
		if (!bits)
			return;
	} else if (k == TYPE_VOID || k == TYPE_FUNC) {
		decl_error(cx, d->loc, d->end, "D_DECL_VOIDOBJ",
			   "cannot have void or function member: %s", d->name ? d->name : "");
		return;
	} else if (k == TYPE_FORWARD ||
		   (type_is_sou(cx->types, t) && !type_is_complete(cx->types, t))) {
		decl_error(cx, d->loc, d->end, "D_DECL_INCOMPLETE",
			   "incomplete struct/union/enum %s", type_text(cx, t));
		return;
	}
	if (d->name && hash_get(names, d->name, strlen(d->name))) {
		decl_error(cx, d->loc, d->end, "D_UNKNOWN",
			   "failed to define member '%s': the structure has it already", d->name);
		return;
	}
	if (d->name)
		hash_put(names, d->name, strlen(d->name), NULL);
	type_add_member(cx->types, sou, d->name ? d->name : "", t, (uint32_t)bits);
}

static type_id tagged(struct bind_cx *cx, const struct spec *s)
{
	enum type_kind kind = tag_kind(s->base);
	const char *tag = s->name ? s->name : "";
	const struct source *src = source_of(cx->diags, s->loc);
	bool is_lib = src && src->kind == SOURCE_LIB, found;
	struct hash names = { 0 };
	type_id t;

	if (!s->has_body) {
		if (lookup(cx, s->module, kind, tag, &t))
			return is_lib ? kernel_type(cx, t) : t;
		if (kind == TYPE_ENUM) {
			decl_error(cx, s->loc, s->end, "D_TYPE_ERR",
				   "failed to resolve type enum %s: Unknown type name", tag);
			return T_INT;
		}
		return type_new_sou(cx->types, kind, tag);
	}
	found = *tag && type_lookup(cx->types, "D", kind, tag, &t);
	if (found && (kind == TYPE_ENUM || type_is_complete(cx->types, t))) {
		decl_error(cx, s->loc, s->end, "D_DECL_TYPERED", "type redeclared: %s", tag);
		return t;
	}
	if (*tag && !is_lib)
		hash_put(&cx->state->user_tags, tag, strlen(tag), NULL);
	if (kind == TYPE_ENUM) {
		t = type_new_enum(cx->types, tag);
		add_enumerators(cx, s, t);
		return t;
	}
	if (!found)
		t = type_new_sou(cx->types, kind, tag);
	for (const struct decl *d = s->members; d; d = d->next)
		add_member(cx, t, d, &names);
	hash_fini(&names);
	type_complete(cx->types, t);
	return t;
}

static type_id bind_spec(struct bind_cx *cx, const struct spec *s)
{
	struct bind_state *st = cx->state;
	uint64_t *seen = hash_get(&st->specs, &s, sizeof(s));
	type_id t = T_INT;

	if (seen)
		return (type_id)(*seen - 1);
	switch (s->base) {
	case BASE_VOID: t = T_VOID; break;
	case BASE_NONE:
	case BASE_CHAR:
	case BASE_INT: t = base_int(s->flags, s->base); break;
	case BASE_FLOAT: t = T_FLOAT; break;
	case BASE_DOUBLE: t = s->flags & SPEC_LONG ? T_LDOUBLE : T_DOUBLE; break;
	case BASE_BOOL: t = T_BOOL; break;
	case BASE_STRING: t = T_STRING; break;
	case BASE_STRUCT:
	case BASE_UNION:
	case BASE_ENUM: t = tagged(cx, s); break;
	case BASE_NAME:
	case BASE_USERLAND:
		if (!lookup(cx, s->module, TYPE_TYPEDEF, s->name, &t)) {
			diag_error(cx->diags, s->loc, s->end, "D_SYNTAX",
				   "syntax error: failed to resolve type %s%s%s: %s%s",
				   s->module ? s->module : "", s->module ? "`" : "", s->name,
				   type_kernel_err(cx->types) ? type_kernel_err(cx->types)
							      : "Unknown type name",
				   type_suggestion(cx, TYPE_TYPEDEF, s->name));
			t = T_INT;
		}
		break;
	}
	if (s->flags & SPEC_CONST)
		t = type_new_qualified(cx->types, TYPE_CONST, t);
	if (s->flags & SPEC_VOLATILE)
		t = type_new_qualified(cx->types, TYPE_VOLATILE, t);
	*hash_put(&st->specs, &s, sizeof(s), NULL) = (uint64_t)t + 1;
	return t;
}

static type_id function_type(struct bind_cx *cx, const struct declarator *r, type_id result)
{
	VEC(struct type_param) params = { 0 };
	type_id t;

	for (const struct decl *p = r->params; p; p = p->next)
		vec_push(&params, (struct type_param){ .name = p->name ? p->name : "",
						       .type = bind_decl_type(cx, p) });
	t = type_new_func(cx->types, result, params.v, params.n, r->varargs);
	vec_fini(&params);
	return t;
}

/* Applies the declarators to base. Applies the rest of the list, which stands further from the
 * name, before r. */
static type_id apply(struct bind_cx *cx, const struct declarator *r, type_id base,
		     const struct decl *d)
{
	int64_t n = 0;
	type_id t;

	if (!r)
		return base;
	t = apply(cx, r->next, base, d);
	switch (r->kind) {
	case DECLR_POINTER:
		t = type_new_pointer(cx->types, t);
		if (r->quals & SPEC_CONST)
			t = type_new_qualified(cx->types, TYPE_CONST, t);
		return t;
	case DECLR_ARRAY:
		if (r->size) {
			if (!const_value(cx, r->size, &n, "D_DECL_ARRSUB", "array dimension"))
				return t;
			if (n < 0) {
				diag_error(
					cx->diags, r->size->loc, r->size->end, "D_DECL_ARRSUB",
					"positive integral constant expression expected as array dimension");
				return t;
			}
			if (n > INT32_MAX) {
				diag_error(cx->diags, r->size->loc, r->size->end, "D_DECL_ARRBIG",
					   "array dimension too big");
				return t;
			}
		}
		return type_new_array(cx->types, t, (uint32_t)n);
	case DECLR_FUNC: return function_type(cx, r, t);
	case DECLR_ASSOC: return t;
	}
	return t;
}

type_id bind_decl_type(struct bind_cx *cx, const struct decl *d)
{
	return apply(cx, d->declr, bind_spec(cx, d->spec), d);
}

static void set_keys(struct bind_cx *cx, struct variable *v, const struct decl *params)
{
	uint32_t n = 0;

	for (const struct decl *p = params; p; p = p->next)
		n++;
	v->assoc = true;
	v->keys = arena_array(cx->arena, type_id, n);
	for (const struct decl *p = params; p; p = p->next)
		v->keys[v->nkeys++] = bind_decl_type(cx, p);
}

static bool same_variable(struct bind_cx *cx, const struct variable *a, const struct variable *b)
{
	if (a->assoc != b->assoc || a->nkeys != b->nkeys || !type_same(cx->types, a->type, b->type))
		return false;
	for (uint32_t i = 0; i < a->nkeys; i++) {
		if (!type_same(cx->types, a->keys[i], b->keys[i]))
			return false;
	}
	return true;
}

static void declare_variable(struct bind_cx *cx, const struct decl *d)
{
	enum decl_storage st = d->spec->storage;
	enum var_scope scope = st == STORAGE_SELF   ? SCOPE_SELF
			       : st == STORAGE_THIS ? SCOPE_THIS
						    : SCOPE_NONE;
	const struct declarator *r = d->declr;
	struct variable want = { 0 }, *old;
	enum type_kind k;

	if (st == STORAGE_AUTO || st == STORAGE_REGISTER || st == STORAGE_STATIC) {
		decl_error(cx, d->loc, d->end, "D_DECL_BADCLASS",
			   "specified storage class not appropriate in D: %s", d->name);
		return;
	}
	want.type = bind_decl_type(cx, d);
	if (r && r->kind == DECLR_ASSOC) {
		if (scope == SCOPE_THIS) {
			decl_error(
				cx, d->loc, d->end, "D_DECL_LOCASSC",
				"cannot declare associative array in clause-local scope: this->%s",
				d->name);
			return;
		}
		set_keys(cx, &want, r->params);
	}
	k = type_kind(cx->types, type_strip(cx->types, want.type));
	if (k == TYPE_FUNC)
		return; /* a prototype from a C header: there is nothing to call */
	if (k == TYPE_VOID) {
		decl_error(cx, d->loc, d->end, "D_DECL_VOIDOBJ", "cannot have void object: %s",
			   d->name);
		return;
	}
	if (k == TYPE_FORWARD ||
	    (type_is_sou(cx->types, want.type) && !type_is_complete(cx->types, want.type))) {
		decl_error(cx, d->loc, d->end, "D_DECL_INCOMPLETE",
			   "incomplete struct/union/enum: %s",
			   arena_printf(cx->arena, "%s%s", d->name, tag_suggestion(cx, want.type)));
		return;
	}
	if (k == TYPE_ARRAY && !type_nelems(cx->types, type_strip(cx->types, want.type))) {
		if (st == STORAGE_EXTERN)
			return; /* C's declaration of an array without a size makes nothing */
		decl_error(cx, d->loc, d->end, "D_DECL_ARRNULL",
			   "array declaration requires array dimension or tuple "
			   "signature: %s",
			   d->name);
		return;
	}
	old = var_find(cx, scope, d->name);
	if (old ? !same_variable(cx, old, &want)
		: scope == SCOPE_NONE &&
			    (builtin_find(cx, d->name) >= 0 || subr_find(cx, d->name) >= 0 ||
			     hash_get(&cx->state->inlines, d->name, strlen(d->name)))) {
		decl_error(cx, d->loc, d->end, "D_DECL_IDRED", "identifier redeclared: %s",
			   d->name);
		return;
	}
	if (old)
		return;
	old = var_new(cx, scope, d->name, want.type, d->loc);
	old->assoc = want.assoc;
	old->keys = want.keys;
	old->nkeys = want.nkeys;
}

/* Returns true when the program may name the type t again, as `again`. A C header may: its integer
 * has the library's size and not always its sign (id_t). */
static bool same_typedef(struct bind_cx *cx, const struct decl *d, type_id t, type_id again)
{
	if (type_same(cx->types, t, again))
		return true;
	return (t < T_BUILTIN_COUNT || lib_has_type(cx, d->name)) &&
	       type_is_integer(cx->types, t) && type_is_integer(cx->types, again) &&
	       type_size(cx->types, t) == type_size(cx->types, again);
}

static void declare_typedef(struct bind_cx *cx, const struct decl *d)
{
	type_id t = bind_decl_type(cx, d), old;

	if (d->declr && d->declr->kind == DECLR_ASSOC) {
		decl_error(cx, d->loc, d->end, "D_DECL_DYNOBJ",
			   "cannot define an associative array type: %s", d->name);
		return;
	}
	if (type_lookup(cx->types, "D", TYPE_TYPEDEF, d->name, &old)) {
		if (!same_typedef(cx, d, old, t))
			decl_error(cx, d->loc, d->end, "D_DECL_IDRED", "identifier redeclared: %s",
				   d->name);
		return;
	}
	if (var_find(cx, SCOPE_NONE, d->name) || builtin_find(cx, d->name) >= 0) {
		decl_error(cx, d->loc, d->end, "D_DECL_IDRED", "identifier redeclared: %s",
			   d->name);
		return;
	}
	type_new_typedef(cx->types, d->name, t);
}

void bind_declaration(struct bind_cx *cx, const struct node *n)
{
	for (const struct decl *d = n->decl.decls; d; d = d->next) {
		if (!d->name)
			bind_spec(cx, d->spec);
		else if (d->spec->storage == STORAGE_TYPEDEF)
			declare_typedef(cx, d);
		else
			declare_variable(cx, d);
	}
}

void bind_inline(struct bind_cx *cx, const struct node *n)
{
	struct bind_state *s = cx->state;
	const char *name = n->inl.decl->name;
	struct inline_def *def;
	uint64_t *slot;
	bool fresh;

	if (var_find(cx, SCOPE_NONE, name) || builtin_find(cx, name) >= 0 ||
	    subr_find(cx, name) >= 0) {
		decl_error(cx, n->loc, n->end, "D_DECL_IDRED", "identifier redefined: %s", name);
		return;
	}
	slot = hash_put(&s->inlines, name, strlen(name), &fresh);
	if (!fresh) {
		/* A definition that the program makes first wins over the library's. */
		const struct source *src = source_of(cx->diags, n->loc);

		if (!src || src->kind != SOURCE_LIB)
			decl_error(cx, n->loc, n->end, "D_DECL_IDRED", "identifier redefined: %s",
				   name);
		return;
	}
	def = arena_new(cx->arena, struct inline_def);
	def->name = name;
	def->node = n;
	*slot = (uint64_t)(uintptr_t)def;
	def->type = bind_decl_type(cx, n->inl.decl);
	for (const struct decl *p = n->inl.params; p; p = p->next) {
		type_id t = bind_decl_type(cx, p);

		vec_push(&def->params, t);
	}
	if (type_kind(cx->types, type_strip(cx->types, def->type)) == TYPE_VOID)
		decl_error(cx, n->loc, n->end, "D_DECL_VOIDOBJ", "cannot have void object: %s",
			   name);
	else if (!is_lib_node(cx, n))
		try_inline(cx, def);
}
