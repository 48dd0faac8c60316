/* Allocates room in the memory that the tracer and the traced processes share. inproc_area.c makes
 * and maps this memory. */
#include "load/inproc/state/area.h"

enum { PAGE = 4096, LINE = 64, WORD_BITS = 64 };

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

bool area_own_variables(struct inproc_engine *e)
{
	const uint64_t at = round_up(e->area->event, LINE);
	struct wire_map *m = NULL;

	for (uint32_t i = 0; i < e->area->nmaps; i++)
		if (e->maps[i].kind == WIRE_MAP_TASK)
			m = m ? NULL : &e->maps[i];
	if (!m || at + m->stride > WIRE_EVENT_MAX)
		return false;
	m->kind = WIRE_MAP_OWN_TASK;
	m->base = e->area->own_at = at;
	e->area->own_size = m->value_size;
	e->own_shared = xcalloc(area_own_words(e), sizeof(*e->own_shared));
	return true;
}

uint64_t area_own_words(const struct inproc_engine *e)
{
	return e->area->own_size / 8 / WORD_BITS + 1;
}

uint8_t *area_own_value(const struct inproc_engine *e, const struct wire_map *m)
{
	return (uint8_t *)e->own - WIRE_EVENT_BELOW + m->base;
}
