//@ engine: interp,kernel,inproc
/* The value of an assignment to a bit-field is the field's new value. */
#pragma D option quiet
struct bits { unsigned a : 3; int c : 5; };
struct bits g;
int i;

BEGIN
{
	i = (g.a = 9); printf("%d %d\n", i, g.a);
	i = (g.c = 17); printf("%d %d\n", i, g.c);
	g.a = 7; printf("%d %d\n", ++g.a, g.a);
	g.c = -16; printf("%d %d\n", --g.c, g.c);
	i = (g.a += 12); printf("%d %d\n", i, g.a);
	exit(0);
}
