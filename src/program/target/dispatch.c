/* Syscall User Dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH): a thread gets its own system
 * calls as SIGSYS, but those of one range of code, and only while a byte of its memory says so.
 * Programs that run a foreign system's code use it (Wine). */
#define _GNU_SOURCE
#include <sys/ptrace.h>

#include "target_private.h"

/* <linux/ptrace.h> as of Linux 6.4 */
struct config {
	uint64_t mode, selector, offset, len;
};
enum { GET_CONFIG = 0x4211, BLOCK = 1 };

static bool is_on(const struct control_thread *t, struct config *ret)
{
	*ret = (struct config){ 0 };
	return !t->blocked && t->seized &&
	       ptrace((enum __ptrace_request)GET_CONFIG, t->tid, sizeof(*ret), ret) == 0 &&
	       ret->mode;
}

bool control_any_dispatches(const struct control *c)
{
	struct config s;

	for (uint32_t i = 0; i < c->threads.n; i++)
		if (is_on(&c->threads.v[i], &s))
			return true;
	return false;
}

void control_find_dispatched(struct control *c)
{
	struct config s;

	c->dispatched = (struct control_range){ 0 };
	for (uint32_t i = 0; i < c->threads.n; i++)
		if (is_on(&c->threads.v[i], &s) && s.len)
			c->dispatched = (struct control_range){ s.offset, s.offset + s.len };
}

bool control_dispatches(struct control *c, const struct control_thread *t)
{
	struct config s;
	uint8_t selector = BLOCK;

	if (!is_on(t, &s))
		return false;
	if (s.selector && control_pread(c, &selector, 1, s.selector) == 1 && selector != BLOCK)
		return false;
	return c->stub ? c->stub - s.offset >= s.len : !s.len;
}
