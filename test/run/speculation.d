//@ engine: interp,kernel,inproc
//@ cmd: -q
#pragma D option nspec=2
BEGIN
{
	self->a = speculation();
	self->b = speculation();
	printf("%d %d %d\n", self->a != 0, self->b != 0, speculation());
}
BEGIN { speculate(self->a); printf("kept %d\n", 1); }
BEGIN { speculate(self->b); printf("dropped\n"); }
BEGIN { printf("now\n"); }
BEGIN { commit(self->a); }
BEGIN { discard(self->b); }
BEGIN { exit(0); }
