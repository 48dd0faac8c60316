/* An engine: runs an image, gives back records, aggregations and counters.
 *
 * In: a struct image. Out: running probes.
 * Order of calls: new, load, attach, set active, drain/poll..., detach, free. BEGIN and END are run
 * with fire().
 * Always true: after detach no probe fires; free undoes everything, in any state.
 */
#ifndef DESCRY_LOAD_ENGINE_H
#define DESCRY_LOAD_ENGINE_H

#include "base/err.h"
#include "data/image.h"
#include "wire/record.h"

struct control;
struct fentry_target;
struct object;
struct text;
struct probe;

struct engine_counters {
	uint32_t ncpus;
	uint64_t *fixed;      /* [ncpus][WIRE_FIXED_COUNTERS] */
	uint64_t *fired;      /* [nprobes], all CPUs */
	uint64_t *dropped;    /* [nprobes] */
	uint64_t table_bytes; /* of unwind tables */
	uint64_t missed;      /* firings the kernel left out: a program was running on that CPU */
	uint64_t lost_events; /* of the process connector, which had no room for them */
};

struct engine_prog_report {
	const char *name;
	const char *mode; /* "raw tracepoint", "uprobe_multi", "perf uprobe", "interpreted"... */
	uint64_t runs;    /* 0 when not measured */
	uint64_t run_ns;
	uint32_t ninsns; /* after linking */
	uint32_t prog;   /* index in image.progs */
};

struct engine {
	const struct engine_ops *ops;
	const struct image *image;
	struct wire_state *state; /* valid from load() to free() */
	uint64_t machine_told;    /* now_ns() */
	struct engine *beside;    /* another one that runs a part of the probes; NULL */
	uint32_t ncpus;
	struct engine_note {
		char *text;
		bool blind; /* some process is not seen, or not all of it: to be said even with -q */
	} * notes; /* remarks for the user, owned by the engine: probes the kernel refused, reduced buffers */
	uint32_t nnotes;
};

struct engine_ops {
	const char *name; /* "kernel", "interp" */
	/* Creates maps, links, loads. A program that the kernel refuses is a diagnostic at its D
	 * source (caret, tag D_VERIFIER, kernel's last line), added to image->diags, and an error.
	 * measure: count run time (-x report). */
	struct err *(*load)(struct engine *e, const struct image *img, bool measure);
	struct err *(*attach)(struct engine *e);
	/* pid will be traced: its first user stack shall be right. 0: any process may be. command:
	 * it has hardly begun, and will map its libraries yet. NULL: the engine needs no
	 * telling. */
	void (*add_process)(struct engine *e, int pid, bool command);
	/* Calls fn for each process of which a first user stack was taken since the last call.
	 * NULL: the engine does not know. */
	void (*met)(struct engine *e, void (*fn)(void *arg, int pid), void *arg);
	/* Runs program prog once in this process (BEGIN, END, ERROR). */
	struct err *(*fire)(struct engine *e, uint32_t prog);
	/* Waits until records are there, at most timeout_ms (-1 forever); also returns on a
	 * signal. */
	void (*poll)(struct engine *e, int timeout_ms);
	/* After a poll: do events older than that (CLOCK_MONOTONIC ns) still wait to be seen? NULL:
	 * what has happened has been seen. */
	bool (*behind)(struct engine *e, uint64_t time);
	/* An fd that is readable when records are there; -1 none. */
	int (*wait_fd)(struct engine *e);
	/* Gives every record now in the rings, control ones too, in ring order each; the bytes are
	 * valid during the call. */
	void (*drain)(struct engine *e,
		      void (*fn)(void *arg, const struct wire_record *r, uint32_t size,
				 bool control),
		      void *arg);
	/* Calls fn for each key of the aggregation with the values of every CPU (values[cpu *
	 * nwords + word]). key NULL for an aggregation without keys. */
	struct err *(*agg_read)(struct engine *e, uint32_t agg,
				void (*fn)(void *arg, const void *key, const uint64_t *values,
					   uint32_t ncpus),
				void *arg);
	/* Removes a key, giving its last values (as above; NULL when it was not there). */
	struct err *(*agg_delete)(struct engine *e, uint32_t agg, const void *key,
				  uint64_t *ret_values);
	/* Frames of a stack id; the count. */
	uint32_t (*stack)(struct engine *e, int64_t id, uint64_t *frames, uint32_t max);
	/* How the walk of a stack id ended: 1 + enum wire_unwind_end, 0 not known. NULL: the engine
	 * does not know. */
	uint32_t (*stack_end)(struct engine *e, int64_t id);
	void (*counters)(
		struct engine *e,
		struct engine_counters *ret); /* ret owned by the engine until the next call */
	uint32_t (*report)(struct engine *e, struct engine_prog_report *ret, uint32_t max);
	/* Bytes of memory that the image's maps take in the kernel, unwind tables not among them; 0
	 * not known. NULL: never known. */
	uint64_t (*map_bytes)(struct engine *e);
	/* How probe i (index in image.probes) fires, or why it does not; valid until free(). NULL,
	 * or no such function: as its attach kind says. */
	const char *(*probe_mode)(struct engine *e, uint32_t i);
	/* Detaches what report() gives at index i, for good. False: it is not of the kind that can
	 * be. NULL: the engine cannot. */
	bool (*stop)(struct engine *e, uint32_t i);
	struct err *(*detach)(struct engine *e);
	void (*free)(struct engine *e);
};

/* Takes text, which was malloc()ed; the same text a second time is left out. */
void engine_remark(struct engine *e, char *text, bool blind);
void engine_free_remarks(struct engine *e);
/* Whose run it is: boot_offset, self_pid and target_pid of who. */
void engine_introduce(struct engine *e, const struct wire_state *who);
/* Tells programs the machine's load averages and memory, once a second at most. */
void engine_tell_machine(struct engine *e);
/* Programs run from now on, unless exit() was called; none does any more. Any thread's exit() may
 * come between. */
void engine_start(struct engine *e);
void engine_stop(struct engine *e);
/* As if exit() had been called; has it? */
void engine_exit(struct engine *e);
bool engine_exiting(const struct engine *e);

struct engine *engine_kernel_new(void);
/* May this process load programs into the kernel? */
bool engine_kernel_permitted(void);
/* Can programs of uprobes sleep (Linux 6.0)? True too where nothing may be loaded. */
bool engine_kernel_sleeps(void);
/* Why this kernel lets nobody trace functions by BPF trampolines (fentry), NULL: it does. Tried
 * once; valid for ever. */
const char *engine_kernel_fentry_refusal(struct type_graph *types);
/* The same of one function, that of a kprobe; malloc()ed. */
char *engine_kernel_no_fentry(struct type_graph *types, const struct probe *p,
			      struct fentry_target *ret);
/* Up to how many probes of kernel functions are to be fired by trampolines. */
uint32_t engine_kernel_fentry_max(struct type_graph *types, const struct options *options);
struct engine *engine_interp_new(void);
/* Can the interpreter fire this probe truly: in this process, or told of by the process
 * connector? */
bool engine_interp_can(const struct probe *p);
/* Before attach: an error when it has probes that the process connector tells of, and there is none
 * to be listened to. */
struct err *engine_interp_hears(const struct image *img);
/* When the in-process engine's load() fails though something could be traced: never; when the
 * program asks for what only the kernel has, or more than one probe in twenty cannot be placed (so
 * many the kernel leaves out itself); or when one cannot. */
enum inproc_scope { INPROC_WHAT_CAN_BE, INPROC_NEARLY_ALL, INPROC_EVERY_ONE };
/* Traces these processes from inside. targets and symbols are borrowed. */
struct engine *engine_inproc_new(const struct probe_target *targets, uint32_t ntargets,
				 struct symbols *symbols, enum inproc_scope scope);
/* After its load(), also one that failed: which probes (index in image.probes) could fire but
 * cannot be placed? False: none. */
bool engine_inproc_left_out(const struct engine *e, bool *ret);
/* The probes for which outside[] holds, and all other probes of functions of these names, are fired
 * by kernel, the rest by inside; their images, which are alike (image_is_alike), are cut
 * accordingly. Takes inside, kernel and outer; load() is to be given inner. */
struct engine *engine_split_new(struct engine *inside, struct engine *kernel, struct image *inner,
				struct image *outer, const bool *outside);
/* Is it a probe of a kind that the in-process engine can fire? */
bool engine_inproc_can(const struct probe *p);
/* Why the in-process engine cannot patch a pid or USDT probe's places in object o, of which t is
 * the code; NULL: it can. */
const char *engine_inproc_refusal(struct object *o, struct text *t, const struct probe *p);
/* The machine code that it makes of the image, as text: the same on every machine. */
struct err *engine_inproc_print(FILE *out, const struct image *img);
/* A target that is held already, by c, until it is let go after attach(). */
void engine_inproc_hold(struct engine *e, struct control *c);
/* EBUSY when a uprobe of the image is where a process that is traced from inside has been patched.
 * Before the kernel engine's. */
struct err *engine_inproc_conflict(const struct image *img);

#endif
