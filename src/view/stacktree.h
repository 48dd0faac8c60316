/* The view "stack tree": call stacks merged from the root, with the counts of each frame.
 *
 * In: stacks, as frames or as text "a;b;c", with a count. Out: after stacktree_finish(), nodes with
 * their own count and the total of their subtree, siblings in the order of the folded text.
 * Always true: node 0 is the root and its frame has no text. A parent comes before its children. No
 * frame's text holds a ';' (the text a;b;c of a path is the path), so two stacks are equal exactly
 * when their folded texts are equal. The text is any bytes but ';'. Nothing here recurses, because
 * a stack may have a million frames. */
#ifndef DESCRY_VIEW_STACKTREE_H
#define DESCRY_VIEW_STACKTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "data/frame.h"

enum { STACKTREE_ROOT = 0, STACKTREE_NONE = UINT32_MAX };

/* The stacks of a tree, each written as text, may be many thousand times the data from which they
 * come, because a frame of few bytes can stand for a name of 64 kB. So this text has a budget: of
 * an input of n bytes, FREE + n * PER_BYTE (in pprof, a frame is one to three bytes, and several
 * when functions are inlined there); of stacks that descry records itself, OWN. */
enum {
	STACKTREE_TEXT_FREE = 64 << 20,
	STACKTREE_TEXT_PER_BYTE = 512,
	STACKTREE_TEXT_OWN = 1 << 30,
};

/* Two frames are equal when their kinds and texts are equal. */
struct stacktree_frame {
	const char *text; /* "MODULE`FUNCTION"; not NUL-terminated; lives as long as the tree */
	uint32_t len;
	uint32_t module; /* bytes of MODULE; 0: it has none */
	enum frame_kind kind;
};

struct stacktree_node {
	uint32_t frame;       /* index in frames */
	uint32_t parent;      /* NONE for the root */
	uint32_t first, next; /* child, sibling; NONE at the end */
	uint32_t size;        /* nodes of the subtree, this one included; set by finish */
	uint32_t depth;       /* 0 for the root */
	uint64_t self, total; /* total is set by finish; sums saturate at UINT64_MAX */
};

/* The counts before a change. node[i].self and .total are the counts after it. */
struct stacktree_before {
	uint64_t self, total;
};

struct stacktree_slot;

/* A distinct stack: ids[at .. at + n). */
struct stacktree_stack {
	uint64_t count;
	uint32_t at, n;
};

/* A frame of the last path walked. end: the offset behind it in `last`. */
struct stacktree_step {
	uint32_t node, end;
};

struct stacktree {
	VEC(struct stacktree_node) nodes;
	VEC(struct stacktree_frame) frames;  /* frame 0 is the root's */
	VEC(struct stacktree_before) before; /* empty, or one for each node */
	bool differential;
	uint32_t depth; /* of the deepest node; set by finish */

	/* The rest is private. */
	struct arena text;
	struct stacktree_slot *frame_slots, *child_slots, *stack_slots;
	uint32_t frame_cap, child_cap, stack_cap, nchild_slots;
	VEC(uint32_t)
	ids; /* the distinct stacks of stacktree_add(), concatenated, leaf first */
	VEC(struct stacktree_stack) stacks;
	VEC(struct stacktree_step) path;
	VEC(char) last; /* text of the last path */
};

void stacktree_init(struct stacktree *t);
void stacktree_fini(struct stacktree *t);

/* Returns the id of a frame. The caller has replaced or split off any ';' in its text. */
uint32_t stacktree_frame(struct stacktree *t, enum frame_kind kind, const char *text, size_t len);
/* Returns the id of a frame whose text may end with the mark of a kind, as other programs write
 * it. */
uint32_t stacktree_marked(struct stacktree *t, const char *text, size_t len);
/* Adds a stack of frame ids, LEAF FIRST, which is the order of tracers. Returns true when none like
 * it was added since the last stacktree_finish(). */
bool stacktree_add(struct stacktree *t, const uint32_t *ids, uint32_t n, uint64_t count);
/* Returns the node below `parent` for a frame's id. Adds it if needed. A node keeps its
 * number. */
uint32_t stacktree_child(struct stacktree *t, uint32_t parent, uint32_t frame);
/* Adds to a node's own count. */
void stacktree_count(struct stacktree *t, uint32_t node, uint64_t count);
/* Adds a stack as "root;...;leaf". Its frames may have marks. Fast when it begins like the stack
 * before. */
void stacktree_add_text(struct stacktree *t, const char *text, size_t len, uint64_t count);
/* Adds a stack with a count before and a count after a change. */
void stacktree_add_change(struct stacktree *t, const char *text, size_t len, uint64_t before,
			  uint64_t after);

/* Sums, sorts and numbers the nodes. The caller may add more stacks and finish again. */
void stacktree_finish(struct stacktree *t);

/* Adds each stack to `to`, which is empty, from its leaf to its root. */
void stacktree_reverse(const struct stacktree *from, struct stacktree *to);
/* Adds two trees to `to`, which is empty, as counts before and after. scale: multiplies the counts
 * before so that both totals are equal. */
void stacktree_diff(const struct stacktree *before, const struct stacktree *after, bool scale,
		    struct stacktree *to);

/* Returns the next node in preorder, NONE at the end. `skip` leaves out the subtree of i. */
uint32_t stacktree_next(const struct stacktree *t, uint32_t i, bool skip);

static inline const struct stacktree_frame *stacktree_frame_of(const struct stacktree *t,
							       uint32_t node)
{
	return &t->frames.v[t->nodes.v[node].frame];
}

/* Returns true when the frame's module is a kernel's, as DTrace on Linux, macOS, FreeBSD and
 * Solaris calls it. */
bool stacktree_in_kernel(const struct stacktree_frame *f);

/* Compares the lines of two siblings by their bytes, marks included. a and b: the byte behind each
 * frame, or -1 for the end of the line. */
int stacktree_compare(const struct stacktree_frame *x, int a, const struct stacktree_frame *y,
		      int b);

#endif
