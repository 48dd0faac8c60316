/* Private to program/text/: the loaded module, its marks, decoded functions.
 *
 * module.c loads the object and marks the targets of branches. function.c decodes a function.
 * jumps.c resolves its indirect jumps. tables.c finds jump tables.
 * sole.c finds functions that belong to one other. rseq.c finds restartable sequences.
 * site.c chooses the bytes to displace, and ret_split.c those around a return that has no room.
 * stub.c writes stubs. */
#ifndef DESCRY_PROGRAM_TEXT_TEXT_PRIVATE_H
#define DESCRY_PROGRAM_TEXT_TEXT_PRIVATE_H

#include <Zydis/Zydis.h>

#include "base/mem.h"
#include "program/text/text.h"
#include "program/unwind/unwind.h"

/* The ways in which a byte may be reached. A mark too many costs a site, a mark too few a crash. */
enum text_mark {
	MARK_BRANCH, /* target of a direct branch, jump table, landing pad, start of a symbol */
	MARK_TAKEN,  /* a data word, lea or immediate holds its address */
	MARK_CALLED, /* a function's start: symbol, or target of a direct call */
	MARKS
};

struct text_segment {
	uint64_t addr, size; /* size: bytes in the file */
	uint8_t *bytes;
	bool exec;
	uint64_t *marks[MARKS]; /* a bit for each byte; exec only */
};

/* A function. Ranges are sorted by start. Those that are not `inner` do not overlap. */
struct text_range {
	uint64_t start, end;
	uint64_t lsda;
	bool inner;   /* a symbol inside another range */
	bool decoded; /* its short branches and jump tables are marked */
	bool cold;    /* its name contains .cold */
	bool odd_cfa; /* by .eh_frame the CFA at its start is not rsp+8: it is not called */
	bool unresolved, irregular;
	bool alone; /* no call, jump or address in the file leads to its start */
};

enum insn_kind {
	INSN_PLAIN,
	INSN_NOP,
	INSN_JMP, /* direct */
	INSN_JCC,
	INSN_LOOP, /* loop, loope, loopne, jrcxz, jecxz */
	INSN_JUMP_INDIRECT,
	INSN_CALL, /* any */
	INSN_RET,
	INSN_SYSCALL,
	INSN_STUCK, /* must not move: traps, xbegin, far transfers, sysenter... */
	INSN_END,   /* STUCK that nothing follows: ud2, hlt, int3 */
	INSN_BAD,   /* does not decode; 1 byte */
};
struct insn {
	/* JMP, JCC, LOOP: where to; rip-relative memory: its address, which is 0 for the ELF
	 * header of a library */
	uint64_t target;
	uint32_t off; /* from the function's start */
	uint8_t len, kind;
	bool relative;     /* has a target */
	bool reached;      /* branches lead here from the function's start or a mark */
	bool certain;      /* the same without marks, some of which are at data */
	bool table_target; /* a resolved jump table leads here */
};

enum jump_kind {
	JUMP_UNRESOLVED,
	JUMP_INTRA, /* targets are marked and lie in the function */
	JUMP_TAIL,
};
struct jump {
	uint32_t insn;
	enum jump_kind kind;
};

struct table {
	uint64_t addr, base;
};
struct text_span {
	uint64_t start, end;
};
/* Bytes that look like an operand: memory at a displacement from the instruction pointer. */
struct text_read {
	uint64_t target; /* without the constant that may follow the displacement */
	uint64_t at;     /* of the ModRM byte */
};

/* An instruction of a function that branches. */
struct text_branch {
	uint64_t target;
	uint32_t insn;
};

struct text_code {
	uint32_t refs;
	struct text_range *range;
	uint64_t start, end;
	const uint8_t *bytes;
	VEC(struct insn) insns;
	VEC(struct jump) jumps;           /* indirect ones */
	VEC(struct text_branch) branches; /* see text_branches_from() */
	VEC(struct table) tables;         /* those read already */
	VEC(uint64_t) outside;            /* targets of tables in parts elsewhere */
	VEC(uint64_t) perhaps;            /* the same, of words that may belong to another table */
	bool listed;                      /* branches are there */
	bool shares;                      /* a table leads into the middle of another function */
	bool unresolved;                  /* some of jumps is unresolved */
	bool irregular;                   /* INSN_BAD reached, or a branch into an instruction */
	bool falls_off;                   /* its last instruction continues behind its end */
};

enum {
	CODE_CACHE = 32,      /* functions that are kept, */
	CODE_INSNS = 4 << 20, /* with at most so many instructions: 24 bytes each */
};
struct text {
	uint32_t users; /* besides the first */
	struct object *object;
	VEC(struct text_segment) segments;
	uint64_t lo, hi; /* around all executable segments */
	bool fixed;
	const char *refused; /* why nothing of it is patched, or NULL */
	VEC(struct text_range) ranges;
	bool too_many_tables; /* no real file has so many: it is left alone */
	VEC(uint64_t) tables; /* addresses taken by lea, ascending: where jump tables may begin */
	VEC(struct text_read) reads;       /* of bytes of executable segments, by target */
	VEC(struct text_span) restartable; /* no byte of these may be displaced */
	uint64_t work_left;  /* bytes that may still be decoded: a file's functions may overlap */
	uint64_t held;       /* bytes of segments, of TEXTS_MAX */
	VEC(uint32_t) outer; /* indices of ranges, not inner */
	VEC(uint32_t) odd;   /* indices of ranges, not inner, that are parts: see text_part_at() */
	struct text_code *cache[CODE_CACHE];
	uint32_t next;
	struct text_ways *ways; /* of each range; NULL: not needed yet */
	uint32_t decoded, unresolved, irregular;
	uint64_t text_bytes;
	ZydisDecoder decoder;
	struct unwind_image *unwind; /* built when first needed */
	bool unwind_tried;
};

/* --- module.c --- */
const struct text_segment *text_segment_at(const struct text *t, uint64_t addr);
static inline bool segment_has(const struct text_segment *g, uint64_t addr)
{
	return addr >= g->addr && addr - g->addr < g->size;
}
void text_mark(struct text *t, uint64_t addr, enum text_mark m);
bool text_marked(const struct text *t, uint64_t addr, enum text_mark m);
/* Returns true when a byte of [lo, hi) may be a target. */
bool text_any_mark(const struct text *t, uint64_t lo, uint64_t hi);

/* --- reads.c --- */

/* Notes everything in an executable segment that looks like an operand in such a segment. */
void text_reads_find(struct text *t, const struct text_segment *g);
/* Sorts what was noted, when all segments are there. */
void text_reads_sort(struct text *t);
/* Returns true when instructions read bytes of [lo, hi) as data. V8 loads constants from the middle
 * of other instructions, and code written by hand has them between its instructions. */
bool text_is_read(struct text *t, uint64_t lo, uint64_t hi);
/* Reads n bytes of the file at addr. Returns false when the file does not have them. */
bool text_bytes(const struct text *t, uint64_t addr, void *buf, uint32_t n);
/* Returns true for the code that signal handlers return to. Unwinders recognise it by its bytes, so
 * it must not change. */
bool text_is_sigreturn(const struct text *t, uint64_t addr);
/* Returns the index of the first range with start >= addr. */
uint32_t text_range_from(const struct text *t, uint64_t addr);
/* Returns the range that starts at addr, or NULL. */
struct text_range *text_range_at(struct text *t, uint64_t addr);
/* Returns the part of some function that lies elsewhere and has addr, or NULL. */
struct text_range *text_part_at(const struct text *t, uint64_t addr);
/* Returns the range, not an inner one, that covers addr. */
struct text_range *text_range_cover(struct text *t, uint64_t addr);

/* --- function.c --- */
/* Returns true for a function that is not decoded, because that would take much time and memory: a
 * symbol may claim gigabytes. */
bool text_is_too_large(const struct text_range *r);
/* Decodes range r. The caller releases it with text_code_put(). Returns NULL when the file does not
 * have its bytes, the function is too large, or so much was decoded that this file gets no more. */
struct text_code *text_code(struct text *t, struct text_range *r);
/* Returns the first of the reached branches of c, by target, that has this target or a higher one;
 * *ret_n: how many there are from it on. */
const struct text_branch *text_branches_from(struct text_code *c, uint64_t target, uint32_t *ret_n);
/* Takes n bytes from those that may be decoded. Returns false when there are no more. */
bool text_may_work(struct text *t, uint64_t n);
void text_code_put(struct text_code *c);
static inline void cleanup_code_(struct text_code **c)
{
	text_code_put(*c);
}
#define cleanup_code __attribute__((cleanup(cleanup_code_)))
/* Returns the index of the instruction at off, or UINT32_MAX. */
uint32_t text_insn_at(const struct text_code *c, uint64_t off);
/* Decodes the neighbours, so that every short branch that could reach [lo, hi) has its mark. */
void text_mark_around(struct text *t, uint64_t lo, uint64_t hi);
/* Returns true when the function at addr, which c jumps to, is a part of c and not a function of
 * its own. */
bool text_is_part(struct text *t, const struct text_code *c, uint64_t addr);
/* Returns true when the next instruction may run after it. */
bool text_falls_through(const struct insn *n);
/* Returns true for a direct branch with a target. */
bool text_is_branch(const struct insn *n);
bool text_inside(const struct text_code *c, uint64_t addr);
/* Returns the index of the instruction at addr, or UINT32_MAX. */
uint32_t text_insn_of(const struct text_code *c, uint64_t addr);
/* Returns true for the instruction behind a lock prefix. The C library jumps there. */
bool text_is_lock_skip(const struct text_code *c, uint64_t target);
/* Finds the instructions that are reachable from the start of the function and from its marks. */
void text_reach(struct text *t, struct text_code *c);
void text_classify(const ZydisDecodedInstruction *z, uint64_t addr, struct insn *ret);

/* --- site.c --- */
struct text_sites {
	VEC(struct text_site) v;
};
/* Makes a site for instruction i, with the instructions behind it or, if this fails, with those
 * before it. syscalls: it may be a system call. */
void text_place(struct text *t, const struct text_code *c, uint32_t i, bool syscalls,
		enum wire_stub_kind kind, struct text_site *s);
/* Makes a site of the instructions that end where instruction i begins, with the point behind them.
 * Returns false when they have no room, or a call is among them. */
bool text_place_falling(struct text *t, const struct text_code *c, uint32_t i,
			enum wire_stub_kind kind, struct text_site *s);

/* --- sole.c --- */
/* Returns true when nothing leads to the function at addr but jumps of c: it is not called, not
 * global, and its address is not taken. */
bool text_is_sole(struct text *t, const struct text_code *c, uint64_t addr);

/* --- ret_split.c --- */
/* Adds the sites that stand for the return at instruction i of c. parts: the function with its cold
 * parts, which may branch to it. Returns false, with nothing added, when there is no such way. */
bool text_split_ret(struct text *t, struct text_code *const *parts, uint32_t nparts,
		    const struct text_code *c, uint32_t i, enum wire_stub_kind kind,
		    struct text_sites *ret);

/* --- tables.c --- */
/* Sorts t->tables, and marks the code that their entries lead to. */
void text_tables_mark(struct text *t);
/* Returns where the next jump table may begin, which mostly is where this one ends. */
uint64_t text_next_table(const struct text *t, uint64_t table);

/* --- rseq.c --- */
/* Reads the restartable sequences of the file, whose relocations are at rela. */
void text_restartable_read(struct text *t, uint64_t rela, uint64_t relasz);
/* Returns true when a byte of [lo, hi) lies in a restartable sequence. */
bool text_is_restartable(const struct text *t, uint64_t lo, uint64_t hi);

/* --- jumps.c --- */
/* Resolves each indirect jump, and finds the instructions that are reachable through it. */
void text_resolve(struct text *t, struct text_code *c);

#endif
