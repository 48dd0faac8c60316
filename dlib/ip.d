/* Packets of IP: the arguments of the providers ip, tcp and udp. A struct iphdr * here may also be a header of IPv6. Its
 * first four bits are the version.
 */
#pragma D depends_on library types.d

typedef uint32_t ipaddr_t;	/* in network order */
typedef struct in6_addr in6_addr_t;
typedef struct iphdr ipha_t;
typedef struct ipv6hdr ip6_t;
typedef uint64_t netstackid_t;

inline int IPH_DF = 0x4000;
inline int IPH_MF = 0x2000;

inline int IPPROTO_IP = 0;
inline int IPPROTO_HOPOPTS = 0;
inline int IPPROTO_ICMP = 1;
inline int IPPROTO_IGMP = 2;
inline int IPPROTO_GGP = 3;
inline int IPPROTO_ENCAP = 4;
inline int IPPROTO_TCP = 6;
inline int IPPROTO_EGP = 8;
inline int IPPROTO_PUP = 12;
inline int IPPROTO_UDP = 17;
inline int IPPROTO_IDP = 22;
inline int IPPROTO_IPV6 = 41;
inline int IPPROTO_ROUTING = 43;
inline int IPPROTO_FRAGMENT = 44;
inline int IPPROTO_RSVP = 46;
inline int IPPROTO_GRE = 47;
inline int IPPROTO_ESP = 50;
inline int IPPROTO_AH = 51;
inline int IPPROTO_ICMPV6 = 58;
inline int IPPROTO_NONE = 59;
inline int IPPROTO_DSTOPTS = 60;
inline int IPPROTO_HELLO = 63;
inline int IPPROTO_ND = 77;
inline int IPPROTO_EON = 80;
inline int IPPROTO_OSPF = 89;
inline int IPPROTO_PIM = 103;
inline int IPPROTO_SCTP = 132;
inline int IPPROTO_RAW = 255;
inline int IPPROTO_MAX = 256;

inline int AF_INET = 2;
inline int AF_INET6 = 10;

/* link_ntop() */
inline int ARPHRD_ETHER = 1;
inline int ARPHRD_IEEE802 = 6;
inline int ARPHRD_INFINIBAND = 32;

inline string __ip_protocol[int p] =
	p == 6 ? "TCP" : p == 17 ? "UDP" : p == 0 ? "IP" : p == 1 ? "ICMP" : p == 2 ? "IGMP" : p == 8 ? "EGP" :
	p == 41 ? "IPv6" : p == 43 ? "ROUTE" : p == 50 ? "ESP" : p == 51 ? "AH" : p == 58 ? "ICMPv6" :
	p == 89 ? "OSPF" : p == 132 ? "SCTP" : p == 255 ? "RAW" : lltostr(p);

inline int __ip_version[struct iphdr *H] = *(uint8_t *)H >> 4;
inline uint32_t __ip_headlen[struct iphdr *H] = (*(uint8_t *)H & 15) * 4;
inline string __ip_source[struct iphdr *H] = __ip_version[H] == 4 ? inet_ntoa(&H->saddr) :
	inet_ntoa6(&((struct ipv6hdr *)H)->saddr);
inline string __ip_dest[struct iphdr *H] = __ip_version[H] == 4 ? inet_ntoa(&H->daddr) :
	inet_ntoa6(&((struct ipv6hdr *)H)->daddr);

/* An IPv6 socket that uses IPv4 has an address ::ffff:a.b.c.d. */
inline int __sock_ip_version[struct sock *K] =
	K->__sk_common.skc_family == 10 && (K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[0] != 0 ||
	K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[1] != 0 ||
	K->__sk_common.skc_v6_daddr.in6_u.u6_addr32[2] != 0xffff0000) ? 6 : 4;
inline string __sock_local[struct sock *K] = __sock_ip_version[K] == 4 ?
	inet_ntoa(&K->__sk_common.skc_rcv_saddr) : inet_ntoa6(&K->__sk_common.skc_v6_rcv_saddr);
inline string __sock_remote[struct sock *K] = __sock_ip_version[K] == 4 ?
	inet_ntoa(&K->__sk_common.skc_daddr) : inet_ntoa6(&K->__sk_common.skc_v6_daddr);

typedef struct pktinfo {
	uintptr_t pkt_addr;	/* of its struct sk_buff */
} pktinfo_t;

translator pktinfo_t < struct sk_buff *S > {
	pkt_addr = (uintptr_t)S;
};

typedef struct csinfo {
	uintptr_t cs_addr;	/* of the struct sock, 0: not known */
	uint64_t cs_cid;	/* the same for all packets of a connection on this machine's side */
	pid_t cs_pid;		/* -1: Linux does not record the process that made a socket */
	zoneid_t cs_zoneid;	/* 0, the global zone, the only one */
} csinfo_t;

translator csinfo_t < struct sock *K > {
	cs_addr = (uintptr_t)K;
	cs_cid = (uint64_t)K;
	cs_pid = -1;
	cs_zoneid = 0;
};

typedef struct ipinfo {
	uint8_t ip_ver;		/* 4 or 6 */
	uint32_t ip_plength;	/* bytes behind the header (IPv6: with extension headers) */
	string ip_saddr;
	string ip_daddr;
} ipinfo_t;

/* Bytes of the packet behind its IP header, from the size of the buffer. The header's own length is 0 in segments above
 * 64 KB, and not updated when the kernel joins segments. Large segments of IPv6 begin with a jumbo option of 8 bytes,
 * which never leaves the machine. */
inline struct iphdr *__skb_ip[struct sk_buff *S] = (struct iphdr *)((uintptr_t)S->head + S->network_header);
inline uint32_t __skb_ip_bytes[struct sk_buff *S] =
	(uint32_t)(S->len + ((uintptr_t)S->data - (uintptr_t)S->head) - S->network_header);
inline uint32_t __ip_jumbo[struct ipv6hdr *H] = H->payload_len == 0 && H->nexthdr == 0 ? 8 : 0;

translator ipinfo_t < struct sk_buff *S > {
	ip_ver = __ip_version[__skb_ip[S]];
	ip_plength = __ip_version[__skb_ip[S]] == 4 ? __skb_ip_bytes[S] - __ip_headlen[__skb_ip[S]] :
	    __skb_ip_bytes[S] - sizeof (struct ipv6hdr) - __ip_jumbo[(struct ipv6hdr *)__skb_ip[S]];
	ip_saddr = __ip_source[__skb_ip[S]];
	ip_daddr = __ip_dest[__skb_ip[S]];
};

/* The address of a struct sk_buff from the device: its data begins at the IP header and may end in padding. */
inline uint32_t __raw_len[uint64_t W] = ((struct sk_buff *)W)->len;
inline struct iphdr *__raw_ip[uint64_t W] = (struct iphdr *)((struct sk_buff *)W)->data;
inline struct ipv6hdr *__raw_ip6[uint64_t W] = (struct ipv6hdr *)((struct sk_buff *)W)->data;

translator ipinfo_t < uint64_t W > {
	ip_ver = __ip_version[__raw_ip[W]];
	ip_plength = __ip_version[__raw_ip[W]] == 4 ?
	    (__raw_ip[W]->tot_len != 0 ? ntohs(__raw_ip[W]->tot_len) : __raw_len[W]) - __ip_headlen[__raw_ip[W]] :
	    __raw_ip6[W]->payload_len != 0 ? ntohs(__raw_ip6[W]->payload_len) :
	    __raw_len[W] - sizeof (struct ipv6hdr) - __ip_jumbo[__raw_ip6[W]];
	ip_saddr = __ip_source[__raw_ip[W]];
	ip_daddr = __ip_dest[__raw_ip[W]];
};

/* A received packet of which only the socket is known. */
translator ipinfo_t < struct inet_sock *K > {
	ip_ver = __sock_ip_version[(struct sock *)K];
	ip_plength = 0;
	ip_saddr = __sock_remote[(struct sock *)K];
	ip_daddr = __sock_local[(struct sock *)K];
};

typedef struct ifinfo {
	string if_name;
	int8_t if_local;	/* the loopback device */
	netstackid_t if_ipstack;	/* network namespace, as /proc/PID/ns/net numbers it */
	uintptr_t if_addr;	/* of its struct net_device */
} ifinfo_t;

translator ifinfo_t < struct net_device *D > {
	if_name = D != 0 ? stringof(D->name) : "<null>";
	if_local = D != 0 && (D->flags & 8) != 0;
	if_ipstack = D != 0 ? D->nd_net.net->ns.inum : 0;
	if_addr = (uintptr_t)D;
};

typedef struct ipv4info {
	uint8_t ipv4_ver;	/* 4; 0: the packet is not IPv4, and all members are 0 */
	uint8_t ipv4_ihl;	/* length of the header, bytes */
	uint8_t ipv4_tos;
	uint16_t ipv4_length;	/* header and payload, bytes */
	uint16_t ipv4_ident;
	uint8_t ipv4_flags;	/* IPH_DF >> 12, IPH_MF >> 12 */
	uint16_t ipv4_offset;	/* of the fragment, in units of 8 bytes */
	uint8_t ipv4_ttl;
	uint8_t ipv4_protocol;	/* IPPROTO_* */
	string ipv4_protostr;
	uint16_t ipv4_checksum;
	ipaddr_t ipv4_src;
	ipaddr_t ipv4_dst;
	string ipv4_saddr;
	string ipv4_daddr;
	ipha_t *ipv4_hdr;
} ipv4info_t;

translator ipv4info_t < struct iphdr *H > {
	ipv4_ver = __ip_version[H] == 4 ? 4 : 0;
	ipv4_ihl = __ip_version[H] == 4 ? __ip_headlen[H] : 0;
	ipv4_tos = __ip_version[H] == 4 ? H->tos : 0;
	ipv4_length = __ip_version[H] == 4 ? ntohs(H->tot_len) : 0;
	ipv4_ident = __ip_version[H] == 4 ? ntohs(H->id) : 0;
	ipv4_flags = __ip_version[H] == 4 ? (ntohs(H->frag_off) & 0xe000) >> 12 : 0;
	ipv4_offset = __ip_version[H] == 4 ? ntohs(H->frag_off) & 0x1fff : 0;
	ipv4_ttl = __ip_version[H] == 4 ? H->ttl : 0;
	ipv4_protocol = __ip_version[H] == 4 ? H->protocol : 0;
	ipv4_protostr = __ip_version[H] == 4 ? __ip_protocol[H->protocol] : "<null>";
	ipv4_checksum = __ip_version[H] == 4 ? ntohs(H->check) : 0;
	ipv4_src = __ip_version[H] == 4 ? H->saddr : 0;
	ipv4_dst = __ip_version[H] == 4 ? H->daddr : 0;
	ipv4_saddr = __ip_version[H] == 4 ? inet_ntoa(&H->saddr) : "<null>";
	ipv4_daddr = __ip_version[H] == 4 ? inet_ntoa(&H->daddr) : "<null>";
	ipv4_hdr = __ip_version[H] == 4 ? H : (struct iphdr *)0;
};

typedef struct ipv6info {
	uint8_t ipv6_ver;	/* 6; 0: the packet is not IPv6, and all members are 0 */
	uint8_t ipv6_tclass;
	uint32_t ipv6_flow;
	uint16_t ipv6_plen;	/* bytes behind the header */
	uint8_t ipv6_nexthdr;	/* IPPROTO_* */
	string ipv6_nextstr;
	uint8_t ipv6_hlim;
	in6_addr_t *ipv6_src;
	in6_addr_t *ipv6_dst;
	string ipv6_saddr;
	string ipv6_daddr;
	ip6_t *ipv6_hdr;
} ipv6info_t;

inline int __is_ip6[struct ipv6hdr *H] = *(uint8_t *)H >> 4 == 6;

translator ipv6info_t < struct ipv6hdr *H > {
	ipv6_ver = __is_ip6[H] ? 6 : 0;
	ipv6_tclass = __is_ip6[H] ? (ntohl(*(uint32_t *)H) >> 20) & 0xff : 0;
	ipv6_flow = __is_ip6[H] ? ntohl(*(uint32_t *)H) & 0xfffff : 0;
	ipv6_plen = __is_ip6[H] ? ntohs(H->payload_len) : 0;
	ipv6_nexthdr = __is_ip6[H] ? H->nexthdr : 0;
	ipv6_nextstr = __is_ip6[H] ? __ip_protocol[H->nexthdr] : "<null>";
	ipv6_hlim = __is_ip6[H] ? H->hop_limit : 0;
	ipv6_src = __is_ip6[H] ? &H->saddr : (struct in6_addr *)0;
	ipv6_dst = __is_ip6[H] ? &H->daddr : (struct in6_addr *)0;
	ipv6_saddr = __is_ip6[H] ? inet_ntoa6(&H->saddr) : "<null>";
	ipv6_daddr = __is_ip6[H] ? inet_ntoa6(&H->daddr) : "<null>";
	ipv6_hdr = __is_ip6[H] ? H : (struct ipv6hdr *)0;
};
