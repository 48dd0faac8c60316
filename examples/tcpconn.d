#!/usr/bin/env -S descry -s
/* Prints each TCP connection that begins: made (out), accepted (in) or refused; at the end the number of each.
 *
 *	TIME                 WAY     LOCAL                  REMOTE
 *	2026 Nov 23 06:13:39 out     127.0.0.1:57754  127.0.0.1:8080
 *	2026 Nov 23 06:13:39 in      127.0.0.1:8080   127.0.0.1:57754
 */
#pragma D option quiet

BEGIN
{
	printf("%-20s %-7s %-22s %s\n", "TIME", "WAY", "LOCAL", "REMOTE");
}

tcp:::connect-established { this->way = "out"; }
tcp:::accept-established { this->way = "in"; }
tcp:::connect-refused { this->way = "refused"; }

tcp:::connect-established, tcp:::accept-established, tcp:::connect-refused
{
	printf("%Y %-7s %s:%-6d %s:%d\n", walltimestamp, this->way, args[3]->tcps_laddr, args[3]->tcps_lport,
	    args[3]->tcps_raddr, args[3]->tcps_rport);
	@[this->way] = count();
}

END
{
	printa("%-20s %@d\n", @);
}
