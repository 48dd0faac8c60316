/* IR -> eBPF instructions.
 *
 * In: the functions (ir_fn) of one program. The kernel enters the first with the context in r1.
 * Out: instructions with a source position each, and relocations.
 * Always true: r0 and r5 are never allocated, because the emitter needs them as scratch. r1-r4 hold
 * registers that live across no call, r6-r9 the others, the stack the rest. The frame has at most
 * EBPF_FRAME_MAX bytes. */
#ifndef DESCRY_COMPILE_EBPF_EBPF_H
#define DESCRY_COMPILE_EBPF_EBPF_H

#include <linux/bpf.h>

#include "compile/ir/ir.h"
#include "data/image.h"

/* The rest of the 512 bytes is for the routines of bpf/. */
enum { EBPF_FRAME_MAX = 320 };

struct ebpf_code {
	VEC(struct bpf_insn) insns;
	VEC(loc_t) locs;
	VEC(struct reloc) relocs;
};

/* The places of registers and stack objects. */
struct ebpf_place {
	int8_t reg;
	int16_t slot;
}; /* reg > 0, or slot: offset from r10 (negative) */
struct ebpf_frame {
	struct ebpf_place *regs; /* nregs + 1 */
	int16_t *objects;        /* offset from r10 */
	/* By register: 1 + the instruction that defines it, or 0. Not 0 only where the value is
	 * built from constants alone and is the argument of one call: it is computed in the
	 * argument's register. */
	uint32_t *late;
	uint32_t size;
};

void ebpf_code_init(struct ebpf_code *c);
void ebpf_code_fini(struct ebpf_code *c);
/* Appends the instructions of f. Returns false when the frame or a jump is too large, with the
 * reason in *ret_why (static text). */
bool ebpf_emit(struct ebpf_code *c, const struct ir_fn *f, const char **ret_why);

/* registers.c */
void ebpf_allocate(const struct ir_fn *f, struct ebpf_frame *ret);
void ebpf_frame_fini(struct ebpf_frame *fr);

#endif
