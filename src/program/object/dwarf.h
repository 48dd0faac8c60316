/* Debugging information by libdw, in files that may be hostile.
 *
 * libdw (0.188) takes it that a string ends within its section, and reads some numbers before it
 * looks where the section ends. Here each section it reads gets bytes behind it that may be read,
 * and a NUL among them.
 */
#ifndef DESCRY_PROGRAM_OBJECT_DWARF_H
#define DESCRY_PROGRAM_OBJECT_DWARF_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "base/mem.h"

/* Sections that had to be copied, all 0 at first. Freed by dwarf_copies_free(), after
 * dwfl_end(). */
struct dwarf_copies {
	VEC(void *) v;
};
void dwarf_copies_free(struct dwarf_copies *c);

/* Files are opened here, not by libdwfl: it would wait for a FIFO's writer for ever, and is not to
 * be interrupted. What lies in /usr/lib/debug, and a debuginfod server's answers, it looks for
 * itself. */
extern const Dwfl_Callbacks dwarf_callbacks; /* for dwarf_report() */
extern char *dwarf_debug_path;               /* with dwarf_find_debuginfo() in others' */
int dwarf_find_debuginfo(Dwfl_Module *m, void **userdata, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **ret_path);
/* libdwfl maps what it reads; changed_count() (base/changed.h) tells when a file was cut short
 * meanwhile, and what was read of any can no more be believed. */
/* dwfl_report_offline() of a regular file; NULL: it is none, or no ELF file. */
Dwfl_Module *dwarf_report(Dwfl *d, const char *name, const char *path);

/* dwfl_module_getdwarf(), which may be called from then on, too. NULL: there is none, or not
 * whole. */
Dwarf *dwarf_of_module(Dwfl_Module *m, Dwarf_Addr *bias, struct dwarf_copies *c);

#endif
