/* The head of the blob: offsets of the entries, in the order of WIRE_AGENT_ENTRIES. */
#include "agent/agent.h"

_Static_assert(WIRE_AREA_MAGIC == 0x6172656164736372ull && WIRE_AREA_VERSION == 8 &&
		       offsetof(struct wire_agent_head, size) == 16 &&
		       offsetof(struct wire_agent_head, entry) == 24,
	       "the words below");

#define X(name, what) "	.long agent_" #name " - agent_head\n"
__asm__(".pushsection .head, \"a\", @progbits\n"
	".globl agent_head\n.hidden agent_head\n"
	".balign 16\n"
	"agent_head:\n"
	"	.quad 0x6172656164736372\n"
	"	.long 8\n"
	"	.long (agent_entries_end - agent_entries) / 4\n"
	"	.long agent_end - agent_head\n"
	"	.long 0\n"
	"agent_entries:\n" WIRE_AGENT_ENTRIES(X) "agent_entries_end:\n"
						 ".popsection\n");
