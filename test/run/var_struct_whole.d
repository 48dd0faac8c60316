//@ engine: interp,kernel,inproc
//@ cmd: -q
/* Structures and unions by value: assigned, keys, freed by 0, clause-local, translated. */
struct point { int x; long y; };
union either { int i; char c[4]; };
struct seen { int id; string text; char name[8]; struct point at; };
struct point p, q;
this struct point l;
this union either u;
translator struct point < long v > { x = v; y = v * v; };
translator struct seen < int v > { id = v * 2; text = "made"; name = "by"; };
translator struct seen < struct point v > { id = v.x; at = xlate <struct point>(v.y); };

BEGIN
{
	p.x = 1; p.y = 2; q = p; this->l = q; self->s = p; a["k"] = this->l;
	printf("%d %d %d %d %d\n", q.x, this->l.y, self->s.x, a["k"].y, a["none"].y);
	self->s = 0; a["k"] = 0;
	printf("%d %d\n", self->s.x, a["k"].y);
	keyed[p] = 10; keyed[q] += 5; q.y = 3; keyed[q] = 7;
	printf("%d %d\n", keyed[p], keyed[q]);
	this->u.i = 0x41424344; byu[this->u] = 1; this->u.i++;
	printf("%d %d\n", byu[this->u], this->u.c[0]);
	@[p] = count(); @[p] = count(); @[q] = count();
	p; a["none"]; this->l; "text"; 5;
}

BEGIN
{
	o = xlate <struct seen>(21); printf("%d %s %s\n", o.id, o.text, stringof(o.name));
	o = xlate <struct seen>(p); printf("%d %d %d\n", o.id, o.at.x, o.at.y);
	self->o = xlate <struct point>((long)4); printf("%d %d\n", self->o.x, self->o.y);
	printa("%@d\n", @);
	exit(0);
}
