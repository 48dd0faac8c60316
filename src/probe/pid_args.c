/* The arguments of probes on functions of a process, by the psABI and by debug information. */
#include "probe/pid_args.h"

#include <string.h>

enum {
	NREGS = 6,
	MAX_BY_VALUE = 4096,
	PARTS_MAX = 1024, /* of a value of 16 bytes; a hostile union may have itself as members */
};

static const enum user_reg arg_regs[NREGS] = { UREG_RDI, UREG_RSI, UREG_RDX,
					       UREG_RCX, UREG_R8,  UREG_R9 };

static struct probe_arg on_stack(uint32_t word, type_id type)
{
	return (struct probe_arg){ .source = ARG_USDT,
				   .type = type,
				   .usdt = { .size = 8,
					     .mode = USDT_MEM,
					     .disp = 8 * ((int64_t)word + 1),
					     .base = UREG_RSP,
					     .index = -1,
					     .scale = 1 } };
}

/* Describes the value of a register. A narrow integer fills only the low part of it. */
static struct probe_arg in_register(struct probe_set *ps, enum user_reg reg, type_id type)
{
	struct probe_arg a = { .source = ARG_REG, .value = reg, .type = type };
	uint64_t size = type_size(ps->types, type);

	if (!type_is_integer(ps->types, type) || !size || size >= 8)
		return a;
	a.source = ARG_USDT;
	a.usdt = (struct usdt_operand){ .mode = USDT_REG, .base = (int8_t)reg, .index = -1 };
	a.usdt.size = (int8_t)(type_is_signed(ps->types, type) ? -(int)size : (int)size);
	return a;
}

/* The psABI's way to pass a value: in integer and SSE registers, in the order of its eightbytes, or
 * in memory. */
struct passing {
	uint32_t nint, nsse;
	bool memory;
	bool unknown;   /* the type has too many parts */
	uint32_t parts; /* seen */
	bool is_int[2]; /* for each eightbyte: it goes into an integer register */
};

/* Marks the eightbytes of t, at byte `at` of the value, that hold anything except floating
 * point. */
static void mark_integers(struct type_graph *g, type_id t, uint64_t at, struct passing *p,
			  uint32_t depth)
{
	type_id s = type_strip(g, t);
	const struct type_member *m;
	uint32_t n;

	if (p->unknown || at >= 16 || (p->is_int[0] && p->is_int[1]))
		return;
	if (++p->parts > PARTS_MAX) {
		p->unknown = true;
		return;
	}
	switch (type_kind(g, s)) {
	case TYPE_STRUCT:
	case TYPE_UNION:
		m = type_members(g, s, &n);
		for (uint32_t i = 0; i < n && depth < 16; i++)
			mark_integers(g, m[i].type, at + m[i].bit_offset / 8, p, depth + 1);
		return;
	case TYPE_ARRAY:
		for (uint32_t i = 0; i < type_nelems(g, s) && i < 16 && depth < 16; i++)
			mark_integers(g, type_ref(g, s), at + i * type_size(g, type_ref(g, s)), p,
				      depth + 1);
		return;
	case TYPE_FLOAT: return;
	default: p->is_int[at / 8] = true;
	}
}

static struct passing passing(struct type_graph *g, type_id t)
{
	type_id s = type_strip(g, t);
	uint64_t size = type_size(g, s);
	struct passing p = { 0 };

	if (size > 16 || (type_kind(g, s) == TYPE_FLOAT && size > 8)) {
		p.memory = true;
		return p;
	}
	mark_integers(g, s, 0, &p, 0);
	if (size > 8 && type_kind(g, s) == TYPE_INT)
		p.is_int[1] = true; /* __int128 */
	for (uint32_t i = 0; i < (size > 8 ? 2u : 1u) && size; i++) {
		p.nint += p.is_int[i];
		p.nsse += !p.is_int[i];
	}
	return p;
}

/* Returns true when the type's size and members do not decide how it is passed. A C++ class with a
 * copy constructor is passed by reference. */
static bool is_opaque(struct probe_set *ps, const struct probe *p, type_id t)
{
	return type_is_sou(ps->types, t) && !strncmp(p->func, "_Z", 2);
}

/* Describes args[] of a function. A floating-point argument is 0, because programs cannot read SSE
 * registers. A structure passed by value gives its first word. */
static void entry_types(struct probe_set *ps, const struct probe *p, type_id func,
			struct probe_args *ret)
{
	uint32_t nparams, reg = 0, sse = 0, word = 0;
	bool varargs;
	const struct type_param *params = type_params(ps->types, func, &nparams, &varargs);
	type_id result = type_ref(ps->types, func);

	if (is_opaque(ps, p, result))
		return;
	if (type_is_sou(ps->types, result)) {
		struct passing how = passing(ps->types, result);

		if (how.unknown)
			return;
		reg = how.memory; /* the register that holds the address of the result */
	}
	for (uint32_t i = 0; i < nparams && i < ARRAY_SIZE(ret->typed); i++) {
		struct passing how = passing(ps->types, params[i].type);
		bool scalar = type_is_scalar(ps->types, params[i].type);
		type_id type = scalar ? params[i].type : T_INT64;
		struct probe_arg a = { .source = ARG_NONE, .type = T_INT64 };
		uint64_t size = type_size(ps->types, params[i].type);

		if (how.unknown || is_opaque(ps, p, params[i].type))
			break;
		if (how.memory || reg + how.nint > NREGS || sse + how.nsse > 8) {
			a = on_stack(word, type);
			if (scalar && size < 8 && size) {
				bool is_signed = type_is_signed(ps->types, type);

				a.usdt.size = (int8_t)(is_signed ? -(int)size : (int)size);
			}
			word += size && size <= MAX_BY_VALUE ? (uint32_t)((size + 7) / 8) : 1;
		} else {
			if (how.nint)
				a = in_register(ps, arg_regs[reg], type);
			reg += how.nint;
			sse += how.nsse;
		}
		ret->typed[i] = a;
		ret->ntyped = i + 1;
	}
	ret->known = true;
}

/* Describes args[1], the returned value in its type, and args[0], which equals arg0. */
static void return_types(struct probe_set *ps, type_id func, struct probe_args *ret)
{
	type_id type = type_ref(ps->types, func);

	ret->known = true;
	ret->typed[0] = ret->arg[0];
	ret->ntyped = 1;
	if (type_kind(ps->types, type_strip(ps->types, type)) == TYPE_VOID)
		return;
	ret->typed[1] = in_register(ps, UREG_RAX, type_is_scalar(ps->types, type) ? type : T_INT64);
	if (type_kind(ps->types, type_strip(ps->types, type)) == TYPE_FLOAT)
		ret->typed[1] = (struct probe_arg){ .source = ARG_NONE, .type = T_INT64 };
	ret->ntyped = 2;
}

struct err *pid_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret)
{
	/* The compiler gave foo.isra.0 other parameters than foo has. */
	bool entry = !strcmp(p->name, "entry"), whole = ps->types && !strchr(p->func, '.');
	type_id func;

	if (p->kind == ATTACH_URETPROBE) {
		ret->arg[0].source = ARG_CONST;
		ret->arg[1].source = ARG_RETURN;
		if (whole && type_user_func(ps->types, p->object, p->addr, &func))
			return_types(ps, func, ret);
		return NULL;
	}
	for (uint32_t i = 0; i < NREGS; i++) {
		ret->arg[i].source = ARG_REG;
		ret->arg[i].value = arg_regs[i];
	}
	for (uint32_t i = NREGS; entry && i < ARRAY_SIZE(ret->arg); i++)
		ret->arg[i] = on_stack(i - NREGS, T_INT64);
	if (entry && whole && type_user_func(ps->types, p->object, p->addr, &func))
		entry_types(ps, p, func, ret);
	return NULL;
}
