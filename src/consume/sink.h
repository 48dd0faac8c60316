/* The interface from the consumer to a renderer: actions in order, with their data. Text and JSON
 * are two sinks.
 *
 * Always true: calls come in output order; data is valid during the call only.
 */
#ifndef DESCRY_CONSUME_SINK_H
#define DESCRY_CONSUME_SINK_H

#include "data/image.h"
#include "program/symbol/symbol.h"
#include "view/rows.h"
#include "wire/wire_record.h"
#include "wire/wire_unwind.h"

struct sink;
struct run_report;

struct record_view {
	const struct image *image;
	const struct segment *segment;
	const struct image_probe *probe;
	const struct wire_record *head;
	const uint8_t *data; /* the record from its header on; base of fields' offsets */
	uint32_t size;
	const uint8_t
		*traits; /* of segment->fields[]: enum field_trait (data/record.h); NULL: not looked
			 * up */
	bool more;       /* the next record is of the same firing of the same probe */
};

enum drop_kind {
	DROP_DATA,
	DROP_CONTROL,
	DROP_AGG,
	DROP_DYN,
	DROP_SPEC,
	DROP_SPEC_NOBUF,
	DROP_SCRATCH,
	DROP_STACK,
	DROP_ERROR,
	DROP_LATE,
	DROP_MISSED,  /* firings that the kernel left out */
	DROP_TICKS,   /* ticks that were given up because they were too late */
	DROP_EVENTS,  /* events of the process connector */
	DROP_NAMES,   /* addresses without a name, because the kept symbols had no room */
	DROP_CHANGED, /* addresses whose file was changed during reading */
	DROP_KIND_COUNT
};

/* An operation that is NULL does nothing, if it is not format or free. */
struct sink_ops {
	const char *name;
	bool any_order; /* rows of a printa() without a record may come in any order */
	/* begin: once before the first output (column header). end: once after the last (flush). */
	struct err *(*begin)(struct sink *s);
	struct err *(*end)(struct sink *s);
	/* Opens a record's line (CPU ID FUNCTION:NAME unless quiet); its actions follow, then
	 * record_end. `prints` false: the record has control actions only. */
	struct err *(*record_begin)(struct sink *s, const struct record_view *r);
	/* trace tracemem printf print stack sym: every action that prints from the record alone. */
	struct err *(*action)(struct sink *s, const struct record_view *r, const struct action *a);
	/* printa(): the aggregations, merged and sorted (unless any_order). format NULL: default
	 * layout. r and a NULL: printed at the end of the run. n > 1: all views have the same rows,
	 * row i of each has the same key; zeroes stand for a row that an aggregation lacks. */
	struct err *(*printa)(struct sink *s, const struct record_view *r, const struct action *a,
			      struct agg_view *const *aggs, uint32_t n);
	struct err *(*record_end)(struct sink *s, const struct record_view *r);
	/* Called after the last record and before the aggregations that were never printed. */
	struct err *(*final)(struct sink *s);
	/* A D fault. */
	struct err *(*fault)(struct sink *s, const struct image *img, const struct wire_fault *f);
	/* New drops since the last call. cpu -1: counted for all CPUs together. */
	struct err *(*drop)(struct sink *s, enum drop_kind kind, int cpu, uint64_t count);
	/* reopen: freopen(); path "" returns to the first output. truncate: ftruncate(). */
	struct err *(*reopen)(struct sink *s, const char *path);
	struct err *(*truncate)(struct sink *s);
	struct err *(*flush)(struct sink *s);
	/* Returns the text of a formatted action that is not printed (freopen, system),
	 * malloc()ed. */
	char *(*format)(struct sink *s, const struct record_view *r, const struct action *a);
	void (*report)(struct sink *s, const struct run_report *r);
	/* Returns true when the consumer should show the present aggregations (printa with r and a
	 * NULL). The consumer calls it after each pass, and with `shown` after it has shown them.
	 * NULL: never. */
	bool (*due)(struct sink *s, bool shown);
	void (*free)(struct sink *s);
};
/* Calls an operation that returns an error, if the sink has it. */
#define sink_do(sink, op, ...) \
	((sink)->ops->op ? (sink)->ops->op((sink), ##__VA_ARGS__) : (struct err *)NULL)

/* The summary at the end of a run (-x report, JSON always). */
struct report_probe {
	const struct image_probe *probe;
	const char *mode;
	uint64_t fired, dropped;
	uint64_t left_out; /* samples that the kernel left out */
};
struct report_prog {
	const char *name, *mode;
	uint64_t runs, run_ns;
	uint32_t ninsns;
};
struct run_report {
	const char *engine; /* its name; NULL: not known */
	uint64_t elapsed_ns;
	uint64_t records, bytes; /* number and size of the records taken from the rings */
	uint64_t drops[DROP_KIND_COUNT];
	uint64_t faults;
	uint64_t ustacks[WIRE_UNWIND_END_COUNT]; /* walked user stacks, by how they ended */
	uint64_t consumer_cpu_ns;                /* this process's, since attach */
	uint64_t probe_cpu_ns; /* measured run time of the programs, 0: not measured */
	uint64_t table_bytes;  /* unwind tables in the kernel */
	uint64_t map_bytes;    /* all other maps in the kernel, mostly stacks */
	bool measured;
	struct report_probe *probes;
	uint32_t nprobes;
	struct report_prog *progs;
	uint32_t nprogs;
	int exit_status;
};

struct sink {
	const struct sink_ops *ops;
	FILE *out; /* results */
	/* Takes text for a person: drops, faults; whole lines. NULL: such text is dropped. */
	void (*message)(void *arg, const char *text, size_t n);
	void *message_arg;
	int output;           /* descriptor of system()'s standard output; 0: its own */
	const char *progname; /* messages begin with it */
	bool dtrace;          /* output has the form of the name dtrace */
	struct options
		*options; /* quiet, flowindent, rawbytes, stackindent, aggsort*, ...; read on every
			  * call */
	struct symbols *symbols;
	struct languages *languages; /* names of interpreted languages' frames; NULL: none */
	uint64_t time; /* CLOCK_MONOTONIC ns: addresses get names of then; 0: of now */
	struct type_graph *types;
	const struct image *image;
	int target_pid; /* the process in which %A looks a plain integer up; 0: none */
	/* Resolves a stack id of a key. The consumer sets it. */
	uint32_t (*stack)(void *arg, int64_t id, uint64_t *frames, uint32_t max);
	/* Returns how the walk of the stack ended (1 + enum wire_unwind_end, 0: not known). NULL:
	 * never known. */
	uint32_t (*stack_end)(void *arg, int64_t id);
	void *stack_arg;
};

static inline void sink_message(const struct sink *s, const char *text, size_t n)
{
	if (s->message)
		s->message(s->message_arg, text, n);
}

struct sink *sink_text_new(void); /* render/text.c */
struct sink *sink_json_new(void); /* render/json_text.c */

#endif
