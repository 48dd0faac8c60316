//@ engine: interp,kernel,inproc
/* A stored value wraps at the width of its type. Before the store, ints have 64 bits, and unsigned ints C's 32. */
#pragma D option quiet
int a;
unsigned int ua;
int32_t i32;
inline int FOURFOLD = a * 4;
inline int FOURFOLD_OF[int x] = x * 4;
inline int ALL_FOUR = 2147483647 * 4;
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
	/* An operand is not truncated, neither in a conversion to int nor behind "," "?:" or "+". Inlines and assigned values are. */
	s = 32767; a = 2147483647; i32 = 2147483647; c = 0;
	printf("%d %d\n", s * s * s * s / s / s / s, (short)-1 * s * s * s / s / s);
	printf("%d %d %d %d\n", (c, a * 4) / 4, (c ? 1 : a * 4) / 4, +(a * 4) / 4, i32 * 4 / 4);
	i32 /= a * 4 / 4 - 2147483646;
	printf("%d\n", i32);
	printf("%d %d %d\n", FOURFOLD / 4, FOURFOLD_OF[a] / 4, ALL_FOUR / 4);
	i32 = 7; us = 2;
	i32 /= (c, us);
	printf("%d %d\n", i32, 10 % (c, 3));
	/* the same for constants, variables and aggregated values */
	uc = 200; us = 5;
	printf("%d %d\n", us - uc, (unsigned short)5 - (unsigned char)200);
	printf("%d %d %d\n", 1 << 65, (c + 1) << 65, -1 >> 127);
	@m[0] = min((c + 1) << 31); @m[1] = min(1 << 31); @m[2] = min(us - uc);
	@m[3] = min((unsigned short)5 - (unsigned char)200);
	printa("%d %@d\n", @m);
	a = 4;
	a += a++ * 10; /* from the left */
	printf("%d\n", a);
	exit(0);
}
