/* The interpreter in the copy that a heap is read from. */
#include "memory/heaplive/live_copy.h"

#include <errno.h>

struct err *live_read(struct memory_copy *c, struct space *s, const struct runtime_type *type,
		      live_reader *read, struct graph *g)
{
	struct space *space = memory_copy_space(c, s);
	struct runtime *r = NULL;
	struct err *e = runtime_find(space, &r);

	if (!e && (!r || r->type != type))
		e = err_new(ESRCH, "its interpreter has gone: it ended, or executed another "
				   "program");
	e = e ?: read(c, r, g);
	runtime_free(r);
	space_free(space);
	return e;
}
