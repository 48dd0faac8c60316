/* Chooses the engines for a program, compiles for one and loads it, then tries the next when it
 * fails. */
#include "load/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/procdir.h"
#include "load/host.h"
#include "load/inproc/memory/owner.h"
#include "load/split/split.h"
#include "program/runtime/runtime.h"

/* In the order of the words of -x engine, behind "auto". */
static const struct engine_type *const types[] = { &engine_kernel, &engine_interp, &engine_inproc };

void plan_advise(struct probe_set *set)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i]->advise)
			types[i]->advise(set);
}

const struct engine_type *plan_engine_named(const struct options *o)
{
	int64_t n = opt_num(o, OPT_ENGINE);

	return n ? types[n - 1] : NULL;
}

/* Returns true when all probes lie in the named processes, so that they can be traced from
 * inside. */
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
	return is_proc(p) && engine_interp.can(p);
}

static bool may_be_told(const struct probe *p)
{
	return is_proc(p) || engine_interp.can(p);
}

static bool is_seen_inside(const struct probe *p)
{
	return p->kind != ATTACH_SELF && engine_inproc.can(p);
}

static bool may_be_inside(const struct probe *p)
{
	return is_proc(p) || engine_inproc.can(p);
}

/* Returns true when the interpreter can run the program without the kernel's help. It may leave out
 * the probes of proc for which it receives no events. */
static bool without_kernel(const struct bound *b)
{
	return every(b, may_be_told) && some(b, is_told);
}

/* Returns true when the program can run inside the named processes without the kernel's help. It
 * then sees system calls and samples of these processes only, and may leave out probes of proc. */
static bool from_inside(const struct bound *b)
{
	return every(b, may_be_inside) && some(b, is_seen_inside);
}

static bool is_anybodys(const struct probe *p)
{
	return p->kind != ATTACH_TICK && p->kind != ATTACH_UPROBE && p->kind != ATTACH_URETPROBE &&
	       is_seen_inside(p);
}

/* Returns true when there are probes that fire in any process with the kernel's engine, and that
 * can also fire inside processes. Then children of a command are traced as well. */
static bool reaches_children(const struct bound *b)
{
	return some(b, is_anybodys);
}

static bool is_syscall(const struct probe *p)
{
	return p->kind == ATTACH_SYSCALL_ENTRY || p->kind == ATTACH_SYSCALL_RETURN;
}

static bool sees_syscalls(const struct bound *b)
{
	return some(b, is_syscall);
}

/* Returns true when a target belongs to another user, or has privileges that descry lacks. The user
 * must request tracing such a process from inside, because it shares memory with descry. */
static bool are_strange(const struct target *targets, uint32_t ntargets)
{
	bool strange = false;

	for (uint32_t i = 0; i < ntargets; i++)
		strange |= owner_is_stranger(targets[i].pid);
	return strange;
}

/* Returns true when descry's mappings could make a target's own fail, and the kernel's engine can
 * trace it, which has none there. */
static bool are_short_of_room(const struct target *targets, uint32_t ntargets)
{
	bool is_short = false;

	for (uint32_t i = 0; i < ntargets; i++)
		is_short |= owner_is_short_of_room(targets[i].pid);
	return is_short && engine_kernel.permitted();
}

/* Chooses in this order: from inside when that covers the whole program; the kernel's engine; from
 * inside for the possible part, or the interpreter for the events that descry itself receives. A
 * caller may follow processes into the programs that they execute. For it each possible part from
 * inside comes before the kernel's engine, which cannot do that. */
static void choose(struct engine_plan *p)
{
	const struct bound *b = p->bound;
	bool strange = are_strange(p->targets, p->ntargets) ||
		       are_short_of_room(p->targets, p->ntargets);
	bool inside = p->ntargets && from_inside(b) && !strange, told = without_kernel(b);
	const bool named = !strange && inside_targets(b, p->targets, p->ntargets);
	const bool enters = p->executed && opt_on(p->options, OPT_FOLLOW);
	struct attempt *next = p->tries;

	if (enters && (inside || named)) {
		if (named && bound_is_separable(b) && engine_kernel.permitted()) {
			*next++ = (struct attempt){ &engine_inproc, ENGINE_EVERY_ONE };
			*next++ = (struct attempt){ &engine_inproc, ENGINE_NEARLY_ALL, true };
		}
		*next++ = (struct attempt){ &engine_inproc };
		*next++ = (struct attempt){ &engine_kernel };
	} else if (named) {
		if (bound_is_separable(b) && engine_kernel.permitted()) {
			*next++ = (struct attempt){ &engine_inproc, ENGINE_EVERY_ONE };
			*next++ = (struct attempt){ &engine_inproc, ENGINE_NEARLY_ALL, true };
		} else {
			*next++ = (struct attempt){ &engine_inproc, ENGINE_NEARLY_ALL };
		}
		*next++ = (struct attempt){ &engine_kernel };
		*next++ = (struct attempt){ &engine_inproc };
	} else {
		*next++ = (struct attempt){ &engine_kernel };
		if (told && (every(b, engine_interp.can) || !inside))
			*next++ = (struct attempt){ &engine_interp };
		if (inside)
			*next++ = (struct attempt){ &engine_inproc };
		if (inside && !opt_on(p->options, OPT_FOLLOW))
			*next++ = (struct attempt){ &engine_inproc, .alone = true };
	}
	p->ntries = (uint32_t)(next - p->tries);
}

void plan_begin(struct engine_plan *p, const struct engine_type *only)
{
	const struct engine_type *named = plan_engine_named(p->options);

	if (named || only) {
		p->tries[0] = (struct attempt){ named ? named : only };
		p->ntries = 1;
	} else {
		choose(p);
	}
}

static bool any_target(const struct engine_plan *p, bool command)
{
	for (uint32_t i = 0; i < p->ntargets; i++)
		if (p->targets[i].command == command)
			return true;
	return false;
}

/* Returns true when children of the named processes are traced from inside. They are with -x
 * follow. They also are for a command when the in-process engine stands in for the kernel's, which
 * sees every process. */
static bool is_family(const struct engine_plan *p, const struct attempt *t)
{
	return opt_on(p->options, OPT_FOLLOW) ||
	       (t->type->target.inside && !t->scope && !t->alone &&
		!plan_engine_named(p->options) && any_target(p, true) &&
		reaches_children(p->bound));
}

/* Returns true when one of the named processes has the runtime. A command and its children, and the
 * processes of the machine, may have it when this machine has it. */
static bool meets(const struct engine_plan *p, const struct runtime_type *type)
{
	bool any = !p->ntargets || opt_on(p->options, OPT_FOLLOW);

	for (uint32_t i = 0; i < p->ntargets; i++) {
		if (runtime_is_in(type, p->named[i].pid))
			return true;
		any |= p->named[i].is_command;
	}
	return any && runtime_is_here(type);
}

static bool meets_java(const void *arg)
{
	return meets(arg, &runtime_jvm);
}

static bool meets_javascript(const void *arg)
{
	return meets(arg, &runtime_v8);
}

/* Returns true when the first thread of a named process has ended while others run. */
static bool lost_first_thread(const struct engine_plan *p)
{
	for (uint32_t i = 0; i < p->ntargets; i++)
		if (procdir_living_thread(p->named[i].pid) != p->named[i].pid)
			return true;
	return false;
}

static struct image *make_image(struct engine_plan *p, const struct engine_type *type)
{
	struct compile_target target = type->target;

	target.find_cpus = host_find_cpus;
	target.find_clocks = host_find_clocks;
	if (!target.inside) {
		target.meets_java = meets_java;
		target.meets_javascript = meets_javascript;
		target.meets_arg = p;
	}
	target.family = target.inside && is_family(p, &p->tries[p->at]);
	target.compares = !target.inside && lost_first_thread(p);
	return compile_image(p->bound, p->types, p->diags, p->options, &target, p->ir_out);
}

/* Adds a second image for the kernel's engine, for the places that cannot be patched. Returns false
 * when compiling fails; diagnostics have the reason. */
static bool split(struct engine_plan *p, const struct engine_setting *setting)
{
	struct image *outer = make_image(p, &engine_kernel);

	if (outer && image_is_alike(p->image, outer)) {
		p->engine = engine_split_new(p->engine, engine_kernel.new(setting), p->image, outer,
					     p->outside);
		p->inside_only = false;
	} else {
		image_free(outer);
	}
	return outer != NULL;
}

bool plan_compile(struct engine_plan *p)
{
	const struct attempt *t = &p->tries[p->at];
	struct engine_setting setting = {
		.targets = p->named,
		.ntargets = p->ntargets,
		.symbols = p->symbols,
		.languages = p->languages,
		.scope = t->scope,
		.executed = p->executed,
		.executed_arg = p->executed_arg,
	};

	p->engine = t->type->new (&setting);
	p->inside_only = t->type->target.inside;
	p->image = make_image(p, t->type);
	return p->image && (!t->split || split(p, &setting));
}

/* Returns true when it is worth trying another engine. */
static bool is_for_another(const struct err *e, const struct attempt *t)
{
	return t->scope || t->type == &engine_interp || e->code == EPERM || e->code == EACCES ||
	       e->code == ENOSYS || e->code == ECHILD;
}

/* Returns true when plan_next() goes on to another attempt after this error. */
static bool goes_on(const struct engine_plan *p, const struct err *e)
{
	const struct attempt *t = &p->tries[p->at];

	return p->at + 1 < p->ntries && is_for_another(e, t) && (!t[1].alone || e->code == ECHILD);
}

struct err *plan_load(struct engine_plan *p, bool measure)
{
	const struct engine_ops *ops = p->engine->ops;
	struct diags_mark before = diags_mark(p->diags);
	struct err *e = NULL;

	for (uint32_t i = 0; i < p->ntargets && ops->hold && !e; i++)
		e = target_to_entry(&p->targets[i]);
	for (uint32_t i = 0; i < p->ntargets && ops->hold; i++)
		if (p->targets[i].control)
			ops->hold(p->engine, p->targets[i].control);
	if (!e && ops->ready)
		e = ops->ready(p->engine, p->image);
	if (!e)
		e = ops->load(p->engine, p->image, measure);
	/* The kernel does not permit an action. The next engine may. */
	if (e && e->code == EPERM && goes_on(p, e))
		diags_forget(p->diags, before);
	return e;
}

/* Returns a message that another engine traces less than the kernel's would. The message is printed
 * even with -q, because the output does not show that parts are missing. */
static char *say_instead(const struct engine_plan *p, const struct err *why,
			 const struct attempt *t)
{
	const char *seen = "probes of proc come from the process connector", *begun = "";

	if (t->type->target.inside) {
		seen = is_family(p, t)
			       ? any_target(p, false)
					 ? "from inside the named processes and the programs that they start from now on; other processes are not traced"
					 : "from inside the command and the programs that it starts; other processes are not traced"
			       : "from inside the named processes only, without the programs that they start (-x follow adds those that start from now on)";
		if (sees_syscalls(p->bound) && is_family(p, t))
			begun = "; system calls that a program's dynamic linker makes before it has loaded the libraries are not seen";
	}
	return xasprintf("%s; tracing without the kernel's engine: %s%s", why->text, seen, begun);
}

/* Adds to e what works without the kernel's engine. The kernel's engine was refused, and no other
 * was tried. */
static struct err *say_what_works(const struct engine_plan *p, struct err *e)
{
	const char *what =
		are_strange(p->targets, p->ntargets)
			? "descry traces another user's process from inside only with -x engine=inproc"
			: "without it, pid and USDT probes, system calls, proc and samples of your own processes "
			  "(-p, -c) work";
	struct err *more = err_new(e->code, "%s; %s", e->text, what);

	err_free(e);
	return more;
}

/* Collects the probes that the failed attempt could not place, for the split attempt. Returns false
 * when there are none. */
static bool may_be_split(struct engine_plan *p)
{
	free(p->outside);
	p->outside = xcalloc(p->image->nprobes + 1, sizeof(*p->outside));
	return p->engine->ops->left_out(p->engine, p->outside);
}

static void forget_attempt(struct engine_plan *p)
{
	if (p->engine)
		p->engine->ops->free(p->engine);
	image_free(p->image);
	p->engine = NULL;
	p->image = NULL;
}

bool plan_next(struct engine_plan *p, struct err **e, char **ret_said)
{
	const struct attempt *t = &p->tries[p->at];
	bool first = !p->at;

	*ret_said = NULL;
	if (!goes_on(p, *e)) {
		if (p->ntries == 1 && !plan_engine_named(p->options) &&
		    is_for_another(*e, &(struct attempt){ &engine_kernel }))
			*e = say_what_works(p, *e);
		return false;
	}
	if (t->type == (first ? &engine_kernel : &engine_interp))
		*ret_said = say_instead(p, *e, t + 1);
	else if (t[1].alone)
		*ret_said = xasprintf("%s; programs that the command starts are not traced",
				      (*e)->text);
	err_free(*e);
	*e = NULL;
	p->at++;
	if (p->tries[p->at].split && !may_be_split(p))
		p->at++;
	forget_attempt(p);
	return true;
}

void plan_fini(struct engine_plan *p)
{
	forget_attempt(p);
	free(p->outside);
	p->outside = NULL;
}
