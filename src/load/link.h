/* The linker: one program of an image + the routines of bpf/ it needs -> instructions ready for
 * bpf(2) or the interpreter.
 *
 * In: struct image_prog with relocations. Out: instructions without relocations, BTF and func_info
 * that cover every function.
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
	/* What stands in imm for map `index` of the image: a file descriptor for the kernel, any
	 * number for an interpreter. */
	int32_t (*map)(void *arg, uint32_t index);
	/* Address of a kernel symbol; NULL, or false: an error that names the symbol. */
	bool (*ksym)(void *arg, const char *name, uint64_t *ret);
};

struct linked_func {
	uint32_t start;   /* first instruction; functions end where the next starts */
	uint32_t btf_id;  /* its BTF_KIND_FUNC in btf */
	const char *name; /* the program's own: "prog" or "prog_funcN"; routines: theirs */
};

struct linked {
	struct bpf_insn *insns;
	uint32_t ninsns;
	uint32_t nown;             /* instructions of the image's program */
	loc_t *locs;               /* [nown]; borrowed from the image */
	struct linked_func *funcs; /* in order of start; funcs[0].start == 0 */
	uint32_t nfuncs;
	struct bpf_func_info *func_info; /* [nfuncs], as bpf(2) wants it */
	void *btf;                       /* BTF blob for BPF_BTF_LOAD */
	uint32_t btf_size;
	char *names; /* storage of the own functions' names */
};

struct err *link_prog(const struct image_prog *p, const struct link_hooks *hooks,
		      struct linked *ret);
void linked_free(struct linked *l);

/* Does bpf/ have this routine? */
bool link_has_routine(const char *name);

#endif
