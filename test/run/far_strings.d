//@ engine: interp,kernel,inproc
//@ cmd: -q -x tregs=24 -x strsize=4096 -x scratchsize=1m -x aggsize=16m -x dynvarsize=16m -x bufsize=16m -s %s
/* Fields of keys, records and clause-local variables behind many strings: their offsets exceed 16
 * bits. */
string s, t;
int n;

BEGIN
{
	s = "a"; t = "b"; n = 3;
	printf("%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s %d|", s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, n);
	printf("%s%s%s%s%s%s%s%s%s %d\n", s, t, s, t, s, t, s, t, s, n);
}

BEGIN
{
	x[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 1] = 5; x[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 2] = 6; y[s, t, s, t, s, t, s, t, s, n, s, t, s, t, s, t, s, t, s, 3] = t;
}

BEGIN
{
	printf("%d %d %d %s %s\n", x[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 1], x[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 2], x[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 3],
	    y[s, t, s, t, s, t, s, t, s, n, s, t, s, t, s, t, s, t, s, 3], y[s, t, s, t, s, t, s, t, s, n, s, t, s, t, s, t, s, t, s, 4]);
}

BEGIN
{
	@[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 1] = sum(1); @[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 2] = sum(2); @[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, 1] = sum(3);
	@q[s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, s, t, n] = quantize(n);
	exit(0);
}

END { printa("%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s %d: %@d\n", @); printa("%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s %d: %@d\n", @q); }
