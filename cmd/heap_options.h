/* The parts of `descry heap`. */
#ifndef DESCRY_CMD_HEAP_OPTIONS_H
#define DESCRY_CMD_HEAP_OPTIONS_H

#include "cmdline.h"
#include "memory/heap/heap.h"

struct space;
struct stacktree;

struct heap_options {
	struct heap_shown shown;
	bool fork;
	uint32_t memory; /* --memory: megabytes of the graph that are kept in memory; 0: not given */
	bool histogram, retained, unreachable, duplicates, counts, stacks, async, ask;
	const char *paths, *refs, *find, *by, *diff, *page;
	struct heap_find *query; /* of find and by */
	/* of alloc */
	double lasts, every; /* --for, --every: seconds; 0: not given */
	uint32_t sample;     /* --sample; 0: not given */
	bool garbage, show_d, inspector;
	struct cmdline c; /* of the run: processes and settings */
};

int heap_alloc(struct heap_options *o);
/* heap_inspector.c: the same by V8's own samples. */
int heap_inspector(const struct heap_options *o);
/* Writes a picture of bytes; the file's name says which (stack_writer_of()). */
struct err *heap_write_tree(const char *page, const char *title, struct stacktree *tree);
/* heap_ask.c: answers questions from standard input until it ends. Sets *ret_failed when one had no
 * answer. */
struct err *heap_ask_lines(struct graph *g, const struct heap_shown *how, bool *ret_failed);
/* heap_stacks.c: the functions of the language that each thread executes; with `async` also the
 * tasks of its loop. ENOENT: it runs none that descry knows. */
struct err *heap_show_stacks(struct space *space, struct memory_stop *p, bool json, bool async,
			     struct out *o);
/* Stops a process, as long as descry waits for that. */
struct err *heap_process_stop(struct control *c);

#endif
