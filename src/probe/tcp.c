/* Provider tcp: connections made and refused, their changes of state, and segments. */
#include "probe/event.h"
#include "probe/net.h"

/* <net/tcp_states.h> */
#define ESTABLISHED "1"
#define SYN_SENT "2"
#define SYN_RECV "3"

#define TCP "6"
#define SOCK "((struct sock *)arg0)"
#define IS_TCP SOCK "->sk_protocol == " TCP

// clang-format off
/* Packs a socket for its translator into one word: the address, with the state in the upper four
 * bits, which are ones in any address of the kernel. dlib/tcp.d takes the word apart. */
#define WITH_STATE(state) "(((uint64_t)arg0 & 0x0fffffffffffffff) | ((uint64_t)(" state ") << 60))"
#define TCP_SOCKET(state) { .type = "uint64_t", .xlate = "tcpsinfo_t *", .expr = WITH_STATE(state) }

/* inet_sock_set_state(sk, oldstate, newstate) fires before sk has the new state. It has no packet.
 * The translators make the description of the received packet from the socket, which they know by
 * its type, struct inet_sock. */
#define NO_POINTER { .type = "void *", .expr = "0" }
#define FROM_SOCKET(state) \
	{ .type = "struct sk_buff *", .xlate = "pktinfo_t *", .expr = "(struct sk_buff *)0" }, SOCKET(SOCK), \
	{ .type = "struct inet_sock *", .xlate = "ipinfo_t *" }, TCP_SOCKET(state), \
	{ .type = "struct inet_sock *", .xlate = "tcpinfo_t *" }

/* net_dev_queue(skb) */
#define SENT_HEADER "((struct tcphdr *)" SENT_BEHIND ")"
#define SENT_FLAGS "((uint8_t *)" SENT_BEHIND ")[13]"
#define SENT_SEGMENT IS_SENT(TCP) " && " IS_OURS
#define FROM_PACKET \
	PACKET, SOCKET(SKB "->sk"), SENT_IP, \
	{ .type = "struct sk_buff *", .xlate = "tcpsinfo_t *" }, \
	{ .type = "struct tcphdr *", .xlate = "tcpinfo_t *", .expr = SENT_HEADER }

/* tcp_probe(sk, skb): skb->data is at the TCP header. */
#define RECEIVED "((struct sk_buff *)arg1)"
// clang-format on
#define SOCKET_NOTE \
	"runs in an interrupt, in the context of any thread; the packet is not known: args[2] and args[4] have its " \
	"addresses and ports only"

/* Flags of a segment: 2 SYN, 4 RST, 0x10 ACK. A machine that refuses a SYN answers with RST, ACK
 * and a sequence number of 0. */
static const struct event events[] = {
	EVENT("state-change", "inet_sock_set_state", .min_params = 3, .filter = IS_TCP,
	      ARGS(NO_POINTER, SOCKET(SOCK), NO_POINTER, TCP_SOCKET("arg2"), NO_POINTER,
		   { .type = "int", .xlate = "tcplsinfo_t *", .word = 1 }),
	      .note = "a connection in TIME_WAIT is another object in Linux and counts as closed; a requested connection that is not accepted yet (SYN_RECEIVED) is seen when the handshake ends"),
	EVENT("connect-request", "net_dev_queue",
	      .filter = SENT_SEGMENT " && (" SENT_FLAGS " & 0x12) == 2 && " SKB "->sk != 0 && "
				     "((struct inet_connection_sock *)" SKB
				     "->sk)->icsk_retransmits == 0",
	      ARGS(FROM_PACKET), .note = "the first SYN; " SEND_NOTE),
	EVENT("connect-established", "inet_sock_set_state", .min_params = 3,
	      .filter = IS_TCP " && arg1 == " SYN_SENT " && arg2 == " ESTABLISHED,
	      ARGS(FROM_SOCKET("arg2")), .note = SOCKET_NOTE),
	EVENT("connect-refused", "tcp_receive_reset",
	      .filter = SOCK "->__sk_common.skc_state == " SYN_SENT,
	      ARGS(FROM_SOCKET(SOCK "->__sk_common.skc_state")), .note = SOCKET_NOTE),
	EVENT("accept-established", "inet_sock_set_state", .min_params = 3,
	      .filter = IS_TCP " && arg1 == " SYN_RECV " && arg2 == " ESTABLISHED,
	      ARGS(FROM_SOCKET("arg2")), .note = SOCKET_NOTE),
	EVENT("accept-refused", "net_dev_queue",
	      .filter = SENT_SEGMENT " && (" SENT_FLAGS " & 0x14) == 0x14 && " SENT_HEADER
				     "->seq == 0",
	      ARGS(FROM_PACKET), .note = "the answer to the SYN; " SEND_NOTE),
	EVENT("send", "net_dev_queue", .filter = SENT_SEGMENT, ARGS(FROM_PACKET),
	      .note = SEND_NOTE),
	EVENT("receive", "tcp_probe", .min_params = 2,
	      ARGS({ .type = "struct sk_buff *", .xlate = "pktinfo_t *", .word = 1 }, SOCKET(SOCK),
		   { .type = "struct sk_buff *", .xlate = "ipinfo_t *", .word = 1 },
		   TCP_SOCKET(SOCK "->__sk_common.skc_state"),
		   { .type = "struct tcphdr *",
		     .xlate = "tcpinfo_t *",
		     .expr = "(struct tcphdr *)" RECEIVED "->data" }),
	      .note = "segments of established connections: those of handshakes, and what comes after this side "
		      "has closed, have no tracepoint, see ip:::receive"),
};

const struct provider provider_tcp =
	EVENTS("tcp", 20500, 20599, events,
	       "connections made, refused and changing state; segments sent and received");
