#include "choice.h"

#include <string.h>

#include "host.h"
#include "load/inproc/owner.h"

/* Do all probes lie in the processes that are named, so that they can be traced from inside? */
static bool inside_targets(const struct bound *b, const struct target *targets, uint32_t n)
{
	for (uint32_t i = 0; i < b->clauses.n; i++) {
		const struct bound_clause *cl = b->clauses.v[i];

		for (uint32_t k = 0; k < cl->nprobes; k++) {
			const struct probe *p = cl->probes[k];
			bool named = false;

			for (uint32_t t = 0; t < n; t++)
				named |= p->pid == targets[t].pid;
			switch (p->kind) {
			case ATTACH_SELF:
			case ATTACH_TICK: break;
			case ATTACH_UPROBE:
			case ATTACH_URETPROBE:
				if (named)
					break;
				/* fall through */
			default: return false;
			}
		}
	}
	return n > 0;
}

static bool every(const struct bound *b, bool (*holds)(const struct probe *p))
{
	for (uint32_t i = 0; i < b->clauses.n; i++)
		for (uint32_t k = 0; k < b->clauses.v[i]->nprobes; k++)
			if (!holds(b->clauses.v[i]->probes[k]))
				return false;
	return true;
}

static bool some(const struct bound *b, bool (*holds)(const struct probe *p))
{
	for (uint32_t i = 0; i < b->clauses.n; i++)
		for (uint32_t k = 0; k < b->clauses.v[i]->nprobes; k++)
			if (holds(b->clauses.v[i]->probes[k]))
				return true;
	return false;
}

static bool is_proc(const struct probe *p)
{
	return !strcmp(p->prov, "proc");
}

static bool is_told(const struct probe *p)
{
	return is_proc(p) && engine_interp_can(p);
}

static bool may_be_told(const struct probe *p)
{
	return is_proc(p) || engine_interp_can(p);
}

static bool is_seen_inside(const struct probe *p)
{
	return p->kind != ATTACH_SELF && engine_inproc_can(p);
}

static bool may_be_inside(const struct probe *p)
{
	return is_proc(p) || engine_inproc_can(p);
}

/* Can the interpreter do it truly, for want of the kernel? Of proc it may leave out what nobody
 * tells it of. */
static bool without_kernel(const struct bound *b)
{
	return every(b, may_be_told) && some(b, is_told);
}

/* Can it be had from inside the named processes, for want of the kernel? System calls and samples
 * are then theirs alone; of proc some may be left out. */
static bool from_inside(const struct bound *b)
{
	return every(b, may_be_inside) && some(b, is_seen_inside);
}

static bool is_anybodys(const struct probe *p)
{
	return p->kind != ATTACH_TICK && p->kind != ATTACH_UPROBE && p->kind != ATTACH_URETPROBE &&
	       is_seen_inside(p);
}

bool engines_reach_children(const struct bound *b)
{
	return some(b, is_anybodys);
}

static bool is_syscall(const struct probe *p)
{
	return p->kind == ATTACH_SYSCALL_ENTRY || p->kind == ATTACH_SYSCALL_RETURN;
}

bool engines_see_syscalls(const struct bound *b)
{
	return some(b, is_syscall);
}

bool engines_are_strange(const struct target *targets, uint32_t ntargets)
{
	bool strange = false;

	for (uint32_t i = 0; i < ntargets; i++)
		strange |= owner_is_stranger(targets[i].pid);
	return strange;
}

/* From inside when that does all of it, else the kernel's, else from inside what can be, or what
 * descry itself can be told of. */
uint32_t engines_choose(const struct bound *b, const struct target *targets, uint32_t ntargets,
			enum engine_kind ret[ENGINES_TRIED])
{
	bool strange = engines_are_strange(targets, ntargets);
	bool inside = ntargets && from_inside(b) && !strange, told = without_kernel(b);
	uint32_t n = 0;

	if (!strange && inside_targets(b, targets, ntargets)) {
		if (bound_is_separable(b) && engine_kernel_permitted()) {
			ret[n++] = ENGINE_INPROC_EVERY;
			ret[n++] = ENGINE_SPLIT;
		} else {
			ret[n++] = ENGINE_INPROC_ALL;
		}
		ret[n++] = ENGINE_KERNEL;
		ret[n++] = ENGINE_INPROC;
		return n;
	}
	ret[n++] = ENGINE_KERNEL;
	if (told && (every(b, engine_interp_can) || !inside))
		ret[n++] = ENGINE_INTERP;
	if (inside)
		ret[n++] = ENGINE_INPROC;
	return n;
}

bool engine_is_inside(enum engine_kind k)
{
	return k == ENGINE_INPROC || k == ENGINE_INPROC_ALL || k == ENGINE_INPROC_EVERY ||
	       k == ENGINE_SPLIT;
}

struct compile_target engine_compile_target(enum engine_kind k)
{
	return (struct compile_target){
		.find_cpus = host_find_cpus,
		.find_clocks = host_find_clocks,
		.task_btf = k == ENGINE_KERNEL,
		.unwind = k != ENGINE_INTERP,
		.maps_max = k == ENGINE_KERNEL ? PROG_MAPS_MAX : 0,
		.fentry_max = k == ENGINE_KERNEL ? engine_kernel_fentry_max : NULL,
		.sleeps = k == ENGINE_KERNEL ? engine_kernel_sleeps : NULL,
		.inside = engine_is_inside(k),
	};
}
