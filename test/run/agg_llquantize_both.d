//@ engine: interp,kernel,inproc
//@ covers: llquantize
/* Both sides of zero, as in DTrace 2. */
#pragma D option quiet

BEGIN
{
	@a = llquantize(-20, 4, 0, 1, 4); @a = llquantize(-16, 4, 0, 1, 4); @a = llquantize(-12, 4, 0, 1, 4);
	@a = llquantize(-3, 4, 0, 1, 4); @a = llquantize(0, 4, 0, 1, 4); @a = llquantize(2, 4, 0, 1, 4);
	@a = llquantize(15, 4, 0, 1, 4); @a = llquantize(16, 4, 0, 1, 4);
	@mid = llquantize(-255, 4, 4, 5, 8); @mid = llquantize(255, 4, 4, 5, 8); @mid = llquantize(-256, 4, 4, 5, 8);
	@zero = llquantize(0, 2, 0, 1, 2, 1); @zero = llquantize(0, 2, 0, 1, 2, -1);
	@neg = llquantize(2, 2, 0, 1, 2, -1);
	@low = llquantize(-9223372036854775807, 10, 0, 2, 10);
	printa(@a); printa(@mid); printa(@zero); printa(@neg); printa(@low);
	exit(0);
}
