/* One run by two engines. */
#ifndef DESCRY_LOAD_SPLIT_H
#define DESCRY_LOAD_SPLIT_H

#include "load/engine.h"

/* The probes for which outside[] holds, and all other probes of functions of these names, are fired
 * by kernel, the rest by inside; their images, which are alike (image_is_alike), are cut
 * accordingly. Takes inside, kernel and outer; load() is to be given inner. */
struct engine *engine_split_new(struct engine *inside, struct engine *kernel, struct image *inner,
				struct image *outer, const bool *outside);

#endif
