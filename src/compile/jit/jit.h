/* eBPF -> x86-64 machine code for the in-process engine: bytes to bytes, no system calls.
 *
 * In: a linked program (every function of it, routines included), what its maps are, where the
 * agent's helpers are.
 * Out: machine code for one fixed address, with its thunks.
 * Always true: nothing is compiled that the verifier did not accept: it ends (forward branches,
 * counted loops, an instruction budget on every backward branch), calls only known helpers, and
 * touches no byte outside its own stack, the firing's registers and the engine's area: an access
 * that is not proven is checked when it runs, and a stray one ends the firing (agent entry
 * `violation`). Results equal the interpreter's.
 *
 * Registers: r0 rax, r1 rdi, r2 rsi, r3 rdx, r4 rcx, r5 r8, r6 rbx, r7 r13, r8 r14, r9 r15, r10
 * rbp; r12 = struct wire_thread; r9, r10, r11 of x86 are temporaries.
 */
#ifndef DESCRY_COMPILE_JIT_JIT_H
#define DESCRY_COMPILE_JIT_JIT_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "wire/inproc.h"

struct jit_env {
	const struct wire_map
		*maps; /* by index: LD_IMM64 BPF_PSEUDO_MAP_FD / _MAP_VALUE have the index in imm */
	const uint64_t *
		map_addrs; /* what LD_IMM64 BPF_PSEUDO_MAP_FD becomes: address of the struct wire_map */
	uint32_t nmaps;
	uint64_t area,
		area_size; /* memory that programs may read: struct wire_area, and all behind it */
	uint64_t shared;   /* its second part, up to the same end: what they may write */
	uint64_t agent;    /* address of struct wire_agent_head at run time */
	const struct wire_agent_head *head; /* the same, readable here */
	uint64_t private;                   /* address of struct wire_private */
	uint64_t stacks;                    /* wire_area.stacks and stack_shift */
	uint32_t stack_shift;
	enum wire_identity identity;
	uint64_t id_disp;
	uint64_t code; /* address the result will run at */
	bool rdpid;    /* the processor has the instruction: the number of the CPU at once */
	bool lzcnt;    /* likewise: the highest bit */
	bool tsc;      /* wire_area.clock can be used */
	bool syscalls; /* the program is for system calls: it has the thunks for those, and no others */
	uint32_t events; /* bits: it is for these events (WIRE_STUB_EVENTS + bit), likewise */
};

struct jit_func {
	uint32_t start; /* first eBPF instruction */
	uint32_t stack; /* bytes of eBPF stack it uses, callees' not included */
};

enum { JIT_NO_CODE = -1 };
struct jit_code {
	uint8_t *bytes; /* malloc()ed */
	uint32_t size;
	uint32_t thunk[WIRE_STUB_ALL]; /* offset of the thunk for each kind of stub; 0 none */
	uint32_t host; /* offset of uint64_t run(struct wire_thread *, void *ctx, uint64_t cookie), C ABI: the tracer's way in */
	uint32_t *insn_at; /* [ninsns + 1]: offset of each instruction's code, for -d jit; JIT_NO_CODE: of functions that nobody calls */
	uint32_t ninsns;
	uint32_t stack;             /* deepest use of the probe stack by compiled code */
	uint32_t nproven, nchecked; /* accesses proven, and checked at run time */
};

/* The instruction and the reason in the error when the verifier refuses. */
struct err *jit_compile(const struct bpf_insn *insns, uint32_t ninsns, const struct jit_env *env,
			struct jit_code *ret);
void jit_code_fini(struct jit_code *c);

/* Some routines of bpf/ are machine code already, in the agent, or are written out. A call of one
 * becomes a call of a helper that no kernel has (src_reg 0, imm what this gives; 0: there is
 * none). */
uint32_t jit_native(const char *routine);

struct ebpf_names;
/* Machine code beside each eBPF instruction, then the thunks. Addresses show as what they are (a
 * map, an agent's entry, an offset in the code), so that the text depends on nothing but the
 * program. names: as ebpf_print() has it, may be NULL. */
void jit_print(FILE *out, const struct jit_code *c, const struct bpf_insn *insns,
	       const struct jit_env *env, const struct ebpf_names *names);

#endif
