/* Reads the blocks in use from a copy of the heap, as descry leaks does. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "memory/alloc/alloc_before.h"
#include "memory/leaks/blocks.h"
#include "memory/leaks/leaks.h"
#include "program/target/target.h"

enum { STOP_MS = 2000, TRIES = 5, WAIT_NS = 5000000 };

static struct err *copy_stopped(struct control *c, struct space *s, uint64_t *ret_time,
				struct memory_copy **ret)
{
	struct memory_copy *copy = NULL;
	struct err *e = control_stop(c, STOP_MS), *again;

	if (e)
		return e;
	*ret_time = now_ns();
	e = memory_copy(s, &copy);
	again = control_resume(c);
	if (e || again) {
		memory_copy_free(copy);
		if (e)
			err_free(again);
		return e ?: again;
	}
	*ret = copy;
	return NULL;
}

/* Lists the blocks of the copy. *ret_torn: a thread was stopped in the middle of malloc(3). */
static struct err *list_blocks(const struct memory_copy *copy, struct alloc_before *ret,
			       bool *ret_torn)
{
	struct leaks *remarks = xcalloc(1, sizeof(*remarks));
	struct leaks_heap h = { .l = remarks };
	struct err *e;

	arena_init(&remarks->arena);
	e = heap_find(copy, &h);
	ret->blocks.n = 0;
	for (uint32_t i = 0; !e && i < h.chunks.n; i++) {
		const struct leaks_chunk *k = &h.chunks.v[i];

		if (!(k->bits & CHUNK_FREE))
			vec_push(&ret->blocks,
				 (struct alloc_before_block){ chunk_block(k), chunk_usable(k) });
	}
	*ret_torn = remarks->torn;
	heap_fini(&h);
	leaks_free(remarks);
	return e;
}

struct err *alloc_before_read(pid_t pid, struct alloc_before *ret)
{
	const struct timespec wait = { 0, WAIT_NS };
	struct space *space = NULL;
	struct control *c = NULL;
	bool torn = true;
	struct err *e = control_open(pid, &c);

	e = e ?: control_space(c, &space);
	for (int i = 0; !e && torn && i < TRIES; i++) {
		struct memory_copy *copy = NULL;

		if (i)
			nanosleep(&wait, NULL);
		e = copy_stopped(c, space, &ret->time, &copy);
		e = e ?: list_blocks(copy, ret, &torn);
		memory_copy_free(copy);
	}
	if (!e && torn)
		e = err_new(EBUSY, "its heap was never whole when it was stopped");
	space_free(space);
	control_free(c);
	return e;
}
