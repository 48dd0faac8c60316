/* A BPF routine called from a few instructions, for interpreter and JIT. */
#ifndef DESCRY_TEST_AGENT_LINK_H
#define DESCRY_TEST_AGENT_LINK_H

#include "data/image.h"
#include "load/link.h"

/* Maps are known by their index. */
void world_link(struct bpf_insn *insns, uint32_t ninsns, struct reloc *relocs, uint32_t nrelocs,
		struct linked *ret);

#endif
