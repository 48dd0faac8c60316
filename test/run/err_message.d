//@ engine: interp,kernel,inproc
/* What a fault says on standard error: probe, reason, where. */
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
