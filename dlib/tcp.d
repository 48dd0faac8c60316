/* Connections and segments: the arguments of the provider tcp that ip.d lacks. */
#pragma D depends_on library types.d
#pragma D depends_on library ip.d

typedef struct tcphdr tcph_t;

inline int TH_FIN = 0x01;
inline int TH_SYN = 0x02;
inline int TH_RST = 0x04;
inline int TH_PUSH = 0x08;
inline int TH_ACK = 0x10;
inline int TH_URG = 0x20;
inline int TH_ECE = 0x40;
inline int TH_CWR = 0x80;

/* <net/tcp_states.h>; Linux has no IDLE, and another name for BOUND, which is only for a held port. */
inline int32_t TCP_STATE_CLOSED = 7;
inline int32_t TCP_STATE_IDLE = -2;
inline int32_t TCP_STATE_BOUND = 13;
inline int32_t TCP_STATE_LISTEN = 10;
inline int32_t TCP_STATE_SYN_SENT = 2;
inline int32_t TCP_STATE_SYN_RECEIVED = 3;
inline int32_t TCP_STATE_ESTABLISHED = 1;
inline int32_t TCP_STATE_CLOSE_WAIT = 8;
inline int32_t TCP_STATE_FIN_WAIT_1 = 4;
inline int32_t TCP_STATE_CLOSING = 11;
inline int32_t TCP_STATE_LAST_ACK = 9;
inline int32_t TCP_STATE_FIN_WAIT_2 = 5;
inline int32_t TCP_STATE_TIME_WAIT = 6;

inline string tcp_state_string[int32_t state] =
	state == 7 ? "state-closed" :
	state == 13 ? "state-bound" :
	state == 10 ? "state-listen" :
	state == 2 ? "state-syn-sent" :
	state == 3 || state == 12 ? "state-syn-received" :
	state == 1 ? "state-established" :
	state == 8 ? "state-close-wait" :
	state == 4 ? "state-fin-wait-1" :
	state == 11 ? "state-closing" :
	state == 9 ? "state-last-ack" :
	state == 5 ? "state-fin-wait-2" :
	state == 6 ? "state-time-wait" : "<unknown>";

typedef struct tcpinfo {
	uint16_t tcp_sport;
	uint16_t tcp_dport;
	uint32_t tcp_seq;
	uint32_t tcp_ack;
	uint8_t tcp_offset;	/* length of the header, bytes */
	uint8_t tcp_flags;	/* TH_* */
	uint16_t tcp_window;	/* not scaled */
	uint16_t tcp_checksum;
	uint16_t tcp_urgent;
	tcph_t *tcp_hdr;
} tcpinfo_t;

translator tcpinfo_t < struct tcphdr *T > {
	tcp_sport = ntohs(T->source);
	tcp_dport = ntohs(T->dest);
	tcp_seq = ntohl(T->seq);
	tcp_ack = ntohl(T->ack_seq);
	tcp_offset = (((uint8_t *)T)[12] >> 4) * 4;
	tcp_flags = ((uint8_t *)T)[13];
	tcp_window = ntohs(T->window);
	tcp_checksum = ntohs(T->check);
	tcp_urgent = ntohs(T->urg_ptr);
	tcp_hdr = T;
};

/* A received segment of which only the socket is known. */
translator tcpinfo_t < struct inet_sock *K > {
	tcp_sport = ntohs(K->sk.__sk_common.skc_dport);
	tcp_dport = ntohs(K->inet_sport);
	tcp_seq = 0;
	tcp_ack = 0;
	tcp_offset = 0;
	tcp_flags = 0;
	tcp_window = 0;
	tcp_checksum = 0;
	tcp_urgent = 0;
	tcp_hdr = (struct tcphdr *)0;
};

typedef struct tcpsinfo {
	uintptr_t tcps_addr;	/* of the struct sock; 0: none */
	int tcps_local;		/* both ends are on this machine */
	uint16_t tcps_lport;
	uint16_t tcps_rport;
	string tcps_laddr;
	string tcps_raddr;
	int32_t tcps_state;	/* TCP_STATE_* */
	uint32_t tcps_iss;	/* first sequence number sent; on the accepting side the next one */
	uint32_t tcps_suna;	/* first one not acknowledged */
	uint32_t tcps_snxt;	/* next one to be sent */
	uint32_t tcps_rack;	/* last one that this machine has acknowledged */
	uint32_t tcps_rnxt;	/* next one expected */
	uint32_t tcps_swnd;	/* send window, bytes */
	int32_t tcps_snd_ws;	/* its scale, bits */
	uint32_t tcps_rwnd;	/* receive window, bytes */
	int32_t tcps_rcv_ws;
	uint32_t tcps_cwnd;	/* congestion window, bytes */
	uint32_t tcps_cwnd_ssthresh;	/* bytes; 0xffffffff: none yet */
	uint32_t tcps_sack_snxt;
	uint32_t tcps_rto;	/* retransmission timeout, ms */
	uint32_t tcps_mss;
	int tcps_retransmit;	/* tcp:::send: sent before */
	uint32_t tcps_rtt;	/* smoothed round trip time, us */
	uint32_t tcps_rtt_sd;	/* its mean deviation, us */
	uint32_t tcps_irs;	/* first sequence number received */
} tcpsinfo_t;

typedef struct tcplsinfo {
	int32_t tcps_state;	/* before the change */
} tcplsinfo_t;

translator tcplsinfo_t < int S > {
	tcps_state = S;
};

/* A socket with its state in the upper four bits, as src/probe/tcp.c makes it. */
inline struct sock *__packed_sock[uint64_t W] = (struct sock *)(W | 0xf000000000000000);
inline struct inet_sock *__packed_inet[uint64_t W] = (struct inet_sock *)(W | 0xf000000000000000);
inline struct tcp_sock *__packed_tcp[uint64_t W] = (struct tcp_sock *)(W | 0xf000000000000000);

inline int __sock_is_local[struct sock *K] =
	K->sk_dst_cache != 0 ? (K->sk_dst_cache->dev->flags & 8) != 0 :
	__sock_ip_version[K] == 4 ? K->__sk_common.skc_daddr == K->__sk_common.skc_rcv_saddr :
	K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[0] == K->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0] &&
	K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[1] == K->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1] &&
	K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[2] == K->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2] &&
	K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[3] == K->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3];

/* Returns 0 for sockets without the state of a connection: a request that is not a socket yet (state 12), the rest of a socket in
 * TIME_WAIT (6), and the kernel's own socket for resets, which is not a stream. */
inline struct tcp_sock *__full_tcp[struct sock *K] =
	K != 0 && K->__sk_common.skc_state != 12 && K->__sk_common.skc_state != 6 && K->sk_type == 1 ?
	(struct tcp_sock *)K : (struct tcp_sock *)0;

inline uint32_t __tcp_ssthresh[struct tcp_sock *T] =
	T->snd_ssthresh == 0x7fffffff ? 0xffffffff : T->snd_ssthresh * T->mss_cache;
inline uint32_t __tcp_irs[struct tcp_sock *T] =
	T->rcv_nxt != 0 ? T->rcv_nxt - (uint32_t)T->bytes_received - 1 : 0;
/* icsk_rto is in ticks of the kernel, and icsk_delack_max is 200 ms. */
inline uint32_t __tcp_rto[struct tcp_sock *T] =
	T->inet_conn.icsk_delack_max != 0 ? T->inet_conn.icsk_rto * 200 / T->inet_conn.icsk_delack_max : 0;

translator tcpsinfo_t < uint64_t W > {
	tcps_addr = (uintptr_t)__packed_sock[W];
	tcps_local = __sock_is_local[__packed_sock[W]];
	tcps_lport = ntohs(__packed_inet[W]->inet_sport);
	tcps_rport = ntohs(__packed_sock[W]->__sk_common.skc_dport);
	tcps_laddr = __sock_local[__packed_sock[W]];
	tcps_raddr = __sock_remote[__packed_sock[W]];
	tcps_state = (int32_t)(W >> 60);
	tcps_iss = __packed_tcp[W]->snd_una - (uint32_t)__packed_tcp[W]->bytes_acked;
	tcps_suna = __packed_tcp[W]->snd_una;
	tcps_snxt = __packed_tcp[W]->snd_nxt;
	tcps_rack = __packed_tcp[W]->rcv_wup;
	tcps_rnxt = __packed_tcp[W]->rcv_nxt;
	tcps_swnd = __packed_tcp[W]->snd_wnd;
	tcps_snd_ws = __packed_tcp[W]->rx_opt.snd_wscale;
	tcps_rwnd = __packed_tcp[W]->rcv_wnd;
	tcps_rcv_ws = __packed_tcp[W]->rx_opt.rcv_wscale;
	tcps_cwnd = __packed_tcp[W]->snd_cwnd * __packed_tcp[W]->mss_cache;
	tcps_cwnd_ssthresh = __tcp_ssthresh[__packed_tcp[W]];
	tcps_rto = __tcp_rto[__packed_tcp[W]];
	tcps_mss = __packed_tcp[W]->mss_cache;
	tcps_rtt = __packed_tcp[W]->srtt_us >> 3;
	tcps_rtt_sd = __packed_tcp[W]->rttvar_us >> 2;
	tcps_irs = __tcp_irs[__packed_tcp[W]];
	tcps_retransmit = 0;
};

inline struct tcphdr *__sent_tcp[struct sk_buff *S] = (struct tcphdr *)((uintptr_t)S->head + S->transport_header);

/* A segment being sent. snd_nxt grows only after new data was sent. */
translator tcpsinfo_t < struct sk_buff *S > {
	tcps_addr = (uintptr_t)__full_tcp[S->sk];
	tcps_local = S->dev != 0 && (S->dev->flags & 8) != 0;
	tcps_lport = ntohs(__sent_tcp[S]->source);
	tcps_rport = ntohs(__sent_tcp[S]->dest);
	tcps_laddr = __ip_source[__skb_ip[S]];
	tcps_raddr = __ip_dest[__skb_ip[S]];
	tcps_state = S->sk == 0 ? TCP_STATE_CLOSED : S->sk->__sk_common.skc_state == 12 ? TCP_STATE_SYN_RECEIVED :
	    S->sk->__sk_common.skc_state;
	tcps_iss = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->snd_una - (uint32_t)__full_tcp[S->sk]->bytes_acked : 0;
	tcps_suna = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->snd_una : 0;
	tcps_snxt = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->snd_nxt : 0;
	tcps_rack = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->rcv_wup : 0;
	tcps_rnxt = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->rcv_nxt : 0;
	tcps_swnd = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->snd_wnd : 0;
	tcps_snd_ws = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->rx_opt.snd_wscale : 0;
	tcps_rwnd = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->rcv_wnd : 0;
	tcps_rcv_ws = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->rx_opt.rcv_wscale : 0;
	tcps_cwnd = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->snd_cwnd * __full_tcp[S->sk]->mss_cache : 0;
	tcps_cwnd_ssthresh = __full_tcp[S->sk] != 0 ? __tcp_ssthresh[__full_tcp[S->sk]] : 0;
	tcps_rto = __full_tcp[S->sk] != 0 ? __tcp_rto[__full_tcp[S->sk]] : 0;
	tcps_mss = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->mss_cache : 0;
	tcps_rtt = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->srtt_us >> 3 : 0;
	tcps_rtt_sd = __full_tcp[S->sk] != 0 ? __full_tcp[S->sk]->rttvar_us >> 2 : 0;
	tcps_irs = __full_tcp[S->sk] != 0 ? __tcp_irs[__full_tcp[S->sk]] : 0;
	tcps_retransmit = __full_tcp[S->sk] != 0 &&
	    (int32_t)(ntohl(__sent_tcp[S]->seq) - __full_tcp[S->sk]->snd_nxt) < 0;
};
