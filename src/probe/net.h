/* D texts that the providers ip, tcp and udp share: they find the headers of a packet. Private to
 * src/probe/.
 *
 * net_dev_queue(skb) has the packet as the kernel gives it to the device; skb notes the offsets of
 * its headers. netif_receive_skb(skb) has the packet as it comes from the device: skb->data is at
 * the IP header and no offsets are noted yet. In IPv6 these texts do not look for a header behind
 * extension headers. The exception is the jumbo option that Linux itself puts in front of segments
 * above 64 KB (BIG TCP).
 */
#ifndef DESCRY_PROBE_NET_H
#define DESCRY_PROBE_NET_H

// clang-format off
#define SKB "((struct sk_buff *)arg0)"
#define SENT_AT "((uintptr_t)" SKB "->head + " SKB "->network_header)"
#define RECEIVED_AT "((uintptr_t)" SKB "->data)"
#define AS_IPV4(at) "((struct iphdr *)" at ")"
#define AS_IPV6(at) "((struct ipv6hdr *)" at ")"
/* the address of the transport protocol's header */
#define SENT_BEHIND "((uintptr_t)" SKB "->head + " SKB "->transport_header)"
#define RECEIVED_BEHIND \
	"(" RECEIVED_AT " + (" IS_IPV4 " ? 4 * (*(uint8_t *)" RECEIVED_AT " & 15) : sizeof (struct ipv6hdr)))"

#define IS_IPV4 "ntohs(" SKB "->protocol) == 0x0800"
#define IS_IPV6 "ntohs(" SKB "->protocol) == 0x86dd"
#define IS_IP "(" IS_IPV4 " || " IS_IPV6 ")"
/* Only the first fragment of a packet has its protocol's header. */
#define IS_IPV4_OF(at, number) \
	IS_IPV4 " && " AS_IPV4(at) "->protocol == " number " && (ntohs(" AS_IPV4(at) "->frag_off) & 0x1fff) == 0"
#define NEXT_HEADER(at) AS_IPV6(at) "->nexthdr"
#define BEHIND_HOP_BY_HOP(at) "*(uint8_t *)(" at " + sizeof (struct ipv6hdr))"
#define IS_SENT(number) \
	"((" IS_IPV4_OF(SENT_AT, number) ") || (" IS_IPV6 " && (" NEXT_HEADER(SENT_AT) " == " number " || (" \
	NEXT_HEADER(SENT_AT) " == 0 && " BEHIND_HOP_BY_HOP(SENT_AT) " == " number "))))"
#define IS_RECEIVED(number) \
	"((" IS_IPV4_OF(RECEIVED_AT, number) ") || (" IS_IPV6 " && " NEXT_HEADER(RECEIVED_AT) " == " number "))"
/* This machine made the packet. A forwarded packet has the number of the interface it came in
 * by. */
#define IS_OURS SKB "->skb_iif == 0"
#define PACKET_OTHERHOST "3"
#define IS_TO_US SKB "->pkt_type != " PACKET_OTHERHOST

#define PACKET { .type = "struct sk_buff *", .xlate = "pktinfo_t *" }
#define SOCKET(sk) { .type = "struct sock *", .xlate = "csinfo_t *", .expr = sk }
/* ipinfo_t is translated from two native types: a struct sk_buff * for a packet whose header
 * offsets are noted, and a number for a packet that comes from the device. See dlib/ip.d. */
#define SENT_IP { .type = "struct sk_buff *", .xlate = "ipinfo_t *" }
#define RECEIVED_IP { .type = "uint64_t", .xlate = "ipinfo_t *" }

#define SEND_NOTE \
	"a packet that goes through several devices (bridge, VLAN, bond) is seen at each of them; one that waited for " \
	"its neighbour's address is seen when the answer comes, in any thread; large segments are seen before " \
	"they are cut"
#define RECEIVE_NOTE \
	"runs in an interrupt, in the context of any thread; a packet that comes through several devices (bridge, VLAN) " \
	"is seen at each of them; segments are seen as the kernel has joined them"
// clang-format on

#endif
