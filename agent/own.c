/* Helpers that read the kernel's memory, for programs whose addresses a followed child could
 * choose. They read only D's own memory, the facts and the stand-ins, and no memory of the traced
 * program. */
#include "agent/agent.h"

/* Returns the end of the facts, shared memory, stand-ins or program stack that addr lies in, 0: it
 * lies in none. */
static uint64_t own_end(const struct wire_thread *t, uint64_t addr)
{
	const uint64_t facts = (uintptr_t)area(), event = (uintptr_t)event_of(t),
		       variables = own_room(t) + area()->own_at, own = (uintptr_t)own_words(t),
		       stack = own - WIRE_PROBE_STACK, rsp = fired_at(own_words(t)),
		       here = (uintptr_t)__builtin_frame_address(0);

	if (addr - facts < area()->span)
		return facts + area()->span;
	if (addr - event < area()->event)
		return event + area()->event;
	if (addr - variables < area()->own_size)
		return variables + area()->own_size;
	if (addr - stack < WIRE_PROBE_STACK)
		return own;
	if (here - stack < WIRE_PROBE_STACK) /* it does not run on the thread's own stack */
		return 0;
	return rsp > here && addr - here < rsp - here ? rsp : 0;
}

ENTRY int64_t agent_read_own(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4, uint64_t r5,
			     struct wire_thread *t)
{
	const uint64_t end = own_end(t, src);

	if (UNLIKELY(!end || (uint32_t)size > end - src))
		src = 0; /* no memory is there */
	return agent_probe_read(dst, size, src, r4, r5, t);
}

ENTRY int64_t agent_read_own_str(uint64_t dst, uint64_t size, uint64_t src, uint64_t r4,
				 uint64_t r5, struct wire_thread *t)
{
	const uint64_t end = own_end(t, src);

	size = (uint32_t)size;
	if (end && size > end - src)
		size = end - src;
	return agent_probe_read_str(dst, size, end ? src : 0, r4, r5, t);
}

bool is_own_far(const struct wire_thread *t, uint64_t p, uint64_t n, uint64_t frame)
{
	const uint64_t off = p - own_room(t) - area()->own_at, size = area()->own_size,
		       rsp = fired_at(own_words(t));

	if (off < size)
		return n <= size - off;
	return rsp > frame && p - frame < rsp - frame && n <= rsp - p;
}

uint8_t *task_value(const struct wire_thread *t, const struct wire_map *m)
{
	if (m->kind == WIRE_MAP_OWN_TASK)
		return (uint8_t *)own_room(t) + m->base;
	return m->kind == WIRE_MAP_TASK ? (uint8_t *)t + m->base : NULL;
}
