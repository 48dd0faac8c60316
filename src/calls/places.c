/* Where the arguments and the result of a call are: the calling convention of the System V ABI for
 * x86-64 (section 3.2.3), as far as prototypes have types for it. */
#include "calls/calls.h"

enum { INTEGERS = 6, NO_CLASS = 0, CLASS_INTEGER, CLASS_VECTOR, CLASS_STACK };

/* Finds the classes of the two words of a type. */
static void classify(const struct prototype_type *t, uint32_t offset, uint8_t class[2])
{
	uint32_t at = 0;

	if (offset + t->size > 16 || (t->kind == PROTOTYPE_FLOAT && t->size > 8)) {
		class[0] = CLASS_STACK;
		return;
	}
	switch (t->kind) {
	case PROTOTYPE_VOID: break;
	case PROTOTYPE_FLOAT:
		if (!class[offset / 8])
			class[offset / 8] = CLASS_VECTOR;
		break;
	case PROTOTYPE_STRUCT:
		for (uint32_t i = 0; i < t->nfields; i++) {
			at = (uint32_t)round_up(at, t->fields[i]->align);
			if (class[0] != CLASS_STACK)
				classify(t->fields[i], offset + at, class);
			at += t->fields[i]->size;
		}
		break;
	case PROTOTYPE_ARRAY:
		for (at = 0; t->target->size && at < t->size && class[0] != CLASS_STACK;
		     at += t->target->size)
			classify(t->target, offset + at, class);
		break;
	case PROTOTYPE_INT:
	case PROTOTYPE_POINTER:
		if (class[0] != CLASS_STACK)
			class[offset / 8] = CLASS_INTEGER;
		break;
	}
}

/* What arguments have taken so far. */
struct taken {
	uint32_t integers, vectors, stack;
};

static struct calls_place place_next(struct taken *k, const struct prototype_type *t)
{
	struct calls_place p = { 0 };
	uint8_t class[2] = { NO_CLASS };
	uint32_t integers, vectors;

	classify(t, 0, class);
	integers = (class[0] == CLASS_INTEGER) + (class[1] == CLASS_INTEGER);
	vectors = (class[0] == CLASS_VECTOR) + (class[1] == CLASS_VECTOR);
	if (class[0] != CLASS_STACK && k->integers + integers <= INTEGERS &&
	    k->vectors + vectors <= CALLS_VECTORS) {
		for (int i = 0; i < 2 && class[i]; i++) {
			p.piece[i].vector = class[i] == CLASS_VECTOR;
			p.piece[i].number = class[i] == CLASS_VECTOR ? k->vectors++ : k->integers++;
			p.npieces++;
		}
		return p;
	}
	if (t->align > 8)
		k->stack = (uint32_t)round_up(k->stack, t->align);
	p.stack = k->stack;
	p.size = t->size;
	k->stack += (uint32_t)round_up(t->size, 8);
	/* D has some words of the stack as arguments. */
	if (t->size <= 8 && class[0] == CLASS_INTEGER && p.stack / 8 + INTEGERS < CALLS_REGISTERS) {
		p.piece[0].number = INTEGERS + p.stack / 8;
		p.npieces = 1;
		p.size = 0;
	}
	return p;
}

struct calls_place calls_result_place(const struct prototype *f)
{
	struct taken k = { 0 };

	return place_next(&k, f->result);
}

struct calls_place calls_place(const struct prototype *f, uint32_t param)
{
	struct taken k = { 0 };

	/* The address for a result in memory is the first argument. */
	if (f->result->kind == PROTOTYPE_STRUCT && calls_result_place(f).size)
		k.integers = 1;
	for (uint32_t i = 0; i < param; i++)
		(void)place_next(&k, f->params[i].type);
	return place_next(&k, f->params[param].type);
}

int calls_register(const struct prototype *f, uint32_t param)
{
	const struct calls_place p = calls_place(f, param);

	return p.npieces && !p.piece[0].vector ? (int)p.piece[0].number : -1;
}

int calls_vector(const struct prototype *f, uint32_t param)
{
	const struct calls_place p = calls_place(f, param);

	return p.npieces && p.piece[0].vector ? (int)p.piece[0].number : -1;
}

/* Returns the number of registers of one kind up to the last that has a part of a parameter. */
static uint32_t count_registers(const struct prototype *f, bool vector)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->nparams; i++) {
		const struct calls_place p = calls_place(f, i);

		for (uint32_t k = 0; k < p.npieces; k++)
			if (p.piece[k].vector == vector && n <= p.piece[k].number)
				n = p.piece[k].number + 1;
	}
	return n;
}

uint32_t calls_nvectors(const struct prototype *f)
{
	return count_registers(f, true);
}

uint32_t calls_nregisters(const struct prototype *f)
{
	for (uint32_t i = 0; i < f->nparams; i++)
		if (f->params[i].type->lens == LENS_FORMAT)
			return CALLS_REGISTERS;
	return count_registers(f, false);
}

bool calls_on_stack(const struct prototype *f, uint32_t param)
{
	const struct prototype_type *t = f->params[param].type;
	const struct calls_place p = calls_place(f, param);

	return p.size && p.size <= CALLS_MEMORY_MAX && !f->params[param].out &&
	       t->lens != LENS_HIDE && t->lens != LENS_DOTS;
}
