/* IR -> eBPF instructions.
 *
 * In: functions of one program (ir_fn), the first is entered by the kernel with the context in r1.
 * Out: instructions with a source position each, and relocations.
 * Always true: r0 and r5 are never allocated (scratch of the emitter); r1-r4 hold registers that no
 * call crosses, r6-r9 the others, the stack the rest; the frame is at most EBPF_FRAME_MAX bytes.
 */
#ifndef DESCRY_COMPILE_EBPF_EBPF_H
#define DESCRY_COMPILE_EBPF_EBPF_H

#include <linux/bpf.h>

#include "compile/ir/ir.h"
#include "data/image.h"

/* What is left of the 512 bytes for bpf/ routines. */
enum { EBPF_FRAME_MAX = 320 };

struct ebpf_code {
	VEC(struct bpf_insn) insns;
	VEC(loc_t) locs;
	VEC(struct reloc) relocs;
	VEC(uint32_t) funcs;  /* start of each function */
	uint32_t cookie_insn; /* first IR_PROBE, UINT32_MAX none */
};

/* Where registers and stack objects are. */
struct ebpf_place {
	int8_t reg;
	int16_t slot;
}; /* reg > 0, or slot: offset from r10 (negative) */
struct ebpf_frame {
	struct ebpf_place *regs; /* nregs + 1 */
	int16_t *objects;        /* offset from r10 */
	/* By register: 1 + the instruction that makes it. Only where the register is an argument of
	 * one call and made of nothing but constants: it is made in the argument's register. */
	uint32_t *late;
	uint32_t size;
};

void ebpf_code_init(struct ebpf_code *c);
void ebpf_code_fini(struct ebpf_code *c);
/* Appends function f. IR_CALL_FN's index is a function number of c in order of being added. False
 * when the frame or a jump is too large: *ret_why says so (static). */
bool ebpf_emit(struct ebpf_code *c, const struct ir_fn *f, const char **ret_why);

/* alloc.c */
void ebpf_allocate(const struct ir_fn *f, struct ebpf_frame *ret);
void ebpf_frame_fini(struct ebpf_frame *fr);

#endif
