//@ engine: interp,kernel,inproc
#pragma D option quiet
int g;
char c;
unsigned char uc;
self int st;
this int tt;
int as[string];
int arr[3];
self int sa[int];

BEGIN
{
	g = 5; printf("%d %d\n", g++, g); printf("%d %d\n", g--, g); printf("%d %d\n", ++g, g); printf("%d %d\n", --g, g);
	printf("%d %d\n", self->st++, self->st); printf("%d\n", ++self->st); printf("%d %d\n", self->st--, self->st);
	this->tt = 0; printf("%d %d %d\n", this->tt--, --this->tt, this->tt);
	printf("%d %d\n", as["x"]++, as["x"]); printf("%d %d\n", ++as["x"], as["y"]); as["x"]--; as["x"]--;
	printf("%d\n", as["x"]);
	arr[2]++; ++arr[2]; printf("%d\n", arr[2]--); printf("%d\n", arr[2]);
	self->sa[7]++; self->sa[7]++; printf("%d %d\n", self->sa[7], self->sa[8]);
	c = 127; c++; printf("%d\n", c);
	uc = 0; uc--; printf("%d\n", uc);
	c = -128; printf("%d %d\n", c--, c);
	undeclared++; undeclared++; printf("%d\n", undeclared);
	exit(0);
}
