#include "load/inproc/inproc.h"
#include "load/task.h"

static uint8_t *alloc(void *arg, uint64_t size)
{
	return (uint8_t *)area_alloc(arg, size);
}

uint64_t area_task(struct inproc_engine *e, pid_t pid)
{
	const struct task_memory mem = { alloc, e };

	return task_stand_in(e->base.image->types, pid, &mem);
}
