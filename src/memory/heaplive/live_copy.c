/* The interpreter in the copy that a heap is read from. */
#include "memory/heaplive/live_copy.h"

#include <errno.h>

struct err *live_runtime(struct space *s, const struct runtime_type *type, struct runtime **ret)
{
	struct err *e = runtime_find(s, ret);

	if (!e && (!*ret || (*ret)->type != type))
		e = err_new(ESRCH, "its interpreter has gone: it ended, or executed another "
				   "program");
	return e;
}

struct err *live_read(struct memory_copy *c, struct space *s, const struct runtime_type *type,
		      live_reader *read, struct graph *g)
{
	struct space *space = memory_copy_space(c, s);
	struct runtime *r = NULL;
	struct err *e = live_runtime(space, type, &r);

	e = e ?: read(c, r, g);
	runtime_free(r);
	space_free(space);
	return e;
}
