//@ engine: interp,kernel,inproc
#pragma D option quiet
int i;
char c;
unsigned char uc;
short s;
long l;
unsigned long ul;

BEGIN
{
	i = -1; c = -1; uc = 200; s = -300; l = -1; ul = -1;
	printf("[%d] [%i] [%u] [%x] [%X] [%o]\n", i, i, i, i, i, i);
	printf("[%d] [%u] [%x] [%o]\n", c, c, c, c);
	printf("[%d] [%u] [%x]\n", uc, uc, uc);
	printf("[%d] [%u] [%x]\n", s, s, s);
	printf("[%d] [%u] [%x]\n", l, l, l);
	printf("[%d] [%u] [%X]\n", ul, ul, ul);
	i = 42;
	printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%2d]\n", i, i, i, i, i, i);
	printf("[%.5d] [%8.3d] [%-8.3d] [%x] [%#x] [%#o] [%#X]\n", i, i, i, i, i, i, i);
	printf("[%8x] [%08x] [%-8x] [%#10x]\n", i, i, i, i);
	printf("[%hd] [%ld] [%lld] [%hx] [%lx] [%llx] [%lu]\n", (short)i, l, l, s, l, ul, ul);
	printf("[%*d] [%-*d] [%.*d] [%*.*d]\n", 6, i, 6, i, 4, i, 7, 3, i);
	printf("[%+d] [%+d] [% d] [%05d]\n", 0, -7, -7, -42);
	printf("%d%%\n", i);
	printf("[%d] [%x] [%o] [%u]\n", 0, 0, 0, 0);
	printf("[%#x] [%p] [%p]\n", 0, (void *)0xabc0, 0);
	printf("no arguments\n");
	exit(0);
}
