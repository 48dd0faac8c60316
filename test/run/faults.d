//@ engine: interp,kernel,inproc
//@ cmd: -q
ERROR
{
	printf("ERROR fault %d\n", arg4);
	errors++;
}

BEGIN
{
	printf("before\n");
	zero = 0;
	trace(7 / zero);
	printf("not reached\n");
}

BEGIN
{
	trace(*(int *)0x10);
}

BEGIN
{
	printf("still here, %d errors\n", errors);
	exit(0);
}
