/* Stand-ins for the task_structs of traced processes, in memory that all of these have. real_parent
 * leads from each to its parent's and on to the first process's, as in the kernel. */
#include <unistd.h>

#include "base/io.h"
#include "base/procdir.h"
#include "load/inproc/state/area.h"
#include "load/task.h"

enum { ANCESTORS = 64 /* of one */, ANCESTORS_MAX = 2048 };

static uint8_t *alloc(void *arg, uint64_t size)
{
	return (uint8_t *)area_alloc(arg, size);
}

/* The stand-in of the tracer itself. Its command line is copied, because the tracer's addresses
 * must not stand in memory that traced processes read, and a D program must not read the tracer's
 * memory. */
static void hide_addresses(struct inproc_engine *e, struct task_facts *f)
{
	cleanup_free char *text = NULL;
	uint64_t room = 0;
	size_t n = 0;

	err_free(io_read_file("/proc/self/cmdline", &text, &n));
	if (n)
		room = area_alloc(e, n);
	if (room)
		memcpy((void *)room, text, n);
	f->start_stack = 0;
	f->arg_start = room;
	f->arg_end = room ? room + n : 0;
}

/* Returns the stand-in of the traced process with this number and start time, 0: there is none. */
static uint64_t traced_task(const struct inproc_engine *e, pid_t pid, uint64_t started)
{
	uint64_t task = 0;

	if (pid == getpid())
		return e->list[0].task;
	for (uint32_t i = 0; i < e->processes.n; i++) {
		const struct wire_process *w = &e->list[e->processes.v[i].index];

		if (w->pid == (uint32_t)pid && w->started == started && w->task)
			task = w->task;
	}
	return task;
}

/* Returns the stand-in of an ancestor, and makes it when there is none. */
static uint64_t ancestor(struct inproc_engine *e, pid_t pid, int left)
{
	const struct task_memory mem = { alloc, e };
	struct task_facts f = { .pid = pid, .tgid = pid };
	uint64_t started = pid ? procdir_start(pid) : 0, task = traced_task(e, pid, started);

	for (uint32_t i = 0; i < e->family.ancestors.n && !task; i++)
		if (e->family.ancestors.v[i].pid == pid &&
		    e->family.ancestors.v[i].started == started)
			task = e->family.ancestors.v[i].task;
	if (task)
		return task;
	/* bounded, because a traced process chooses how many threads it requests */
	if (pid && e->family.ancestors.n >= ANCESTORS_MAX)
		return ancestor(e, 0, 0);
	if (pid)
		(void)task_facts_read(pid, &f);
	task = task_ancestor(e->base.image->types, &f,
			     pid && left ? ancestor(e, f.ppid, left - 1) : 0, &mem);
	if (task)
		vec_push(&e->family.ancestors, (struct inproc_ancestor){ pid, started, task });
	return task;
}

uint64_t area_parent(struct inproc_engine *e, pid_t pid)
{
	return ancestor(e, pid, ANCESTORS);
}

uint64_t area_task(struct inproc_engine *e, pid_t pid)
{
	const struct task_memory mem = { alloc, e };
	struct task_facts own = { .pid = pid, .tgid = pid };

	(void)task_facts_read(pid, &own);
	if (pid == getpid())
		hide_addresses(e, &own);
	return task_from_facts(e->base.image->types, &own, area_parent(e, own.ppid), &mem);
}
