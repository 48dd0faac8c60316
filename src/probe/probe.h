/* Probes: their names, their arguments, and where to attach.
 *
 * In: probe descriptions. Out: probes with argument descriptions and attach plans, the same for
 * every engine.
 * Always true: providers describe and never emit code, load or attach. A listed probe can fire, or
 * `unavailable` has the reason why it cannot.
 */
#ifndef DESCRY_PROBE_PROBE_H
#define DESCRY_PROBE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/remark.h"
#include "probe/stability.h"
#include "program/object/object.h"
#include "program/symbol/symbol.h"
#include "program/type/type.h"

enum attach_kind {
	ATTACH_SELF,           /* BEGIN, END, ERROR: descry itself runs them */
	ATTACH_SYSCALL_ENTRY,  /* raw tracepoint sys_enter, dispatched on .number */
	ATTACH_SYSCALL_RETURN, /* raw tracepoint sys_exit, dispatched on .number */
	ATTACH_RAW_TP,         /* raw tracepoint .object; context is u64 args[] */
	ATTACH_TP_BTF,         /* as RAW_TP, but loaded as tp_btf: trusted .thread argument */
	ATTACH_TRACEPOINT, /* event .object of subsystem .mod; context is the record of its text form */
	ATTACH_PROFILE, /* timer on every CPU, .period_ns */
	ATTACH_TICK,    /* timer on one CPU, .period_ns */
	ATTACH_UPROBE,  /* .object at file .offset */
	ATTACH_URETPROBE,
	ATTACH_KPROBE, /* kernel function: every address of .addrs; context is its struct pt_regs */
	ATTACH_KRETPROBE,
	ATTACH_FENTRY, /* BPF trampoline instead of kprobe; context is u64 args[], result */
	ATTACH_FEXIT,
	ATTACH_KIND_COUNT
};

/* The source of an argument's 64-bit value. */
enum arg_source {
	ARG_NONE,  /* always 0 */
	ARG_CONST, /* .value */
	ARG_CTX, /* u64 at byte .value of the context (raw tracepoint args; sys_exit's return value) */
	ARG_SYSCALL,    /* system call argument .value (0..5) from the saved registers */
	ARG_REG,        /* register .value (enum user_reg) of the context: entry of pid and fbt */
	ARG_RETURN,     /* user return value register */
	ARG_IP_OFFSET,  /* user ip - .value */
	ARG_KERNEL_PC,  /* profile: pc if the timer hit the kernel, else 0 */
	ARG_USER_PC,    /* profile: pc if the timer hit user code, else 0 */
	ARG_EXPR,       /* .expr: D text over arg names native[0..] - see .expr */
	ARG_USDT,       /* stapsdt operand, or a narrow register or stack word of fbt: .usdt */
	ARG_FIELD,      /* ATTACH_TRACEPOINT: .size bytes at byte .value of the record */
	ARG_FIELD_ADDR, /* the address of an array or structure there */
	ARG_FIELD_LOC,  /* the address whose distance is the low half of the 32 bits there */
	ARG_FAULT,      /* ERROR's arg .value (1..5) */
};

enum user_reg { /* pt_regs order of x86-64 <asm/ptrace.h> */
		UREG_R15,
		UREG_R14,
		UREG_R13,
		UREG_R12,
		UREG_RBP,
		UREG_RBX,
		UREG_R11,
		UREG_R10,
		UREG_R9,
		UREG_R8,
		UREG_RAX,
		UREG_RCX,
		UREG_RDX,
		UREG_RSI,
		UREG_RDI,
		UREG_ORIG_RAX,
		UREG_RIP,
		UREG_CS,
		UREG_RFLAGS,
		UREG_RSP,
		UREG_SS,
		UREG_COUNT
};

/* From an operand on, through memory: what lies at `steps[0]` behind the value, at steps[1] behind
 * that, and so on. The last one has the operand's size; the others are addresses. */
struct usdt_path {
	uint8_t n;
	int16_t steps[3];
	/* text.state != 0: the last one is the address of a str of CPython 3, and the value that of
	 * its text: at `ascii`, when bit WIRE_PYTHON_ASCII is set in the word at `state`, else the
	 * address at `utf8`, which may be 0. */
	struct {
		uint8_t state, ascii, utf8;
	} text;
};

/* A decoded operand such as "-4@-12(%rbp)": the value is *(size *)(reg(base) + index * scale +
 * disp), or the register, or the constant. */
struct usdt_operand {
	int8_t size; /* 1 2 4 8, negative: signed */
	enum { USDT_CONST, USDT_REG, USDT_MEM, USDT_RUBY } mode;
	int64_t disp;       /* constant or displacement */
	int8_t base, index; /* enum user_reg, -1 none */
	uint8_t scale;
	uint8_t reg_shift; /* %ah: 8 */
	struct usdt_path path;
	/* USDT_RUBY: what a frame says of its method (bpf/ruby.bpf.h). Register base + disp is the
	 * frame; with an index, they are an iseq and its method entry. With a path, it leads from
	 * the register to the method entry, and there is no frame. Addresses as linked. */
	struct {
		uint8_t what;  /* WIRE_RUBY_IS_* */
		uint16_t form; /* WIRE_RUBY_3_3 or 0 */
		uint64_t symbols, unknown;
	} ruby;
};

struct probe_arg {
	enum arg_source source;
	int64_t value;
	/* ARG_FIELD: 1 2 4 8, negative: signed. ARG_FIELD_LOC: 0 for a distance from the record's
	 * start, 4 from the end of those 32 bits. */
	int8_t size;
	type_id type; /* of args[i]; T_INT64 when not known */
	/* For args[i] that is translated: the name of the D type that a translator makes ("psinfo_t
	 * *") from the native value of type `type` (or of native_type). NULL: args[i] is the native
	 * value itself. */
	const char *xlate;
	/* D text of the native value when the value is not simply the source; compile/bind parses
	 * and binds it. arg0..arg9 in it are the context words ARG_CTX 0..9. Example: "((struct
	 * request *)arg0)->bio". NULL: none. */
	const char *expr;
	struct usdt_operand usdt;
};

struct probe_args {
	struct probe_arg arg[10]; /* arg0..arg9: integers */
	uint32_t ntyped;          /* args[0..ntyped-1] */
	struct probe_arg typed[16];
	bool known; /* false: args[] has no types, so that programs use arg0.. */
};

enum { PROBE_FILTER_ARG = 9 };
enum { PROBE_ID_DYNAMIC = 100000 }; /* first id of pid and usdt probes */

struct provider;

/* The event that an ATTACH_PROFILE probe counts. Zero: the clock, in nanoseconds. */
struct probe_perf {
	bool hardware; /* event is PERF_COUNT_HW_*, else PERF_COUNT_SW_* */
	uint8_t event;
	bool no_user, no_kernel;
};

/* An interpreter that passes the probes of methods by descry's library. */
struct probe_java_interpreter {
	const uint64_t *number; /* enum java_interpreter (wire/jvm_text.h) */
	/* The JVM's bool PreferInterpreterNativeStubs, which is to be true meanwhile. */
	uint64_t native_at;
	bool native_off; /* no option has set it */
};

/* A flag of a running JVM without which it does not pass the probe: addresses in the process.
 * src/load/java_switch.h sets it. */
struct probe_java_switch {
	const char *what; /* the probes that need it: "methods" */
	uint64_t flag_at;
	uint64_t white_box_at; /* the JVM's bool WhiteBoxAPI */
	bool was_off;          /* another tracer has set it */
	/* Place of the access flags in the JVM's Method. 0: arguments of methods cannot be read. */
	uint32_t access_at;
	/* NULL: the interpreter has code for these probes. */
	const struct probe_java_interpreter *interpreter;
};

struct probe {
	uint32_t id; /* the number that -l prints; the same in all runs on one boot */
	const char *prov, *mod, *func, *name; /* interned in the probe_set */
	const struct provider *provider;
	const char *unavailable; /* reason, NULL: can fire */
	bool never; /* unavailable because Linux never does this: a program may enable the probe */
	const char *note; /* for -l -v: class, price, approximation; NULL: none */

	/* attach plan */
	enum attach_kind kind;
	const char *object; /* tracepoint name, or file path to attach to */
	/* The file at that path, from which `offset` was read. Uprobes attach to it, because the
	 * path may lead to another file by then. NULL: no uprobe. */
	struct object *file;
	uint64_t offset;            /* file offset */
	uint64_t semaphore;         /* file offset, 0 none */
	bool semaphore_shares_page; /* mapped twice: the kernel may count in the wrong copy */
	const struct object_question *const
		*asks; /* DOF: questions answered with yes while the probe is enabled, where
		        * possible */
	uint32_t nasks;
	/* Link-time address of a bool, 0: none. The program passes the probe only while it is true.
	 * The in-process engine sets it while the probe is enabled. */
	uint64_t flag;
	/* NULL: none. With `flag`, the in-process engine does not need it. */
	const struct probe_java_switch *java_switch;
	uint32_t typed_used;   /* bits: args[] that clauses use */
	uint64_t addr;         /* link-time address of the function (offset arguments) */
	const uint64_t *addrs; /* kprobes: kernel addresses of every function of that name */
	uint32_t naddrs;
	uint64_t period_ns;     /* more than 0 */
	struct probe_perf perf; /* cpc: .period_ns is the count of events */
	int32_t number;         /* of the system call; of the event, ATTACH_TRACEPOINT */
	/* The instruction is a 5-byte nop, and the function keeps data below the stack pointer at
	 * this place. A kernel that turns the nop into a call (6.18) would overwrite this data. */
	bool red_zone;
	/* ATTACH_URETPROBE: the kernel engine places uprobes where the function ends. The kernel's
	 * return probes overwrite return addresses, and so end programs that read these
	 * (exceptions, garbage collectors) or change stacks (coroutines). */
	bool by_exits;
	/* The program may compile code of its own later, which does not pass the probe. */
	bool misses_compiled;
	pid_t pid; /* only this process, 0: all; for uprobes of the pid provider */
	/* The thread that the built-ins (pid, tid, execname, curthread, self->) describe. -1: the
	 * current thread; n: the task_struct * in tracepoint argument n (sched:::on-cpu: next). */
	int8_t thread_arg;
	/* A D condition over arg0..arg9 (context words) under which the probe fires, e.g. for
	 * sched:::preempt from sched_switch; of a uprobe, over the probe's own argument
	 * PROBE_FILTER_ARG. NULL: always. */
	const char *filter;
	/* Of a probe in functions of a language: D texts over arg0..arg9 that probemod and
	 * probefunc stand for, and a condition under which it fires. NULL: none. */
	const char *mod_text, *func_text, *names_filter;
	const void *priv; /* the provider's own data */
};

struct probe_desc {
	const char *prov, *mod, *func, *name;
}; /* patterns, "" any */

struct event; /* event.h */

struct probe_target {
	pid_t pid;
	bool is_command;
	struct process_objects *objects; /* private to process.c; NULL until used */
};

enum { PROBE_TEXTS = 8 };

/* All probes found so far, and the data that providers need to find more. */
struct probe_set {
	/* of pid.c: an instruction of a function, the last that was looked for */
	struct {
		uint64_t dev, inode; /* of its file */
		uint64_t func, at;
	} decoded;
	/* of process_text(): the objects that were asked for last, in a ring */
	struct probe_text {
		const struct object *object; /* NULL: none */
		struct text *text;           /* NULL: it cannot be read */
	} texts[PROBE_TEXTS];
	uint32_t next_text;
	struct arena arena;
	struct intern names;
	VEC(struct probe *) all;
	struct hash by_key; /* "p:m:f:n" -> index + 1 in all */
	struct type_graph *types;
	struct symbols *symbols;
	VEC(struct probe_target) targets; /* -p and -c, in order */
	VEC(char *) notes;                /* remarks for the user: skipped functions and why */
	struct remarks remarks;           /* which of them there were */
	struct hash links; /* private to process.c: whether names are links to files */
	struct tracepoints *tracepoints;  /* private to tracepoint.c; NULL until first used */
	struct fbt *fbt;                  /* private to fbt.c, likewise */
	struct usdt_machine *machine;     /* private to usdt_machine.c, likewise */
	struct usdt_python_file *pythons; /* private to usdt_python.c, likewise */
	struct usdt_ruby_file *rubies;    /* private to usdt_ruby.c, likewise */
	struct usdt_java *javas;          /* private to usdt_java.c, likewise */
	struct plt *plt;                  /* private to plt.c, likewise */
	struct usdt_questions *questions; /* private to usdt_questions.c, likewise */
	/* Returns why BPF trampolines cannot run programs on the kernel's functions (NULL: they
	 * can). A NULL pointer means that they cannot. */
	const char *(*fentry_refusal)(struct type_graph *types);
	bool loaded_only;       /* a listing: libraries are not looked for before they are loaded */
	bool sdt_fields;        /* args[] of sdt are the fields of the event's text form */
	uint32_t nprofile;      /* rates named so far: ids of profile_probes.c */
	uint32_t ncpc;          /* counts named so far: ids of cpc.c */
	uint32_t ndynamic;      /* ids that probe_add() has given */
	uint64_t red_zone_read; /* of object_uses_red_zone(), for all files */
};

/* Called for each probe that matches. */
typedef void probe_fn(void *arg, struct probe *p);

struct provider {
	const char *name; /* "syscall"; "pid" claims pid123 */
	const char *doc;  /* one line for -l -v and the manual */
	/* Ids of its probes, both included. A number printed by one run means the same in the next.
	 * 0: ids are given in the order in which probes are found, from PROBE_ID_DYNAMIC on. */
	uint32_t first_id, last_id;
	struct provider_stability stability;
	const struct event *events; /* of events_match(): probes made of tracepoints; NULL none */
	uint32_t nevents;
	/* D declarations and clauses that filters and arguments need. The binder puts them before
	 * and behind the program's own clauses when the program uses a probe of this provider.
	 * NULL: none. */
	const char *before, *after;
	/* Returns true when a provider pattern may select probes of this provider. */
	bool (*claims)(const struct provider *pv, const char *prov_pattern);
	/* Adds every probe that matches to ps (probe_add) and calls `found` for each. Returns an
	 * error only when a read failed; no match is no error. */
	struct err *(*match)(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, probe_fn *found, void *arg);
	struct err *(*args)(struct probe_set *ps, const struct probe *p, struct probe_args *ret);
};

void probe_set_init(struct probe_set *ps, struct type_graph *types, struct symbols *symbols);
void probe_set_fini(struct probe_set *ps);

/* Calls found for every probe that matches, in id order for each provider. *ret_n is the number of
 * matches. */
struct err *probe_match(struct probe_set *ps, const struct probe_desc *pd, probe_fn *found,
			void *arg, uint32_t *ret_n);
struct err *probe_by_id(struct probe_set *ps, uint32_t id,
			struct probe **ret); /* *ret NULL: no such id */
struct err *probe_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);
/* Adds a remark for the user that names those of the return probes whose functions may end by a
 * jump to another function: arg1 is not the result there. For clauses that use it. */
void probe_note_results(struct probe_set *ps, struct probe *const *probes, uint32_t n);
/* Returns the existing probe of that name, or adds one (zeroed except for names and thread_arg -1)
 * and sets *ret_new. Copies the names. id 0: takes the next free id from PROBE_ID_DYNAMIC. */
struct probe *probe_add(struct probe_set *ps, const struct provider *pv, uint32_t id,
			const char *prov, const char *mod, const char *func, const char *name,
			bool *ret_new);
/* Called before a program uses the arguments of an sdt probe. With sdt_fields, the arguments become
 * those of the event's text form, if it has one. */
void probe_use_fields(struct probe_set *ps, struct probe *p);
/* Returns true when a name can stand in a D program as it is, in a probe description and in a
 * string. The traced process chooses the names of its functions and files. Any other character may
 * end the description or the string, and what follows would be D that descry runs. */
bool probe_name_is_plain(const char *name);
bool probe_desc_matches(const struct probe_desc *pd, const char *prov, const char *mod,
			const char *func, const char *name);
/* Explains a description that matches nothing: the nearest name or the reason. malloc()ed; NULL:
 * none. */
char *probe_explain(struct probe_set *ps, const struct probe_desc *pd);
/* Returns why Linux cannot have these probes of other systems, and the probe to use instead. NULL:
 * the description names no such probe. */
const char *probe_missing(const struct probe_desc *pd);
/* Returns true when pd names a system call that other systems have and Linux lacks. Its probe never
 * fires, because no program here makes the call. */
bool probe_never_fires(const struct probe_desc *pd);
const char *attach_kind_name(enum attach_kind k);

void probe_stability(const struct probe *p, struct stability *ret_probe,
		     struct stability *ret_args);
/* Returns the stability of a description, from the fields that it gives. p is a probe that matches
 * it. */
struct stability probe_desc_stability(const struct probe_desc *pd, const struct probe *p);

/* Every provider, in the order of providers.def; NULL ends it. */
extern const struct provider *const providers[];
#define PROVIDER(name) extern const struct provider provider_##name;
#include "probe/providers.def"
#undef PROVIDER

#endif
