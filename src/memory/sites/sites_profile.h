/* The functions of JavaScript that made what lives, by V8's own sampling heap profiler
 * (`descry heap alloc --inspector`).
 *
 * In: a profile of the protocol (HeapProfiler.getSamplingProfile): a tree of functions, with the
 * estimated bytes of the samples that live, and these samples. Out: a table by functions, and a
 * stack tree.
 * Always true: names of the process are shown without control characters. A profile may be
 * anything.
 */
#ifndef DESCRY_MEMORY_SITES_SITES_PROFILE_H
#define DESCRY_MEMORY_SITES_SITES_PROFILE_H

#include <jansson.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/out.h"
#include "view/stacktree.h"

struct profile_node {
	uint32_t parent;         /* index in nodes; the root's is its own */
	uint32_t file, function; /* in texts; 0: it has none */
	uint32_t line;           /* where the function begins; 0: not known */
	uint64_t samples, bytes; /* which live */
};

struct sites_profile {
	struct intern texts;
	VEC(struct profile_node) nodes; /* a parent before its children */
	uint64_t samples, bytes;
	uint64_t interval; /* bytes from one sample to the next, in the mean */
};

/* Reads {"profile": {"head": {...}, "samples": [...]}}. */
struct err *sites_profile_read(const json_t *result, uint64_t interval, struct sites_profile *ret);
void sites_profile_fini(struct sites_profile *p);
/* Writes a table, the most bytes first, or JSON lines. most: rows. */
void sites_profile_show(const struct sites_profile *p, uint32_t most, bool json, struct out *o);
void sites_profile_stacktree(const struct sites_profile *p, struct stacktree *ret);

#endif
