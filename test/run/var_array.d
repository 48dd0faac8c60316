//@ engine: interp,kernel,inproc
/* Scalar arrays of all three scopes. */
#pragma D option quiet
int g[10];
char text[6];
self int s[4];
this int t[4];
uint16_t h[3];

BEGIN
{
	g[0] = 1; g[9] = 2; this->i = 4; g[this->i] = 3; g[this->i + 1] = g[this->i] * 2;
	printf("%d %d %d %d %d\n", g[0], g[9], g[4], g[5], g[1]);
	self->s[1] = 7; self->s[3] = self->s[1] + 1; printf("%d %d %d\n", self->s[0], self->s[1], self->s[3]);
	this->t[0] = 0; this->t[2] = 9; this->t[this->t[0]] = 5; printf("%d %d\n", this->t[0], this->t[2]);
	text[0] = 'a'; text[1] = 'b'; text[2] = 0; printf("%s\n", stringof(text));
	h[1] = 65537; h[2]--; printf("%d %d %d\n", h[0], h[1], h[2]);
	exit(0);
}
