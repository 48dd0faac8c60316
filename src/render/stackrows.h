/* Turns the stacks among the keys of an aggregation's rows into frames of a stack tree.
 *
 * In: a sink (symbols, options) and keys. Out: ids of frames, leaf first, the kernel's before the
 * program's. Always true: a program counter is looked up and named once, until stackrows_forget().
 */
#ifndef DESCRY_RENDER_STACKROWS_H
#define DESCRY_RENDER_STACKROWS_H

#include "base/hash.h"
#include "render/render.h"

struct stackrows_known {
	uint32_t first, n; /* in known_ids */
	bool calls;        /* the result of stack_frame() */
};

struct stackrows {
	struct sink *sink;
	/* Adds the ids of a frame in the tree to ids: one or several. */
	void (*name)(void *arg, const struct frame *f);
	void *arg;
	VEC(uint32_t) ids; /* pid of the stack that is being made */

	/* The rest is private. */
	struct hash pcs; /* index in known + 1 */
	VEC(struct stackrows_known) known;
	VEC(uint32_t) known_ids;
};

bool stackrows_has_stack(const struct agg *agg);
/* Adds all stacks of a key to ids. */
void stackrows_take(struct stackrows *r, const struct agg *agg, const uint8_t *key);
/* Forgets names. Called after an aggregation was taken, because addresses may have other names at
 * the next one. */
void stackrows_forget(struct stackrows *r);
void stackrows_fini(struct stackrows *r);

/* Returns the id of a frame with that text. Replaces characters that would split a frame or a
 * line. */
uint32_t stackrows_frame(struct stacktree *t, enum frame_kind kind, struct out *text);
/* FRAME_KERNEL and FRAME_JIT become native when these kinds are not shown. */
enum frame_kind stackrows_kind(enum frame_kind kind, bool kernel, bool jit);

#endif
