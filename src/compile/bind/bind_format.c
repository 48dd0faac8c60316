/* Checks the arguments of printf() and printa() against the format. */
#include "compile/bind/bind_private.h"

bool bind_format(struct bind_cx *cx, struct node *n, const struct node *text)
{
	struct format *f;
	const char *error;
	uint32_t pos;

	if (!format_parse(cx->arena, text->s.text, &f, &error, &pos)) {
		/* +1 for the quote. Escapes before pos shift the caret a little. */
		loc_t loc = text->loc + 1 + pos < text->end ? text->loc + 1 + pos : text->loc;

		diag_error(cx->diags, loc, 0, "D_SYNTAX", "%s( ) format: %s", n->call.func, error);
		poison(n);
		return false;
	}
	n->aux = f;
	return true;
}

/* Returns the kind of argument that a conversion takes, for messages. */
static const char *conv_takes(enum conv_kind k)
{
	switch (k) {
	case CONV_STRING:
	case CONV_ESC_STRING: return "char [] or string (or use stringof)";
	case CONV_STACK: return "stack";
	case CONV_POINTER:
	case CONV_KADDR:
	case CONV_UADDR: return "pointer or integer";
	case CONV_FLOAT: return "float, double, or long double";
	default: return "integer";
	}
}

static bool is_stack_call(const struct node *a)
{
	return a->kind == N_CALL && a->id &&
	       (a->id->subr == SUBR_STACK || a->id->subr == SUBR_USTACK ||
		a->id->subr == SUBR_JSTACK || a->id->subr == SUBR_LSTACK);
}

/* Returns true for a wchar_t[], an array of 32-bit integers, with %ws or %ls. */
static bool is_wide(struct bind_cx *cx, const struct node *a, const struct conv *c)
{
	type_id t = type_strip(cx->types, a->type);

	return c->kind == CONV_STRING && c->size >= 4 && type_kind(cx->types, t) == TYPE_ARRAY &&
	       type_is_integer(cx->types, type_ref(cx->types, t)) &&
	       type_size(cx->types, type_ref(cx->types, t)) == 4;
}

/* Converts argument a for the conversion. Returns false when it does not fit. */
static bool convert_printf_arg(struct bind_cx *cx, struct node *a, const struct conv *c)
{
	if (is_xlated(a) || a->type == T_VOID)
		return false;
	if (c->kind == CONV_STACK)
		return is_stack_call(a);
	if (a->type == T_DYN)
		return false;
	if (is_wide(cx, a, c))
		return true;
	if (c->kind == CONV_STRING || c->kind == CONV_ESC_STRING)
		return to_string(cx, a);
	decay(cx, a);
	switch (c->kind) {
	case CONV_POINTER:
	case CONV_KADDR:
	case CONV_UADDR:
		if (!is_scalar(cx, a))
			return false;
		cast_to(cx, a, T_UINT64);
		return true;
	case CONV_FLOAT: return type_kind(cx->types, type_strip(cx->types, a->type)) == TYPE_FLOAT;
	case CONV_INET:
		if (is_scalar(cx, a))
			return true;
		return to_string(cx, a);
	case CONV_UNSIGNED:
	case CONV_PORT: return is_scalar(cx, a);
	case CONV_TIME:
	case CONV_DATE:
		if (!is_integer(cx, a))
			return false;
		cast_to(cx, a, T_INT64);
		return true;
	default: return is_integer(cx, a);
	}
}

static const char *conv_text(struct bind_cx *cx, const struct conv *c)
{
	return arena_printf(cx->arena, "%%%c", c->spec);
}

void bind_printf(struct bind_cx *cx, struct node *n, enum subr_id id)
{
	struct node *text = n->call.args, *a;
	const struct format *f;
	uint32_t argn = 2, convn = 0;

	if (text->kind != N_STR) {
		bind_expr(cx, text);
		if (bad_operand(n, text))
			return;
		bind_error(cx, n,
			   id == SUBR_PRINTF && !is_string_like(cx, text) ? "D_PROTO_ARG"
									  : "D_PRINTF_ARG_FMT",
			   "%s( ) argument #1 is incompatible with prototype: prototype: string "
			   "constant, argument: %s",
			   n->call.func, value_text(cx, text));
		return;
	}
	text->type = T_STRING;
	if (!text->s.len && id != SUBR_FREOPEN) {
		bind_error(cx, n, "D_PRINTF_FMT_EMPTY", "%s( ) format string is empty",
			   n->call.func);
		return;
	}
	if (id == SUBR_FREOPEN && !strcmp(text->s.text, ".")) {
		bind_error(cx, n, "D_FREOPEN_INVALID", "%s( ) argument #1 cannot be \"%s\"",
			   n->call.func, text->s.text);
		return;
	}
	for (a = text->next; a; a = a->next) {
		bind_expr(cx, a);
		if (is_poison(a)) {
			poison(n);
			return;
		}
	}
	if (!bind_format(cx, n, text))
		return;
	f = n->aux;
	a = text->next;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct conv *c = &f->convs[i];

		if (c->kind == CONV_LITERAL)
			continue;
		convn++;
		for (uint32_t dyn = CONV_DYN_WIDTH; dyn <= CONV_DYN_PREC; dyn <<= 1) {
			if (!(c->flags & dyn))
				continue;
			if (!a) {
				bind_error(
					cx, n, "D_PRINTF_DYN_PROTO",
					"%s( ) prototype mismatch: conversion #%u (%s) is missing a "
					"corresponding \"*\" argument",
					n->call.func, convn, conv_text(cx, c));
				return;
			}
			if (!is_integer(cx, a)) {
				bind_error(cx, n, "D_PRINTF_DYN_TYPE",
					   "%s( ) argument #%u is incompatible with conversion #%u "
					   "prototype: conversion: *, prototype: int, argument: %s",
					   n->call.func, argn, convn, type_text(cx, a->type));
				return;
			}
			cast_to(cx, a, T_INT);
			a = a->next;
			argn++;
		}
		if (c->flags & CONV_AGG) {
			bind_error(
				cx, n, "D_PRINTF_AGG_CONV",
				"%s( ) conversion #%u (%s) with @ requires an aggregation and is "
				"only for use with printa( )",
				n->call.func, convn, conv_text(cx, c));
			return;
		}
		if (!a) {
			bind_error(cx, n, "D_PRINTF_ARG_PROTO",
				   "%s( ) prototype mismatch: conversion #%u (%s) is missing a "
				   "corresponding value argument",
				   n->call.func, convn, conv_text(cx, c));
			return;
		}
		if (!convert_printf_arg(cx, a, c)) {
			bind_error(
				cx, n, "D_PRINTF_ARG_TYPE",
				"%s( ) argument #%u is incompatible with conversion #%u prototype: "
				"conversion: %s, prototype: %s, argument: %s",
				n->call.func, argn, convn, conv_text(cx, c), conv_takes(c->kind),
				value_text(cx, a));
			return;
		}
		a = a->next;
		argn++;
	}
	if (a)
		bind_error(cx, n, "D_PRINTF_ARG_EXTRA",
			   "%s( ) prototype mismatch: only %u argument%s required by this format "
			   "string",
			   n->call.func, argn - 2, argn == 3 ? "" : "s");
}

/* Returns true when a key of type t fits the conversion. */
static bool key_suits(struct bind_cx *cx, type_id t, enum subr_id subr, const struct conv *c)
{
	bool stack = subr == SUBR_STACK || subr == SUBR_USTACK || subr == SUBR_JSTACK ||
		     subr == SUBR_LSTACK;

	if (t == T_DYN) {
		if (c->kind == CONV_STACK)
			return stack;
		return !stack &&
		       (c->kind == CONV_KADDR || c->kind == CONV_UADDR || c->kind == CONV_STRING);
	}
	switch (c->kind) {
	case CONV_STRING:
	case CONV_ESC_STRING: return type_is_string(cx->types, t);
	case CONV_STACK: return false;
	case CONV_FLOAT: return type_kind(cx->types, type_strip(cx->types, t)) == TYPE_FLOAT;
	case CONV_POINTER:
	case CONV_KADDR:
	case CONV_UADDR:
	case CONV_UNSIGNED:
	case CONV_PORT: return type_is_scalar(cx->types, t);
	case CONV_INET: return type_is_string(cx->types, t) || type_is_scalar(cx->types, t);
	default: return type_is_integer(cx->types, t);
	}
}

void check_printa(struct bind_cx *cx, struct node *n, uint32_t agg)
{
	struct bound *b = cx->state->out;
	const struct format *f = n->aux;
	uint32_t key = 0, convn = 0;

	for (uint32_t i = 0; f && i < f->n; i++) {
		const struct conv *c = &f->convs[i];

		if (c->kind == CONV_LITERAL)
			continue;
		convn++;
		for (uint32_t dyn = CONV_DYN_WIDTH; dyn <= CONV_DYN_PREC; dyn <<= 1) {
			if (!(c->flags & dyn))
				continue;
			if (key >= b->aggs.v[agg]->nkeys) {
				bind_error(
					cx, n, "D_PRINTF_DYN_PROTO",
					"printa( ) conversion #%u (%s) is missing a corresponding "
					"\"*\" key of @%s",
					convn, conv_text(cx, c), b->aggs.v[agg]->name);
				return;
			}
			if (!type_is_integer(cx->types, b->agg_key_types.v[agg][key])) {
				bind_error(
					cx, n, "D_PRINTF_DYN_TYPE",
					"printa( ) @%s key #%u is the width of conversion #%u and must be "
					"an integer",
					b->aggs.v[agg]->name, key + 1, convn);
				return;
			}
			key++;
		}
		if (c->flags & CONV_AGG)
			continue;
		if (key >= b->aggs.v[agg]->nkeys) {
			bind_error(cx, n, "D_PRINTF_ARG_PROTO",
				   "printa( ) prototype mismatch: conversion #%u (%s) is missing a "
				   "corresponding key of @%s",
				   convn, conv_text(cx, c), b->aggs.v[agg]->name);
			return;
		}
		if (!key_suits(cx, b->agg_key_types.v[agg][key],
			       cx->state->agg_info.v[agg]->key_subr[key], c)) {
			type_id t = b->agg_key_types.v[agg][key];

			bind_error(
				cx, n, "D_PRINTF_ARG_TYPE",
				"printa( ) @%s key #%u is incompatible with conversion #%u prototype: "
				"conversion: %s, prototype: %s, key: %s",
				b->aggs.v[agg]->name, key + 1, convn, conv_text(cx, c),
				conv_takes(c->kind),
				t == T_DYN
					? subr_table[cx->state->agg_info.v[agg]->key_subr[key]].name
					: type_text(cx, t));
			return;
		}
		key++;
	}
}
