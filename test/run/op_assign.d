//@ engine: interp,kernel,inproc
/* Every assignment operator on every kind of variable. */
#pragma D option quiet
int g;
char c;
unsigned char uc;
long la;
int arr[4];
self int st;
this int tt;
int as[int];

BEGIN
{
	g = 10; g += 5; printf("%d ", g); g -= 3; printf("%d ", g); g *= 4; printf("%d ", g);
	g /= 5; printf("%d ", g); g %= 4; printf("%d ", g); g <<= 6; printf("%d ", g);
	g >>= 2; printf("%d ", g); g |= 5; printf("%d ", g); g &= 12; printf("%d ", g); g ^= 7;
	printf("%d\n", g);

	self->st = 10; self->st += 5; printf("%d ", self->st); self->st -= 3; printf("%d ", self->st);
	self->st *= 4; printf("%d ", self->st); self->st /= 5; printf("%d ", self->st);
	self->st %= 4; printf("%d ", self->st); self->st <<= 6; printf("%d ", self->st);
	self->st |= 5; printf("%d ", self->st); self->st ^= 7; printf("%d\n", self->st);

	this->tt = -10; this->tt /= 3; printf("%d ", this->tt); this->tt %= 2; printf("%d ", this->tt);
	this->tt <<= 3; printf("%d ", this->tt); this->tt >>= 1; printf("%d\n", this->tt);

	as[3] = 10; as[3] += 5; printf("%d ", as[3]); as[3] *= -2; printf("%d ", as[3]); as[4] += 9;
	printf("%d %d\n", as[4], as[5]);

	arr[1] = 3; arr[1] += 4; arr[2] = arr[1]; arr[2] <<= 4; printf("%d %d %d %d\n", arr[0], arr[1], arr[2], arr[3]);

	c = 100; c += 100; printf("%d ", c);
	uc = 10; uc -= 20; printf("%d ", uc);
	la = (c = 300); printf("%d ", la);
	la = (uc = -1); printf("%d ", la);
	g = la = 5; printf("%d %d\n", g, la);
	exit(0);
}
