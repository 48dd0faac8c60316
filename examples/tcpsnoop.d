#!/usr/bin/env -S descry -s
/* Segments of TCP as they are sent and received, with the addresses, the payload's bytes and the flags. The process is the
 * one that was running: of a segment received that is chance.
 *
 *	  TIME us       PID COMMAND          LADDR           LPORT    RADDR           RPORT  BYTES FLAGS
 *	        0      8411 curl             127.0.0.1       40404 -> 127.0.0.1          80      0 SYN|
 *	       41      8411 curl             127.0.0.1       40404 -> 127.0.0.1          80     77 PSH|ACK|
 */
#pragma D option quiet
#pragma D option switchrate=10hz

BEGIN
{
	start = timestamp;
	printf("%9s %9s %-16s %-15s %5s    %-15s %5s %6s %s\n", "TIME us", "PID", "COMMAND", "LADDR", "LPORT", "RADDR",
	    "RPORT", "BYTES", "FLAGS");
}

tcp:::send
{
	printf("%9d %9d %-16s %-15s %5d -> %-15s %5d %6d ", (timestamp - start) / 1000, pid, execname,
	    args[2]->ip_saddr, args[4]->tcp_sport, args[2]->ip_daddr, args[4]->tcp_dport,
	    args[2]->ip_plength - args[4]->tcp_offset);
}

tcp:::receive
{
	printf("%9d %9d %-16s %-15s %5d <- %-15s %5d %6d ", (timestamp - start) / 1000, pid, execname,
	    args[2]->ip_daddr, args[4]->tcp_dport, args[2]->ip_saddr, args[4]->tcp_sport,
	    args[2]->ip_plength - args[4]->tcp_offset);
}

tcp:::send,
tcp:::receive
{
	printf("%s%s%s%s%s\n", args[4]->tcp_flags & TH_SYN ? "SYN|" : "", args[4]->tcp_flags & TH_FIN ? "FIN|" : "",
	    args[4]->tcp_flags & TH_RST ? "RST|" : "", args[4]->tcp_flags & TH_PUSH ? "PSH|" : "",
	    args[4]->tcp_flags & TH_ACK ? "ACK|" : "");
}
