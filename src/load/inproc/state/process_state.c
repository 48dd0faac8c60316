/* The present state of a process: the kernel's facts, and whether this tracer's memory is mapped in
 * it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procdir.h"
#include "base/procmem.h"
#include "base/procstatus.h"
#include "load/inproc/state/process_state.h"
#include "load/inproc/undo/undo.h"

/* --- descry's memory --- */

/* Returns true when exactly the facts' addresses are one mapping of the process. */
static bool has_facts_range(const struct inproc_engine *e, pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/map_files/%llx-%llx", (int)pid,
					    (unsigned long long)e->addr + WIRE_FACTS,
					    (unsigned long long)e->addr + WIRE_SHARED);
	struct stat st;

	return !lstat(path, &st);
}

/* Returns true when the process cannot have the area, without reading its list of mappings, which
 * it can make long. The tracer has the same range, so a kernel that does not list it is noticed. A
 * process whose main thread has ended shows none. */
static bool has_none(const struct inproc_engine *e, pid_t pid)
{
	return !has_facts_range(e, pid) && has_facts_range(e, getpid()) &&
	       procstatus_of(pid, "VmSize", 0);
}

struct process_life {
	uint64_t started; /* procdir_start() */
	uint64_t pid;
};

/* Returns true when the process has the memory as a traced process has it. Returns false for the
 * tracer and its watchdog, whose numbers a traced process may give as those of its children. Looks
 * at a process once in a round, because shared memory may give its number any number of times. */
bool process_has_area(const struct inproc_engine *e, pid_t pid)
{
	const struct process_life life = { procdir_start(pid), (uint64_t)pid };
	uint64_t *known;
	bool has;

	if (pid == getpid() || (uint32_t)pid == e->area->watchdog_pid || has_none(e, pid))
		return false;
	known = e->family.looked ? hash_get(e->family.looked, &life, sizeof(life)) : NULL;
	if (known)
		return *known;
	has = undo_is_child(pid, e->addr, e->files.facts.inode, e->files.code.inode);
	if (e->family.looked)
		*hash_put(e->family.looked, &life, sizeof(life), NULL) = has;
	return has;
}

bool process_is_attached(const struct inproc_engine *e, pid_t pid)
{
	for (uint32_t i = 0; i < e->processes.n; i++)
		if (e->processes.v[i].pid == pid && e->processes.v[i].attached)
			return true;
	return false;
}

void process_open(struct inproc_process *p)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", (int)p->pid);

	p->mem = open(path, O_RDONLY | O_CLOEXEC);
}

void process_walk(struct inproc_engine *e, const struct inproc_process *p)
{
	struct wire_unwind_process *list = (struct wire_unwind_process *)e->area->unwinds;

	for (uint32_t i = 0; i < e->walks.n && list && p->index; i++) {
		if (e->walks.v[i].pid != p->pid)
			continue;
		list[p->index] = e->walks.v[i].how;
		__atomic_store_n(&e->said[p->index].unwind_asked, 0, __ATOMIC_RELEASE);
	}
}

/* The words that distinguish this tracer's memory from another tracer's at the same addresses: the
 * tracer's number and its last heartbeat. */
struct whose {
	uint32_t tracer_pid, watchdog_pid;
	uint64_t heartbeat;
};
_Static_assert(offsetof(struct wire_area, heartbeat) - offsetof(struct wire_area, tracer_pid) ==
		       offsetof(struct whose, heartbeat),
	       "one piece of struct wire_area");

static bool is_ours(const struct inproc_engine *e, const struct whose *w)
{
	return !memcmp(w, &e->area->tracer_pid, sizeof(*w));
}

/* Checks the private mapping, which is unmapped first, and the shared one, which is unmapped
 * last. */
static bool read_whose(const struct inproc_engine *e, pid_t pid, struct whose *ret)
{
	uint8_t byte;

	return procmem_read(pid, &byte, 1, e->addr + WIRE_PRIVATE) == 1 &&
	       procmem_read(pid, ret, sizeof(*ret), (uintptr_t)&e->area->tracer_pid) ==
		       sizeof(*ret);
}

bool process_holds(const struct inproc_engine *e, pid_t pid)
{
	struct whose w;

	return read_whose(e, pid, &w) && is_ours(e, &w);
}

bool process_was_undone(const struct inproc_engine *e, const struct inproc_process *p)
{
	struct whose w;
	uint8_t byte;
	ssize_t n;

	if (p->mem < 0)
		return false;
	n = procmem_pread(p->pid, p->mem, &byte, 1, e->addr + WIRE_PRIVATE);
	if (n == 1)
		n = procmem_pread(p->pid, p->mem, &w, sizeof(w), (uintptr_t)&e->area->tracer_pid);
	return n < 0 ? errno == EIO : n && !is_ours(e, &w);
}

/* Returns true when the memory is gone from the process. Memory that cannot be read may still be
 * there. */
static bool is_gone(const struct inproc_engine *e, pid_t pid)
{
	struct whose w;

	errno = EFAULT; /* a part of it */
	if (read_whose(e, pid, &w))
		return !is_ours(e, &w);
	if (errno != EPERM)
		return errno == EFAULT;
	return !process_has_area(e, pid) && procstatus_of(pid, "VmSize", 0); /* no zombie */
}

bool process_is_ours(const struct inproc_engine *e, pid_t pid)
{
	return !is_gone(e, pid);
}
