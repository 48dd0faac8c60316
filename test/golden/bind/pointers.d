//@ cmd: -d bind
struct point { int x; int y:3; int z:5; char name[8]; struct point *next; };
struct point *p;
struct point here;
BEGIN
{
	trace(p->next->x);
	trace(p[2].y);
	trace((p + 1)->z);
	trace(*p->name);
	trace(p->name);
	trace(p->name == "origin");
	here.x = p->x;
	here.next = &p[1];
	p++;
	p -= 2;
	trace(p - here.next);
	trace(offsetof(struct point, next));
}
