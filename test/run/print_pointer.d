//@ engine: interp,kernel,inproc
/* A pointer to a struct prints the address and the struct. */
//@ sub: /0x[0-9a-f]+/ADDR/
#pragma D option quiet
struct in { int a; int b; };

BEGIN
{
	this->p = (struct in *)alloca(sizeof(struct in));
	this->p->a = 3; this->p->b = 4;
	print(this->p);
	exit(0);
}
