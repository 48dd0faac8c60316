/* The search for the code of CPython that makes objects. Private to this folder. */
#ifndef DESCRY_PROGRAM_RUNTIME_PYTHON_ALLOCATIONS_H
#define DESCRY_PROGRAM_RUNTIME_PYTHON_ALLOCATIONS_H

#include <Zydis/Zydis.h>

#include "program/runtime/python/python.h"

/* Returns the number of the general register that a register is, or is a part of, in x86's order;
 * -1: of none. */
static inline int python_x86_register(ZydisRegister reg)
{
	reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15
		       ? (int)(reg - ZYDIS_REGISTER_RAX)
		       : -1;
}

/* --- traced_references.c --- */
/* As python_allocations(), of 3.13. */
const char *python_traced_references(struct object *o, struct python_allocations *ret);

#endif
