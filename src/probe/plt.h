#ifndef DESCRY_PROBE_PLT_H
#define DESCRY_PROBE_PLT_H

#include "probe/probe.h"

/* Frees what the provider plt has read of objects. NULL: nothing. */
void plt_free(struct plt *p);

#endif
