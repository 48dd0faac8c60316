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
#include "compile/target.h"
#include "data/image.h"
#include "wire/record.h"

struct control;
struct object;
struct text;
struct probe;
struct probe_set;
struct probe_target;
struct symbols;

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
	/* Before load(): an error when it would be in vain, or do harm. NULL: never. */
	struct err *(*ready)(struct engine *e, const struct image *img);
	/* Before load(): c holds one of the named processes, until it is let go after attach().
	 * NULL: the engine does not care. */
	void (*hold)(struct engine *e, struct control *c);
	/* Creates maps, links, loads. A program that the kernel refuses is a diagnostic at its D
	 * source (caret, tag D_VERIFIER, kernel's last line), added to image->diags, and an error.
	 * measure: count run time (-x report). */
	struct err *(*load)(struct engine *e, const struct image *img, bool measure);
	/* After a load(), also one that failed: which probes (index in image.probes) could fire but
	 * cannot be placed? False: none. NULL: the engine does not know. */
	bool (*left_out)(const struct engine *e, bool *ret);
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

/* How much of a program an engine that traces from inside must be able to place, or its load()
 * fails: nothing; what is left out of nineteen probes in twenty, and all that only the kernel has
 * (so many the kernel leaves out itself); or every one. */
enum engine_scope { ENGINE_WHAT_CAN_BE, ENGINE_NEARLY_ALL, ENGINE_EVERY_ONE };

/* What an engine is made for; zeroes: for an image by itself. Borrowed. */
struct engine_setting {
	const struct probe_target *targets; /* the processes that are named */
	uint32_t ntargets;
	struct symbols *symbols;
	enum engine_scope scope;
};

/* What is looked at to say how probes would fire: filled by how(), freed by engine_scene_fini(). */
struct engine_scene {
	struct type_graph *types;
	const struct options *options;
	bool targets; /* processes are named */
	char *path;   /* the file whose code was looked at last */
	struct object *object;
	struct text *text;
};
void engine_scene_fini(struct engine_scene *s);

/* A kind of engine. What a function does that is NULL: nothing. */
struct engine_type {
	const char *name; /* as -x engine=NAME */
	/* What is compiled for it. */
	struct compile_target target;
	struct engine *(*new)(const struct engine_setting *s);
	/* Can it fire this probe truly? NULL: any that it can attach. */
	bool (*can)(const struct probe *p);
	/* May this process use it? NULL: any may. */
	bool (*permitted)(void);
	/* How it would fire a probe, or why it refuses; may be followed by *ret_note, a remark.
	 * Both malloc()ed, NULL nothing to say. */
	char *(*how)(struct engine_scene *s, const struct probe *p, char **ret_note);
	/* Before probes are looked for: lets the providers know what it would refuse. */
	void (*advise)(struct probe_set *set);
	/* The machine code that it makes of the image, as text: the same on every machine. */
	struct err *(*print)(FILE *out, const struct image *img);
};

extern const struct engine_type engine_kernel, engine_interp, engine_inproc;

#endif
