/* Inside program/object/: how the code around a question "is the probe enabled?" takes its
 * answer. */
#ifndef DESCRY_PROGRAM_OBJECT_ANSWER_H
#define DESCRY_PROGRAM_OBJECT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

/* Machine code that read() gives up to n bytes of from an address on; it returns how many. */
struct code {
	uint32_t (*read)(const void *arg, uint64_t addr, uint8_t *buf, uint32_t n);
	const void *arg;
};

/* Is rax read from addr on, before it is written? Jumps that always go are followed, others end
 * it. */
bool code_reads_rax(const struct code *c, uint64_t addr);
/* Is rdi written in the instructions from start, a function's first, up to addr, and no branch or
 * call between? */
bool code_sets_rdi(const struct code *c, uint64_t start, uint64_t addr);

#endif
