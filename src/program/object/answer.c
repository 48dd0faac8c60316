/* Examines how the code around a question uses its answer. */
#include "program/object/answer.h"

#include <Zydis/Zydis.h>

struct decoded {
	ZydisDecodedInstruction ins;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const struct code *c, uint64_t addr, struct decoded *ret)
{
	ZydisDecoder decoder;
	uint8_t code[15];
	uint32_t n = c->read(c->arg, addr, code, sizeof(code));

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &ret->ins, ret->ops));
}

static bool is_register(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) == reg;
}

static bool writes(const struct decoded *d, ZydisRegister reg)
{
	for (uint32_t i = 0; i < d->ins.operand_count; i++)
		if (is_register(&d->ops[i], reg) &&
		    d->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return true;
	return false;
}

/* Returns true for xor %eax,%eax, which names the register but does not depend on it. */
static bool is_zeroing(const struct decoded *d)
{
	return (d->ins.mnemonic == ZYDIS_MNEMONIC_XOR || d->ins.mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       d->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       d->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       d->ops[0].reg.value == d->ops[1].reg.value;
}

static bool reads(const struct decoded *d, ZydisRegister reg)
{
	if (is_zeroing(d))
		return false;
	for (uint32_t i = 0; i < d->ins.operand_count; i++) {
		const ZydisDecodedOperand *op = &d->ops[i];

		if ((is_register(op, reg) && op->actions & ZYDIS_OPERAND_ACTION_MASK_READ) ||
		    (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		     (op->mem.base == reg || op->mem.index == reg)))
			return true;
	}
	return false;
}

bool code_reads_rax(const struct code *c, uint64_t addr)
{
	enum { LOOK = 16 /* instructions */ };
	struct decoded d;

	for (int k = 0; k < LOOK; k++, addr += d.ins.length) {
		if (!decode(c, addr, &d))
			return false;
		if (d.ins.meta.category == ZYDIS_CATEGORY_RET || reads(&d, ZYDIS_REGISTER_RAX))
			return true;
		if (writes(&d, ZYDIS_REGISTER_RAX) || d.ins.meta.category == ZYDIS_CATEGORY_CALL ||
		    d.ins.meta.category == ZYDIS_CATEGORY_COND_BR)
			return false;
		if (d.ins.meta.category != ZYDIS_CATEGORY_UNCOND_BR)
			continue;
		if (d.ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !d.ops[0].imm.is_relative)
			return false;
		addr += (uint64_t)d.ops[0].imm.value.s;
	}
	return false;
}

bool code_sets_rdi(const struct code *c, uint64_t start, uint64_t addr)
{
	bool set = false;
	struct decoded d;

	for (; start < addr; start += d.ins.length) {
		if (!decode(c, start, &d))
			return false;
		switch (d.ins.meta.category) {
		case ZYDIS_CATEGORY_CALL:
		case ZYDIS_CATEGORY_RET:
		case ZYDIS_CATEGORY_COND_BR:
		case ZYDIS_CATEGORY_UNCOND_BR: set = false; break;
		default: set |= writes(&d, ZYDIS_REGISTER_RDI);
		}
	}
	return set;
}
