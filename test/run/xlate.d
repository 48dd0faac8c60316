//@ engine: interp,kernel,inproc
/* translator and xlate, by pointer and by value. */
#pragma D option quiet
struct in { int a; int b; char text[8]; };
typedef struct outinfo { int sum; int diff; string name; long twice; } outinfo_t;

translator outinfo_t < struct in *I > {
	sum = I->a + I->b;
	diff = I->a - I->b;
	name = stringof(I->text);
	twice = 2 * I->a;
};

translator outinfo_t < int V > {
	sum = V + 1;
	diff = V - 1;
	name = V > 0 ? "up" : "down";
	twice = 2 * V;
};

BEGIN
{
	this->i = (struct in *)alloca(sizeof(struct in));
	this->i->a = 7; this->i->b = 3; bcopy("seven", this->i->text, 6);
	printf("%d %d %s\n", xlate <outinfo_t *>(this->i)->sum, xlate <outinfo_t *>(this->i)->diff,
	    xlate <outinfo_t *>(this->i)->name);
	this->v = 21;
	printf("%d %d %s %d\n", xlate <outinfo_t>(this->v).sum, xlate <outinfo_t>(this->v).diff,
	    xlate <outinfo_t>(this->v).name, xlate <outinfo_t>(this->v).twice);
	exit(0);
}
