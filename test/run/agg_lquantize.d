//@ engine: interp,kernel,inproc
#pragma D option quiet

BEGIN
{
	@in = lquantize(0, 0, 10, 5); @in = lquantize(4, 0, 10, 5); @in = lquantize(5, 0, 10, 5);
	@out = lquantize(-100, 0, 10, 5); @out = lquantize(10, 0, 10, 5);
	@neg = lquantize(-15, -20, 0, 10); @neg = lquantize(-1, -20, 0, 10);
	@step = lquantize(3, 2, 5); @step = lquantize(3, 2, 5);
	@inc = lquantize(1, 0, 2, 1, 4);
	printa(@in); printa(@out); printa(@neg); printa(@step); printa(@inc);
	exit(0);
}
