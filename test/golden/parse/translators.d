//@ cmd: -d parse
#pragma D depends_on library procfs.d
#pragma D depends_on module vmlinux

typedef struct conninfo {
	string local;
	uint16_t port;
} conninfo_t;

translator conninfo_t < struct sock *S > {
	local = S == NULL ? "" : inet_ntoa(&S->__sk_common.skc_rcv_saddr);
	port = ntohs(S->__sk_common.skc_dport);
};

translator psinfo_t < uint32_t p > { };

BEGIN
{
	trace(xlate <conninfo_t *>((struct sock *)arg0)->port);
	this->c = xlate <conninfo_t>(arg0);
	xlate < psinfo_t * > (curthread, 1)->pr_pid++;
}
