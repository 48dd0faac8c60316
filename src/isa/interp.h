/* The reference interpreter of eBPF: what an instruction does, without a kernel and without trust.
 *
 * In: instructions that ebpf_check() found sound, permitted memory, helpers. Out: r0, or an error
 * that names the instruction.
 * Always true: a run ends (instruction budget); no instruction touches a byte outside the permitted
 * regions and its own stack, whatever the program; a register is read only when it has a value
 * (r1-r5 have none after a call), as the kernel's verifier demands. It knows nothing of maps: the
 * caller resolves LD_IMM64 and runs helpers.
 */
#ifndef DESCRY_ISA_INTERP_H
#define DESCRY_ISA_INTERP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "isa/ebpf.h"

/* Permitted memory: disjoint regions of this process, in address order. Regions may come and go
 * during a run. */
struct interp_region {
	uint64_t start, len;
	bool writable;
};
struct interp_mem {
	struct interp_region *regions;
	uint32_t n, cap;
	uint32_t last; /* where the last access was */
};
void interp_mem_fini(struct interp_mem *m);
/* start must not overlap a region that is there. A length of 0 is no region. */
void interp_mem_add(struct interp_mem *m, const void *start, uint64_t len, bool writable);
/* Removes the region that starts there, if any. */
void interp_mem_del(struct interp_mem *m, const void *start);

struct interp;
struct interp_ops {
	/* Runs helper `id`; the result becomes r0. Calls interp_fail() when the program may not go
	 * on. */
	uint64_t (*helper)(struct interp *in, uint32_t id, const uint64_t args[5]);
	/* The value of an LD_IMM64 whose src_reg is not 0 and not BPF_PSEUDO_FUNC. False:
	 * unknown. */
	bool (*resolve)(struct interp *in, const struct bpf_insn *insn, uint64_t *ret_value);
	/* A load outside the permitted memory (what the kernel does for pointers with BTF types: it
	 * reads with fault handling and gives 0). False: an error, as when the member is NULL. */
	bool (*load)(struct interp *in, uint64_t addr, uint32_t size, uint64_t *ret_value);
};

enum { INTERP_FRAMES = 8 };

struct interp {
	const struct interp_ops *ops;
	void *arg; /* the caller's */
	const struct bpf_insn *insns;
	uint32_t ninsns;
	struct interp_mem *mem; /* shared by the programs of an image */
	uint64_t budget;        /* instructions left; set before a run */
	uint64_t executed;      /* instructions run so far */
	uint32_t failed_at;     /* instruction of the last error */
	/* private */
	uint8_t *stack; /* INTERP_FRAMES * EBPF_STACK_SIZE */
	uint32_t depth; /* functions running */
	uint32_t pc;
	struct err *err;
};

void interp_init(struct interp *in, const struct interp_ops *ops, void *arg,
		 const struct bpf_insn *insns, uint32_t n, struct interp_mem *mem);
void interp_fini(struct interp *in);
/* Runs from instruction `start` with r1 = ctx. */
struct err *interp_run(struct interp *in, uint32_t start, uint64_t ctx, uint64_t *ret_r0);

/* For helpers. */
/* Calls a function of the program by the pointer that LD_IMM64 with BPF_PSEUDO_FUNC made
 * (bpf_loop). False: it failed, return at once. */
bool interp_call(struct interp *in, uint64_t func, const uint64_t args[5], uint64_t *ret_r0);
/* The bytes [addr, addr + len) as the program may use them, NULL (and the run fails) when it may
 * not. len 0 is always fine. */
void *interp_bytes(struct interp *in, uint64_t addr, uint64_t len, bool write);
void interp_fail(struct interp *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline bool interp_failed(const struct interp *in)
{
	return in->err != NULL;
}

#endif
