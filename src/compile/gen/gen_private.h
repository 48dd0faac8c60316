/* Shared by the files of compile/gen/: the state of a compilation, and the functions that make the
 * IR of each kind of expression, key and action. */
#ifndef DESCRY_COMPILE_GEN_GEN_PRIVATE_H
#define DESCRY_COMPILE_GEN_GEN_PRIVATE_H

#include "compile/gen/gen.h"
#include "compile/ir/ir.h"
#include "data/agg.h"
#include "wire/inproc.h"

enum { SCRATCH_BUSY = 0, SCRATCH_WORD = 8, SCRATCH_DYN = 16, SCRATCH_SLOTS = 4 };
enum { KEY_ON_STACK = 96 }; /* larger keys are built in scratch memory */

/* The layout of a tuple of values: keys of associative arrays and aggregations. */
struct tuple_layout {
	struct field *fields;
	uint32_t n, size;
	bool padded; /* holds bytes that no field writes: zero it first */
	/* The first word of the key, from 1, when several arrays share the map. 0: no such word. */
	uint32_t tag;
};

struct var_layout {
	uint32_t offset;         /* in globals, TLS or scratch */
	uint32_t size;           /* bytes of the value */
	int map;                 /* assoc: its map, else -1 */
	struct tuple_layout key; /* assoc; self-> arrays end in a hidden thread id */
	bool own;                /* only ever assigned pointers of alloca() and copyin(), and 0 */
};

/* gen_slot.c: an aggregation whose keys are known for each probe at compile time. */
struct agg_slots {
	bool refused;      /* no slots: an update has another kind of key, or keys are too many */
	struct hash index; /* key -> slot + 1 */
	VEC(uint8_t) keys; /* index: slot */
	uint32_t n;
	uint32_t parts; /* uses of probefunc and the like in its keys */
};

/* A value computed when a firing first needs it. Its register holds 0 until then. `known`: computed
 * on every path to here. */
struct lazy_made {
	int id;
	uint32_t start, end;
}; /* the instructions that compute it at one place */
struct lazy {
	struct ir_val v;
	bool known, ever;
}; /* ever: computed somewhere above in the text */
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

struct gen_group;

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

	/* of the whole image */
	VEC(struct image_map) maps;
	VEC(struct image_prog) progs;
	VEC(struct image_probe) probes;
	VEC(struct segment) segments;
	struct hash probe_index;   /* struct probe * -> index + 1 */
	int map_of[MAP_OTHER + 1]; /* fixed maps by role, -1: not made yet */
	struct var_layout *vars;
	struct tuple_layout *agg_keys;
	bool *agg_atomic;
	struct agg_slots *slots; /* index: aggregation */
	struct hash slot_texts;  /* text -> its FIELD_STRID in keys of slots + 1 */
	uint32_t globals_size, tls_size, this_size, scratch_size, dynsize;
	uint32_t nticks, nsamples; /* used in MAP_TICKS and MAP_SAMPLES */
	uint32_t strsize,
		strmax; /* bytes kept for a string, a multiple of 8; bytes it may have with its NUL */
	uint32_t chips_at, nodes_at, clocks_at; /* rodata offsets of tables by CPU, 0: not made */
	uint32_t strtok_at;                     /* scratch offset of strtok()'s state, 0 not used */
	uint32_t offsets_at;        /* rodata offset + 1 of struct wire_offsets, 0: not made */
	uint32_t unwind_offsets_at; /* the same for struct wire_unwind_offsets */
	uint32_t zeros;             /* rodata offset of zeros: the size of the largest value */
	struct intern texts;        /* image.strings */
	VEC(uint8_t) rodata;
	struct hash rodata_texts; /* text -> offset + 1 */
	uint32_t probe_texts; /* rodata offset of the table of probe names' text ids; 0: not needed */
	uint32_t probe_ids;   /* rodata offset of u32 ids[nprobes] */
	uint32_t probe_addrs; /* rodata offset of u64 linked addresses[nprobes]; 0: not made */
	uint32_t text_table; /* rodata offset of u32 offset[text_count]; texts end before text_end */
	uint32_t text_count, text_end;
	bool *set_by_threads; /* index: variable. Other clauses than the tracer's own set it to more than 0 */
	bool uses_vtime, uses_errno, uses_late, uses_switch_stacks, report;
	int8_t trampolines; /* programs for BPF trampolines are made: 1 yes, -1 no, 0 not decided */
	const struct bound_clause **errors; /* ERROR clauses, in order */
	uint32_t nerrors;

	/* of the program being generated */
	struct ir_fn *f;
	const uint32_t *prog_probes;
	uint32_t prog_nprobes;
	enum attach_kind attach;
	int8_t thread_arg;
	bool sleepable; /* it may fault in user memory */
	struct ir_val ctx, probe, spec, top;
	struct lazy lazy[LAZY_COUNT];
	VEC(struct lazy_made) lazy_made;
	struct ir_val *this_regs; /* this-> scalars by variable */
	uint32_t out;             /* label: epilogue */

	/* of the clause being generated */
	const struct bound_clause *cl;
	uint32_t fault, bail; /* labels: fault (registers below set); give up the clause */
	bool fault_used, bail_used;
	bool exits;        /* the clause calls exit() */
	bool keeps_memory; /* what alloca() and copyin() took in the clauses before is kept */
	struct ir_val f_code, f_value, f_loc;
	bool in_error;      /* inside an ERROR clause run in place */
	bool null_is_empty; /* the use wants "" for a string that is not found, not a fault */
	struct ir_val err_code, err_value, err_loc, err_clause, err_probe;
	uint32_t scratch_next;
	uint32_t brk, cont, ret; /* labels: of the loop, of the function being expanded */
	uint32_t loops;          /* number of loops in the program so far */
	struct ir_val rounds;    /* rounds of the outermost loop and the loops in it */
	struct ir_val rec;       /* the record being filled */
	bool rec_live;
	struct segment *seg;
};

/* The place of a value that can be assigned to or addressed. */
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
	bool own; /* PLACE_KERNEL: memory of alloca() or copyin(), with known bounds */
};

/* gen_expr.c */
struct ir_val gen_expr(struct gen *g, const struct node *n); /* integer or pointer */
void gen_cond(struct gen *g, const struct node *n, bool want,
	      uint32_t label); /* goto label when truth of n == want */
uint32_t gen_size_of(struct gen *g, type_id t);
void gen_effect(struct gen *g, const struct node *n); /* expression for its side effects */
bool gen_is_string(struct gen *g, const struct node *n);

/* gen_place.c */
struct lval gen_place(struct gen *g, const struct node *n);
struct ir_val gen_load_place(struct gen *g, struct lval p, loc_t loc);
void gen_store_place(struct gen *g, struct lval p, struct ir_val v, loc_t loc);
/* Returns true when n evaluates to a pointer to memory of alloca() or copyin(). */
bool gen_is_own(struct gen *g, const struct node *n);
/* Emits a fault unless `size` bytes at addr + off are memory that this clause has from alloca() or
 * copyin(). */
void gen_check_own(struct gen *g, struct ir_val addr, int64_t off, struct ir_val size, loc_t loc);
/* Checks a pointer to memory of alloca() or copyin(). Returns a pointer that the verifier tracks.
 * The bytes are SCRATCH_DYN behind it. */
struct ir_val gen_own_memory(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
			     loc_t loc);
/* Returns the address to read a struct from. An element that does not exist reads as zeros. */
struct ir_val gen_readable(struct gen *g, struct lval p);
struct ir_val gen_place_addr(struct gen *g, struct lval p); /* as a D pointer (plain integer) */
bool gen_is_aggregate_type(struct gen *g, type_id t);
/* Zeroes memory of the size of an element of the variable. */
void gen_zero_element(struct gen *g, const struct variable *var, struct ir_val at);
/* The character at an index of a string. */
struct ir_val gen_load_character(struct gen *g, const struct node *n);
/* Extracts the bit-field p from the word that holds it. */
struct ir_val gen_bits(struct gen *g, struct ir_val word, const struct lval *p);
/* The address to which the bytes of a struct are written. Makes an element that does not exist. */
struct ir_val gen_writable(struct gen *g, struct lval p, uint32_t size, loc_t loc);
void gen_assign_string(struct gen *g, struct lval p, const struct node *value);
struct ir_val gen_kernel_read(struct gen *g, struct ir_val addr, int64_t off, uint32_t size,
			      bool sign, loc_t loc);

/* gen_builtin.c: built-in variables and the values of a firing. */
struct ir_val gen_lazy(struct gen *g, enum lazy_id id);
struct ir_val gen_builtin(struct gen *g, const struct node *n);
struct ir_val gen_thread(struct gen *g); /* curthread as an integer */
struct ir_val gen_tid(struct gen *g);
struct ir_val gen_tgid(struct gen *g);
struct ir_val gen_uregs(struct gen *g, struct ir_val index, loc_t loc);
/* Returns a register of the system call that enters or returns. */
struct ir_val gen_syscall_reg(struct gen *g, enum user_reg reg, loc_t loc);
/* Returns the raw tracepoint's second word: the call's number at its entry, its result at its
 * return. */
struct ir_val gen_syscall_word(struct gen *g);
uint32_t gen_kernel_offset(struct gen *g, const char *type, const char *member, uint32_t *ret_size,
			   loc_t loc);
bool gen_current_thread(const struct gen *g);
/* Returns true when the program's probes are where functions end, and the kernel's engine runs it:
 * the return address is on top of the stack. Programs with such probes have no others. */
bool gen_by_exits(const struct gen *g);

/* Returns a word of the process's memory. */
struct ir_val gen_user_read(struct gen *g, struct ir_val addr, uint32_t size, bool sign, loc_t loc);
/* Returns a register at the time when the probe fired. */
struct ir_val gen_reg_value(struct gen *g, int64_t reg);

/* gen_usdt.c: arguments of USDT probes and of probes in interpreters */
struct ir_val gen_usdt_operand(struct gen *g, const struct usdt_operand *u, loc_t loc);
/* Asks `map` what is known of the function of Python or Ruby in which the probe fires, as
 * wire_function_answer() says it. a: the probe's first argument. Returns false for other probes. */
bool gen_function_id(struct gen *g, const struct probe_arg *a, uint32_t map, uint32_t salt,
		     struct ir_val *ret);
/* Goes to the label when the class of Ruby's method has no name yet. */
void gen_unnamed(struct gen *g, const struct probe_arg *a, uint32_t label);
/* Finds the entry of a name that an argument of a probe of Python or Ruby leads to, without its
 * text; in the agent only. found: the entry, if it is to be noted. Returns false when the argument
 * is no such name. */
bool gen_named_entry(struct gen *g, const struct probe_arg *a, uint32_t map,
		     const struct ir_val *found, struct ir_val *ret);

/* gen_trampoline.c: fentry and fexit. */
bool gen_on_trampoline(const struct gen *g);
bool gen_trampolines(struct gen *g); /* programs for kprobes are also made for trampolines */
/* Return the argument or result that is in this register, or at this distance from the stack
 * pointer, when the function is called or returns. */
struct ir_val gen_trampoline_reg(struct gen *g, enum user_reg reg);
struct ir_val gen_trampoline_stack(struct gen *g, int64_t disp);
uint32_t gen_skipped_frames(const struct gen *g); /* frames on top that are tracing code */

/* gen_call.c: subroutines */
struct ir_val gen_subr(struct gen *g, const struct node *n); /* integer result */
/* Writes the string result into memory that the verifier tracks. */
void gen_subr_string(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		     uint32_t size);

struct ir_val
gen_progenyof(struct gen *g,
	      struct ir_val pid); /* 1 when the current process is pid or descends from it */

/* gen_str.c */
enum str_class { STR_ID, STR_TEXT };
struct str_info {
	enum str_class cls;
	uint32_t bound;
}; /* bound: bytes incl. NUL, a multiple of 8 */
struct str_info gen_str_info(struct gen *g, const struct node *n);
bool gen_is_string_place(
	const struct node *n); /* a string with a place: a variable, an element, a member */
void gen_str_into(struct gen *g, const struct node *n, struct ir_val dst, int32_t off,
		  uint32_t size);
/* Returns an address that bpf_probe_read_kernel can read. *ret_known: the bytes that the verifier
 * lets programs load directly (0: none). */
struct ir_val gen_str_addr(struct gen *g, const struct node *n, uint32_t *ret_known);
/* Returns the address as a plain integer, for routines. */
struct ir_val gen_str_plain(struct gen *g, const struct node *n);
struct ir_val gen_str_id(struct gen *g, const struct node *n, bool canonical); /* STR_ID only */
struct ir_val gen_str_compare(struct gen *g, enum op op, const struct node *a,
			      const struct node *b); /* 0 or 1 */
uint32_t gen_text(struct gen *g, const char *text);  /* id in image.strings */
int gen_probe_part(
	const struct node *n); /* 0 probeprov, 1 probemod, 2 probefunc, 3 probename; -1 other */
const char *gen_part_text(const struct image_probe *p, int part);
uint32_t gen_rodata_text(struct gen *g, const char *text); /* offset in rodata */

/* Limit of the variables of a scope together, and of a value of an associative array. Engines keep
 * offsets in 32 bits, and keep as many zeros beside the variables to clear them. */
enum { GEN_VARIABLES_MAX = 256 << 20 };

/* gen_tuple.c: keys. Engines keep the size of an element in 32 bits. */
enum { GEN_KEY_MAX = 16 << 20 };

void gen_layout_tuple(struct gen *g, struct tuple_layout *l, const type_id *types, uint32_t n);
void gen_widen_tuple(struct gen *g, struct tuple_layout *l, const struct node *keys, bool is_agg);
/* Returns false when the key is larger than GEN_KEY_MAX bytes. */
bool gen_finish_tuple(struct tuple_layout *l, bool thread);
struct ir_val gen_tuple(struct gen *g, const struct tuple_layout *l, const struct node *keys,
			bool thread);
/* Writes one value as field fl at dst + fl->offset. */
void gen_field(struct gen *g, const struct field *fl, const struct node *n, struct ir_val dst,
	       bool is_agg);
enum field_kind gen_dyn_kind(const struct node *n, bool key);

/* gen_stack.c */
void gen_stack_id(struct gen *g, const struct field *fl, struct ir_val dst, const struct node *n);
void gen_stack_frames(struct gen *g, const struct field *fl, struct ir_val dst,
		      const struct node *n);
bool gen_is_lstack(const struct node *n);
uint32_t gen_frames(struct gen *g, const struct node *n); /* of stack(n), ustack(n) */
/* Copies size bytes, or text, from the address in a pointer. In a process's function, its arguments
 * point to its own memory and curthread to the kernel's. Returns the helper's result. */
struct ir_val gen_pointed_copy(struct gen *g, struct ir_val dst, struct ir_val size,
			       struct ir_val at, bool text);
/* Reads the user stack into scratch memory, at *ret_pc. Returns its bytes, or -errno. */
struct ir_val gen_user_stack(struct gen *g, uint32_t frames, struct ir_val *ret_pc);
/* Calls bpf_get_stack() on memory that the verifier tracks. Returns bytes of frames, or -errno. */
struct ir_val
gen_sampled_mode(struct gen *g); /* mode that a sample interrupted: 0 kernel, 3 user */
struct ir_val gen_get_stack(struct gen *g, struct ir_val dst, uint32_t size, bool user);
void gen_save_stacks(struct gen *g); /* emits the program on sched_switch */

/* gen_slot.c */
/* Looks at a node that names something. Called for each, before slots are numbered. */
void gen_slots_look(struct gen *g, const struct node *n);
void gen_slots_number(struct gen *g);
/* Gives the aggregation slots, at most max, in struct agg. Returns false when it gets none and
 * needs a map by key. */
bool gen_slots_take(struct gen *g, uint32_t agg, uint32_t max);
void gen_slots_fini(struct gen *g);
/* Returns the slot of an update with these keys in this firing. Jumps to `none` when the probe has
 * no slot. */
struct ir_val gen_slot(struct gen *g, uint32_t agg, const struct node *keys, uint32_t none);

/* gen_guard.c */
/* Finds out which variables threads may set. Called once, before gen_guard(). */
void gen_guards_look(struct gen *g);
/* Gives the program of a group its guards, if all its clauses have one. */
void gen_guard(const struct gen *g, const struct gen_group *grp, struct image_prog *p);

/* gen_agg.c */
void gen_aggregate(struct gen *g, const struct node *assign);

/* gen_schema.c */
struct gen_schema {
	struct gen *g;
	VEC(struct field) fields;
	VEC(struct action) actions;
	VEC(const struct node *)
	values; /* the value of each field; NULL: the action itself writes it */
	uint32_t size;
	bool too_large;
	bool control, prints;
};
/* Limit of a record's bytes: the largest possible buffer holds one record. */
enum { RECORD_MAX = 1 << 29 };
/* Returns the action of a statement, or NULL when it is an expression or an aggregation. */
const struct subr_info *gen_action_of(const struct node *stmt);
struct action *gen_add_action(struct gen_schema *s, enum action_kind kind, const struct node *call);
/* Adds the actions of a call, with their fields. */
void gen_describe(struct gen_schema *s, const struct node *call);

/* gen_segment.c: generates statements [from, to) with the record that their actions need. */
void gen_segment(struct gen *g, const struct node *from, const struct node *to,
		 bool default_action);

/* gen_clause.c */
void gen_clause(struct gen *g, const struct bound_clause *cl);
void gen_function(struct gen *g, const struct node *body); /* N_BODY */
void gen_count(struct gen *g, struct ir_val slot);         /* counters[slot]++ */

/* gen_map.c */
uint32_t gen_map(struct gen *g, enum map_role role, const char *name, enum bpf_map_type type,
		 uint32_t key, uint32_t value, uint32_t entries, uint32_t flags);
uint32_t gen_fixed_map(struct gen *g, enum map_role role);
uint32_t gen_rodata(struct gen *g, const void *p, uint32_t n, uint32_t align);
/* Returns where a member lies in a struct of the kernel; WIRE_NO_OFFSET: there is none. */
uint32_t gen_offset_of(struct gen *g, const char *type, const char *member,
		       struct type_member *ret);
void gen_finish_maps(struct gen *g);

/* gen_program.c */
/* Probes that share a program. */
struct gen_group {
	const struct bound_clause **clauses;
	uint32_t nclauses;
	uint64_t *masks; /* per probe; NULL: all clauses apply to all probes */
	VEC(uint32_t) probes;
};
uint32_t gen_probe_number(struct gen *g, struct probe *p); /* index in image.probes */
bool gen_is_syscall(enum attach_kind k);
void gen_begin_function(struct gen *g, struct ir_fn *f, const char *name);
void gen_end_function(struct gen *g);
/* Lowers f into a new program. */
struct image_prog *gen_finish_program(struct gen *g, struct ir_fn *f, const char *name, loc_t loc);
/* Does a program of this kind count what its timer does (wire/tick.h)? */
bool gen_counts_timer(const struct gen *g, enum attach_kind attach);
/* Generates the program of a group. */
void gen_group(struct gen *g, const struct gen_group *grp, enum attach_kind attach);
struct ir_val gen_scratch_temp(struct gen *g,
			       uint32_t size); /* verifier-known memory of this clause */
void gen_fault(struct gen *g, int code, struct ir_val value, loc_t loc);
void gen_fault_if(struct gen *g, struct ir_val a, enum ir_cond c, struct ir_val b, int code,
		  struct ir_val value, loc_t loc);
void gen_bail(struct gen *g);
void gen_lazy_save(const struct gen *g, bool *known);
void gen_lazy_restore(struct gen *g, const bool *known);
void gen_lazy_settle(struct gen *g, uint32_t from, const struct lazy *before);
/* Returns true when the clause has this-> variables in scratch memory, or strtok()'s state. The
 * next clauses need this memory, so it is kept. */
bool gen_keeps_scratch(struct gen *g, const struct bound_clause *cl);
/* gen_spec.c. Sends the records that follow to a speculation. Ends the clause when the number is 0
 * or when no speculation can have it. */
void gen_speculate(struct gen *g, const struct node *call);
/* Emits a fault when no speculation can have this number: there are -x nspec. */
void gen_check_speculation(struct gen *g, struct ir_val id, loc_t loc);
void gen_free_speculation(struct gen *g, struct ir_val id);
void gen_list_clauses(
	struct gen *g); /* listing.c: text of -S about clauses; variables have places */
/* gen_layout.c: Does the clause have a this-> pointer to memory that an earlier clause took by
 * alloca() or copyin()? This memory is then kept until the end of the firing. */
bool gen_uses_earlier_memory(const struct gen *g, const struct bound_clause *cl);
bool gen_copies_in(
	const struct bound_clause *cl); /* gen_layout.c: it may read the process's memory */
void gen_collect(struct gen *g);        /* gen_layout.c: places variables, keys, tables */

/* Flag of bpf_get_stack(): the user's stack, not the kernel's (BPF_F_USER_STACK). */
enum { USER_STACK = 1 << 8 };

/* Helper numbers. linux/bpf.h lists them under the same names. */
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
