/* Machine code of an object: where functions begin and end, and which bytes may be displaced.
 *
 * In: a struct object. Out: for one function, the sites (entry, returns, tail jumps, offsets,
 * system calls), each with the bytes that a 5-byte jump displaces, or the reason why it cannot be
 * placed.
 * Always true: a site is offered only when no branch of the module can land in its displaced bytes
 * except on the first, and when the bytes are instructions (the decoder reached them from the
 * function's start). No return address lies in displaced bytes: a call is displaced only as the
 * last instruction, and its stub pushes the call's own return address (struct text_site.pushes). A
 * function with an unresolved indirect jump has no site of several instructions beyond its entry.
 * All addresses are link-time. */
#ifndef DESCRY_PROGRAM_TEXT_TEXT_H
#define DESCRY_PROGRAM_TEXT_TEXT_H

#include "program/object/object.h"
#include "wire/inproc.h"

enum {
	TEXT_JUMP = 5,
	TEXT_SITE_MAX = 64,   /* limit of displaced bytes: 5 + 15 - 1, and what text_join() adds */
	TEXT_POINTS_MAX = 64, /* limit of probes in one stub */
	TEXT_STUB_MAX = 4096, /* enough for every stub of up to 64 probes */
	TEXT_SPLIT_MAX = 16,  /* limit of copied bytes in front of a return, and the return */
};

enum text_mode {
	TEXT_PATCH, /* 5-byte jump */
	TEXT_TRAP,  /* int3 only: see reason. len and moved are those of the probed instruction */
	TEXT_NONE,  /* cannot be probed in-process: see reason */
};
/* A return that has no room for a jump, because branches lead to it or to an instruction shortly
 * before it. Its probe is placed where the function comes from: at each branch, where it fires when
 * the branch is taken, and behind the instructions before it. The stub runs copies of the
 * instructions [start, ret), the probe, and a copy of the return. */
struct text_split {
	uint64_t start, ret; /* ret: address of the return; 0: this is no such point */
	uint8_t len;         /* bytes of both, with the return */
	uint8_t bytes[TEXT_SPLIT_MAX];
};
/* The displaced bytes [addr, addr + len) and the probed point in them. */
struct text_site {
	uint64_t addr; /* first byte to be overwritten */
	enum wire_stub_kind kind;
	enum text_mode mode;
	uint8_t at; /* the probed instruction is at addr + at; at == moved: behind the last one moved */
	uint8_t len;      /* bytes displaced: whole instructions, and padding (not moved) */
	uint8_t moved;    /* bytes of len that are moved instructions */
	bool conditional; /* TAIL: the function ends there only when the branch is taken */
	bool pushes; /* a call is moved, as push and jmp: mispredicted, wrong with a shadow stack */
	uint8_t bytes[TEXT_SITE_MAX];
	const char *reason;      /* reason for a mode other than TEXT_PATCH; static */
	struct text_split split; /* the point stands for a return elsewhere */
};
/* Returns the address of the instruction that the site's probe stands for. */
static inline uint64_t text_site_point(const struct text_site *s)
{
	return s->split.ret ? s->split.ret : s->addr + s->at;
}

struct text; /* lazy analysis of one object. o must live longer. Not for two threads at once */
/* Gives all who open the same object one text, which text_free() of the last one frees. */
struct err *text_open(struct object *o, struct text **ret);
void text_free(struct text *t);

/* Finds the bounds of the function at addr, from .eh_frame, symbols and PLT slots. Returns false
 * when they are not known. */
bool text_function(struct text *t, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end);
/* Returns the reason why no code of the file is patched (it is Go's, or OCaml 5's), or NULL. */
const char *text_refusal(struct object *o);
const char *text_refused(const struct text *t);
/* Returns the bounds of the i-th known function, by address, also in stripped files. Returns false
 * past the last. */
bool text_function_at(struct text *t, uint32_t i, uint64_t *ret_start, uint64_t *ret_end);
/* Finds the site of a function's entry (behind endbr64). Its kind is MID when the function is not
 * called but jumped into (cold parts). */
struct err *text_entry(struct text *t, uint64_t func, struct text_site *ret);
/* The reason why a function has no returns: it never returns. */
extern const char TEXT_NEVER_RETURNS[];
/* The reason why a Go program has no sites. */
extern const char TEXT_GO[];
/* Finds every ret and tail jump, with those of its cold parts, by address. The caller frees *ret.
 * *ret_n is 0, with *ret_reason, for a function that never returns or has unknown exits. A site
 * with mode TEXT_TRAP needs a trap. A site with mode TEXT_NONE means that not all returns of the
 * function can be seen. Several sites may stand for one ret (struct text_split). Where the function
 * jumps to another one to which nothing else leads (sole.c), the returns of that one count, if all
 * of them have sites. */
struct err *text_returns(struct text *t, uint64_t func, struct text_site **ret, uint32_t *ret_n,
			 const char **ret_reason);
/* Returns true when the function calls no other and jumps to no other. Then only a signal handler
 * can call it within its own call. */
bool text_is_leaf(struct text *t, uint64_t func);
/* Returns true when the function has no call and no cold part. It may jump to others. */
bool text_calls_nothing(struct text *t, uint64_t func);
/* Finds the site of the instruction at func + off, of kind MID, or ENTRY at a return.
 * For an offset inside an instruction, sets ret->reason and mode TEXT_NONE. */
struct err *text_offset(struct text *t, uint64_t func, uint64_t off, struct text_site *ret);
/* Returns why the bytes at func + off may be data, into which no breakpoint may be written: the
 * function's branches do not lead there. NULL: an instruction begins there, or the file's code is
 * none that is analysed (text_refused()). */
const char *text_may_be_data(struct text *t, uint64_t func, uint64_t off);
/* Finds the sites that together stand for the return at func + off, where text_offset() finds no
 * room: see struct text_split. Their kind is ENTRY. Returns false when it is no return,
 * or when there is no such way. The caller frees *ret. */
bool text_offset_split(struct text *t, uint64_t func, uint64_t off, struct text_site **ret,
		       uint32_t *ret_n);

/* Finds the system call instructions of a function (func 0: of the object), by address. The caller
 * frees them. site.at is the instruction, and the return from it is the same site with at = 2 more.
 * number: from the mov that sets it, else -1. before, behind: the same two points with the
 * instruction left in place. A thread that waits in the kernel then stands in its function, where
 * unwinders and debuggers know it. before.at is behind the displaced bytes. Either may be
 * impossible (mode not TEXT_PATCH) where `site` is not. */
struct text_syscall {
	uint64_t addr;
	int32_t number;
	struct text_site site, before, behind;
};
struct err *text_syscalls(struct text *t, uint64_t func, struct text_syscall **ret,
			  uint32_t *ret_n);

/* Joins two sites that overlap (short functions: entry and return; offsets) into one that displaces
 * the bytes of both. Points keep their addresses: the probe of a is at a->addr + a->at - ret->addr.
 * Returns false when they do not overlap, or when the union cannot be displaced, so that only one
 * of them can be placed. */
bool text_join(const struct text_site *a, const struct text_site *b, struct text_site *ret);

/* A probe in a stub. */
struct text_point {
	uint8_t at; /* as in struct text_site */
	enum wire_stub_kind kind;
	uint32_t probe;
	uint64_t gate; /* run-time address of the thunk or of a jump to it; within 2 GB of the stub */
	/* 0, or the address of a byte that is 0 while the program does nothing; within 2 GB of the
	 * stub. Kinds before WIRE_STUB_MID look at it, because the flags are free there. */
	uint64_t awake;
	uint64_t shown; /* run-time address that programs see; 0: the instruction's */
	uint32_t call;  /* WIRE_STUB_SYSRET: the call, see struct wire_stub */
	const struct text_split *split; /* NULL, or ret 0: none. As the site's */
};
/* Writes the stub of a site, for run-time addresses. `stub` is the address at which out will run
 * (within 2 GB of site, 16-byte aligned). Writes *ret_n bytes to out (room: max). n: points, 1..64.
 * Points of one `at` fire in the order given. *ret_code: the patch's target, from the stub's start.
 * Each probe of the stub is a block
 *
 *	[jmp over]  struct wire_stub  [lea -128(%rsp),%rsp]  call gate  [lea 128(%rsp),%rsp]
 *
 * with lea for WIRE_STUB_MID and later kinds only. When the point has `awake`, the block is
 *
 *	cmpb $0, awake   jne far   ...   far: struct wire_stub  call gate  jmp back
 *
 * with the far part behind all others. The first block needs no jmp over when nothing
 * runs before it. A conditional tail jump (TAIL at a jcc) calls its probes only when it is taken,
 * and so does a branch to a return (struct text_split).
 * *ret_moved: for each displaced byte, the offset in the stub at which a thread there continues
 * (the probe, if it has one, still fires); 0xffff: no instruction starts at the byte. The entry
 * behind the last instruction that goes on has the place where the stub goes back. */
struct err *text_stub_points(const struct text_site *s, uint64_t bias, uint64_t stub,
			     const struct text_point *points, uint32_t n, uint8_t *out,
			     uint32_t max, uint32_t *ret_n, uint32_t *ret_code,
			     uint16_t ret_moved[TEXT_SITE_MAX]);
/* Writes a stub with all probes at the site's own point: probes/gates [nprobes]. */
struct err *text_stub(const struct text_site *s, uint64_t bias, uint64_t stub,
		      const uint32_t *probes, const uint64_t *gates, uint32_t nprobes, uint8_t *out,
		      uint32_t max, uint32_t *ret_n, uint32_t *ret_code,
		      uint16_t ret_moved[TEXT_SITE_MAX]);
/* Writes the len bytes of the patch: a jump to target = stub + code, then int3 (TEXT_TRAP: int3,
 * then the old bytes). */
void text_patch(const struct text_site *s, uint64_t bias, uint64_t target, uint8_t *out);

/* Results of the analysis, for reports. */
struct text_stats {
	uint32_t functions, decoded; /* known; decoded so far */
	uint32_t unresolved;         /* of decoded: some indirect jump could go anywhere */
	uint32_t irregular; /* of decoded: bytes that do not decode, or branches into instructions */
	uint64_t text_bytes;
};
void text_stats(const struct text *t, struct text_stats *ret);

#endif
