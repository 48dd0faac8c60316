/* Reads and sets an interface's knobs through SIOCETHTOOL. */
#define _GNU_SOURCE
#include "check/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/mem.h"

#define SIZES_SENT \
	"descry -n 'sdt:net::net_dev_xmit { @[\"bytes sent at once\"] = quantize(arg3); } tick-10s { exit(0); }'"
#define CPU_IN_NET \
	"descry -n 'sdt:irq::softirq_entry /arg0 == 3/ { self->t = timestamp; } " \
	"sdt:irq::softirq_exit /self->t/ { @[\"ns in receive\"] = quantize(timestamp - self->t); self->t = 0; } " \
	"tick-10s { exit(0); }'"

const struct ethtool_doc ethtool_docs[ETHTOOL_KNOB_COUNT] = {
	{ "tso",
	  "The card cuts large TCP sends into packets: less CPU time, larger bursts. 1 on, 0 off",
	  SIZES_SENT },
	{ "gso",
	  "The kernel cuts large sends into packets as late as it can: less CPU time. 1 on, 0 off",
	  SIZES_SENT },
	{ "gro",
	  "Received packets of one stream are joined before the stack sees them: less CPU time, some delay. 1 on, 0 off",
	  CPU_IN_NET },
	{ "rx_usecs",
	  "Microseconds the card waits for more packets before it interrupts: fewer interrupts, later answers",
	  CPU_IN_NET },
	{ "rx_frames", "Packets the card gathers at most before it interrupts", CPU_IN_NET },
	{ "rx_ring", "Places for received packets: more survive a burst, and wait longer in it",
	  CPU_IN_NET },
};

static struct err *ask(const char *interface, void *data, const char *what)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_data = data };

	if (fd < 0)
		return err_errno(errno, "socket");
	if (strlen(interface) >= sizeof(r.ifr_name))
		return err_new(EINVAL, "%s: no interface has such a long name", interface);
	strcpy(r.ifr_name, interface);
	if (ioctl(fd, SIOCETHTOOL, &r) < 0)
		return err_errno(errno, "%s: %s", interface, what);
	return NULL;
}

/* The place of a knob's word in the structure of its commands. */
struct place {
	uint32_t get, set;
	size_t size, offset;
};

static struct place place_of(enum ethtool_knob k)
{
	switch (k) {
	case ETHTOOL_KNOB_TSO:
		return (struct place){ ETHTOOL_GTSO, ETHTOOL_STSO, sizeof(struct ethtool_value),
				       offsetof(struct ethtool_value, data) };
	case ETHTOOL_KNOB_GSO:
		return (struct place){ ETHTOOL_GGSO, ETHTOOL_SGSO, sizeof(struct ethtool_value),
				       offsetof(struct ethtool_value, data) };
	case ETHTOOL_KNOB_GRO:
		return (struct place){ ETHTOOL_GGRO, ETHTOOL_SGRO, sizeof(struct ethtool_value),
				       offsetof(struct ethtool_value, data) };
	case ETHTOOL_KNOB_RX_USECS:
		return (struct place){ ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE,
				       sizeof(struct ethtool_coalesce),
				       offsetof(struct ethtool_coalesce, rx_coalesce_usecs) };
	case ETHTOOL_KNOB_RX_FRAMES:
		return (struct place){ ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE,
				       sizeof(struct ethtool_coalesce),
				       offsetof(struct ethtool_coalesce, rx_max_coalesced_frames) };
	default:
		return (struct place){ ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM,
				       sizeof(struct ethtool_ringparam),
				       offsetof(struct ethtool_ringparam, rx_pending) };
	}
}

union request {
	uint32_t cmd;
	struct ethtool_value value;
	struct ethtool_coalesce coalesce;
	struct ethtool_ringparam ring;
	char bytes[256];
};
_Static_assert(sizeof(struct ethtool_coalesce) <= 256, "union request holds each");

struct err *ethtool_get(const char *interface, enum ethtool_knob k, uint32_t *ret)
{
	struct place p = place_of(k);
	union request r = { .cmd = p.get };
	struct err *e = ask(interface, &r, ethtool_docs[k].name);

	if (!e)
		memcpy(ret, r.bytes + p.offset, sizeof(*ret));
	return e;
}

struct err *ethtool_set(const char *interface, enum ethtool_knob k, uint32_t value)
{
	struct place p = place_of(k);
	union request r = { .cmd = p.get };
	/* Read the structure first, to keep its other words. */
	struct err *e = ask(interface, &r, ethtool_docs[k].name);

	if (e)
		return e;
	r.cmd = p.set;
	memcpy(r.bytes + p.offset, &value, sizeof(value));
	return ask(interface, &r, ethtool_docs[k].name);
}
