/* Fault handlers in a traced process. With them, a program's read of a bad address costs a signal,
 * and a read of a good one costs nothing. Without them every read is a system call. The kernel has
 * the agent's handler with the program's own flags and mask. The program's action stands in the
 * private memory, where the agent finds it (agent/signal.c). */
#include <signal.h>
#include <sys/syscall.h>

#include "load/inproc/memory/agent_blob.h"
#include "load/inproc/patch/inproc_patch.h"
#include "program/runtime/runtime.h"

enum { READ_USER = 112, READ_USER_STR = 114, COPY_FROM_USER = 148, SIGSET = 8 };

/* rt_sigaction(2)'s flags that <signal.h> has as int, or not at all. */
static const uint64_t SIGINFO = 0x4, RESTORER = 0x04000000, RESETHAND = 0x80000000;

/* Returns true when programs walk the frames of an interpreter, and so read its memory. A command
 * may not have loaded it yet. */
static bool walks_language(const struct inproc_engine *e, const struct mappings *maps)
{
	if (!e->languages || image_find_map(e->base.image, MAP_UNWIND) < 0)
		return false;
	for (uint32_t i = 0; i < maps->n; i++)
		if (maps->v[i].exec && maps->v[i].path &&
		    (runtime_is_library(maps->v[i].path) || runtime_is_program(maps->v[i].path)))
			return true;
	return false;
}

bool guard_wanted(const struct inproc_engine *e, const struct mappings *maps)
{
	if (walks_language(e, maps))
		return true;
	for (uint32_t i = 0; i < e->base.image->nprogs; i++) {
		const struct linked *l = &e->progs[i].linked;
		const struct image_prog *p = &e->base.image->progs[i];

		if (p->attach != ATTACH_UPROBE && p->attach != ATTACH_URETPROBE &&
		    p->attach != ATTACH_PROFILE && !inproc_is_syscall(p->attach))
			continue;
		for (uint32_t k = 0; k < l->ninsns; k++)
			if (l->insns[k].code == (BPF_JMP | BPF_CALL) && !l->insns[k].src_reg &&
			    (l->insns[k].imm == READ_USER || l->insns[k].imm == READ_USER_STR ||
			     l->insns[k].imm == COPY_FROM_USER))
				return true;
	}
	return false;
}

static struct wire_sigaction in_front_of(const struct inproc_engine *e,
					 const struct wire_sigaction *own)
{
	const uint32_t *entry = agent_blob()->entry;
	struct wire_sigaction a = { .handler = e->addr + entry[WIRE_AGENT_segv],
				    .restorer = e->addr + entry[WIRE_AGENT_restorer] };

	if (own->handler > (uintptr_t)SIG_IGN) {
		a.flags = own->flags & ~RESETHAND;
		a.mask = own->mask;
		if (own->flags & RESTORER)
			a.restorer = own->restorer;
	}
	a.flags |= SIGINFO | RESTORER;
	return a;
}

static struct err *install(struct inproc_engine *e, struct control *c, uint64_t scratch, int sig,
			   const struct wire_sigaction *own)
{
	const uint64_t set[6] = { (uint64_t)sig, scratch, 0, SIGSET };
	struct wire_sigaction front = in_front_of(e, own);
	int64_t r = 0;
	struct err *err = control_write(c, scratch, &front, sizeof(front));

	err = err ?: control_syscall(c, SYS_rt_sigaction, set, &r);
	if (!err && r)
		err = err_errno((int)-r, "rt_sigaction");
	return err;
}

/* Writes down the program's own actions before the kernel gets the agent's. The arguments of the
 * calls lie in descry's own memory there, so a tracer that is killed in between leaves nothing in
 * the program's memory. */
struct err *guard_install(struct inproc_engine *e, const struct inproc_process *p,
			  struct control *c)
{
	static const int signals[] = { [WIRE_SIGNAL_SEGV] = SIGSEGV, [WIRE_SIGNAL_BUS] = SIGBUS };
	uint64_t base = e->addr + WIRE_PRIVATE, bits = 0;
	uint64_t scratch = base + offsetof(struct wire_private, spare);
	struct err *err = NULL;

	for (int i = 0; i < 2 && !err; i++) {
		const uint64_t get[6] = { (uint64_t)signals[i], 0, scratch, SIGSET };
		struct wire_sigaction own;
		int64_t r = 0;

		err = control_syscall(c, SYS_rt_sigaction, get, &r);
		if (!err && r)
			err = err_errno((int)-r, "rt_sigaction");
		err = err ?: control_read(c, scratch, &own, sizeof(own));
		bits |= 1ull << i;
		for (int k = 0; k < 2 && !err; k++) {
			uint64_t at = base + (k ? WIRE_KEPT + offsetof(struct wire_kept, action)
						: offsetof(struct wire_private, action));

			err = control_write(c, at + (uint64_t)i * sizeof(own), &own, sizeof(own));
			at = base + (k ? WIRE_KEPT + offsetof(struct wire_kept, signals)
				       : offsetof(struct wire_private, signals));
			err = err ?: control_write(c, at, &bits, sizeof(bits));
		}
		err = err ?: install(e, c, scratch, signals[i], &own);
	}
	if (!err && p->guarded)
		e->area->reads_guarded = 1;
	return err;
}
