//@ engine: interp,kernel,inproc
/* Strings in arrays, structs, elements and D's own memory. */
#pragma D option quiet
struct named { int id; string name; int after; };
string sa[3];
self string ss[2];
struct named g;
struct named el[int];
struct named arr[2];
self struct named sn;

BEGIN
{
	sa[1] = "one"; sa[2] = sa[1]; this->i = 2;
	printf("[%s] [%s] [%s] [%s]\n", sa[0], sa[1], sa[2], sa[this->i]);
	sa[1] = 0; printf("[%s] %d %d\n", sa[1], sa[2] == "one", sa[1] == "");
	self->ss[1] = "self"; printf("[%s] [%s]\n", self->ss[0], self->ss[1]);
	g.id = 1; g.name = "global"; g.after = 2; printf("%d %s %d %d\n", g.id, g.name, g.after, strlen(g.name));
	el[4].name = "element"; el[4].after = 3; printf("%d [%s] %d [%s]\n", el[4].id, el[4].name, el[4].after, el[5].name);
	el[4].id = 9; el[4].name = strjoin(el[4].name, "!"); printf("%d [%s] %d\n", el[4].id, el[4].name, el[4].after);
	arr[1].name = g.name; printf("[%s] [%s] %d\n", arr[0].name, arr[1].name, arr[1].name == g.name);
	self->sn.name = "thread"; printf("[%s] %d\n", self->sn.name, self->sn.id);
	this->p = (struct named *)alloca(sizeof(struct named));
	this->p->name = "own"; this->p->after = 5; printf("[%s] %d\n", this->p->name, this->p->after);
	this->p->name = 0; printf("[%s]\n", this->p->name);
	this->k = strlen(sa[2]); printf("%d %s\n", this->k, substr(sa[2], 1));
	exit(0);
}
