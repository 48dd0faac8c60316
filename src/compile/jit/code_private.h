/* Shared by the files that write machine code: code_write.c writes a function and its jumps,
 * code_insn.c arithmetic and memory, code_call.c calls, code_check.c checks at run time. */
#ifndef DESCRY_COMPILE_JIT_CODE_PRIVATE_H
#define DESCRY_COMPILE_JIT_CODE_PRIVATE_H

#include "compile/jit/jit_private.h"

enum { T0 = X86_R11, T1 = X86_R10, T2 = X86_R9, THREAD = X86_R12 };
enum {
	OFF_BUDGET = offsetof(struct wire_thread, budget),
	OFF_REGS = offsetof(struct wire_own, regs),
	OFF_FRAME = offsetof(struct wire_own, frame),
	OFF_COOKIE = offsetof(struct wire_thread, cookie),
	OFF_GEN = offsetof(struct wire_thread, gen)
};

/* Caller-saved registers, which a helper may clobber. */
enum {
	HELPER_CLOBBERS = 1 << X86_RAX | 1 << X86_RCX | 1 << X86_RDX | 1 << X86_RSI | 1 << X86_RDI |
			  1 << X86_R8 | 1 << X86_R9 | 1 << X86_R10 | 1 << X86_R11
};

static inline void wrote(struct jit *j, unsigned reg)
{
	j->clobbered |= 1u << reg;
	j->rax_used |= reg == X86_RAX;
}

struct jit_operand code_memory(struct jit *j, uint32_t i, unsigned reg, int32_t off, uint32_t size,
			       bool load);
void code_mem_alu_imm(struct jit *j, unsigned size, enum x86_alu op, const struct jit_operand *p,
		      int32_t imm);
void code_alu(struct jit *j, uint32_t i, const struct bpf_insn *ins);
void code_load(struct jit *j, uint32_t i, const struct bpf_insn *ins);
void code_store(struct jit *j, uint32_t i, const struct bpf_insn *ins);
void code_atomic(struct jit *j, uint32_t i, const struct bpf_insn *ins);
void code_load_address(struct jit *j, unsigned reg, uint64_t addr);
void code_thread_address(struct jit *j, unsigned reg, uint64_t off);
void code_load_imm64(struct jit *j, uint32_t i, const struct bpf_insn *ins);
void code_call(struct jit *j, uint32_t i, const struct bpf_insn *ins, const struct jit_fn *fn);
struct jit_cold *code_cold(struct jit *j, enum x86_cc cc, uint32_t insn);
void code_check_access(struct jit *j, uint32_t insn, unsigned base, int32_t off, uint32_t size,
		       bool load);
void code_spend(struct jit *j, uint32_t i);
/* Returns the condition on which a comparison with operation `op` jumps. */
enum x86_cc code_condition(uint8_t op);
/* reg = offset of the running generation's values. */
void code_load_gen(struct jit *j, unsigned reg, const struct wire_map *m);
/* Makes the wide jump that ended at `jump` jump to here. */
static inline void code_land(struct x86 *b, uint32_t jump)
{
	for (uint32_t i = 0; i < 4; i++)
		b->p[jump - 4 + i] = (uint8_t)((b->n - jump) >> 8 * i);
}
void code_check_args(struct jit *j, uint32_t i, const struct jit_helper *h);

#endif
