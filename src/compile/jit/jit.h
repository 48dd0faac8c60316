/* eBPF -> x86-64 machine code for the in-process engine: bytes to bytes, no system calls.
 *
 * In: a linked program (all its functions, with routines), its maps, the addresses of the agent's
 * helpers.
 * Out: machine code for one fixed address, with its thunks.
 * Always true: the verifier has accepted every program that is compiled. The program ends (forward
 * branches, counted loops, an instruction budget on every backward branch), calls only known
 * helpers, and touches only its own stack, the firing's registers and the engine's area. An access
 * that is not proven is checked at run time, and a wrong access ends the firing (agent entry
 * `violation`). Results equal the interpreter's.
 *
 * Registers: r0 rax, r1 rdi, r2 rsi, r3 rdx, r4 rcx, r5 r8, r6 rbx, r7 r13, r8 r14, r9 r15, r10
 * rbp; r12 = struct wire_thread; r9, r10, r11 of x86 are temporaries. */
#ifndef DESCRY_COMPILE_JIT_JIT_H
#define DESCRY_COMPILE_JIT_JIT_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "wire/inproc.h"

struct image_guard;
struct jit_env {
	const struct wire_map
		*maps; /* by index: LD_IMM64 BPF_PSEUDO_MAP_FD / _MAP_VALUE have the index in imm */
	const uint64_t
		*map_addrs; /* values of LD_IMM64 BPF_PSEUDO_MAP_FD: addresses of struct wire_map */
	uint32_t nmaps;
	uint64_t area,
		area_size; /* memory that programs may read: struct wire_area, and all behind it */
	uint64_t shared;   /* start of the memory that they may write, up to the same end */
	uint64_t agent;    /* address of struct wire_agent_head at run time */
	const struct wire_agent_head *head; /* the same, readable by this process */
	uint64_t private;                   /* address of struct wire_private */
	uint64_t stacks;                    /* wire_area.stacks and stack_shift */
	uint32_t stack_shift;
	enum wire_identity identity;
	uint64_t id_disp;
	uint64_t code; /* address that the code will run at */
	bool rdpid;    /* the processor has rdpid, which gives the CPU's number */
	bool lzcnt;    /* the processor has lzcnt */
	bool tsc;      /* wire_area.clock can be used */
	bool family; /* other processes share the slots, so addresses are taken from private memory */
	bool own_reads; /* bpf_probe_read_kernel() reads D's own memory and facts, and nothing of
			 * the process's */
	/* A bit for each eight bytes of the value of WIRE_MAP_OWN_TASK: something that other
	 * processes may have written is stored there by a program that was compiled. Compiling adds
	 * bits; programs that were compiled before are compiled again then. NULL: no such map. */
	uint64_t *own_shared;
	uint32_t event;  /* then: bytes from one struct wire_event to the next; 0: there are none */
	bool syscalls;   /* the program is for system calls: it only has their thunks */
	uint32_t events; /* bits: likewise for these events (WIRE_STUB_EVENTS + bit) */
	/* While all of these are 0, the program does nothing (image_prog.guards). nguards 0: it may
	 * always do something */
	const struct image_guard *guards;
	uint32_t nguards;
	uint64_t globals; /* address from which their offsets count */
};

struct jit_func {
	uint32_t start; /* first eBPF instruction */
	uint32_t stack; /* bytes of eBPF stack it uses, without callees */
};

enum { JIT_NO_CODE = -1 };
struct jit_code {
	uint8_t *bytes; /* malloc()ed */
	uint32_t size;
	uint32_t thunk[WIRE_STUB_ALL]; /* offset of the thunk for each kind of stub; 0 none */
	/* For the tracer: offset of uint64_t run(struct wire_thread *, void *ctx,
	 * uint64_t cookie). */
	uint32_t host;
	/* [ninsns + 1]: offset of the code, for -d jit. JIT_NO_CODE: never called. */
	uint32_t *insn_at;
	uint32_t ninsns;
	uint32_t stack;             /* deepest use of the probe stack by compiled code */
	uint32_t nproven, nchecked; /* accesses proven, and checked at run time */
	bool steered; /* it reads or writes the process's memory at an address that comes from memory which other processes
			 may write */
};

/* Compiles a program. When the verifier refuses it, the error names the instruction and the
 * reason. */
struct err *jit_compile(const struct bpf_insn *insns, uint32_t ninsns, const struct jit_env *env,
			struct jit_code *ret);
void jit_code_fini(struct jit_code *c);

/* Returns the number of a helper for a routine of bpf/, or 0. Some routines are machine code in the
 * agent already, or are written out. A call of such a routine becomes a call of a helper that no
 * kernel has (src_reg 0, imm this number). */
uint32_t jit_native(const char *routine);

struct ebpf_names;
/* Prints the machine code beside each eBPF instruction, then the thunks. Prints addresses by their
 * meaning (a map, an agent's entry, an offset in the code), so that the text depends on nothing but
 * the program. names: as for ebpf_print(), may be NULL. */
void jit_print(FILE *out, const struct jit_code *c, const struct bpf_insn *insns,
	       const struct jit_env *env, const struct ebpf_names *names);

#endif
