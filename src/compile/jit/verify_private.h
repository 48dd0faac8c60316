/* Shared by the verifier's files: verify.c walks a program, verify_memory.c follows its reads and
 * writes, verify_alu.c its arithmetic and comparisons, verify_call.c its calls. */
#ifndef DESCRY_COMPILE_JIT_VERIFY_PRIVATE_H
#define DESCRY_COMPILE_JIT_VERIFY_PRIVATE_H

#include "compile/jit/jit_private.h"

enum { SLOTS = EBPF_STACK_SIZE / 8, WIDEN = 8, OFF_MAX = 1 << 29 };

enum kind {
	NONE,   /* no value on any path to here */
	NUMBER, /* lo..hi unsigned; also an unknown value */
	STACK,  /* r10 of function id + lo..hi */
	CTX,    /* the context + lo..hi */
	MAP,    /* descriptor of map id */
	VALUE,  /* in a value of map id, + lo..hi */
	RECORD, /* in a ring record of id bytes, + lo..hi */
	FUNC,   /* function id */
	TASK,   /* the running thread's task_struct, or the value in its place */
};
struct val {
	uint8_t kind;
	bool null;    /* pointers: it may be 0 */
	uint8_t size; /* slots: 4: only the lower half is known */
	bool shared;  /* computed from memory that other processes may write */
	uint32_t id;
	uint32_t element; /* VALUE: number of the value in its map + 1; 0 not known */
	uint32_t link;    /* copies of one result that may be 0 have the same link; 0 none */
	uint64_t lo, hi;  /* pointers: int64_t */
};
static const struct val any = { .kind = NUMBER, .hi = UINT64_MAX };

struct state {
	struct val r[11];
	struct val slot[SLOTS]; /* own stack: slot[i] is at r10 - 8 * (i + 1); NONE: not known */
};

struct block {
	uint32_t start, end; /* instructions */
	uint32_t fn;
	uint32_t joins;
	bool dirty;
	struct state *in; /* NULL: not reached */
};

struct fn {
	struct val ret;
	bool returns,
		wild; /* wild: its stores or helpers (or its callees') may write any stack byte */
	bool shared;  /* a `shared` value may be on its stack */
	uint64_t *writes; /* [nfns] slots of other functions' frames that it (or a callee) writes */
};

struct v {
	const struct bpf_insn *insns;
	uint32_t n;
	const struct jit_env *env;
	struct jit_facts *f;
	struct block *blocks;
	uint32_t nblocks;
	uint32_t *block_of;   /* [n] */
	const uint16_t *live; /* [n] jit_live() */
	struct fn *fns;
	bool record; /* last walk: write facts down */
	struct err *err;
	/* State of the walk. */
	struct state s;
	uint32_t fn, pc;
};

static inline struct val number(uint64_t lo, uint64_t hi)
{
	return (struct val){ .kind = NUMBER, .lo = lo, .hi = hi };
}

static inline bool is_const(const struct val *a)
{
	return a->kind == NUMBER && a->lo == a->hi;
}

static inline bool is_pointer(const struct val *a)
{
	return a->kind > NUMBER;
}

static inline struct val zero_extended(struct val r, uint32_t size)
{
	uint64_t max = size == 8 ? UINT64_MAX : (1ull << size * 8) - 1;
	const bool shared = r.shared;

	if (r.kind == NUMBER && r.hi <= max)
		return r;
	if (size == 8)
		return r;
	r = number(0, max);
	r.shared = shared;
	return r;
}

void verify_refuse(struct v *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void verify_check_reg(struct v *v, uint32_t r);
void verify_flow(struct v *v, uint32_t to, const struct state *s);
uint32_t verify_fn_at(const struct jit_facts *f, uint32_t start);
void verify_callers_again(struct v *v, uint32_t fn);
void verify_lose(struct v *v, const struct val *a);
void verify_lose_bounds(struct v *v, const struct val *a);
bool verify_in_bounds(const struct v *v, const struct val *p, int64_t off, uint64_t size);
void verify_writes_any(struct v *v);
void verify_writes_frame(struct v *v, uint32_t fn, uint64_t mask, bool gone);
/* Returns true when the value at p comes from memory that other processes may write. */
bool verify_is_shared(const struct v *v, const struct val *p, int64_t off, uint32_t size);
/* Notes that a value of so many bytes is stored at p + off. (The compiler's code never stores
 * through a stack address that is not followed. An access to private variables that is not proven
 * ends the firing.) */
void verify_share(struct v *v, const struct val *p, int64_t off, uint64_t size, bool shared);
void verify_load(struct v *v, const struct bpf_insn *ins);
void verify_store(struct v *v, const struct bpf_insn *ins);
void verify_helper_memory(struct v *v, uint32_t reg, uint64_t size, bool write);
bool verify_known_key(struct v *v, uint32_t *ret);
void verify_alu(struct v *v, const struct bpf_insn *ins);
void verify_load_imm64(struct v *v, const struct bpf_insn *ins);
void verify_branch(struct v *v, const struct bpf_insn *ins, uint32_t to);
bool verify_call_function(struct v *v, const struct bpf_insn *ins);
void verify_call_helper(struct v *v, const struct bpf_insn *ins);

#endif
