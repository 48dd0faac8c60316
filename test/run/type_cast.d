//@ engine: interp,kernel,inproc
#pragma D option quiet
int a;
long la;
unsigned int ua;

BEGIN
{
	a = -1;
	printf("%d %d %d %d\n", (unsigned char)a, (unsigned short)a, (unsigned int)a, (unsigned long)a);
	a = 0x12345678;
	printf("%x %x %d\n", (char)a, (short)a, (long)a);
	a = 200; printf("%d %d\n", (char)a, (unsigned char)a);
	ua = 4000000000; printf("%d %d %d\n", (int)ua, (long)ua, (long)(int)ua);
	la = 0x1ffffffff; printf("%d %u\n", (int)la, (unsigned)la);
	printf("%d %d %d\n", (char)511, (uint16_t)-1, (int8_t)128);
	printf("%d %d\n", (int)(char)255, (unsigned char)256);
	printf("%d %d\n", (_Bool)7, (_Bool)0);
	printf("%x\n", (uintptr_t)(void *)0xffff888000000000);
	printf("%d\n", (int)'a' + (char)1);
	exit(0);
}
