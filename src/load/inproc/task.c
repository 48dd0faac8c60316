#include <unistd.h>

#include "base/io.h"
#include "load/inproc/inproc.h"
#include "load/task.h"

static uint8_t *alloc(void *arg, uint64_t size)
{
	return (uint8_t *)area_alloc(arg, size);
}

/* The tracer's own: its command line is copied, for neither may its addresses stand in memory that traced processes read, nor is its
 * memory read for a D program. */
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

uint64_t area_task(struct inproc_engine *e, pid_t pid)
{
	const struct task_memory mem = { alloc, e };
	struct task_facts own = { .pid = pid, .tgid = pid }, parent = { 0 };

	(void)task_facts_read(pid, &own);
	if (pid == getpid())
		hide_addresses(e, &own);
	parent.pid = parent.tgid = own.ppid;
	(void)task_facts_read(own.ppid, &parent);
	return task_from_facts(e->base.image->types, &own, &parent, &mem);
}
