#include "agent_link.h"

#include "unit.h"

static int32_t map_number(void *arg, uint32_t index)
{
	return (int32_t)index;
}

void world_link(struct bpf_insn *insns, uint32_t ninsns, struct reloc *relocs, uint32_t nrelocs,
		struct linked *ret)
{
	struct image_prog prog = { .name = "routine",
				   .insns = insns,
				   .ninsns = ninsns,
				   .relocs = relocs,
				   .nrelocs = nrelocs };
	const struct link_hooks hooks = { .map = map_number };

	assert_null(link_prog(&prog, &hooks, ret));
}
