/* Runs one program by two engines. */
#ifndef DESCRY_LOAD_SPLIT_H
#define DESCRY_LOAD_SPLIT_H

#include "load/engine.h"

/* Makes an engine. `kernel` fires the probes for which outside[] holds and all other probes of
 * functions of these names; `inside` fires the rest. Cuts the two images, which are alike
 * (image_is_alike), accordingly. Takes ownership of inside, kernel and outer; pass inner to
 * load(). */
struct engine *engine_split_new(struct engine *inside, struct engine *kernel, struct image *inner,
				struct image *outer, const bool *outside);

#endif
