/* Probes: what exists, what its arguments are, where to attach.
 *
 * In: probe descriptions. Out: probes with argument descriptions and attach plans, the same for
 * every engine.
 * Always true: providers describe and never emit code, load or attach. A probe that is listed can
 * fire, or carries the reason why not in `unavailable`.
 */
#ifndef DESCRY_PROBE_PROBE_H
#define DESCRY_PROBE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "probe/stability.h"
#include "program/object/object.h"
#include "program/symbol/symbol.h"
#include "program/type/type.h"

enum attach_kind {
	ATTACH_SELF,           /* BEGIN, END, ERROR: run by descry itself */
	ATTACH_SYSCALL_ENTRY,  /* raw tracepoint sys_enter, dispatched on .number */
	ATTACH_SYSCALL_RETURN, /* raw tracepoint sys_exit, likewise */
	ATTACH_RAW_TP,         /* raw tracepoint .object; context is u64 args[] */
	ATTACH_TP_BTF, /* as RAW_TP but loaded as tp_btf: when .thread is an argument (trusted task pointer) */
	ATTACH_PROFILE, /* timer on every CPU, .period_ns */
	ATTACH_TICK,    /* timer on one CPU, .period_ns */
	ATTACH_UPROBE,  /* .object at file .offset */
	ATTACH_URETPROBE,
	ATTACH_KPROBE, /* kernel function: every address of .addrs; context is its struct pt_regs */
	ATTACH_KRETPROBE,
	ATTACH_FENTRY, /* of a program: kprobes' probes by BPF trampolines; context is u64 args[], then the result */
	ATTACH_FEXIT,
	ATTACH_KIND_COUNT
};

/* Where an argument's 64-bit value comes from. */
enum arg_source {
	ARG_NONE,  /* always 0 */
	ARG_CONST, /* .value */
	ARG_CTX, /* u64 at byte .value of the context (raw tracepoint args; sys_exit's return value) */
	ARG_SYSCALL, /* system call argument .value (0..5) from the saved registers */
	ARG_REG,     /* register number .value (enum user_reg) of the context: pid and fbt entry */
	ARG_RETURN,  /* user return value register */
	ARG_IP_OFFSET, /* user ip - .value */
	ARG_KERNEL_PC, /* profile: pc when it hit the kernel, else 0 */
	ARG_USER_PC,   /* profile: pc when it hit user code, else 0 */
	ARG_EXPR,      /* .expr: D text over arg names native[0..] - see .expr */
	ARG_USDT,      /* stapsdt operand, or a narrow register or stack word of fbt: .usdt */
	ARG_FAULT,     /* ERROR's arg .value (1..5) */
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

/* "-4@-12(%rbp)" decoded: value = *(size *)(reg(base) + index * scale + disp), or the register, or
 * the constant. */
struct usdt_operand {
	int8_t size; /* 1 2 4 8, negative: signed */
	enum { USDT_CONST, USDT_REG, USDT_MEM } mode;
	int64_t disp;       /* constant or displacement */
	int8_t base, index; /* enum user_reg, -1 none */
	uint8_t scale;
	uint8_t reg_shift; /* %ah: 8 */
};

struct probe_arg {
	enum arg_source source;
	int64_t value;
	type_id type; /* of args[i]; T_INT64 when not known */
	/* args[i] only: a translated argument. `xlate`: name of the D type it is translated to
	 * ("psinfo_t *"), whose translator takes the native value of type `type` (or of
	 * native_type); NULL: args[i] is the value itself. */
	const char *xlate;
	/* D expression for the native value when it is not simply the source, over arg0..arg9 of
	 * the *native* context `native[]`, e.g. "((struct request *)arg0)->bio". NULL: none. Parsed
	 * and bound by compile/bind; arg0.. in it mean the context words ARG_CTX 0..9. */
	const char *expr;
	struct usdt_operand usdt;
};

struct probe_args {
	struct probe_arg arg[10]; /* arg0..arg9: integers */
	uint32_t ntyped;          /* args[0..ntyped-1] */
	struct probe_arg typed[16];
	bool known; /* false: args[] has no types, use arg0.. */
};

enum { PROBE_ID_DYNAMIC = 100000 }; /* pid and usdt probes: numbered as they are found */

struct provider;

/* What an ATTACH_PROFILE probe counts; zero: the clock, in nanoseconds. */
struct probe_perf {
	bool hardware; /* event is PERF_COUNT_HW_*, else PERF_COUNT_SW_* */
	uint8_t event;
	bool no_user, no_kernel;
};

struct probe {
	uint32_t id; /* as printed by -l; stable between runs on one boot */
	const char *prov, *mod, *func, *name; /* interned in the probe_set */
	const struct provider *provider;
	const char *unavailable; /* reason, NULL: can fire */
	bool never; /* unavailable because Linux does not do such a thing: enabling it is no error */
	const char *note; /* for -l -v: class, price, approximation; NULL none */

	/* attach plan */
	enum attach_kind kind;
	const char *object; /* tracepoint name, or file path to attach to */
	uint64_t offset;    /* file offset */
	uint64_t semaphore; /* file offset, 0 none */
	bool semaphore_shares_page; /* two mappings of a process hold its byte, and the kernel may count in the wrong one */
	const struct object_question *const
		*asks; /* DOF: answered with yes while it is enabled, where that can be done */
	uint32_t nasks;
	uint64_t addr;         /* link-time address of the function (offset arguments) */
	const uint64_t *addrs; /* kprobes: kernel addresses of every function of that name */
	uint32_t naddrs;
	uint64_t period_ns;
	uint32_t freq_hz;       /* profile/tick given in hz: exact rate; 0: use period_ns */
	struct probe_perf perf; /* cpc: .period_ns is how many of them */
	int32_t number;         /* system call number */
	/* The instruction is a 5-byte nop and the function keeps data below the stack pointer
	 * there: a kernel that makes the nop a call (6.18) would overwrite it. */
	bool red_zone;
	pid_t pid; /* only this process, 0 all; uprobes of pid provider */
	/* Whose thread the built-ins (pid, tid, execname, curthread, self->) describe: -1 current;
	 * n: tracepoint argument n, a task_struct * (sched:::on-cpu: next). */
	int8_t thread_arg;
	/* A D condition over arg0..arg9 (context words) that must hold for the probe to fire, e.g.
	 * sched:::preempt from sched_switch; NULL always. */
	const char *filter;
	const void *priv; /* provider's own */
};

struct probe_desc {
	const char *prov, *mod, *func, *name;
}; /* patterns, "" any */

struct event; /* event.h */

struct probe_target {
	pid_t pid;
	bool is_command;
	struct process_objects *objects; /* private to process.c; NULL until somebody asks */
};

/* All probes known so far, and what providers need to find more. */
struct probe_set {
	struct arena arena;
	struct intern names;
	VEC(struct probe *) all;
	struct hash by_key; /* "p:m:f:n" -> index + 1 in all */
	struct type_graph *types;
	struct symbols *symbols;
	VEC(struct probe_target) targets; /* -p and -c, in order */
	VEC(char *) notes;                /* remarks for the user: skipped functions and why */
	struct tracepoints *tracepoints;  /* private to tracepoint.c; NULL until somebody asks */
	struct fbt *fbt;                  /* private to fbt.c, likewise */
	/* Why no program can be put on the kernel's functions by BPF trampolines (NULL: one can);
	 * unset, none can. */
	const char *(*fentry_refusal)(struct type_graph *types);
	uint32_t nprofile; /* rates named so far: ids of profile.c */
	uint32_t ncpc;     /* counts named so far: ids of cpc.c */
	uint32_t ndynamic; /* ids given by probe_add itself */
};

struct provider {
	const char *name; /* "syscall"; "pid" claims pid123 */
	const char *doc;  /* one line for -l -v and the manual */
	/* Ids of its probes, both included. A number printed by one run means the same in the next.
	 * 0: ids are given in the order in which probes are found, from PROBE_ID_DYNAMIC on. */
	uint32_t first_id, last_id;
	struct provider_stability stability;
	const struct event *events; /* of events_match(): probes made of tracepoints; NULL none */
	uint32_t nevents;
	/* D declarations and clauses that filters and arguments rely on: bound before and behind
	 * the program's own clauses when one of them uses a probe of this provider. NULL none. */
	const char *before, *after;
	/* May a provider pattern select probes of this provider? */
	bool (*claims)(const struct provider *pv, const char *prov_pattern);
	/* Adds every probe that matches to ps (probe_add) and calls `found` for each. An error only
	 * when the world failed; no match is no error. */
	struct err *(*match)(const struct provider *pv, struct probe_set *ps,
			     const struct probe_desc *pd, void (*found)(void *arg, struct probe *p),
			     void *arg);
	struct err *(*args)(struct probe_set *ps, const struct probe *p, struct probe_args *ret);
};

void probe_set_init(struct probe_set *ps, struct type_graph *types, struct symbols *symbols);
void probe_set_fini(struct probe_set *ps);

/* Calls found for every probe that matches, in id order per provider; *ret_n is how many. */
struct err *probe_match(struct probe_set *ps, const struct probe_desc *pd,
			void (*found)(void *arg, struct probe *p), void *arg, uint32_t *ret_n);
struct err *probe_by_id(struct probe_set *ps, uint32_t id,
			struct probe **ret); /* *ret NULL: no such id */
struct err *probe_args(struct probe_set *ps, const struct probe *p, struct probe_args *ret);
/* The existing probe of that name, or a new one (zeroed but for names and thread_arg -1; *ret_new).
 * Names are copied. id 0: the next free one from PROBE_ID_DYNAMIC. */
struct probe *probe_add(struct probe_set *ps, const struct provider *pv, uint32_t id,
			const char *prov, const char *mod, const char *func, const char *name,
			bool *ret_new);
bool probe_desc_matches(const struct probe_desc *pd, const char *prov, const char *mod,
			const char *func, const char *name);
/* For a description that matches nothing: the nearest name or the reason, malloc()ed, NULL none. */
char *probe_explain(struct probe_set *ps, const struct probe_desc *pd);
/* Why probes that other systems have cannot be had here, and what tells the same; NULL: nothing is
 * known of such. */
const char *probe_missing(const struct probe_desc *pd);
/* A system call that other systems have and Linux does not: as nobody makes it, its probe is one
 * that never fires. */
bool probe_never_fires(const struct probe_desc *pd);
const char *attach_kind_name(enum attach_kind k);

void probe_stability(const struct probe *p, struct stability *ret_probe,
		     struct stability *ret_args);
/* Of a description: that of its fields that name something. p: a probe that it matches. */
struct stability probe_desc_stability(const struct probe_desc *pd, const struct probe *p);

/* Every provider, in the order of providers.def; NULL ends it. */
extern const struct provider *const providers[];
#define PROVIDER(name) extern const struct provider provider_##name;
#include "probe/providers.def"
#undef PROVIDER

#endif
