/* How stable a probe's names and arguments are, as dtrace -l -v prints it: the words of DTrace's guide. */
#ifndef DESCRY_PROBE_STABILITY_H
#define DESCRY_PROBE_STABILITY_H

#include "probe/probe.h"

struct stability {
	const char *names, *data, *dependency;
};
void probe_stability(const struct probe *p, struct stability *ret_probe,
		     struct stability *ret_args);

#endif
