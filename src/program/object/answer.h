/* Private to program/object/: how the code around a question "is the probe enabled?" uses its
 * answer. */
#ifndef DESCRY_PROGRAM_OBJECT_ANSWER_H
#define DESCRY_PROGRAM_OBJECT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

/* Machine code. read() reads up to n bytes from an address on and returns their count. */
struct code {
	uint32_t (*read)(const void *arg, uint64_t addr, uint8_t *buf, uint32_t n);
	const void *arg;
};

/* Returns true when code from addr on reads rax before it writes rax. Follows jumps that are always
 * taken. Other jumps end the search. */
bool code_reads_rax(const struct code *c, uint64_t addr);
/* Returns true when rdi is written in the instructions from start, a function's first, up to addr,
 * without a branch or call in between. */
bool code_sets_rdi(const struct code *c, uint64_t start, uint64_t addr);

#endif
