/* Unwind tables: how to get from a frame to its caller, without DWARF at run time.
 *
 * One file's tables (the unwind image, position independent, cached on disk by build-id):
 *
 *	struct wire_unwind_image
 *	uint32_t pages[npages + 1]     first row of each 64 KB of text; [npages] = nrows
 *	uint32_t rules[nrules]         rules[0] is 0: nothing known
 *	uint32_t rows[nrows]           WIRE_UNWIND_ROW(pc, rule): sorted in each page, its first row has pc 0
 *
 * A row holds from its pc up to the next row's. In the kernel all tables lie in chunks of 65,536 words (MAP_UNWIND, an
 * array of one-element arrays); a word's address is chunk << 16 | index and nothing that is searched crosses a chunk:
 *
 *	chunk 0    uint32_t rules[65536]                 of all files, by number
 *	anywhere   struct wire_unwind_mapping [n]        of a process, by start
 *	anywhere   struct wire_unwind_page [npages]      of a file
 *	anywhere   uint32_t rows[n]                      of a page
 */
#ifndef DESCRY_WIRE_UNWIND_H
#define DESCRY_WIRE_UNWIND_H

#include "wire/record.h"

/* X(name, what): CFA is the stack pointer in the caller; the return address lies at CFA - 8 unless said. */
#define WIRE_UNWIND_KINDS(X) \
	X(NONE, "nothing known: step by frame pointer") \
	X(RSP, "CFA = rsp + off") \
	X(RBP, "CFA = rbp + off") \
	X(RSP_DEREF, "CFA = *(rsp + off)") \
	X(RSP_DEREF8, "CFA = *(rsp + off) + 8") \
	X(RBP_DEREF, "CFA = *(rbp + off); rbp is saved relative to rbp") \
	X(PLT, "CFA = rsp + 8, + 16 once (pc & 15) >= off") \
	X(STOP, "outermost frame: no caller") \
	X(SIGRETURN, "registers lie in the ucontext rsp points to") \
	X(RA_RDI, "CFA = rsp + off; return address in rdi (vfork)") \
	X(R10, "CFA = r10 + off (realigning prologues)")

enum wire_unwind_kind {
#define X(name, what) WIRE_UNWIND_##name,
	WIRE_UNWIND_KINDS(X)
#undef X
		WIRE_UNWIND_KIND_COUNT
};

/* A rule: kind (4 bits), where the caller's rbp is saved (12 bits, signed, in words from CFA; WIRE_UNWIND_SAME: it is
 * unchanged), off (16 bits, signed, in words; PLT: in bytes). */
enum { WIRE_UNWIND_SAME = -2048 };
#define WIRE_UNWIND_RULE(kind, rbp, off) \
	((uint32_t)(kind) | ((uint32_t)(rbp)&0xfff) << 4 | (uint32_t)(off) << 16)
#define WIRE_UNWIND_RULE_KIND(r) ((r)&15)
#define WIRE_UNWIND_RULE_RBP(r) ((int32_t)((r) << 16) >> 20)
#define WIRE_UNWIND_RULE_OFF(r) ((int32_t)(r) >> 16)

#define WIRE_UNWIND_ROW(pc, rule) (((uint32_t)(pc)&0xffff) | (uint32_t)(rule) << 16)
#define WIRE_UNWIND_ROW_PC(row) ((row)&0xffff)
#define WIRE_UNWIND_ROW_RULE(row) ((row) >> 16)

/* ucontext of a signal frame on x86-64: byte offsets. */
enum { WIRE_UNWIND_UC_RBP = 120, WIRE_UNWIND_UC_RSP = 160, WIRE_UNWIND_UC_RIP = 168 };

enum {
	WIRE_UNWIND_MAGIC = 0x776e7564, /* "dunw" */
	WIRE_UNWIND_VERSION = 1,
	WIRE_UNWIND_PAGE_SHIFT = 16,
	WIRE_UNWIND_CHUNK_WORDS = 65536,
	WIRE_UNWIND_CHUNKS = 1024,
	WIRE_UNWIND_PAGES_MAX = 16384, /* of one file: 1 GB of text */
	WIRE_UNWIND_MAPPINGS_MAX = 4096,
	WIRE_UNWIND_PROCESSES = 8192,
};

struct wire_unwind_image {
	uint32_t magic;
	uint16_t version;
	uint16_t build_id_len;
	uint8_t build_id[32];
	uint32_t first_page; /* link-time address >> 16 */
	uint32_t npages, nrules, nrows;
	uint32_t skipped; /* rows whose rule could not be expressed */
	uint32_t pad;
};

/* Value of MAP_UNWIND_PROCESSES (hash, key: uint32_t tgid). A routine that meets an unknown process adds it with
 * mappings 0; who keeps the tables looks for those. */
struct wire_unwind_process {
	uint32_t mappings; /* address of its struct wire_unwind_mapping[n]; 0: not loaded yet */
	uint32_t n;
	uint32_t missed; /* set when an address was in no mapping: they have changed */
	uint32_t pad;
};

struct wire_unwind_mapping {
	uint64_t start;
	uint64_t bias;  /* address - link-time address */
	uint32_t size;  /* in 4 KB */
	uint32_t pages; /* address of the file's struct wire_unwind_page[npages]; 0: no tables */
	uint32_t first_page, npages;
};

struct wire_unwind_page {
	uint32_t rows; /* address */
	uint32_t n;
};

/* How a walk ended: wire_stack.end. */
#define WIRE_UNWIND_ENDS(X) \
	X(ROOT, "complete") \
	X(DEEP, "more frames than asked for") \
	X(NO_TABLE, "no unwind table for an address") \
	X(UNREADABLE, "stack memory not readable") \
	X(BAD, "not a stack: the frame pointer or CFA makes no sense") \
	X(NO_USER, "no user mode registers (kernel thread)")

enum wire_unwind_end {
#define X(name, what) WIRE_UNWIND_END_##name,
	WIRE_UNWIND_ENDS(X)
#undef X
		WIRE_UNWIND_END_COUNT
};

#ifndef DESCRY_BPF
_Static_assert(sizeof(struct wire_unwind_image) == 64, "unwind image");
_Static_assert(sizeof(struct wire_unwind_process) == 16, "unwind process");
_Static_assert(sizeof(struct wire_unwind_mapping) == 32, "unwind mapping");
_Static_assert(sizeof(struct wire_unwind_page) == 8, "unwind page");
_Static_assert(WIRE_UNWIND_KIND_COUNT <= 16, "unwind kinds");
#endif

#endif
