/* A sink that gathers aggregations keyed by stacks into one stack tree (descry profile).
 *
 * In: the aggregations of a run, at its end: keys of which a string is the command, numbers are the
 * process and the thread, and the rest are a user and a kernel stack, in any order; the value is a
 * count.
 * Out: a tree (not finished): command; why an incomplete stack ends; user frames; kernel frames.
 * And what the run cost and lost.
 */
#ifndef DESCRY_RENDER_STACKSINK_H
#define DESCRY_RENDER_STACKSINK_H

#include "base/out.h"
#include "consume/sink.h"
#include "view/stacktree.h"

struct stacksink_options {
	bool pid, tid; /* numbers behind the command's name: NAME-PID, NAME-PID/TID */
	bool module;   /* MODULE`FUNCTION */
	bool kernel,
		jit; /* frames are of these kinds; otherwise all but the inlined ones are native */
	bool addrs;  /* the address where there is no name; otherwise [MODULE] or [unknown] */
	bool lines;  /* FUNCTION:FILE:LINE */
	FILE *progress; /* a terminal that shows how far it is; NULL: none */
	double seconds; /* how long it will take, 0 not known; for progress */
};

struct stacksink_result {
	uint64_t samples;         /* sum of the counts */
	uint64_t stacks;          /* rows: distinct stacks, of each thread */
	uint64_t lost;            /* all drops */
	struct run_report report; /* without its arrays */
	bool complete;            /* the aggregations came; false: interrupted twice before */
};

/* Both borrowed; ret is complete when the run is over. */
struct sink *stacksink_new(const struct stacksink_options *o, struct stacktree *t,
			   struct stacksink_result *ret);

/* tree.c: a finished tree as indented text, heaviest first: total and own count of each frame, in
 * percent. Frames under min_percent are left out and counted. Frames that are one of several below
 * their caller begin with a dash; others stay in its column. */
void tree_write(const struct stacktree *t, double min_percent, struct out *o);

#endif
