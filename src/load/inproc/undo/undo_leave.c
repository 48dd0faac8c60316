/* Moves threads out of the agent's wait for a detach (agent/agent_clone.c), to the system call that
 * they are about to make. */
#include "load/inproc/undo/undo_private.h"

/* The agent's code in which threads wait. */
struct wait_range {
	uint64_t lo, hi;
};

static bool find_wait(struct control *c, uint64_t base, struct wait_range *ret)
{
	struct wire_agent_head h;

	if (err_drop(control_read(c, base, &h, sizeof(h))) || h.magic != WIRE_AREA_MAGIC ||
	    h.version != WIRE_AREA_VERSION || h.nentries <= WIRE_AGENT_leave_end)
		return false;
	ret->lo = base + h.entry[WIRE_AGENT_leave_wait];
	ret->hi = base + h.entry[WIRE_AGENT_leave_end];
	return true;
}

/* Returns the instruction of a site that runs behind the stub's probes at an offset, 0: not known.
 * These probes stand between the offset of the instruction's own beginning and that of the next. */
static uint64_t comes_next(const struct wire_undo *u, uint64_t off)
{
	uint32_t best = WIRE_SITE_MAX;

	for (uint32_t k = 0; k <= u->len && k < WIRE_SITE_MAX; k++)
		if (u->moved[k] <= off && (best == WIRE_SITE_MAX || u->moved[k] >= u->moved[best]))
			best = k;
	return best < WIRE_SITE_MAX && u->len < WIRE_SITE_MAX ? u->site + best : 0;
}

static void move_one(struct control *c, const struct undo_log *log, struct control_thread *t,
		     uint32_t *moved)
{
	struct wire_leaving w;
	const struct wire_undo *u;
	uint64_t to;

	if (err_drop(control_read(c, t->regs.rsp, &w, sizeof(w))))
		return;
	u = undo_record_at(log, w.back);
	to = u ? comes_next(u, w.back - u->stub) : 0;
	if (!to || w.skip > 128)
		return; /* it leaves by itself */
	t->regs.rsp += sizeof(w) + w.skip;
	t->regs.rip = to;
	t->regs.eflags = w.flags;
	t->regs.rax = w.rax;
	t->regs.rcx = w.rcx;
	t->regs.rdx = w.rdx;
	t->regs.rsi = w.rsi;
	t->regs.rdi = w.rdi;
	t->regs.r8 = w.r8;
	t->regs.r9 = w.r9;
	t->regs.r10 = w.r10;
	t->regs.r11 = w.r11;
	t->regs.orig_rax = (uint64_t)-1; /* the nap is over */
	t->in_syscall = false;
	t->changed = true;
	++*moved;
}

struct err *undo_move_leaving(struct control *c, const struct undo_log *log, uint32_t *moved)
{
	struct wait_range wait;
	uint32_t n;
	struct control_thread *t = control_threads(c, &n);

	if (!find_wait(c, log->base, &wait))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		if (t[i].regs.rip >= wait.lo && t[i].regs.rip < wait.hi && !t[i].blocked &&
		    control_is_64bit(&t[i].regs))
			move_one(c, log, &t[i], moved);
	return control_put_regs(c);
}
