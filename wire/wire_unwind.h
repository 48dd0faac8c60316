/* Unwind tables: the way from a frame to its caller, without DWARF at run time.
 *
 * One file's tables (the unwind image, position independent, cached on disk by build-id):
 *
 *	struct wire_unwind_image
 *	uint32_t pages[npages + 1]     first row of each 64 KB of text; [npages] = nrows
 *	uint32_t rules[nrules]         rules[0] is 0: nothing known
 *	uint32_t rows[nrows]           WIRE_UNWIND_ROW(pc, rule): sorted in each page, its first row has pc 0
 *
 * A row holds from its pc up to the next row's. In the kernel all tables lie in chunks of 65,536
 * words (MAP_UNWIND, an array of one-element arrays). A word's address is chunk << 16 | index. No
 * table that is searched crosses a chunk:
 *
 *	chunk 0    uint32_t rules[65536]                 of all files, by number
 *	chunk 1    struct wire_unwind_files              files by identity: for processes without a list of mappings
 *	anywhere   struct wire_unwind_mapping [n]        of a process, by start
 *	anywhere   struct wire_unwind_page [npages]      of a file
 *	anywhere   uint32_t rows[n]                      of a page
 */
#ifndef DESCRY_WIRE_WIRE_UNWIND_H
#define DESCRY_WIRE_WIRE_UNWIND_H

#include "wire/wire_record.h"

/* X(name, what): CFA is the stack pointer in the caller. The return address lies at CFA - 8, except
 * where `what` says otherwise. */
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
	X(REG, "CFA = register + off; of the innermost frame only, where all registers are known") \
	X(INDEX, "CFA = *(rsp + register * 8 + off) + 8 (assembly); innermost only") \
	X(STACK, "CFA = rbp + off, and it is on another stack")

enum wire_unwind_kind {
#define X(name, what) WIRE_UNWIND_##name,
	WIRE_UNWIND_KINDS(X)
#undef X
		WIRE_UNWIND_KIND_COUNT
};

/* A rule: kind (4 bits); the place of the caller's saved rbp (12 bits, signed, in words from CFA;
 * WIRE_UNWIND_SAME: rbp is unchanged); off (16 bits, signed, in words; PLT: in bytes). */
enum { WIRE_UNWIND_SAME = -2048 };
#define WIRE_UNWIND_RULE(kind, rbp, off) \
	((uint32_t)(kind) | ((uint32_t)(rbp)&0xfff) << 4 | (uint32_t)(off) << 16)
#define WIRE_UNWIND_RULE_KIND(r) ((r)&15)
#define WIRE_UNWIND_RULE_RBP(r) ((int32_t)((r) << 16) >> 20)
#define WIRE_UNWIND_RULE_OFF(r) ((int32_t)(r) >> 16)

/* The rule of address 0, which a program calls by mistake. Only the return address has been
 * pushed. */
#define WIRE_UNWIND_CALLED WIRE_UNWIND_RULE(WIRE_UNWIND_RSP, WIRE_UNWIND_SAME, 1)

/* REG with rbx, which every function that changes it saves. rbp is unchanged. The rbp field is the
 * place where the called function saves rbx, in words from that function's CFA, which is rsp here;
 * SAME: not known. So the rule works in outer frames too (lazy binding: _dl_runtime_resolve). */
enum { WIRE_UNWIND_REG_RBX = 3 };
/* REG and INDEX: the low four bits of off are the register (DWARF's number), the 12 bits above are
 * words. */
#define WIRE_UNWIND_REG_OFF(reg, words) ((uint32_t)(reg) | ((uint32_t)(words)&0xfff) << 4)
#define WIRE_UNWIND_RULE_REG(r) ((r) >> 16 & 15)
#define WIRE_UNWIND_RULE_WORDS(r) ((int32_t)(r) >> 20)

#define WIRE_UNWIND_ROW(pc, rule) (((uint32_t)(pc)&0xffff) | (uint32_t)(rule) << 16)
#define WIRE_UNWIND_ROW_PC(row) ((row)&0xffff)
#define WIRE_UNWIND_ROW_RULE(row) ((row) >> 16)

/* ucontext of a signal frame on x86-64: byte offsets. */
enum { WIRE_UNWIND_UC_RBP = 120, WIRE_UNWIND_UC_RSP = 160, WIRE_UNWIND_UC_RIP = 168 };

enum {
	WIRE_UNWIND_MAGIC = 0x776e7564, /* "dunw" */
	WIRE_UNWIND_VERSION = 5,
	WIRE_UNWIND_PAGE_SHIFT = 16,
	WIRE_UNWIND_CHUNK_WORDS = 65536,
	WIRE_UNWIND_CHUNKS = 1024,
	WIRE_UNWIND_KNOWN_CHUNKS =
		16, /* the last chunks: remembered rules, by the CPU's low bits */
	WIRE_UNWIND_CODES = WIRE_UNWIND_CHUNKS - WIRE_UNWIND_KNOWN_CHUNKS -
			    1, /* this chunk has hashes of the code objects that were requested */
	WIRE_UNWIND_KNOWN = 8192,      /* words of 8 bytes that each chunk uses */
	WIRE_UNWIND_PAGES_MAX = 16384, /* pages of one file: 1 GB of text */
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
	uint32_t skipped; /* rows whose rule has no form here */
	uint32_t pad;
};

/* Value of MAP_UNWIND_PROCESSES (hash, key: uint32_t tgid). A routine that meets an unknown process
 * adds it with mappings 0. The tracer then looks for such entries. */
struct wire_unwind_process {
	uint32_t mappings; /* address of its struct wire_unwind_mapping[n]; 0: not loaded yet */
	uint32_t n;
	uint32_t asked;    /* WIRE_UNWIND_ASK_* requested since the list was written */
	uint32_t mm;       /* number of the list's address space; 0: not known yet */
	uint32_t version;  /* version of the list; no two lists have the same */
	uint32_t language; /* address of its struct wire_language; 0: it runs none that is known */
};

/* The requests that a routine sends to MAP_UNWIND_WANTED. */
enum {
	WIRE_UNWIND_ASK_MET = 1, /* the first stack of the process was taken */
	WIRE_UNWIND_ASK_LIST =
		2, /* the list lacks some of its mappings; walks work without them, but slower */
	WIRE_UNWIND_ASK_NOW = 4, /* ... and the walk failed: no tables, or no kernel tree */
	/* an interpreter's frame has a code object whose name has not been read yet */
	WIRE_UNWIND_ASK_CODE = 8,
};
struct wire_unwind_ask {
	uint32_t pid, what;
	/* WIRE_UNWIND_ASK_CODE: the addresses of the code object and of a method's entry, and their
	 * id (wire/language.h) */
	uint64_t code, entry, id;
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

/* A file, with the kernel's facts of a mapping's file. The key is written last, so that a reader of
 * the key sees the rest. */
struct wire_unwind_file {
	int64_t delta; /* link-time address - file offset, of its text */
	uint32_t pages, first_page,
		npages; /* as in wire_unwind_mapping; npages 0: it has no tables */
	uint32_t pad;
	uint64_t key; /* wire_unwind_file_key(); 0: free */
};

/* Open addressing: a file is in one of the WIRE_UNWIND_PROBES places from its key on. */
enum { WIRE_UNWIND_FILES = 4096, WIRE_UNWIND_PROBES = 16, WIRE_UNWIND_KEY_VDSO = 1 };
struct wire_unwind_files {
	uint32_t enabled; /* walks may search the kernel's own tree of mappings */
	uint32_t pad[7];
	struct wire_unwind_file files[WIRE_UNWIND_FILES];
};

static inline uint64_t wire_unwind_mix(uint64_t x)
{
	/* splitmix64 (Steele, Lea, Flood 2014) */
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* Returns the key of a file. dev: major << 20 | minor. mtime is the last change of the contents,
 * because inode numbers are used again. */
static inline uint64_t wire_unwind_file_key(uint32_t dev, uint64_t inode, uint64_t mtime_sec,
					    uint32_t mtime_nsec)
{
	uint64_t h = wire_unwind_mix(inode + ((uint64_t)dev << 40) + 0x9e3779b97f4a7c15ull);

	h = wire_unwind_mix(h ^ mtime_sec ^ ((uint64_t)mtime_nsec << 34));
	return h > WIRE_UNWIND_KEY_VDSO ? h : h + 2;
}

/* The kernel's places of a process's mappings (a maple tree, from 6.1 on). The compiler takes them
 * from BTF as it does wire_offsets; WIRE_NO_OFFSET where BTF lacks the member. */
#define WIRE_UNWIND_OFFSETS(X) \
	X(task_mm, "task_struct", "mm") \
	X(task_thread, "task_struct", "thread") \
	X(thread_fsbase, "thread_struct", "fsbase") \
	X(mm_mt, "mm_struct", "mm_mt") \
	X(tree_root, "maple_tree", "ma_root") \
	X(range_pivot, "maple_range_64", "pivot") \
	X(range_slot, "maple_range_64", "slot") \
	X(arange_pivot, "maple_arange_64", "pivot") \
	X(arange_slot, "maple_arange_64", "slot") \
	X(vma_start, "vm_area_struct", "vm_start") \
	X(vma_end, "vm_area_struct", "vm_end") \
	X(vma_pgoff, "vm_area_struct", "vm_pgoff") \
	X(vma_file, "vm_area_struct", "vm_file") \
	X(file_inode, "file", "f_inode") \
	X(file_mode, "file", "f_mode") \
	X(backing_path, "backing_file", "user_path") \
	X(path_dentry, "path", "dentry") \
	X(dentry_inode, "dentry", "d_inode") \
	X(inode_ino, "inode", "i_ino") \
	X(inode_sb, "inode", "i_sb") \
	X(inode_mtime_sec, "inode", "i_mtime_sec") \
	X(inode_mtime_nsec, "inode", "i_mtime_nsec") \
	X(inode_mtime_6_7, "inode", "__i_mtime") \
	X(inode_mtime_old, "inode", "i_mtime") \
	X(sb_dev, "super_block", "s_dev")

struct wire_unwind_offsets {
#define X(field, s, m) uint32_t field;
	WIRE_UNWIND_OFFSETS(X)
#undef X
	uint32_t mm_vdso; /* mm_struct.context.vdso */
	/* 0: walks do not look for Java's, or JavaScript's, frames. Read-only data, so that the
	 * verifier leaves their code out. */
	uint32_t java, javascript;
};

/* The argument of d_ustack: the stack is its result, and its state lies behind. */
enum {
	WIRE_UNWIND_STATE = 130,
	/* Flag in wire_stack.n, above the number of frames that are wanted: all frames are
	 * addresses, also those that are functions of a language. */
	WIRE_UNWIND_ADDRESSES = 1 << 16,
	/* The thread is at a function's return or tail jump: the walk begins with its caller, as
	 * behind the return. */
	WIRE_UNWIND_RETURNED = 1 << 17,
};
struct wire_walk {
	struct wire_stack stack;
	uint64_t state[WIRE_UNWIND_STATE];
};

/* The f_mode of a file behind an overlayfs's file (struct backing_file, 6.5 on). A process that
 * maps it sees the overlayfs's file. */
enum { WIRE_UNWIND_BACKING = 1 << 25 };

/* How a walk ended: wire_stack.end. */
#define WIRE_UNWIND_ENDS(X) \
	X(ROOT, "complete") \
	X(DEEP, "more frames than asked for") \
	X(NO_TABLE, "no unwind table for an address") \
	X(UNREADABLE, "stack memory not readable") \
	X(BAD, "not a stack: the frame pointer or CFA makes no sense") \
	X(NO_USER, "no user mode registers (kernel thread)") \
	X(NOT_LOADED, "the process was too new for its unwind tables to be there")

enum wire_unwind_end {
#define X(name, what) WIRE_UNWIND_END_##name,
	WIRE_UNWIND_ENDS(X)
#undef X
		WIRE_UNWIND_END_COUNT
};

#ifndef DESCRY_BPF
_Static_assert(sizeof(struct wire_unwind_image) == 64, "unwind image");
_Static_assert(sizeof(struct wire_unwind_process) == 24, "unwind process");
_Static_assert(sizeof(struct wire_unwind_mapping) == 32, "unwind mapping");
_Static_assert(sizeof(struct wire_unwind_page) == 8, "unwind page");
_Static_assert(sizeof(struct wire_unwind_file) == 32, "unwind file");
_Static_assert(sizeof(struct wire_unwind_files) <= WIRE_UNWIND_CHUNK_WORDS * 4, "unwind files");
_Static_assert(WIRE_UNWIND_KIND_COUNT <= 16, "unwind kinds");
_Static_assert(WIRE_UNWIND_END_COUNT <= WIRE_FIXED_COUNTERS - WIRE_USTACKS, "counters of ends");
#endif

#endif
