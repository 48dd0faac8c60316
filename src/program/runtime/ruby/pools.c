/* Finds the code that makes an object in Ruby 3.3.
 *
 * There, one function takes an object from a pool of objects of one size, counts it in that pool,
 * and returns it. Its callers then store flags and class. So the place is the function's
 * instruction that adds 1 to a member of an array, behind which rax has the result; each call of
 * the function must be followed by the two stores. */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/ruby/ruby.h"

enum {
	NEAR = 16,      /* instructions from a call to the stores */
	RETURNS = 32,   /* from the place to the function's end */
	ADDED_SIZE = 6, /* of the place */
	CALL_OPCODE = 0xe8,
	CALL_LENGTH = 5,
	HITS_MAX = 32, /* functions like that; for each, all text is looked at */
	CALLS_MIN = 3, /* the functions for extensions make the calls */
	CALLS_MAX =
		4096, /* Ruby 3.3 has some hundreds: each is decoded at each pass over the text */
	FLAGS_AT = 0,
	CLASS_AT = 8,
};

struct pools {
	struct ruby *r; /* its text is what is searched */
	const uint8_t *text;
	uint32_t n;
	ZydisDecoder decoder;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode_at(struct pools *p, uint64_t addr)
{
	uint64_t off = addr - p->r->text.start;

	return off < p->n && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&p->decoder, p->text + off,
								 p->n - off, &p->z, p->ops));
}

static bool writes_rax(const struct pools *p)
{
	for (uint32_t i = 0; i < p->z.operand_count; i++)
		if (p->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    p->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     p->ops[i].reg.value) == ZYDIS_REGISTER_RAX)
			return true;
	return false;
}

static bool is_jump(const struct pools *p)
{
	return p->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
	       p->z.meta.category != ZYDIS_CATEGORY_COND_BR &&
	       p->z.meta.category != ZYDIS_CATEGORY_RET;
}

/* Returns true when the function returns what rax has at the instruction. */
static bool returns_rax(struct pools *p, uint64_t addr)
{
	for (uint32_t i = 0; i < RETURNS && decode_at(p, addr); i++) {
		if (p->z.meta.category == ZYDIS_CATEGORY_RET)
			return true;
		if (writes_rax(p) || is_jump(p))
			return false;
		addr += p->z.length;
	}
	return false;
}

/* Returns true when the instruction stores a word at rax + at. */
static bool stores_at(const struct pools *p, int64_t at)
{
	const ZydisDecodedOperand *to = &p->ops[0];

	return p->z.mnemonic == ZYDIS_MNEMONIC_MOV && to->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       to->size == 64 && to->mem.base == ZYDIS_REGISTER_RAX &&
	       to->mem.index == ZYDIS_REGISTER_NONE &&
	       (to->mem.disp.has_displacement ? to->mem.disp.value : 0) == at;
}

/* Returns true when the code at an address stores flags and class of the object in rax. */
static bool makes_object(struct pools *p, uint64_t addr)
{
	bool flags = false;

	for (uint32_t i = 0; i < NEAR && decode_at(p, addr); i++) {
		flags |= stores_at(p, FLAGS_AT);
		if (flags && stores_at(p, CLASS_AT))
			return true;
		if (writes_rax(p) || is_jump(p))
			return false;
		addr += p->z.length;
	}
	return false;
}

/* Returns true when all calls of a function are followed by the stores. */
static bool all_make_objects(struct pools *p, uint64_t function)
{
	uint32_t calls = 0;

	for (uint32_t i = 0; i + CALL_LENGTH <= p->n; i++) {
		uint64_t next = p->r->text.start + i + CALL_LENGTH;
		int32_t distance;

		memcpy(&distance, p->text + i + 1, sizeof(distance));
		if (p->text[i] != CALL_OPCODE || next + (uint64_t)(int64_t)distance != function)
			continue;
		if (calls++ == CALLS_MAX || !makes_object(p, next))
			return false;
	}
	return calls >= CALLS_MIN;
}

/* Takes the bytes of "add qword [base + index * scale + counter], 1". */
static bool is_pool_count(const uint8_t *t, uint8_t *ret_counter)
{
	enum { REX_W = 0x48, ADD = 0x83, WITH_INDEX = 0x44, NO_INDEX = 0x20, INDEX = 0x38 };

	if ((t[0] & ~3) != REX_W || t[1] != ADD || t[2] != WITH_INDEX || t[5] != 1 ||
	    (!(t[0] & 2) && (t[3] & INDEX) == NO_INDEX))
		return false;
	*ret_counter = t[4];
	return true;
}

bool ruby_pool_allocations(struct ruby *r, const uint8_t *text, uint32_t n,
			   struct ruby_allocations *ret)
{
	struct pools p = { .r = r, .text = text, .n = n };
	uint32_t hits = 0;

	ZydisDecoderInit(&p.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i + ADDED_SIZE <= n; i++) {
		uint64_t addr = r->text.start + i;
		struct ruby_range f;
		uint8_t counter;

		if (!is_pool_count(text + i, &counter) || !ruby_function(r, addr, &f) ||
		    !returns_rax(&p, addr))
			continue;
		if (hits++ == HITS_MAX)
			return false;
		if (!all_make_objects(&p, f.start))
			continue;
		if (ret->n)
			return false; /* there is one such function */
		ret->v[ret->n++] = (struct ruby_allocation){ addr, 0, counter };
		ret->counter = counter;
	}
	return ret->n == 1;
}
