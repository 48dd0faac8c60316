/* The places where a function returns, through tail jumps and behind indirect functions.
 *
 * In: a function of an object of a process. Out: addresses of ret instructions, or that the probe
 * FUNCTION:return is enough. */
#ifndef DESCRY_CALLS_RETURNS_H
#define DESCRY_CALLS_RETURNS_H

#include "probe/process.h"

/* A ret instruction: its object, and its link-time address there. */
struct return_place {
	const struct process_object *in;
	uint64_t addr;
};
struct return_places {
	bool symbolic;                 /* FUNCTION:return sees all of them */
	VEC(struct return_place) rets; /* else; also in other objects, to which it jumps */
	bool blind;                    /* the places of its returns are not known */
	bool too_much;                 /* for this reason: finding them is too much work */
	bool leaf;                     /* it calls nothing, so its calls do not nest */
	/* link-time address of an indirect function's variant that is used; 0: not known */
	uint64_t variant;
};

struct returns;

/* objects: borrowed, as long as *ret lives. */
struct err *returns_new(pid_t pid, const struct process_objects *objects, struct returns **ret);
void returns_free(struct returns *r);
/* Finds where the function s of po returns. by_address: not by its name, which others have too.
 * Finds nothing for a function that never returns. An
 * indirect function is blind when the dynamic linker's choice is not known. The caller frees
 * places->rets. */
struct err *returns_find(struct returns *r, const struct process_object *po,
			 const struct object_symbol *s, bool by_address,
			 struct return_places *places);
/* For tests: the work that was done, and another limit of it. */
uint64_t returns_work(const struct returns *r);
void returns_limit(struct returns *r, uint64_t work);

#endif
