/* Datagrams: the arguments of the provider udp that ip.d lacks. */
#pragma D depends_on library types.d
#pragma D depends_on library ip.d

typedef struct udphdr udpha_t;

typedef struct udpinfo {
	uint16_t udp_sport;
	uint16_t udp_dport;
	uint16_t udp_length;	/* header and data, bytes; 0: more than 65535, or not split into segments yet */
	uint16_t udp_checksum;
	udpha_t *udp_hdr;
} udpinfo_t;

translator udpinfo_t < struct udphdr *U > {
	udp_sport = ntohs(U->source);
	udp_dport = ntohs(U->dest);
	udp_length = ntohs(U->len);
	udp_checksum = ntohs(U->check);
	udp_hdr = U;
};

typedef struct udpsinfo {
	uintptr_t udps_addr;	/* of the struct sock; 0: not known */
	uint16_t udps_lport;
	uint16_t udps_rport;
	string udps_laddr;
	string udps_raddr;
} udpsinfo_t;

/* sent; a socket that is not connected has no addresses of its own */
translator udpsinfo_t < struct sk_buff *S > {
	udps_addr = (uintptr_t)S->sk;
	udps_lport = ntohs(((struct udphdr *)((uintptr_t)S->head + S->transport_header))->source);
	udps_rport = ntohs(((struct udphdr *)((uintptr_t)S->head + S->transport_header))->dest);
	udps_laddr = __ip_source[__skb_ip[S]];
	udps_raddr = __ip_dest[__skb_ip[S]];
};

inline struct udphdr *__ip_udp[struct iphdr *H] =
	(struct udphdr *)((uintptr_t)H + (__ip_version[H] == 4 ? __ip_headlen[H] : sizeof (struct ipv6hdr)));

/* received */
translator udpsinfo_t < struct iphdr *H > {
	udps_addr = 0;
	udps_lport = ntohs(__ip_udp[H]->dest);
	udps_rport = ntohs(__ip_udp[H]->source);
	udps_laddr = __ip_dest[H];
	udps_raddr = __ip_source[H];
};
