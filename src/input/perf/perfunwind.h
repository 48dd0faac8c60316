/* Unwinds user stacks that perf copied with each sample (--call-graph dwarf).
 *
 *	registers: u64 abi | u64 each, by perf's numbers, those of the event's mask     (no more than abi when that is 0)
 *	stack:     u64 size | size bytes from the stack pointer on | u64 of them copied (no more than size when that is 0)
 *
 * In: these bytes, and the mappings of the process at that time. Out: the addresses of the frames,
 * leaf first. Always true: a stack whose end was not reached is counted, with the reason.
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
	uint64_t ends[WIRE_UNWIND_END_COUNT]; /* number of these, by the reason */
	uint64_t cut;                         /* stacks with more frames than the copied bytes */
	/* registers of 32-bit programs and other machines, or too few registers */
	uint64_t foreign;
};

/* The registers and the stack of a sample; their fields begin at b. */
struct perfunwind_copy {
	uint64_t abi;
	uint64_t mask;
	struct unwind_regs regs; /* valid when abi is not 0 */
	const uint8_t *stack;    /* NULL none */
	uint64_t size;
};
/* Reads the fields for `type`. Returns false when they are cut off. */
bool perfunwind_read(struct bytes *b, bool has_regs, uint64_t mask, bool has_stack,
		     struct perfunwind_copy *ret);
/* Fills u->pcs: the first address is the program's place, the others are return addresses. Returns
 * their number, 0: nothing to unwind. */
uint32_t perfunwind_walk(struct perfunwind *u, const struct perfunwind_copy *c,
			 const struct unwind_process *p);
void perfunwind_notes(const struct perfunwind *u, struct stackin *in);

#endif
