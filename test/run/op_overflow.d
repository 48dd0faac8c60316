//@ engine: interp,kernel,inproc
/* What is kept wraps at the width of its type. Before that ints have 64 bits, and unsigned ints C's 32. */
#pragma D option quiet
int a;
unsigned int ua;
long la;
unsigned long ul;
char c;
unsigned char uc;
short s;
unsigned short us;

BEGIN
{
	a = 2147483647; a = a + 1;
	printf("%d\n", a);
	a = -2147483647 - 1; a = a - 1;
	printf("%d\n", a);
	a = 65536; printf("%d\n", a * a);
	ua = 0; printf("%d\n", ua - 1);
	la = 9223372036854775807; la = la + 1;
	printf("%d\n", la);
	ul = 0; ul = ul - 1;
	printf("%d\n", ul);
	c = 127; c = c + 1;
	printf("%d\n", c);
	c = 127; printf("%d\n", c + 1);
	uc = 255; uc = uc + 1;
	printf("%d\n", uc);
	uc = 255; printf("%d\n", uc + 1);
	s = 32767; s = s + 1;
	printf("%d\n", s);
	us = 0; us = us - 1;
	printf("%d\n", us);
	us = 65535; printf("%d\n", us * us);
	c = 200; uc = 300; s = 70000; us = -1;
	printf("%d %d %d %d\n", c, uc, s, us);
	la = 4294967297; a = la;
	printf("%d\n", a);
	a = 2147483647;
	printf("%d %d %d %d\n", a * 4 / 4, a + 1 > 0, (int)(a + 1) > 0, sizeof (a * a));
	la = a + a;
	printf("%d %d %d\n", la, (1 << 63) - 1 == 0x7fffffffffffffff, (long)(1 << 40));
	ua = 0;
	printf("%d %d %d %d\n", (ua - 1) / 2, ua - 1 > 5, (ua - 1) >> 4, ua - 1 == 0xffffffff);
	c = -2; uc = 3; us = 5;
	printf("%d %d %d %d\n", c + uc, sizeof (c + uc), sizeof (uc + us), sizeof (c << 1));
	printf("%d %d %d\n", c - uc < 0, c < uc, (uc - us) / 2 == -1);
	@ = sum(a * 4);
	printa("%@d\n", @);
	a = 4;
	a += a++ * 10; /* from the left */
	printf("%d\n", a);
	exit(0);
}
