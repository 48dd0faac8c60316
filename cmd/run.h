/* What one run of a D program consists of; for run.c, prepare.c and trace.c only.
 *
 * In: a command line. Out: an exit status; messages are printed where they arise.
 * Ownership: run.c makes and frees all of it; the others fill it in.
 */
#ifndef DESCRY_CMD_RUN_H
#define DESCRY_CMD_RUN_H

#include "cmdline.h"
#include "compile/bind/bind.h"
#include "compile/ir/gen.h"
#include "consume/consume.h"
#include "load/plan.h"

/* Everything that lives as long as the run. */
struct run {
	struct cmdline *c;
	struct arena arena;
	struct diags diags;
	struct options options;
	struct type_graph *types;
	struct symbols *symbols;
	struct kernel_names *kernel_names; /* which symbols asks */
	struct probe_set probes;
	struct macro_args macros;
	struct hash typedefs;
	struct parse_cx parse;
	struct bind_cx bind;
	VEC(struct node *) tops; /* of each source */
	VEC(struct target) targets;
	struct engine_plan plan;
	struct sink *sink;
	struct consumer *consumer;
	FILE *out;
	double budget; /* share of the machine, 0 any */
	bool names_user; /* user addresses are printed as names: mappings must be seen while they last */
};

/* Says what e says and frees it. 1, the exit status. */
int run_failed(struct run *r, struct err *e);
/* Prints what the compiler has said so far. 1 when it was an error, else 0. */
int run_print_diags(struct run *r);
/* Was -d, or -S, asked for `stage`? */
bool run_dumps(const struct run *r, const char *stage);

/* prepare.c: compiles, and loads for the first engine that may run here. The exit status when it is
 * not 0; 0 without an engine loaded when no tracing was asked for. */
int run_prepare(struct run *r, const struct bound *b);

/* trace.c: traces with what has been loaded, until the program, its targets or somebody says that
 * it is enough. The exit status. */
int run_trace(struct run *r, const struct bound *b);
/* "script" or "description", and the bytes of its name that are shown. */
const char *run_source_kind(const struct source *s);
size_t run_source_shown(const struct run *r, const struct source *s);
/* "description 'X' matched N probes", for each program as DTrace says it. */
void run_say_matched(struct run *r, const struct bound *b);

#endif
