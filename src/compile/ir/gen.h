/* Bound clauses -> image: the middle of the compiler.
 *
 * In: struct bound (compile/bind). Out: a complete struct image: programs (IR lowered by
 * compile/ebpf), maps, schemas.
 *
 * A program serves all probes that have the same clauses:
 *
 *	ctx, is tracing on?, which probe?          prologue
 *	for each clause:  predicate -> segments     (a segment reserves one record, fills it, submits it)
 *	    fault: write a fault record, or run the ERROR clauses in place
 *	release scratch, return                     epilogue
 *
 * Always true: a clause that faults or finds a buffer full leaves nothing behind (record discarded)
 * and the next clause runs; scratch memory is released on every path.
 */
#ifndef DESCRY_COMPILE_IR_GEN_H
#define DESCRY_COMPILE_IR_GEN_H

#include "compile/bind/bind.h"
#include "compile/ir/ir.h"
#include "compile/target.h"
#include "data/aggview.h"
#include "data/image.h"
#include "wire/inproc.h"

/* `ir_out`: where each function's IR is printed (-d ir), NULL nowhere. NULL with diagnostics when a
 * clause cannot be expressed (too long, too much stack). */
struct image *compile_image(const struct bound *b, struct type_graph *types, struct diags *diags,
			    struct options *options, struct compile_target *target, FILE *ir_out);

/* --- private to compile/ir --- */

enum { SCRATCH_BUSY = 0, SCRATCH_WORD = 8, SCRATCH_DYN = 16, SCRATCH_SLOTS = 4 };
enum { KEY_ON_STACK = 96 }; /* larger keys are built in scratch memory */

/* A tuple of values with a fixed layout: keys of associative arrays and aggregations. */
struct tuple_layout {
	struct field *fields;
	uint32_t n, size;
	bool padded;  /* holds bytes that no field writes: zero it first */
	uint32_t tag; /* of a map that several arrays share, from 1: the first word of the key, the fields are behind. 0: none */
};

struct var_layout {
	uint32_t offset;         /* in globals, TLS or scratch */
	uint32_t size;           /* bytes of the value */
	int map;                 /* assoc: its map, else -1 */
	struct tuple_layout key; /* assoc; self-> arrays end in a hidden thread id */
	bool own;                /* only ever assigned pointers of alloca() and copyin(), and 0 */
};

/* gen_slot.c: an aggregation whose keys are known for each probe. */
struct agg_slots {
	bool refused; /* it is by key: an update has another kind of key, or there are too many */
	struct hash index; /* key -> slot + 1 */
	VEC(uint8_t) keys; /* by slot */
	uint32_t n;
	uint32_t parts; /* keys that are probefunc and the like, as written */
};

/* A value made when first needed in a firing: register holds 0 until then. `known`: made on every
 * path to here. */
struct lazy_made {
	int id;
	uint32_t start, end;
}; /* the instructions that make one */
struct lazy {
	struct ir_val v;
	bool known, ever;
}; /* ever: made anywhere above in the text */
enum lazy_id {
	LAZY_TIME,
	LAZY_CPU_TIME,
	LAZY_TASK,
	LAZY_TASK_BTF,
	LAZY_REGS,
	LAZY_PIDTGID,
	LAZY_SCRATCH,
	LAZY_SCRATCH_ADDR,
	LAZY_TLS,
	LAZY_TLS_RW,
	LAZY_COUNT
};

struct gen {
	struct arena *arena;
	const struct bound *b;
	struct image *img;
	struct type_graph *types;
	struct options *options;
	struct diags *diags;
	struct compile_target *target;
	FILE *ir_out;
	bool failed;

	/* whole image */
	VEC(struct image_map) maps;
	VEC(struct image_prog) progs;
	VEC(struct image_probe) probes;
	VEC(struct segment) segments;
	struct hash probe_index;   /* struct probe * -> index + 1 */
	int map_of[MAP_OTHER + 1]; /* fixed maps by role, -1 not made yet */
	struct var_layout *vars;
	struct tuple_layout *agg_keys;
	bool *agg_atomic;
	struct agg_slots *slots; /* by aggregation */
	struct hash slot_texts;  /* text -> its FIELD_STRID in keys of slots + 1 */
	uint32_t globals_size, tls_size, this_size, scratch_size, dynsize;
	uint32_t strsize,
		strmax; /* bytes kept for a string, a multiple of 8; bytes it may have with its NUL */
	uint32_t chips_at, nodes_at, clocks_at; /* rodata offsets of tables by CPU, 0 not made */
	uint32_t strtok_at;                     /* scratch offset of strtok()'s state, 0 not used */
	uint32_t offsets_at;        /* rodata offset + 1 of struct wire_offsets, 0 not made */
	uint32_t unwind_offsets_at; /* the same of struct wire_unwind_offsets */
	uint32_t zeros;             /* rodata offset of as many zero bytes as any value has */
	struct intern texts;        /* image.strings */
	VEC(uint8_t) rodata;
	struct hash rodata_texts; /* text -> offset + 1 */
	uint32_t probe_texts; /* rodata offset of the table of probe names' text ids; 0: not needed */
	uint32_t probe_ids;   /* rodata offset of u32 ids[nprobes] */
	uint32_t text_table; /* rodata offset of u32 offset[text_count]; texts end before text_end */
	uint32_t text_count, text_end;
	bool uses_vtime, uses_errno, uses_late, uses_switch_stacks, report;
	int8_t trampolines; /* are programs for BPF trampolines made? 0: not asked yet, -1: no */
	const struct bound_clause **errors; /* ERROR clauses, in order */
	uint32_t nerrors;

	/* the program being generated */
	struct ir_fn *f;
	const uint32_t *prog_probes;
	uint32_t prog_nprobes;
	enum attach_kind attach;
	int8_t thread_arg;
	bool sleepable; /* may fault user memory in */
	struct ir_val ctx, probe, spec, top;
	struct lazy lazy[LAZY_COUNT];
	VEC(struct lazy_made) lazy_made;
	struct ir_val *this_regs; /* this-> scalars by variable */
	uint32_t out;             /* label: epilogue */

	/* the clause being generated */
	const struct bound_clause *cl;
	uint32_t fault, bail; /* labels: fault (registers below set), give up the clause */
	bool fault_used, bail_used;
	bool exits; /* the clause calls exit() */
	struct ir_val f_code, f_value, f_loc;
	bool in_error;      /* inside an ERROR clause run in place */
	bool null_is_empty; /* a string that was not found is wanted as "", not as a fault */
	struct ir_val err_code, err_value, err_loc, err_clause, err_probe;
	uint32_t scratch_next;
	uint32_t brk, cont, ret; /* labels: of the loop, of the function put in */
	uint32_t loops;          /* in the program so far */
	struct ir_val rounds;    /* of the outermost loop and those in it */
	struct ir_val rec;       /* the record being filled */
	uint32_t rec_size;
	bool rec_live;
	struct segment *seg;
};

/* Where something assignable or addressable lies. */
enum place_kind {
	PLACE_REG,    /* this-> scalar: register v */
	PLACE_MEM,    /* memory the verifier knows: v + off */
	PLACE_KERNEL, /* any kernel address: v + off, read with fault checking */
	PLACE_TLS,    /* self-> scalar at off */
	PLACE_ASSOC,  /* element: key at v (verifier-known) of variable var */
};
struct lval {
	enum place_kind kind;
	struct ir_val v;
	int64_t off;
	type_id type;
	uint32_t bit_off, bit_size; /* bit-field: from v + off */
	const struct variable *var;
	bool own; /* PLACE_KERNEL: of alloca() or copyin(), whose bounds are known */
};

/* gen_expr.c */
struct ir_val gen_expr(struct gen *g, const struct node *n); /* integer or pointer */
void gen_cond(struct gen *g, const struct node *n, bool want,
	      uint32_t label); /* goto label when truth of n == want */
struct lval gen_place(struct gen *g, const struct node *n);
struct ir_val gen_load_place(struct gen *g, struct lval p, loc_t loc);
void gen_store_place(struct gen *g, struct lval p, struct ir_val v, loc_t loc);
/* Does n evaluate to a pointer of D's own, from alloca() or copyin()? */
bool gen_is_own(struct gen *g, const struct node *n);
/* A fault unless addr + off and `size` bytes from there are such memory of this clause. */
void gen_check_own(struct gen *g, struct ir_val addr, int64_t off, struct ir_val size, loc_t loc);
/* A pointer of D's own (alloca(), copyin()), checked: what the verifier knows; the bytes are at
 * SCRATCH_DYN behind it. */
struct ir_val gen_own_memory(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
			     loc_t loc);
/* Where the bytes of a struct are read from; those of an element that does not exist are zeros. */
struct ir_val gen_readable(struct gen *g, struct lval p);
struct ir_val gen_place_addr(struct gen *g, struct lval p); /* as a D pointer (plain integer) */
void gen_effect(struct gen *g, const struct node *n);       /* expression for its side effects */
bool gen_is_string(struct gen *g, const struct node *n);
void gen_assign_string(struct gen *g, struct lval p, const struct node *value);
struct ir_val gen_kernel_read(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
			      bool sign, loc_t loc);

/* gen_builtin.c: built-in variables and the values of a firing */
struct ir_val gen_lazy(struct gen *g, enum lazy_id id);
struct ir_val gen_builtin(struct gen *g, const struct node *n);
struct ir_val gen_arg(struct gen *g, const struct probe_arg *a, loc_t loc);
struct ir_val gen_thread(struct gen *g); /* curthread as an integer */
struct ir_val gen_tid(struct gen *g);
struct ir_val gen_tgid(struct gen *g);
struct ir_val gen_uregs(struct gen *g, struct ir_val index, loc_t loc);
/* A register of the system call that enters or returns. */
struct ir_val gen_syscall_reg(struct gen *g, enum user_reg reg, loc_t loc);
/* The raw tracepoint's second word: the call's number at its entry, its result at its return. */
struct ir_val gen_syscall_word(struct gen *g);
uint32_t gen_kernel_offset(struct gen *g, const char *type, const char *member, uint32_t *ret_size,
			   loc_t loc);
bool gen_current_thread(const struct gen *g);

/* gen_trampoline.c: fentry and fexit */
bool gen_on_trampoline(const struct gen *g);
bool gen_trampolines(struct gen *g); /* are kprobes' programs made for trampolines, too? */
/* The argument or result that is in this register, or at this distance of the stack pointer, when
 * the function is called or returns. */
struct ir_val gen_trampoline_reg(struct gen *g, enum user_reg reg);
struct ir_val gen_trampoline_stack(struct gen *g, int64_t disp);
uint32_t gen_skipped_frames(const struct gen *g); /* machinery on top of the kernel's stack */

/* gen_call.c: subroutines */
struct ir_val gen_subr(struct gen *g, const struct node *n); /* integer result */
/* String result into memory the verifier knows. */
void gen_subr_string(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		     uint32_t size);

uint32_t gen_swap_size(enum subr_id id); /* bytes htons() and the like reverse, 0 another */

struct ir_val
gen_progenyof(struct gen *g,
	      struct ir_val pid); /* is the current process pid, or descended from it? */

/* gen_str.c */
enum str_class { STR_ID, STR_TEXT };
struct str_info {
	enum str_class cls;
	uint32_t bound;
}; /* bound: bytes incl. NUL, a multiple of 8 */
struct str_info gen_str_info(struct gen *g, const struct node *n);
bool gen_is_string_place(
	const struct node *n); /* a string that lies somewhere: a variable, an element, a member */
void gen_str_into(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		  uint32_t size);
/* Address readable by bpf_probe_read_kernel; *ret_known: bytes the verifier lets programs load
 * directly (0: none). */
struct ir_val gen_str_addr(struct gen *g, const struct node *n, uint32_t *ret_known);
/* As a plain integer, for routines. */
struct ir_val gen_str_plain(struct gen *g, const struct node *n);
struct ir_val gen_str_id(struct gen *g, const struct node *n, bool canonical); /* STR_ID only */
struct ir_val gen_str_compare(struct gen *g, enum op op, const struct node *a,
			      const struct node *b); /* 0 or 1 */
uint32_t gen_text(struct gen *g, const char *text);  /* id in image.strings */
int gen_probe_part(
	const struct node *n); /* 0 probeprov, 1 probemod, 2 probefunc, 3 probename; -1 another */
const char *gen_part_text(const struct image_probe *p, int part);
uint32_t gen_rodata_text(struct gen *g, const char *text); /* offset in rodata */

/* gen_tuple.c: keys */
void gen_layout_tuple(struct gen *g, struct tuple_layout *l, const type_id *types, uint32_t n);
void gen_widen_tuple(struct gen *g, struct tuple_layout *l, const struct node *keys, bool is_agg);
void gen_finish_tuple(struct tuple_layout *l, bool thread);
struct ir_val gen_tuple(struct gen *g, const struct tuple_layout *l, const struct node *keys,
			bool thread);
/* Writes one value as field fl at dst + fl->offset. */
void gen_field(struct gen *g, const struct field *fl, const struct node *n, struct ir_val dst,
	       bool is_agg);
enum field_kind gen_dyn_kind(const struct node *n, bool key);

/* gen_stack.c */
void gen_stack_id(struct gen *g, const struct field *fl, struct ir_val dst, uint32_t frames);
void gen_stack_frames(struct gen *g, const struct field *fl, struct ir_val dst);
uint32_t gen_frames(struct gen *g, const struct node *n); /* of stack(n), ustack(n) */
/* size bytes, or text, from where a pointer leads: in a function of a process its arguments lead to
 * its own memory, curthread to the kernel's. The helper's result. */
struct ir_val gen_pointed_copy(struct gen *g, struct ir_val dst, struct ir_val size,
			       struct ir_val at, bool text);
/* The user stack into scratch memory, at *ret_pc: its bytes, or -errno. */
struct ir_val gen_user_stack(struct gen *g, uint32_t frames, struct ir_val *ret_pc);
/* bpf_get_stack() to memory the verifier knows: bytes of frames, or -errno. */
struct ir_val
gen_sampled_mode(struct gen *g); /* of what a sample has interrupted: 0 the kernel, 3 user code */
struct ir_val gen_get_stack(struct gen *g, struct ir_val dst, uint32_t size, bool user);
void gen_save_stacks(struct gen *g); /* body of the program on sched_switch */

/* gen_slot.c */
/* For every node that names something, before slots are numbered. */
void gen_slots_look(struct gen *g, const struct node *n);
void gen_slots_number(struct gen *g);
/* Gives the aggregation its slots, at most max, in struct agg. False: it has none, it is by key. */
bool gen_slots_take(struct gen *g, uint32_t agg, uint32_t max);
void gen_slots_fini(struct gen *g);
/* The slot of an update with these keys in this firing; goes to `none` when the probe has none. */
struct ir_val gen_slot(struct gen *g, uint32_t agg, const struct node *keys, uint32_t none);

/* gen_agg.c */
void gen_aggregate(struct gen *g, const struct node *assign);

/* gen_clause.c */
void gen_clause(struct gen *g, const struct bound_clause *cl);
void gen_function(struct gen *g, const struct node *body); /* N_BODY */
void gen_count(struct gen *g, struct ir_val slot);         /* counters[slot]++ */

/* gen.c */
uint32_t gen_probe_number(struct gen *g, struct probe *p); /* index in image.probes */
uint32_t gen_map(struct gen *g, enum map_role role, const char *name, enum bpf_map_type type,
		 uint32_t key, uint32_t value, uint32_t entries, uint32_t flags);
uint32_t gen_fixed_map(struct gen *g, enum map_role role);
struct ir_val gen_scratch_temp(struct gen *g,
			       uint32_t size); /* verifier-known memory of this clause */
void gen_fault(struct gen *g, int code, struct ir_val value, loc_t loc);
void gen_fault_if(struct gen *g, struct ir_val a, enum ir_cond c, struct ir_val b, int code,
		  struct ir_val value, loc_t loc);
void gen_bail(struct gen *g);
void gen_lazy_save(const struct gen *g, bool *known);
void gen_lazy_restore(struct gen *g, const bool *known);
void gen_lazy_settle(struct gen *g, uint32_t from, const struct lazy *before);
uint32_t gen_rodata(struct gen *g, const void *p, uint32_t n, uint32_t align);
/* Has the clause this-> variables in scratch memory, or strtok()'s state? Then it is kept from
 * clause to clause. */
bool gen_keeps_scratch(struct gen *g, const struct bound_clause *cl);
/* gen_spec.c. What follows goes to a speculation: without one, and when there can be none of that
 * number, the clause ends here. */
void gen_speculate(struct gen *g, const struct node *call);
/* A fault when no speculation can have that number: there are -x nspec. */
void gen_check_speculation(struct gen *g, struct ir_val id, loc_t loc);
void gen_free_speculation(struct gen *g, struct ir_val id);
void gen_list_clauses(
	struct gen *g); /* listing.c: what -S says of clauses; variables have their places */
bool gen_copies_in(const struct bound_clause *cl); /* layout.c: may it read the process's memory? */
void gen_collect(struct gen *g);                   /* layout.c: variables, keys, what is needed */

/* Flag of bpf_get_stack(): the user's, not the kernel's (BPF_F_USER_STACK). */
enum { USER_STACK = 1 << 8 };

/* Helper numbers (linux/bpf.h lists them; names as the kernel's). */
enum {
	HELPER_MAP_LOOKUP = 1,
	HELPER_MAP_UPDATE = 2,
	HELPER_MAP_DELETE = 3,
	HELPER_KTIME = 5,
	HELPER_PRANDOM = 7,
	HELPER_CPU = 8,
	HELPER_PID_TGID = 14,
	HELPER_WRITE_USER = 36,
	HELPER_UID_GID = 15,
	HELPER_COMM = 16,
	HELPER_STACKID = 27,
	HELPER_CURRENT_TASK = 35,
	HELPER_GET_STACK = 67,
	HELPER_SEND_SIGNAL = 109,
	HELPER_READ_USER = 112,
	HELPER_READ_KERNEL = 113,
	HELPER_READ_USER_STR = 114,
	HELPER_READ_KERNEL_STR = 115,
	HELPER_RINGBUF_RESERVE = 131,
	HELPER_RINGBUF_SUBMIT = 132,
	HELPER_RINGBUF_DISCARD = 133,
	HELPER_COPY_FROM_USER = 148,
	HELPER_TASK_STORAGE_GET = 156,
	HELPER_CURRENT_TASK_BTF = 158,
	HELPER_ATTACH_COOKIE = 174,
	HELPER_TASK_PT_REGS = 175,
	HELPER_THREAD_TIME = WIRE_HELPER_THREAD_TIME,
};

#endif
