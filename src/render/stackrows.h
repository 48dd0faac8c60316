/* The stacks among the keys of an aggregation's rows, as frames of a stack tree.
 *
 * In: a sink (symbols, options) and keys. Out: ids of frames, leaf first, those of the kernel
 * before those of the program.
 * Always true: a program counter is looked up and named once, until stackrows_forget().
 */
#ifndef DESCRY_RENDER_STACKROWS_H
#define DESCRY_RENDER_STACKROWS_H

#include "base/hash.h"
#include "render/render.h"

struct stackrows_known {
	uint32_t first, n; /* in known_ids */
	bool calls;        /* what stack_frame() said */
};

struct stackrows {
	struct sink *sink;
	/* Adds to ids what a frame is in the tree: one id, or several. */
	void (*name)(void *arg, const struct frame *f);
	void *arg;
	VEC(uint32_t) ids; /* of the stack that is being made */

	/* The rest is the inside. */
	struct hash pcs; /* index in known + 1 */
	VEC(struct stackrows_known) known;
	VEC(uint32_t) known_ids;
};

bool stackrows_has_stack(const struct agg *agg);
/* Adds all stacks of a key to ids. */
void stackrows_take(struct stackrows *r, const struct agg *agg, const uint8_t *key);
/* An aggregation has been taken: addresses may mean something else at the next one. */
void stackrows_forget(struct stackrows *r);
void stackrows_fini(struct stackrows *r);

/* The id of a frame of that text, in which what would split a frame or a line is replaced. */
uint32_t stackrows_frame(struct stacktree *t, enum frame_kind kind, struct out *text);
/* FRAME_KERNEL and FRAME_JIT are native ones where they are not to be shown. */
enum frame_kind stackrows_kind(enum frame_kind kind, bool kernel, bool jit);

#endif
