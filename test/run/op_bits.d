//@ engine: interp,kernel,inproc
#pragma D option quiet
int a, b;
unsigned long ul;
unsigned char uc;

BEGIN
{
	a = 12; b = 10;
	printf("%d %d %d %d\n", a & b, a | b, a ^ b, ~a);
	a = -1; b = 0xff;
	printf("%d %d %d\n", a & b, a | b, a ^ b);
	ul = 0xf0f0f0f0f0f0f0f0; a = -1;
	printf("%x %x %x\n", ul & a, ul ^ a, ~ul);
	uc = 0x0f; printf("%d %x\n", ~uc, ul & uc);
	printf("%d %d %d\n", 1 | 2 ^ 3 & 4, (1 | 2) ^ 3 & 4, 6 & 3 | 8);
	exit(0);
}
