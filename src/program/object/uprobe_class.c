/* Predicts the kernel's handling of a uprobe at an instruction, by arch/x86/kernel/uprobes.c of
 * Linux 5.15 to 6.18 for 64-bit code: refuse (ENOTSUPP), emulate, or single-step a copy.
 *
 * The kernel looks at the first opcode byte behind prefixes. It does so behind VEX too, so it
 * judges a VEX instruction by the meaning of its opcode byte without VEX: it refuses vmovdqu as
 * "outs". Two-byte opcodes all pass, because the escape 0x0f is itself in the table of good
 * opcodes. test_object_uprobe_class.c compares with the running kernel.
 *
 * Worse than a refusal is a vector instruction that the kernel takes for a branch, a nop or a
 * return: it "emulates" vpbroadcastb (62 .. 7a) as jp and vzeroupper (c5 f8 77) as ja, and the
 * traced program goes wrong. descry refuses these itself. */
#include <Zydis/Zydis.h>

#include "base/mem.h"
#include "program/object/object_private.h"

enum {
	FUNCTION_MAX = 1 << 20, /* limit of a function that is decoded whole, in bytes */
};

/* Bit b of refused[a]: opcode 16 * a + b. */
static const uint16_t refused[16] = {
	[0x0] = 0x40c0, [0x1] = 0xc0c0, [0x2] = 0x8080, [0x3] = 0x8080,
	[0x6] = 0xf007, [0x8] = 0x0004, [0x9] = 0x0400, [0xc] = 0xf000,
	[0xd] = 0x0070, [0xe] = 0xf4f0, [0xf] = 0x0c12,
};

static bool has_prefix(const ZydisDecodedInstruction *ins, uint8_t byte)
{
	for (int i = 0; i < ins->raw.prefix_count; i++)
		if (ins->raw.prefixes[i].value == byte)
			return true;
	return false;
}

/* Returns true for the nops that the kernel knows and emulates as a jump to the next
 * instruction. */
static bool is_nop(const uint8_t *code, uint32_t len)
{
	static const char nops[][10] = {
		"\x90",
		"\x66\x90",
		"\x0f\x1f\x00",
		"\x0f\x1f\x40\x00",
		"\x0f\x1f\x44\x00\x00",
		"\x66\x0f\x1f\x44\x00\x00",
		"\x0f\x1f\x80\x00\x00\x00\x00",
		"\x0f\x1f\x84\x00\x00\x00\x00\x00",
		"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00",
	};

	return len && len <= ARRAY_SIZE(nops) && !memcmp(code, nops[len - 1], len);
}

/* Returns true for opcode bytes behind VEX or EVEX that the kernel accepts and handles by their
 * meaning without it: short and near branches and nop are emulated, ret returns with the address of
 * the copy, popf runs with the trap flag on. */
static bool is_mistaken(uint8_t op)
{
	switch (op) {
	case 0x70 ... 0x7f:
	case 0x90:
	case 0x9d:
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xe8:
	case 0xe9:
	case 0xeb:
	case 0xff: return true;
	default: return false;
	}
}

/* Returns the reason for refusing, or NULL when the kernel accepts it. */
static const char *refusal(const ZydisDecodedInstruction *ins)
{
	uint8_t op = ins->opcode;
	bool escaped = ins->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
		       ins->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT;

	if (has_prefix(ins, 0xf0))
		return "the kernel refuses a lock prefix";
	if (has_prefix(ins, 0x26) || has_prefix(ins, 0x2e) || has_prefix(ins, 0x36) ||
	    has_prefix(ins, 0x3e))
		return "the kernel refuses a segment prefix (cs, ds, es, ss)";
	if (escaped) {
		/* Near conditional jumps are emulated, but not with an operand size prefix. */
		if (ins->opcode_map == ZYDIS_OPCODE_MAP_0F && (op & 0xf0) == 0x80 &&
		    has_prefix(ins, 0x66))
			return "the kernel refuses a branch with an operand size prefix";
		return NULL;
	}
	if (op == 0xcc)
		return "it is a breakpoint already";
	if (refused[op >> 4] & (1 << (op & 15)))
		return ins->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY
			       ? "the kernel refuses this instruction"
			       : "the kernel takes this vector instruction for another, which it refuses";
	if (ins->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return is_mistaken(op)
			       ? "the kernel would execute this vector instruction as another"
			       : NULL;
	if (op == 0x8e && ins->raw.modrm.reg == 2)
		return "the kernel refuses loads of the stack segment";
	if ((op == 0xeb || op == 0xe9 || op == 0xe8 || (op & 0xf0) == 0x70) &&
	    has_prefix(ins, 0x66))
		return "the kernel refuses a branch with an operand size prefix";
	return NULL;
}

static bool is_emulated(const ZydisDecodedInstruction *ins, const uint8_t *code)
{
	uint8_t op = ins->opcode;

	if (is_nop(code, ins->length))
		return true;
	if (ins->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	if (ins->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return (op & 0xf0) == 0x80;
	if (ins->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
		return false;
	if (op == 0x90)
		return !has_prefix(ins, 0xf3);
	if ((op & 0xf8) == 0x50)
		return ins->length == 1 || (ins->length == 2 && code[0] == 0x41);
	return op == 0xeb || op == 0xe9 || op == 0xe8 || (op & 0xf0) == 0x70;
}

enum uprobe_class uprobe_classify(const uint8_t *code, uint32_t n, uint32_t *ret_len,
				  const char **ret_reason)
{
	static ZydisDecoder decoder;
	static bool ready;
	ZydisDecodedInstruction ins;
	const char *reason;

	if (!ready) {
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ready = true;
	}
	*ret_len = 0;
	*ret_reason = NULL;
	/* Only Knights Corner runs its instructions, and the kernel cannot decode them. */
	if (!ZYAN_SUCCESS(
		    ZydisDecoderDecodeInstruction(&decoder, NULL, code, n > 15 ? 15 : n, &ins)) ||
	    ins.meta.isa_ext == ZYDIS_ISA_EXT_KNC || ins.meta.isa_ext == ZYDIS_ISA_EXT_KNCE ||
	    ins.meta.isa_ext == ZYDIS_ISA_EXT_KNCV) {
		*ret_reason = "it cannot be decoded";
		return UPROBE_REFUSED;
	}
	*ret_len = ins.length;
	reason = refusal(&ins);
	if (reason) {
		*ret_reason = reason;
		return UPROBE_REFUSED;
	}
	if (!is_emulated(&ins, code))
		return UPROBE_STEPPED;
	return ins.length == 5 && is_nop(code, 5) ? UPROBE_NOP5 : UPROBE_EMULATED;
}

static bool below_stack_pointer(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type == ZYDIS_MEMOP_TYPE_MEM &&
	       op->mem.base == ZYDIS_REGISTER_RSP && op->mem.disp.value < 0;
}

static bool uses_red_zone(struct object *o, const struct object_symbol *f)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction ins;
	ZydisDecoder decoder;
	cleanup_free uint8_t *code = xmalloc(f->size);
	uint32_t n = object_read(o, f->addr, code, (uint32_t)f->size);

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t at = 0; at < n; at += ins.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, n - at, &ins, ops)))
			return true;
		for (uint32_t i = 0; i < ins.operand_count_visible; i++)
			if (below_stack_pointer(&ops[i]))
				return true;
	}
	return n < f->size;
}

bool object_uses_red_zone(struct object *o, uint64_t addr, uint64_t *read)
{
	const struct object_symbol *f = object_find_addr(o, addr);

	if (!f || !f->size || f->size > FUNCTION_MAX)
		return true;
	if (f->addr == o->red_zone_addr && f->size == o->red_zone_size)
		return o->red_zone;
	if (*read > OBJECT_RED_ZONE_READ_MAX)
		return true;
	*read += f->size;
	o->red_zone_addr = f->addr;
	o->red_zone_size = f->size;
	o->red_zone = uses_red_zone(o, f);
	return o->red_zone;
}
