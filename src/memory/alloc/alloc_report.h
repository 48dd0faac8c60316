/* What a recording of allocations comes to (`descry malloc report`).
 *
 * In: a trace. Out: sums, distributions, the course of live bytes, and the stacks that allocated
 * what is looked at.
 * Always true: memory grows with the blocks that live at one time and with the stacks, not with the
 * length of the recording.
 */
#ifndef DESCRY_MEMORY_ALLOC_ALLOC_REPORT_H
#define DESCRY_MEMORY_ALLOC_ALLOC_REPORT_H

#include "base/out.h"
#include "memory/alloc/mapped_ranges.h"
#include "memory/alloc/size_classes.h"
#include "memory/alloc/trace.h"
#include "view/stacktree.h"

enum {
	REPORT_SIZES = 65, /* by the number of bits of (size - 1) */
	REPORT_LIVES = 13, /* by powers of ten, of ns */
	REPORT_POINTS = 1024,
	REPORT_ROWS = 256,    /* of the heat map: sizes by quarters of powers of two */
	REPORT_COLUMNS = 256, /* of it: POINTS / COLUMNS points each */
};

/* Of one stack. Number 0: events without a stack. */
struct report_site {
	uint64_t count, bytes;           /* all that it allocated */
	uint64_t live_count, live_bytes; /* at the present event; in the end, at the end */
	uint64_t peak_count, peak_bytes; /* at the moment of the peak */
	uint64_t temporary;              /* freed by the thread's next call */
	uint64_t elsewhere;              /* freed by another thread */
	uint64_t shared;                 /* in a cache line with another thread's block */
	uint64_t mapped, mapped_bytes;   /* anonymous memory that it mapped itself */
};

struct report_size {
	uint64_t count, bytes, live;
};

struct report_point {
	uint64_t bytes, most; /* live at the end of its interval, and the most in it */
};

struct alloc_report {
	uint64_t calls[ALLOC_LOST]; /* by enum alloc_op */
	uint64_t failed, lost, duration;
	uint64_t allocated, allocated_bytes, freed;
	uint64_t live, live_bytes;
	uint64_t peak, peak_blocks, peak_time; /* bytes, blocks, ns */
	uint64_t unknown;   /* blocks that were freed, and whose allocation was not recorded */
	uint64_t replaced;  /* addresses that were allocated twice, because a call was lost */
	uint64_t elsewhere; /* blocks that another thread freed than allocated them */
	uint64_t temporary;
	uint64_t shared; /* blocks with a cache line that had another thread's block */
	/* What is taken for the live blocks over their bytes, by enum size_classes. */
	uint64_t waste[CLASSES_N], peak_waste[CLASSES_N];
	/* Memory that the program maps itself, and not its allocator. */
	uint64_t map_calls;
	struct report_mapped {
		uint64_t bytes, live, peak; /* in all; at the present event; the most */
	} mapped[MAPPED_N];                 /* by enum wire_alloc_map */
	uint64_t mapped_left_out; /* ranges that are not in these, because there were too many */
	uint32_t threads;
	uint64_t sample; /* stacks are those of one allocation in so many; 0: of all */
	bool forked;     /* the process was forked: unknown blocks are its parent's */
	struct report_size sizes[REPORT_SIZES];
	uint64_t lives[REPORT_LIVES]; /* of freed blocks */
	VEC(struct report_site) sites;
	/* The course: at most REPORT_POINTS, `step` ns apart. */
	struct report_point points[REPORT_POINTS];
	uint32_t npoints;
	uint64_t step;
	uint32_t heat[REPORT_COLUMNS][REPORT_ROWS]; /* blocks that were allocated */
};
/* The sizes of a row of the heat map. */
void report_row_sizes(uint32_t row, uint64_t *ret_min, uint64_t *ret_max);

/* Reads the whole trace, twice. */
struct err *alloc_report_make(struct alloc_trace *t, struct alloc_report **ret);
void alloc_report_free(struct alloc_report *r);

enum report_of {
	REPORT_BYTES,
	REPORT_COUNT,
	REPORT_PEAK,
	REPORT_END,
	REPORT_TEMPORARY,
	REPORT_MAPPED,
	REPORT_NOF
};
/* Of "bytes", "count", "peak", "end", "temporary", "mapped". Returns REPORT_NOF for another
 * name. */
enum report_of report_of_named(const char *name);
const char *report_of_name(enum report_of of);
uint64_t report_site_value(const struct report_site *s, enum report_of of);

/* report_print.c. name: of the file. most: stacks in each list. */
void alloc_report_print(const struct alloc_report *r, const struct alloc_trace *t, const char *name,
			uint32_t most, struct out *o);
void alloc_report_json(const struct alloc_report *r, const struct alloc_trace *t, const char *name,
		       uint32_t most, struct out *o);
/* "1.5 MB" */
char *report_bytes_text(char buf[32], uint64_t n);
/* The number of blocks that a stack's value is of. */
uint64_t report_site_blocks(const struct report_site *s, enum report_of of);
/* Fills a tree with the stacks, by their values. */
void alloc_report_tree(const struct alloc_report *r, const struct alloc_trace *t, enum report_of of,
		       struct stacktree *ret);

/* True when values are numbers of blocks, not bytes. */
bool report_of_blocks(enum report_of of);
/* report_page.c: everything as one HTML page that needs nothing else. */
void alloc_report_page(const struct alloc_report *r, const struct alloc_trace *t, const char *name,
		       struct out *o);
/* report_print.c: the parts of the text, for the page. */
void report_print_sums(const struct alloc_report *r, struct out *o);
/* report_processes.c: the other processes of the recording. */
void report_print_processes(const struct alloc_trace *t, struct out *o);
void report_json_processes(const struct alloc_trace *t, struct out *o);
void report_print_tables(const struct alloc_report *r, struct out *o);

/* report_diff.c: two recordings, before and after. Stacks are the same when the texts of their
 * frames are. */
struct report_side {
	const struct alloc_report *r;
	const struct alloc_trace *t;
	const char *name; /* of the file */
};
void alloc_diff_print(const struct report_side side[2], enum report_of of, uint32_t most,
		      struct out *o);
void alloc_diff_json(const struct report_side side[2], enum report_of of, uint32_t most,
		     struct out *o);

#endif
