//@ engine: interp,kernel,inproc
/* The message of a fault on standard error: probe, reason, place. */
//@ err
//@ sub: /^descry: script .*\n//
//@ sub: / at BPF pc \d+//
#pragma D option quiet
int zero;

BEGIN { trace(*(int *)0x10); }
BEGIN
{
	printf("a");
	zero = 7 % zero;
}
BEGIN { printf("done\n"); exit(0); }
