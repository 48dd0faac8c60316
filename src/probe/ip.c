/* Provider ip: packets of IPv4 and IPv6 given to devices and taken from them. */
#include "probe/event.h"
#include "probe/net.h"

// clang-format off
#define IP_ARGS(ip, at) \
	PACKET, SOCKET(SKB "->sk"), ip, \
	{ .type = "struct net_device *", .xlate = "ifinfo_t *", .expr = SKB "->dev" }, \
	{ .type = "struct iphdr *", .xlate = "ipv4info_t *", .expr = AS_IPV4(at) }, \
	{ .type = "struct ipv6hdr *", .xlate = "ipv6info_t *", .expr = AS_IPV6(at) }
// clang-format on

static const struct event events[] = {
	EVENT("send", "net_dev_queue", .filter = IS_IP, ARGS(IP_ARGS(SENT_IP, SENT_AT)),
	      .note = "packets forwarded count too; " SEND_NOTE),
	EVENT("receive", "netif_receive_skb", .filter = IS_IP " && " IS_TO_US,
	      ARGS(IP_ARGS(RECEIVED_IP, RECEIVED_AT)),
	      .note = "packets to be forwarded count too; " RECEIVE_NOTE),
};

const struct provider provider_ip =
	EVENTS("ip", 20400, 20499, events, "packets of IPv4 and IPv6 sent and received");
