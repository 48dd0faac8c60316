/* The compiler's parts, between its files: verify*.c find facts, copy.c shorter operands, live.c
 * what nobody needs, code*.c write functions, thunk.c the ways in. */
#ifndef DESCRY_COMPILE_JIT_INT_H
#define DESCRY_COMPILE_JIT_INT_H

#include <stdbool.h>

#include "base/mem.h"
#include "compile/jit/jit.h"
#include "isa/ebpf.h"
#include "isa/x86.h"
#include "wire/unwind.h"

enum {
	JIT_FRAMES =
		8, /* functions running at once, callbacks included, as the interpreter and the kernel have it */
	JIT_CTX = 168,       /* struct pt_regs */
	JIT_LOOPS = 1 << 23, /* of one bpf_loop(), as the kernel has it */
	JIT_NATIVE_FRAME =
		96, /* at most, of one function: return address, 4 registers, a loop's 4 words, a call of range */
	JIT_BUDGET = 1 << 26, /* backward branches and loop rounds of one firing */
};

/* --- helpers --- */

/* One letter for each argument:
 *   m  map          k, v  address of a key or value of that map    V  value or 0
 *   w  memory written, r  read: as many bytes as the next argument's lower half says; l: all 64 bits of it
 *   q  memory read: size in the argument before
 *   g  ring record  c  context  .  any number
 *   M  another map, which is known   S  a struct wire_stack   W  a struct wire_walk   O  a struct wire_unwind_offsets
 * Result: v value of the map or 0, g ring record or 0, b 0..126, . number */
struct jit_helper {
	uint32_t id;
	int16_t agent; /* enum wire_agent_entry; -1: no call, see code_call.c */
	bool regs;     /* wants thread->regs */
	char result;
	char args[6];
};
const struct jit_helper *jit_helper(uint32_t id);
/* Routines that count as helpers. */
enum { JIT_QUANTIZE_BUCKET = 1 << 16, JIT_USTACK, JIT_STACK_ID, JIT_SCRATCH_GET };

/* Bytes that a load or store moves. */
static inline uint32_t jit_access_size(const struct bpf_insn *ins)
{
	static const uint8_t size[] = { 4, 2, 1, 8 };

	return size[BPF_SIZE(ins->code) >> 3];
}

/* --- what the verifier finds --- */

enum jit_branch { JIT_EITHER, JIT_ALWAYS, JIT_NEVER };
/* Where a load's or store's memory is. */
enum jit_where { JIT_SOMEWHERE, JIT_IN_THREAD, JIT_AT };

struct jit_fact {
	bool reached;
	uint8_t branch; /* enum jit_branch */
	bool proven;    /* loads and stores: in bounds */
	bool alone;     /* atomics: memory of this thread only */
	bool dead;      /* no code: its result is never used */
	uint8_t check;  /* helpers: bit n: argument rn is checked when it runs */
	bool key_known; /* map_lookup_elem: the key is `key` */
	uint32_t key;
	bool key_own; /* map_lookup_elem: the key lies on its own stack, at key_at: r2 is not needed */
	int16_t key_at;
	int32_t map;     /* helpers: index of the map, -1 not known */
	uint32_t record; /* ringbuf_reserve: bytes, where they are known and there are no flags; ringbuf_submit: likewise; 0 */
	bool target;     /* a jump leads here */
	bool last_use; /* nobody reads the register any more: that a jump compares, or an operation's source */
	uint8_t arg;    /* d_quantize_bucket: the register that has its argument */
	uint32_t func;  /* calls and bpf_loop: index of the function called */
	uint8_t where;  /* loads and stores: enum jit_where */
	uint64_t place; /* JIT_IN_THREAD: offset in the thread slot; JIT_AT: address */
	bool constant;  /* the source register holds `value` */
	bool there;     /* task_storage_get: the running thread's; never 0 */
	uint64_t value;
	bool own; /* stores: own stack at offset `at`, `size` bytes */
	int16_t at;
	uint8_t size;
};

struct jit_fn {
	uint32_t start, end;
	uint32_t stack; /* bytes, a multiple of 8 */
	uint32_t data;  /* deepest stack of it and its callees */
	uint32_t depth; /* functions running at once below and with it */
	bool reached;
	uint64_t read[8]; /* bits: byte -512 + i of its stack may be read */
	bool leaked;      /* an address of its stack is kept where it is not followed */
	uint64_t blind;   /* slots read without following what is in them */
	uint64_t ctx_at,
		stack_at; /* slots that the context's address, or one of a stack, was stored to */
	int32_t low;      /* lowest byte that others write, or that a kept address names */
};

struct jit_facts {
	struct jit_fact *insn; /* [ninsns] */
	struct jit_fn *fns;
	uint32_t nfns;
	bool ctx_lost;      /* the context's address is kept where it is not followed */
	uint32_t ctx_words; /* bits: 8-byte words of the context that are loaded */
	bool ctx_used, regs_used, gen_used, budget_used, cookie_used, clock_used, reserve_used,
		cpu_used, checks;
	bool calls;  /* the agent */
	bool frames; /* functions of its own */
	uint32_t nproven, nchecked;
};

/* Operands of the instructions become registers and constants that hold the same (copy.c). */
struct err *jit_verify(struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
		       struct jit_facts *ret);
void jit_facts_fini(struct jit_facts *f);

/* Reads what a register was copied from in place of the copy, and constants in place of
 * registers. */
void jit_copies(struct bpf_insn *insns, struct jit_facts *f);

/* Atomics that give nothing back: the source register is not needed, its constant value is written
 * out. */
bool jit_constant_atomic(const struct bpf_insn *ins, const struct jit_fact *f);

/* Marks instructions whose results nobody reads, and settles the size of stacks. */
void jit_dead(const struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
	      struct jit_facts *f);
/* Is the helper written out (no call of the agent)? jit_inline_lookup(): is it a lookup that is? */
bool jit_inline(const struct jit_env *env, const struct bpf_insn *ins, const struct jit_fact *f);
/* Is it written out for what happens nearly always? The agent is then asked by a piece that keeps
 * all registers. */
bool jit_mostly_inline(const struct jit_env *env, const struct bpf_insn *ins,
		       const struct jit_fact *f);
bool jit_inline_lookup(const struct jit_env *env, const struct bpf_insn *ins,
		       const struct jit_fact *f);

/* May the helper be given the map? */
bool jit_map_usable(const struct jit_env *env, uint32_t m, uint32_t helper);
/* Of the helper's map; of the largest it may be when that is not known (-1; map_lookup_elem: inner
 * maps have keys of 4). */
uint32_t jit_key_size(const struct jit_env *env, int32_t map, uint32_t helper);
uint32_t jit_value_size(const struct jit_env *env, int32_t map, uint32_t helper);

/* --- code --- */

/* A memory operand: base + off, or RIP-relative. */
struct jit_operand {
	unsigned base;
	int32_t off;
	bool rip;
	int64_t at; /* rip: from the start of the code */
};

struct jit {
	const struct bpf_insn *insns;
	uint32_t ninsns;
	const struct jit_env *env;
	struct jit_facts facts;
	struct x86 b;
	uint32_t *at;               /* [ninsns + 1] this pass */
	uint32_t *guess;            /* [ninsns + 1] the pass before; 0xffffffff unknown */
	uint32_t *in_at, *in_guess; /* likewise, of the first function written out in a thunk */
	bool in_thunk;              /* that is being done */
	bool short_main;            /* it may be */
	uint32_t loaded_for; /* the instruction that reads `loaded`, which no register holds */
	struct jit_operand loaded;
	uint32_t loaded_size;
	uint32_t *fn_at; /* [nfns] entry of each function: this pass and, until it is met, the pass before */
	uint32_t stop, range, find, nested, clock, reserve, cpu, consts,
		zeros; /* shared pieces, by offset */
	struct jit_cold {
		uint32_t jump; /* end of the rel32 that comes here */
		uint32_t back; /* where to go on */
		uint32_t insn;
		uint8_t size;
		bool load;
		bool fail;    /* no second look: violation */
		bool bucket;  /* nothing is wrong: quantize() of a negative number */
		bool reserve; /* likewise: a record that the agent finds room for */
	} * cold;
	uint32_t ncold, capcold;
	uint32_t *exits, nexits, capexits; /* of a body: ends of the jumps to its end */
	uint32_t clobbered;                /* bits: x86 registers written by compiled code */
	bool rax_used; /* rax is, by more than the result, which a body in a thunk does not give */
	uint32_t data; /* eBPF stack of the whole program, 16-byte multiple */
	uint32_t native;  /* native stack below `frame`, agent not included */
	bool probe_stack; /* runs on the thread's probe stack */
	bool uses_r10;
};

extern const uint8_t jit_reg[11];

void jit_functions(struct jit *j);
void jit_pieces(struct jit *j); /* shared pieces and cold paths */
/* The first function, without an end of its own. What it leaves in r0 is lost. */
void jit_body(struct jit *j);
void jit_cold_paths(struct jit *j, uint32_t first); /* from number `first` on */
void jit_thunk(struct jit *j, enum wire_stub_kind kind);
void jit_thunk_pieces(struct jit *j);
void jit_host(struct jit *j);
/* Where the address of wire_private.threads stands. */
int64_t jit_threads(const struct jit *j);
/* reg = the running thread's struct wire_own. Flags are lost. */
void jit_own(struct jit *j, unsigned reg);
/* Is it within reach of a RIP-relative operand? */
bool jit_near(const struct jit *j, uint64_t addr);
/* An instruction with a memory operand at a fixed address; tmp is lost where that is far. */
void jit_at(struct jit *j, unsigned size, unsigned op, unsigned reg, uint64_t addr, unsigned tmp);
/* Target of a direct call to an agent's entry, counted from the start of the code. */
int64_t jit_agent(const struct jit *j, enum wire_agent_entry e);

#endif
