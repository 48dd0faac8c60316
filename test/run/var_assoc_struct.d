//@ engine: interp,kernel,inproc
/* Elements that are structs: members one by one; a member set to 0 does not free the others. */
#pragma D option quiet
struct in { int a; long b; char s[4]; short h[3]; };
struct in x[int];
self struct in y[string];

BEGIN
{
	x[1].b = 7; x[2].a = 5; x[2].h[2] = -3;
	printf("%d %d %d %d %d\n", x[1].a, x[1].b, x[2].a, x[2].b, x[2].h[2]);
	x[1].a = 4; x[1].b = 0;
	printf("%d %d\n", x[1].a, x[1].b);
	this->i = 1; x[1].h[this->i] = 11; x[3].h[this->i + 1] = 12;
	printf("%d %d %d %d\n", x[1].h[0], x[1].h[1], x[3].h[this->i + 1], x[3].a);
	x[2].s[0] = 'o'; x[2].s[1] = 'k'; printf("%s\n", stringof(x[2].s));

	self->y["k"].b += 5; self->y["k"].a++; printf("%d %d %d\n", self->y["k"].a, self->y["k"].b, self->y["l"].b);
	exit(0);
}
