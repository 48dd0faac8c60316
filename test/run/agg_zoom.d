//@ engine: interp,kernel,inproc
//@ cmd: -q -x aggzoom -s %s
//@ covers: aggzoom
/* The largest bucket has the whole width, with any share. */
BEGIN
{
	@q = quantize(1);
	@q = quantize(2);
	@q = quantize(4);
	@q = quantize(4);
	@l = lquantize(1, 0, 3, 1);
	@l = lquantize(2, 0, 3, 1);
	exit(0);
}
