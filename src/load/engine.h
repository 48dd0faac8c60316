/* An engine: runs an image, and returns records, aggregations and counters.
 *
 * In: a struct image. Out: running probes.
 * Order of calls: new, load, attach, set active, drain/poll..., detach, free. fire() runs BEGIN and
 * END.
 * Always true: after detach no probe fires; free undoes everything, in any state.
 */
#ifndef DESCRY_LOAD_ENGINE_H
#define DESCRY_LOAD_ENGINE_H

#include "base/err.h"
#include "base/remark.h"
#include "compile/engine_target.h"
#include "data/image.h"
#include "wire/wire_record.h"

struct control;
struct object;
struct text;
struct probe;
struct probe_set;
struct probe_target;
struct symbols;
struct languages;

struct engine_counters {
	uint32_t ncpus;
	uint64_t *fixed;      /* [ncpus][WIRE_FIXED_COUNTERS] */
	uint64_t *fired;      /* [nprobes], all CPUs */
	uint64_t *dropped;    /* [nprobes] */
	uint64_t *left_out;   /* [nprobes], samples that the kernel left out; NULL: not known */
	uint64_t table_bytes; /* of unwind tables */
	uint64_t missed;      /* firings that the kernel skipped during another run */
	uint64_t lost_ticks;  /* given up because they were too late */
	uint64_t lost_events; /* events that the process connector lost for lack of room */
};

struct engine_prog_report {
	const char *name;
	const char *mode; /* "raw tracepoint", "uprobe_multi", "perf uprobe", "interpreted"... */
	uint64_t runs;    /* 0: not measured */
	uint64_t run_ns;
	uint32_t ninsns; /* after linking */
	uint32_t prog;   /* index in image.progs */
};

struct engine {
	const struct engine_ops *ops;
	const struct image *image;
	struct wire_state *state; /* valid from load() to free() */
	uint64_t machine_told;    /* when engine_tell_machine() last ran, now_ns() */
	struct engine *beside;    /* another engine that runs a part of the probes; NULL: none */
	uint32_t ncpus;
	struct engine_note {
		char *text;
		bool blind; /* a process is not traced, or not completely; printed even with -q */
	} * notes; /* remarks for the user, owned by the engine: probes the kernel refused, reduced buffers */
	uint32_t nnotes;
	struct remarks remarks; /* which of them there were */
};

/* The bytes of a record are valid during the call. */
typedef void record_fn(void *arg, const struct wire_record *r, uint32_t size, bool control);
/* values[cpu * nwords + word]. key NULL: the aggregation has no keys. */
typedef void agg_fn(void *arg, const void *key, const uint64_t *values, uint32_t ncpus);

struct engine_ops {
	const char *name; /* "kernel", "interp" */
	/* Before load(): returns an error when load() would fail or do harm. NULL: never. */
	struct err *(*ready)(struct engine *e, const struct image *img);
	/* Before load(): gives the engine the control c that holds a named process until after
	 * attach(). NULL: the engine does not use it. */
	void (*hold)(struct engine *e, struct control *c);
	/* Creates maps, links, loads. When the kernel refuses a program, adds a diagnostic at its D
	 * source (caret, tag D_VERIFIER, kernel's last line) to image->diags and returns an error.
	 * measure: counts run time (-x report). */
	struct err *(*load)(struct engine *e, const struct image *img, bool measure);
	/* After load(), even a failed one: marks the probes (index in image.probes) that could fire
	 * but cannot be placed. False: there are none. NULL: the engine does not know. */
	bool (*left_out)(const struct engine *e, bool *ret);
	struct err *(*attach)(struct engine *e);
	/* Prepares for tracing pid, so that its first user stack is right. 0: any process. command:
	 * pid has only just started and has not mapped its libraries. NULL: the engine needs no
	 * preparation. */
	void (*add_process)(struct engine *e, int pid, bool command);
	/* Calls fn for each process whose first user stack was taken since the last call. NULL: the
	 * engine does not know. */
	void (*met)(struct engine *e, void (*fn)(void *arg, int pid), void *arg);
	/* Runs program prog once in this process (BEGIN, END, ERROR). */
	struct err *(*fire)(struct engine *e, uint32_t prog);
	/* Waits for records, at most timeout_ms (-1: forever). A signal ends the wait too. */
	void (*poll)(struct engine *e, int timeout_ms);
	/* After a poll: are events older than time (CLOCK_MONOTONIC ns) still unread? NULL:
	 * never. */
	bool (*behind)(struct engine *e, uint64_t time);
	/* Waits for records of any of n engines of this kind, as poll() does for one. NULL: the
	 * caller polls one after the other. */
	void (*poll_all)(struct engine *const *e, uint32_t n, int timeout_ms);
	/* Traces a process that has executed a program (engine_setting.executed) with the probes of
	 * the named process `like`, which began in the same program. c holds the process, or is
	 * NULL when nothing does; takes ownership of it, also on failure. NULL: the engine
	 * cannot. */
	struct err *(*enter)(struct engine *e, int pid, int like, struct control *c);
	/* Returns the number of processes that it traces now. NULL: the engine does not know. */
	uint32_t (*nprocesses)(const struct engine *e);
	/* Returns an fd that is readable when there are records; -1: none. */
	int (*wait_fd)(struct engine *e);
	/* Calls fn for every record in the rings, control records too, each ring in its order. */
	void (*drain)(struct engine *e, record_fn *fn, void *arg);
	/* Calls fn for each key of the aggregation with the values of every CPU. */
	struct err *(*agg_read)(struct engine *e, uint32_t agg, agg_fn *fn, void *arg);
	/* Removes a key and returns its last values (as above; NULL when the key was not there). */
	struct err *(*agg_delete)(struct engine *e, uint32_t agg, const void *key,
				  uint64_t *ret_values);
	/* Fills in the frames of a stack id and returns their number. */
	uint32_t (*stack)(struct engine *e, int64_t id, uint64_t *frames, uint32_t max);
	/* Returns how the walk of a stack id ended: 1 + enum wire_unwind_end, 0: not known. NULL:
	 * never known. */
	uint32_t (*stack_end)(struct engine *e, int64_t id);
	void (*counters)(
		struct engine *e,
		struct engine_counters *ret); /* ret owned by the engine until the next call */
	uint32_t (*report)(struct engine *e, struct engine_prog_report *ret, uint32_t max);
	/* Returns the bytes of kernel memory of the image's maps, without unwind tables; 0: not
	 * known. NULL: never known. */
	uint64_t (*map_bytes)(struct engine *e);
	/* Returns how probe i (index in image.probes) fires, or why it does not; valid until
	 * free(). NULL, or no function: in the way of its attach kind. */
	const char *(*probe_mode)(struct engine *e, uint32_t i);
	/* Detaches the program that report() has at index i, for good. False: this kind of program
	 * cannot be detached. NULL: the engine cannot detach any. */
	bool (*stop)(struct engine *e, uint32_t i);
	struct err *(*detach)(struct engine *e);
	void (*free)(struct engine *e);
};

/* Adds a remark unless the same text is there already. Takes ownership of text (malloc()ed). */
void engine_remark(struct engine *e, char *text, bool blind);
void engine_free_remarks(struct engine *e);
/* Describes the run: copies boot_offset, self_pid and target_pid of who to the state pages. */
void engine_introduce(struct engine *e, const struct wire_state *who);
/* Writes the machine's load averages and memory for programs to read, once a second at most. */
void engine_tell_machine(struct engine *e);
/* Lets programs run from now on, unless exit() was called; engine_stop() lets none run any more.
 * exit() may be called in any thread in between. */
void engine_start(struct engine *e);
void engine_stop(struct engine *e);
/* Acts as if a program had called exit(). engine_exiting(): was exit() called? */
void engine_exit(struct engine *e);
bool engine_exiting(const struct engine *e);
/* The status of the exit() whose record did not fit; 0 when it is not known. */
int engine_exit_status(const struct engine *e);

/* How much of a program an in-process engine must be able to place, or its load() fails.
 * ENGINE_WHAT_CAN_BE: nothing. ENGINE_NEARLY_ALL: nineteen in twenty of the probes in files that
 * are loaded, and every probe except those that only the kernel has (the kernel leaves out as many
 * itself). ENGINE_EVERY_ONE: all. */
enum engine_scope { ENGINE_WHAT_CAN_BE, ENGINE_NEARLY_ALL, ENGINE_EVERY_ONE };

/* The settings of an engine; zeroes: for an image by itself. Borrowed. */
struct engine_setting {
	const struct probe_target *targets; /* the named processes */
	uint32_t ntargets;
	struct symbols *symbols;
	struct languages *languages; /* NULL: frames of interpreted languages are not wanted */
	enum engine_scope scope;
	/* Takes each process that the engine has followed into a program that the process has
	 * executed, instead of tracing it there with the same probes. c holds the process, whose
	 * libraries are mapped and relocated and which has run no code of its own; the function
	 * takes ownership. NULL: the process runs. Called within drain(). NULL: the engine traces
	 * these processes itself. */
	void (*executed)(void *arg, int pid, struct control *c);
	void *executed_arg;
};

/* The data that how() uses to predict how probes would fire. how() fills it, engine_scene_fini()
 * frees it. */
struct engine_scene {
	struct type_graph *types;
	const struct options *options;
	bool targets; /* the user has named processes */
	char *path;   /* the file whose code was read last */
	struct object *object;
	struct text *text;
};
void engine_scene_fini(struct engine_scene *s);

/* A kind of engine. A NULL function means that the engine does nothing there. */
struct engine_type {
	const char *name; /* as -x engine=NAME */
	/* The target of the compiler. */
	struct compile_target target;
	struct engine *(*new)(const struct engine_setting *s);
	/* Returns true when it fires this probe with correct results. NULL: every probe that it can
	 * attach. */
	bool (*can)(const struct probe *p);
	/* Returns true when this process may use it. NULL: any may. */
	bool (*permitted)(void);
	/* Returns how it would fire a probe, or why it refuses, and a remark in *ret_note. Both
	 * malloc()ed; NULL: nothing to report. */
	char *(*how)(struct engine_scene *s, const struct probe *p, char **ret_note);
	/* Before probes are matched: informs the providers of probes that it would refuse. */
	void (*advise)(struct probe_set *set);
	/* Prints the machine code that it makes of the image; the text is the same on every
	 * machine. */
	struct err *(*print)(FILE *out, const struct image *img);
};

extern const struct engine_type engine_kernel, engine_interp, engine_inproc;

#endif
