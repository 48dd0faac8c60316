/* libdw's walk of a stopped thread's stack. */
#ifndef DESCRY_TEST_LIBDW_STACK_H
#define DESCRY_TEST_LIBDW_STACK_H

#include <stdint.h>
#include <sys/types.h>

enum { LIBDW_FRAMES = 4096 };
struct frames {
	uint64_t pc[LIBDW_FRAMES]; /* innermost first; callers' are return addresses */
	uint32_t n;
	int error; /* it did not get to the end */
};

/* pid: a process that the caller traces and has stopped. */
void libdw_stack(pid_t pid, struct frames *ret);

#endif
