//@ cmd: -d parse
tcp:::state-change
/args[3]->tcps_state != args[5]->tcps_state && (args[3]->tcps_lport == 80 || args[3]->tcps_rport == 443)/
{
	printf("%s:%d -> %s:%d  %s -> %s\n",
	    args[3]->tcps_laddr, args[3]->tcps_lport,
	    args[3]->tcps_raddr, args[3]->tcps_rport,
	    tcp_state_string[args[5]->tcps_state], tcp_state_string[args[3]->tcps_state]);
	@bytes[args[2]->ip_saddr, args[4]->tcp_flags & (TH_SYN | TH_ACK)] =
	    sum(args[2]->ip_plength - args[4]->tcp_offset);
}
