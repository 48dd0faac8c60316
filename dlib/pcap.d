/* Link types of pcap(), as libpcap numbers them. */
inline int PCAP_NULL = 0;
inline int PCAP_ETHERNET = 1;
inline int PCAP_PPP = 9;
inline int PCAP_IP = 12;
inline int PCAP_WIFI = 105;
inline int PCAP_LOOP = 108;
inline int PCAP_IPNET = 226;
inline int PCAP_INFINIBAND = 247;
