/* User stacks that perf copied with each sample (--call-graph dwarf), unwound.
 *
 *	registers: u64 abi | u64 each, by perf's numbers, those of the event's mask     (no more than abi when that is 0)
 *	stack:     u64 size | size bytes from the stack pointer on | u64 of them copied (no more than size when that is 0)
 *
 * In: these bytes, and the mappings of the process at that time. Out: the addresses of the frames,
 * leaf first.
 * Always true: a stack whose end was not reached is counted, with the reason.
 */
#ifndef DESCRY_INPUT_PERF_PERFUNWIND_H
#define DESCRY_INPUT_PERF_PERFUNWIND_H

#include "base/bytes.h"
#include "input/perf/perfspace.h"
#include "program/unwind/unwind.h"

enum { PERFUNWIND_FRAMES = 4096 };

struct perfunwind {
	uint64_t pcs[PERFUNWIND_FRAMES];
	uint64_t walked;                      /* stacks */
	uint64_t ends[WIRE_UNWIND_END_COUNT]; /* of these, by how they ended */
	uint64_t cut;                         /* more frames than the bytes that were copied */
	uint64_t foreign; /* registers of 32-bit programs and other machines, or too few of them */
};

/* Of a sample: its registers and its stack, whose fields begin at b. */
struct perfunwind_copy {
	uint64_t abi;
	uint64_t mask;
	struct unwind_regs regs; /* when abi is not 0 */
	const uint8_t *stack;    /* NULL none */
	uint64_t size;
};
/* What the fields in `type` hold; false when they are cut off. */
bool perfunwind_read(struct bytes *b, bool has_regs, uint64_t mask, bool has_stack,
		     struct perfunwind_copy *ret);
/* To u->pcs: the first one is where the program was, the others are return addresses. Their count;
 * 0 nothing to unwind. */
uint32_t perfunwind_walk(struct perfunwind *u, const struct perfunwind_copy *c,
			 const struct unwind_process *p);
void perfunwind_notes(const struct perfunwind *u, struct stackin *in);

#endif
