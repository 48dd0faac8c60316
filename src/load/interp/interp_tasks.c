/* Stand-ins of task_struct for programs of the interpreter. */
#include <string.h>
#include <unistd.h>

#include "load/interp/interp_private.h"
#include "load/task.h"

enum { ANCESTORS = 64 };

struct block {
	uint8_t *p;
	uint64_t size;
};

struct interp_task {
	VEC(struct block) blocks;
	uint32_t used; /* number of used blocks, while the stand-in is made */
	uint32_t version;
	uint64_t address;
	struct interp_engine *e;
};

/* Allocates an object. A stand-in that is made again requests its objects in the same order and
 * gets the same addresses. */
static uint8_t *alloc(void *arg, uint64_t size)
{
	struct interp_task *t = arg;
	struct block b = { .size = size };

	if (t->used < t->blocks.n && t->blocks.v[t->used].size == size) {
		b = t->blocks.v[t->used++];
		memset(b.p, 0, size);
		return b.p;
	}
	b.p = xcalloc(1, size);
	vec_push(&t->blocks, b);
	t->used = t->blocks.n;
	interp_mem_add(&t->e->mem, b.p, size, false);
	return b.p;
}

static struct interp_task *task_new(struct interp_engine *e)
{
	struct interp_task *t = xcalloc(1, sizeof(*t));

	t->e = e;
	return t;
}

uint64_t interp_task(struct interp_engine *e)
{
	if (!e->self) {
		struct task_memory mem = { alloc, e->self = task_new(e), &e->layout };

		e->self->address = task_stand_in(e->base.image->types, getpid(), &mem);
	}
	return e->self->address;
}

/* Returns process 0, the parent of processes without parent. */
static uint64_t first_task(struct interp_engine *e)
{
	static const struct task_facts idle;

	if (!e->idle) {
		struct task_memory mem = { alloc, e->idle = task_new(e), &e->layout };

		e->idle->address = task_ancestor(e->base.image->types, &idle, 0, &mem);
	}
	return e->idle->address;
}

/* Makes the stand-in of t. Looks the parent up each time, because the parent may have ended. */
static uint64_t task_below(struct interp_engine *e, struct connector_thread *t, int depth)
{
	struct connector_thread *parent = depth ? connector_parent(e->connector, t) : NULL;
	uint64_t above = parent ? task_below(e, parent, depth - 1) : first_task(e);
	struct interp_task *task = t->owner;
	struct task_memory mem = { alloc, task, &e->layout };

	if (task && task->version == t->version) {
		task_set_parent(e->base.image->types, task->address, above, &e->layout);
		return task->address;
	}
	if (!task)
		mem.arg = t->owner = task = task_new(e);
	task->used = 0;
	task->version = t->version;
	task->address = task_from_facts(e->base.image->types, &t->facts, above, &mem);
	return task->address;
}

uint64_t interp_task_of(struct interp_engine *e, struct connector_thread *t)
{
	return task_below(e, t, ANCESTORS);
}

void interp_task_free(void *engine, void *task)
{
	struct interp_engine *e = engine;
	struct interp_task *t = task;

	if (!t)
		return;
	for (uint32_t i = 0; e->base.image && i < e->base.image->nmaps; i++)
		if (e->maps[i].def && e->maps[i].def->type == BPF_MAP_TYPE_TASK_STORAGE)
			(void)interp_map_delete(&e->maps[i], &t->address);
	for (uint32_t i = 0; i < t->blocks.n; i++) {
		interp_mem_del(&e->mem, t->blocks.v[i].p);
		free(t->blocks.v[i].p);
	}
	vec_fini(&t->blocks);
	free(t);
}
