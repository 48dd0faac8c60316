//@ engine: interp,kernel,inproc
/* + - * / % with C's signs: the quotient towards zero, the remainder with the dividend's sign. */
#pragma D option quiet
int a, b;
unsigned int ua;
long la;
unsigned long ul;

BEGIN
{
	a = 7; b = -2;
	printf("%d %d %d %d %d\n", a + b, a - b, a * b, a / b, a % b);
	a = -7; b = 2;
	printf("%d %d\n", a / b, a % b);
	b = -2;
	printf("%d %d\n", a / b, a % b);
	printf("%d %d %d %d\n", -7 / 2, -7 % 2, 7 / -2, 7 % -2);
	ua = 4294967295;
	printf("%d %d %d %d\n", ua + 1, ua * ua, ua / 2, ua % 10);
	ul = -1;
	printf("%d %d\n", ul / 10, ul % 10);
	la = -9223372036854775807 - 1;
	printf("%d %d\n", la / 10, la % 10);
	a = -1; ua = 2;
	printf("%d\n", a / ua);
	la = -1; ua = 4294967295;
	printf("%d\n", la + ua);
	ua = 1;
	printf("%d %d\n", -ua, ~ua);
	a = 5;
	printf("%d %d %d %d\n", -a, +a, ~a, !a);
	printf("%d %d\n", 2 + 3 * 4 - 10 / 5, (2 + 3) * (4 - 10) / 5);
	exit(0);
}
