/* The settings of ethtool(8), offloads and interrupt coalescing of an interface, through the
 * SIOCETHTOOL ioctl. */
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

/* Reads a knob. Fails with EOPNOTSUPP when the driver does not have it. */
struct err *ethtool_get(const char *interface, enum ethtool_knob k, uint32_t *ret);
struct err *ethtool_set(const char *interface, enum ethtool_knob k, uint32_t value);

#endif
