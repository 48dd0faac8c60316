/* Detaches from processes in which descry cannot stay: before they make a process in their memory,
 * or a thread that cannot be distinguished from another, or lock their memory
 * (agent/agent_clone.c), and when such a process is found that the agent has not seen. */
#include "base/clock.h"
#include "load/inproc/attach/inproc_attach.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/memory/pace.h"

enum {
	SEARCH_NS = 300000000, /* between two searches of /proc, at least */
	SEARCH_SHARE = 50,     /* ... and as many times what the last one took */
};

static const char *reason_of(uint32_t leaves)
{
	switch (leaves) {
	case WIRE_LEAVES_SHARES:
		return "another process runs in its memory (clone(2) with CLONE_VM)";
	case WIRE_LEAVES_THREAD:
		return "it makes a thread that cannot be distinguished from others (clone(2) without a C library's thread pointer)";
	default: return "it locks all its memory (mlockall(2))";
	}
}

/* Returns true for a process that can be stopped now. */
static bool can_leave(const struct inproc_engine *e, const struct inproc_process *p)
{
	return p->attached && !p->served && !execs_pending(e, p->pid);
}

static void detach_now(struct inproc_engine *e, struct inproc_process *p, uint32_t leaves)
{
	struct err *err = process_detach(e, p);

	if (!err)
		__atomic_store_n(&e->list[p->index].state, WIRE_PROCESS_GONE, __ATOMIC_RELEASE);
	p->stays = err != NULL;
	forging_left(e, p->pid);
	inproc_blind(e, "process %d is not traced any more: %s; -x engine=kernel can trace it",
		     (int)p->pid, reason_of(leaves));
	if (err) /* tried again at the end */
		inproc_note(e, "%s", err->text);
	err_free(err);
}

void leaving_look(struct inproc_engine *e)
{
	const uint64_t begun = now_ns();
	struct inproc_process *p;
	pid_t sharer;

	for (uint32_t i = 0; i < e->processes.n; i++) {
		const uint32_t leaves =
			__atomic_load_n(&e->said[e->processes.v[i].index].leaves, __ATOMIC_ACQUIRE);

		if (leaves && can_leave(e, &e->processes.v[i]))
			detach_now(e, &e->processes.v[i], leaves);
	}
	if (!e->processes.n || begun < e->family.sharers_next)
		return;
	p = &e->processes.v[e->family.sharers_at++ % e->processes.n];
	if (can_leave(e, p) && control_memory_sharers(p->pid, &sharer, 1))
		detach_now(e, p, WIRE_LEAVES_SHARES);
	e->family.sharers_next = begun + SEARCH_NS + (now_ns() - begun) * SEARCH_SHARE;
}
