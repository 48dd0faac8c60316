//@ engine: interp,kernel,inproc
//@ covers: print(&x)
/* The address of a variable prints its place and its value. */
//@ sub: /0x[0-9a-f]+/ADDR/
#pragma D option quiet
struct in { int a; long b; };
struct in g;

BEGIN
{
	g.a = 77; x = 5; self->y = 6; z["k"] = 8;
	print(&g); print(&x); print(&self->y); print(&z["k"]); print(&g.a);
	exit(0);
}
