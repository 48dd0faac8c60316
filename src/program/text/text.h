/* Machine code of an object: where functions begin and end, which bytes may be displaced.
 *
 * In: a struct object. Out: for one function, the sites (entry, returns, tail jumps, offsets,
 * system calls), each with the bytes that a 5-byte jump displaces, or the reason why it cannot be
 * placed.
 * Always true: a site is offered only when no branch of the module can land in its displaced bytes
 * but on the first, and the bytes are instructions (the decoder reached them from the function's
 * start); no return address lies in displaced bytes: a call is displaced only as the last
 * instruction, and its stub pushes the return address that the call would have pushed (struct
 * text_site.pushes). A function with an unresolved indirect jump has no multi-instruction site
 * beyond its entry. All addresses are link-time.
 */
#ifndef DESCRY_PROGRAM_TEXT_TEXT_H
#define DESCRY_PROGRAM_TEXT_TEXT_H

#include "program/object/object.h"
#include "wire/inproc.h"

enum {
	TEXT_JUMP = 5,
	TEXT_SITE_MAX = 64,   /* bytes displaced at most: 5 + 15 - 1, and what text_join() adds */
	TEXT_POINTS_MAX = 64, /* probes of one stub */
	TEXT_STUB_MAX = 4096, /* room that is enough for every stub of up to 64 probes */
};

enum text_mode {
	TEXT_PATCH, /* 5-byte jump */
	TEXT_TRAP,  /* int3 only: see reason. len and moved are the probed instruction */
	TEXT_NONE,  /* cannot be probed in-process at all: see reason */
};
/* The displaced bytes [addr, addr + len) and the point in them that is probed. */
struct text_site {
	uint64_t addr; /* first byte to be overwritten */
	enum wire_stub_kind kind;
	enum text_mode mode;
	uint8_t at; /* the probed instruction is at addr + at: what lies before it runs before the probe.
		       at == moved: the probe stands behind the last moved instruction (a system call's return) */
	uint8_t len; /* bytes displaced: whole instructions, and padding that is used (not moved) */
	uint8_t moved; /* bytes of len that are instructions to be moved */
	bool pushes; /* a call is moved: push, jmp. Costs its return a misprediction, and is wrong where threads have
			a shadow stack */
	uint8_t bytes[TEXT_SITE_MAX];
	const char *reason; /* mode != TEXT_PATCH: why; static */
};

struct text; /* analysis of one object, made as needed. o must outlive it. Not for two threads at once */
struct err *text_open(struct object *o, struct text **ret);
void text_free(struct text *t);

/* Bounds of the function at addr: .eh_frame, symbols, PLT slots. False: not known. */
bool text_function(struct text *t, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end);
/* Is it Go's code? None of it is patched. */
bool text_is_go(const struct text *t);
/* The i-th function known, by address: all there is, stripped files too. False past the last. */
bool text_function_at(struct text *t, uint32_t i, uint64_t *ret_start, uint64_t *ret_end);
/* Entry: one site (behind endbr64). Kind MID for what is not called but jumped into (cold
 * parts). */
struct err *text_entry(struct text *t, uint64_t func, struct text_site *ret);
/* The reason why a function has no returns: there is nothing to be seen. */
extern const char TEXT_NEVER_RETURNS[];
/* The reason why no place of a Go program is offered. */
extern const char TEXT_GO[];
/* Every ret and tail jump, those of its cold parts included, by address; *ret_n 0 with *ret_reason
 * for a function that never returns or whose exits are not all known. malloc()ed. A site with mode
 * TEXT_TRAP among them means the function needs a trap there; TEXT_NONE: the function's returns
 * cannot all be seen. */
struct err *text_returns(struct text *t, uint64_t func, struct text_site **ret, uint32_t *ret_n,
			 const char **ret_reason);
/* The instruction at func + off; an offset inside an instruction is an error in ret->reason with
 * mode TEXT_NONE. */
struct err *text_offset(struct text *t, uint64_t func, uint64_t off, struct text_site *ret);

/* System call instructions of a function (func 0: of the object), by address; malloc()ed. site.at
 * is the instruction; the return from it is the same site with at = 2 more. number: from the mov
 * that sets it, else -1. before, behind: the same two points with the instruction left in place, so
 * that a thread that waits in the kernel stands in its function, where unwinders and debuggers know
 * it: before.at is behind what is displaced. Either may be impossible (mode not TEXT_PATCH) where
 * `site` is not. */
struct text_syscall {
	uint64_t addr;
	int32_t number;
	struct text_site site, before, behind;
};
struct err *text_syscalls(struct text *t, uint64_t func, struct text_syscall **ret,
			  uint32_t *ret_n);

/* Two sites that overlap (short functions: entry and return; offsets) as one that displaces the
 * bytes of both; points keep their addresses: the probe of a stands at a->addr + a->at - ret->addr.
 * False: they do not overlap, or the union cannot be displaced: then only one of them can be
 * placed. */
bool text_join(const struct text_site *a, const struct text_site *b, struct text_site *ret);

/* A probe in a stub. */
struct text_point {
	uint8_t at; /* as in struct text_site */
	enum wire_stub_kind kind;
	uint32_t probe;
	uint64_t gate; /* run-time address of the thunk or of a jump to it; within 2 GB of the stub */
	uint64_t shown; /* run-time address that programs see as the probe's; 0: the instruction's */
	uint32_t call;  /* WIRE_STUB_SYSRET: which, as struct wire_stub has it */
};
/* The stub of a site, for run-time addresses. `stub` is where out will run (within 2 GB of site),
 * 16-byte aligned; *ret_n bytes were written to out (room: max). Points of one `at` fire in the
 * order given; n points, 1..64. *ret_code: where the patch must jump, from the stub's start. Each
 * probe of the stub is a block
 *
 *	[jmp over]  struct wire_stub  [lea -128(%rsp),%rsp]  call gate  [lea 128(%rsp),%rsp]
 *
 * lea for WIRE_STUB_MID and later kinds only; the first block needs no jmp over when nothing runs
 * before it. A conditional tail jump (TAIL at a jcc) calls its probes only when it is taken.
 * *ret_moved: for each displaced byte, the offset in the stub where a thread goes on that stands
 * there (its probe, when it has one, is still to fire); 0xffff: not an instruction start. */
struct err *text_stub_points(const struct text_site *s, uint64_t bias, uint64_t stub,
			     const struct text_point *points, uint32_t n, uint8_t *out,
			     uint32_t max, uint32_t *ret_n, uint32_t *ret_code,
			     uint16_t ret_moved[TEXT_SITE_MAX]);
/* The same with all probes at the site's own point: probes/gates [nprobes]. */
struct err *text_stub(const struct text_site *s, uint64_t bias, uint64_t stub,
		      const uint32_t *probes, const uint64_t *gates, uint32_t nprobes, uint8_t *out,
		      uint32_t max, uint32_t *ret_n, uint32_t *ret_code,
		      uint16_t ret_moved[TEXT_SITE_MAX]);
/* What overwrites the site: jump to target = stub + code, int3 behind it (TEXT_TRAP: int3, the rest
 * as it was). len bytes. */
void text_patch(const struct text_site *s, uint64_t bias, uint64_t target, uint8_t *out);

/* What the analysis found, for reports. */
struct text_stats {
	uint32_t functions, decoded; /* known; decoded so far */
	uint32_t unresolved;         /* of decoded: an indirect jump could go anywhere */
	uint32_t irregular; /* of decoded: bytes that do not decode, or branches into instructions */
	uint64_t text_bytes;
};
void text_stats(const struct text *t, struct text_stats *ret);

#endif
