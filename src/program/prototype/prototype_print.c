/* Prints prototypes in the language that prototype_parse.c reads. */
#include "program/prototype/prototype.h"

static void print_length(struct out *o, const struct prototype_length *l)
{
	bool wraps = l->zero && l->count != COUNT_ZERO;

	if (wraps)
		out_str(o, "zero(");
	switch (l->count) {
	case COUNT_NUMBER: out_unsigned(o, l->value, 0); break;
	case COUNT_ARG: out_printf(o, "arg%llu", (unsigned long long)l->value); break;
	case COUNT_ELEMENT: out_printf(o, "elt%llu", (unsigned long long)l->value); break;
	case COUNT_RESULT: out_str(o, "retval"); break;
	case COUNT_ZERO: out_str(o, "zero"); break;
	}
	if (wraps)
		out_char(o, ')');
}

static void print_names(struct out *o, const struct prototype_type *t)
{
	for (uint32_t i = 0; i < t->nnames; i++) {
		out_printf(o, "%s%s=%lld", i ? ", " : "", t->names[i].name,
			   (long long)t->names[i].value);
		if (t->names[i].mask != t->names[i].value)
			out_printf(o, "/%lld", (long long)t->names[i].mask);
	}
}

static const char *integer_name(const struct prototype_type *t)
{
	static const char *const names[2][4] = { { "uchar", "ushort", "uint", "ulong" },
						 { "char", "short", "int", "long" } };

	return names[t->is_signed][t->size == 1 ? 0 : t->size == 2 ? 1 : t->size == 4 ? 2 : 3];
}

/* The structures around a type. */
struct around_type {
	const struct prototype_type *type;
	const struct around_type *outer;
};

static void print_type(struct out *o, const struct prototype_type *t, uint32_t depth,
		       const struct around_type *outer);

static void print_struct_type(struct out *o, const struct prototype_type *t, uint32_t depth,
			      const struct around_type *outer)
{
	const struct around_type here = { t, outer };

	out_str(o, "struct");
	if (t->unknown)
		return;
	for (; outer; outer = outer->outer)
		if (outer->type == t)
			return; /* it is within itself */
	out_char(o, '(');
	for (uint32_t i = 0; i < t->nfields; i++) {
		out_str(o, i ? ", " : "");
		print_type(o, t->fields[i], depth, &here);
		if (t->field_names[i])
			out_printf(o, " %s", t->field_names[i]);
	}
	out_char(o, ')');
}

static void print_plain(struct out *o, const struct prototype_type *t, uint32_t depth,
			const struct around_type *outer)
{
	switch (t->kind) {
	case PROTOTYPE_VOID: out_str(o, "void"); break;
	case PROTOTYPE_INT: out_str(o, integer_name(t)); break;
	case PROTOTYPE_FLOAT:
		out_str(o, t->size == 4 ? "float" : t->size == 8 ? "double" : "ldouble");
		break;
	case PROTOTYPE_POINTER:
		print_type(o, t->target, depth, outer);
		out_char(o, '*');
		break;
	case PROTOTYPE_STRUCT: print_struct_type(o, t, depth, outer); break;
	case PROTOTYPE_ARRAY:
		out_str(o, "array(");
		print_type(o, t->target, depth, outer);
		out_str(o, ", ");
		print_length(o, &t->length);
		out_char(o, ')');
		break;
	}
}

static void print_type(struct out *o, const struct prototype_type *t, uint32_t depth,
		       const struct around_type *outer)
{
	static const char *const lenses[] = {
		[LENS_HEX] = "hex",       [LENS_OCT] = "oct",       [LENS_BOOL] = "bool",
		[LENS_BITVEC] = "bitvec", [LENS_STRING] = "string", [LENS_HIDE] = "hide",
	};
	const char *lens = t->lens < ARRAY_SIZE(lenses) ? lenses[t->lens] : NULL;

	if (t->fails)
		out_str(o, "errno(");
	if (depth == 2 * PROTOTYPE_DEPTH || (t->lens == LENS_DOTS && !t->unknown)) {
		out_str(o, "...");
	} else if (t->lens == LENS_FORMAT) {
		out_str(o, "format");
		if (prototype_is_wide(t)) {
			out_char(o, '(');
			print_plain(o, t, depth + 1, outer);
			out_char(o, ')');
		}
	} else if (t->lens == LENS_ENUM || t->lens == LENS_FLAGS) {
		out_printf(o, "%s[%s](", t->lens == LENS_ENUM ? "enum" : "flags", integer_name(t));
		print_names(o, t);
		out_char(o, ')');
	} else if (lens) {
		out_printf(o, "%s(", lens);
		print_plain(o, t, depth + 1, outer);
		out_char(o, ')');
	} else {
		print_plain(o, t, depth + 1, outer);
	}
	if (t->fails)
		out_char(o, ')');
}

void prototype_type_print(struct out *o, const struct prototype_type *t)
{
	print_type(o, t, 0, NULL);
}

void prototype_print(struct out *o, const struct prototype *f)
{
	print_type(o, f->result, 0, NULL);
	out_printf(o, " %s(", f->name);
	for (uint32_t i = 0; i < f->nparams; i++) {
		out_str(o, i ? ", " : "");
		if (f->params[i].out)
			out_char(o, '+');
		print_type(o, f->params[i].type, 0, NULL);
	}
	out_str(o, ");");
}
