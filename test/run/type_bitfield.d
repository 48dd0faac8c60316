//@ engine: interp,kernel,inproc
#pragma D option quiet
struct bits { unsigned a : 3; unsigned b : 5; int c : 4; int d : 20; unsigned char e : 2; unsigned long f : 40; };
struct bits g;
this struct bits t;

BEGIN
{
	g.a = 5; g.b = 31; g.c = -3; g.d = -400000; g.e = 2; g.f = 0xabcdef0123;
	printf("%d %d %d %d %d %x\n", g.a, g.b, g.c, g.d, g.e, g.f);
	g.a = 9; g.b += 2; g.c = 7; g.c++;
	printf("%d %d %d %d %d %x\n", g.a, g.b, g.c, g.d, g.e, g.f);
	this->t.a = 7; this->t.b = 0; this->t.c = -1; this->t.d = 0; this->t.e = 3; this->t.f = 1;
	printf("%d %d %d %d %d %d\n", this->t.a, this->t.b, this->t.c, this->t.d, this->t.e, this->t.f);
	exit(0);
}
