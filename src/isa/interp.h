/* The reference interpreter of eBPF: runs instructions without a kernel and without trust.
 *
 * In: instructions that ebpf_check() accepted, permitted memory, helpers. Out: r0, or an error that
 * names the instruction.
 * Always true: a run ends (instruction budget). No instruction touches a byte outside the permitted
 * regions and its own stack, whatever the program. A register is read only when it has a value
 * (r1-r5 have none after a call), as the kernel's verifier requires. The interpreter knows nothing
 * of maps: the caller resolves LD_IMM64 and runs helpers. */
#ifndef DESCRY_ISA_INTERP_H
#define DESCRY_ISA_INTERP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "isa/bpf_insn.h"

/* Permitted memory: disjoint regions of this process, in address order. Regions may be added and
 * removed during a run. */
struct interp_region {
	uint64_t start, len;
	bool writable;
};
struct interp_mem {
	struct interp_region *regions;
	uint32_t n, cap;
	uint32_t last; /* the region of the last access */
};
void interp_mem_fini(struct interp_mem *m);
/* Adds a region. It must not overlap another region. A length of 0 adds nothing. */
void interp_mem_add(struct interp_mem *m, const void *start, uint64_t len, bool writable);
/* Removes the region that begins at start, if any. */
void interp_mem_del(struct interp_mem *m, const void *start);

struct interp;
struct interp_ops {
	/* Runs helper `id`. The result becomes r0. Calls interp_fail() when the program must not
	 * continue. */
	uint64_t (*helper)(struct interp *in, uint32_t id, const uint64_t args[5]);
	/* Sets *ret_value for an LD_IMM64 whose src_reg is not 0 and not BPF_PSEUDO_FUNC. Returns
	 * false when it is unknown. */
	bool (*resolve)(struct interp *in, const struct bpf_insn *insn, uint64_t *ret_value);
	/* Loads from outside the permitted memory. The kernel does so for pointers with BTF types:
	 * it handles faults and returns 0. Returns false on an error, as when the member is
	 * NULL. */
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
	/* Private. */
	uint8_t *stack; /* INTERP_FRAMES * EBPF_STACK_SIZE */
	uint32_t depth; /* functions running */
	uint32_t pc;
	struct err *err;
};

void interp_init(struct interp *in, const struct interp_ops *ops, void *arg,
		 const struct bpf_insn *insns, uint32_t n, struct interp_mem *mem);
void interp_fini(struct interp *in);
/* Runs the program from instruction `start` with r1 = ctx. */
struct err *interp_run(struct interp *in, uint32_t start, uint64_t ctx, uint64_t *ret_r0);

/* For helpers. */
/* Calls a function of the program by the pointer that LD_IMM64 with BPF_PSEUDO_FUNC made
 * (bpf_loop). Returns false when it failed; the helper must return at once then. */
bool interp_call(struct interp *in, uint64_t func, const uint64_t args[5], uint64_t *ret_r0);
/* Returns the bytes [addr, addr + len) for the program's use, or NULL (and the run fails) when the
 * program may not use them. len 0 is always permitted. */
void *interp_bytes(struct interp *in, uint64_t addr, uint64_t len, bool write);
void interp_fail(struct interp *in, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
