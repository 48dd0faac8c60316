//@ engine: interp,kernel,inproc
#pragma D option quiet
typedef int myint;
typedef myint *myptr;
typedef unsigned char byte_t;
typedef struct { byte_t lo; byte_t hi; } pair_t;
typedef pair_t pairs_t[2];
typedef int (*fn_t)(int, char *);
myint a;
byte_t b;
pairs_t ps;
fn_t fp;

BEGIN
{
	a = -3; b = 259;
	printf("%d %d %d\n", a, b, sizeof(myptr));
	ps[1].hi = 200; ps[0].lo = ps[1].hi + 100;
	printf("%d %d %d %d\n", ps[0].lo, ps[0].hi, ps[1].lo, ps[1].hi);
	printf("%d %d %d\n", sizeof(pair_t), sizeof(pairs_t), sizeof(fn_t));
	printf("%d %d\n", (byte_t)513, fp == NULL);
	exit(0);
}
