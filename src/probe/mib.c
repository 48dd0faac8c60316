/* Provider mib: counters of the network protocols, one probe for each counter. arg0 is the amount
 * that is added. */
#include "probe/event.h"
#include "probe/net.h"

// clang-format off
#define IS_TCP "((struct sock *)arg0)->sk_protocol == 6"

/* A segment on its way to the device. Data that the socket sends for the first time begins at
 * snd_nxt, because snd_nxt grows only after the segment was sent. */
#define OUT_SEGMENT IS_SENT("6") " && " IS_OURS
#define OUT_FLAGS "((uint8_t *)" SENT_BEHIND ")[13]"
/* The packet may already begin with its device's header. */
#define OUT_FROM(header) "((uint64_t)" SKB "->len - (" header " - (uint64_t)" SKB "->data))"
#define OUT_BYTES "(" OUT_FROM(SENT_BEHIND) " - (((uint8_t *)" SENT_BEHIND ")[12] >> 4) * 4)"
#define OUT_NEW \
	SKB "->sk != 0 && (int)(ntohl(((struct tcphdr *)" SENT_BEHIND ")->seq) - " \
	"((struct tcp_sock *)" SKB "->sk)->snd_nxt) >= 0"
#define OUT_DATA OUT_SEGMENT " && (" OUT_FLAGS " & 6) == 0 && " OUT_BYTES " > 0 && " OUT_NEW

/* tcp_probe(sk, skb): a segment of an established connection, before TCP processes it. skb->data is
 * at the TCP header. */
#define IN_SKB "((struct sk_buff *)arg1)"
#define IN_TH "((struct tcphdr *)" IN_SKB "->data)"
#define IN_BYTES "(" IN_SKB "->len - ((((uint8_t *)" IN_SKB "->data)[12] >> 4) * 4))"
#define IN_BEHIND "(int)(ntohl(" IN_TH "->seq) - ((struct tcp_sock *)arg0)->rcv_nxt)" /* 0: the next one */
#define IN_DATA(test) IN_BYTES " > 0 && " test
#define IN_DUP IN_DATA(IN_BEHIND " + (int)" IN_BYTES " <= 0")
#define IN_PART IN_DATA(IN_BEHIND " < 0 && " IN_BEHIND " + (int)" IN_BYTES " > 0")
#define IN_NOTE "segments of established connections, as the kernel has joined them"

/* sock_send_length(sk, result, flags) and sock_recv_length: data that programs send and read, in
 * their own threads. 2 is MSG_PEEK, 0x8000 MSG_MORE, families 2 and 10 are IPv4 and IPv6, type 2 is
 * SOCK_DGRAM. */
#define IS_UDP \
	"((struct sock *)arg0)->sk_protocol == 17 && ((struct sock *)arg0)->sk_type == 2 && " \
	"(((struct sock *)arg0)->__sk_common.skc_family == 2 || ((struct sock *)arg0)->__sk_common.skc_family == 10)"
#define RESULT "(int)arg1"

/* kfree_skb(skb, location, reason): the kernel drops the packet after it has read the IP header. */
#define DROPPED(protocol, why) "arg2 == " why " && " IS_SENT(protocol)
#define DROP(name_, protocol, why_) \
	EVENT(name_, "kfree_skb", .min_params = 3, .enumerator = why_, .filter = DROPPED(protocol, why_), COUNTS("1"))

#define SEGMENTS(name_, tracepoint_, filter_, note_) BYTES(name_, tracepoint_, filter_, "1", note_)
#define BYTES(name_, tracepoint_, filter_, amount, note_) \
	EVENT(name_, tracepoint_, .filter = filter_, COUNTS(amount), .note = note_)

/* ICMP messages of IPv4, by the first byte behind the IP header. */
#define ICMP_HEADER(at) "((uint8_t *)(" at " + 4 * (*(uint8_t *)" at " & 15)))"
#define ICMP_IN IS_IPV4_OF(RECEIVED_AT, "1") " && " IS_TO_US
#define ICMP_OUT IS_IPV4_OF(SENT_AT, "1") " && " IS_OURS
#define ICMP_IN_OF(what, type) \
	SEGMENTS("icmpIn" what, "netif_receive_skb", ICMP_IN " && " ICMP_HEADER(RECEIVED_AT) "[0] == " type, NULL)
#define ICMP_OUT_OF(what, type) \
	SEGMENTS("icmpOut" what, "net_dev_queue", ICMP_OUT " && " ICMP_HEADER(SENT_AT) "[0] == " type, NULL)

/* The bytes with the IP header. The header's own length field does not count above 64 KB. */
#define IN_OCTETS "(uint64_t)" SKB "->len"
// clang-format on

/* inet_sock_set_state(sk, oldstate, newstate): 1 established, 2 SYN sent, 3 SYN received, 7 closed,
 * 8 peer has closed, 10 listening. */
static const struct event events[] = {
	EVENT("tcpActiveOpens", "inet_sock_set_state", .min_params = 3,
	      .filter = IS_TCP " && arg1 == 7 && arg2 == 2", COUNTS("1")),
	EVENT("tcpPassiveOpens", "inet_sock_set_state", .min_params = 3,
	      .filter = IS_TCP " && arg1 == 10 && arg2 == 3", COUNTS("1"),
	      .note = "when the handshake ends, as the kernel counts them"),
	EVENT("tcpAttemptFails", "inet_sock_set_state", .min_params = 3,
	      .filter = IS_TCP " && (arg1 == 2 || arg1 == 3) && arg2 == 7", COUNTS("1")),
	EVENT("tcpEstabResets", "inet_sock_set_state", .min_params = 3,
	      .filter = IS_TCP " && (arg1 == 1 || arg1 == 8) && arg2 == 7", COUNTS("1")),
	EVENT("tcpOutRsts", "tcp_send_reset", .min_params = 3, COUNTS("1")),
	NO_EVENT("tcpOutRsts",
		 "this kernel's tcp_send_reset does not fire when there is no socket"),
	EVENT("tcpRetransSegs", "tcp_retransmit_skb", .min_params = 2,
	      COUNTS("(uint64_t)((struct tcp_skb_cb *)((struct sk_buff *)arg1)->cb)->tcp_gso_segs"),
	      .note = "without the SYN and ACK of a handshake sent again: sdt:::tcp_retransmit_synack"),
	EVENT("tcpRetransBytes", "tcp_retransmit_skb", .min_params = 2,
	      .filter = IN_SKB "->len != 0", COUNTS("(uint64_t)" IN_SKB "->len")),
	// clang-format off
	SEGMENTS("tcpOutSegs", "net_dev_queue", OUT_SEGMENT, "as tcp:::send sees them"),
	SEGMENTS("tcpOutDataSegs", "net_dev_queue", OUT_DATA, "as tcp:::send sees them, without those sent again"),
	BYTES("tcpOutDataBytes", "net_dev_queue", OUT_DATA, OUT_BYTES, "as tcp:::send sees them, without those sent again"),
	SEGMENTS("tcpOutControl", "net_dev_queue", OUT_SEGMENT " && (" OUT_FLAGS " & 7) != 0", "SYN, FIN and RST, as tcp:::send sees them"),
	SEGMENTS("tcpOutAck", "net_dev_queue", OUT_SEGMENT " && (" OUT_FLAGS " & 7) == 0 && " OUT_BYTES " == 0",
		 "segments that only acknowledge"),
	SEGMENTS("tcpInSegs", "netif_receive_skb", IS_RECEIVED("6") " && " IS_TO_US, "as ip:::receive sees them"),
	SEGMENTS("tcpInDataInorderSegs", "tcp_probe", IN_DATA(IN_BEHIND " == 0"), IN_NOTE),
	BYTES("tcpInDataInorderBytes", "tcp_probe", IN_DATA(IN_BEHIND " == 0"), IN_BYTES, IN_NOTE),
	SEGMENTS("tcpInDataUnorderSegs", "tcp_probe", IN_DATA(IN_BEHIND " > 0"), IN_NOTE),
	BYTES("tcpInDataUnorderBytes", "tcp_probe", IN_DATA(IN_BEHIND " > 0"), IN_BYTES, IN_NOTE),
	SEGMENTS("tcpInDataDupSegs", "tcp_probe", IN_DUP, IN_NOTE),
	BYTES("tcpInDataDupBytes", "tcp_probe", IN_DUP, IN_BYTES, IN_NOTE),
	SEGMENTS("tcpInDataPartDupSegs", "tcp_probe", IN_PART, IN_NOTE),
	BYTES("tcpInDataPartDupBytes", "tcp_probe", IN_PART, "-(uint64_t)" IN_BEHIND, IN_NOTE),
	DROP("tcpInErrs", "6", "SKB_DROP_REASON_TCP_CSUM"),
	EVENT("udpHCInDatagrams", "sock_recv_length", .min_params = 3,
	      .filter = IS_UDP " && " RESULT " >= 0 && (arg2 & 2) == 0", COUNTS("1"),
	      .note = "those that programs read, in their threads, as the kernel counts them"),
	EVENT("udpHCOutDatagrams", "sock_send_length", .min_params = 3,
	      .filter = IS_UDP " && " RESULT " >= 0 && (arg2 & 0x8000) == 0", COUNTS("1"),
	      .note = "those that programs send, in their threads"),
	EVENT("udpOutErrors", "sock_send_length", .min_params = 3,
	      .filter = IS_UDP " && " RESULT " < 0", COUNTS("1"),
	      .note = "calls that failed"),
	DROP("udpNoPorts", "17", "SKB_DROP_REASON_NO_SOCKET"),
	DROP("udpInCksumErrs", "17", "SKB_DROP_REASON_UDP_CSUM"),
	DROP("udpInErrors", "17", "SKB_DROP_REASON_PKT_TOO_SMALL"),
	SEGMENTS("icmpInMsgs", "netif_receive_skb", ICMP_IN, NULL),
	ICMP_IN_OF("EchoReps", "0"), ICMP_IN_OF("DestUnreachs", "3"),
	SEGMENTS("icmpInFragNeeded", "netif_receive_skb",
		 ICMP_IN " && " ICMP_HEADER(RECEIVED_AT) "[0] == 3 && " ICMP_HEADER(RECEIVED_AT) "[1] == 4", NULL),
	ICMP_IN_OF("SrcQuenchs", "4"), ICMP_IN_OF("Redirects", "5"), ICMP_IN_OF("Echos", "8"), ICMP_IN_OF("TimeExcds", "11"),
	ICMP_IN_OF("ParmProbs", "12"), ICMP_IN_OF("Timestamps", "13"), ICMP_IN_OF("TimestampReps", "14"),
	ICMP_IN_OF("AddrMasks", "17"), ICMP_IN_OF("AddrMaskReps", "18"),
	DROP("icmpInCksumErrs", "1", "SKB_DROP_REASON_ICMP_CSUM"),
	SEGMENTS("icmpOutMsgs", "net_dev_queue", ICMP_OUT, NULL),
	ICMP_OUT_OF("EchoReps", "0"), ICMP_OUT_OF("DestUnreachs", "3"),
	SEGMENTS("icmpOutFragNeeded", "net_dev_queue",
		 ICMP_OUT " && " ICMP_HEADER(SENT_AT) "[0] == 3 && " ICMP_HEADER(SENT_AT) "[1] == 4", NULL),
	ICMP_OUT_OF("Redirects", "5"), ICMP_OUT_OF("Echos", "8"), ICMP_OUT_OF("TimeExcds", "11"),
	ICMP_OUT_OF("ParmProbs", "12"), ICMP_OUT_OF("Timestamps", "13"), ICMP_OUT_OF("TimestampReps", "14"),
	SEGMENTS("ipIfStatsHCInReceives", "netif_receive_skb", IS_IP " && " IS_TO_US, "as ip:::receive sees them"),
	BYTES("ipIfStatsHCInOctets", "netif_receive_skb", IS_IP " && " IS_TO_US, IN_OCTETS, "as ip:::receive sees them"),
	SEGMENTS("ipIfStatsHCOutRequests", "net_dev_queue", IS_IP " && " IS_OURS, "as ip:::send sees them"),
	SEGMENTS("ipIfStatsHCOutTransmits", "net_dev_queue", IS_IP, "as ip:::send sees them, packets forwarded too"),
	BYTES("ipIfStatsHCOutOctets", "net_dev_queue", IS_IP, OUT_FROM(SENT_AT), "as ip:::send sees them, packets forwarded too"),
	// clang-format on
	EVENT("udpInOverflows", "udp_fail_queue_rcv_skb", COUNTS("1"),
	      .note = "no room in the socket's buffer, or no memory for it"),
};

const struct provider provider_mib =
	EVENTS("mib", 20700, 20799, events, "counters of IP, ICMP, TCP and UDP as they count");
