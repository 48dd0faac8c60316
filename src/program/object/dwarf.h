/* Debugging information by libdw, in files that may be hostile.
 *
 * libdw (0.188) assumes that a string ends within its section, and reads some numbers before it
 * checks where the section ends. This module puts readable bytes, and a NUL, behind each section
 * that libdw reads. */
#ifndef DESCRY_PROGRAM_OBJECT_DWARF_H
#define DESCRY_PROGRAM_OBJECT_DWARF_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "base/mem.h"

/* The alternative file of a Dwarf, made by dwz. */
struct dwarf_alt {
	Dwarf *of, *dwarf; /* dwarf: NULL: none */
	Elf *elf;
	int fd;
};

/* Sections that had to be copied, and alternative files. Zero is empty. dwarf_copies_free() frees
 * them, after dwfl_end(). */
struct dwarf_copies {
	VEC(void *) v;
	VEC(struct dwarf_alt) alts;
	uint64_t bytes; /* copied and inflated */
};
void dwarf_copies_free(struct dwarf_copies *c);

/* Callbacks that open files here instead of in libdwfl, which would wait for a FIFO's writer for
 * ever and cannot be interrupted. libdwfl itself searches /usr/lib/debug and queries debuginfod
 * servers. */
extern const Dwfl_Callbacks dwarf_callbacks; /* for dwarf_report() */
/* Sets the most bytes of inflated and copied sections, of all files together; 0: the default. A
 * file that would need more has no DWARF. */
void dwarf_limit(uint64_t bytes);
/* libdwfl maps the files it reads. changed_count() (base/changed.h) shows whether a file was
 * truncated meanwhile. Nothing read from any file can be trusted then. */
/* Calls dwfl_report_offline() for a regular file. Returns NULL when it is not regular, not ELF, or
 * not trusted. */
Dwfl_Module *dwarf_report(Dwfl *d, const char *name, const char *path);
/* A few bytes of DWARF can take libdw hours and all memory, and the author of a file chooses them.
 * So a file is trusted only when it belongs to root, to this process's user, or to the user who
 * called sudo(8), when not everybody can write it, and when it is no container's.
 * dwarf_trust_all() trusts all files. */
void dwarf_trust_all(bool all);
/* Returns the name of the first file that was not trusted, or NULL. */
const char *dwarf_untrusted(void);

/* Calls dwfl_module_getdwarf(), which may also be called later. Returns NULL when there is no
 * DWARF, or it is not whole. */
Dwarf *dwarf_of_module(Dwfl_Module *m, Dwarf_Addr *bias, struct dwarf_copies *c);

#endif
