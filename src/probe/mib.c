/* Provider mib: counters of the network protocols, one probe for each count. arg0 is how much is counted. */
#include "probe/event.h"
#include "probe/provider.h"

// clang-format off
#define ONE { { .type = "uint64_t", .expr = "1" } }
// clang-format on
#define IS_TCP "((struct sock *)arg0)->sk_protocol == 6"
#define NO_EVENT "the kernel counts this without a tracepoint"

/* inet_sock_set_state(sk, oldstate, newstate): 1 established, 2 SYN sent, 3 SYN received, 7 closed, 8 peer has closed,
 * 10 listening. */
static const struct event events[] = {
	{ .name = "tcpActiveOpens",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "inet_sock_set_state",
	  .min_params = 3,
	  .filter = IS_TCP " && arg1 == 7 && arg2 == 2",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "tcpPassiveOpens",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "inet_sock_set_state",
	  .min_params = 3,
	  .filter = IS_TCP " && arg1 == 10 && arg2 == 3",
	  .nargs = 1,
	  .args = ONE,
	  .note = "when the handshake ends, as the kernel counts them" },
	{ .name = "tcpAttemptFails",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "inet_sock_set_state",
	  .min_params = 3,
	  .filter = IS_TCP " && (arg1 == 2 || arg1 == 3) && arg2 == 7",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "tcpEstabResets",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "inet_sock_set_state",
	  .min_params = 3,
	  .filter = IS_TCP " && (arg1 == 1 || arg1 == 8) && arg2 == 7",
	  .nargs = 1,
	  .args = ONE },
	{ .name = "tcpOutRsts",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "tcp_send_reset",
	  .min_params = 3,
	  .nargs = 1,
	  .args = ONE },
	{ .name = "tcpOutRsts",
	  .why = "this kernel's tcp_send_reset does not fire when there is no socket" },
	{ .name = "tcpRetransSegs",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "tcp_retransmit_skb",
	  .min_params = 2,
	  .nargs = 1,
	  .args = { { .type = "uint64_t",
		      .expr = "(uint64_t)((struct tcp_skb_cb *)((struct sk_buff *)arg1)->cb)->tcp_gso_segs" } },
	  .note = "without the SYN and ACK of a handshake sent again: sdt:::tcp_retransmit_synack" },
	{ .name = "udpInOverflows",
	  .kind = ATTACH_RAW_TP,
	  .tracepoint = "udp_fail_queue_rcv_skb",
	  .nargs = 1,
	  .args = ONE,
	  .note = "no room in the socket's buffer, or no memory for it" },
	{ .name = "tcpInSegs", .why = NO_EVENT },
	{ .name = "tcpOutSegs", .why = NO_EVENT },
	{ .name = "tcpInErrs", .why = NO_EVENT },
	{ .name = "udpHCInDatagrams", .why = NO_EVENT },
	{ .name = "udpHCOutDatagrams", .why = NO_EVENT },
	{ .name = "udpNoPorts", .why = NO_EVENT },
};

const struct provider provider_mib = {
	.name = "mib",
	.doc = "counters of TCP and UDP as they count",
	.first_id = 20700,
	.last_id = 20799,
	.stability = { E_ISA, P_UNKNOWN, P_UNKNOWN, E_ISA, E_ISA },
	.events = events,
	.nevents = ARRAY_SIZE(events),
	.claims = provider_claims_name,
	.match = events_match,
	.args = events_args,
};
