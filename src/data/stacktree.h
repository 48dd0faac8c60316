/* The view "stack tree": call stacks merged from the root, with what was counted in each frame.
 *
 * In: stacks, as frames or as text "a;b;c", with a count. Out: after stacktree_finish(), nodes with
 * their own count and the total of their subtree, siblings in the order of the folded text.
 * Always true: node 0 is the root and its frame has no text; a parent stands before its children;
 * no frame's text holds a ';' (the text a;b;c of a path is the path), so two stacks are one exactly
 * when their folded texts are equal. The text is any bytes but ';'. Nothing here recurses: a stack
 * may be a million frames deep.
 */
#ifndef DESCRY_DATA_STACKTREE_H
#define DESCRY_DATA_STACKTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "data/frame.h"

enum { STACKTREE_ROOT = 0, STACKTREE_NONE = UINT32_MAX };

/* Two frames are one when their kinds and texts are equal. */
struct stacktree_frame {
	const char *
		text; /* as it is shown, "MODULE`FUNCTION"; not NUL-terminated; lives as long as the tree */
	uint32_t len;
	uint32_t module; /* bytes of MODULE; 0 there is none */
	enum frame_kind kind;
};

struct stacktree_node {
	uint32_t frame;       /* index in frames */
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

/* A distinct stack: ids[at .. at + n). */
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
	VEC(struct stacktree_frame) frames;  /* frame 0 is the root's */
	VEC(struct stacktree_before) before; /* empty, or one for each node */
	bool differential;
	uint32_t depth; /* of the deepest node; set by finish */

	/* The rest is the inside. */
	struct arena text;
	struct stacktree_slot *frame_slots, *child_slots, *stack_slots;
	uint32_t frame_cap, child_cap, stack_cap, nchild_slots;
	VEC(uint32_t)
	ids; /* the distinct stacks of stacktree_add(), one behind the other, leaf first */
	VEC(struct stacktree_stack) stacks;
	VEC(struct stacktree_step) path;
	VEC(char) last; /* the text of the path */
};

void stacktree_init(struct stacktree *t);
void stacktree_fini(struct stacktree *t);

/* The id of a frame; a ';' in its text must have been replaced or split off by the caller. */
uint32_t stacktree_frame(struct stacktree *t, enum frame_kind kind, const char *text, size_t len);
/* The same of a text that may end with the mark of a kind, as other programs write it. */
uint32_t stacktree_marked(struct stacktree *t, const char *text, size_t len);
/* A stack of frame ids, LEAF FIRST, as tracers print them. */
void stacktree_add(struct stacktree *t, const uint32_t *ids, uint32_t n, uint64_t count);
/* A stack as "root;...;leaf", whose frames may have marks. Quick when it begins as the one
 * before. */
void stacktree_add_text(struct stacktree *t, const char *text, size_t len, uint64_t count);
/* The same with a count before and one after. */
void stacktree_add_change(struct stacktree *t, const char *text, size_t len, uint64_t before,
			  uint64_t after);

/* Sums, sorts, numbers. More may be added afterwards: then finish again. */
void stacktree_finish(struct stacktree *t);

/* Into `to`, which is empty: each stack from its leaf to its root. */
void stacktree_reverse(const struct stacktree *from, struct stacktree *to);
/* Into `to`, which is empty: what two trees counted, as before and after. scale: the counts before
 * are multiplied so that both totals are equal. */
void stacktree_diff(const struct stacktree *before, const struct stacktree *after, bool scale,
		    struct stacktree *to);

/* The next node in preorder, NONE at the end; `skip` leaves out the subtree of i. */
uint32_t stacktree_next(const struct stacktree *t, uint32_t i, bool skip);

static inline const struct stacktree_frame *stacktree_frame_of(const struct stacktree *t,
							       uint32_t node)
{
	return &t->frames.v[t->nodes.v[node].frame];
}

/* Is it of the kernel by its module, as DTrace on Linux, macOS, FreeBSD and Solaris calls it? */
bool stacktree_in_kernel(const struct stacktree_frame *f);

/* How the lines of two siblings are sorted by their bytes, marks included; a and b: what stands
 * behind the frame, as a byte, or -1 for the end of the line. */
int stacktree_compare(const struct stacktree_frame *x, int a, const struct stacktree_frame *y,
		      int b);

#endif
