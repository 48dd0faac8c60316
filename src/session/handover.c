/* Processes that have executed another program: one session gives them, and one takes them. */
#include <errno.h>
#include <string.h>

#include "program/target/target.h"
#include "session/session_private.h"

void session_take_executed(void *session, int pid, struct control *c)
{
	struct session *s = session;

	vec_push(&s->executed, ((struct executed){ pid, c }));
}

bool session_executed(struct session *s, struct executed *ret)
{
	if (!s->executed.n)
		return false;
	*ret = s->executed.v[0];
	memmove(s->executed.v, s->executed.v + 1, --s->executed.n * sizeof(*s->executed.v));
	return true;
}

bool session_can_enter(const struct session *s)
{
	return s->plan.engine && s->plan.engine->ops->enter;
}

struct err *session_enter(struct session *s, const struct executed *x, pid_t like)
{
	struct engine *e = s->plan.engine;

	if (session_can_enter(s)) {
		ruby_watch_like(&s->ruby, x->pid, like);
		return e->ops->enter(e, x->pid, like, x->control);
	}
	control_free(x->control);
	return err_new(ENOTSUP, "the %s engine traces no further process", e->ops->name);
}

bool session_is_idle(const struct session *s)
{
	const struct engine *e = s->plan.engine;

	return !s->executed.n && e->ops->nprocesses && !e->ops->nprocesses(e);
}
