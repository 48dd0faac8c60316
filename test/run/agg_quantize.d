//@ engine: interp,kernel,inproc
/* quantize(): a bucket for 0, powers of two to both sides; increments. */
#pragma D option quiet
int n;

BEGIN
{
	@zero = quantize(0);
	@one = quantize(1);
	@neg = quantize(-1); @neg = quantize(-4); @neg = quantize(-5);
	@pow = quantize(7); @pow = quantize(8); @pow = quantize(15); @pow = quantize(16);
	@inc = quantize(100, 3); @inc = quantize(200);
	n = 1000; @key["k", 2] = quantize(n); @key["k", 2] = quantize(n * 2);
	printa(@zero); printa(@one); printa(@neg); printa(@pow); printa(@inc); printa(@key);
	exit(0);
}
