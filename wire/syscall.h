/* Dispatch of system calls: the value of MAP_SYSCALLS (BPF_MAP_TYPE_ARRAY). The index is the system
 * call's number for entry, WIRE_SYSCALL_MAX + number for return. */
#ifndef DESCRY_WIRE_SYSCALL_H
#define DESCRY_WIRE_SYSCALL_H

#include "wire/wire_record.h"

enum { WIRE_SYSCALL_MAX = 512 };

struct wire_syscall {
	uint32_t probe; /* index in image.probes + 1; 0: this call is not traced */
	uint32_t pad;
	uint64_t mask; /* bit i: the program's clause i applies */
};

_Static_assert(sizeof(struct wire_syscall) == 16, "syscall entry");

#endif
