/* The stability of names and of the things they name, in the words of DTrace's guide, as dtrace -l
 * -v and dtrace -v print it. */
#ifndef DESCRY_PROBE_STABILITY_H
#define DESCRY_PROBE_STABILITY_H

/* Each list goes from the least to the most stable. */
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

/* The stability of a provider's probes: of each field of a description, and of the arguments. */
struct provider_stability {
	struct stability prov, mod, func, name, args;
};

// clang-format off
#define P_UNKNOWN { LEVEL_PRIVATE, LEVEL_PRIVATE, CLASS_UNKNOWN }
#define P_ISA { LEVEL_PRIVATE, LEVEL_PRIVATE, CLASS_ISA }
#define E_ISA { LEVEL_EVOLVING, LEVEL_EVOLVING, CLASS_ISA }
#define E_COMMON { LEVEL_EVOLVING, LEVEL_EVOLVING, CLASS_COMMON }
#define E_CPU { LEVEL_EVOLVING, LEVEL_EVOLVING, CLASS_CPU }
#define S_COMMON { LEVEL_STABLE, LEVEL_STABLE, CLASS_COMMON }
#define U_COMMON { LEVEL_UNSTABLE, LEVEL_UNSTABLE, CLASS_COMMON }
// clang-format on

#endif
