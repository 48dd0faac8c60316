/* The output formats of a stack tree, one row each. descry flame and descry profile take their
 * options and the endings of file names from here. */
#ifndef DESCRY_RENDER_WRITERS_H
#define DESCRY_RENDER_WRITERS_H

#include "base/err.h"
#include "render/picture_flame.h"
#include "render/render.h"

/* The data to write; borrowed. */
struct stack_output {
	const struct stacktree *tree;
	const struct flame_options *picture;
	const struct profile_about *about;
	uint64_t given; /* bytes of the input that the stacks come from; 0: descry recorded them */
	double min;     /* text: leaves out frames under so many percent */
	/* JSON: puts the tree among other members. NULL: the tree alone. */
	void (*json)(const void *arg, const struct stacktree *t, struct out *o);
	const void *arg;
	uint32_t name_most; /* folded: how much of a name is written; stack_output_fit() sets it */
};

struct stack_writer {
	const char *name;        /* name of the option, without dashes */
	const char *suffixes[3]; /* endings of file names for this format; NULL behind the last */
	bool colored;            /* shows the kinds of frames as colours */
	bool lines;              /* text: marks in a name stay in it */
	bool module;             /* has a place for a function's module */
	void (*write)(const struct stack_output *w, struct out *o);
};

/* NULL: none. */
const struct stack_writer *stack_writer_named(const char *name);
/* Returns the writer for a file's name, NULL: none. path NULL: none. */
const struct stack_writer *stack_writer_of(const char *path);

/* Called before the output is opened. Where the folded text would be larger than its budget
 * (view/stacktree.h), names are cut, and *ret_remark says so (malloc()ed; else NULL). An error:
 * also the cut names are too much. */
struct err *stack_output_fit(const struct stack_writer *w, struct stack_output *o,
			     char **ret_remark);

#endif
