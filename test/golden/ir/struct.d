//@ cmd: -d ir
struct pt { char c; int x; unsigned f : 5; };
struct pt g;
this struct pt t;

BEGIN
{
	g.x = 3;
	g.f = g.x + 1;
	this->t.c = g.f;
}
