/* What ethtool(8) sets: offloads and interrupt coalescing of an interface, through the SIOCETHTOOL
 * ioctl. */
#ifndef DESCRY_CHECK_ETHTOOL_H
#define DESCRY_CHECK_ETHTOOL_H

#include <stdint.h>

#include "base/err.h"

enum ethtool_knob {
	ETHTOOL_KNOB_TSO,
	ETHTOOL_KNOB_GSO,
	ETHTOOL_KNOB_GRO,
	ETHTOOL_KNOB_RX_USECS,
	ETHTOOL_KNOB_RX_FRAMES,
	ETHTOOL_KNOB_RX_RING,
	ETHTOOL_KNOB_COUNT
};

struct ethtool_doc {
	const char *name, *what, *program;
};
extern const struct ethtool_doc ethtool_docs[ETHTOOL_KNOB_COUNT];

/* EOPNOTSUPP where the driver has no such knob. */
struct err *ethtool_get(const char *interface, enum ethtool_knob k, uint32_t *ret);
struct err *ethtool_set(const char *interface, enum ethtool_knob k, uint32_t value);

#endif
