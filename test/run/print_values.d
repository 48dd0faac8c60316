//@ engine: interp,kernel,inproc
/* print(): scalars, strings, enums, pointers, structs, unions, arrays; members that are 0 are omitted. */
#pragma D option quiet
enum colour { RED, GREEN };
struct in { int a; unsigned char b; };
struct all {
	char c; short s; long l; unsigned long ul; enum colour e; int arr[3]; char text[8]; struct in in; struct in many[2];
	union { int i; char b[4]; } u; unsigned bits : 3; void *p;
};
struct all g;
enum colour e;
long l;

BEGIN
{
	print(5); print("text"); print(-1L);
	e = GREEN; print(e);
	l = -3; print(l);
	g.c = 'x'; g.s = -2; g.ul = 18446744073709551615; g.e = GREEN; g.arr[1] = 7; g.text[0] = 'o'; g.text[1] = 'k';
	g.in.a = 1; g.many[1].b = 200; g.bits = 5; g.p = (void *)0xabc;
	print(g);
	print(g.in);
	print(g.arr);
	this->p = (struct in *)alloca(sizeof(struct in));
	this->p->a = 3; this->p->b = 0;
	print(*this->p);
	exit(0);
}
