/* Shared by the compiler's files: verify*.c find facts, copy.c shortens operands, liveness.c finds
 * unused results, code*.c write functions, thunk.c the ways into a program. */
#ifndef DESCRY_COMPILE_JIT_JIT_PRIVATE_H
#define DESCRY_COMPILE_JIT_JIT_PRIVATE_H

#include <stdbool.h>

#include "base/mem.h"
#include "compile/jit/jit.h"
#include "isa/bpf_insn.h"
#include "isa/x86.h"
#include "wire/routines.h"
#include "wire/wire_unwind.h"

enum {
	JIT_FRAMES =
		8, /* limit of functions running at once, as in the interpreter and the kernel */
	JIT_CTX = 168,       /* struct pt_regs */
	JIT_LOOPS = 1 << 23, /* limit of one bpf_loop(), as in the kernel */
	JIT_NATIVE_FRAME =
		96, /* limit of a function: return address, 4 registers, 4 words of a loop, a call */
	JIT_BUDGET = 1 << 26, /* limit of backward branches and loop rounds in one firing */
};

/* --- helpers --- */

/* One letter for each argument:
 *   m  map          k, v  address of a key or value of that map    V  value or 0
 *   w  memory written, r  read: size is the lower half of the next argument; l: all 64 bits of it
 *   q  memory read: size in the argument before
 *   g  ring record  c  context  .  any number
 *   M  another map, which is known   S  a struct wire_stack   W  a struct wire_walk   O  a struct wire_unwind_offsets
 * Result: v value of the map or 0, g ring record or 0, b 0..126, . number */
struct jit_helper {
	uint32_t id;
	int16_t agent; /* enum wire_agent_entry; -1: no call, see code_call.c */
	bool regs;     /* needs thread->regs */
	char result;
	char args[6];
};
const struct jit_helper *jit_helper(uint32_t id);
/* Routines that are called as helpers. */
enum {
	JIT_QUANTIZE_BUCKET = 1 << 16,
	JIT_USTACK,
	JIT_STACK_ID,
	JIT_SCRATCH_GET,
	JIT_LANGUAGE,
	JIT_AGG_TEXT,
	JIT_AGG_PYTHON,
	JIT_AGG_RUBY,
	JIT_ID_PYTHON,
	JIT_ID_RUBY,
	JIT_ID_TEXTS,
	JIT_VECTOR, /* d_vector0, and so on */
	JIT_VECTORS_END = JIT_VECTOR + WIRE_VECTORS,
};

/* Returns the bytes that a load or store moves. */
static inline uint32_t jit_access_size(const struct bpf_insn *ins)
{
	static const uint8_t size[] = { 4, 2, 1, 8 };

	return size[BPF_SIZE(ins->code) >> 3];
}

/* --- results of the verifier --- */

enum jit_branch { JIT_EITHER, JIT_ALWAYS, JIT_NEVER };
/* The memory of a load or store. */
enum jit_where { JIT_SOMEWHERE, JIT_IN_THREAD, JIT_AT };

struct jit_fact {
	bool reached;
	uint8_t branch; /* enum jit_branch */
	bool proven;    /* loads and stores: in bounds */
	bool alone;     /* atomics: memory of this thread only */
	bool dead;      /* no code: its result is never used */
	uint8_t check;  /* helpers: bit n: argument rn is checked at run time */
	bool key_known; /* map_lookup_elem: the key is `key` */
	uint32_t key;
	bool key_own; /* map_lookup_elem: the key is on its own stack, at key_at: r2 is unused */
	int16_t key_at;
	int32_t map;     /* helpers: index of the map, -1 not known */
	uint32_t record; /* ringbuf_reserve, _submit: bytes, if known and without flags; else 0 */
	bool target;     /* a jump leads here */
	bool last_use;   /* the operand (of a jump: the destination) is not read again */
	uint8_t arg;     /* d_quantize_bucket: the register that has its argument */
	uint32_t func;   /* calls and bpf_loop: index of the function called */
	uint8_t where;   /* loads and stores: enum jit_where */
	uint64_t place;  /* JIT_IN_THREAD: offset in the thread slot; JIT_AT: address */
	bool constant;   /* the source register holds `value` */
	bool there;      /* task_storage_get: of the running thread; never 0 */
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
	uint64_t blind;   /* slots whose contents are read without following addresses in them */
	uint64_t ctx_at,
		stack_at; /* slots that the context's address, or a stack's, was stored to */
	int32_t low;      /* lowest byte that others write, or that a kept address points to */
};

struct jit_facts {
	struct jit_fact *insn; /* [ninsns] */
	struct jit_fn *fns;
	uint32_t nfns;
	bool ctx_lost;      /* the context's address is kept where it is not followed */
	uint32_t ctx_words; /* bits: 8-byte words of the context that are loaded */
	bool ctx_used, regs_used, gen_used, budget_used, cookie_used, clock_used, reserve_used,
		cpu_used, signals_used, checks;
	bool calls;   /* calls the agent */
	bool frames;  /* calls functions of the program */
	bool steered; /* as in struct jit_code */
	uint32_t nproven, nchecked;
};

/* Verifies the program and collects facts. Replaces operands by registers or constants of the same
 * value (copy.c). */
struct err *jit_verify(struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
		       struct jit_facts *ret);
void jit_facts_fini(struct jit_facts *f);

/* Replaces a copied register by the register it was copied from, and registers by their
 * constants. */
void jit_copies(struct bpf_insn *insns, struct jit_facts *f);

/* Returns true for an atomic operation without a result whose operand is constant. The constant is
 * written out, so the source register is not needed. */
bool jit_constant_atomic(const struct bpf_insn *ins, const struct jit_fact *f);

/* Returns the registers that are live before each instruction: bit N is set when rN may be read
 * before it is written. The caller frees the array. */
uint16_t *jit_live(const struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
		   const struct jit_facts *f);

/* Marks instructions whose results are not read, and sets the size of stacks. */
void jit_dead(const struct bpf_insn *insns, uint32_t n, const struct jit_env *env,
	      struct jit_facts *f);
/* Returns true when the helper is written out and never calls the agent. */
bool jit_inline(const struct jit_env *env, const struct bpf_insn *ins, const struct jit_fact *f);
/* Returns true when the helper's common case is written out. In the other cases, a piece that keeps
 * all registers calls the agent. jit_inline_lookup(): true for a lookup that is written out. */
bool jit_mostly_inline(const struct jit_env *env, const struct bpf_insn *ins,
		       const struct jit_fact *f);
bool jit_inline_lookup(const struct jit_env *env, const struct bpf_insn *ins,
		       const struct jit_fact *f);

/* Returns true when the helper may get the map. */
bool jit_map_usable(const struct jit_env *env, uint32_t m, uint32_t helper);
/* Return the sizes of the helper's map. map -1: not known; they return the largest among the maps
 * that the helper may get. map_lookup_elem: inner maps have keys of 4 bytes. */
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
	uint32_t *in_at, *in_guess; /* the same for the first function written out in a thunk */
	bool in_thunk;              /* the first function is being written out in a thunk */
	bool short_main;            /* the first function can be written out in a thunk */
	uint32_t loaded_for;        /* the instruction that reads `loaded` from memory itself */
	struct jit_operand loaded;
	uint32_t loaded_size;
	uint32_t *fn_at; /* [nfns] entry of each function, from this pass or the one before */
	uint32_t stop, range, find, nested, clock, reserve, cpu, signals, consts,
		zeros; /* shared pieces, by offset */
	struct jit_cold {
		uint32_t jump; /* end of the rel32 of the jump to this path */
		uint32_t back; /* where the path jumps back to */
		uint32_t insn;
		uint8_t size;
		bool load;
		bool fail;    /* violation, without a second check */
		bool bucket;  /* no violation: quantize() of a negative number */
		bool reserve; /* no violation: the agent finds room for the record */
	} * cold;
	uint32_t ncold, capcold;
	uint32_t *exits, nexits, capexits; /* of a body: ends of the jumps to its end */
	uint32_t clobbered;                /* bits: x86 registers written by compiled code */
	bool rax_used;    /* rax is used for more than the result (a thunk returns none) */
	uint32_t data;    /* eBPF stack of the whole program, 16-byte multiple */
	uint32_t native;  /* native stack below `frame`, without the agent's */
	bool probe_stack; /* it runs on the thread's probe stack */
	bool uses_r10;
};

extern const uint8_t jit_reg[11];

void jit_functions(struct jit *j);
void jit_pieces(struct jit *j); /* shared pieces and cold paths */
/* Writes the first function without its own return. Its r0 is lost. */
void jit_body(struct jit *j);
void jit_cold_paths(struct jit *j, uint32_t first); /* from this number on */
void jit_thunk(struct jit *j, enum wire_stub_kind kind);
void jit_thunk_pieces(struct jit *j);
/* Mark a firing as begun and as ended. in: T0 = the thread's entry. jit_firing_begins(): T1 is
 * lost. */
void jit_firing_begins(struct jit *j);
void jit_firing_ends(struct jit *j);
void jit_host(struct jit *j);
/* Returns the offset of the constant that is the address of wire_private.threads. */
int64_t jit_threads(const struct jit *j);
/* reg = the running thread's struct wire_own. Flags are lost. */
void jit_own(struct jit *j, unsigned reg);
/* Returns true when a RIP-relative operand can reach addr. */
bool jit_near(const struct jit *j, uint64_t addr);
/* Emits an instruction with a memory operand at a fixed address. tmp is lost if the address is
 * far. */
void jit_at(struct jit *j, unsigned size, unsigned op, unsigned reg, uint64_t addr, unsigned tmp);
/* Returns the target of a direct call to an agent's entry, counted from the start of the code. */
int64_t jit_agent(const struct jit *j, enum wire_agent_entry e);

#endif
