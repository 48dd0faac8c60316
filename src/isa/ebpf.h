/* eBPF instructions: their text and their structure.
 *
 * In: struct bpf_insn arrays as <linux/bpf.h> has them, ISA versions 1 to 4. Out: one line of text
 * for each instruction, in the kernel verifier's notation, or the first structural error.
 * Always true: nothing here looks at what a map, a helper or a routine is; names come from the
 * caller.
 */
#ifndef DESCRY_ISA_EBPF_H
#define DESCRY_ISA_EBPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* What older <linux/bpf.h> lack. */
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

/* Is it a jump within the function (not call, not exit)? */
bool ebpf_is_jump(const struct bpf_insn *ins);
/* Where it goes, relative to the next instruction. */
int32_t ebpf_jump_offset(const struct bpf_insn *ins);

struct ebpf_names {
	/* The operand's text of the LD_IMM64 or CALL at instruction `insn`: "map globals",
	 * "str_copy". NULL: print the number. */
	const char *(*operand)(void *arg, uint32_t insn);
	/* Written behind the instruction's text; may print nothing. */
	void (*remark)(void *arg, uint32_t insn, FILE *out);
	void *arg;
	bool index; /* instruction numbers in front */
	bool bytes; /* number, offset and encoding in front: "0012 00096: bf 16 0000 00000000" */
};

/* One line per instruction: label column ("L1:", jump targets in address order), text. names may be
 * NULL. */
void ebpf_print(FILE *out, const struct bpf_insn *insns, uint32_t n,
		const struct ebpf_names *names);
/* The text of one instruction, jumps as "+5"; next is the instruction behind it, for LD_IMM64. */
void ebpf_text(char *buf, size_t size, const struct bpf_insn *ins, const struct bpf_insn *next);
/* "map_lookup_elem"; NULL for an id that the headers did not know. */
const char *ebpf_helper_name(uint32_t id);

enum {
	EBPF_UNLINKED =
		1, /* immediates of calls between functions and of LD_IMM64 are not filled in yet */
};
/* Known opcodes, registers and reserved fields as they must be, jumps and calls that land on an
 * instruction, no way to run off the end. NULL: sound. It says nothing of memory or types: that is
 * the verifier's part. */
struct err *ebpf_check(const struct bpf_insn *insns, uint32_t n, unsigned flags);

#endif
