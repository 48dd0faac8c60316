/* Processes that begin and change while they are traced: forked children that are followed, and a process that executes
 * another program, which leaves nothing of ours in it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/uio.h>

#include "load/inproc/inproc.h"
#include "load/inproc/undo.h"

enum {
	EXEC_TRIES = 50
}; /* looks, some milliseconds apart, until the new program's libraries are there */

/* Does the process have our shared memory? */
static bool has_area(const struct inproc_engine *e, pid_t pid)
{
	return undo_left(pid, e->addr, e->shared_inode, 0);
}

/* Its number in its own name space, the last of the line. */
static uint32_t own_number(pid_t pid)
{
	return process_status(pid, "NSpid:", PROCESS_STATUS_LAST);
}

static bool is_known(const struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid && e->processes.v[i].attached)
			return true;
	return false;
}

/* The number here of a child that calls itself `own`. What stands in shared memory is only believed of a process that has
 * that memory. 0: there is none. */
static pid_t find_child(const struct inproc_engine *e, uint32_t own)
{
	DIR *d;
	struct dirent *de;
	pid_t found = 0;

	if (!is_known(e, (pid_t)own) && has_area(e, (pid_t)own) && own_number((pid_t)own) == own)
		return (pid_t)own;
	d = opendir("/proc");
	while (d && !found && (de = readdir(d))) {
		pid_t pid = (pid_t)strtol(de->d_name, NULL, 10);

		if (pid > 0 && own_number(pid) == own && !is_known(e, pid) && has_area(e, pid))
			found = pid;
	}
	if (d)
		closedir(d);
	return found;
}

/* Children that the agent has put on the list: own_pid is set, pid is not. */
uint32_t processes_adopt(struct inproc_engine *e)
{
	struct wire_process *list = e->list;
	uint32_t n = __atomic_load_n(&e->area->process_count, __ATOMIC_ACQUIRE), adopted = 0;

	if (n > WIRE_PROCESSES_MAX)
		n = WIRE_PROCESSES_MAX;
	for (uint32_t i = 1; i < n; i++) {
		uint32_t own = __atomic_load_n(&list[i].own_pid, __ATOMIC_ACQUIRE);
		struct inproc_process *p;
		pid_t pid;

		if (!own || list[i].pid)
			continue;
		pid = find_child(e, own);
		list[i].pid = pid ? (uint32_t)pid : own;
		if (!pid) { /* it has ended, or executes another program */
			__atomic_store_n(&list[i].state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
			continue;
		}
		adopted++;
		p = vec_add(&e->processes);
		p->pid = pid;
		p->index = i;
		p->island_fd = -1;
		p->attached = p->child = true;
		list[i].task = area_task(e, p->pid);
		err_free(process_ranges(e, p));
		unwind_add(e, p->pid);
		__atomic_store_n(&list[i].state, WIRE_PROCESS_TRACED, __ATOMIC_RELEASE);
	}
	return adopted;
}

/* Is our private memory still in it? False: it has executed another program. */
static bool is_ours(const struct inproc_engine *e, pid_t pid)
{
	uint64_t ready = 0;
	struct iovec to = { &ready, sizeof(ready) };
	struct iovec from = { (void *)(e->addr + WIRE_PRIVATE), sizeof(ready) };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(ready) || errno != EFAULT;
}

/* The same probes in the new program, as soon as one of their files is mapped there. */
static void follow_exec(struct inproc_engine *e, uint32_t i)
{
	struct inproc_process *p = &e->processes.v[i];
	struct wire_process *w = &e->list[p->index];
	struct err *err;

	if (p->attached) {
		__atomic_store_n(&w->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
		p->attached = false;
		p->exec_tries = EXEC_TRIES;
	}
	if (!sites_any(e, p->pid) && --p->exec_tries)
		return;
	process_free(p);
	*p = (struct inproc_process){ .pid = p->pid, .island_fd = -1, .execs = p->execs + 1 };
	inproc_note(e, "process %d executed another program: probes were off while it started",
		    (int)p->pid);
	unwind_add(e, p->pid);
	err = process_enter(e, i);
	if (err)
		inproc_note(e, "%s", err->text);
	err_free(err);
}

void processes_look(struct inproc_engine *e)
{
	(void)processes_adopt(e);
	for (uint32_t i = 0; i < e->processes.n; i++) {
		struct inproc_process *p = &e->processes.v[i];
		struct wire_process *w = &e->list[p->index];

		if (!p->attached && !p->exec_tries)
			continue;
		if (kill(p->pid, 0) && errno == ESRCH) { /* its slots are for others */
			__atomic_store_n(&w->state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
			p->attached = false;
			p->exec_tries = 0;
		} else if (!is_ours(e, p->pid)) {
			follow_exec(e, i);
		}
	}
}
