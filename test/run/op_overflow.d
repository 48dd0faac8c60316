//@ engine: interp,kernel,inproc
/* Arithmetic wraps at the width of its type. */
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
	exit(0);
}
