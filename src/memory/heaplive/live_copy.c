/* The copy that a heap is read from, and the interpreter in it. */
#include "memory/heaplive/live_copy.h"

#include <errno.h>

struct err *live_copy(struct space *s, struct memory_room *room, void **ret)
{
	struct memory_copy *c = NULL;
	struct err *e = memory_copy_into(s, room, &c);

	if (!e)
		*ret = c;
	return e;
}

void live_copy_free(void *copy)
{
	memory_copy_free(copy);
}

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
