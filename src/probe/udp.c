/* Provider udp: datagrams sent by this machine and received. */
#include "probe/event.h"
#include "probe/net.h"

#define UDP "17"

static const struct event events[] = {
	EVENT("send", "net_dev_queue", .filter = IS_SENT(UDP) " && " IS_OURS,
	      ARGS(PACKET, SOCKET(SKB "->sk"), SENT_IP,
		   { .type = "struct sk_buff *", .xlate = "udpsinfo_t *" },
		   { .type = "struct udphdr *",
		     .xlate = "udpinfo_t *",
		     .expr = "(struct udphdr *)" SENT_BEHIND }),
	      .note = SEND_NOTE),
	EVENT("receive", "netif_receive_skb", .filter = IS_RECEIVED(UDP) " && " IS_TO_US,
	      ARGS(PACKET, SOCKET(SKB "->sk"), RECEIVED_IP,
		   { .type = "struct iphdr *",
		     .xlate = "udpsinfo_t *",
		     .expr = AS_IPV4(RECEIVED_AT) },
		   { .type = "struct udphdr *",
		     .xlate = "udpinfo_t *",
		     .expr = "(struct udphdr *)" RECEIVED_BEHIND }),
	      .note = "fires before the kernel looks for a socket: args[1] is 0, args[3] is from the headers, and datagrams without a receiver or to be forwarded count too; " RECEIVE_NOTE),
};

const struct provider provider_udp =
	EVENTS("udp", 20600, 20699, events, "datagrams sent and received");
