//@ engine: interp,kernel,inproc
/* The target of a compound assignment is evaluated once, and calculated in the common type. */
#pragma D option quiet
int a[int];
int n;
int i;
unsigned int ui;
char c;
struct bits { unsigned f : 13; };
struct bits b;

BEGIN
{
	a[0] = 10; a[1] = 20;
	a[n++] /= 2L; printf("%d %d %d\n", n, a[0], a[1]);
	a[n++] += 2L; printf("%d %d %d\n", n, a[0], a[1]);
	a[--n]++; printf("%d %d\n", n, a[1]);
	i = -7; i /= 2U; printf("%d\n", i);
	i = -7; i /= 2L; printf("%d\n", i);
	i = -7; i %= 4294967296; printf("%d\n", i);
	ui = 4294967295; ui /= -1; printf("%d\n", ui);
	ui = 4294967295; ui /= -1L; printf("%d\n", ui);
	c = -100; c /= 3; printf("%d\n", c);
	c = 100; c %= 7UL; printf("%d\n", c);
	b.f = 5; printf("%d %d\n", -b.f, b.f - 6 < 0);
	exit(0);
}
