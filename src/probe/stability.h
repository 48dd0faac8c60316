/* How stable names and what they stand for are, in the words of DTrace's guide: as dtrace -l -v and dtrace -v print it. */
#ifndef DESCRY_PROBE_STABILITY_H
#define DESCRY_PROBE_STABILITY_H

#include "probe/probe.h"

/* Each list from the least to the most. */
enum stability_level {
	LEVEL_INTERNAL,
	LEVEL_PRIVATE,
	LEVEL_OBSOLETE,
	LEVEL_EXTERNAL,
	LEVEL_UNSTABLE,
	LEVEL_EVOLVING,
	LEVEL_STABLE,
	LEVEL_STANDARD,
	LEVEL_COUNT
};
enum stability_class {
	CLASS_UNKNOWN,
	CLASS_CPU,
	CLASS_PLATFORM,
	CLASS_GROUP,
	CLASS_ISA,
	CLASS_COMMON,
	CLASS_COUNT
};
extern const char *const stability_levels[LEVEL_COUNT], *const stability_classes[CLASS_COUNT];

struct stability {
	enum stability_level names, data;
	enum stability_class dependency;
};
struct stability stability_min(struct stability a, struct stability b);

void probe_stability(const struct probe *p, struct stability *ret_probe,
		     struct stability *ret_args);
/* Of a description: that of its fields that name something. p: a probe that it matches. */
struct stability probe_desc_stability(const struct probe_desc *pd, const struct probe *p);

#endif
