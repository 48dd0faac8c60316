/* Writing eBPF instructions in tests. */
#ifndef DESCRY_TEST_INSN_H
#define DESCRY_TEST_INSN_H

#include "isa/bpf_insn.h"

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define ALU64_IMM(op, d, i) INSN(BPF_ALU64 | BPF_##op | BPF_K, d, 0, 0, i)
#define ALU64_REG(op, d, s) INSN(BPF_ALU64 | BPF_##op | BPF_X, d, s, 0, 0)
#define ALU32_IMM(op, d, i) INSN(BPF_ALU | BPF_##op | BPF_K, d, 0, 0, i)
#define ALU32_REG(op, d, s) INSN(BPF_ALU | BPF_##op | BPF_X, d, s, 0, 0)
#define LDX(size, d, s, o) INSN(BPF_LDX | BPF_MEM | BPF_##size, d, s, o, 0)
#define LDSX(size, d, s, o) INSN(BPF_LDX | EBPF_MEMSX | BPF_##size, d, s, o, 0)
#define STX(size, d, s, o) INSN(BPF_STX | BPF_MEM | BPF_##size, d, s, o, 0)
#define ST(size, d, o, i) INSN(BPF_ST | BPF_MEM | BPF_##size, d, 0, o, i)
#define ATOMIC(size, d, s, o, op) INSN(BPF_STX | BPF_ATOMIC | BPF_##size, d, s, o, op)
#define JMP_IMM(op, d, i, o) INSN(BPF_JMP | BPF_##op | BPF_K, d, 0, o, i)
#define JMP_REG(op, d, s, o) INSN(BPF_JMP | BPF_##op | BPF_X, d, s, o, 0)
#define JMP32_IMM(op, d, i, o) INSN(BPF_JMP32 | BPF_##op | BPF_K, d, 0, o, i)
#define JMP32_REG(op, d, s, o) INSN(BPF_JMP32 | BPF_##op | BPF_X, d, s, o, 0)
#define LD64(d, s, v) \
	INSN(BPF_LD | BPF_IMM | BPF_DW, d, s, 0, (int32_t)(v)), \
		INSN(0, 0, 0, 0, (int32_t)((uint64_t)(v) >> 32))
#define CALL(id) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, id)
#define CALL_REL(o) INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, o)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

#endif
