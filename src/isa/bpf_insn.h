/* eBPF instructions: their text and their structure.
 *
 * In: struct bpf_insn arrays of <linux/bpf.h>, ISA versions 1 to 4. Out: a line of text for each
 * instruction, in the kernel verifier's notation, or the first structural error.
 * Always true: no function here knows maps, helpers or routines; their names come from the
 * caller. */
#ifndef DESCRY_ISA_BPF_INSN_H
#define DESCRY_ISA_BPF_INSN_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Constants that an older <linux/bpf.h> does not have. */
enum {
	EBPF_MEMSX = 0x80,     /* mode of LDX: sign-extending load (v4) */
	EBPF_STACK_SIZE = 512, /* of one function */
	EBPF_PSEUDO_MAP_VALUE = 2,
	EBPF_PSEUDO_FUNC = 4,
	EBPF_PSEUDO_KFUNC = 2, /* src_reg of CALL */
};

static inline bool ebpf_is_ld_imm64(const struct bpf_insn *ins)
{
	return ins->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* Returns true for a jump within the function (not a call, not an exit). */
bool ebpf_is_jump(const struct bpf_insn *ins);
/* Returns the jump's target, relative to the next instruction. */
int32_t ebpf_jump_offset(const struct bpf_insn *ins);

/* Returns the low `bits` bits (1 to 64) of v as a signed number. */
uint64_t ebpf_sign_extend(uint64_t v, uint32_t bits);
/* Computes what an instruction of class ALU or ALU64 makes of a, its destination register, and b,
 * its source register or its immediate. Returns false for an unknown opcode. */
bool ebpf_alu(const struct bpf_insn *ins, uint64_t a, uint64_t b, uint64_t *ret);

struct ebpf_names {
	/* Returns the operand's text of the LD_IMM64 or CALL at instruction `insn`: "map globals",
	 * "str_copy". NULL: print the number. */
	const char *(*operand)(void *arg, uint32_t insn);
	/* Prints a remark behind the instruction's text. May print nothing. */
	void (*remark)(void *arg, uint32_t insn, FILE *out);
	void *arg;
	bool index; /* instruction numbers in front */
	bool bytes; /* number, offset and encoding in front: "0012 00096: bf 16 0000 00000000" */
};

/* Prints a line for each instruction: label column ("L1:", jump targets in address order), text.
 * names may be NULL. */
void ebpf_print(FILE *out, const struct bpf_insn *insns, uint32_t n,
		const struct ebpf_names *names);
/* Writes the text of one instruction, with jumps as "+5". next is the instruction behind it, for
 * LD_IMM64. */
void ebpf_text(char *buf, size_t size, const struct bpf_insn *ins, const struct bpf_insn *next);
/* Returns "map_lookup_elem", or NULL for an id that the headers did not have at build time. */
const char *ebpf_helper_name(uint32_t id);

enum {
	EBPF_UNLINKED =
		1, /* immediates of calls between functions and of LD_IMM64 are not set yet */
};
/* Checks that opcodes are known, that registers and reserved fields have valid values, that jumps
 * and calls land on an instruction, and that the program cannot run off its end. Returns NULL when
 * all hold. Does not check memory or types: the verifier does. */
struct err *ebpf_check(const struct bpf_insn *insns, uint32_t n, unsigned flags);

#endif
