/* The view "stack tree": call stacks merged from the root, with what was counted in each frame.
 *
 * In: stacks, root first, as names or as text "a;b;c", with a count. Out: after stacktree_finish(), nodes with their own
 * count and the total of their subtree, siblings in the order of the folded text.
 * Always true: node 0 is the root and has no name; a parent stands before its children; no name holds a ';' (the text
 * a;b;c of a path is the path), so two stacks are one exactly when their texts are equal. A name is any bytes but ';'.
 * Nothing here recurses: a stack may be a million frames deep.
 */
#ifndef DESCRY_DATA_STACKTREE_H
#define DESCRY_DATA_STACKTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum { STACKTREE_ROOT = 0, STACKTREE_NONE = UINT32_MAX };

struct stacktree_name {
	const char *text; /* not NUL-terminated; lives as long as the tree */
	uint32_t len;
};

struct stacktree_node {
	uint32_t name;
	uint32_t parent;      /* NONE for the root */
	uint32_t first, next; /* child, sibling; NONE at the end */
	uint32_t size;        /* nodes of the subtree, this one included; set by finish */
	uint32_t depth;       /* 0 for the root */
	uint64_t self, total; /* total is set by finish; sums stop at UINT64_MAX */
};

/* The counts before a change, beside node[i].self and .total, which are those after it. */
struct stacktree_before {
	uint64_t self, total;
};

struct stacktree_slot;

/* A distinct stack: frames[at .. at + n). */
struct stacktree_stack {
	uint64_t count;
	uint32_t at, n;
};

/* A frame of the path walked last; end: the offset behind it in `last`. */
struct stacktree_step {
	uint32_t node, end;
};

struct stacktree {
	VEC(struct stacktree_node) nodes;
	VEC(struct stacktree_name) names;
	VEC(struct stacktree_before) before; /* empty, or one for each node */
	bool differential;
	uint32_t depth; /* of the deepest node; set by finish */

	/* The rest is the inside. */
	struct arena text;
	struct stacktree_slot *name_slots, *child_slots, *stack_slots;
	uint32_t name_cap, child_cap, stack_cap, nchild_slots;
	VEC(uint32_t)
	frames; /* the distinct stacks of stacktree_add(), one behind the other, leaf first */
	VEC(struct stacktree_stack) stacks;
	VEC(struct stacktree_step) path;
	VEC(char) last; /* the text of the path */
};

void stacktree_init(struct stacktree *t);
void stacktree_fini(struct stacktree *t);

/* The id of a name; a ';' in it must have been replaced or split off by the caller. */
uint32_t stacktree_name(struct stacktree *t, const char *text, size_t len);
/* A stack of names, LEAF FIRST, as tracers print them. */
void stacktree_add(struct stacktree *t, const uint32_t *names, uint32_t n, uint64_t count);
/* A stack as "root;...;leaf". Quick when it begins as the one before. */
void stacktree_add_text(struct stacktree *t, const char *text, size_t len, uint64_t count);
/* The same with a count before and one after. */
void stacktree_add_change(struct stacktree *t, const char *text, size_t len, uint64_t before,
			  uint64_t after);

/* Sums, sorts, numbers. More may be added afterwards: then finish again. */
void stacktree_finish(struct stacktree *t);

/* Into `to`, which is empty: each stack from its leaf to its root. */
void stacktree_reverse(const struct stacktree *from, struct stacktree *to);
/* Into `to`, which is empty: what two trees counted, as before and after. scale: the counts before are multiplied so that both
 * totals are equal. */
void stacktree_diff(const struct stacktree *before, const struct stacktree *after, bool scale,
		    struct stacktree *to);

/* The next node in preorder, NONE at the end; `skip` leaves out the subtree of i. */
uint32_t stacktree_next(const struct stacktree *t, uint32_t i, bool skip);

static inline const struct stacktree_name *stacktree_name_of(const struct stacktree *t,
							     uint32_t node)
{
	return &t->names.v[t->nodes.v[node].name];
}

#endif
