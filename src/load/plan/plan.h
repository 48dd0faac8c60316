/* Takes a bound program to a loaded one: chooses the engine, compiles the image for it, and goes on
 * to the next engine when this one may not run here. Reasons for the order:
 * doc/decisions/0012-inside-first.md.
 *
 * Order of calls: the given fields set, plan_begin(); plan_compile(), plan_load(), as long as
 * plan_next(); plan_fini().
 */
#ifndef DESCRY_LOAD_PLAN_PLAN_H
#define DESCRY_LOAD_PLAN_PLAN_H

#include "compile/bind/bind.h"
#include "compile/gen/gen.h"
#include "load/engine.h"
#include "program/target/named.h"

/* One attempt with an engine. */
struct attempt {
	const struct engine_type *type;
	enum engine_scope scope;
	bool split; /* the kernel's engine takes places that `type` cannot patch */
	/* does not trace the programs that a command starts; the attempt before would have */
	bool alone;
};

struct engine_plan {
	/* Set by the caller; borrowed. */
	const struct bound *bound;
	struct type_graph *types;
	struct symbols *symbols;
	struct languages *languages;
	struct diags *diags;
	struct options *options;
	const struct probe_target *named; /* the targets in the providers' form */
	struct target *targets;
	uint32_t ntargets;
	FILE *ir_out; /* for -d ir; NULL: not printed */
	/* as in struct engine_setting */
	void (*executed)(void *arg, int pid, struct control *c);
	void *executed_arg;
	/* Set by plan.c. */
	struct engine *engine;
	struct image *image;
	bool inside_only; /* only the named processes and their children are traced */
	/* Private to plan.c. */
	struct attempt tries[4];
	uint32_t ntries, at;
	bool *outside; /* by probe: it cannot be placed inside */
};

/* Before probes are matched: informs the providers of probes that the engines would refuse. */
void plan_advise(struct probe_set *set);
/* Returns the engine that -x engine names; NULL: plan_begin() chooses. */
const struct engine_type *plan_engine_named(const struct options *o);
/* Chooses the engines to try: the engine of -x engine, else `only` when it is not NULL. */
void plan_begin(struct engine_plan *p, const struct engine_type *only);
/* Makes engine and image. False: diagnostics have the reason. */
bool plan_compile(struct engine_plan *p);
/* Loads the image. measure: counts run time. */
struct err *plan_load(struct engine_plan *p, bool measure);
/* After a plan_load() that failed with *e. True: there is another engine to compile for; *e was
 * freed, and *ret_said is a message for the user (malloc()ed) or NULL. False: *e is the reason why
 * nothing runs. */
bool plan_next(struct engine_plan *p, struct err **e, char **ret_said);
/* Frees engine and image. */
void plan_fini(struct engine_plan *p);

#endif
