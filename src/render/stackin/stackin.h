/* Stacks in the text that tracers print, read into a stack tree.
 *
 * In: the bytes of a file or pipe, in pieces of any size: folded text, perf script, bpftrace, SystemTap, DTrace or our own;
 * which of them is seen from the first lines. Out: stacks with counts in `tree`, and what could not be read, counted.
 * Always true: memory grows with the distinct frames and stacks, not with the input; lines that are no stack are
 * skipped and counted, never an error; control bytes and invalid UTF-8 pass into the names as they are.
 */
#ifndef DESCRY_RENDER_STACKIN_H
#define DESCRY_RENDER_STACKIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/stacktree.h"

enum stackin_format {
	STACKIN_AUTO,
	STACKIN_FOLDED,
	STACKIN_PERF,
	STACKIN_BPFTRACE,
	STACKIN_DTRACE,
	STACKIN_SYSTEMTAP,
	STACKIN_NFORMATS
};
/* NULL and AUTO when there is no such format. */
const char *stackin_format_name(enum stackin_format f);
enum stackin_format stackin_format_named(const char *name);

struct stackin_options {
	enum stackin_format format;
	double factor; /* counts are multiplied by it; 0 = 1 */
	/* of perf script: */
	bool kernel, jit;  /* mark frames with _[k] and _[j] */
	bool module;       /* MODULE`FUNCTION */
	bool addrs;        /* the address where there is no name */
	bool pid, tid;     /* behind the command's name */
	const char *event; /* only samples of this event; NULL = of the first */
};

struct stackin {
	struct stacktree *tree;
	struct stackin_options options;
	enum stackin_format format; /* as recognised */
	uint64_t lines, stacks;
	uint64_t skipped, first_skipped; /* lines not understood; the number of the first, from 1 */
	uint64_t filtered;               /* samples of other events */
	char *event;                     /* the event taken, NULL when the input has none */

	const struct stackin_reader *reader;
	void *state;
	VEC(char) rest; /* before recognition: all; then the line that has not ended yet */
};

void stackin_init(struct stackin *in, struct stacktree *tree, const struct stackin_options *o);
void stackin_feed(struct stackin *in, const char *text, size_t len);
/* The end of the input: what stands open is counted. */
void stackin_end(struct stackin *in);
void stackin_fini(struct stackin *in);

/* All of a file, "-" is standard input: feed and end. */
struct err *stackin_read(struct stackin *in, const char *path);

#endif
