/* Debugging information by libdw, in files that may be hostile.
 *
 * libdw (0.188) takes it that a string ends within its section, and reads some numbers before it looks where the section ends.
 * Here each section it reads gets bytes behind it that may be read, and a NUL among them.
 */
#ifndef DESCRY_PROGRAM_OBJECT_DWARF_H
#define DESCRY_PROGRAM_OBJECT_DWARF_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "base/mem.h"

/* Sections that had to be copied, all 0 at first. Freed by dwarf_copies_free(), after dwfl_end(). */
struct dwarf_copies {
	VEC(void *) v;
};
void dwarf_copies_free(struct dwarf_copies *c);

/* dwfl_module_getdwarf(), which may be called from then on, too. NULL: there is none, or not whole. */
Dwarf *dwarf_of_module(Dwfl_Module *m, Dwarf_Addr *bias, struct dwarf_copies *c);

#endif
