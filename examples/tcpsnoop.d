#!/usr/bin/env -S descry -s
/* Prints each TCP segment that is sent or received: addresses, payload bytes, flags. The process is the one that ran; for a
 * received segment this may be any process.
 *
 *	  TIME us       PID COMMAND          LADDR           LPORT    RADDR           RPORT  BYTES FLAGS
 *	   308000      4935 python3          127.0.0.1       57770 -> 127.0.0.1        8080      0 SYN|
 *	   308062      4935 python3          127.0.0.1        8080 -> 127.0.0.1       57770      0 SYN|ACK|
 *	   308078      4935 python3          127.0.0.1       57770 -> 127.0.0.1        8080      0 ACK|
 *	   308132      4935 python3          127.0.0.1       57770 -> 127.0.0.1        8080  30000 PSH|ACK|
 *	   308136      4935 python3          127.0.0.1        8080 <- 127.0.0.1       57770  30000 PSH|ACK|
 *	   308145      4935 python3          127.0.0.1        8080 -> 127.0.0.1       57770      0 ACK|
 *	   308148      4935 python3          127.0.0.1       57770 <- 127.0.0.1        8080      0 ACK|
 *	   308161      4935 python3          127.0.0.1       57770 -> 127.0.0.1        8080      0 FIN|ACK|
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
