/* Finds the code of CPython 3.13 that makes an object.
 *
 * Each object, also one that a list of free ones had, gets its first reference in
 * new_reference(), which calls the tracer that PyRefTracer_SetTracer() has set, if there is one.
 * The compiler copies this function to some hundred places. So the search begins at each
 * instruction that reads the variable, and follows the code on all ways to the call of the tracer.
 * The call's arguments show the register that has the object, and whether it is made or freed. */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/python/allocations.h"

enum {
	PROGRAM_MAX = 64 << 20,
	READS_MAX = 4096, /* instructions that read the variable */
	WAYS_MAX = 16,    /* from one of them */
	WAY_MAX = 48,     /* instructions of a way */
	GETTER_MAX = 16,  /* instructions of PyRefTracer_GetTracer() */
	GENERAL = 16,
	RSI = 6,
	RDI = 7,
	STORE_MIN = 7, /* bytes of mov [...], 1 */
	STORE_MAX = 9,
	CREATE = 0, /* PyRefTracerEvent */
	DESTROY = 1,
};

/* What a register has, in terms of the registers at the beginning of the way. */
enum value_is { VALUE_UNKNOWN, VALUE_FROM, VALUE_NUMBER, VALUE_TRACER };
struct value {
	enum value_is is;
	uint8_t reg;
	int64_t n; /* of VALUE_FROM: bytes behind it */
};

struct way {
	uint64_t at, place; /* place: the instruction that reads the variable */
	struct value regs[GENERAL];
	bool tested; /* the flags say whether the tracer is NULL */
};

struct tracer_search {
	uint8_t *text;
	uint64_t addr;
	uint32_t n;
	uint64_t variable;
	struct python_allocations *ret;
	ZydisDecoder decoder;
};

struct decoded {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const struct tracer_search *x, uint64_t at, struct decoded *ret)
{
	const uint64_t off = at - x->addr;

	return off < x->n && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&x->decoder, x->text + off,
								 x->n - off, &ret->z, ret->ops));
}

static int register_of(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER ? python_x86_register(op->reg.value) : -1;
}

/* Returns the address of an operand that is a variable, else 0. next: of the next instruction. */
static uint64_t variable_of(const ZydisDecodedOperand *op, uint64_t next)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RIP
		       ? next + (uint64_t)op->mem.disp.value
		       : 0;
}

static struct value value_of(const struct tracer_search *x, const struct way *w,
			     const struct decoded *d, const ZydisDecodedOperand *op)
{
	struct value v = { VALUE_UNKNOWN, 0, 0 };
	int reg = register_of(op);

	if (reg >= 0)
		return op->size == 64 || w->regs[reg].is == VALUE_NUMBER ? w->regs[reg] : v;
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (struct value){ VALUE_NUMBER, 0, op->imm.value.s };
	if (w->at == w->place && variable_of(op, w->at + d->z.length) == x->variable)
		v.is = VALUE_TRACER;
	return v;
}

/* Returns what the first operand gets. */
static struct value result_of(const struct tracer_search *x, const struct way *w,
			      const struct decoded *d)
{
	struct value v = { VALUE_UNKNOWN, 0, 0 };
	int base;

	switch (d->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV: return value_of(x, w, d, &d->ops[1]);
	case ZYDIS_MNEMONIC_XOR:
		if (register_of(&d->ops[0]) >= 0 &&
		    register_of(&d->ops[0]) == register_of(&d->ops[1]))
			v.is = VALUE_NUMBER;
		return v;
	case ZYDIS_MNEMONIC_LEA:
		base = python_x86_register(d->ops[1].mem.base);
		if (base >= 0 && d->ops[1].mem.index == ZYDIS_REGISTER_NONE &&
		    d->ops[0].size == 64 && w->regs[base].is == VALUE_FROM) {
			v = w->regs[base];
			v.n += d->ops[1].mem.disp.value;
		}
		return v;
	default: return v;
	}
}

static void step_registers(const struct tracer_search *x, struct way *w, const struct decoded *d)
{
	const int to = register_of(&d->ops[0]);
	const struct value v = result_of(x, w, d);

	for (uint32_t i = 0; i < d->z.operand_count; i++) {
		int reg = d->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE
				  ? register_of(&d->ops[i])
				  : -1;

		if (reg >= 0)
			w->regs[reg].is = VALUE_UNKNOWN;
	}
	if (to >= 0 && d->ops[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && d->ops[0].size >= 32)
		w->regs[to] = v;
}

/* What a call of the tracer says. */
enum said { SAID_NOTHING, SAID_CREATE, SAID_DESTROY, SAID_UNKNOWN };

/* Takes the instruction in front of the place: one that stores the number 1 in the object. */
static bool take_store(const struct tracer_search *x, uint64_t place, struct python_allocation *ret)
{
	for (uint32_t n = STORE_MIN; n <= STORE_MAX; n++) {
		struct decoded d;
		int64_t at;
		int reg;

		if (!decode(x, place - n, &d) || d.z.length != n ||
		    d.z.mnemonic != ZYDIS_MNEMONIC_MOV ||
		    d.ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY || d.ops[0].size != 64 ||
		    d.ops[0].mem.index != ZYDIS_REGISTER_NONE ||
		    d.ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || d.ops[1].imm.value.s != 1)
			continue;
		reg = python_x86_register(d.ops[0].mem.base);
		at = d.ops[0].mem.disp.has_displacement ? d.ops[0].mem.disp.value : 0;
		if (reg < 0 || at != (int16_t)at)
			continue;
		*ret = (struct python_allocation){ place - n, (uint8_t)reg, (int16_t)at };
		return true;
	}
	return false;
}

/* The object may have been in no register when the variable was read. */
static enum said take_call(const struct tracer_search *x, const struct way *w,
			   struct python_allocation *ret)
{
	const struct value *object = &w->regs[RDI], *event = &w->regs[RSI];

	if (event->is != VALUE_NUMBER)
		return SAID_UNKNOWN;
	if (event->n == DESTROY)
		return SAID_DESTROY;
	if (event->n != CREATE)
		return SAID_UNKNOWN;
	if (object->is != VALUE_FROM)
		return take_store(x, w->place, ret) ? SAID_CREATE : SAID_UNKNOWN;
	if (object->n != (int16_t)object->n)
		return SAID_UNKNOWN;
	*ret = (struct python_allocation){ w->place, object->reg, (int16_t)object->n };
	return SAID_CREATE;
}

static bool has_tracer(const struct way *w)
{
	for (uint32_t i = 0; i < GENERAL; i++)
		if (w->regs[i].is == VALUE_TRACER)
			return true;
	return false;
}

/* Follows an instruction that is no jump. */
static void step(const struct tracer_search *x, struct way *w, const struct decoded *d)
{
	const int reg = register_of(&d->ops[0]);

	if (d->z.mnemonic == ZYDIS_MNEMONIC_TEST)
		w->tested = reg >= 0 && reg == register_of(&d->ops[1]) &&
			    w->regs[reg].is == VALUE_TRACER;
	else if (d->z.cpu_flags && d->z.cpu_flags->modified)
		w->tested = false;
	step_registers(x, w, d);
	w->at += d->z.length;
}

/* Follows a conditional branch. Puts the other way behind the list. Where the tracer was compared
 * with NULL, only the way on which it is not NULL goes on. */
static void branch(struct way *w, const struct decoded *d, struct way *ways, uint32_t *nways)
{
	const uint64_t next = w->at + d->z.length, to = next + (uint64_t)d->ops[0].imm.value.s;

	w->at = next;
	if (w->tested && d->z.mnemonic == ZYDIS_MNEMONIC_JZ)
		return;
	if (w->tested && d->z.mnemonic == ZYDIS_MNEMONIC_JNZ) {
		w->at = to;
		return;
	}
	if (*nways < WAYS_MAX) {
		ways[*nways] = *w;
		ways[(*nways)++].at = to;
	}
}

/* Follows one way, as long as a register has the tracer. */
static enum said follow_way(const struct tracer_search *x, struct way w, struct way *ways,
			    uint32_t *nways, struct python_allocation *ret)
{
	struct decoded d;

	for (uint32_t i = 0; i < WAY_MAX && (!i || has_tracer(&w)) && decode(x, w.at, &d); i++) {
		if (d.z.meta.category == ZYDIS_CATEGORY_RET)
			return SAID_NOTHING;
		if (d.z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE) {
			step(x, &w, &d);
			continue;
		}
		if (d.ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return value_of(x, &w, &d, &d.ops[0]).is == VALUE_TRACER
				       ? take_call(x, &w, ret)
				       : SAID_NOTHING;
		if (d.z.meta.category == ZYDIS_CATEGORY_CALL)
			return SAID_NOTHING; /* of a tracer that the compiler expects here */
		if (d.z.meta.category == ZYDIS_CATEGORY_COND_BR)
			branch(&w, &d, ways, nways);
		else
			w.at += d.z.length + (uint64_t)d.ops[0].imm.value.s;
	}
	return SAID_NOTHING;
}

/* Follows all ways from an instruction that reads the variable. */
static enum said follow_read(const struct tracer_search *x, uint64_t from,
			     struct python_allocation *ret)
{
	struct way ways[WAYS_MAX] = { { .at = from, .place = from } };
	enum said all = SAID_NOTHING;
	uint32_t n = 1;

	for (uint32_t i = 0; i < GENERAL; i++)
		ways[0].regs[i] = (struct value){ VALUE_FROM, (uint8_t)i, 0 };
	for (uint32_t i = 0; i < n; i++) {
		struct python_allocation a = { 0 };
		enum said said = follow_way(x, ways[i], ways, &n, &a);

		if (said == SAID_NOTHING)
			continue;
		if (all != SAID_NOTHING &&
		    (said != all || a.object != ret->object || a.moved != ret->moved))
			return SAID_UNKNOWN;
		all = said;
		*ret = a;
	}
	return all;
}

/* Finds the variable: PyRefTracer_GetTracer() returns its value, and that of the one behind it. */
static bool find_variable(struct tracer_search *x, const struct object_symbol *getter)
{
	uint64_t at = getter->addr;
	struct decoded d;

	x->variable = 0;
	for (uint32_t i = 0; i < GETTER_MAX && decode(x, at, &d); i++) {
		uint64_t v = d.z.mnemonic == ZYDIS_MNEMONIC_MOV && d.ops[1].size == 64
				     ? variable_of(&d.ops[1], at + d.z.length)
				     : 0;

		if (v && (!x->variable || v < x->variable))
			x->variable = v;
		at += d.z.length;
		if (at - getter->addr >= getter->size)
			break;
	}
	return x->variable;
}

/* Returns true for an instruction that reads the variable: mov register, [...], or cmp [...], 0. */
static bool reads_variable(const struct tracer_search *x, uint32_t at)
{
	struct decoded d;

	if ((x->text[at] & 0xf8) != 0x48 || (x->text[at + 1] != 0x8b && x->text[at + 1] != 0x83) ||
	    (x->text[at + 2] & 0xc7) != 0x05 || !decode(x, x->addr + at, &d))
		return false;
	for (uint32_t i = 0; i < 2; i++)
		if (d.ops[i].size == 64 &&
		    variable_of(&d.ops[i], x->addr + at + d.z.length) == x->variable)
			return true;
	return 0;
}

/* Finds all places. Each read must be understood, but for the one of the variable's own getter. */
static const char *find_reads(struct tracer_search *x, const struct object_symbol *getter)
{
	uint32_t reads = 0;

	for (uint32_t i = 0; i + 8 <= x->n; i++) {
		struct python_allocation a;

		if (!reads_variable(x, i))
			continue;
		if (reads++ == READS_MAX || x->ret->n == PYTHON_ALLOCATIONS_MAX)
			return "its code is not as in other builds";
		switch (follow_read(x, x->addr + i, &a)) {
		case SAID_CREATE: x->ret->v[x->ret->n++] = a; break;
		case SAID_DESTROY: break;
		case SAID_NOTHING:
			if (x->addr + i - getter->addr < getter->size)
				break;
			/* fall through */
		case SAID_UNKNOWN: return "the code that makes an object is not as in other builds";
		}
	}
	return NULL;
}

/* Returns true when one of the places found is in the exported function. */
static bool has_exported(const struct tracer_search *x, const struct object_symbol *exported)
{
	for (uint32_t i = 0; i < x->ret->n; i++)
		if (x->ret->v[i].addr - exported->addr < exported->size)
			return true;
	return false;
}

const char *python_traced_references(struct object *o, struct python_allocations *ret)
{
	const struct object_symbol *exported = object_find_name(o, "_Py_NewReference");
	const struct object_symbol *getter = object_find_name(o, "PyRefTracer_GetTracer");
	struct tracer_search x = { .ret = ret };
	const char *reason = "its code is not as in other builds";
	uint64_t off, n;

	if (!exported || !getter || !object_text_segment(o, 0, &off, &n, &x.addr) ||
	    n > PROGRAM_MAX)
		return reason;
	ZydisDecoderInit(&x.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	x.text = xmalloc(n);
	x.n = (uint32_t)object_read(o, x.addr, x.text, (uint32_t)n);
	if (find_variable(&x, getter)) {
		reason = find_reads(&x, getter);
		if (!reason && !has_exported(&x, exported))
			reason = "the code that makes an object is not as in other builds";
	}
	free(x.text);
	return reason;
}
