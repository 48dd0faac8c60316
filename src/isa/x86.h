/* x86-64 machine code, written byte by byte into a growing buffer.
 *
 * In: registers, sizes, and opcodes by their number in the manual. Out: the shortest usual encoding
 * of each.
 * Always true: the caller chooses every instruction; no vector instructions, and nothing that
 * depends on the direction flag. */
#ifndef DESCRY_ISA_X86_H
#define DESCRY_ISA_X86_H

#include <stdbool.h>
#include <stdint.h>

enum x86_reg {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R9,
	X86_R10,
	X86_R11,
	X86_R12,
	X86_R13,
	X86_R14,
	X86_R15,
};

/* Condition codes of Jcc and SETcc. */
enum x86_cc {
	X86_O = 0,
	X86_B = 2,
	X86_AE,
	X86_E,
	X86_NE,
	X86_BE,
	X86_A,
	X86_S,
	X86_NS,
	X86_L = 12,
	X86_GE,
	X86_LE,
	X86_G,
};

/* Group 1 (alu) and group 2 (shift) operations, by their number in ModRM.reg. */
enum x86_alu { X86_ADD, X86_OR, X86_AND = 4, X86_SUB, X86_XOR, X86_CMP };
enum x86_shift { X86_ROL, X86_SHL = 4, X86_SHR, X86_SAR = 7 };

/* Opcodes with a ModRM byte for x86_rr() and x86_rm(): 0x0f.. means two bytes. */
enum x86_op {
	X86_OP_STORE = 0x89, /* rm = reg; x86_alu_op(): rm op= reg */
	X86_OP_LOAD = 0x8b,
	X86_OP_LEA = 0x8d,
	X86_OP_MOVSXD = 0x63,
	X86_OP_TEST = 0x85,
	X86_OP_XCHG = 0x87,
	X86_OP_IMUL = 0x0faf,
	X86_OP_BSR = 0x0fbd,
	X86_OP_LSL = 0x0f03,
	X86_OP_CMOVE = 0x0f44,
	X86_OP_MOVZX8 = 0x0fb6,
	X86_OP_MOVZX16 = 0x0fb7,
	X86_OP_MOVSX8 = 0x0fbe,
	X86_OP_MOVSX16 = 0x0fbf,
	X86_OP_CMPXCHG = 0x0fb1,
	X86_OP_XADD = 0x0fc1,
	X86_OP_SHRD = 0x0fac,     /* count follows */
	X86_OP_PREFETCH = 0x0f0d, /* reg: X86_PREFETCHW */
	X86_OP_GROUP3 = 0xf7,     /* reg: X86_NOT.. */
	X86_OP_GROUP5 = 0xff,     /* reg 2: call, 4: jmp */
};
enum { X86_PREFETCHW = 1 };
enum { X86_NOT = 2, X86_NEG, X86_MUL, X86_IMUL1, X86_DIV, X86_IDIV };

static inline unsigned x86_alu_op(enum x86_alu op) /* rm op= reg */
{
	return (unsigned)op << 3 | 1;
}

/* n: bytes so far. The buffer is p[cap], from malloc(). All zero is an empty buffer. */
struct x86 {
	uint8_t *p;
	uint32_t n, cap;
};
void x86_fini(struct x86 *b);

void x86_byte(struct x86 *b, unsigned v);
void x86_u32(struct x86 *b, uint32_t v);
void x86_u64(struct x86 *b, uint64_t v);
void x86_align(struct x86 *b, unsigned to, uint8_t fill);

/* size: 1, 2, 4 or 8 bytes. Opcodes are those of the 32-bit form. For size 1 the functions use the
 * opcode below. */
void x86_rr(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned rm);
void x86_rm(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned base, int32_t disp);
/* [base + index * 1]; index is not rsp. */
void x86_rx(struct x86 *b, unsigned size, unsigned op, unsigned reg, unsigned base, unsigned index,
	    int32_t disp);
/* RIP-relative: `target` counts bytes from the start of the buffer. No immediate may follow. */
void x86_rip(struct x86 *b, unsigned size, unsigned op, unsigned reg, int64_t target);
void x86_rip_alu_imm(struct x86 *b, unsigned size, enum x86_alu op, int64_t target, int32_t imm);
void x86_rip_store_imm(struct x86 *b, unsigned size, int64_t target, int32_t imm);
/* %fs:disp */
void x86_fs(struct x86 *b, unsigned size, unsigned op, unsigned reg, int32_t disp);

void x86_mov_rr(struct x86 *b, unsigned dst, unsigned src); /* 64 bits; nothing if dst is src */
void x86_mov_imm(struct x86 *b, unsigned dst, uint64_t v);  /* keeps flags */
void x86_alu_imm(struct x86 *b, unsigned size, enum x86_alu op, unsigned reg, int32_t imm);
void x86_alu_mem_imm(struct x86 *b, unsigned size, enum x86_alu op, unsigned base, int32_t disp,
		     int32_t imm);
void x86_store_imm(struct x86 *b, unsigned size, unsigned base, int32_t disp, int32_t imm);
void x86_shift_imm(struct x86 *b, unsigned size, enum x86_shift op, unsigned reg, unsigned count);
void x86_shift_cl(struct x86 *b, unsigned size, enum x86_shift op, unsigned reg);
void x86_imul_imm(struct x86 *b, unsigned size, unsigned dst, unsigned src, int32_t imm);
void x86_bswap(struct x86 *b, unsigned size, unsigned reg); /* 4 or 8 */
void x86_push(struct x86 *b, unsigned reg);
void x86_pop(struct x86 *b, unsigned reg);
void x86_ret(struct x86 *b);

/* Jump or call to `target`, counted as in x86_rip(). A jump is short if it reaches, unless
 * `wide`. */
void x86_jmp(struct x86 *b, int64_t target, bool wide);
void x86_jcc(struct x86 *b, enum x86_cc cc, int64_t target, bool wide);
void x86_call(struct x86 *b, int64_t target);
/* Emit short forward jumps. The caller passes the returned value to x86_land() at the jump's
 * target. */
uint32_t x86_jmp_over(struct x86 *b);
uint32_t x86_jcc_over(struct x86 *b, enum x86_cc cc);
void x86_land(struct x86 *b, uint32_t jump);

#endif
