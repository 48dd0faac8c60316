//@ cmd: -d ebpf
int a;
long b;

BEGIN
{
	a = 7;
	b = (a + 3) * 2 - (a >> 1);
	b %= a;
	printf("%d %d\n", a, b);
}
