//@ engine: interp,kernel,inproc
/* The usual arithmetic conversions decide whether a comparison is signed. */
#pragma D option quiet
int a;
unsigned int ua;
long la;
unsigned long ul;
char c;
unsigned char uc;

BEGIN
{
	a = -1; ua = 1; la = -1; ul = 1;
	printf("%d %d %d %d\n", a < ua, a > ua, a == ua, a != ua);
	printf("%d %d %d\n", la < ua, la < ul, la > ul);
	printf("%d %d\n", a == la, a < la);
	ua = 4294967295;
	printf("%d %d\n", a == ua, la == ua);
	c = -1; uc = 255;
	printf("%d %d %d %d\n", c == uc, c < uc, c <= -1, uc >= 255);
	a = 5;
	printf("%d%d%d%d%d%d\n", a < 5, a <= 5, a > 5, a >= 5, a == 5, a != 5);
	printf("%d%d%d%d%d%d\n", a < 6, a <= 4, a > 4, a >= 6, a == 6, a != 6);
	printf("%d%d%d%d%d%d\n", 2 < 5, 5 <= 2, -1 > 0, 0 >= -1, 3 == 3, 3 != 3);
	printf("%d %d\n", 1 < 2 == 1, 5 > 4 > 3);
	ul = 0x8000000000000000;
	printf("%d %d\n", ul > 1, (long)ul > 1);
	exit(0);
}
