/* A sink that collects aggregations keyed by stacks in one stack tree (descry profile).
 *
 * In: the aggregations of a run, at its end. One key is a string, the command. Numbers are the
 * process and the thread. The other keys are a user and a kernel stack, in any order. The value is
 * a count. Out: a tree (not finished): command; the reason why an incomplete stack ends; user
 * frames; kernel frames. Also the costs and losses of the run.
 */
#ifndef DESCRY_RENDER_STACKSINK_H
#define DESCRY_RENDER_STACKSINK_H

#include "base/out.h"
#include "consume/sink.h"
#include "view/stacktree.h"

struct stacksink_options {
	bool pid, tid; /* puts numbers behind the command's name: NAME-PID, NAME-PID/TID */
	bool module;   /* MODULE`FUNCTION */
	bool kernel,
		jit; /* frames are of these kinds; otherwise all but the inlined ones are native */
	bool addrs;  /* shows the address where there is no name; otherwise [MODULE] or [unknown] */
	bool lines;  /* FUNCTION:FILE:LINE */
	FILE *progress; /* a terminal for the progress line; NULL: none */
	double seconds; /* duration for the progress line, 0: not known */
};

struct stacksink_result {
	uint64_t samples;         /* sum of the counts */
	uint64_t stacks;          /* rows: distinct stacks, of each thread */
	uint64_t lost;            /* all drops */
	struct run_report report; /* without its arrays */
	bool complete; /* the aggregations were gathered; false: a second interrupt came before */
};

/* Both borrowed; ret is complete when the run is over. */
struct sink *stacksink_new(const struct stacksink_options *o, struct stacktree *t,
			   struct stacksink_result *ret);

/* tree.c: a finished tree as indented text, heaviest first: total and own count of each frame, in
 * percent. Frames under min_percent are left out and counted. Frames that are one of several below
 * their caller begin with a dash; others stay in its column. */
void tree_write(const struct stacktree *t, double min_percent, struct out *o);

#endif
