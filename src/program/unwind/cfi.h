/* Private to program/unwind/: eh_frame.c's result from the call frame information, before it is
 * split into pages. */
#ifndef DESCRY_PROGRAM_UNWIND_CFI_H
#define DESCRY_PROGRAM_UNWIND_CFI_H

#include "base/mem.h"
#include "program/unwind/unwind.h"

/* rule is valid from addr on, up to the function's next row. */
struct cfi_row {
	uint64_t addr;
	uint32_t rule;
};

/* [start, end): an FDE. Its rows lie at rows[first]. */
struct cfi_func {
	uint64_t start, end;
	uint32_t first, n;
	uint64_t lsda; /* link-time address of its exception table, 0 none */
	int16_t rbx;   /* place of its saved rbx, in words from its CFA; 0: it does not save rbx */
};

struct cfi {
	VEC(struct cfi_row) rows;
	VEC(struct cfi_func) funcs; /* in file order */
	uint32_t skipped;           /* rows whose rule could not be expressed: their rule is NONE */
	/* The section ended in an error, or has too many rows; the part before it was read. */
	bool bad;
};

/* Reads a section. eh: .eh_frame, else .debug_frame. addr: the section's link-time address. */
void cfi_read(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr, bool eh);
/* Adds a section to c. */
void cfi_add(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr, bool eh);
/* Adds Go's functions, from Go's own table. Returns false when the object has none. */
bool cfi_add_go(struct cfi *c, const struct object *o);
/* Reads only the functions, each with the row of its first instruction. */
void cfi_read_ranges(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr,
		     bool eh);
void cfi_fini(struct cfi *c);

#endif
