/* What the renderers share: pieces of text made from fields, stacks, histograms and formats.
 *
 * In: a sink (options, symbols, image) and fields with the bytes they lie in. Out: text appended to
 * a struct out.
 * Always true: options are looked at on every call, because setopt() changes them while running.
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
	const uint32_t *index;      /* which of them, in order; NULL: fields[0..n-1] */
	uint32_t n;
	const uint8_t *traits; /* of fields[], NULL: looked up */
	const uint8_t *data;
	struct agg_view *const *aggs; /* printa: what %@ takes, NULL none */
	uint32_t naggs;
	uint32_t row;
};
void format_print(struct sink *s, struct out *o, const struct format_args *a);
/* The text of an action with a format (printf, freopen, system). */
void action_format(struct sink *s, struct out *o, const struct record_view *r,
		   const struct action *a);

/* --- stack.c --- */
enum { STACK_MAX = 512 };
/* Frames of a stack field, machinery of the tracer left out; user stacks end at the first 0. */
uint32_t stack_frames(struct sink *s, const struct field *f, const uint8_t *data, uint64_t *ret,
		      uint32_t max, uint32_t *ret_pid);
/* Calls fn for each frame of a stack, innermost first, with the functions inlined into each in
 * front of it when they are asked for (-x srcline); at last, when the walk did not come to the
 * root, for a FRAME_END. */
void stack_each(struct sink *s, const struct field *f, const uint8_t *data,
		void (*fn)(void *arg, const struct frame *f), void *arg);
/* The same in parts, for a caller that keeps what came of a frame. called: pc is a return address;
 * true: so is the next one. last: the outermost pc of a user stack. */
bool stack_is_user(const struct field *f);
bool stack_frame(struct sink *s, bool user, uint32_t pid, uint64_t pc, bool called,
		 void (*fn)(void *arg, const struct frame *f), void *arg);
void stack_finish(struct sink *s, const struct field *f, const uint8_t *data, uint32_t pid,
		  uint64_t last, void (*fn)(void *arg, const struct frame *f), void *arg);
/* What a frame is called: "MODULE`FUNCTION", or an address. Not for FRAME_END. */
void frame_text(struct sink *s, const struct frame *f, char *buf, uint32_t n);
/* "\n", then each line of the stack on its own; width: as of printf's %s. indent < 0: the
 * stackindent option. */
void stack_print(struct sink *s, struct out *o, const struct field *f, const uint8_t *data,
		 int indent, int width);
/* Prints a user stack that was walked here as stack_print() does; merged: it and an interpreted
 * language's frames in their order, empty: there are none. end: 1 + enum wire_unwind_end. With
 * `addresses`, the address of each frame stands in front of its name. */
void stack_print_walk(struct sink *s, struct out *o, uint32_t pid, const struct runtime_stack *st,
		      const runtime_merged_vec *merged, uint32_t end, bool addresses);
/* Address as text, pid 0: kernel. with_offset false: as usym() prints; module_only: as mod(). */
enum address_form { ADDRESS_OFFSET, ADDRESS_SYMBOL, ADDRESS_MODULE };
bool address_place(struct sink *s, uint32_t pid, uint64_t addr, struct place *ret);
void address_text(struct sink *s, uint32_t pid, uint64_t addr, enum address_form form, char *buf,
		  uint32_t n);
/* sym, mod, usym, umod, uaddr fields. False for other kinds. */
bool field_address_text(struct sink *s, const struct field *f, const uint8_t *data, char *buf,
			uint32_t n);
enum { ADDRESS_TEXT = 4096 };

/* --- trace.c --- */
void trace_print(struct sink *s, struct out *o, const struct field *f, uint32_t traits,
		 const uint8_t *data);
/* One key of an aggregation, in the default layout. */
void key_print(struct sink *s, struct out *o, const struct field *f, const uint8_t *key);
void bytes_dump(struct out *o, const uint8_t *p, uint32_t n);

/* --- print.c --- */
void print_action(struct sink *s, struct out *o, const struct record_view *r,
		  const struct action *a);

/* --- histogram.c --- */
/* The buckets DTrace shows of a row: [*ret_first, *ret_last], indices into the buckets (words +
 * 1). */
void hist_range(const struct agg *agg, const int64_t *buckets, uint32_t *ret_first,
		uint32_t *ret_last);
/* The label's bounds: [*ret_min, *ret_max]; INT64_MIN and INT64_MAX where open. */
void hist_bounds(const struct agg *agg, uint32_t bucket, int64_t *ret_min, int64_t *ret_max);
void hist_print(struct sink *s, struct out *o, const struct agg_view *v, const int64_t *words);
/* A bar as of a histogram, and the count: "|@@@    3\n". */
struct hist_scale {
	long double total;
	bool positives, negatives, zoom;
};
void hist_scale_add(struct hist_scale *sc, int64_t value);
void hist_bar(struct out *o, const struct hist_scale *sc, int64_t value, int64_t normal);
void hist_header(struct out *o, int width);
/* aggpack: the header once, then one line a row. */
void hist_pack_header(struct out *o, const struct agg_view *v, int keys_width, uint32_t first,
		      uint32_t last);
void hist_pack(struct sink *s, struct out *o, const struct agg_view *v, const int64_t *words,
	       uint32_t first, uint32_t last);

/* --- aggs.c --- */
/* printa() without format; final: at the end of the run (no blank line in front). */
void aggs_print(struct sink *s, struct out *o, struct agg_view *const *aggs, uint32_t n,
		bool final);
/* printa() with format. */
void aggs_format(struct sink *s, struct out *o, const struct format *f,
		 struct agg_view *const *aggs, uint32_t n);

/* --- message.c: messages on the error output, the same in every renderer --- */
void fault_message(struct sink *s, struct out *o, const struct image *img,
		   const struct wire_fault *f);
void drop_message(struct sink *s, struct out *o, enum drop_kind kind, int cpu, uint64_t count);
const char *fault_name(uint32_t code);
const char *drop_name(enum drop_kind kind);
/* What was lost, for a number of them: "aggregation drops". */
void drop_text(struct out *o, enum drop_kind kind, uint64_t count);
/* What helps; NULL: nothing does. */
const char *drop_remedy(enum drop_kind kind);
void report_print(struct out *o, const struct run_report *r);

/* --- pprof.c, speedscope.c: a finished stack tree for other tools' viewers --- */
struct profile_about {
	const char *title; /* NULL: none */
	const char *type;  /* what is counted; NULL: "samples" */
	const char *
		unit; /* NULL: "count"; "nanoseconds", "microseconds", "bytes" have a meaning there */
	uint64_t time_ns;                      /* when it began, since 1970; 0 unknown */
	uint64_t duration_ns;                  /* 0 unknown */
	const char *period_type, *period_unit; /* "cpu", "nanoseconds"; NULL: none */
	uint64_t period;                       /* between two samples, in period_unit */
};
/* The file that stands for code of a kind where the module is not known; NULL: none. */
static inline const char *profile_file(enum frame_kind kind)
{
	return kind == FRAME_KERNEL ? "[kernel.kallsyms]" : kind == FRAME_JIT ? "[jit]" : NULL;
}
/* pprof's profile.proto, gzipped. Names as MODULE`FUNCTION become a mapping and a function; marks
 * such as _[k] go. */
void render_pprof(struct out *o, const struct stacktree *t, const struct profile_about *a);
/* A JSON file of speedscope's schema, one profile of kind "sampled". */
void render_speedscope(struct out *o, const struct stacktree *t, const struct profile_about *a);

/* --- aggtable.c --- */
void aggtable_print(struct sink *s, struct out *o, const struct agg_view *v);
/* What a bucket is called in front of its bar. */
void hist_label(const struct agg *a, uint32_t bucket, char *buf, size_t n);

/* --- pcap.c --- */
void pcap_print(struct sink *s, struct out *o, const struct record_view *r, const struct action *a,
		bool to_file);

/* --- file.c: where results go; freopen() and ftruncate() --- */
struct output {
	FILE *first; /* the file the run started with */
	FILE *other; /* freopen()ed, NULL none; ours to close */
};
/* Turns s->out and o->file to path; "" goes back to the first. */
struct err *output_reopen(struct sink *s, struct output *of, struct out *o, const char *path);
struct err *output_truncate(struct out *o);
void output_fini(struct sink *s, struct output *of);

#endif
