/* Finds the interpreter's code for the instruction RESUME, with which each function begins, and for
 * those with which it ends.
 *
 * CPython 3.11 passes its probe function__entry only while the probe line is enabled, too, and
 * 3.13 has no probes. So probes are placed on the code itself. The table of the loop's jumps has
 * its address. The code stores the address of the next instruction in the frame; this shows the
 * register that has the frame. */
#include <string.h>

#include <Zydis/Zydis.h>

#include "program/runtime/python/allocations.h"

enum {
	TARGETS = 256, /* words of the table, one for each instruction */
	IN_LOOP = 128, /* so many of them lead into the loop at least: others to its cold part */
	SEARCH_MAX = 1 << 30, /* comparisons of a word with a part of the code */
	CODE_BYTES = 96,      /* of an instruction that are looked at */
	CODE_MAX = 16,        /* machine instructions */
};

/* The numbers of RESUME, of its quickened form and of the one for monitored code; of RETURN_VALUE,
 * RETURN_CONST and YIELD_VALUE and their forms for monitored code (Include/opcode.h,
 * Include/opcode_ids.h): the same in all releases of a minor version. */
static const struct resume {
	uint16_t version;
	uint8_t n, instructions[PYTHON_ENTRIES_MAX];
	uint8_t nreturns, returns[PYTHON_ENTRIES_MAX];
} resumes[] = { { PYTHON_3_11, 2, { 151, 150 } },
		{ PYTHON_3_13, 3, { 149, 207, 236 }, 6, { 36, 103, 118, 239, 240, 241 } } };

static bool version(struct object *o, uint32_t *ret_major, uint32_t *ret_minor)
{
	uint64_t addr, v;

	if (!object_symbol_value(o, "Py_Version", &addr) ||
	    object_read(o, addr, &v, sizeof(v)) != sizeof(v))
		return false;
	*ret_major = v >> 24 & 255;
	*ret_minor = v >> 16 & 255;
	return true;
}

/* Returns how many words of a section may be compared with all parts of the code. */
static size_t words_searched(const struct object *o)
{
	struct object_segment g;
	uint32_t parts = 0;

	while (object_segment(o, parts, &g))
		parts++;
	return parts ? SEARCH_MAX / parts : 0;
}

/* Finds the table: TARGETS addresses of code, most of them in the loop. */
static bool find_targets(struct object *o, const struct object_symbol *loop, uint64_t *ret)
{
	uint64_t addr;
	const size_t most = words_searched(o);
	size_t n, run = 0;
	uint32_t best = 0, inside = 0;
	cleanup_free uint8_t *data = object_section(o, ".rodata", &addr, &n);

	for (size_t i = 0; data && i < n / 8 && i < most; i++) {
		uint64_t w, old;

		memcpy(&w, data + i * 8, sizeof(w));
		if (!object_is_text(o, w)) {
			run = inside = 0;
			continue;
		}
		inside += w - loop->addr < loop->size;
		if (++run > TARGETS) {
			memcpy(&old, data + (i - TARGETS) * 8, sizeof(old));
			inside -= old - loop->addr < loop->size;
		}
		if (run >= TARGETS && inside >= IN_LOOP && inside > best) {
			best = inside;
			memcpy(ret, data + (i + 1 - TARGETS) * 8, TARGETS * sizeof(*ret));
		}
	}
	return best;
}

/* Returns the number of a 64-bit general register in x86's order, -1 for another register. */
static int number(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15
		       ? (int)(reg - ZYDIS_REGISTER_RAX)
		       : -1;
}

/* Returns the register that has the frame's address: the code stores a register at `instruction`
 * behind it, and has not written it before. -1: not known. */
static int frame_register(const struct object *o, uint64_t code, uint32_t instruction)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	uint8_t bytes[CODE_BYTES];
	uint32_t n = object_read(o, code, bytes, sizeof(bytes)), at = 0, written = 0;
	ZydisDecodedInstruction z;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t i = 0; i < CODE_MAX; i++, at += z.length) {
		const ZydisDecodedOperandMem *m = &ops[0].mem;
		int base;

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes + at, n - at, &z, ops)) ||
		    z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
			return -1;
		base = ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? number(m->base) : -1;
		if (z.mnemonic == ZYDIS_MNEMONIC_MOV && base >= 0 && !(written >> base & 1) &&
		    m->index == ZYDIS_REGISTER_NONE && m->disp.value == instruction &&
		    ops[0].size == 64 && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
			return base;
		for (uint32_t k = 0; k < z.operand_count; k++) {
			int reg = ops[k].type == ZYDIS_OPERAND_TYPE_REGISTER
					  ? number(ZydisRegisterGetLargestEnclosing(
						    ZYDIS_MACHINE_MODE_LONG_64, ops[k].reg.value))
					  : -1;

			if (reg >= 0 && ops[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				written |= 1u << reg;
		}
	}
	return -1;
}

static const struct resume *find_resume(struct object *o)
{
	uint32_t major, minor;

	if (!version(o, &major, &minor))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(resumes); i++)
		if (resumes[i].version == (major << 8 | minor))
			return &resumes[i];
	return NULL;
}

static const char *places_of_loop(struct object *o, bool returns, struct python_entries *ret)
{
	const struct resume *r = find_resume(o);
	const struct object_symbol *loop = object_find_name(o, "_PyEval_EvalFrameDefault");
	uint64_t targets[TARGETS];

	if (!r || (returns && !r->nreturns))
		return "descry does not know this version's instructions";
	if (!loop || !find_targets(o, loop, targets))
		return "descry does not find the interpreter's table of instructions";
	ret->n = returns ? r->nreturns : r->n;
	ret->layout = python_layout(r->version >> 8, r->version & 255);
	for (uint32_t i = 0; i < ret->n; i++) {
		uint64_t addr = targets[returns ? r->returns[i] : r->instructions[i]];
		int reg = frame_register(o, addr, ret->layout->frame_instruction);

		if (reg < 0 || addr - loop->addr >= loop->size)
			return returns ? "the code of the interpreter's instruction RETURN_VALUE "
					 "is not as in other builds"
				       : "the code of the interpreter's instruction RESUME is not "
					 "as in other builds";
		ret->v[i] = (struct python_entry){ addr, (uint8_t)reg };
	}
	if (returns && !python_unwound(o, loop->addr, loop->size, ret->layout, &ret->v[ret->n++]))
		return "the interpreter's code for exceptions is not as in other builds";
	return NULL;
}

const char *python_entries(struct object *o, struct python_entries *ret)
{
	return places_of_loop(o, false, ret);
}

const char *python_returns(struct object *o, struct python_entries *ret)
{
	return places_of_loop(o, true, ret);
}

bool python_has_entries(struct object *o)
{
	return find_resume(o);
}
