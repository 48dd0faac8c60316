/* Finds the code of CPython 3.9 to 3.11 that makes an object.
 *
 * Each object, also one that a list of free ones had, gets its first reference in
 * _Py_NewReference(), which first looks whether tracemalloc is on. A build with optimization at
 * link time has copies of this function in some hundred places. So the search begins at each
 * instruction that reads the variable, and follows the code behind the next conditional branch, on
 * both ways, up to the store of 1. Its operand is the object's address. */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/python/allocations.h"

enum {
	PROGRAM_MAX = 64 << 20,
	READS_MAX = 4096, /* instructions that read the variable */
	PATHS_MAX = 16,   /* ways from one of them */
	PATH_MAX = 48,    /* instructions of a way */
	CONFIG_TRACING = 4,
	MOV_LOAD = 0x8b, /* mov register, [...] */
	CMP_BYTE = 0x83, /* cmp [...], byte */
	FROM_RIP = 0x05, /* a ModRM byte without its register */
	FROM_RIP_MASK = 0xc7,
	CMP_FROM_RIP = 0x3d,
};

struct reference_search {
	uint8_t *text;
	uint64_t addr;
	uint32_t n;
	struct python_allocations *ret;
	ZydisDecoder decoder;
};

struct path {
	uint64_t at;
	bool branched; /* behind a conditional branch */
};

static int object_register(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15
		       ? (int)(reg - ZYDIS_REGISTER_RAX)
		       : -1;
}

/* Takes an instruction that stores the number 1 of 8 bytes. Returns false when it does not. */
static bool is_first_reference(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops,
			       struct python_allocation *ret)
{
	int64_t at = ops[0].mem.disp.has_displacement ? ops[0].mem.disp.value : 0;
	int reg = ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? object_register(ops[0].mem.base) : -1;

	if (z->mnemonic != ZYDIS_MNEMONIC_MOV || reg < 0 || ops[0].size != 64 ||
	    ops[0].mem.index != ZYDIS_REGISTER_NONE || ops[0].mem.segment == ZYDIS_REGISTER_FS ||
	    ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || ops[1].imm.value.s != 1 ||
	    at != (int16_t)at)
		return false;
	ret->object = (uint8_t)reg;
	ret->moved = (int16_t)at;
	return true;
}

static bool add_allocation(struct reference_search *x, const struct python_allocation *a)
{
	struct python_allocations *all = x->ret;

	for (uint32_t i = 0; i < all->n; i++)
		if (all->v[i].addr == a->addr)
			return true;
	if (all->n == PYTHON_ALLOCATIONS_MAX)
		return false;
	all->v[all->n++] = *a;
	return true;
}

/* Follows one way. Returns the number of places found, and puts the other way of each branch behind
 * the list. */
static uint32_t follow_path(struct reference_search *x, struct path p, struct path *paths,
			    uint32_t *npaths)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	for (uint32_t i = 0; i < PATH_MAX; i++) {
		uint64_t off = p.at - x->addr, to;
		struct python_allocation a = { .addr = p.at };

		if (off >= x->n || ZYAN_FAILED(ZydisDecoderDecodeFull(&x->decoder, x->text + off,
								      x->n - off, &z, ops)))
			return 0;
		if (p.branched && is_first_reference(&z, ops, &a))
			return add_allocation(x, &a);
		p.at += z.length;
		if (z.meta.category == ZYDIS_CATEGORY_CALL ||
		    z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
			continue;
		if (ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return 0; /* ret, or a jump to anywhere */
		to = p.at + (uint64_t)ops[0].imm.value.s;
		if (z.meta.category != ZYDIS_CATEGORY_COND_BR) {
			p.at = to;
			continue;
		}
		p.branched = true;
		if (*npaths < PATHS_MAX)
			paths[(*npaths)++] = (struct path){ to, true };
	}
	return 0;
}

static uint32_t follow_all(struct reference_search *x, uint64_t from)
{
	struct path paths[PATHS_MAX] = { { from, false } };
	uint32_t n = 1, found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += follow_path(x, paths[i], paths, &n);
	return found;
}

/* Returns the address behind an instruction whose last bytes are at p, after its displacement, when
 * it reads the variable; 0: it does not. */
static uint64_t reads_variable(const struct reference_search *x, uint32_t at, uint64_t variable)
{
	const uint8_t *p = x->text + at;
	uint64_t next = x->addr + at + 6;
	int32_t distance;

	memcpy(&distance, p + 2, sizeof(distance));
	if (p[0] == CMP_BYTE && p[1] == CMP_FROM_RIP && !p[6])
		next++;
	else if (p[0] != MOV_LOAD || (p[1] & FROM_RIP_MASK) != FROM_RIP)
		return 0;
	return next + (uint64_t)(int64_t)distance == variable ? next : 0;
}

/* Before 3.11 exported functions show the version: those of 3.9 and 3.10 have the code. */
static uint32_t version_of(struct object *o)
{
	uint64_t v;

	if (object_symbol_value(o, "Py_Version", &v))
		return object_read(o, v, &v, 8) == 8 ? (uint32_t)v >> 16 : 0;
	return object_symbol_value(o, "PyObject_CallNoArgs", &v) ? PYTHON_3_9 : 0;
}

static const char *find_references(struct reference_search *x, struct object *o)
{
	const struct object_symbol *exported = object_find_name(o, "_Py_NewReference");
	uint64_t off, n, config;
	uint32_t reads = 0;
	bool known = false;

	if (!object_symbol_value(o, "_Py_tracemalloc_config", &config) || !exported ||
	    !object_text_segment(o, 0, &off, &n, &x->addr) || n > PROGRAM_MAX)
		return "its code is not as in other builds";
	x->text = xmalloc(n);
	x->n = (uint32_t)object_read(o, x->addr, x->text, (uint32_t)n);
	for (uint32_t i = 0; i + 7 <= x->n; i++) {
		uint64_t next = reads_variable(x, i, config + CONFIG_TRACING);

		if (!next)
			continue;
		if (reads++ == READS_MAX)
			return "its code is not as in other builds";
		known |= follow_all(x, next) && next - exported->addr < exported->size;
	}
	return known ? NULL : "the code that makes an object is not as in other builds";
}

const char *python_allocations(struct object *o, struct python_allocations *ret)
{
	const uint32_t version = version_of(o);
	struct reference_search *x;
	const char *reason;

	ret->n = 0;
	if (version == PYTHON_3_13)
		return python_traced_references(o, ret);
	if (version != PYTHON_3_9 && version != PYTHON_3_11)
		return "descry does not know where this version makes objects";
	x = xcalloc(1, sizeof(*x));
	x->ret = ret;
	ZydisDecoderInit(&x->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	reason = find_references(x, o);
	free(x->text);
	free(x);
	return reason;
}
