/* A bound program -> one that is loaded: which engine runs it, the image compiled for that engine,
 * and the next engine when this one may not run here. Why in this order:
 * doc/decisions/0012-inside-first.md.
 *
 * Order of calls: the given fields set, plan_begin(); plan_compile(), plan_load(), as long as
 * plan_next(); plan_fini().
 */
#ifndef DESCRY_LOAD_PLAN_H
#define DESCRY_LOAD_PLAN_H

#include "compile/bind/bind.h"
#include "compile/ir/gen.h"
#include "load/engine.h"
#include "program/target/named.h"

/* One engine that is tried. */
struct attempt {
	const struct engine_type *type;
	enum engine_scope scope;
	bool split; /* the kernel's engine has the places that `type` cannot patch; after ENGINE_EVERY_ONE */
};

struct engine_plan {
	/* Given; borrowed. */
	const struct bound *bound;
	struct type_graph *types;
	struct symbols *symbols;
	struct diags *diags;
	struct options *options;
	const struct probe_target *named; /* the targets as the providers know them */
	struct target *targets;
	uint32_t ntargets;
	FILE *ir_out; /* -d ir; NULL nowhere */
	/* Made. */
	struct engine *engine;
	struct image *image;
	bool inside_only; /* only the named processes are traced, and what they start */
	/* Private to plan.c. */
	struct attempt tries[4];
	uint32_t ntries, at;
	bool *outside; /* by probe: cannot be placed from inside */
};

/* Before probes are looked for: lets the providers know what the engines would refuse. */
void plan_advise(struct probe_set *set);
/* The engine that -x engine names; NULL: it is to be chosen. */
const struct engine_type *plan_engine_named(const struct options *o);
/* Chooses the engines to be tried: the one that -x engine names, else `only` when it is not
 * NULL. */
void plan_begin(struct engine_plan *p, const struct engine_type *only);
/* Makes engine and image. False: diagnostics say why not. */
bool plan_compile(struct engine_plan *p);
/* measure: counts run time. */
struct err *plan_load(struct engine_plan *p, bool measure);
/* After a plan_load() that failed with *e: true when there is another engine to compile for; *e is
 * gone then, and *ret_said, when it is not NULL, is what the user is to know of it (malloc()ed).
 * False: *e says why nothing runs. */
bool plan_next(struct engine_plan *p, struct err **e, char **ret_said);
/* Frees engine and image. */
void plan_fini(struct engine_plan *p);

#endif
