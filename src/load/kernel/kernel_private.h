/* Shared by the files of the kernel engine. Its public interface is engine_kernel in
 * load/engine.h. */
#ifndef DESCRY_LOAD_KERNEL_KERNEL_PRIVATE_H
#define DESCRY_LOAD_KERNEL_KERNEL_PRIVATE_H

#include <linux/bpf.h>

#include "base/mem.h"
#include "load/engine.h"
#include "load/kernel/unwind_tables.h"
#include "load/link.h"

/* --- sys.c: bpf(2) with the kernel's newer argument layouts --- */

/* Returns -1 and sets errno on failure, like the system call. */
int sys_bpf(int cmd, void *attr, unsigned size);
int sys_raw_tp_open(const char *name, int prog_fd, uint64_t cookie);
int sys_link_perf(int prog_fd, int perf_fd, uint64_t cookie);

struct uprobe_multi {
	const char *path;
	const uint64_t *offsets, *semaphores, *cookies; /* semaphores NULL: none */
	uint32_t n;
	bool ret;
	uint32_t pid;
};
int sys_link_uprobe_multi(int prog_fd, const struct uprobe_multi *u);

struct kprobe_multi {
	const uint64_t *addrs, *cookies;
	const char *const *syms; /* used instead of addrs */
	uint32_t n;
	bool ret;
};
int sys_link_kprobe_multi(int prog_fd, const struct kprobe_multi *m);
int sys_prog_load(union bpf_attr *attr);
/* Returns a descriptor of a module's BTF. */
int sys_btf_of_module(const char *module);
int sys_btf_load(const void *btf, uint32_t size);
/* Copies at most 15 bytes, and replaces bytes that a BPF object's name may not have. */
void sys_object_name(char ret[BPF_OBJ_NAME_LEN], const char *name);
/* Makes an error for a call that failed with errno_value. Names the missing privilege when that is
 * the cause. */
struct err *sys_err(int errno_value, const char *what);

/* --- features.c --- */
enum feature {
	FEATURE_RAW_TP_COOKIE, /* raw tracepoints with a cookie (6.10) */
	FEATURE_UPROBE_MULTI,  /* 6.6 */
	FEATURE_PERF_LINK,     /* perf events as links, with a cookie (5.15) */
	FEATURE_KPROBE_MULTI,  /* 5.18, and built with fprobes */
	FEATURE_NOP5,          /* a uprobe on a 5-byte nop keeps the data below the stack pointer */
	FEATURE_SLEEPING,      /* programs of uprobes may sleep (6.0) */
	FEATURE_COUNT
};
/* Tries each feature once per process, because versions prove nothing. */
bool feature(enum feature f);
/* Returns NULL when this process may trace, or an error of one line that names the missing
 * privilege. */
struct err *feature_check_privilege(void);
/* Returns true when programs of uprobes can sleep (Linux 6.0). Also true where this process may
 * load nothing. */
bool feature_sleeps(void);

/* --- the engine --- */
struct kmap {
	int fd;
	enum bpf_map_type type;
	uint32_t key_size, value_size, max_entries;
	void *mem; /* mapped memory, or NULL */
	size_t mem_size;
};

struct ring {
	int fd;
	uint8_t *consumer, *producer; /* mappings */
	uint64_t *cons, *prod;
	const uint8_t *data;
	uint64_t size;
};

/* A loaded copy of a program. */
struct instance {
	int fd;
	uint32_t prog;          /* index in image.progs */
	uint32_t probe;         /* index in image.probes; UINT32_MAX: any probe (by cookie) */
	const char *tracepoint; /* TP_BTF: the tracepoint that it was loaded for */
	const char *mode;
	uint32_t ninsns;
	uint32_t first_link, end_link; /* its part of links */
};

/* The stacks that were read last. A key is looked up several times, and most kernel stacks are in
 * many keys. */
enum { KNOWN_STACKS = 64 };
struct known_stack {
	int64_t id;
	bool valid;
	struct wire_stack stack;
};

struct kernel_engine {
	struct engine e;
	bool measure;
	int stats_fd;      /* while open, the kernel keeps run-time statistics; -1 */
	struct kmap *maps; /* [image.nmaps] */
	struct ring data, control;
	int epoll_fd;
	VEC(struct instance) instances;
	VEC(int) links;  /* closing such a descriptor detaches; -1: closed */
	uint8_t *values; /* scratch of agg_read and counters, */
	size_t values_n; /* whose bytes may be more than 4 GB: one of each CPU */
	struct engine_counters counters;
	struct unwind_tables *unwind;     /* NULL: the image reads no user stacks */
	struct languages *languages;      /* the session's; NULL: none are wanted */
	struct known_stack *known_stacks; /* [KNOWN_STACKS], NULL until needed */
	uint64_t missed;                  /* missed firings of links that were closed */
	struct ticks *ticks;              /* NULL: the image has none */
	bool *trampoline; /* [image.nprobes]: fired by a BPF trampoline, not by a kprobe */
};

/* kernel_maps.c */
/* Returns the kernel memory of the maps, in bytes. */
uint64_t maps_bytes(struct kernel_engine *k);
struct err *maps_create(struct kernel_engine *k);
void maps_close(struct kernel_engine *k);
struct kmap *maps_role(struct kernel_engine *k, enum map_role role); /* NULL: the image has none */
/* Returns how many elements of so many bytes, all CPUs' values together, are read at once: 64 MB of
 * them, or one. */
uint32_t maps_chunk(size_t element);
struct err *maps_agg_read(struct kernel_engine *k, uint32_t agg, agg_fn *fn, void *arg);
struct err *maps_agg_delete(struct kernel_engine *k, uint32_t agg, const void *key,
			    uint64_t *ret_values);
uint32_t maps_stack(struct kernel_engine *k, int64_t id, uint64_t *frames, uint32_t max);
uint32_t maps_stack_end(struct kernel_engine *k, int64_t id);
void maps_counters(struct kernel_engine *k, struct engine_counters *ret);

/* ring.c */
struct err *ring_open(struct ring *r, int fd, uint32_t size);
void ring_close(struct ring *r);
/* Calls fn for the records that were complete when the call began. */
void ring_drain(struct ring *r, record_fn *fn, void *arg, bool control);

/* kernel_progs.c */
struct err *progs_load(struct kernel_engine *k);
/* Loads one copy of program `prog` for a probe (UINT32_MAX: for all, by cookie) and, when typed,
 * for a tracepoint. tell: also adds a diagnostic when the kernel rejects it. */
struct err *prog_load_copy(struct kernel_engine *k, uint32_t prog, uint32_t probe,
			   const char *tracepoint, bool tell);
/* Returns true when each probe needs its own copy, because the program cannot learn which probe
 * fired. */
bool prog_is_for_each(const struct image_prog *p);
void progs_close(struct kernel_engine *k);

/* exits.c: where a function ends */
typedef VEC(uint64_t) exits_t; /* file offsets, by address */
/* The file of the last probe, whose budget of decoding is one for all of its probes. Zero: none. */
struct exits_text {
	const struct object *file;
	struct text *text;
};
/* Appends the returns and tail jumps of a probe's function, if it has any. Returns why not all of
 * them can be probed, or NULL. The caller frees ret with vec_fini(). */
const char *exits_find(const struct probe *p, struct exits_text *held, exits_t *ret);
void exits_text_free(struct exits_text *held);

/* kernel_attach.c, uprobe.c: append to k->links */
struct err *attach_all(struct kernel_engine *k);
void detach_all(struct kernel_engine *k);
void detach_instance(struct kernel_engine *k, struct instance *in);
/* Opens a timer on a CPU; the program of its probe is to be attached. *ret_fd is -1 when the CPU is
 * offline. on: it runs from now on. */
struct err *timer_open(const struct probe *p, uint64_t period, uint32_t cpu, bool on, int *ret_fd);
/* Attaches the program to the timer's event, and takes over the descriptor. */
struct err *timer_attach(struct kernel_engine *k, const struct instance *in, int event,
			 uint64_t cookie);

/* kernel_ticks.c */
/* Starts the timers of a tick. Appends to k->links. */
struct err *ticks_add(struct kernel_engine *k, const struct instance *in, const struct probe *p,
		      uint32_t cpu, uint64_t cookie);
/* After all ticks were added: watches whether they fire. */
struct err *ticks_watch(struct kernel_engine *k);
/* Returns the number of ticks that were given up. */
uint64_t ticks_lost(const struct kernel_engine *k);
void ticks_stop(struct kernel_engine *k); /* before their links are closed */
void ticks_free(struct kernel_engine *k);

/* missed.c */
uint64_t missed_count(struct kernel_engine *k);
/* Adds the instance's missed firings to k->missed; called before its links are closed. */
void missed_keep(struct kernel_engine *k, const struct instance *in);
struct err *attach_uprobes(struct kernel_engine *k, struct instance *in);
/* kprobe.c: appends to k->links */
struct err *attach_kprobes(struct kernel_engine *k, struct instance *in);
/* Loads the copies of program `prog` of kprobes that the probes without trampoline need. */
struct err *kprobes_load(struct kernel_engine *k, uint32_t prog);
bool is_kprobe(enum attach_kind kind);

/* kernel_fentry.c: appends to k->links. A probe that cannot be loaded or attached gets trampoline[]
 * false. */
struct err *fentry_load(struct kernel_engine *k, uint32_t prog);
/* -x fbt=fentry: notes the probes without trampoline. Returns an error when no probe is left. */
struct err *fentry_left(struct kernel_engine *k);
void fentry_attach(struct kernel_engine *k, struct instance *in);
/* Sets the function that a program for the probe is loaded for. *ret_btf: to be closed, -1:
 * none. */
struct err *fentry_place(struct kernel_engine *k, uint32_t probe, bool ret, union bpf_attr *a,
			 int *ret_btf);
bool is_trampoline(enum attach_kind kind);
/* Returns the highest number of kernel function probes that trampolines shall fire. */
uint32_t fentry_max(struct type_graph *types, const struct options *options);
void fentry_advise(struct probe_set *set);
char *fentry_how(struct engine_scene *s, const struct probe *p, char **ret_note);
bool fentry_only(const struct kernel_engine *k); /* -x fbt=fentry: no kprobes instead */

void engine_note(struct kernel_engine *k, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
