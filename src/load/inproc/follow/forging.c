/* Limits the effects of forged shared memory.
 *
 * Actions: for records of a process, descry carries out system() and freopen() outside of it. A
 * process can forge the records of the clauses that it runs, and the variables from which the
 * tracer's clauses take arguments. So forging_check() decides when the program is loaded whether
 * such actions are permitted. Where descry has no privileges, forging_look() also watches for
 * processes that give up rights.
 *
 * Addresses: followed children write the same variables as their parents, and processes that are
 * named together share theirs. A process that has given up privileges could choose where descry
 * reads or writes the memory of another one that still has them. forging_check_addresses() refuses
 * such programs.
 */
#include <errno.h>

#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/memory/owner.h"

static bool is_forgeable(const struct segment *s)
{
	bool any = false;

	for (uint32_t k = 0; k < s->nactions; k++)
		any |= (s->actions[k].kind == ACT_SYSTEM || s->actions[k].kind == ACT_FREOPEN) &&
		       (!s->own || s->actions[k].nfields);
	return any;
}

static bool any_privileged(const struct inproc_engine *e)
{
	bool any = false;

	for (uint32_t i = 0; i < e->named.ntargets; i++)
		any |= owner_has_privileges(e->named.targets[i].pid);
	return any;
}

/* With privileges, descry permits no such action for any process. A process may give up its
 * privileges while it is traced, write records and end before descry sees that. A child that descry
 * does not know may do the same. */
struct err *forging_check(struct inproc_engine *e)
{
	const struct image *img = e->base.image;

	e->trust.privileged = any_privileged(e);
	for (uint32_t i = 0; i < img->nsegments; i++)
		e->trust.forgeable |= is_forgeable(&img->segments[i]);
	if (!e->trust.forgeable || !e->named.ntargets)
		return NULL;
	if (owner_is_privileged())
		return err_new(
			ENOTSUP,
			"descry runs as root or with capabilities, and a process that is traced from inside could choose the command of system() or the file of freopen(): in-process, only BEGIN, END and tick probes may use these, without arguments; use -x engine=kernel, or run descry without privileges");
	for (uint32_t i = 0; i < e->named.ntargets; i++)
		if (!owner_is_us(e->named.targets[i].pid))
			return err_new(
				ENOTSUP,
				"process %d is another user's, or has other privileges, name spaces or limits (seccomp, no_new_privs) than descry, and could choose the command of system() or the file of freopen(): in-process, only BEGIN, END and tick probes may use these, without arguments; use -x engine=kernel",
				(int)e->named.targets[i].pid);
	return NULL;
}

bool forging_steered(const struct inproc_engine *e)
{
	const struct image *img = e->base.image;
	bool any = false;

	/* in the tracer no address leads to other memory */
	for (uint32_t i = 0; i < img->nprogs && e->area->together && e->trust.privileged; i++)
		any |= e->progs[i].code.steered && img->progs[i].attach != ATTACH_SELF &&
		       img->progs[i].attach != ATTACH_TICK;
	return any;
}

struct err *forging_check_addresses(const struct inproc_engine *e)
{
	if (!forging_steered(e))
		return NULL;
	if (e->named.ntargets > 1)
		return err_new(
			EPERM,
			"in-process, one of the named processes that gives up root's rights or capabilities could choose addresses that the program takes from "
			"variables or from what it has copied: such a program is for one process at a time; use -x engine=kernel, a descry for each process, or "
			"take addresses from arguments, self-> and this->");
	return err_new(
		ECHILD,
		"in-process, a child that gives up root's rights or capabilities could choose addresses that the program takes from variables or from what it "
		"has copied: such a program does not follow children; use -x engine=kernel, or take addresses from arguments, self-> and this->");
}

void forging_left(struct inproc_engine *e, pid_t pid)
{
	if (!e->trust.forgeable || e->trust.estranged)
		return;
	e->trust.estranged = true;
	inproc_blind(
		e,
		"process %d has unmapped descry's memory, or now has other privileges, name spaces or limits (seccomp, no_new_privs), so descry no longer runs system() and freopen()",
		(int)pid);
}

/* All processes write the memory that contains all records. */
void forging_look(struct inproc_engine *e)
{
	for (uint32_t i = 0; e->trust.forgeable && !e->trust.estranged && i < e->processes.n; i++) {
		const struct inproc_process *p = &e->processes.v[i];

		if (p->attached && owner_has_left(p->pid, e->list[p->index].started))
			forging_left(e, p->pid);
	}
}

bool forging_refuses(const struct inproc_engine *e, const struct wire_record *r)
{
	const struct image *img = e->base.image;

	return e->trust.estranged && r->segment < img->nsegments &&
	       is_forgeable(&img->segments[r->segment]);
}
