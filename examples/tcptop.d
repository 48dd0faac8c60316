#!/usr/bin/env -S descry -s
/* Prints every second the ten TCP connections with most payload. Headers do not count.
 *
 *	2026 Nov 23 06:13:44
 *	   LADDR                 LPORT RADDR                 RPORT      BYTES
 *	<- 127.0.0.1             57780 127.0.0.1              8080          0
 *	-> 127.0.0.1             57780 127.0.0.1              8080      30000
 *	<- 127.0.0.1              8080 127.0.0.1             57780      30000
 */
#pragma D option quiet

tcp:::send
{
	@["->", args[3]->tcps_laddr, args[3]->tcps_lport, args[3]->tcps_raddr, args[3]->tcps_rport] =
	    sum(args[2]->ip_plength - args[4]->tcp_offset);
}

tcp:::receive
{
	@["<-", args[3]->tcps_laddr, args[3]->tcps_lport, args[3]->tcps_raddr, args[3]->tcps_rport] =
	    sum(args[2]->ip_plength - args[4]->tcp_offset);
}

tick-1s
{
	trunc(@, 10);
	printf("%Y\n%2s %-21s %5s %-21s %5s %10s\n", walltimestamp, "", "LADDR", "LPORT", "RADDR", "RPORT", "BYTES");
	printa("%2s %-21s %5d %-21s %5d %@10d\n", @);
	trunc(@);
}
