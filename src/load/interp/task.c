#include "load/interp/interp_engine.h"
#include "load/task.h"

static uint8_t *alloc(void *arg, uint64_t size)
{
	struct interp_engine *e = arg;
	uint8_t *p = xcalloc(1, size);

	vec_push(&e->objects, p);
	interp_mem_add(&e->mem, p, size, false);
	return p;
}

uint64_t interp_task(struct interp_engine *e)
{
	const struct task_memory mem = { alloc, e };

	if (!e->objects.n)
		e->task = task_stand_in(e->base.image->types, getpid(), &mem);
	return e->task;
}

void interp_task_fini(struct interp_engine *e)
{
	for (uint32_t i = 0; i < e->objects.n; i++) {
		interp_mem_del(&e->mem, e->objects.v[i]);
		free(e->objects.v[i]);
	}
	vec_fini(&e->objects);
}
