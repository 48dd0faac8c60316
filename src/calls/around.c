/* What happens around library calls: system calls and signals. They are part of the program of the
 * library calls, or of a program of their own, for another engine. */
#include <string.h>

#include "calls/find_private.h"
#include "wire/inproc.h"

static void take_syscall(void *arg, struct probe *p)
{
	struct calls *c = arg;
	struct calls_function *fn;

	/* The kernel's own way back from a uretprobe is no call of the program. */
	if (p->unavailable || !strcmp(p->func, "uretprobe"))
		return;
	fn = find_function(c, p->func, 's');
	if (!fn || fn->syscall)
		return;
	fn->syscall = true;
	fn->name = arena_printf(&c->arena, "SYS_%s", p->func);
	if (prototypes_find(c->prototypes, fn->name))
		fn->prototype = prototypes_find(c->prototypes, fn->name);
	vec_push(&fn->entries, arena_printf(&c->arena, "syscall::%s:entry", p->func));
	vec_push(&fn->returns, arena_printf(&c->arena, "syscall::%s:return", p->func));
}

/* Returns a condition that holds for all targets, for which `each` has one %d. */
static const char *any_of(struct calls *c, const struct probe_set *of, const char *each)
{
	const char *any = "";

	for (uint32_t i = 0; i < of->targets.n; i++) {
		const char *one = arena_strdup(&c->arena, each);
		const char *d = strstr(one, "%d");

		any = arena_printf(&c->arena, "%s%s%.*s%d%s", any, i ? " || " : "", (int)(d - one),
				   one, (int)of->targets.v[i].pid, d + 2);
	}
	return any;
}

#define OURS_SIZE (WIRE_BASES * WIRE_BASE_STEP)

/* Leaves out the system calls that descry makes in the process: while it holds it by ptrace(2), by
 * the agent's code, and at a bell, where r8 points to shared memory (load/inproc/patch/bell.c). The
 * linker's calls in an executed program are among the first. Returns without an entry are not
 * shown. */
static const char ours[] = " && !curthread->ptrace && uregs[R_RIP] - %#llx >= %#llx &&\n"
			   "uregs[R_R8] - %#llx >= %#llx";

struct err *find_around(struct calls *c, struct probe_set *ps, const struct probe_set *of)
{
	const struct probe_desc pd = { "syscall", "", "", "entry" };
	uint32_t n;

	c->ours = "";
	c->whose = any_of(c, of, c->o->threads ? "progenyof(%d)" : "pid == %d");
	if (c->around)
		c->ours = arena_printf(&c->arena, ours, WIRE_BASE, OURS_SIZE, WIRE_BASE, OURS_SIZE);
	c->receiver = any_of(c, of, "args[1]->pr_pid == %d");
	if (c->inside)
		c->whose = "1";
	else if (ps == of && ps->targets.n == 1)
		c->whose = c->o->threads ? "progenyof($target)" : "pid == $target";
	return c->sees.syscalls ? probe_match(ps, &pd, take_syscall, c, &n) : NULL;
}

struct err *calls_find_around(struct calls *c, struct probe_set *ps, const struct probe_set *of)
{
	c->main_thread = of->targets.n == 1 ? (uint32_t)of->targets.v[0].pid : 0;
	return find_around(c, ps, of);
}
