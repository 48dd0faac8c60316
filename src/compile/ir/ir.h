/* The intermediate representation: three-address code on 64-bit virtual registers.
 *
 * In: bound clauses (gen/gen.h). Out: struct ir_fn, from which compile/ebpf makes instructions.
 * Always true (ir_verify): branches go forward only, except IR_LOOP, which goes back to a label. A
 * register lives from its first definition to its last use in text order, or to the end of a loop
 * that it lives into. Every register is defined before its use in text order. Each label is placed
 * once.
 *
 *	v3 = call get_current_pid_tgid()
 *	v4 = v3 >> 32
 *	if v4 != 17 goto L2
 */
#ifndef DESCRY_COMPILE_IR_IR_H
#define DESCRY_COMPILE_IR_IR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/mem.h"

/* A value: nothing, register r, or a constant. */
struct ir_val {
	enum { IR_NONE, IR_REG, IR_IMM } kind;
	uint32_t reg;
	int64_t imm;
};
#define IR_V_NONE ((struct ir_val){ 0 })
#define IR_I(n) ((struct ir_val){ .kind = IR_IMM, .imm = (int64_t)(n) })
#define IR_R(r) ((struct ir_val){ .kind = IR_REG, .reg = (r) })

#define IR_OPS(X) \
	X(IR_MOV, "mov")     /* d = a */ \
	X(IR_ARG, "arg")     /* d = argument number a of the function; first instructions only */ \
	X(IR_BIN, "bin")     /* d = a alu b */ \
	X(IR_NEG, "neg")     /* d = -a */ \
	X(IR_EXT, "ext")     /* d = a, its low `size` bytes sign- or zero-extended (sign) */ \
	X(IR_SWAP, "swap")   /* d = a, its low `size` bytes reversed */ \
	X(IR_LOAD, "load")   /* d = *(size *)(a + off), zero-extended or sign-extended */ \
	X(IR_STORE, "store") /* *(size *)(a + off) = b */ \
	X(IR_ADD_MEM, "addmem")     /* *(size *)(a + off) += b, atomically when `sign` */ \
	X(IR_XCHG, "xchg")          /* d = exchange(*(size *)(a + off), b) */ \
	X(IR_STACK, "stack")        /* d = address of stack object `index` + off */ \
	X(IR_LOAD_STACK, "loads")   /* d = *(size *)(object `index` + off) */ \
	X(IR_STORE_STACK, "stores") /* *(size *)(object `index` + off) = b */ \
	X(IR_MAP, "map")            /* d = map `index` */ \
	X(IR_MAP_VALUE, "mapval")   /* d = address of map `index`'s first value + imm in a */ \
	X(IR_CALL, "call")          /* d = helper `index`(args) */ \
	X(IR_ROUTINE, "routine")    /* d = bpf/ routine `name`(args) */ \
	X(IR_IF, "if")              /* if a cond b goto label `index` */ \
	X(IR_GOTO, "goto") \
	X(IR_LOOP, "loop") /* goto label `index`, which stands above */ \
	X(IR_LABEL, "label") \
	X(IR_RET, "ret") /* return a */

enum ir_op {
#define X(id, name) id,
	IR_OPS(X)
#undef X
		IR_OP_COUNT
};

/* clang-format off */
#define IR_ALUS(X) \
	X(ALU_ADD, "+") X(ALU_SUB, "-") X(ALU_MUL, "*") X(ALU_DIV, "/u") X(ALU_MOD, "%u") \
	X(ALU_AND, "&") X(ALU_OR, "|") X(ALU_XOR, "^") X(ALU_SHL, "<<") X(ALU_SHR, ">>u") X(ALU_SAR, ">>")
/* clang-format on */

enum ir_alu {
#define X(id, name) id,
	IR_ALUS(X)
#undef X
		ALU_COUNT
};

/* clang-format off */
#define IR_CONDS(X) \
	X(IF_EQ, "==") X(IF_NE, "!=") X(IF_ULT, "<u") X(IF_ULE, "<=u") X(IF_UGT, ">u") X(IF_UGE, ">=u") \
	X(IF_SLT, "<") X(IF_SLE, "<=") X(IF_SGT, ">") X(IF_SGE, ">=") X(IF_SET, "&")
/* clang-format on */

enum ir_cond {
#define X(id, name) id,
	IR_CONDS(X)
#undef X
		IF_COUNT
};

struct ir_ins {
	uint8_t op;   /* enum ir_op */
	uint8_t sub;  /* enum ir_alu, enum ir_cond */
	uint8_t size; /* bytes: 1 2 4 8 */
	bool sign;
	uint8_t nargs;
	uint32_t d; /* defined register, 0 none */
	struct ir_val a, b;
	int32_t off;
	uint32_t index;
	const char *name;
	struct ir_val args[5];
	loc_t loc;
};

struct ir_object {
	uint32_t size;
	const char *what;
};

struct ir_fn {
	struct arena *arena;
	const char *name;
	VEC(struct ir_ins) ins;
	VEC(struct ir_object) objects; /* index 0 is unused */
	uint32_t nregs;                /* registers are 1..nregs */
	uint32_t nlabels;              /* labels are 1..nlabels */
	uint32_t nargs;
	loc_t loc; /* position of the D being generated */
};

void ir_fn_init(struct ir_fn *f, struct arena *arena, const char *name);
void ir_fn_fini(struct ir_fn *f);

/* --- building: each function appends an instruction and returns its value, and folds constants
 * --- */
struct ir_val ir_new_reg(struct ir_fn *f);
uint32_t ir_new_label(struct ir_fn *f);
uint32_t ir_new_object(struct ir_fn *f, uint32_t size, const char *what);
void ir_place(struct ir_fn *f, uint32_t label);
struct ir_val ir_mov(struct ir_fn *f, struct ir_val a);         /* always a new register */
void ir_set(struct ir_fn *f, struct ir_val d, struct ir_val a); /* existing register d = a */
struct ir_val ir_bin(struct ir_fn *f, enum ir_alu op, struct ir_val a, struct ir_val b);
struct ir_val ir_neg(struct ir_fn *f, struct ir_val a);
struct ir_val ir_ext(struct ir_fn *f, struct ir_val a, uint32_t size, bool sign);
struct ir_val ir_swap(struct ir_fn *f, struct ir_val a, uint32_t size);
struct ir_val ir_load(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, bool sign);
void ir_store(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, struct ir_val b);
void ir_add_mem(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size, struct ir_val b,
		bool atomic);
struct ir_val ir_xchg(struct ir_fn *f, struct ir_val a, int32_t off, uint32_t size,
		      struct ir_val b);
struct ir_val ir_stack(struct ir_fn *f, uint32_t object, int32_t off);
struct ir_val ir_load_stack(struct ir_fn *f, uint32_t object, int32_t off, uint32_t size,
			    bool sign);
void ir_store_stack(struct ir_fn *f, uint32_t object, int32_t off, uint32_t size, struct ir_val b);
struct ir_val ir_map(struct ir_fn *f, uint32_t map);
struct ir_val ir_map_value(struct ir_fn *f, uint32_t map, int64_t offset);
struct ir_val ir_arg(struct ir_fn *f, uint32_t n);
struct ir_val ir_call(struct ir_fn *f, uint32_t helper, uint32_t nargs,
		      ...); /* struct ir_val each */
struct ir_val ir_routine(struct ir_fn *f, const char *name, uint32_t nargs, ...);
void ir_if(struct ir_fn *f, struct ir_val a, enum ir_cond c, struct ir_val b, uint32_t label);
void ir_goto(struct ir_fn *f, uint32_t label);
void ir_loop(struct ir_fn *f, uint32_t label);
enum ir_cond ir_inverse(enum ir_cond c); /* not for IF_SET, which has no inverse */
void ir_ret(struct ir_fn *f, struct ir_val a);

/* --- passes --- */
/* Drops instructions whose result has no use. keeps: everything with an effect. */
void ir_remove_dead(struct ir_fn *f);
/* Returns true when the conditions at the top of this file hold; else false with *ret_why
 * (static). */
bool ir_verify(const struct ir_fn *f, const char **ret_why);
void ir_print(FILE *out, const struct ir_fn *f);

#endif
