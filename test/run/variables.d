//@ engine: interp,kernel,inproc
//@ cmd: -q
int total;
self int depth;
this int local;
string name;
int list[4];

BEGIN
{
	total = 5;
	self->depth = 2;
	this->local = total * self->depth;
	name = "first";
	list[1] = 11;
	list[3] = 13;
	a["x", 1] = 100;
	a["x", 2] = 200;
	a["y", 1] = 300;
	self->m["k"] = 9;
}

BEGIN
{
	printf("%d %d %d %s\n", total, self->depth, this->local, name);
	printf("%d %d %d\n", list[0], list[1], list[3]);
	printf("%d %d %d %d\n", a["x", 1], a["x", 2], a["y", 1], a["z", 1]);
	a["x", 1] = 0;
	a["x", 2]++;
	printf("%d %d %d\n", a["x", 1], a["x", 2], self->m["k"]);
	self->depth = 0;
}

BEGIN
/self->depth == 0 && name == "first"/
{
	printf("predicate\n");
}

BEGIN
/total == 6/
{
	printf("never\n");
}

BEGIN
{
	exit(0);
}
