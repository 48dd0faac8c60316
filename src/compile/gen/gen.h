/* Bound clauses -> image: the middle of the compiler.
 *
 * In: struct bound (compile/bind). Out: a complete struct image: programs (IR lowered by
 * compile/ebpf), maps, schemas.
 *
 * A program serves all probes that have the same clauses:
 *
 *	ctx, is tracing on?, which probe?          prologue
 *	for each clause:  predicate -> segments     (a segment reserves one record, fills it, submits it)
 *	    fault: write a fault record, or run the ERROR clauses in place
 *	release scratch, return                     epilogue
 *
 * Always true: a clause that faults or finds a buffer full discards its record, and the next clause
 * runs. Scratch memory is released on every path. */
#ifndef DESCRY_COMPILE_GEN_GEN_H
#define DESCRY_COMPILE_GEN_GEN_H

#include "compile/bind/bind.h"
#include "compile/engine_target.h"
#include "data/image.h"

/* Compiles all clauses. Prints each function's IR to `ir_out` (-d ir) unless it is NULL. Returns
 * NULL, with diagnostics, when a clause cannot be expressed (too long, too much stack). */
struct image *compile_image(const struct bound *b, struct type_graph *types, struct diags *diags,
			    struct options *options, struct compile_target *target, FILE *ir_out);

#endif
