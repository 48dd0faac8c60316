/* Inside program/unwind/: what eh_frame.c makes of the call frame information, before it is
 * paged. */
#ifndef DESCRY_PROGRAM_UNWIND_CFI_H
#define DESCRY_PROGRAM_UNWIND_CFI_H

#include "base/mem.h"
#include "program/unwind/unwind.h"

/* From addr on (up to the function's next row), rule holds. */
struct cfi_row {
	uint64_t addr;
	uint32_t rule;
};

/* [start, end): an FDE. Its rows lie at rows[first]. */
struct cfi_func {
	uint64_t start, end;
	uint32_t first, n;
	uint64_t lsda; /* link-time address of its exception table, 0 none */
	int16_t rbx;   /* where it saves rbx, in words from its CFA; 0: it does not */
};

struct cfi {
	VEC(struct cfi_row) rows;
	VEC(struct cfi_func) funcs; /* in file order */
	uint32_t skipped;           /* rows whose rule could not be expressed: they say NONE */
	bool bad;                   /* the section ended in an error; what came before is there */
};

/* eh: .eh_frame, else .debug_frame. addr: the section's link-time address. */
void cfi_read(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr, bool eh);
/* The same, added to what is there. */
void cfi_add(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr, bool eh);
/* Go's functions, from its own table, added to what is there. False: it has none. */
bool cfi_add_go(struct cfi *c, const struct object *o);
/* Only the functions, each with the row of its first instruction. */
void cfi_read_ranges(struct cfi *c, const char *name, const uint8_t *p, size_t n, uint64_t addr,
		     bool eh);
void cfi_fini(struct cfi *c);

#endif
