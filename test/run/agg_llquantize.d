//@ engine: interp,kernel,inproc
#pragma D option quiet

BEGIN
{
	@a = llquantize(5, 10, 0, 2, 10); @a = llquantize(50, 10, 0, 2, 10); @a = llquantize(59, 10, 0, 2, 10);
	@under = llquantize(0, 10, 1, 2, 10); @under = llquantize(10, 10, 1, 2, 10);
	@over = llquantize(999, 10, 0, 2, 10); @over = llquantize(1000, 10, 0, 2, 10);
	printa(@a); printa(@under); printa(@over);
	exit(0);
}
