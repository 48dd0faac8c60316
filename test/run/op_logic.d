//@ engine: interp,kernel,inproc
/* && and || stop early; ^^ does not; the result is 0 or 1. */
#pragma D option quiet
int a, b, n;

BEGIN
{
	a = 5; b = 0; n = 0;
	printf("%d %d %d %d\n", a && a, a && b, b && a, b && b);
	printf("%d %d %d %d\n", a || a, a || b, b || a, b || b);
	printf("%d %d %d %d\n", a ^^ a, a ^^ b, b ^^ a, b ^^ b);
	printf("%d %d %d\n", !a, !b, !!a);
	printf("%d %d\n", b && (n = 1), n);
	printf("%d %d\n", a || (n = 1), n);
	printf("%d %d\n", a && (n = 7), n);
	printf("%d %d\n", b || (n = 8), n);
	printf("%d %d\n", a ^^ (n = 9), n);
	printf("%d %d\n", a || b && b, (a || b) && b);
	printf("%d%d%d%d\n", 1 && 2, 0 || 0, 1 ^^ 2, !3);
	printf("%d\n", a == 5 && b == 0 && n == 9 && !(a < b || n < a));
	exit(0);
}
