/* Binds members, sizes and offsets. */
#include "compile/bind/bind_private.h"

/* Binds a member that the kernel's structure does not have but a library defines: inline T
 * __TAG__MEMBER[struct TAG *P], as in dlib/foreign.d. */
static bool library_member(struct bind_cx *cx, struct node *n, type_id sou)
{
	struct node *a = n->member.a;
	struct inline_def *def;
	char name[128];

	if ((size_t)snprintf(name, sizeof(name), "__%s__%s", type_tag(cx->types, sou),
			     n->member.name) >= sizeof(name))
		return false;
	def = inline_find(cx, name);
	if (!def || def->params.n != 1)
		return false;
	a->next = NULL;
	expand_inline(cx, n, def, a);
	return true;
}

void bind_member(struct bind_cx *cx, struct node *n)
{
	struct node *a = n->member.a;
	bool arrow = n->kind == N_PMEMBER;
	struct type_member m;
	type_id t;

	bind_expr(cx, a);
	if (is_xlated(a)) {
		xlate_member(cx, n);
		return;
	}
	if (bad_operand(n, a))
		return;
	if (arrow) {
		decay(cx, a);
		if (!is_pointer(cx, a)) {
			bind_error(cx, n, "D_OP_PTR",
				   "operator -> must be applied to a pointer, not \"%s\"",
				   value_text(cx, a));
			return;
		}
		t = pointee(cx, a->type);
	} else {
		t = type_strip(cx->types, a->type);
		if (is_pointer(cx, a) && type_is_sou(cx->types, pointee(cx, a->type)) &&
		    library_member(cx, n, pointee(cx, a->type)))
			return;
	}
	if (!type_is_sou(cx->types, t)) {
		bind_error(
			cx, n, "D_OP_SOU",
			"operator %s cannot be applied to %s \"%s\"; must be applied to a struct or union%s",
			arrow ? "->" : ".", arrow ? "pointer" : "type", value_text(cx, a),
			!arrow && is_pointer(cx, a) ? " (did you mean ->?)" : "");
		return;
	}
	if (!type_find_member(cx->types, t, n->member.name, &m)) {
		if (!type_is_complete(cx->types, t)) {
			bind_error(cx, n, "D_OP_INCOMPLETE",
				   "operator %s cannot be applied to a forward declaration: no %s "
				   "definition is available%s%s%s",
				   arrow ? "->" : ".", type_text(cx, t), tag_suggestion(cx, t),
				   type_kernel_err(cx->types) ? ": " : "",
				   type_kernel_err(cx->types) ? type_kernel_err(cx->types) : "");
			return;
		}
		if (arrow && library_member(cx, n, t))
			return;

		struct nearest near = { .word = n->member.name };
		uint32_t count = 0;
		const struct type_member *all = type_members(cx->types, t, &count);

		for (uint32_t i = 0; i < count && !diags_full(cx->diags); i++)
			nearest_offer(&near, all[i].name);
		bind_error(cx, n, "D_TYPE_MEMBER", "%s is not a member of %s%s%s%s", near.word,
			   type_text(cx, t), near.name ? " (did you mean " : "",
			   near.name ? near.name : "", near.name ? "?)" : "");
		return;
	}
	n->selected = arena_new(cx->arena, struct bind_member);
	n->selected->bit_offset = m.bit_offset;
	n->selected->bit_size = m.bit_size;
	n->selected->type = m.type;
	n->type = m.type;
	n->lvalue = arrow || a->lvalue;
}

void bind_sizeof(struct bind_cx *cx, struct node *n)
{
	type_id t;

	if (n->kind == N_SIZEOF_TYPE) {
		t = bind_decl_type(cx, n->t.type);
	} else {
		struct node *a = n->e.a;

		if (a->kind == N_IDENT && a->ident.scope == SCOPE_NONE && ident_is_new(cx, a) &&
		    type_lookup(cx->types, NULL, TYPE_TYPEDEF, a->ident.name, &t)) {
			set_int(cx, n, type_size(cx->types, t), T_ULONG);
			return;
		}
		bind_expr(cx, a);
		if (is_poison(a)) {
			poison(n);
			return;
		}
		if ((a->kind == N_MEMBER || a->kind == N_PMEMBER) && a->selected->bit_size) {
			bind_error(cx, n, "D_SIZEOF_BITFIELD",
				   "cannot apply sizeof to a bit-field");
			return;
		}
		if (a->kind == N_STR) {
			set_int(cx, n, a->s.len + 1, T_ULONG);
			return;
		}
		t = is_null(cx, a) ? T_INT : a->type;
	}
	if (kind_of(cx, t) == TYPE_VOID || kind_of(cx, t) == TYPE_DYN || !type_size(cx->types, t)) {
		bind_error(cx, n, "D_SIZEOF_TYPE",
			   "cannot apply sizeof to an operand of type \"%s\"%s%s", type_text(cx, t),
			   type_is_sou(cx->types, t) && !type_is_complete(cx->types, t)
				   ? ", which is not known here"
				   : "",
			   type_is_sou(cx->types, t) ? tag_suggestion(cx, t) : "");
		return;
	}
	set_int(cx, n, type_size(cx->types, t), T_ULONG);
}

static bool stands_in(const struct bind_cx *cx, const struct decl *d)
{
	const struct spec *s = d->spec;

	return s->base == BASE_NAME && !s->module && lib_stands_in(cx, s->name);
}

void bind_offsetof(struct bind_cx *cx, struct node *n)
{
	type_id t = type_strip(cx->types, bind_decl_type(cx, n->t.type));
	struct type_member m;

	if (!type_is_sou(cx->types, t))
		bind_error(cx, n, "D_OFFSETOF_TYPE",
			   "offsetof operand must be a struct or union type, not \"%s\"",
			   type_text(cx, t));
	else if (!type_is_complete(cx->types, t))
		bind_error(cx, n, "D_OFFSETOF_TYPE", "offsetof: no %s definition is available%s",
			   type_text(cx, t), tag_suggestion(cx, t));
	else if (!type_find_member(cx->types, t, n->t.member, &m) && stands_in(cx, n->t.type))
		bind_error(
			cx, n, "D_SYNTAX",
			"syntax error: offsetof: this kernel has no type %s; %s, which stands for "
			"it, has no member %s",
			n->t.type->spec->name, type_text(cx, t), n->t.member);
	else if (!type_find_member(cx->types, t, n->t.member, &m))
		bind_error(cx, n, "D_UNKNOWN", "offsetof: %s is not a member of %s", n->t.member,
			   type_text(cx, t));
	else if (m.bit_size)
		bind_error(cx, n, "D_OFFSETOF_BITFIELD", "cannot take offset of a bit-field: %s",
			   n->t.member);
	else
		set_int(cx, n, m.bit_offset / 8, T_ULONG);
}
