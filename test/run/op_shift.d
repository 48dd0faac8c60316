//@ engine: interp,kernel,inproc
#pragma D option quiet
int a;
unsigned int ua;
long la;
unsigned long ul;
char c;
unsigned char uc;

BEGIN
{
	a = 1; printf("%d %d %d\n", a << 4, a << 31, 1 << 31);
	a = -16; printf("%d %d %d\n", a >> 2, a >> 31, -16 >> 3);
	ua = 0x80000000; printf("%d %d %d\n", ua >> 31, ua << 1, ua >> 4);
	la = 1; printf("%d %d\n", la << 40, la << 63);
	la = -1; printf("%d\n", la >> 63);
	ul = 1; printf("%d %d\n", ul << 63, (ul << 63) >> 63);
	c = -128; printf("%d %d\n", c >> 1, c << 1);
	uc = 255; printf("%d %d\n", uc << 8, uc >> 4);
	ul = 1; printf("%d %d %d\n", ul << 68, ul >> 64, ul << -1 >> 63); /* modulo 64, as by a variable */
	exit(0);
}
