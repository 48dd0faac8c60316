/* The arguments of a probe that a program carries itself: from the operands of its note. */
#include <string.h>

#include "probe/usdt.h"

static type_id type_of_size(int size)
{
	switch (size) {
	case 1: return T_UINT8;
	case -1: return T_INT8;
	case 2: return T_UINT16;
	case -2: return T_INT16;
	case 4: return T_UINT32;
	case -4: return T_INT32;
	case 8: return T_UINT64;
	default: return T_INT64;
	}
}

/* Returns the next type of DOF's list when the type is known and as wide as the operand; else a
 * type of the operand's size. */
static type_id next_type(struct probe_set *ps, const char **types, const struct probe_arg *a)
{
	type_id by_size = type_of_size(a->usdt.size), t;
	const char *name = *types;

	if (!name || !*name)
		return by_size;
	*types += strlen(name) + 1;
	return type_parse_name(ps->types, name, &t) && type_is_scalar(ps->types, t) ? t : by_size;
}

struct err *usdt_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	const struct usdt_place *place = p->priv;
	const char *text = place->args, *types = place->types, *start;
	size_t n;

	ret->known = true;
	for (uint32_t i = 0; i < place->noperands; i++) {
		ret->arg[i] = (struct probe_arg){ .source = ARG_USDT, .usdt = place->operands[i] };
		ret->typed[i] = ret->arg[i];
		ret->typed[i].type = type_of_size(ret->arg[i].usdt.size);
		ret->ntyped = i + 1;
	}
	if (place->flags.size)
		ret->arg[PROBE_FILTER_ARG] =
			(struct probe_arg){ .source = ARG_USDT, .usdt = place->flags };
	if (place->noperands)
		return NULL;
	for (uint32_t i = 0; i < ARRAY_SIZE(ret->arg) && usdt_next_operand(&text, &start, &n);
	     i++) {
		struct probe_arg *a = &ret->arg[i];
		const char *reason;

		if (usdt_parse_operand(start, n, place->object, place->addr, &a->usdt, &reason)) {
			a->source = ARG_USDT;
			if (a->usdt.mode == USDT_CONST) {
				a->source = ARG_CONST;
				a->value = a->usdt.disp;
			}
		}
		ret->typed[i] = *a;
		ret->typed[i].type = a->source == ARG_NONE ? T_INT64 : next_type(ps, &types, a);
		ret->ntyped = i + 1;
	}
	if (!strncmp(p->prov, "java", 4) && !strcmp(p->name, "entry"))
		usdt_java_args(ps, p, ret);
	return NULL;
}
