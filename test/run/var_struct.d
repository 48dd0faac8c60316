//@ engine: interp,kernel,inproc
//@ covers: struct-assignment
/* Whole structures: every kind of place is a source and a target. */
#pragma D option quiet
struct in { int a; char c[5]; long b; };
struct out { int x; struct in i; };
union u { int a; long b; };
struct in g;
struct out o;
self struct in sv;
this struct in tv;
struct in arr[int];
union u u1, u2;

BEGIN
{
	this->p = (struct in *)alloca(sizeof(struct in));
	this->p->a = 3; this->p->b = 4;
	g = *this->p;
	copy = g;
	self->s = copy;
	self->sv = self->s;
	this->tv = self->sv;
	arr[5] = this->tv;
	o.i = arr[5];
	brr["x", 2] = o.i;
	arr[7] = arr[9];
	*this->p = arr[7];
	printf("%d %d %d %d %d %d %d %d\n", g.a, copy.b, self->s.a, self->sv.b, this->tv.b, arr[5].a,
	    o.i.b, brr["x", 2].a);
	printf("%d %d\n", arr[7].a, this->p->a);
	first = second = g;
	printf("%d %d\n", first.a, second.b);
	g.a = 77;
	printf("%d %d\n", first.a, g.a);
	u1.b = 0x100000002; u2 = u1;
	printf("%d %d\n", u2.a, u2.b >> 32);
	exit(0);
}
