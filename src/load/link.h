/* The linker: joins one program of an image with the routines of bpf/ that it needs. The result is
 * ready for bpf(2) or the interpreter.
 *
 * In: struct image_prog with relocations. Out: instructions without relocations; on demand BTF and
 * func_info that cover every function.
 * Always true: the program's own instructions keep their indices (they come first, [0, nown)); only
 * routines that are reached, and the callbacks they pass to bpf_loop, are appended; every function
 * is BTF_FUNC_STATIC.
 *
 * What the result holds:
 *   call to a function     BPF_JMP | BPF_CALL, src_reg BPF_PSEUDO_CALL, imm = target - this - 1
 *   address of a callback  LD_IMM64, src_reg BPF_PSEUDO_FUNC, imm = target - this - 1
 *   map                    LD_IMM64, src_reg BPF_PSEUDO_MAP_FD, imm = hooks->map(target)
 *   map value              LD_IMM64, src_reg BPF_PSEUDO_MAP_VALUE, imm = hooks->map(target),
 *                          next insn's imm = addend
 *   kernel symbol          LD_IMM64, src_reg 0, the address in both imm
 *   helper                 BPF_JMP | BPF_CALL, src_reg 0, imm = helper number
 */
#ifndef DESCRY_LOAD_LINK_H
#define DESCRY_LOAD_LINK_H

#include <linux/bpf.h>

#include "base/err.h"
#include "data/image.h"

struct link_hooks {
	void *arg;
	/* Returns the imm for map `index` of the image: a file descriptor for the kernel, any
	 * number for an interpreter. */
	int32_t (*map)(void *arg, uint32_t index);
};

struct linked_func {
	uint32_t start;   /* first instruction; functions end where the next starts */
	uint32_t btf_id;  /* its BTF_KIND_FUNC in btf */
	const char *name; /* of the image's program, or of the routine */
};

struct linked {
	struct bpf_insn *insns;
	uint32_t ninsns;
	uint32_t nown;             /* instructions of the image's program */
	loc_t *locs;               /* [nown]; borrowed from the image */
	struct linked_func *funcs; /* in order of start; [0] is the image's program */
	uint32_t nfuncs;
	/* NULL before linked_types() */
	struct bpf_func_info *func_info; /* [nfuncs], as bpf(2) wants it */
	void *btf;                       /* BTF blob for BPF_BTF_LOAD */
	uint32_t btf_size;
	char *name; /* of the image's program, with letters, digits and '_' only */
};

struct err *link_prog(const struct image_prog *p, const struct link_hooks *hooks,
		      struct linked *ret);
/* Makes the BTF and the func_info, some 80 kB for each program. Only the kernel needs them. */
void linked_types(struct linked *l);
void linked_free(struct linked *l);

/* Returns true when bpf/ has this routine. */
bool link_has_routine(const char *name);

#endif
