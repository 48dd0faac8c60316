/* Inside program/text/: the loaded module, its marks, decoded functions.
 *
 * module.c loads the object and marks what may be branched to; function.c decodes one function and
 * finds out where its indirect jumps go; site.c chooses displaced bytes; stub.c writes stubs.
 */
#ifndef DESCRY_PROGRAM_TEXT_INSIDE_H
#define DESCRY_PROGRAM_TEXT_INSIDE_H

#include <Zydis/Zydis.h>

#include "base/mem.h"
#include "program/text/text.h"
#include "program/unwind/unwind.h"

/* What may arrive at a byte. A mark too many costs a site, a mark too few a crash. */
enum text_mark {
	MARK_BRANCH, /* target of a direct branch, jump table, landing pad, start of a symbol */
	MARK_TAKEN,  /* its address is somewhere: data word, lea, immediate */
	MARK_CALLED, /* a function's start: symbol, or target of a direct call */
	MARKS
};

struct text_segment {
	uint64_t addr, size; /* of bytes: what the file holds */
	uint8_t *bytes;
	bool exec;
	uint64_t *marks[MARKS]; /* a bit per byte; exec only */
};

/* A function. Ranges are sorted by start; those not `inner` do not overlap. */
struct text_range {
	uint64_t start, end;
	uint64_t lsda;
	bool inner;   /* a symbol inside another range */
	bool decoded; /* its short branches and jump tables are marked */
	bool cold;    /* named so */
	bool odd_cfa; /* .eh_frame says: not called, the CFA at its start is not rsp+8 */
	bool unresolved, irregular;
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
	uint64_t target; /* JMP, JCC, LOOP; PLAIN with rip-relative memory: its address; 0 else */
	uint32_t off;    /* from the function's start */
	uint8_t len, kind;
	bool reached;      /* by way of branches from the function's start */
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

struct text_code {
	uint32_t refs;
	struct text_range *range;
	uint64_t start, end;
	const uint8_t *bytes;
	VEC(struct insn) insns;
	VEC(struct jump) jumps;   /* indirect ones */
	VEC(struct table) tables; /* read already */
	bool unresolved;          /* one of jumps is */
	bool irregular;           /* INSN_BAD reached, or a branch into an instruction */
	bool falls_off;           /* its last instruction goes on behind its end */
};

enum { CODE_CACHE = 32 };
struct text {
	struct object *object;
	VEC(struct text_segment) segments;
	uint64_t lo, hi; /* around all executable segments */
	bool fixed, go;
	VEC(struct text_range) ranges;
	VEC(uint32_t) odd; /* indices of ranges, not inner, that are cold or have an odd CFA */
	struct text_code *cache[CODE_CACHE];
	uint32_t next;
	uint32_t decoded, unresolved, irregular;
	uint64_t text_bytes;
	ZydisDecoder decoder;
	struct unwind_image *unwind; /* when first needed */
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
/* Is any byte of [lo, hi) a possible target? */
bool text_any_mark(const struct text *t, uint64_t lo, uint64_t hi);
/* n bytes of the file at addr; false when they are not there. */
bool text_bytes(const struct text *t, uint64_t addr, void *buf, uint32_t n);
/* The code that signal handlers return to. Unwinders know it by its bytes; none may change. */
bool text_is_sigreturn(const struct text *t, uint64_t addr);
/* Index of the first range with start >= addr. */
uint32_t text_range_from(const struct text *t, uint64_t addr);
/* The range that starts at addr, NULL none. */
struct text_range *text_range_at(struct text *t, uint64_t addr);
/* Does addr lie in code that is jumped into from elsewhere? */
bool text_is_odd(const struct text *t, uint64_t addr);
/* The range, not an inner one, that covers addr. */
struct text_range *text_range_cover(struct text *t, uint64_t addr);

/* --- function.c --- */
/* Decodes range r; give it back with text_code_put(). NULL: its bytes are not in the file. */
struct text_code *text_code(struct text *t, struct text_range *r);
void text_code_put(struct text_code *c);
static inline void cleanup_code_(struct text_code **c)
{
	text_code_put(*c);
}
#define cleanup_code __attribute__((cleanup(cleanup_code_)))
/* Index of the instruction at off, UINT32_MAX none. */
uint32_t text_insn_at(const struct text_code *c, uint64_t off);
/* Does every short branch that could reach [lo, hi) have its mark? Decodes neighbours. */
void text_mark_around(struct text *t, uint64_t lo, uint64_t hi);
/* Is the function at addr, reached from c by a jump, a part of c rather than a function of its
 * own? */
bool text_is_part(struct text *t, const struct text_code *c, uint64_t addr);
void text_classify(const ZydisDecodedInstruction *z, uint64_t addr, struct insn *ret);

#endif
