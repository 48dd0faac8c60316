//@ engine: interp,inproc
//@ cmd: -q -s %s
/* Elements of a thread-local array far from its beginning. The kernel has no room for so large a
 * variable. */
self int a[20000];
self int after;

BEGIN
{
	self->a[0] = 1; self->a[8191] = 2; self->a[8192] = 3; self->a[16368] = 4; self->a[16384] = 5;
	self->a[19999] = 6; self->after = 7;
	self->a[16368]++;
	printf("%d %d %d %d %d %d %d\n", self->a[0], self->a[8191], self->a[8192], self->a[16368],
	    self->a[16384], self->a[19999], self->after);
	exit(0);
}
