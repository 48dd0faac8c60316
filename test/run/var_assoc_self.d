//@ engine: interp,kernel,inproc
#pragma D option quiet
self int sc[int];
self string names[string];

BEGIN
{
	self->a[1] = 5; self->a[2] = 6;
	printf("%d %d %d\n", self->a[1], self->a[2], self->a[3]);
	self->sc[1] += 7; printf("%d\n", self->sc[1]);
	self->names["x"] = "value"; printf("%s [%s]\n", self->names["x"], self->names["y"]);
	self->t[pid, "k"] = 9; printf("%d\n", self->t[pid, "k"]);
	self->a[1] = 0; printf("%d %d\n", self->a[1], self->a[2]);
	exit(0);
}
