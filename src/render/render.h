/* Shared by the renderers: pieces of text made from fields, stacks, histograms and formats.
 *
 * In: a sink (options, symbols, image) and fields with their bytes. Out: text appended to a struct
 * out. Always true: options are read on every call, because setopt() changes them while tracing.
 */
#ifndef DESCRY_RENDER_RENDER_H
#define DESCRY_RENDER_RENDER_H

#include "base/out.h"
#include "program/runtime/runtime.h"
#include "consume/sink.h"
#include "data/record.h"
#include "view/stacktree.h"

static inline bool sink_quiet(const struct sink *s)
{
	return s->options && opt_on(s->options, OPT_QUIET);
}

/* --- printf.c --- */
struct format_args {
	const struct format *format;
	const struct field *fields; /* all fields of the segment, or the keys */
	const uint32_t *index;      /* the fields to print, in order; NULL: fields[0..n-1] */
	uint32_t n;
	const uint8_t *traits; /* traits of fields[], NULL: looked up */
	const uint8_t *data;
	struct agg_view *const *aggs; /* printa: values for %@, NULL: none */
	uint32_t naggs;
	uint32_t row;
};
void format_print(struct sink *s, struct out *o, const struct format_args *a);
/* Writes the text of an action with a format (printf, freopen, system). */
void action_format(struct sink *s, struct out *o, const struct record_view *r,
		   const struct action *a);
/* The same, malloc()ed: sink_ops.format of a sink. */
char *action_text(struct sink *s, const struct record_view *r, const struct action *a);

/* --- print_stack.c --- */
enum { STACK_MAX = 512 };
/* Returns the frames of a stack field, without the tracer's own frames. User stacks end at the
 * first 0. */
uint32_t stack_frames(struct sink *s, const struct field *f, const uint8_t *data, uint64_t *ret,
		      uint32_t max, uint32_t *ret_pid);
/* Calls fn for each frame of a stack, innermost first, and before it for the functions inlined into
 * it when they are requested (-x srcline). When the walk did not reach the root, calls fn at last
 * for a FRAME_END. */
void stack_each(struct sink *s, const struct field *f, const uint8_t *data,
		void (*fn)(void *arg, const struct frame *f), void *arg);
/* Does the same in parts, for a caller that keeps the result for a frame. called: pc is a return
 * address; afterwards true, because the next one is. last: the outermost pc of a user stack. */
bool stack_is_user(const struct field *f);
bool stack_frame(struct sink *s, bool user, uint32_t pid, uint64_t pc, bool called,
		 void (*fn)(void *arg, const struct frame *f), void *arg);
void stack_finish(struct sink *s, const struct field *f, const uint8_t *data, uint32_t pid,
		  uint64_t last, void (*fn)(void *arg, const struct frame *f), void *arg);
/* Writes the name of a frame: "MODULE`FUNCTION", or an address. Not for FRAME_END. */
void frame_text(struct sink *s, const struct frame *f, char *buf, uint32_t n);
/* The same; ":LINE" follows, where a function of an interpreted language has one. */
void frame_text_line(struct sink *s, const struct frame *f, char *buf, uint32_t n);
/* Writes "\n", then each frame of the stack on a line of its own. width: as of printf's %s. indent
 * < 0: uses the stackindent option. */
void stack_print(struct sink *s, struct out *o, const struct field *f, const uint8_t *data,
		 int indent, int width);
/* Prints a user stack that this process has walked, as stack_print() does. merged: it and an
 * interpreted language's frames in their order, empty: there are none. end: 1 + enum
 * wire_unwind_end. With `addresses`, prints the address of each frame in front of its name. */
void stack_print_walk(struct sink *s, struct out *o, uint32_t pid, const struct runtime_stack *st,
		      const runtime_merged_vec *merged, uint32_t end, bool addresses);
/* Writes an address as text; pid 0: the kernel's. with_offset false: as usym() prints; module_only:
 * as mod(). */
enum address_form { ADDRESS_OFFSET, ADDRESS_SYMBOL, ADDRESS_MODULE };
bool address_place(struct sink *s, uint32_t pid, uint64_t addr, struct place *ret);
void address_text(struct sink *s, uint32_t pid, uint64_t addr, enum address_form form, char *buf,
		  uint32_t n);
/* Writes sym, mod, usym, umod, uaddr fields. Returns false for other kinds. */
bool field_address_text(struct sink *s, const struct field *f, const uint8_t *data, char *buf,
			uint32_t n);
enum { ADDRESS_TEXT = 4096 };

/* --- print_trace.c --- */
void trace_print(struct sink *s, struct out *o, const struct field *f, uint32_t traits,
		 const uint8_t *data);
/* Writes one key of an aggregation, in the default layout. */
void key_print(struct sink *s, struct out *o, const struct field *f, const uint8_t *key);
void bytes_dump(struct out *o, const uint8_t *p, uint32_t n);

/* --- print_actions.c --- */
void print_action(struct sink *s, struct out *o, const struct record_view *r,
		  const struct action *a);

/* --- histogram.c --- */
/* Finds the buckets that DTrace shows of a row: [*ret_first, *ret_last], indices into the buckets
 * (words + 1). */
void hist_range(const struct agg *agg, const int64_t *buckets, uint32_t *ret_first,
		uint32_t *ret_last);
/* Finds the label's bounds: [*ret_min, *ret_max]; INT64_MIN and INT64_MAX where they are open. */
void hist_bounds(const struct agg *agg, uint32_t bucket, int64_t *ret_min, int64_t *ret_max);
void hist_print(struct sink *s, struct out *o, const struct agg_view *v, const int64_t *words);
/* Writes a bar as of a histogram, and the count: "|@@@    3\n". */
struct hist_scale {
	long double total;
	bool positives, negatives, zoom;
};
void hist_scale_add(struct hist_scale *sc, int64_t value);
void hist_bar(struct out *o, const struct hist_scale *sc, int64_t value, const struct agg_view *v);
void hist_header(struct out *o, int width);
/* aggpack: writes the header once, then one line for each row. */
void hist_pack_header(struct out *o, const struct agg_view *v, int keys_width, uint32_t first,
		      uint32_t last);
void hist_pack(struct sink *s, struct out *o, const struct agg_view *v, const int64_t *words,
	       uint32_t first, uint32_t last);

/* --- render_aggs.c --- */
/* printa() without a format; final: at the end of the run (no blank line in front). */
void aggs_print(struct sink *s, struct out *o, struct agg_view *const *aggs, uint32_t n,
		bool final);
/* printa() with a format. */
void aggs_format(struct sink *s, struct out *o, const struct format *f,
		 struct agg_view *const *aggs, uint32_t n);

/* --- message.c: messages on the error output, the same in every renderer --- */
void fault_message(struct sink *s, struct out *o, const struct image *img,
		   const struct wire_fault *f);
void drop_message(struct sink *s, struct out *o, enum drop_kind kind, int cpu, uint64_t count);
const char *fault_name(uint32_t code);
const char *drop_name(enum drop_kind kind);
/* Returns the name of a kind of loss, for its number: "aggregation drops". */
void drop_text(struct out *o, enum drop_kind kind, uint64_t count);
/* Returns advice against a kind of loss; NULL: there is none. */
const char *drop_remedy(enum drop_kind kind);
void report_print(struct out *o, const struct run_report *r);

/* --- pprof.c, speedscope.c: a finished stack tree for other tools' viewers --- */
struct profile_about {
	const char *title; /* NULL: none */
	const char *type;  /* the name of the counted things; NULL: "samples" */
	const char *unit;  /* NULL: "count"; viewers know "nanoseconds", "microseconds", "bytes" */
	uint64_t time_ns;  /* start of the recording in ns since 1970; 0: not known */
	uint64_t duration_ns;                  /* 0 unknown */
	const char *period_type, *period_unit; /* "cpu", "nanoseconds"; NULL: none */
	uint64_t period;                       /* between two samples, in period_unit */
};
/* Returns the file that stands for code of a kind whose module is not known; NULL: none. */
static inline const char *profile_file(enum frame_kind kind)
{
	return kind == FRAME_KERNEL ? "[kernel.kallsyms]" : kind == FRAME_JIT ? "[jit]" : NULL;
}
/* Writes pprof's profile.proto, gzipped. A name MODULE`FUNCTION becomes a mapping and a function;
 * marks such as _[k] are dropped. */
void render_pprof(struct out *o, const struct stacktree *t, const struct profile_about *a);
/* Writes a JSON file of speedscope's schema, one profile of kind "sampled". */
void render_speedscope(struct out *o, const struct stacktree *t, const struct profile_about *a);

/* --- aggtable.c --- */
void aggtable_print(struct sink *s, struct out *o, const struct agg_view *v);
/* Writes a bucket's label, which stands in front of its bar. */
void hist_label(const struct agg *a, uint32_t bucket, char *buf, size_t n);

/* --- pcap.c --- */
void pcap_print(struct sink *s, struct out *o, const struct record_view *r, const struct action *a,
		bool to_file);

/* --- file.c: the output of results; freopen() and ftruncate() --- */
struct output {
	FILE *first; /* the file at the start of the run */
	FILE *other; /* the file of freopen(), NULL: none; owned */
};
/* Directs s->out and o->file to path; "" returns to the first file. */
struct err *output_reopen(struct sink *s, struct output *of, struct out *o, const char *path);
struct err *output_truncate(struct out *o);
void output_fini(struct sink *s, struct output *of);

#endif
