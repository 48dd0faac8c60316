/* The forms in which a tree of stacks is written, one row each: descry flame and descry profile
 * take their options and the endings of file names from here. */
#ifndef DESCRY_RENDER_WRITERS_H
#define DESCRY_RENDER_WRITERS_H

#include "render/flame.h"
#include "render/render.h"

/* What is written; borrowed. */
struct stack_output {
	const struct stacktree *tree;
	const struct flame_options *picture;
	const struct profile_about *about;
	double min; /* text: frames under so many percent are left out */
	/* JSON: the tree among other things. NULL: the tree alone. */
	void (*json)(const void *arg, const struct stacktree *t, struct out *o);
	const void *arg;
};

struct stack_writer {
	const char *name;        /* of the option, without dashes */
	const char *suffixes[3]; /* file names that end so are of this form; NULL behind the last */
	bool colored;            /* shows the kinds of frames as colours */
	bool lines;              /* text: what is marked in a name stays there */
	bool module;             /* has a place for a function's module */
	void (*write)(const struct stack_output *w, struct out *o);
};

/* NULL: none. */
const struct stack_writer *stack_writer_named(const char *name);
/* By a file's name; path NULL: none. */
const struct stack_writer *stack_writer_of(const char *path);

#endif
