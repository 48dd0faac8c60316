/* Allocates room in the memory that the tracer and the traced processes share. inproc_area.c makes
 * and maps this memory. */
#include "load/inproc/state/area.h"

enum { PAGE = 4096, LINE = 64 };

uint64_t area_private_size(void)
{
	return round_up(sizeof(struct wire_private), PAGE) +
	       (uint64_t)INPROC_THREADS * WIRE_STACK_STRIDE;
}

static uint64_t take_room(struct inproc_room *r, uint64_t size)
{
	uint64_t at = r->at;

	if (!at || size > r->end - at)
		return 0;
	r->at = round_up(at + size, LINE);
	if (r->at > r->end)
		r->at = r->end;
	return at;
}

uint64_t area_alloc(struct inproc_engine *e, uint64_t size)
{
	return take_room(&e->room.facts, size);
}

uint64_t area_alloc_shared(struct inproc_engine *e, uint64_t size)
{
	return take_room(&e->room.shared, size);
}

uint64_t area_in_slot(struct inproc_engine *e, uint64_t size)
{
	uint64_t at = e->room.thread_used;

	e->room.thread_used = round_up(at + size, LINE);
	return at;
}

struct wire_thread *area_thread(const struct inproc_engine *e, uint32_t slot)
{
	return (struct wire_thread *)(e->room.threads + slot * e->room.thread_stride);
}
